//! A file of JSON lines in which a removed or altered line shows.
//!
//! Every line carries its number and the SHA-256 of the line before it, so that no line inside can be changed,
//! removed, added or moved without breaking the chain behind it. Both ends are held by a file beside it (`.head`)
//! that names the newest line and the oldest that rotation has left: lines cut off at either end show as well. What this cannot show is the work of
//! someone who may write both files and computes the whole chain anew; keep a copy of the head elsewhere for
//! that.
//!
//! Several processes may add lines: each batch is written under a file lock, after reading where the chain
//! stands. A line that a crash tore stays as it is; the next line is chained to it and verification says so.

use std::{
    fs::{File, OpenOptions},
    io::{BufRead, BufReader, Read, Seek, SeekFrom, Write},
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::{Path, PathBuf},
};

use serde_json::{Map, Value};
use sha2::{Digest, Sha256};
use tidegate_gate::hex;

/// The longest line, in bytes, its chain fields included.
const LINE_BYTES_MAX: usize = 256 * 1024;

/// What stands for the line before the first.
const GENESIS: &str = "0000000000000000000000000000000000000000000000000000000000000000";

/// The chain and its bounds.
#[derive(Debug, Clone)]
pub struct Options {
    /// The file; its folder is created when it is missing.
    pub path: PathBuf,
    /// The size at which the file is put aside, in bytes.
    pub rotate_bytes: u64,
    /// How many files that were put aside are kept, `.1` being the newest.
    pub keep: usize,
}

/// Why the chain cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The system refuses.
    #[error("{path}: {source}")]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A line is longer than a line may be.
    #[error("a line is longer than {LINE_BYTES_MAX} bytes")]
    TooLong,
}

/// What verification found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// Lines looked at, in all files.
    pub lines: u64,
    /// The number of the first line that is still kept; above 1 where older files were rotated away.
    pub first_line: u64,
    /// What is wrong, in order; empty where the chain is whole.
    pub faults: Vec<String>,
    /// Lines that a crash tore: kept, chained, and not readable.
    pub torn: u64,
}

/// The most faults a report names.
const FAULTS_MAX: usize = 20;

/// Where a chain stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Tip {
    number: u64,
    hash: String,
}

/// What the file beside the chain holds.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Head {
    tip: Tip,
    /// The number of the oldest line that is kept.
    first: u64,
}

impl Tip {
    fn start() -> Self {
        Self {
            number: 0,
            hash: GENESIS.to_owned(),
        }
    }
}

/// Adds lines, each a JSON object without the fields `n` and `prev`. All are on disk, as far as the system
/// tells, on return; after an error none of those not yet written is.
pub fn append(options: &Options, lines: Vec<Map<String, Value>>) -> Result<(), Error> {
    let at = |source| Error::File {
        path: options.path.clone(),
        source,
    };
    if let Some(folder) = options.path.parent() {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(at)?;
    }
    // The lock stands in a file of its own, so that it outlives a rotation.
    let lock = open(&beside(&options.path, ".lock")).map_err(at)?;
    lock.lock().map_err(at)?;
    let mut file = open(&options.path).map_err(at)?;
    let mut tip = tip(&mut file, &options.path).map_err(at)?;
    let mut first = read_head(&options.path).map_or(1, |head| head.first);
    let mut bytes = file.metadata().map_err(at)?.len();
    let mut batch = Vec::new();
    for mut line in lines {
        line.insert("n".to_owned(), (tip.number + 1).into());
        line.insert("prev".to_owned(), tip.hash.clone().into());
        let mut text = Value::Object(line).to_string().into_bytes();
        if text.len() > LINE_BYTES_MAX {
            return Err(Error::TooLong);
        }
        tip = Tip {
            number: tip.number + 1,
            hash: digest(&text),
        };
        text.push(b'\n');
        let grown = bytes.saturating_add(length(&batch)).saturating_add(length(&text));
        if grown > options.rotate_bytes && bytes + length(&batch) > 0 {
            file.write_all(&batch).map_err(at)?;
            batch.clear();
            rotate(options).map_err(at)?;
            first = oldest(options).unwrap_or(tip.number);
            file = open(&options.path).map_err(at)?;
            bytes = 0;
        }
        batch.extend_from_slice(&text);
    }
    file.write_all(&batch).map_err(at)?;
    write_head(&options.path, &Head { tip, first }).map_err(at)
}

/// Reads every file of the chain, oldest first, and says what does not fit.
pub fn verify(options: &Options) -> Result<Report, Error> {
    let mut report = Report::default();
    let mut tip: Option<Tip> = None;
    let mut seen_head = false;
    let head = read_head(&options.path);
    for path in files(options) {
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(problem) if problem.kind() == std::io::ErrorKind::NotFound => continue,
            Err(source) => return Err(Error::File { path, source }),
        };
        let mut reader = BufReader::new(file);
        let mut position = 0_u64;
        loop {
            let mut line = Vec::new();
            let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX) + 2;
            let count = (&mut reader)
                .take(limit)
                .read_until(b'\n', &mut line)
                .map_err(|source| Error::File {
                    path: path.clone(),
                    source,
                })?;
            if count == 0 {
                break;
            }
            position += 1;
            let line = line.strip_suffix(b"\n").unwrap_or(&line);
            tip = Some(check_line(&mut report, &path, position, line, tip.as_ref()));
            seen_head |= head.as_ref().is_some_and(|head| tip.as_ref() == Some(&head.tip));
        }
    }
    match (&head, &tip) {
        (Some(head), _) if !seen_head => fault(
            &mut report,
            format!(
                "line {} is the newest that was written, and it is gone or altered",
                head.tip.number
            ),
        ),
        (None, Some(_)) => fault(
            &mut report,
            "the file that names the newest line is gone".to_owned(),
        ),
        (Some(head), Some(_)) if report.first_line > head.first => {
            let text = format!(
                "the chain begins at line {}, and was kept from line {}",
                report.first_line, head.first
            );
            fault(&mut report, text);
        }
        (Some(_) | None, _) => {}
    }
    Ok(report)
}

fn check_line(report: &mut Report, path: &Path, position: u64, line: &[u8], before: Option<&Tip>) -> Tip {
    report.lines += 1;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let expected = before.cloned();
    let parsed = serde_json::from_slice::<Map<String, Value>>(line).ok();
    let number = parsed.as_ref().and_then(|fields| fields.get("n")?.as_u64());
    let previous = parsed
        .as_ref()
        .and_then(|fields| fields.get("prev")?.as_str().map(str::to_owned));
    let next = Tip {
        number: number.unwrap_or_else(|| before.map_or(0, |tip| tip.number)),
        hash: digest(line),
    };
    let (Some(number), Some(previous)) = (number, previous) else {
        // A crash cuts the last line of a batch; whoever writes next closes it and goes on behind it.
        report.torn += 1;
        return next;
    };
    match expected {
        None => {
            report.first_line = number;
            if number == 1 && previous != GENESIS {
                fault(
                    report,
                    format!("{name}, line {position}: the first line names one before it"),
                );
            }
        }
        Some(expected) => {
            if previous != expected.hash {
                fault(
                    report,
                    format!("{name}, line {position}: the line before it was altered, removed or added"),
                );
            } else if number != expected.number + 1 {
                fault(
                    report,
                    format!("{name}, line {position}: its number does not follow"),
                );
            }
        }
    }
    next
}

fn fault(report: &mut Report, text: String) {
    if report.faults.len() < FAULTS_MAX {
        report.faults.push(text);
    }
}

/// The files of the chain, oldest first.
fn files(options: &Options) -> Vec<PathBuf> {
    (1..=options.keep)
        .rev()
        .map(|number| beside(&options.path, &format!(".{number}")))
        .chain([options.path.clone()])
        .collect()
}

fn rotate(options: &Options) -> std::io::Result<()> {
    if options.keep == 0 {
        return std::fs::remove_file(&options.path);
    }
    for number in (1..options.keep).rev() {
        let from = beside(&options.path, &format!(".{number}"));
        match std::fs::rename(&from, beside(&options.path, &format!(".{}", number + 1))) {
            Err(problem) if problem.kind() != std::io::ErrorKind::NotFound => return Err(problem),
            Ok(()) | Err(_) => {}
        }
    }
    std::fs::rename(&options.path, beside(&options.path, ".1"))
}

/// Where the chain stands: after the last line of the file, or, in an empty file, where the head says.
/// A torn last line is closed, so that the next one begins on a line of its own.
fn tip(file: &mut File, path: &Path) -> std::io::Result<Tip> {
    let size = file.metadata()?.len();
    if size == 0 {
        return Ok(read_head(path).map_or_else(Tip::start, |head| head.tip));
    }
    let window = size.min(u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX) + 2);
    let from = i64::try_from(window).unwrap_or(i64::MAX);
    file.seek(SeekFrom::End(-from))?;
    let mut tail = Vec::new();
    Read::by_ref(file).take(window).read_to_end(&mut tail)?;
    let whole = if tail.ends_with(b"\n") {
        tail.strip_suffix(b"\n").unwrap_or(&tail)
    } else {
        file.write_all(b"\n")?;
        &tail
    };
    let last = whole.rsplit(|byte| *byte == b'\n').next().unwrap_or(whole);
    let number = serde_json::from_slice::<Map<String, Value>>(last)
        .ok()
        .and_then(|fields| fields.get("n")?.as_u64());
    let number = match number {
        Some(number) => number,
        // Behind a torn line the count goes on from the newest readable one.
        None => whole
            .rsplit(|byte| *byte == b'\n')
            .find_map(|line| {
                serde_json::from_slice::<Map<String, Value>>(line)
                    .ok()?
                    .get("n")?
                    .as_u64()
            })
            .or_else(|| read_head(path).map(|head| head.tip.number))
            .unwrap_or(0),
    };
    Ok(Tip {
        number,
        hash: digest(last),
    })
}

fn read_head(path: &Path) -> Option<Head> {
    let mut text = String::new();
    File::open(beside(path, ".head"))
        .ok()?
        .take(256)
        .read_to_string(&mut text)
        .ok()?;
    let mut fields = text.split_whitespace();
    Some(Head {
        tip: Tip {
            number: fields.next()?.parse().ok()?,
            hash: fields.next()?.to_owned(),
        },
        first: fields.next()?.parse().ok()?,
    })
}

/// The number of the oldest line that is kept.
fn oldest(options: &Options) -> Option<u64> {
    let file = files(options)
        .into_iter()
        .find_map(|path| File::open(path).ok())?;
    let limit = u64::try_from(LINE_BYTES_MAX).unwrap_or(u64::MAX);
    BufReader::new(file.take(limit * 4))
        .split(b'\n')
        .map_while(Result::ok)
        .find_map(|line| {
            serde_json::from_slice::<Map<String, Value>>(&line)
                .ok()?
                .get("n")?
                .as_u64()
        })
}

/// By rename, so that there is always a whole one.
fn write_head(path: &Path, head: &Head) -> std::io::Result<()> {
    let new = beside(path, ".head.new");
    let mut file = OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&new)?;
    writeln!(file, "{} {} {}", head.tip.number, head.tip.hash, head.first)?;
    std::fs::rename(&new, beside(path, ".head"))
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new()
        .read(true)
        .append(true)
        .create(true)
        .mode(0o600)
        .open(path)
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    PathBuf::from(name)
}

fn digest(line: &[u8]) -> String {
    hex(&Sha256::digest(line))
}

fn length(bytes: &[u8]) -> u64 {
    u64::try_from(bytes.len()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
