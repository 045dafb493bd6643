//! Connections to addresses that were judged.

use std::{io, net::SocketAddr, sync::Arc};

use async_trait::async_trait;
use rustls::{ClientConfig, pki_types::ServerName};
use rustls_platform_verifier::BuilderVerifierExt;
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
};
use tokio_rustls::TlsConnector;

use super::Error;

/// A connection, encrypted where the peer asks for it.
pub trait Stream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Stream for T {}

/// Whom to connect to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peer {
    /// The judged address.
    pub address: SocketAddr,
    /// The name that its certificate must have; `None` for a plain connection.
    pub tls_name: Option<String>,
    /// The ports on which this daemon listens.
    pub own_ports: Vec<u16>,
}

/// Opens connections.
#[async_trait]
pub trait Connector: Send + Sync + std::fmt::Debug {
    /// A connection to exactly this address.
    async fn connect(&self, peer: &Peer) -> io::Result<Box<dyn Stream>>;
}

/// Real connections: TCP, and TLS by rustls with the system's certificates.
#[derive(Clone)]
pub struct Tcp {
    tls: TlsConnector,
}

impl std::fmt::Debug for Tcp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Tcp")
    }
}

impl Tcp {
    /// Reads the system's certificates.
    pub fn new() -> Result<Self, Error> {
        crate::http::install_crypto();
        let fail = |problem: rustls::Error| Error::Build(problem.to_string());
        let mut config = ClientConfig::builder()
            .with_platform_verifier()
            .map_err(fail)?
            .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self {
            tls: TlsConnector::from(Arc::new(config)),
        })
    }
}

#[async_trait]
impl Connector for Tcp {
    async fn connect(&self, peer: &Peer) -> io::Result<Box<dyn Stream>> {
        let stream = TcpStream::connect(peer.address).await?;
        stream.set_nodelay(true)?;
        // An address of this machine itself is reached from that very address, whatever network it is in. With
        // one of our ports it is us.
        let is_here = stream.local_addr()?.ip().to_canonical() == peer.address.ip().to_canonical();
        if is_here && peer.own_ports.contains(&peer.address.port()) {
            return Err(io::Error::other("this is the address of this server itself"));
        }
        let Some(name) = &peer.tls_name else {
            return Ok(Box::new(stream));
        };
        let name = ServerName::try_from(name.clone()).map_err(io::Error::other)?;
        Ok(Box::new(self.tls.connect(name, stream).await?))
    }
}
