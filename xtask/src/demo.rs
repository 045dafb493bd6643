//! `cargo xtask demo`: from a clone to a conversation in one command.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use serde_json::{Value, json};

use crate::daemon::{Daemon, Start};
use crate::{http, model, process, suites};

/// The tool of the demo. The small model calls a tool whenever one is offered, and does not choose well among several.
const TOOLS: [&str; 1] = ["search_knowledge_base"];
/// A document for the demo's knowledge bank, and its name there.
const DOCUMENT: (&str, &str) = ("tests/fixtures/knowledge/handbook.pdf", "handbook.pdf");
/// How long reading the document may take.
const INDEX_TIMEOUT: Duration = Duration::from_secs(30);
/// The instructions of the demo; short, for the same reason.
const AGENT: &str = "# Assistant\n\nYou are a friendly assistant. Answer in one short sentence.\n";
/// A small model may call tools for ever; a few rounds are enough for the questions of the demo.
pub(crate) const SETTINGS: &str = "[engine]\nrounds_max = 3\n";
/// The first question: only the document has the answer.
const QUESTION: &str = "What is the order number of the seal kit?";
/// How soon the first words must appear.
const FIRST_TOKEN_MAX: Duration = Duration::from_secs(15);
/// How long the whole answer may take.
const ANSWER_TIMEOUT: Duration = Duration::from_mins(2);
/// Where an Ollama is looked for.
const OLLAMA: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 11434);

/// A model to talk to.
struct Chosen {
    base_url: String,
    name: String,
    api_key: Option<String>,
    what: String,
}

/// Runs the demo. With `once` it ends after the first answer and stops what it started.
pub(crate) fn run(once: bool, port: u16) -> Result<()> {
    println!("building the release (some minutes the first time)");
    suites::build_release()?;
    let model_ran = model::status().is_some();
    let chosen = choose()?;
    println!("model: {} at {} ({})", chosen.name, chosen.base_url, chosen.what);
    let home = prepare()?;
    let mut start = Start::new(&home, &chosen.base_url, &chosen.name);
    start.port = port;
    SETTINGS.clone_into(&mut start.settings);
    start.tools = Some(tools_file(&TOOLS)?);
    start.api_key = chosen.api_key;
    let mut daemon = Daemon::start(&start)?;
    println!(
        "tidegate: http://{}/v1, ready after {} ms",
        daemon.address,
        daemon.ready_after.as_millis()
    );
    let mut ended = indexed(&daemon).and_then(|()| ask(&daemon));
    if ended.is_ok() && !once {
        how_to_go_on(&daemon);
        ended = wait_for_interrupt(&mut daemon);
        println!("\nstopping");
    }
    let clean = daemon.stop()?;
    if !model_ran {
        model::stop()?;
    }
    ended?;
    // Ctrl-C has reached the daemon too; being told a second time hurries it, which is no fault.
    anyhow::ensure!(clean || !once, "the daemon did not stop cleanly");
    Ok(())
}

/// Asks the first question and shows the answer as it arrives.
fn ask(daemon: &Daemon) -> Result<()> {
    println!("\nyou:   {QUESTION}");
    print!("agent: ");
    flush();
    let body = json!({
        "model": "tidegate",
        "stream": true,
        "max_tokens": 96,
        // So small a model wanders off when it may choose its words.
        "temperature": 0,
        "messages": [{"role": "user", "content": QUESTION}],
    });
    let path = "/v1/chat/completions";
    let streamed = http::stream_chat(
        daemon.address,
        path,
        Some(&daemon.key),
        &body,
        ANSWER_TIMEOUT,
        |text| {
            print!("{text}");
            flush();
        },
    )?;
    println!();
    if !streamed.done || streamed.text.trim().is_empty() {
        bail!(
            "the first question was not answered (status {}): {}",
            streamed.status,
            streamed.error
        );
    }
    let first = streamed.first_token.unwrap_or_default();
    let tools = tools_used(&daemon.home);
    println!(
        "       (first words after {:.1} s; tools used: {})",
        first.as_secs_f64(),
        tools.join(", ")
    );
    if first > FIRST_TOKEN_MAX {
        // A figure and no fault: how fast a model is on a busy machine says nothing about tidegate.
        println!(
            "       (more than {} s: a small machine, or a busy one)",
            FIRST_TOKEN_MAX.as_secs()
        );
    }
    for citation in &streamed.citations {
        println!(
            "       source: [{}] {}, page {}",
            citation["id"].as_str().unwrap_or_default(),
            citation["document"].as_str().unwrap_or_default(),
            citation["page"]
        );
    }
    if tools.is_empty() {
        println!("       (the model chose to answer without a tool)");
    } else if streamed.citations.is_empty() {
        bail!("the answer has no sources");
    }
    Ok(())
}

/// Waits until the documents of the knowledge bank are in the index.
fn indexed(daemon: &Daemon) -> Result<()> {
    let deadline = Instant::now() + INDEX_TIMEOUT;
    loop {
        let answer = http::call(
            daemon.address,
            "GET",
            "/v1/admin/kb",
            Some(&daemon.key),
            &Value::Null,
            Duration::from_secs(5),
        )?;
        let status = answer.json();
        if status["documents"].as_u64() >= Some(1) && status["pending"] == 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("the document was not read: {status}");
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// The tools that the tool log names.
pub(crate) fn tools_used(home: &Path) -> Vec<String> {
    let mut used = Vec::new();
    let mut folders = vec![home.join("logs")];
    while let Some(folder) = folders.pop() {
        for path in std::fs::read_dir(&folder)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.path())
        {
            if path.is_dir() {
                folders.push(path);
            } else if path
                .file_name()
                .is_some_and(|name| name.to_string_lossy().starts_with("tool"))
            {
                let text = std::fs::read_to_string(&path).unwrap_or_default();
                used.extend(text.lines().filter_map(|line| {
                    let record: Value = serde_json::from_str(line).ok()?;
                    record["tool"].as_str().map(str::to_owned)
                }));
            }
        }
    }
    used
}

/// The model that is there, or a small one.
fn choose() -> Result<Chosen> {
    let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
    let named = variable("OPENAI_MODEL");
    if let Some(base_url) = variable("OPENAI_BASE_URL") {
        let name = named.map_or_else(|| first_model(&base_url), Ok)?;
        let api_key = variable("OPENAI_API_KEY");
        return Ok(Chosen {
            base_url,
            name,
            api_key,
            what: "from OPENAI_BASE_URL".to_owned(),
        });
    }
    let probe = http::call(
        OLLAMA,
        "GET",
        "/v1/models",
        None,
        &Value::Null,
        Duration::from_secs(1),
    );
    if let Some(first) = probe
        .ok()
        .and_then(|answer| answer.json()["data"][0]["id"].as_str().map(str::to_owned))
    {
        return Ok(Chosen {
            base_url: format!("http://{OLLAMA}/v1"),
            name: named.unwrap_or(first),
            api_key: None,
            what: "a local Ollama".to_owned(),
        });
    }
    println!("no model found: neither OPENAI_BASE_URL nor an Ollama; starting a small one");
    let model = model::start()?;
    Ok(Chosen {
        base_url: model.base_url,
        name: model::NAME.to_owned(),
        api_key: None,
        what: "a real but very small model; expect simple answers".to_owned(),
    })
}

/// The first model that a server on this machine lists.
fn first_model(base_url: &str) -> Result<String> {
    let hint = "set OPENAI_MODEL to the model to use";
    let Some(rest) = base_url.strip_prefix("http://") else {
        bail!("{hint}");
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    let Ok(address) = host.replace("localhost", "127.0.0.1").parse() else {
        bail!("{hint}");
    };
    let path = format!("/{}/models", path.trim_end_matches('/'));
    let answer = http::call(address, "GET", &path, None, &Value::Null, Duration::from_secs(5))?;
    match answer.json()["data"][0]["id"].as_str() {
        Some(id) => Ok(id.to_owned()),
        None => bail!("{base_url} lists no model; {hint}"),
    }
}

/// A folder for the demo, with instructions of its own. What an earlier demo kept stays, but its log does not.
fn prepare() -> Result<PathBuf> {
    let home = process::target().join("demo");
    if home.join("logs").is_dir() {
        std::fs::remove_dir_all(home.join("logs"))?;
    }
    std::fs::create_dir_all(&home)?;
    std::fs::write(home.join("AGENT.md"), AGENT)?;
    let documents = home.join("knowledge-bank");
    std::fs::create_dir_all(&documents)?;
    let (from, name) = DOCUMENT;
    std::fs::copy(process::root().join(from), documents.join(name))?;
    Ok(home)
}

/// An operator's tools file that leaves only some tools.
pub(crate) fn tools_file(kept: &[&str]) -> Result<String> {
    let built_in = std::fs::read_to_string(process::root().join("crates/tidegate-tools/tools.toml"))?;
    let mut in_tool = false;
    let mut removed = Vec::new();
    for line in built_in.lines() {
        if line.starts_with('[') {
            in_tool = line.trim() == "[[tool]]";
        } else if let Some(name) = line.strip_prefix("name = ").filter(|_| in_tool)
            && !kept.contains(&name.trim_matches('"'))
        {
            removed.push(name.to_owned());
        }
    }
    Ok(format!(
        "# Few tools, for a small model.\nremove = [{}]\n",
        removed.join(", ")
    ))
}

fn how_to_go_on(daemon: &Daemon) {
    let (address, key) = (daemon.address, &daemon.key);
    println!(
        r#"
Go on with curl:

  curl -N http://{address}/v1/chat/completions \
    -H "Authorization: Bearer {key}" -H "Content-Type: application/json" \
    -d '{{"model":"tidegate","stream":true,"messages":[{{"role":"user","content":"How often must the pressure relief valve be checked?"}}]}}'

or with Python (pip install openai):

  from openai import OpenAI
  client = OpenAI(base_url="http://{address}/v1", api_key="{key}")
  question = [{{"role": "user", "content": "Where is used oil taken?"}}]
  print(client.chat.completions.create(model="tidegate", messages=question).choices[0].message.content)

Its files are in {home}; change AGENT.md there and the next answer follows it.
Put a document of yours, such as a PDF, into {home}/knowledge-bank and ask about it.
Ctrl-C stops it.
"#,
        home = daemon.home.display()
    );
}

/// Waits for Ctrl-C, or for the daemon to end by itself.
fn wait_for_interrupt(daemon: &mut Daemon) -> Result<()> {
    const LOOK: Duration = Duration::from_secs(1);
    tokio::runtime::Runtime::new()?.block_on(async {
        loop {
            tokio::select! {
                signal = tokio::signal::ctrl_c() => return Ok(signal?),
                () = tokio::time::sleep(LOOK) => {
                    if daemon.ended() {
                        bail!("the daemon ended by itself; see {}", daemon.home.join("daemon.log").display());
                    }
                }
            }
        }
    })
}

fn flush() {
    // A terminal that is gone cannot be helped.
    drop(std::io::stdout().flush());
}
