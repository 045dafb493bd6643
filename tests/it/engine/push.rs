//! Git over the network through the running daemon: real pushes and clones, to git's own server on loopback.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use serde_json::{Value, json};
use tempfile::TempDir;
use tidegate_testkit::Reply;

use crate::support::{Chat, Daemon, Setup};

/// Repositories behind `git http-backend`, as any web server would serve them.
struct GitServer {
    folder: TempDir,
    port: u16,
    /// How long each answer waits, in milliseconds.
    delay_ms: Arc<AtomicU64>,
}

impl GitServer {
    fn start(repositories: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        for name in repositories {
            let path = folder.path().join(name);
            git(folder.path(), &["init", "-q", "--bare", "-b", "main", name]);
            git(&path, &["config", "http.receivepack", "true"]);
        }
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let (root, delay_ms) = (folder.path().to_owned(), Arc::new(AtomicU64::new(0)));
        let delay = Arc::clone(&delay_ms);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (root, delay) = (root.clone(), Arc::clone(&delay));
                std::thread::spawn(move || answer(stream, &root, &delay));
            }
        });
        Self {
            folder,
            port,
            delay_ms,
        }
    }

    fn host(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    fn url(&self, name: &str) -> String {
        format!("http://{}/{name}", self.host())
    }

    /// The newest commit's message; empty where nothing was pushed.
    fn head(&self, name: &str) -> String {
        let output = command(
            &self.folder.path().join(name),
            &["log", "-1", "--format=%s", "main"],
        )
        .output()
        .unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }
}

/// One request, handed to git's own program by the Common Gateway Interface (RFC 3875).
fn answer(mut stream: TcpStream, root: &Path, delay_ms: &AtomicU64) {
    let mut head = Vec::new();
    let mut byte = [0];
    while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
        head.extend_from_slice(&byte);
    }
    let head = String::from_utf8_lossy(&head).into_owned();
    let header = |name: &str| {
        head.lines()
            .filter_map(|line| line.split_once(':'))
            .find(|(known, _)| known.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.trim().to_owned())
            .unwrap_or_default()
    };
    let mut words = head.split(' ');
    let (method, target) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut body = vec![0; header("content-length").parse().unwrap_or(0)];
    if stream.read_exact(&mut body).is_err() {
        return;
    }
    std::thread::sleep(Duration::from_millis(delay_ms.load(Ordering::SeqCst)));
    let mut backend = command(root, &["http-backend"]);
    backend
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", query)
        .env("CONTENT_TYPE", header("content-type"))
        .env("CONTENT_LENGTH", body.len().to_string())
        .env("HTTP_CONTENT_ENCODING", header("content-encoding"))
        .env("GIT_PROTOCOL", header("git-protocol"))
        .env("REMOTE_ADDR", "127.0.0.1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = backend.spawn().unwrap();
    drop(child.stdin.take().unwrap().write_all(&body));
    let said = child.wait_with_output().unwrap().stdout;
    let end = said
        .windows(4)
        .position(|window| window == b"\r\n\r\n")
        .unwrap_or(0);
    let fields = String::from_utf8_lossy(&said[..end]).into_owned();
    let status = fields
        .lines()
        .find_map(|line| line.strip_prefix("Status: "))
        .unwrap_or("200 OK");
    let answer = format!("HTTP/1.1 {status}\r\n{fields}\r\nConnection: close\r\n\r\n");
    drop(stream.write_all(answer.as_bytes()));
    drop(stream.write_all(said.get(end + 4..).unwrap_or_default()));
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test is the other side of the connection"
)]
fn command(folder: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new("git");
    command
        .args(arguments)
        .current_dir(folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    command
}

fn git(folder: &Path, arguments: &[&str]) {
    let output = command(folder, arguments).output().unwrap();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}

/// A daemon that may reach the server, with a repository in its knowledge bank whose remote is `url`.
async fn with_repository(server: &GitServer, url: &str, config: &str) -> (Daemon, PathBuf) {
    let daemon = Setup::default()
        .config(&format!(
            "[gate]\nssrf_allow_hosts = [\"{}\"]\n{config}",
            server.host()
        ))
        .start()
        .await;
    let folder = daemon.path("knowledge-bank/project");
    fs::create_dir_all(&folder).unwrap();
    git(&folder, &["init", "-q", "-b", "main"]);
    git(&folder, &["config", "user.name", "one"]);
    git(&folder, &["config", "user.email", "one@example.org"]);
    git(&folder, &["remote", "add", "origin", url]);
    git(&folder, &["commit", "-q", "--allow-empty", "-m", "First"]);
    (daemon, folder)
}

async fn turn(daemon: &Daemon, key: &str, tool: &str, arguments: Value) -> String {
    daemon.upstream.push(Reply::text("").call("g", tool, arguments));
    daemon.upstream.push(Reply::text("done"));
    Chat::new(daemon, "push it please")
        .key(key)
        .send()
        .await
        .content();
    let chats = daemon.upstream.chats();
    let messages = chats.last().unwrap()["messages"].as_array().unwrap().clone();
    let result = messages
        .iter()
        .rev()
        .find(|message| message["role"] == "tool")
        .unwrap();
    result["content"].as_str().unwrap().to_owned()
}

async fn push(daemon: &Daemon, key: &str) -> String {
    let arguments = json!({"folder": "project", "remote": "origin", "branch": "main"});
    turn(daemon, key, "git_push", arguments).await
}

async fn pending(daemon: &Daemon) -> Vec<Value> {
    let (status, list) = daemon.get("/v1/approvals?status=pending").await;
    assert_eq!(status, 200, "{list}");
    list["data"].as_array().unwrap().clone()
}

async fn approve(daemon: &Daemon, approval: &Value) {
    let path = format!("/v1/approvals/{}/decision", approval["id"].as_str().unwrap());
    let (status, answer) = daemon.admin("POST", &path, json!({"decision": "approve"})).await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn an_approved_push_goes_to_the_address_that_was_asked_about_and_once() {
    let server = GitServer::start(&["one.git", "two.git"]);
    let (daemon, folder) = with_repository(&server, &server.url("one.git"), "").await;
    // It asks in every mode.
    let key = daemon.writer_key().await;
    let asked = push(&daemon, &key).await;
    assert!(asked.contains("needs_approval"), "{asked}");
    let first = pending(&daemon).await.remove(0);
    assert!(
        first["summary"]
            .as_str()
            .unwrap()
            .contains(&server.url("one.git")),
        "{first}"
    );
    assert_eq!(server.head("one.git"), "");

    approve(&daemon, &first).await;
    let pushed = push(&daemon, &key).await;
    assert!(pushed.contains("refs/heads/main"), "{pushed}");
    assert_eq!(server.head("one.git"), "First");

    // It is spent; the next push is asked about, and its approval is for that address alone.
    git(&folder, &["commit", "-q", "--allow-empty", "-m", "Second"]);
    assert!(push(&daemon, &key).await.contains("needs_approval"));
    let second = pending(&daemon).await.remove(0);
    assert_ne!(second["id"], first["id"]);
    approve(&daemon, &second).await;
    git(&folder, &["remote", "set-url", "origin", &server.url("two.git")]);
    assert!(push(&daemon, &key).await.contains("needs_approval"));
    assert_eq!(
        (server.head("one.git").as_str(), server.head("two.git").as_str()),
        ("First", "")
    );

    let third = pending(&daemon).await.remove(0);
    assert!(third["summary"].as_str().unwrap().contains("two.git"), "{third}");
    approve(&daemon, &third).await;
    push(&daemon, &key).await;
    assert_eq!(
        (server.head("one.git").as_str(), server.head("two.git").as_str()),
        ("First", "Second")
    );
}

#[tokio::test]
async fn remotes_that_lead_nowhere_good_are_refused_before_anybody_is_asked() {
    let server = GitServer::start(&["one.git"]);
    let (daemon, folder) = with_repository(&server, &server.url("one.git"), "").await;
    let key = daemon.writer_key().await;
    for (url, word) in [
        ("git@example.org:x.git", "SSH remotes need a key"),
        ("ssh://example.org/x.git", "SSH remotes need a key"),
        ("file:///srv/x.git", "git remote"),
        ("/srv/x.git", "path on this machine"),
        ("ext::sh -c id", "git remote"),
        ("http://127.0.0.1:1/x.git", "127.0.0.1"),
        ("http://169.254.169.254/x.git", "169.254.169.254"),
        ("https://user:word@example.org/x.git", "user name or password"),
    ] {
        git(&folder, &["remote", "set-url", "origin", url]);
        let said = push(&daemon, &key).await;
        assert!(
            said.to_lowercase().contains(&word.to_lowercase()),
            "{url}: {said}"
        );
        assert!(!said.contains("needs_approval"), "{url}: {said}");
    }
    git(&folder, &["remote", "remove", "origin"]);
    let said = push(&daemon, &key).await;
    assert!(said.contains("no remote `origin`"), "{said}");
    assert_eq!(pending(&daemon).await.len(), 0);
}

#[tokio::test]
async fn git_over_the_network_has_a_time_of_its_own() {
    let server = GitServer::start(&["one.git"]);
    let slow = "[sandbox]\nnetwork_timeout_ms = 20000\n[sandbox.limits]\ntimeout_ms = 3000\n";
    let (daemon, folder) = with_repository(&server, &server.url("one.git"), slow).await;
    git(&folder, &["push", "-q", "origin", "main"]);
    let key = daemon.writer_key().await;
    let clone = |name: &str| json!({"url": server.url("one.git"), "folder": name});
    // Longer than any other program may take.
    server.delay_ms.store(3_500, Ordering::SeqCst);
    let said = turn(&daemon, &key, "git_clone", clone("copy")).await;
    assert!(daemon.path("knowledge-bank/copy/.git/HEAD").exists(), "{said}");

    let hasty = "[sandbox]\nnetwork_timeout_ms = 1500\n";
    let (daemon, _) = with_repository(&server, &server.url("one.git"), hasty).await;
    let key = daemon.writer_key().await;
    let said = turn(&daemon, &key, "git_clone", clone("copy")).await;
    assert!(said.contains("1500 ms"), "{said}");
    assert!(!daemon.path("knowledge-bank/copy").exists());
}
