//! Names to addresses.

use std::{io, net::IpAddr, sync::Arc};

use async_trait::async_trait;
use tidegate_gate::guards::address::ANSWERS_MAX;
use tokio::sync::Semaphore;

/// How many look-ups run at a time. The system's resolver cannot be stopped, so one that hangs keeps its place
/// until it gives up; more wait, and are refused when their own time is over.
pub const LOOKUPS_MAX: usize = 16;

/// Looks names up. Asked once for each hop of a request.
#[async_trait]
pub trait Resolver: Send + Sync + std::fmt::Debug {
    /// All addresses of a name.
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>>;
}

/// The system's resolver.
#[derive(Debug, Clone)]
pub struct System {
    places: Arc<Semaphore>,
}

impl System {
    /// The system's resolver.
    pub fn new() -> Self {
        Self {
            places: Arc::new(Semaphore::new(LOOKUPS_MAX)),
        }
    }
}

impl Default for System {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl Resolver for System {
    async fn resolve(&self, name: &str) -> io::Result<Vec<IpAddr>> {
        let place = Arc::clone(&self.places)
            .acquire_owned()
            .await
            .map_err(io::Error::other)?;
        let name = name.to_owned();
        let looked_up = tokio::task::spawn_blocking(move || {
            let found = std::net::ToSocketAddrs::to_socket_addrs(&(name.as_str(), 0));
            // One more than is looked at, so that too many are seen to be too many.
            let found = found.map(|found| found.map(|address| address.ip()).take(ANSWERS_MAX + 1).collect());
            drop(place);
            found
        });
        looked_up.await.map_err(io::Error::other)?
    }
}
