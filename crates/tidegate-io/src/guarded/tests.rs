use std::{
    io::Write as _,
    net::{IpAddr, SocketAddr},
    sync::Mutex,
};

use async_trait::async_trait;
use tidegate_gate::guards::outbound::Secrets;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    task::JoinSet,
};

use super::*;

const SECRET: &str = "sk-inv-9fQ2xLm7RtYb4KpZ";

/// A server on loopback that gives these answers in turn, one a connection, and keeps what it was sent.
struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<String>>>,
    _tasks: JoinSet<()>,
}

impl Server {
    async fn start(answers: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&requests);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            for answer in answers {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = Vec::new();
                let mut buffer = [0; 4096];
                while !is_whole(&request) {
                    let read = stream.read(&mut buffer).await.unwrap();
                    if read == 0 {
                        break;
                    }
                    request.extend_from_slice(&buffer[..read]);
                }
                seen.lock().unwrap().push(String::from_utf8(request).unwrap());
                // The client may have hung up on what is too long.
                drop(stream.write_all(&answer).await);
            }
            // Whatever comes next is taken and never answered.
            let mut held = Vec::new();
            while let Ok(accepted) = listener.accept().await {
                held.push(accepted);
            }
        });
        Self {
            address,
            requests,
            _tasks: tasks,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request);
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head
        .lines()
        .find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok())
        .unwrap_or(0_usize);
    body.len() >= length
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
    bytes.extend_from_slice(body);
    bytes
}

fn ok(body: &str) -> Vec<u8> {
    answer("200 OK\r\ncontent-type: text/plain", body.as_bytes())
}

fn policy(adjust: impl FnOnce(&mut address::Options)) -> Policy {
    let mut options = address::Options::default();
    adjust(&mut options);
    Policy {
        address: address::Policy::compile(&options).unwrap(),
        secrets: Secrets::compile([SECRET]).unwrap(),
    }
}

/// A client for which loopback is open.
fn client() -> Client {
    let open =
        policy(|options| options.ssrf_allow_hosts = vec!["127.0.0.1".to_owned(), "localhost".to_owned()]);
    Client::new(Options::default(), open).unwrap()
}

async fn get(client: &Client, url: &str) -> Result<Response, Error> {
    client.get(client.check(url).unwrap()).send().await
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

#[tokio::test]
async fn a_listed_server_answers_and_an_unlisted_one_is_not_dialled() {
    let server = Server::start(vec![ok("hello"), ok("again")]).await;
    let response = get(&client(), &server.url("/a?b=c#d")).await.unwrap();
    assert_eq!(
        (response.status, response.body.as_slice()),
        (200, b"hello".as_slice())
    );
    let by_name = format!("http://localhost:{}/", server.address.port());
    assert_eq!(get(&client(), &by_name).await.unwrap().body, b"again");
    let requests = server.requests();
    assert!(
        requests[0].starts_with("GET /a?b=c HTTP/1.1\r\n"),
        "{}",
        requests[0]
    );
    assert!(
        requests[0].contains(&format!("host: {}\r\n", server.address)),
        "{}",
        requests[0]
    );

    let shut = Client::new(Options::default(), policy(|_| {})).unwrap();
    assert_eq!(
        shut.check(&server.url("/")).unwrap_err().code(),
        "address_not_public"
    );
    // A policy in force for one is in force for its clones, at once.
    let open = client();
    let clone = open.clone();
    open.set_policy(policy(|_| {}));
    assert!(clone.check(&server.url("/")).is_err());
    assert_eq!(server.requests().len(), 2);
}

#[tokio::test]
async fn our_own_listener_is_never_reached_under_any_address() {
    let server = Server::start(vec![ok("never")]).await;
    let own = SocketAddr::new([0, 0, 0, 0].into(), server.address.port());
    let client = Client::new(
        Options::default(),
        policy(|options| {
            options.ssrf_allow_private = true;
            options.own_listeners = vec![own];
        }),
    )
    .unwrap();
    assert_eq!(client.check(&server.url("/")).unwrap_err().code(), "own_listener");
    // An address of another network that is this machine's all the same is known by the connection.
    let peer = Peer {
        address: server.address,
        tls_name: None,
        own_ports: vec![server.address.port()],
    };
    let refused = Tcp::new().unwrap().connect(&peer).await;
    assert!(refused.is_err());
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn a_redirect_leaves_credentials_and_bodies_behind() {
    let second = Server::start(vec![ok("there")]).await;
    let to_second = format!("302 Found\r\nlocation: {}", second.url("/next"));
    let first = Server::start(vec![answer(&to_second, b"")]).await;
    let client = client();
    let request = client
        .get(client.check(&first.url("/")).unwrap())
        .header("Authorization", "Bearer a")
        .header("Cookie", "b=c")
        .header("X-Api-Key", "d")
        .header("Accept-Language", "de");
    assert!(!format!("{request:?}").contains("Bearer"));
    let response = request.send().await.unwrap();
    assert_eq!((response.redirects, response.url), (1, second.url("/next")));
    let head = second.requests()[0].to_lowercase();
    assert!(head.contains("accept-language: de"), "{head}");
    for name in ["authorization", "cookie", "x-api-key"] {
        assert!(!head.contains(name), "{head}");
    }

    // On one origin they stay, and a POST becomes a GET after 303.
    let server = Server::start(vec![answer("303 See Other\r\nlocation: /done", b""), ok("done")]).await;
    let response = client
        .post(client.check(&server.url("/form")).unwrap())
        .header("authorization", "Bearer a")
        .body("application/json", "{}")
        .send()
        .await
        .unwrap();
    assert_eq!(response.body, b"done");
    let requests = server.requests();
    assert!(requests[0].ends_with("\r\n\r\n{}"));
    assert!(requests[1].starts_with("GET /done ") && requests[1].contains("authorization: Bearer a"));
    assert!(!requests[1].contains("content-type"), "{}", requests[1]);

    // A kept body goes to no other origin.
    let third = Server::start(vec![ok("never")]).await;
    let server = Server::start(vec![answer(
        &format!("307 X\r\nlocation: {}", third.url("/")),
        b"",
    )])
    .await;
    let request = client
        .post(client.check(&server.url("/")).unwrap())
        .body("text/plain", "x");
    assert!(matches!(request.send().await, Err(Error::Redirect(_))));
    assert!(third.requests().is_empty());
}

#[tokio::test]
async fn redirects_have_an_end_and_one_target() {
    let client = client();
    let circle: Vec<_> = (0..20).map(|_| answer("302 Found\r\nlocation: /", b"")).collect();
    let server = Server::start(circle).await;
    assert!(matches!(
        get(&client, &server.url("/")).await,
        Err(Error::Redirect(_))
    ));
    assert_eq!(server.requests().len(), REDIRECTS_MAX + 1);
    for head in [
        "302 Found\r\nlocation: /a\r\nlocation: /b",
        "300 Multiple Choices\r\nlocation: /a",
        "305 Use Proxy\r\nlocation: http://127.0.0.1:1/",
        "302 Found\r\nlocation: http://u:p@127.0.0.1/",
        "302 Found\r\nlocation: http://10.0.0.1/",
        "302 Found\r\nlocation: file:///etc/passwd",
    ] {
        let server = Server::start(vec![answer(head, b""), ok("never")]).await;
        assert!(get(&client, &server.url("/")).await.is_err(), "{head}");
        assert_eq!(server.requests().len(), 1, "{head}");
    }
    let server = Server::start(vec![
        b"HTTP/1.1 302 X\r\nlocation: /\xff\r\ncontent-length: 0\r\n\r\n".to_vec(),
    ])
    .await;
    assert!(matches!(
        get(&client, &server.url("/")).await,
        Err(Error::Redirect(_))
    ));
    let server = Server::start(vec![answer("302 Found\r\nlocation: /a", b"moved"), ok("never")]).await;
    let request = client
        .get(client.check(&server.url("/")).unwrap())
        .redirects_max(0);
    assert_eq!(request.send().await.unwrap().status, 302);
    let server = Server::start(vec![answer(
        "200 OK\r\nrefresh: 0;url=http://127.0.0.1:1/",
        b"here",
    )])
    .await;
    assert_eq!(get(&client, &server.url("/")).await.unwrap().body, b"here");
}

#[tokio::test]
async fn a_body_is_unpacked_within_its_bound() {
    let client = client();
    let packed = |kind: &str, bytes: &[u8]| {
        answer(
            &format!("200 OK\r\ncontent-type: text/plain\r\ncontent-encoding: {kind}"),
            bytes,
        )
    };
    let zeros = vec![b'0'; 8 << 20];
    let bomb = gzip(&zeros);
    assert!(bomb.len() < 64 << 10);
    for (bytes, expected) in [
        (packed("gzip", &gzip(b"hello")), Ok((5, false))),
        (packed("GZIP", &bomb), Ok((1000, true))),
        (packed("identity", b"hello"), Ok((5, false))),
        (packed("gzip", b""), Ok((0, false))),
        (packed("gzip", b"no gzip"), Err(Error::Encoding)),
        (packed("gzip", &gzip(b"hello")[..12]), Err(Error::Encoding)),
        (packed("gzip, gzip", &gzip(&bomb)), Err(Error::Encoding)),
        (
            packed("gzip\r\ncontent-encoding: gzip", &gzip(&bomb)),
            Err(Error::Encoding),
        ),
        (packed("br", b"x"), Err(Error::Encoding)),
        (ok(&"a".repeat(5000)), Ok((1000, true))),
        (ok(&"a".repeat(1000)), Ok((1000, false))),
    ] {
        let server = Server::start(vec![bytes]).await;
        let request = client
            .get(client.check(&server.url("/")).unwrap())
            .bytes_max(1000);
        let got = request
            .send()
            .await
            .map(|response| (response.body.len(), response.is_cut));
        assert_eq!(got, expected);
    }
}

#[tokio::test]
async fn only_text_is_read_unless_asked_for() {
    let client = client();
    let image = || answer("200 OK\r\ncontent-type: image/png", &[0x89]);
    let server = Server::start(vec![
        image(),
        image(),
        answer(
            "200 OK\r\ncontent-type: application/problem+json; charset=utf-8",
            b"{}",
        ),
        answer("404 Not Found\r\ncontent-type: image/png", &[0x89]),
    ])
    .await;
    let refused = get(&client, &server.url("/")).await;
    assert!(matches!(refused, Err(Error::ContentType { content_type }) if content_type == "image/png"));
    let request = client
        .get(client.check(&server.url("/")).unwrap())
        .any_content_type();
    assert_eq!(request.send().await.unwrap().body, [0x89]);
    assert_eq!(get(&client, &server.url("/")).await.unwrap().body, b"{}");
    let error = get(&client, &server.url("/")).await.unwrap();
    assert_eq!((error.status, error.body.len()), (404, 0));
}

#[tokio::test]
async fn waits_have_an_end() {
    let server = Server::start(Vec::new()).await;
    let open = policy(|options| options.ssrf_allow_hosts = vec!["127.0.0.1".to_owned()]);
    let options = Options {
        first_byte_timeout_ms: 50,
        ..Options::default()
    };
    let hasty = Client::new(options, open.clone()).unwrap();
    assert_eq!(
        get(&hasty, &server.url("/")).await,
        Err(Error::Timeout("the answer"))
    );
    let client = Client::new(Options::default(), open).unwrap();
    let request = client.get(client.check(&server.url("/")).unwrap()).timeout_ms(50);
    assert_eq!(request.send().await, Err(Error::Timeout("the request")));
    let closed = TcpListener::bind("127.0.0.1:0")
        .await
        .unwrap()
        .local_addr()
        .unwrap();
    assert!(matches!(
        get(&client, &format!("http://{closed}/")).await,
        Err(Error::Connect(_))
    ));
    let half = Server::start(vec![b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhell".to_vec()]).await;
    assert!(matches!(
        get(&client, &half.url("/")).await,
        Err(Error::Broken(_))
    ));
    let speechless = Server::start(vec![b"SSH-2.0-x\r\n".to_vec()]).await;
    assert!(matches!(
        get(&client, &speechless.url("/")).await,
        Err(Error::Broken(_))
    ));
    // No TLS there.
    let secure = format!("https://{}/", half.address);
    let request = client.get(client.check(&secure).unwrap()).timeout_ms(2000);
    assert!(request.send().await.is_err());
}

#[tokio::test]
async fn no_secret_leaves_but_to_the_host_of_its_row() {
    let server = Server::start(vec![ok("a")]).await;
    let client = client();
    let at = |path: &str| client.check(&server.url(path)).unwrap();
    for request in [
        client.get(at(&format!("/?q={SECRET}"))),
        client.get(at("/")).header("x-a", SECRET),
        client.post(at("/")).body("text/plain", SECRET),
    ] {
        let error = request.send().await.unwrap_err();
        assert!(matches!(&error, Error::Outbound(_)), "{error:?}");
        assert!(!format!("{error:?} {error}").contains("9fQ2"));
    }
    assert!(server.requests().is_empty());
    let own = client
        .get(at("/"))
        .header("x-api-key", SECRET)
        .own(vec![SECRET.to_owned()]);
    assert_eq!(own.send().await.unwrap().status, 200);
    for request in [
        client.get(at("/")).header("host", "other.example"),
        client.get(at("/")).header("Transfer-Encoding", "chunked"),
        client.get(at("/")).header("x-a", "a\r\nb: c"),
    ] {
        assert!(matches!(request.send().await, Err(Error::Request(_))));
    }
}

/// Answers with another address at each look-up.
#[derive(Debug)]
struct Rebinding {
    answers: Mutex<Vec<IpAddr>>,
}

#[async_trait]
impl Resolver for Rebinding {
    async fn resolve(&self, _name: &str) -> std::io::Result<Vec<IpAddr>> {
        Ok(self.answers.lock().unwrap().pop().into_iter().collect())
    }
}

/// Keeps the addresses it is asked for and connects to none.
#[derive(Debug, Default)]
struct Recording {
    asked: Mutex<Vec<SocketAddr>>,
}

#[async_trait]
impl Connector for Recording {
    async fn connect(&self, peer: &Peer) -> std::io::Result<Box<dyn Stream>> {
        self.asked.lock().unwrap().push(peer.address);
        Err(std::io::Error::other("not here"))
    }
}

#[tokio::test]
async fn what_is_dialled_is_what_was_judged() {
    let answers = |last_first: &[&str]| {
        let answers = last_first.iter().map(|answer| answer.parse().unwrap()).collect();
        Arc::new(Rebinding {
            answers: Mutex::new(answers),
        })
    };
    let recording = Arc::new(Recording::default());
    let names = answers(&["127.0.0.1", "93.184.216.34"]);
    let client = Client::with(Options::default(), policy(|_| {}), names, recording.clone());
    assert!(matches!(
        get(&client, "http://a.example:8080/").await,
        Err(Error::Connect(_))
    ));
    assert_eq!(
        *recording.asked.lock().unwrap(),
        ["93.184.216.34:8080".parse().unwrap()]
    );
    // The second look-up leads inside: nothing is dialled.
    let refused = get(&client, "http://a.example/").await.unwrap_err();
    assert_eq!(refused.denial().unwrap().code, "address_not_public");
    assert_eq!(recording.asked.lock().unwrap().len(), 1);
}
