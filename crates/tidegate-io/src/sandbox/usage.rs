//! What a run uses right now, counted from outside.
//!
//! Resource limits hold for one process each, and the one on the number of processes does not hold for the
//! superuser at all. So the whole run is counted here as well: every process that descends from its leader or
//! is in its group. Inside a process namespace orphans fall to the first process of the namespace, which
//! descends from the leader; outside of one the group cannot be left. Nothing gets out of sight.

use std::{collections::BTreeSet, fs};

/// How many processes of the machine are looked at.
const PROCESSES_MAX: usize = 65_536;

/// What a run uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Usage {
    /// Processes and threads.
    pub(super) processes: u64,
    /// Memory that is in use and not read from a file, in bytes.
    pub(super) memory_bytes: u64,
}

/// All processes and threads of the machine (proc_loadavg(5), the number behind the slash); 0 where it does not
/// say.
pub(super) fn tasks() -> u64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let number = text
        .split_ascii_whitespace()
        .nth(3)
        .and_then(|field| field.split_once('/'));
    number.and_then(|(_, total)| total.parse().ok()).unwrap_or(0)
}

struct Entry {
    process: i32,
    parent: i32,
    group: i32,
    threads: u64,
}

/// Counts the run of a leader.
pub(super) fn sample(leader: i32) -> Usage {
    let mut left: Vec<Entry> = fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .take(PROCESSES_MAX)
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter_map(|process: i32| {
            parse(
                process,
                &fs::read_to_string(format!("/proc/{process}/stat")).ok()?,
            )
        })
        .collect();
    let mut members = BTreeSet::from([leader]);
    let mut usage = Usage::default();
    // Each round adds one generation; a round that adds none is the last.
    loop {
        let (found, others): (Vec<_>, Vec<_>) = left.into_iter().partition(|entry| {
            entry.process == leader || entry.group == leader || members.contains(&entry.parent)
        });
        left = others;
        if found.is_empty() {
            return usage;
        }
        for entry in found {
            members.insert(entry.process);
            usage.processes = usage.processes.saturating_add(entry.threads);
            usage.memory_bytes = usage.memory_bytes.saturating_add(memory_bytes(entry.process));
        }
    }
}

/// Reads a line of `/proc/N/stat` (proc_pid_stat(5)). The name in it may hold anything, brackets too.
fn parse(process: i32, line: &str) -> Option<Entry> {
    let (_, rest) = line.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(1);
    let parent = fields.next()?.parse().ok()?;
    let group = fields.next()?.parse().ok()?;
    // From field 6 (the session) to field 20 (the threads).
    let threads = fields.nth(14)?.parse().ok()?;
    Some(Entry {
        process,
        parent,
        group,
        threads,
    })
}

fn memory_bytes(process: i32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    status
        .lines()
        .filter_map(|line| {
            let rest = line
                .strip_prefix("RssAnon:")
                .or_else(|| line.strip_prefix("RssShmem:"))?;
            rest.trim().strip_suffix(" kB")?.parse::<u64>().ok()
        })
        .fold(0, |sum, kilobytes| {
            sum.saturating_add(kilobytes.saturating_mul(1024))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_read_whatever_the_name_holds() {
        let line = "7 (a) (b) x) S 3 5 4 0 -1 0 1 2 3 4 5 6 7 8 20 0 9 0 1 2 3";
        let entry = parse(7, line).expect("an entry");
        assert_eq!(
            (entry.process, entry.parent, entry.group, entry.threads),
            (7, 3, 5, 9)
        );
        assert!(parse(7, "7 (a").is_none() && parse(7, "7 (a) S 1").is_none());
    }

    #[test]
    fn counts_itself() {
        let own = i32::try_from(std::process::id()).expect("an id");
        let usage = sample(own);
        assert!(usage.processes >= 1 && usage.memory_bytes > 0, "{usage:?}");
        assert!(tasks() >= usage.processes);
    }
}
