//! Addresses and machines that a line names.

use super::{Walk, outputs};
use crate::shell::shape::Shape;

/// How many addresses of one line are remembered.
const MAX_ADDRESSES: usize = 64;

impl Walk<'_> {
    /// Gathers the addresses that a command would reach.
    pub(super) fn reaches(&mut self, name: &str, words: &[Shape]) {
        let is_web = outputs::is_fetcher(name);
        let is_remote = name == "git"
            && words.iter().any(|word| {
                matches!(
                    word.text.as_str(),
                    "clone" | "fetch" | "pull" | "push" | "ls-remote" | "remote" | "submodule"
                )
            });
        let is_host = matches!(
            name,
            "nc" | "ncat"
                | "telnet"
                | "ping"
                | "ping6"
                | "dig"
                | "host"
                | "nslookup"
                | "traceroute"
                | "ftp"
                | "sftp"
        );
        for (at, word) in words.iter().enumerate() {
            let text = word.text.as_str();
            if let Some(address) = address_in(text) {
                self.add_url(address.to_owned());
            } else if text.starts_with('-') || text.is_empty() {
                // An option.
            } else if is_remote {
                if let Some((machine, path)) = text.split_once(':')
                    && machine.contains(['@', '.'])
                    && !path.is_empty()
                {
                    let machine = machine.rsplit('@').next().unwrap_or(machine);
                    self.add_url(format!("ssh://{machine}/{}", path.trim_start_matches('/')));
                }
            } else if is_host {
                let host = text.trim_start_matches('@');
                // Ports, counts and types of records are no hosts.
                if !host
                    .bytes()
                    .all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
                {
                    self.add_host(host);
                }
            } else if is_web {
                let follows_option = at > 0 && words.get(at - 1).is_some_and(|word| takes_value(&word.text));
                if !follows_option && text.contains('.') {
                    self.add_url(format!("http://{text}"));
                }
            } else if matches!(name, "scp" | "rsync") && text.contains(':') && !text.starts_with(['/', '.']) {
                let machine = text.split(':').next().unwrap_or(text);
                self.add_host(machine.rsplit('@').next().unwrap_or(machine));
            }
        }
    }

    fn add_url(&mut self, url: String) {
        if self.urls.len() < MAX_ADDRESSES && !self.urls.contains(&url) {
            self.urls.push(url);
        }
    }

    fn add_host(&mut self, host: &str) {
        if self.hosts.len() < MAX_ADDRESSES && !self.hosts.iter().any(|known| known == host) {
            self.hosts.push(host.to_owned());
        }
    }
}

/// The address inside a word: the word itself, or what stands behind an option's `=`.
fn address_in(text: &str) -> Option<&str> {
    let at = text.find("://")?;
    let scheme = text
        .get(..at)?
        .bytes()
        .rev()
        .take_while(u8::is_ascii_alphanumeric)
        .count();
    (scheme > 0).then(|| text.get(at - scheme..)).flatten()
}

/// Options of web clients whose value is no address.
fn takes_value(text: &str) -> bool {
    matches!(
        text,
        "-o" | "-O"
            | "-H"
            | "-d"
            | "-X"
            | "-A"
            | "-e"
            | "-u"
            | "-b"
            | "-c"
            | "-F"
            | "-T"
            | "-K"
            | "-w"
            | "-m"
            | "-P"
            | "--output"
            | "--header"
            | "--data"
            | "--request"
            | "--user-agent"
            | "--user"
            | "--cookie"
            | "--form"
    )
}
