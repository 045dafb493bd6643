//! Addresses, put to the guarded client with the names and servers of the line. Nothing leaves the machine.

mod world;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;
use tidegate_gate::guards::address::{self, Destination, classify};
use tidegate_gate::guards::outbound::Secrets;
use tidegate_io::guarded::{Client, Error, Options, Policy};
use tokio::runtime::{Builder, Runtime};

use super::case::{Case, Outcome, repetitions, strings, text};
use super::{Judged, REFUSAL_MAX, Verdict};
use world::World;

/// The configuration that is understood.
const CONFIG: [&str; 6] = [
    "allowed_domains",
    "blocked_domains",
    "grant",
    "mode",
    "ssrf_allow_hosts",
    "ssrf_allow_private",
];

/// A runtime whose clock stands still until everything waits, so that a name server that never answers costs no
/// time.
pub(super) struct Ssrf {
    runtime: Runtime,
}

/// What came of one request.
struct Sent {
    result: Result<u16, String>,
    /// How long the guard thought, by a real clock.
    thought: Duration,
    /// How long it took by the clock of the line's world.
    took_ms: u128,
}

impl Ssrf {
    pub(super) fn new() -> Result<Self> {
        Ok(Self {
            runtime: Builder::new_current_thread()
                .enable_all()
                .start_paused(true)
                .build()?,
        })
    }

    pub(super) fn judge(&mut self, case: &Case) -> Judged {
        let Some(url) = text(&case.input["url"]) else {
            return Judged::Unknown("the URL is no text".to_owned());
        };
        let policy = match policy(case) {
            Ok(policy) => policy,
            // What cannot be put in force lets nothing through: the daemon does not start with it.
            Err(problem) => {
                let by = format!("the configuration is refused: {problem}");
                return Judged::Done(Verdict::new(Outcome::Refuse, by));
            }
        };
        let world = match World::of(&case.input) {
            Ok(world) => world,
            Err(problem) => return Judged::Unknown(problem),
        };
        let mut sent = self.send(case, &url, policy.clone(), &world);
        if sent.thought > REFUSAL_MAX
            && let Ok(again) = World::of(&case.input)
        {
            // Other work of the machine is no fault of the guard's.
            sent.thought = sent.thought.min(self.send(case, &url, policy, &again).thought);
        }
        let (outcome, by) = match &sent.result {
            Ok(status) => (Outcome::Allow, format!("status {status}")),
            Err(reason) => (Outcome::Refuse, reason.clone()),
        };
        let mut verdict = Verdict {
            took: Some(sent.thought),
            unchecked: case.unknown_config(&CONFIG),
            ..Verdict::new(outcome, by)
        };
        check(case, &world, sent.took_ms, &mut verdict);
        Judged::Done(verdict)
    }

    fn send(&self, case: &Case, url: &str, policy: Policy, world: &World) -> Sent {
        self.runtime.block_on(async {
            let before = tokio::time::Instant::now();
            let begin = Instant::now();
            let result = request(case, url, policy, world).await;
            let thought = begin.elapsed();
            let took_ms = before.elapsed().as_millis();
            world.end().await;
            Sent {
                result,
                thought,
                took_ms,
            }
        })
    }
}

fn policy(case: &Case) -> Result<Policy> {
    Ok(Policy {
        address: address::Policy::compile(&address::Options {
            ssrf_allow_hosts: case.list("ssrf_allow_hosts"),
            ssrf_allow_private: case.flag("ssrf_allow_private"),
            allowed_domains: case.list("allowed_domains"),
            blocked_domains: case.list("blocked_domains"),
            own_listeners: Vec::new(),
        })?,
        secrets: Secrets::none()?,
    })
}

async fn request(case: &Case, url: &str, policy: Policy, world: &World) -> Result<u16, String> {
    let client = Client::with(Options::default(), policy, world.resolver(), world.connector());
    let destination = client
        .check(url)
        .map_err(|fault| format!("{}: {fault}", fault.code()))?;
    unsendable(&client.policy(), &destination, &case.input).map_err(|error| error.to_string())?;
    let method = case.input["method"].as_str().unwrap_or("GET");
    let mut request = if method.eq_ignore_ascii_case("POST") {
        client.post(destination).body("application/json", "{}")
    } else {
        client.get(destination)
    };
    for (name, value) in case.input["headers"].as_object().into_iter().flatten() {
        request = request.header(name, &repetitions(value.as_str().unwrap_or_default()));
    }
    let response = request.send().await.map_err(|error| error.to_string())?;
    Ok(response.status)
}

/// What no server can send but a guard must refuse (line ends in a target): the target itself is judged.
fn unsendable(policy: &Policy, from: &Destination, input: &Value) -> Result<(), Error> {
    let anywhere: IpAddr = [93, 184, 216, 34].into();
    let answers = input["redirects"].as_array().into_iter().flatten();
    for target in answers.filter_map(|answer| answer[1].as_str()) {
        if target.chars().any(char::is_control) {
            let reached = policy.address.reach(from.clone(), &[anywhere])?;
            policy.address.follow(&reached, target)?;
        }
    }
    Ok(())
}

/// Holds every check against what the world has seen.
fn check(case: &Case, world: &World, took_ms: u128, verdict: &mut Verdict) {
    let connected = world.connected();
    // Whatever a line asks for: nothing inside is dialled unless its configuration opens something inside.
    let opens_inside = case.flag("ssrf_allow_private") || case.config.contains_key("ssrf_allow_hosts");
    if let Some(address) = connected.iter().find(|address| classify(**address).is_err())
        && !opens_inside
    {
        verdict
            .failures
            .push(format!("connected to {address}, which is inside"));
    }
    for (name, value) in &case.check {
        let failure = match name.as_str() {
            "connected" => addresses(value)
                .find(|address| !connected.contains(address))
                .map(|address| format!("not {address} but {connected:?}")),
            "must_not_connect" => addresses(value)
                .find(|address| connected.contains(address))
                .map(|address| format!("connected to {address}")),
            "must_not_resolve" => {
                let names = world.looked_up();
                let asked = match value {
                    Value::Array(_) => strings(value).into_iter().find(|name| names.contains(name)),
                    Value::Bool(true) => names.first().cloned(),
                    Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
                        None
                    }
                };
                asked.map(|name| format!("looked {name} up"))
            }
            "max_requests" => {
                let count = world.requests().len() as u64;
                value
                    .as_u64()
                    .is_some_and(|most| count > most)
                    .then(|| format!("{count} requests"))
            }
            "returns_within_ms" => value
                .as_u64()
                .is_some_and(|limit| took_ms > u128::from(limit))
                .then(|| format!("took {took_ms} ms")),
            "headers_absent_at" => sent_header(value, &world.requests()),
            _ => {
                verdict.unchecked.push(format!("check `{name}`"));
                None
            }
        };
        verdict
            .failures
            .extend(failure.map(|failure| format!("{name}: {failure}")));
    }
}

fn addresses(value: &Value) -> impl Iterator<Item = IpAddr> {
    strings(value).into_iter().filter_map(|text| text.parse().ok())
}

fn sent_header(value: &Value, requests: &[String]) -> Option<String> {
    for (host, names) in value.as_object().into_iter().flatten() {
        let mine = requests
            .iter()
            .filter(|head| head.contains(&format!("host: {host}\r\n")));
        for head in mine {
            let found = strings(names)
                .into_iter()
                .find(|name| head.contains(&format!("\r\n{}:", name.to_lowercase())));
            if let Some(name) = found {
                return Some(format!("{name} went to {host}"));
            }
        }
    }
    None
}
