//! Where a model may send a request: one reading of an address, and what it must pass before anything is
//! dialled.
//!
//! [`Policy::check`] reads the text once, refuses every spelling that readers disagree about (backslashes,
//! control characters, user names, missing or extra slashes) and judges the parsed host: the operator's domains
//! first ([`super::egress`]), then names and addresses that lead inside. What passes is a [`Destination`], and
//! the request is rebuilt from it, never from the text. After the look-up, [`Policy::reach`] judges every
//! address of the answer; the [`Reachable`] it gives back holds the only addresses that may be dialled.
//! [`Policy::follow`] puts the target of a redirect through the same. None of these types can be made elsewhere.

mod classify;
mod destination;
mod fault;
mod host;
mod remote;

use std::net::{IpAddr, SocketAddr};

use url::{Host, Url};

pub(super) use self::host::{canonical, entry_host};
pub use self::{
    classify::{AddressFault, classify},
    destination::{Destination, Reachable},
    fault::Fault,
    host::EntryFault,
    remote::{Remote, Transport},
};
use self::{
    destination::Permit,
    host::{HostPort, LocalName},
};
use super::egress;

/// The longest URL that is looked at, in bytes. What servers take, and more than a person writes.
pub const URL_BYTES_MAX: usize = 8 << 10;

/// The most addresses that one name may have; more is no honest answer.
pub const ANSWERS_MAX: usize = 64;

/// What the operator opens and shuts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Options {
    /// Hosts inside that may be reached: `host` for every port, or `host:port`. Exact: a name covers no name
    /// below it and no address that another name resolves to.
    pub ssrf_allow_hosts: Vec<String>,
    /// Opens private, shared and loopback addresses and local names to everything. Other schemes, cloud
    /// metadata and the daemon itself stay shut.
    pub ssrf_allow_private: bool,
    /// If not empty, the only domains that may be reached, each with everything below it.
    pub allowed_domains: Vec<String>,
    /// Domains that may not be reached, each with everything below it. Wins over every other setting.
    pub blocked_domains: Vec<String>,
    /// Where the daemon itself listens. Never reached, whatever else is open.
    pub own_listeners: Vec<SocketAddr>,
}

/// A setting that cannot be read. The policy is not made then: a wrong entry must not open or shut by chance.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{setting}` has the entry `{entry}`, which {fault}")]
pub struct Error {
    /// Which setting.
    pub setting: &'static str,
    /// The entry, as it was written.
    pub entry: String,
    /// What is wrong with it and what to write.
    pub fault: EntryFault,
}

/// The operator's rules for addresses, compiled.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    egress: egress::Policy,
    allow_hosts: Vec<HostPort>,
    allow_private: bool,
    own_listeners: Vec<SocketAddr>,
}

/// Whom the policy's own lists of opened hosts may help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trust<'a> {
    /// An address that a model or a program of ours gave.
    Listed,
    /// The same, and this host and port, which the operator's own row names.
    Named(&'a HostPort),
    /// An address that a server outside gave in a redirect: it opens nothing inside.
    Outside,
}

impl Policy {
    /// Reads the settings.
    pub fn compile(options: &Options) -> Result<Self, Error> {
        let mut allow_hosts = Vec::with_capacity(options.ssrf_allow_hosts.len());
        for entry in &options.ssrf_allow_hosts {
            let opened = HostPort::parse_entry(entry).map_err(|fault| Error {
                setting: "ssrf_allow_hosts",
                entry: entry.clone(),
                fault,
            })?;
            allow_hosts.push(opened);
        }
        Ok(Self {
            egress: egress::Policy::compile(&options.allowed_domains, &options.blocked_domains)?,
            allow_hosts,
            allow_private: options.ssrf_allow_private,
            own_listeners: options.own_listeners.clone(),
        })
    }

    /// Reads and judges a URL that a model gave. No name is looked up before this has passed.
    pub fn check(&self, url: &str) -> Result<Destination, Fault> {
        self.judge(parse(url)?, Trust::Listed)
    }

    /// The same for a URL whose host the operator wrote into a tool's row, `base` being scheme, host and port
    /// as they stand there. A row that plainly names a place inside (a local name or a private address) means
    /// it; a public name is judged like any other, since whoever owns it could point it inside.
    pub fn check_named(&self, url: &str, base: &str) -> Result<Destination, Fault> {
        let named = HostPort::of(&parse(base)?)?;
        self.judge(parse(url)?, Trust::Named(&named))
    }

    /// Judges every address that the destination's host has. One bad address refuses them all: whoever owns
    /// the name mixes them on purpose.
    pub fn reach(&self, destination: Destination, answers: &[IpAddr]) -> Result<Reachable, Fault> {
        let host = destination.host_text();
        let answers = match destination.literal() {
            Some(literal) => vec![literal],
            None => answers.to_vec(),
        };
        if answers.is_empty() {
            return Err(Fault::NoAddress { host });
        }
        if answers.len() > ANSWERS_MAX {
            return Err(Fault::TooManyAddresses { host });
        }
        let port = destination.port();
        let mut is_inside = false;
        let mut addresses = Vec::with_capacity(answers.len());
        for address in answers {
            is_inside |= self.judge_address(&destination, address)?;
            let address = SocketAddr::new(address, port);
            if !addresses.contains(&address) {
                addresses.push(address);
            }
        }
        Ok(Reachable {
            destination,
            addresses,
            is_inside,
        })
    }

    /// Judges the target of a redirect, as the server wrote it. Nothing outside leads inside, and nothing
    /// encrypted leads to something that is not.
    pub fn follow(&self, from: &Reachable, location: &str) -> Result<Destination, Fault> {
        let target = parse(&from.destination.absolute(location)?)?;
        if from.destination.is_https() && target.scheme() != "https" {
            return Err(Fault::Downgrade);
        }
        let trust = if from.is_inside {
            Trust::Listed
        } else {
            Trust::Outside
        };
        self.judge(target, trust)
    }

    /// Whether this is where the daemon listens.
    pub fn is_own(&self, address: IpAddr, port: u16) -> bool {
        let address = classify::unwrapped(address);
        self.own_listeners.iter().any(|own| {
            own.port() == port
                && (classify::unwrapped(own.ip()) == address
                    || (address.is_loopback() || address.is_unspecified())
                        && (own.ip().is_loopback() || own.ip().is_unspecified()))
        })
    }

    /// The ports on which the daemon listens: an address of this very machine with one of them leads to it.
    pub fn own_ports(&self) -> impl Iterator<Item = u16> + '_ {
        self.own_listeners.iter().map(SocketAddr::port)
    }

    fn judge(&self, url: Url, trust: Trust<'_>) -> Result<Destination, Fault> {
        let mut destination = Destination::of(url)?;
        self.egress.check(destination.host())?;
        let here = destination.host_port();
        destination.permit = match trust {
            Trust::Named(named) if *named == here && named.is_inside() => Permit::Opened,
            Trust::Named(_) | Trust::Listed if self.allow_hosts.iter().any(|host| host.covers(&here)) => {
                Permit::Opened
            }
            Trust::Named(_) | Trust::Listed | Trust::Outside if self.allow_private => Permit::Private,
            Trust::Named(_) | Trust::Listed | Trust::Outside => Permit::Public,
        };
        match host::local_name(destination.host()) {
            Some(LocalName::Metadata) => {
                return Err(Fault::Metadata {
                    host: destination.host_text(),
                });
            }
            Some(LocalName::Local) if destination.permit == Permit::Public => {
                return Err(Fault::LocalName {
                    host: destination.host_text(),
                });
            }
            Some(LocalName::Local) | None => {}
        }
        if let Some(literal) = destination.literal() {
            self.judge_address(&destination, literal)?;
        }
        Ok(destination)
    }

    /// Whether the address is one inside that this destination may have.
    fn judge_address(&self, destination: &Destination, address: IpAddr) -> Result<bool, Fault> {
        if self.is_own(address, destination.port()) {
            return Err(Fault::OwnListener);
        }
        let Err(fault) = classify(address) else {
            return Ok(false);
        };
        let is_open = match destination.permit {
            Permit::Public => false,
            Permit::Private => fault.is_private(),
            Permit::Opened => fault.can_be_opened(),
        };
        if is_open {
            return Ok(true);
        }
        Err(Fault::Address {
            host: destination.host_text(),
            address,
            fault,
        })
    }
}

/// Reads a complete URL. Whatever two readers could take for different hosts is refused before it is parsed.
fn parse(text: &str) -> Result<Url, Fault> {
    if text.len() > URL_BYTES_MAX {
        return Err(Fault::Malformed("is longer than any honest one"));
    }
    if text.chars().any(char::is_control) {
        return Err(Fault::Malformed("holds control characters"));
    }
    if text.contains('\\') {
        return Err(Fault::Malformed("holds a backslash; write it as %5C"));
    }
    if text.trim() != text {
        return Err(Fault::Malformed("has blanks around it"));
    }
    let rest = after_scheme(text)?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    if authority.is_empty() {
        return Err(Fault::Malformed("names no host after the two slashes"));
    }
    if authority.contains('@') {
        return Err(Fault::UserInfo);
    }
    if authority.chars().any(char::is_whitespace) {
        return Err(Fault::Malformed("has a blank in its host"));
    }
    let url =
        Url::parse(text).map_err(|_reason| Fault::Malformed("has a host or port that cannot be read"))?;
    // The reader agrees that there was no user name; a host is certain after the authority's own check.
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Fault::UserInfo);
    }
    Ok(url)
}

/// What stands behind `http://` or `https://`.
fn after_scheme(text: &str) -> Result<&str, Fault> {
    for scheme in ["http://", "https://"] {
        if let (Some(start), Some(rest)) = (text.get(..scheme.len()), text.get(scheme.len()..))
            && start.eq_ignore_ascii_case(scheme)
        {
            return Ok(rest);
        }
    }
    match text.split_once(':') {
        Some((scheme, _)) if scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https") => {
            Err(Fault::Malformed("needs exactly two slashes behind the scheme"))
        }
        Some((scheme, _)) if is_scheme(scheme) => Err(Fault::Scheme),
        Some(_) | None => Err(Fault::Malformed("does not begin with `https://` or `http://`")),
    }
}

/// RFC 3986 §3.1.
fn is_scheme(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic())
        && text
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.'))
}

/// A host out of a parsed URL, in the one form in which hosts are compared: no trailing dot.
fn host_of(url: &Url) -> Result<Host<String>, Fault> {
    match url.host() {
        Some(Host::Domain(name)) => {
            let name = name.strip_suffix('.').unwrap_or(name);
            host::check_name(name)?;
            Ok(Host::Domain(name.to_owned()))
        }
        Some(Host::Ipv4(address)) => Ok(Host::Ipv4(address)),
        Some(Host::Ipv6(address)) => Ok(Host::Ipv6(address)),
        None => Err(Fault::Malformed("names no host")),
    }
}

#[cfg(test)]
mod tests;
