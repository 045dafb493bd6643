//! Hosts: the entries of lists, names that mean something inside, and what a name may look like.

use std::net::{Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use super::{Fault, classify};

/// The longest name, and the longest part of one, in bytes (RFC 1035 §2.3.4).
const NAME_BYTES_MAX: usize = 253;
const LABEL_BYTES_MAX: usize = 63;

/// Endings that no public name has: special use (RFC 6761, 6762, 8375), what ICANN keeps for private use, and
/// what container and home networks use.
const LOCAL_ENDINGS: [&str; 11] = [
    "localhost",
    "localdomain",
    "local",
    "internal",
    "intranet",
    "home.arpa",
    "lan",
    "corp",
    "home",
    "private",
    "svc",
];

/// Names of clouds' own services that do not end like a local name or that no setting may open.
const METADATA_NAMES: [&str; 9] = [
    "metadata",
    "instance-data",
    "metadata.google.internal",
    "metadata.goog",
    "instance-data.ec2.internal",
    "metadata.azure.internal",
    "metadata.tencentyun.com",
    "metadata.packet.net",
    "metadata.platformequinix.com",
];

/// What is wrong with an entry of a list of hosts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum EntryFault {
    /// Nothing, or a star alone.
    #[error("would mean everything; name each host, or leave the list empty")]
    Everything,
    /// It cannot be read as a host.
    #[error("is no host; write a name or an address, without scheme, path or blanks")]
    NoHost,
    /// A port where none belongs, or none that is one.
    #[error("has a port that cannot be used here")]
    Port,
    /// It names a cloud's own service.
    #[error("names a cloud's own service or an address that is never reached; remove it")]
    Never,
}

/// What a name means without a look-up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LocalName {
    /// Something in this machine or network.
    Local,
    /// A cloud's own service.
    Metadata,
}

/// A host and, if the entry names one, a port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct HostPort {
    host: Host<String>,
    port: Option<u16>,
}

impl HostPort {
    pub(super) fn new(host: Host<String>, port: u16) -> Self {
        Self {
            host,
            port: Some(port),
        }
    }

    /// Host and port of a URL.
    pub(super) fn of(url: &Url) -> Result<Self, Fault> {
        Ok(Self {
            host: super::host_of(url)?,
            port: url.port_or_known_default(),
        })
    }

    /// Reads `host`, `host:port`, `[::1]` or `[::1]:port`.
    pub(super) fn parse_entry(entry: &str) -> Result<Self, EntryFault> {
        let (host, port) = if entry.parse::<Ipv6Addr>().is_ok() {
            (entry, None)
        } else {
            match entry.rsplit_once(':') {
                Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
                Some(_) | None => (entry, None),
            }
        };
        let port = match port {
            None => None,
            Some(port) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                let port = port.parse().map_err(|_reason| EntryFault::Port)?;
                Some(port)
                    .filter(|port| *port != 0)
                    .ok_or(EntryFault::Port)
                    .map(Some)?
            }
            Some(_) => return Err(EntryFault::Port),
        };
        let host = entry_host(host)?;
        let is_never = local_name(&host) == Some(LocalName::Metadata)
            || address_fault(&host).is_some_and(|fault| !fault.can_be_opened());
        if is_never {
            return Err(EntryFault::Never);
        }
        Ok(Self { host, port })
    }

    /// Whether this entry means that host at that port.
    pub(super) fn covers(&self, other: &Self) -> bool {
        self.host == other.host && (self.port.is_none() || self.port == other.port)
    }

    /// Whether the host is plainly a place inside: a local name or an address that is none of the public ones.
    pub(super) fn is_inside(&self) -> bool {
        local_name(&self.host) == Some(LocalName::Local) || address_fault(&self.host).is_some()
    }
}

fn address_fault(host: &Host<String>) -> Option<super::AddressFault> {
    match host {
        Host::Domain(_) => None,
        Host::Ipv4(address) => classify((*address).into()).err(),
        Host::Ipv6(address) => classify((*address).into()).err(),
    }
}

/// The host of a list's entry, in the form in which parsed URLs have theirs.
pub(in crate::guards) fn entry_host(entry: &str) -> Result<Host<String>, EntryFault> {
    if entry.is_empty() || entry == "*" || entry == "." {
        return Err(EntryFault::Everything);
    }
    if let Ok(address) = entry.parse::<Ipv6Addr>() {
        return Ok(Host::Ipv6(address));
    }
    let is_strange = |letter: char| {
        letter.is_control()
            || letter.is_whitespace()
            || matches!(letter, '/' | '\\' | '@' | '%' | '*' | '?' | '#')
    };
    if entry.contains(is_strange) {
        return Err(EntryFault::NoHost);
    }
    match Host::parse(entry).map_err(|_reason| EntryFault::NoHost)? {
        Host::Domain(name) => {
            let name = name.strip_suffix('.').unwrap_or(&name).to_owned();
            check_name(&name).map_err(|_fault| EntryFault::NoHost)?;
            Ok(Host::Domain(name))
        }
        Host::Ipv4(address) => Ok(Host::Ipv4(address)),
        Host::Ipv6(address) => Ok(Host::Ipv6(address)),
    }
}

/// A name of letters, digits, dashes and underscores in parts that are not empty. The URL standard lets more
/// through; no resolver has use for it, and other programs read it otherwise.
pub(super) fn check_name(name: &str) -> Result<(), Fault> {
    let is_part = |part: &str| {
        (1..=LABEL_BYTES_MAX).contains(&part.len())
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
    };
    if name.len() <= NAME_BYTES_MAX && name.split('.').all(is_part) {
        Ok(())
    } else {
        Err(Fault::Malformed("has a host that is no name of a machine"))
    }
}

/// What the host's name means inside, if anything.
pub(super) fn local_name(host: &Host<String>) -> Option<LocalName> {
    let Host::Domain(name) = host else {
        return None;
    };
    if METADATA_NAMES.contains(&name.as_str()) {
        return Some(LocalName::Metadata);
    }
    let is_local = !name.contains('.')
        || LOCAL_ENDINGS.iter().any(|ending| {
            name.strip_suffix(ending)
                .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
        });
    is_local.then_some(LocalName::Local)
}

/// Whether an IPv6 host carries this IPv4 address in the mapped form: one host in two spellings.
pub(in crate::guards) fn canonical(host: &Host<String>) -> Host<String> {
    match host {
        Host::Ipv6(address) => address
            .to_ipv4_mapped()
            .map_or_else(|| host.clone(), |address: Ipv4Addr| Host::Ipv4(address)),
        Host::Domain(_) | Host::Ipv4(_) => host.clone(),
    }
}
