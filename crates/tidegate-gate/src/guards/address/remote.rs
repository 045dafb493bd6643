//! Git remotes that a model gives, and addresses in the arguments of web clients.
//!
//! Git takes far more for a remote than a URL: `ext::` runs a program, `file:` and plain paths read this
//! machine, `user@host:path` is SSH, and what begins with a dash is an option. Only what leads to a host passes,
//! and the host is judged like that of any URL.

use super::{Destination, Fault, Policy};

/// How a remote is spoken to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// HTTP or HTTPS.
    Http,
    /// SSH, as a URL or as `user@host:path`.
    Ssh,
}

/// A remote that may be reached. Made by [`Policy::check_remote`] alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    text: String,
    transport: Transport,
    destination: Destination,
}

impl Remote {
    /// What to hand to Git.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How it is spoken to.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// Host and port, for the look-up. For SSH the scheme and path are made up.
    pub fn destination(&self) -> &Destination {
        &self.destination
    }
}

impl Policy {
    /// Judges a Git remote that a model gave.
    pub fn check_remote(&self, text: &str) -> Result<Remote, Fault> {
        if text.is_empty() || text.len() > super::URL_BYTES_MAX || text.trim() != text {
            return Err(Fault::Remote("is empty, too long or has blanks around it"));
        }
        if text
            .chars()
            .any(|letter| letter.is_control() || letter.is_whitespace())
            || text.contains('\\')
        {
            return Err(Fault::Remote("holds blanks, control characters or a backslash"));
        }
        if text.starts_with('-') {
            return Err(Fault::Remote("begins with a dash and would be read as an option"));
        }
        if text.contains("::") && !text.contains("://") && !text.contains('[')
            || text
                .split_once("::")
                .is_some_and(|(helper, _)| super::is_scheme(helper))
        {
            return Err(Fault::Remote("names a helper program (`::`)"));
        }
        match text.split_once("://") {
            Some((scheme, rest)) => self.url_remote(text, scheme, rest),
            None => self.scp_remote(text),
        }
    }

    fn url_remote(&self, text: &str, scheme: &str, rest: &str) -> Result<Remote, Fault> {
        match scheme.to_ascii_lowercase().as_str() {
            "http" | "https" => {
                let destination = self.check(text)?;
                Ok(Remote {
                    text: destination.as_str().to_owned(),
                    transport: Transport::Http,
                    destination,
                })
            }
            "ssh" | "git+ssh" | "ssh+git" => {
                let (authority, _) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
                let host = without_user(authority)?;
                self.ssh(text, host, rest.contains(['?', '#', '%']))
            }
            _ => Err(Fault::Remote(
                "is neither `https://`, `http://`, `ssh://` nor `user@host:path`",
            )),
        }
    }

    /// `user@host:path`, as secure copy writes it.
    fn scp_remote(&self, text: &str) -> Result<Remote, Fault> {
        const LOCAL: Fault = Fault::Remote("is a path on this machine; give a URL or `user@host:path`");
        let slash = text.find('/').unwrap_or(text.len());
        let end = if text.contains('[') {
            text.find("]:").map(|bracket| bracket + 1)
        } else {
            text.find(':').filter(|colon| *colon < slash)
        };
        let (authority, path) = text.split_at(end.ok_or(LOCAL)?);
        let path = path.trim_start_matches(':');
        if path.is_empty() || path.starts_with('-') {
            return Err(Fault::Remote(
                "names no path, or one that would be read as an option",
            ));
        }
        let host = without_user(authority)?;
        // A port cannot be written in this form; what looks like one is the path.
        if host.is_empty() || host.len() == 1 && host.bytes().all(|byte| byte.is_ascii_alphabetic()) {
            return Err(LOCAL);
        }
        self.ssh(text, host, false)
    }

    fn ssh(&self, text: &str, host: &str, is_strange: bool) -> Result<Remote, Fault> {
        if is_strange || host.starts_with('-') {
            return Err(Fault::Remote("has a host or path that could be read in two ways"));
        }
        // Judged as a URL of its own; the port of SSH unless one is written.
        let has_port = host
            .rsplit_once(':')
            .is_some_and(|(_, port)| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit()));
        let url = if has_port {
            format!("https://{host}/")
        } else {
            format!("https://{}:22/", host.trim_end_matches(':'))
        };
        Ok(Remote {
            text: text.to_owned(),
            transport: Transport::Ssh,
            destination: self.check(&url)?,
        })
    }

    /// Judges every address that the arguments of a web client hold. Text without a scheme is refused: each
    /// client completes it in its own way.
    pub fn check_all<'t>(&self, urls: impl IntoIterator<Item = &'t str>) -> Result<Vec<Destination>, Fault> {
        urls.into_iter().map(|url| self.check(url)).collect()
    }
}

/// The host and port of an SSH authority. The user is a name of its own and no secret; a password is.
fn without_user(authority: &str) -> Result<&str, Fault> {
    let Some((user, host)) = authority.rsplit_once('@') else {
        return Ok(authority);
    };
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    if user.is_empty() || user.starts_with('-') || !user.bytes().all(is_name) {
        return Err(Fault::UserInfo);
    }
    Ok(host)
}
