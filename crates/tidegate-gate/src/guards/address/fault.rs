//! Why an address is refused.

use std::net::IpAddr;

use super::AddressFault;
use crate::Denial;

/// Why a URL, one of its addresses or a redirect is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// It cannot be read in one way only.
    #[error("the URL {0}")]
    Malformed(&'static str),
    /// Another scheme than `http` or `https`.
    #[error("only `https` and `http` URLs may be reached")]
    Scheme,
    /// A user name or password in the URL.
    #[error("the URL holds a user name or password; remove it, credentials are never sent that way")]
    UserInfo,
    /// The operator has blocked the domain.
    #[error("the domain `{host}` is blocked by the operator (`blocked_domains`)")]
    Blocked {
        /// Which host.
        host: String,
    },
    /// The operator has listed the domains that may be reached, and this is none of them.
    #[error("the domain `{host}` is not among those that may be reached (`allowed_domains`)")]
    NotAllowed {
        /// Which host.
        host: String,
    },
    /// A name that means something inside.
    #[error(
        "`{host}` is a name inside this machine or network; the operator can list it in `ssrf_allow_hosts`"
    )]
    LocalName {
        /// Which host.
        host: String,
    },
    /// The name of a cloud's own service.
    #[error("`{host}` is a cloud's own service and is never reached")]
    Metadata {
        /// Which host.
        host: String,
    },
    /// The host has an address that is none of the public Internet.
    #[error("`{host}` leads to {address}, which is {}", .fault.in_words())]
    Address {
        /// Which host.
        host: String,
        /// The address.
        address: IpAddr,
        /// What is wrong with it.
        fault: AddressFault,
    },
    /// The daemon's own address.
    #[error("this is the address of this server itself, which is never reached")]
    OwnListener,
    /// The name has no address.
    #[error("`{host}` has no address")]
    NoAddress {
        /// Which host.
        host: String,
    },
    /// The name has more addresses than any honest one.
    #[error("`{host}` has more addresses than are looked at")]
    TooManyAddresses {
        /// Which host.
        host: String,
    },
    /// A redirect from `https` to `http`.
    #[error("the server redirects from an encrypted address to one that is not")]
    Downgrade,
    /// A Git remote of a kind that is not reached.
    #[error("the Git remote {0}")]
    Remote(&'static str),
}

impl Fault {
    /// The layer that refuses.
    pub fn layer(&self) -> &'static str {
        match self {
            Self::Blocked { .. } | Self::NotAllowed { .. } => "egress",
            Self::Malformed(_)
            | Self::Scheme
            | Self::UserInfo
            | Self::LocalName { .. }
            | Self::Metadata { .. }
            | Self::Address { .. }
            | Self::OwnListener
            | Self::NoAddress { .. }
            | Self::TooManyAddresses { .. }
            | Self::Downgrade
            | Self::Remote(_) => "address",
        }
    }

    /// The stable reason code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Malformed(_) => "url_malformed",
            Self::Scheme => "url_scheme",
            Self::UserInfo => "url_credentials",
            Self::Blocked { .. } => "domain_blocked",
            Self::NotAllowed { .. } => "domain_not_allowed",
            Self::LocalName { .. } => "local_name",
            Self::Metadata { .. } => "metadata_service",
            Self::Address { .. } => "address_not_public",
            Self::OwnListener => "own_listener",
            Self::NoAddress { .. } => "no_address",
            Self::TooManyAddresses { .. } => "too_many_addresses",
            Self::Downgrade => "redirect_downgrade",
            Self::Remote(_) => "git_remote",
        }
    }

    /// The refusal.
    pub fn denial(&self) -> Denial {
        let mut reason = self.to_string();
        reason.push('.');
        if let Self::Address { fault, .. } = self
            && fault.can_be_opened()
        {
            reason.push_str(" The operator can list the host in `ssrf_allow_hosts`.");
        }
        Denial::with_code(self.layer(), self.code(), reason)
    }
}

impl From<Fault> for Denial {
    fn from(fault: Fault) -> Self {
        fault.denial()
    }
}
