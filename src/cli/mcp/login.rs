//! `mcp login`: a person's browser comes back to a door on loopback that is open for this one login.

use std::time::Duration;

use tidegate_mcp::Hub;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};

use crate::cli::{
    error::Error,
    output::{self, Out},
};

/// How long a person may take.
const PATIENCE: Duration = Duration::from_mins(5);
/// How long one browser connection may take to say what it wants.
const REQUEST: Duration = Duration::from_secs(10);
/// The longest first line of a request, in bytes.
const LINE_BYTES_MAX: usize = 8 << 10;
/// Where the browser comes back to.
const CALLBACK: &str = "/callback";
/// What the person sees at the end.
const FAREWELL: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/plain; charset=utf-8\r\nconnection: close\r\n\r\n\
                        tidegate has its answer; go back to the terminal.\n";
const ELSEWHERE: &str = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

pub(super) async fn login(hub: &Hub, server: &str, out: Out<'_>) -> Result<(), Error> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let base = format!("http://127.0.0.1:{}", listener.local_addr()?.port());
    let refused = |error: &tidegate_mcp::Error| Error::Refused(error.to_string());
    let login = hub
        .login(server, &format!("{base}{CALLBACK}"))
        .await
        .map_err(|error| refused(&error))?;
    writeln!(
        out,
        "Open this address in a browser on this machine and log in:\n\n{}\n",
        output::plain(login.url())
    )?;
    out.flush()?;
    let came_back = tokio::time::timeout(PATIENCE, came_back(&listener))
        .await
        .map_err(|_elapsed| {
            Error::Refused(format!(
                "nobody came back within {} s; begin again with `tidegate mcp login {server}`",
                PATIENCE.as_secs()
            ))
        })??;
    login
        .finish(&format!("{base}{came_back}"))
        .await
        .map_err(|error| refused(&error))?;
    Ok(writeln!(
        out,
        "Logged in at `{}`. A running daemon uses it with its next connection.",
        output::plain(server)
    )?)
}

/// The path and query of the first request for the callback. Others are answered and forgotten.
async fn came_back(listener: &TcpListener) -> Result<String, Error> {
    loop {
        let (stream, _) = listener.accept().await?;
        // A connection that says nothing holds up nobody for long.
        if let Ok(Some(target)) = tokio::time::timeout(REQUEST, target(stream)).await {
            return Ok(target);
        }
    }
}

async fn target(mut stream: TcpStream) -> Option<String> {
    let mut head = Vec::new();
    let mut piece = [0; 1024];
    while !head.contains(&b'\n') && head.len() < LINE_BYTES_MAX {
        match stream.read(&mut piece).await {
            Ok(0) | Err(_) => return None,
            Ok(length) => head.extend_from_slice(piece.get(..length)?),
        }
    }
    let line = String::from_utf8_lossy(head.split(|byte| *byte == b'\n').next()?).into_owned();
    let target = line
        .strip_prefix("GET ")
        .and_then(|rest| rest.split(' ').next())
        .filter(|target| target.split('?').next() == Some(CALLBACK));
    let answer = if target.is_some() { FAREWELL } else { ELSEWHERE };
    // The browser may have gone; what it said counts all the same.
    drop(stream.write_all(answer.as_bytes()).await);
    drop(stream.shutdown().await);
    target.map(str::to_owned)
}
