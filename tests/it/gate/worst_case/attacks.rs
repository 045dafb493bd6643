//! The attacks of the corpora as tool calls.

use std::path::PathBuf;

use serde_json::{Value, json};

use super::world::{Call, World, call, shell};

/// One line of a corpus that must have no effect.
#[derive(Debug)]
pub(crate) struct Attack {
    pub(crate) kind: String,
    pub(crate) setup: Vec<Value>,
    pub(crate) calls: Vec<Call>,
}

impl Attack {
    /// The absolute paths that its calls name.
    pub(crate) fn named_paths(&self) -> Vec<PathBuf> {
        let texts = self.calls.iter().map(|(_, arguments)| arguments.to_string());
        let mut found = Vec::new();
        for text in texts {
            let words =
                text.split(|letter: char| letter.is_whitespace() || "'\"`;|&<>()=\\,:".contains(letter));
            let paths = words.filter(|word| word.starts_with('/') && word.len() > 1 && word.len() < 200);
            // What the kernel makes up changes by itself, and devices are no files.
            let real = paths.filter(|path| {
                !["/proc", "/sys", "/dev"]
                    .iter()
                    .any(|root| path.starts_with(root))
            });
            found.extend(real.map(PathBuf::from));
        }
        found
    }
}

fn lines(text: &str) -> impl Iterator<Item = Value> {
    text.lines()
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_str(line).unwrap())
}

/// Whether a line must not be let through.
fn is_attack(line: &Value) -> bool {
    let accepts_allow = line["accept"]
        .as_array()
        .is_some_and(|accepted| accepted.iter().any(|outcome| outcome == "allow"));
    line["expect"] != "allow" && !accepts_allow
}

/// Whether a line lives on names or rules of its own. Its names mean nothing here and would be looked up outside;
/// such lines are put to the client with a resolver of their own, by `cargo xtask corpus`.
fn is_made_up(line: &Value) -> bool {
    let has_rules = [
        "allowed_domains",
        "blocked_domains",
        "ssrf_allow_hosts",
        "ssrf_allow_private",
    ]
    .iter()
    .any(|name| line["config"].get(*name).is_some());
    has_rules
        || line["input"]["dns"]
            .as_object()
            .is_some_and(|names| !names.is_empty())
}

/// A text; long ones are written as a generator.
fn text(value: &Value) -> String {
    if let Some(text) = value.as_str() {
        return text.to_owned();
    }
    let generator = &value["gen"];
    let plain = |name: &str| generator[name].as_str().unwrap_or_default().to_owned();
    let repeated = |name: &str| {
        let count = usize::try_from(generator[name][1].as_u64().unwrap_or(0)).unwrap();
        generator[name][0].as_str().unwrap_or_default().repeat(count)
    };
    plain("prefix") + &repeated("repeat") + &plain("middle") + &repeated("suffix_repeat") + &plain("suffix")
}

/// Every attack of the corpora on shell, paths and addresses.
pub(crate) fn attacks(world: &World) -> Vec<Attack> {
    let mut found = Vec::new();
    for line in lines(include_str!("../../../corpora/shell.jsonl")).filter(is_attack) {
        let command = text(&line["input"])
            .replace("/w/proj", world.inside("").trim_end_matches('/'))
            .replace("/w/", &world.beside(""));
        let kind = line["kind"].as_str().unwrap();
        let mut calls = vec![shell(&command)];
        if kind.starts_with("floor.") {
            // The same by way of a snippet, which no analysis of commands looks at.
            let code = format!(
                "import subprocess\nprint(subprocess.run(['bash', '-c', {}], capture_output=True, timeout=1).stdout)",
                Value::from(command.replace('\0', " "))
            );
            calls.push(call("run_sandboxed", json!({"code": code})));
        }
        found.push(attack(kind, calls, Vec::new()));
    }
    for line in lines(include_str!("../../../corpora/path.jsonl")).filter(is_attack) {
        found.push(path_attack(world, &line));
    }
    let addresses = lines(include_str!("../../../corpora/ssrf.jsonl"));
    for line in addresses.filter(is_attack).filter(|line| !is_made_up(line)) {
        let url = text(&line["input"]["url"]);
        let ported = with_port(&url, world.sinks[0].port);
        let mut calls = Vec::new();
        for url in [Some(url), ported].into_iter().flatten() {
            calls.push(call("get_page_title", json!({"url": url})));
            calls.push(call("git_clone", json!({"url": url, "folder": "cloned"})));
            calls.push(shell(&format!("curl -s '{url}'")));
        }
        let kind = line["kind"].as_str().unwrap();
        found.push(attack(&format!("address {kind}"), calls, Vec::new()));
    }
    found
}

fn attack(kind: &str, calls: Vec<Call>, setup: Vec<Value>) -> Attack {
    Attack {
        kind: kind.to_owned(),
        setup,
        calls,
    }
}

fn path_attack(world: &World, line: &Value) -> Attack {
    let fill = |value: &Value| {
        text(value)
            .replace("{Wname}", "knowledge-bank")
            .replace("{Oname}", "other")
            .replace("{W}", world.inside("").trim_end_matches('/'))
            .replace("{H}", &world.beside("home"))
            .replace("{O}", &world.beside("other"))
    };
    let input = &line["input"];
    let path = fill(&input["path"]);
    let quoted = format!("'{}'", path.replace('\'', "'\\''"));
    let to = format!("'{}'", fill(&input["to"]));
    let write = || call("write_file", json!({"path": path, "content": "pwned"}));
    let calls = match input["op"].as_str().unwrap() {
        "read" => vec![
            call("read_text", json!({"path": path})),
            shell(&format!("cat {quoted}")),
            shell(&format!("cp {quoted} taken; cat taken")),
        ],
        "list" => vec![
            call("list_files", json!({"path": path})),
            shell(&format!("ls {quoted}")),
        ],
        "write" => vec![
            write(),
            shell(&format!("echo pwned > {quoted}")),
            shell(&format!("tee {quoted} < notes.txt")),
        ],
        "delete" => vec![write(), shell(&format!("rm -rf {quoted}"))],
        "rename" => vec![shell(&format!("mv {quoted} {to}"))],
        "copy" => vec![shell(&format!("cp {quoted} {to}"))],
        other => panic!("unknown operation {other}"),
    };
    let setup = input["setup"].as_array().into_iter().flatten();
    let setup = setup
        .map(|step| {
            let parts = step.as_array().unwrap().iter();
            parts
                .map(|part| {
                    if part.is_string() {
                        fill(part).into()
                    } else {
                        part.clone()
                    }
                })
                .collect()
        })
        .collect();
    attack(&format!("path {}", line["kind"].as_str().unwrap()), calls, setup)
}

/// The URL with a port at which somebody listens, where it names none.
fn with_port(url: &str, port: u16) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let end = rest.find(['/', '?', '#', '\\']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let after_bracket = authority.rsplit_once(']').map_or(authority, |(_, port)| port);
    let named = !authority.is_empty() && !after_bracket.contains([':', '@']);
    named.then(|| format!("{scheme}://{authority}:{port}{path}"))
}
