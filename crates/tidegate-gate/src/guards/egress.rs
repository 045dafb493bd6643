//! Which domains may be reached at all. Asked before any name is looked up, so that a refused name is never
//! heard of by a name server.

use std::collections::HashSet;

use url::Host;

use super::address::{self, EntryFault, Fault};

/// The operator's lists, compiled. An entry covers its domain and everything below it, at a dot: `good.example`
/// covers `docs.good.example` and not `evilgood.example`. `*.good.example` covers only what is below.
#[derive(Debug, Clone, Default)]
pub struct Policy {
    /// `None` where the operator lists none: then every domain that is not blocked may be reached.
    allowed: Option<Domains>,
    blocked: Domains,
}

#[derive(Debug, Clone, Default)]
struct Domains {
    /// These and everything below.
    whole: HashSet<String>,
    /// Everything below these.
    below: HashSet<String>,
    /// Addresses, exactly.
    addresses: Vec<Host<String>>,
}

impl Policy {
    /// Reads the lists. Entries are normalised as hosts are; an empty entry or a star alone is an error.
    pub fn compile(allowed: &[String], blocked: &[String]) -> Result<Self, address::Error> {
        Ok(Self {
            allowed: if allowed.is_empty() {
                None
            } else {
                Some(Domains::compile("allowed_domains", allowed, false)?)
            },
            blocked: Domains::compile("blocked_domains", blocked, true)?,
        })
    }

    /// Judges a host. Blocked wins.
    pub fn check(&self, host: &Host<String>) -> Result<(), Fault> {
        let text = || match host {
            Host::Domain(name) => name.clone(),
            Host::Ipv4(address) => address.to_string(),
            Host::Ipv6(address) => address.to_string(),
        };
        if self.blocked.cover(host) {
            return Err(Fault::Blocked { host: text() });
        }
        match &self.allowed {
            Some(allowed) if !allowed.cover(host) => Err(Fault::NotAllowed { host: text() }),
            Some(_) | None => Ok(()),
        }
    }
}

impl Domains {
    /// `is_wide` lets a starred entry cover the domain itself too: who blocks what is below it means it as well.
    fn compile(setting: &'static str, entries: &[String], is_wide: bool) -> Result<Self, address::Error> {
        let mut domains = Self::default();
        for entry in entries {
            let fail = |fault: EntryFault| address::Error {
                setting,
                entry: entry.clone(),
                fault,
            };
            let starred = entry.strip_prefix("*.").or_else(|| entry.strip_prefix('.'));
            match address::entry_host(starred.unwrap_or(entry)).map_err(fail)? {
                Host::Domain(name) if starred.is_some() && !is_wide => {
                    domains.below.insert(name);
                }
                Host::Domain(name) => {
                    domains.whole.insert(name);
                }
                Host::Ipv4(_) | Host::Ipv6(_) if starred.is_some() => return Err(fail(EntryFault::NoHost)),
                literal @ (Host::Ipv4(_) | Host::Ipv6(_)) => {
                    domains.addresses.push(address::canonical(&literal));
                }
            }
        }
        Ok(domains)
    }

    fn cover(&self, host: &Host<String>) -> bool {
        let Host::Domain(name) = host else {
            return self.addresses.contains(&address::canonical(host));
        };
        if self.whole.contains(name) {
            return true;
        }
        let mut rest = name.as_str();
        while let Some((_, above)) = rest.split_once('.') {
            if self.whole.contains(above) || self.below.contains(above) {
                return true;
            }
            rest = above;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allowed: &[&str], blocked: &[&str]) -> Result<Policy, address::Error> {
        let owned = |list: &[&str]| list.iter().map(|&entry| entry.to_owned()).collect::<Vec<_>>();
        Policy::compile(&owned(allowed), &owned(blocked))
    }

    fn passes(policy: &Policy, host: &str) -> bool {
        policy.check(&Host::parse(host).unwrap()).is_ok()
    }

    #[test]
    fn entries_cover_whole_labels_and_blocked_wins() {
        let lists = policy(
            &["Good.Example.", "*.below.example", "münchen.example"],
            &["bad.good.example"],
        )
        .unwrap();
        for (host, expected) in [
            ("good.example", true),
            ("docs.good.example", true),
            ("evilgood.example", false),
            ("good.example.evil.example", false),
            ("below.example", false),
            ("a.b.below.example", true),
            ("xn--mnchen-3ya.example", true),
            ("bad.good.example", false),
            ("www.bad.good.example", false),
            ("93.184.216.34", false),
        ] {
            assert_eq!(passes(&lists, host), expected, "{host}");
        }
        let lists = policy(&[], &["*.bad.example", "93.184.216.34"]).unwrap();
        for host in [
            "bad.example",
            "a.bad.example",
            "93.184.216.34",
            "[::ffff:93.184.216.34]",
        ] {
            assert!(!passes(&lists, host), "{host}");
        }
        assert!(passes(&lists, "other.example"));
    }

    #[test]
    fn entries_that_mean_everything_or_nothing_are_errors() {
        for entry in [
            "",
            "*",
            ".",
            "*.",
            "a b",
            "https://a.example",
            "a.example/x",
            "*.*",
            "a..b",
            "*.1.2.3.4",
        ] {
            assert!(policy(&[entry], &[]).is_err(), "{entry}");
            assert!(policy(&[], &[entry]).is_err(), "{entry}");
        }
    }
}
