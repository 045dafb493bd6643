//! Fetches a pinned model from an address of the operator's into a folder.
//!
//! Every file has a length and a SHA-256 in `pull.toml`. What comes is written beside its place under a temporary name
//! and moved there when it is right; anything else is taken away again, so a folder never holds half a file under a
//! file's name. A file that is there and right is not fetched again.

#[cfg(test)]
mod tests;

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use tidegate_io::{
    files::create_private_dir,
    http::{OperatorClient, Response},
};
use tokio::{
    fs::{File, OpenOptions},
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    time::timeout,
};
use url::Url;

static TABLE: &str = include_str!("pull.toml");

/// The model that is fetched unless another is named.
pub const MODEL: &str = "all-MiniLM-L6-v2";
/// How often an answer may point elsewhere: a model hub sends its readers on to where the bytes lie.
const REDIRECTS_MAX: usize = 4;
/// How long the server may be silent, in milliseconds, before the first byte or between two pieces.
pub const SILENCE_MS: u64 = 30_000;
/// How many bytes are read from a file at once.
const PIECE_BYTES: usize = 1 << 16;

/// What to fetch, from where, and to where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// The model, by its name in the table.
    pub model: String,
    /// The address of the folder that holds the files. There is no default: whom to ask is the operator's choice.
    pub base_url: String,
    /// The folder that is to hold the model; made if it is not there.
    pub folder: PathBuf,
}

/// A model that can be fetched.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Model {
    /// Its name.
    pub name: String,
    /// Its licence, and whose it is.
    pub licence: String,
    /// Its files.
    #[serde(rename = "file")]
    pub files: Vec<Pinned>,
}

/// A file, pinned.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pinned {
    /// Its name, at the address and in the folder.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// Its SHA-256 in lower-case hexadecimal.
    pub sha256: String,
}

/// How far it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// The file.
    pub file: String,
    /// How much of it is here.
    pub bytes: u64,
    /// How much there is.
    pub bytes_total: u64,
    /// Whether it was there already.
    pub kept: bool,
}

/// Why a model was not fetched.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The table has no such model.
    #[error("there is no pinned model `{name}`; there is {known}")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The table cannot be read: the program was built from a broken tree.
    #[error("the table of pinned models cannot be read: {0}")]
    Table(String),
    /// The address is none.
    #[error("`{address}` is no address to fetch from ({problem}); give one like https://host/path")]
    Address {
        /// What was given.
        address: String,
        /// Why not.
        problem: String,
    },
    /// The server did not give the file.
    #[error("`{file}` cannot be fetched: {problem}")]
    Fetch {
        /// Which.
        file: String,
        /// Why.
        problem: String,
    },
    /// What came is not the pinned file.
    #[error("what came for `{file}` is not the pinned file: {problem}; nothing of it was kept")]
    Mismatch {
        /// Which.
        file: String,
        /// How it differs.
        problem: String,
    },
    /// The disk is full.
    #[error(
        "there is no room for {path}: make some, or set `embeddings.folder` to another disk; nothing of it was kept"
    )]
    Full {
        /// Where.
        path: String,
    },
    /// The folder cannot be written.
    #[error("{path}: {problem}")]
    Folder {
        /// Where.
        path: String,
        /// Why.
        problem: std::io::Error,
    },
}

/// The models that can be fetched.
pub fn models() -> Result<Vec<Model>, Error> {
    #[derive(Deserialize)]
    struct Table {
        model: Vec<Model>,
    }
    let table: Table = toml::from_str(TABLE).map_err(|problem| Error::Table(problem.to_string()))?;
    Ok(table.model)
}

/// Fetches a model. Returns how many files were fetched; those that were there already are not counted.
pub async fn pull(options: &Options, progress: &mut dyn FnMut(Progress)) -> Result<usize, Error> {
    let models = models()?;
    let known = models
        .iter()
        .map(|model| model.name.as_str())
        .collect::<Vec<_>>()
        .join(", ");
    let model = models
        .iter()
        .find(|model| model.name == options.model)
        .ok_or_else(|| Error::Unknown {
            name: options.model.clone(),
            known,
        })?;
    pull_files(&model.files, options, progress).await
}

async fn pull_files(
    files: &[Pinned],
    options: &Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<usize, Error> {
    let base = address(&options.base_url)?;
    let client =
        OperatorClient::new(&tidegate_io::http::Options::default()).map_err(|problem| Error::Fetch {
            file: options.model.clone(),
            problem: problem.to_string(),
        })?;
    create_private_dir(&options.folder).map_err(|problem| folder(&options.folder, problem))?;
    sweep(&options.folder, files).await;
    let mut fetched = 0;
    for pinned in files {
        let path = options.folder.join(&pinned.name);
        if is_there(&path, pinned).await? {
            progress(pinned.so_far(pinned.bytes, true));
            continue;
        }
        let from = base.join(&pinned.name).map_err(|problem| Error::Address {
            address: options.base_url.clone(),
            problem: problem.to_string(),
        })?;
        let response = open(&client, from, pinned).await?;
        keep(response, &path, pinned, progress).await?;
        fetched += 1;
    }
    Ok(fetched)
}

impl Pinned {
    fn so_far(&self, bytes: u64, kept: bool) -> Progress {
        Progress {
            file: self.name.clone(),
            bytes,
            bytes_total: self.bytes,
            kept,
        }
    }

    fn fetch(&self, problem: &dyn std::fmt::Display) -> Error {
        Error::Fetch {
            file: self.name.clone(),
            problem: problem.to_string(),
        }
    }

    fn mismatch(&self, problem: String) -> Error {
        Error::Mismatch {
            file: self.name.clone(),
            problem,
        }
    }
}

/// The address of the folder, to which names can be joined.
fn address(base_url: &str) -> Result<Url, Error> {
    let fault = |problem: String| Error::Address {
        address: base_url.to_owned(),
        problem,
    };
    let url = Url::parse(&format!("{}/", base_url.trim_end_matches('/')));
    let url = url.map_err(|problem| fault(problem.to_string()))?;
    match url.scheme() {
        "http" | "https" => Ok(url),
        other => Err(fault(format!("{other} is not HTTP"))),
    }
}

/// Follows the file to where it lies. No credentials are sent, and what comes is checked, so this may lead anywhere
/// the operator's own address points; but not from TLS to plain text.
async fn open(client: &OperatorClient, mut from: Url, pinned: &Pinned) -> Result<Response, Error> {
    for _ in 0..=REDIRECTS_MAX {
        let response = timed(client.get(from.as_str()).send(), pinned).await?;
        match response.status() {
            200 => return Ok(response),
            status @ (301 | 302 | 303 | 307 | 308) => {
                let target = response
                    .header("location")
                    .and_then(|location| from.join(location).ok())
                    .ok_or_else(|| pinned.fetch(&format!("status {status} without a place to go")))?;
                let plain = from.scheme() == "https" && target.scheme() != "https";
                if plain || !matches!(target.scheme(), "http" | "https") {
                    return Err(pinned.fetch(&"the server points to an address without TLS"));
                }
                from = target;
            }
            status => {
                return Err(pinned.fetch(&format!("status {status} at {}", from.host_str().unwrap_or("?"))));
            }
        }
    }
    Err(pinned.fetch(&format!(
        "the server points elsewhere more than {REDIRECTS_MAX} times"
    )))
}

async fn timed<T>(
    step: impl Future<Output = Result<T, tidegate_io::http::Error>>,
    pinned: &Pinned,
) -> Result<T, Error> {
    match timeout(Duration::from_millis(SILENCE_MS), step).await {
        Ok(outcome) => outcome.map_err(|problem| pinned.fetch(&problem)),
        Err(_) => Err(pinned.fetch(&format!("the server was silent for {SILENCE_MS} ms"))),
    }
}

/// Writes what comes to a temporary file and moves it to its place when it is what was pinned.
async fn keep(
    mut response: Response,
    path: &Path,
    pinned: &Pinned,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), Error> {
    let temporary = Temporary::beside(path);
    let fault = |problem| folder(path, problem);
    let mut file = temporary.create().await.map_err(fault)?;
    let mut digest = Sha256::new();
    let mut bytes = 0;
    progress(pinned.so_far(0, false));
    while let Some(piece) = timed(response.chunk(), pinned).await? {
        bytes += u64::try_from(piece.len()).unwrap_or(u64::MAX);
        if bytes > pinned.bytes {
            return Err(pinned.mismatch(format!("it is longer than {} bytes", pinned.bytes)));
        }
        digest.update(&piece);
        file.write_all(&piece).await.map_err(fault)?;
        progress(pinned.so_far(bytes, false));
    }
    if bytes < pinned.bytes {
        return Err(pinned.mismatch(format!("it has {bytes} bytes of {}", pinned.bytes)));
    }
    let digest = hexadecimal(digest);
    if digest != pinned.sha256 {
        return Err(pinned.mismatch(format!("its SHA-256 is {digest}")));
    }
    file.sync_all().await.map_err(fault)?;
    temporary.settle(path).map_err(fault)
}

/// Whether the pinned file is in its place.
async fn is_there(path: &Path, pinned: &Pinned) -> Result<bool, Error> {
    let fault = |problem| folder(path, problem);
    let mut file = match File::open(path).await {
        Ok(file) => file,
        Err(problem) if problem.kind() == ErrorKind::NotFound => return Ok(false),
        Err(problem) => return Err(fault(problem)),
    };
    if file.metadata().await.map_err(fault)?.len() != pinned.bytes {
        return Ok(false);
    }
    let mut digest = Sha256::new();
    let mut piece = vec![0; PIECE_BYTES];
    loop {
        match file.read(&mut piece).await.map_err(fault)? {
            0 => return Ok(hexadecimal(digest) == pinned.sha256),
            read => digest.update(piece.get(..read).unwrap_or_default()),
        }
    }
}

fn hexadecimal(digest: Sha256) -> String {
    digest
        .finalize()
        .iter()
        .fold(String::with_capacity(64), |text, byte| {
            format!("{text}{byte:02x}")
        })
}

fn folder(path: &Path, problem: std::io::Error) -> Error {
    let path = path.display().to_string();
    if matches!(
        problem.kind(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded | ErrorKind::FileTooLarge
    ) {
        return Error::Full { path };
    }
    Error::Folder { path, problem }
}

/// Takes away what processes left that were killed while they fetched. What cannot be removed is in nobody's way.
async fn sweep(folder: &Path, files: &[Pinned]) {
    let Ok(mut entries) = tokio::fs::read_dir(folder).await else {
        return;
    };
    while let Ok(Some(entry)) = entries.next_entry().await {
        let name = entry.file_name();
        let is_left = name.to_str().and_then(writer).is_some_and(|(file, process)| {
            let is_ours = files.iter().any(|pinned| pinned.name == file);
            is_ours && !Path::new("/proc").join(process.to_string()).exists()
        });
        if is_left {
            drop(tokio::fs::remove_file(entry.path()).await);
        }
    }
}

/// The file that a temporary name stands for, and the process that writes it.
fn writer(name: &str) -> Option<(&str, u32)> {
    let (file, process) = name.strip_suffix(".part")?.rsplit_once('.')?;
    Some((file, process.parse().ok()?))
}

/// A file that goes away unless it is moved to its place.
struct Temporary(PathBuf);

impl Temporary {
    fn beside(path: &Path) -> Self {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}.part", std::process::id()));
        Self(path.with_file_name(name))
    }

    /// Makes the file anew: one that is left of a run that was killed, or a link somebody put there, is taken away.
    async fn create(&self) -> std::io::Result<File> {
        match tokio::fs::remove_file(&self.0).await {
            Err(problem) if problem.kind() != ErrorKind::NotFound => return Err(problem),
            Ok(()) | Err(_) => {}
        }
        let mut options = OpenOptions::new();
        options
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&self.0)
            .await
    }

    fn settle(self, path: &Path) -> std::io::Result<()> {
        std::fs::rename(&self.0, path)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // After the move there is nothing to take away.
        drop(std::fs::remove_file(&self.0));
    }
}
