//! A scripted file server: whole files, files that end too soon, and files that never end.

use std::{
    collections::HashMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// The longest request head that is read.
const HEAD_BYTES_MAX: usize = 16 << 10;

/// What the server does when a file is asked for.
#[derive(Debug, Clone)]
pub enum Served {
    /// Gives it.
    Whole(Vec<u8>),
    /// Gives these bytes of a file that has so many, then closes the connection.
    Cut(Vec<u8>, usize),
    /// Gives these bytes of a file that has so many, then is silent.
    Stuck(Vec<u8>, usize),
}

/// The server. It stops when it is dropped.
#[derive(Debug)]
pub struct Files {
    address: SocketAddr,
    asked: Arc<Mutex<Vec<String>>>,
    stopping: CancellationToken,
}

impl Files {
    /// Starts a server on a free loopback port with these files by path, such as `/a.json`; any other is 404.
    pub async fn start(files: impl IntoIterator<Item = (&'static str, Served)>) -> io::Result<Self> {
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let files: Arc<HashMap<&str, Served>> = Arc::new(files.into_iter().collect());
        let asked = Arc::new(Mutex::new(Vec::new()));
        let stopping = CancellationToken::new();
        let (stop, record) = (stopping.clone(), Arc::clone(&asked));
        let tasks = TaskTracker::new();
        let connections = tasks.clone();
        tasks.spawn(async move {
            let accepting = async {
                while let Ok((socket, _)) = listener.accept().await {
                    let (files, record) = (Arc::clone(&files), Arc::clone(&record));
                    let stop = stop.clone();
                    connections.spawn(async move {
                        // A client that goes away is part of the script.
                        drop(stop.run_until_cancelled(serve(socket, &files, &record)).await);
                    });
                }
            };
            stop.run_until_cancelled(accepting).await;
        });
        Ok(Self {
            address,
            asked,
            stopping,
        })
    }

    /// `http://127.0.0.1:PORT`.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The paths that were asked for so far, oldest first.
    pub fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        self.stopping.cancel();
    }
}

/// One request a connection.
async fn serve(
    mut socket: TcpStream,
    files: &HashMap<&str, Served>,
    asked: &Mutex<Vec<String>>,
) -> io::Result<()> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD_BYTES_MAX {
        head.push(socket.read_u8().await?);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let path = head.split(' ').nth(1).unwrap_or_default();
    asked
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push(path.to_owned());
    let (status, bytes, length) = match files.get(path) {
        Some(Served::Whole(bytes)) => ("200 OK", bytes.as_slice(), bytes.len()),
        Some(Served::Cut(bytes, length) | Served::Stuck(bytes, length)) => {
            ("200 OK", bytes.as_slice(), *length)
        }
        None => ("404 Not Found", &[][..], 0),
    };
    let head = format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n");
    socket.write_all(head.as_bytes()).await?;
    socket.write_all(bytes).await?;
    if let Some(Served::Stuck(..)) = files.get(path) {
        std::future::pending::<()>().await;
    }
    Ok(())
}
