//! What has passed: a destination, and the addresses at which it may be reached.

use std::net::{IpAddr, SocketAddr};

use url::{Host, Position, Url};

use super::{Fault, host::HostPort, host_of, is_scheme};

/// How far a destination may lead inside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Permit {
    /// Not at all.
    Public,
    /// To private addresses, which the operator has opened to everything.
    Private,
    /// To wherever the operator has listed or named this very host.
    Opened,
}

/// A URL that may be asked for, read once. Made by [`super::Policy`] alone:
///
/// ```compile_fail
/// let forged = tidegate_gate::guards::address::Destination { url: "http://127.0.0.1/".parse().unwrap() };
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Destination {
    url: Url,
    host: Host<String>,
    port: u16,
    pub(super) permit: Permit,
}

impl Destination {
    pub(super) fn of(mut url: Url) -> Result<Self, Fault> {
        let host = host_of(&url)?;
        let port = url.port_or_known_default().unwrap_or_default();
        if port == 0 {
            return Err(Fault::Malformed("has the port 0"));
        }
        if let Host::Domain(name) = &host {
            // Without the trailing dot, so that what was judged, looked up, sent and certified is one name.
            url.set_host(Some(name))
                .map_err(|_reason| Fault::Malformed("has a host that cannot be read"))?;
        }
        url.set_fragment(None);
        Ok(Self {
            url,
            host,
            port,
            permit: Permit::Public,
        })
    }

    /// The URL as it is sent: normalised, without fragment.
    pub fn as_str(&self) -> &str {
        self.url.as_str()
    }

    /// Path and query, for the request line.
    pub fn path_and_query(&self) -> &str {
        &self.url[Position::BeforePath..Position::AfterQuery]
    }

    /// Host and, where it is not the scheme's own, port, for the `Host` header.
    pub fn authority(&self) -> &str {
        &self.url[Position::BeforeHost..Position::AfterPort]
    }

    /// Whether the connection is encrypted.
    pub fn is_https(&self) -> bool {
        self.url.scheme() == "https"
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The host, normalised: a name in ASCII, lower case and without trailing dot, or an address without
    /// brackets.
    pub fn host_text(&self) -> String {
        match &self.host {
            Host::Domain(name) => name.clone(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        }
    }

    /// The name to look up; `None` where the host is an address.
    pub fn name(&self) -> Option<&str> {
        match &self.host {
            Host::Domain(name) => Some(name),
            Host::Ipv4(_) | Host::Ipv6(_) => None,
        }
    }

    /// The host, where it is an address.
    pub fn literal(&self) -> Option<IpAddr> {
        match self.host {
            Host::Domain(_) => None,
            Host::Ipv4(address) => Some(address.into()),
            Host::Ipv6(address) => Some(address.into()),
        }
    }

    /// Whether both have scheme, host and port in common (RFC 6454), so that credentials may go along.
    pub fn is_same_origin(&self, other: &Self) -> bool {
        self.url.scheme() == other.url.scheme() && self.is_same_host(other) && self.port == other.port
    }

    /// Whether both have the host in common.
    pub fn is_same_host(&self, other: &Self) -> bool {
        self.host == other.host
    }

    pub(super) fn host(&self) -> &Host<String> {
        &self.host
    }

    pub(super) fn host_port(&self) -> HostPort {
        HostPort::new(self.host.clone(), self.port)
    }

    /// The complete URL that a redirect from here means.
    pub(super) fn absolute(&self, location: &str) -> Result<String, Fault> {
        if location.is_empty() || location.chars().any(char::is_control) || location.contains('\\') {
            return Err(Fault::Malformed(
                "of the redirect is empty or holds a backslash or control characters",
            ));
        }
        if location.starts_with("//") {
            return Ok(format!("{}:{location}", self.url.scheme()));
        }
        let before_path = location.split(['/', '?', '#']).next().unwrap_or_default();
        if before_path
            .split_once(':')
            .is_some_and(|(scheme, _)| is_scheme(scheme))
        {
            return Ok(location.to_owned());
        }
        self.url
            .join(location)
            .map(String::from)
            .map_err(|_reason| Fault::Malformed("of the redirect cannot be read"))
    }
}

/// A destination with the addresses that were judged: the only ones that may be dialled. Made by
/// [`super::Policy::reach`] alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reachable {
    pub(super) destination: Destination,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) is_inside: bool,
}

impl Reachable {
    /// Where to.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }

    /// The addresses, in the order of the answer, each once; never empty.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Whether it leads inside, because the operator has opened it.
    pub fn is_inside(&self) -> bool {
        self.is_inside
    }
}
