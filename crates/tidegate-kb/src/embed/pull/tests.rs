use std::{collections::HashMap, sync::Arc};

use tokio::{net::TcpListener, task::JoinSet};

use super::*;

/// A file server at the loopback address: raw answers by path.
async fn server(answers: HashMap<&'static str, Vec<u8>>) -> (String, JoinSet<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/models/m", listener.local_addr().unwrap());
    let answers = Arc::new(answers);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut request = Vec::new();
            let mut buffer = [0; 1024];
            while !request.ends_with(b"\r\n\r\n") {
                let read = socket.read(&mut buffer).await.unwrap();
                request.extend_from_slice(buffer.get(..read).unwrap());
            }
            let request = String::from_utf8(request).unwrap();
            assert!(!request.to_lowercase().contains("authorization"));
            let path = request.split(' ').nth(1).unwrap();
            let missing = b"HTTP/1.1 404 X\r\ncontent-length: 0\r\n\r\n".to_vec();
            socket
                .write_all(answers.get(path).unwrap_or(&missing))
                .await
                .unwrap();
        }
    });
    (url, tasks)
}

fn whole(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

fn elsewhere(location: &str) -> Vec<u8> {
    format!("HTTP/1.1 302 X\r\nconnection: close\r\nlocation: {location}\r\ncontent-length: 0\r\n\r\n")
        .into_bytes()
}

fn pinned(name: &str, body: &[u8]) -> Pinned {
    Pinned {
        name: name.to_owned(),
        bytes: u64::try_from(body.len()).unwrap(),
        sha256: hexadecimal(Sha256::new().chain_update(body)),
    }
}

struct Outcome {
    result: Result<usize, Error>,
    progress: Vec<Progress>,
}

async fn fetch(files: &[Pinned], url: &str, folder: &Path) -> Outcome {
    let options = Options {
        model: "m".to_owned(),
        base_url: url.to_owned(),
        folder: folder.join("models/m"),
    };
    let mut progress = Vec::new();
    let result = pull_files(files, &options, &mut |step| progress.push(step)).await;
    Outcome { result, progress }
}

/// What lies in the model's folder.
fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder.join("models/m"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[tokio::test]
async fn files_are_fetched_once_and_kept_when_they_are_right() {
    let body = vec![7; 300_000];
    let (url, _tasks) = server(HashMap::from([
        ("/models/m/config.json", whole(b"{}")),
        ("/models/m/weights", elsewhere("/far/away")),
        ("/far/away", whole(&body)),
    ]))
    .await;
    let folder = tempfile::tempdir().unwrap();
    let files = [pinned("config.json", b"{}"), pinned("weights", &body)];
    let first = fetch(&files, &format!("{url}/"), folder.path()).await;
    assert_eq!(first.result.unwrap(), 2);
    assert_eq!(first.progress.last(), Some(&files[1].so_far(300_000, false)));
    assert_eq!(names(folder.path()), ["config.json", "weights"]);
    assert_eq!(
        std::fs::read(folder.path().join("models/m/weights")).unwrap(),
        body
    );

    let again = fetch(&files, "http://127.0.0.1:1/", folder.path()).await;
    assert_eq!(again.result.unwrap(), 0);
    assert!(again.progress.iter().all(|step| step.kept));

    // A file that was changed is fetched anew.
    tidegate_io::files::write_private(&folder.path().join("models/m/config.json"), b"[]").unwrap();
    assert_eq!(fetch(&files, &url, folder.path()).await.result.unwrap(), 1);
}

#[tokio::test]
async fn what_is_not_the_pinned_file_leaves_nothing_behind() {
    let cut = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 9\r\n\r\nab".to_vec();
    let open_end = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nab".to_vec();
    for (answer, part) in [
        (whole(b"abd"), "its SHA-256 is"),
        (whole(b"abcd"), "longer than 3 bytes"),
        (open_end, "2 bytes of 3"),
        (cut, "cannot be fetched"),
        (elsewhere("/models/m/weights"), "more than 4 times"),
        (elsewhere("file:///etc/passwd"), "without TLS"),
        (
            b"HTTP/1.1 302 X\r\ncontent-length: 0\r\n\r\n".to_vec(),
            "without a place",
        ),
        (
            b"HTTP/1.1 500 X\r\ncontent-length: 0\r\n\r\n".to_vec(),
            "status 500",
        ),
    ] {
        let (url, _tasks) = server(HashMap::from([("/models/m/weights", answer)])).await;
        let folder = tempfile::tempdir().unwrap();
        let fault = fetch(&[pinned("weights", b"abc")], &url, folder.path())
            .await
            .result
            .unwrap_err();
        assert!(fault.to_string().contains(part), "{fault}");
        assert_eq!(names(folder.path()), [""; 0], "{part}");
    }
}

#[tokio::test]
async fn what_cannot_be_asked_for_is_told() {
    let folder = tempfile::tempdir().unwrap();
    for url in ["ftp://host/x", "nowhere", ""] {
        let fault = fetch(&[], url, folder.path()).await.result.unwrap_err();
        assert!(matches!(&fault, Error::Address { .. }), "{fault}");
    }
    let options = Options {
        model: "other".to_owned(),
        base_url: "http://127.0.0.1:1".to_owned(),
        folder: folder.path().to_owned(),
    };
    let fault = pull(&options, &mut |_| ()).await.unwrap_err();
    assert!(fault.to_string().contains("there is all-MiniLM-L6-v2"), "{fault}");
}

#[test]
fn the_table_pins_whole_models() {
    let models = models().unwrap();
    assert!(models.iter().any(|model| model.name == MODEL));
    for pinned in models.iter().flat_map(|model| &model.files) {
        assert_eq!(pinned.sha256.len(), 64, "{pinned:?}");
        assert!(
            pinned.bytes > 0 && !pinned.name.contains(['/', '\\']),
            "{pinned:?}"
        );
    }
}

#[tokio::test]
async fn what_a_killed_process_left_is_taken_away_and_what_another_one_writes_is_not() {
    let (url, _tasks) = server(HashMap::from([("/models/m/weights", whole(b"abc"))])).await;
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("models/m");
    create_private_dir(&model).unwrap();
    // No process has this number: it is above the kernel's bound (`PID_MAX_LIMIT`, 2^22).
    let living = std::os::unix::process::parent_id();
    for name in ["weights.4194999.part", "notes.4194999.part", "weights.part"]
        .map(str::to_owned)
        .into_iter()
        .chain([format!("weights.{living}.part")])
    {
        tidegate_io::files::write_private(&model.join(name), b"a").unwrap();
    }
    let files = [pinned("weights", b"abc")];
    assert_eq!(fetch(&files, &url, folder.path()).await.result.unwrap(), 1);
    let living = format!("weights.{living}.part");
    let mut left = ["notes.4194999.part", "weights", living.as_str(), "weights.part"];
    left.sort_unstable();
    assert_eq!(names(folder.path()), left);
}

#[test]
fn a_full_disk_is_told_with_a_remedy() {
    let problem = std::io::Error::from(ErrorKind::StorageFull);
    let text = folder(Path::new("/models/m/weights"), problem).to_string();
    assert!(
        text.contains("no room for /models/m/weights") && text.contains("embeddings.folder"),
        "{text}"
    );
}
