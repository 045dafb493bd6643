//! A daemon in a world full of things that must stay as they are, and must stay unseen.

use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    fs,
    io::{Read as _, Write as _},
    net::{TcpListener, TcpStream},
    os::unix::fs::{MetadataExt as _, symlink},
    path::{Path, PathBuf},
    process::Command,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use serde_json::{Value, json};
use sha2::Digest as _;
use tempfile::TempDir;
use tidegate_testkit::Reply;

use crate::support::{Daemon, Setup};

/// One call of the model's: the tool and its arguments.
pub(crate) type Call = (String, Value);

/// A key in the home folder, and the value of a credential in the knowledge bank.
const CANARIES: [&str; 3] = [
    "canary-9c41e07b52aa",
    "canary-5d80ff13e6c2",
    "canary-77b2a9d4103e",
];
/// Ports that attacks name by leaving them out, listened on where they are free.
const USUAL_PORTS: [u16; 2] = [80, 8080];
/// Files of the machine's own user that a shell or a program runs at its start.
const START_FILES: [&str; 10] = [
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".gitconfig",
    ".ssh/authorized_keys",
    ".ssh/config",
    ".config/fish/config.fish",
    ".config/autostart",
];
const READ_TIMEOUT: Duration = Duration::from_millis(200);

/// A listener that nobody may reach. It counts what arrives.
#[derive(Debug)]
pub(crate) struct Sink {
    pub(crate) port: u16,
    bytes: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    /// What it answers.
    answer: Arc<Mutex<String>>,
}

impl Sink {
    fn listen(port: u16) -> Option<Self> {
        let listener = TcpListener::bind(("127.0.0.1", port)).ok()?;
        let port = listener.local_addr().ok()?.port();
        let sink = Self {
            port,
            bytes: Arc::default(),
            stop: Arc::default(),
            answer: Arc::new(Mutex::new(
                "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n".to_owned(),
            )),
        };
        let (bytes, stop, answer) = (
            Arc::clone(&sink.bytes),
            Arc::clone(&sink.stop),
            Arc::clone(&sink.answer),
        );
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if stop.load(Ordering::SeqCst) {
                    return;
                }
                // A connection without a byte is an effect, too.
                bytes.fetch_add(1 + received(stream, &answer.lock().unwrap()), Ordering::SeqCst);
            }
        });
        Some(sink)
    }

    /// Until something has arrived.
    pub(crate) fn wait_for_one(&self) {
        while self.count() == 0 {
            thread::yield_now();
        }
    }

    fn count(&self) -> u64 {
        self.bytes.load(Ordering::SeqCst)
    }
}

fn received(mut stream: TcpStream, answer: &str) -> u64 {
    stream.set_read_timeout(Some(READ_TIMEOUT)).unwrap();
    let mut buffer = [0; 4096];
    let read = stream.read(&mut buffer).unwrap_or_default();
    drop(stream.write_all(answer.as_bytes()));
    read as u64
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        // Wakes the thread so that it sees it.
        drop(TcpStream::connect(("127.0.0.1", self.port)));
    }
}

/// What the scripted model says next, and what it saw.
#[derive(Debug, Default)]
struct Model {
    replies: VecDeque<Reply>,
    leaks: Vec<String>,
    results: Vec<String>,
    secrets: Vec<String>,
}

impl Model {
    fn next(&mut self, body: &Value) -> Reply {
        let messages = body["messages"].as_array().into_iter().flatten();
        self.results = messages
            .filter(|message| message["role"] == "tool")
            .map(|message| message["content"].as_str().unwrap_or_default().to_owned())
            .collect();
        for secret in &self.secrets {
            let shown = self.results.iter().filter(|text| text.contains(secret.as_str()));
            self.leaks.extend(shown.map(|text| {
                let end = text.char_indices().nth(200).map_or(text.len(), |(end, _)| end);
                format!("a secret reached the model: {}", &text[..end])
            }));
        }
        self.replies.pop_front().unwrap_or_else(|| Reply::text("done"))
    }
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) daemon: Daemon,
    /// A home, a folder and a remote beside the knowledge bank.
    pub(crate) outside: TempDir,
    /// A host that the operator has opened; it redirects to the first of `sinks`.
    pub(crate) opened: Sink,
    pub(crate) sinks: Vec<Sink>,
    model: Arc<Mutex<Model>>,
    watched: BTreeSet<PathBuf>,
    before: BTreeMap<PathBuf, String>,
    bytes_before: u64,
}

impl World {
    pub(crate) async fn start() -> Self {
        let opened = Sink::listen(0).unwrap();
        let sinks: Vec<Sink> = [0]
            .into_iter()
            .chain(USUAL_PORTS)
            .filter_map(Sink::listen)
            .collect();
        *opened.answer.lock().unwrap() = format!(
            "HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:{}/stolen\r\ncontent-length: 0\r\n\r\n",
            sinks[0].port
        );
        // Bounds that keep the run short; none of them stands between an attack and its effect.
        let config = format!(
            "[logs]\nconsole = \"off\"\n\
             [engine]\ndenials_max = 0\ncalls_per_round_max = 256\ncalls_per_turn_max = 4096\nturn_tokens_max = 0\n\
             result_chars_max = 100000\n\
             [gate]\nssrf_allow_hosts = [\"127.0.0.1:{}\"]\n\
             [sandbox.limits]\ntimeout_ms = 1000\ncpu_s = 1\nmemory_bytes = 536870912\nprocesses = 64\n\
             file_bytes = 1048576\ntemporary_bytes = 16777216\n",
            opened.port
        );
        let daemon = Setup::default()
            .config(&config)
            .file("skills/poem/SKILL.md", SKILL)
            .start()
            .await;
        let model = Arc::new(Mutex::new(Model {
            secrets: CANARIES
                .iter()
                .map(|&canary| canary.to_owned())
                .chain([daemon.key.clone()])
                .collect(),
            ..Model::default()
        }));
        let shared = Arc::clone(&model);
        daemon.upstream.record(false);
        daemon
            .upstream
            .respond_with(move |body| shared.lock().unwrap().next(body));
        let mut world = Self {
            daemon,
            outside: tempfile::tempdir().unwrap(),
            opened,
            sinks,
            model,
            watched: BTreeSet::new(),
            before: BTreeMap::new(),
            bytes_before: 0,
        };
        world.furnish();
        world.reset();
        world.before = world.snapshot();
        world
    }

    /// What lies beside the knowledge bank.
    fn furnish(&self) {
        for (path, text) in [
            ("home/.ssh/id_rsa", CANARIES[0]),
            ("home/.aws/credentials", CANARIES[0]),
            ("home/.bashrc", "# start\n"),
            ("home/.profile", "# start\n"),
            ("home/.zshrc", "# start\n"),
            ("home/.gitconfig", "# start\n"),
            ("other/other.txt", CANARIES[1]),
        ] {
            put(&self.outside.path().join(path), text.as_bytes());
        }
        let remote = self.beside("remote.git");
        git(
            self.outside.path(),
            &["init", "-q", "--bare", "-b", "main", &remote],
        );
    }

    /// A path beside the knowledge bank.
    pub(crate) fn beside(&self, path: &str) -> String {
        self.outside
            .path()
            .canonicalize()
            .unwrap()
            .join(path)
            .display()
            .to_string()
    }

    /// A path in the knowledge bank.
    pub(crate) fn inside(&self, path: &str) -> String {
        self.bank().join(path).display().to_string()
    }

    fn bank(&self) -> PathBuf {
        self.daemon.path("knowledge-bank").canonicalize().unwrap()
    }

    /// Makes the knowledge bank anew: the files of the corpora, and a repository with a remote.
    pub(crate) fn reset(&self) {
        let bank = self.bank();
        for entry in fs::read_dir(&bank).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.is_symlink() {
                fs::remove_dir_all(&path).unwrap();
            } else {
                fs::remove_file(&path).unwrap();
            }
        }
        let fixture: Value = serde_json::from_str(include_str!("../../../corpora/fixture.json")).unwrap();
        for (path, content) in fixture["files"].as_object().unwrap() {
            let Some(below) = path.strip_prefix("/w/proj/") else {
                continue;
            };
            let path = bank.join(below);
            if below.is_empty() || below.ends_with('/') {
                fs::create_dir_all(path).unwrap();
            } else {
                put(&path, content.as_str().unwrap_or("\u{1}").as_bytes());
            }
        }
        put(&bank.join(".env"), CANARIES[2].as_bytes());
        for folder in ["scratch", "secret"] {
            fs::create_dir_all(bank.join(folder)).unwrap();
        }
        let remote = self.beside("remote.git");
        let commit = [
            "-c",
            "user.name=t",
            "-c",
            "user.email=t@example.org",
            "commit",
            "-q",
            "-m",
            "first",
        ];
        git(&bank, &["init", "-q", "-b", "main"]);
        git(&bank, &["add", "README.md", "notes.txt"]);
        git(&bank, &commit);
        git(&bank, &["remote", "add", "origin", &remote]);
    }

    /// Puts a secret where everybody may read it.
    pub(crate) fn plant(&self, path: &str) -> &'static str {
        put(&self.bank().join(path), CANARIES[0].as_bytes());
        CANARIES[0]
    }

    /// Steps of a corpus line. One that cannot be done leaves the attack without its help.
    pub(crate) fn prepare(&self, setup: &[Value]) {
        for step in setup {
            let path = PathBuf::from(step[1].as_str().unwrap_or_default());
            let text = step[2].as_str().unwrap_or_default();
            if !path.starts_with(self.bank()) {
                continue;
            }
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match step[0].as_str().unwrap_or_default() {
                "file" | "bytes" => put(&path, text.as_bytes()),
                "dir" => fs::create_dir_all(&path).unwrap(),
                "symlink" => drop(symlink(text, &path)),
                "hardlink" => drop(fs::hard_link(text, &path)),
                _ => {}
            }
        }
    }

    /// Looks at these as well, wherever they are.
    pub(crate) fn watch(&mut self, paths: impl Iterator<Item = PathBuf>) {
        let home = self.daemon.path("").canonicalize().unwrap();
        self.watched.extend(paths.filter(|path| !path.starts_with(&home)));
        self.before = self.snapshot();
    }

    /// One turn in which the model makes all these calls at once; what the tools said.
    pub(crate) async fn turn(&self, key: &str, calls: Vec<Call>) -> Vec<String> {
        let expected = calls.len();
        let reply = calls
            .into_iter()
            .enumerate()
            .fold(Reply::text(""), |reply, (number, (tool, arguments))| {
                reply.call(format!("c{number}"), tool, arguments)
            });
        self.model.lock().unwrap().replies.push_back(reply);
        let answer = crate::support::Chat::new(&self.daemon, "please go on")
            .key(key)
            .send()
            .await;
        assert_eq!(answer.status, 200, "{}", answer.text);
        let results = std::mem::take(&mut self.model.lock().unwrap().results);
        assert_eq!(results.len(), expected, "every call is answered");
        results
    }

    /// What has happened outside of the knowledge bank since the last look.
    pub(crate) fn effects(&mut self) -> Vec<String> {
        let now = self.snapshot();
        let paths: BTreeSet<&PathBuf> = now.keys().chain(self.before.keys()).collect();
        let mut effects: Vec<String> = paths
            .into_iter()
            .filter(|path| now.get(*path) != self.before.get(*path))
            .map(|path| {
                let state = |files: &BTreeMap<PathBuf, String>| files.get(path).cloned().unwrap_or_default();
                format!(
                    "{}: `{}` became `{}`",
                    path.display(),
                    state(&self.before),
                    state(&now)
                )
            })
            .collect();
        self.before = now;
        let bytes: u64 = self.sinks.iter().map(Sink::count).sum();
        if bytes > self.bytes_before {
            effects.push(format!("{} bytes reached a listener", bytes - self.bytes_before));
        }
        self.bytes_before = bytes;
        effects.append(&mut self.model.lock().unwrap().leaks);
        effects
    }

    /// Everything that must stay as it is.
    fn snapshot(&self) -> BTreeMap<PathBuf, String> {
        let mut found = BTreeMap::new();
        let own = self.daemon.path("").canonicalize().unwrap();
        let left_out = ["knowledge-bank", "data", "logs"].map(|name| own.join(name));
        walk(&own, &left_out, &mut found);
        walk(self.outside.path(), &[], &mut found);
        walk(Path::new("/etc"), &[], &mut found);
        let home = home_of_this_user();
        for path in START_FILES
            .iter()
            .map(|name| home.join(name))
            .chain(self.watched.iter().cloned())
        {
            // Of a folder that others work in, only its being there counts.
            let state = fs::symlink_metadata(&path).map_or_else(
                |_| "absent".to_owned(),
                |meta| {
                    if meta.is_dir() {
                        "folder".to_owned()
                    } else {
                        state(&path, &meta)
                    }
                },
            );
            found.insert(path, state);
        }
        found
    }
}

#[expect(clippy::disallowed_methods, reason = "the test looks at its own user's files")]
fn home_of_this_user() -> PathBuf {
    std::env::var_os("HOME").map_or_else(|| PathBuf::from("/"), PathBuf::from)
}

fn walk(folder: &Path, left_out: &[PathBuf], found: &mut BTreeMap<PathBuf, String>) {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if left_out.contains(&path) {
                continue;
            }
            let Ok(meta) = fs::symlink_metadata(&path) else {
                continue;
            };
            found.insert(path.clone(), state(&path, &meta));
            if meta.is_dir() {
                folders.push(path);
            }
        }
    }
}

/// A file by its mode, its size and its text, as far as that is small; a link by its target.
fn state(path: &Path, meta: &fs::Metadata) -> String {
    if meta.is_symlink() {
        return format!("link to {}", fs::read_link(path).unwrap_or_default().display());
    }
    if meta.is_dir() {
        return format!("folder {:o}", meta.mode());
    }
    let text = if meta.len() < 1 << 16 && meta.is_file() {
        let bytes = fs::read(path).unwrap_or_default();
        tidegate_gate::hex(&sha2::Sha256::digest(bytes))
    } else {
        meta.mtime().to_string()
    };
    format!("file {:o} {} {text}", meta.mode(), meta.len())
}

const SKILL: &str = "---\nname: poem\ndescription: Writes a poem.\n---\nWrite four lines.\n";

#[expect(clippy::disallowed_methods, reason = "a test sets the scene with plain files")]
fn put(path: &Path, bytes: &[u8]) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, bytes).unwrap();
}

#[expect(
    clippy::disallowed_methods,
    reason = "a test sets the scene with plain programs"
)]
fn git(folder: &Path, arguments: &[&str]) {
    let output = Command::new("git")
        .current_dir(folder)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// A call of a tool.
pub(crate) fn call(tool: &str, arguments: Value) -> Call {
    (tool.to_owned(), arguments)
}

/// A command for the shell.
pub(crate) fn shell(command: &str) -> Call {
    call("execute_shell", json!({"command": command}))
}
