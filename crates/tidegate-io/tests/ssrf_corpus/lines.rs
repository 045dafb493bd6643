//! The lines, one after another.

use std::collections::BTreeMap;

use serde_json::Value;
use tidegate_gate::guards::{
    address::{self, Destination, classify},
    outbound::Secrets,
};
use tidegate_io::guarded::{Client, Error, Options, Policy};

use crate::world::World;

fn list(value: &Value) -> Vec<String> {
    let items = value.as_array().into_iter().flatten();
    items.map(|item| item.as_str().unwrap().to_owned()).collect()
}

fn policy(config: &Value) -> Result<Policy, address::Error> {
    Ok(Policy {
        address: address::Policy::compile(&address::Options {
            ssrf_allow_hosts: list(&config["ssrf_allow_hosts"]),
            ssrf_allow_private: config["ssrf_allow_private"].as_bool().unwrap_or(false),
            allowed_domains: list(&config["allowed_domains"]),
            blocked_domains: list(&config["blocked_domains"]),
            own_listeners: Vec::new(),
        })?,
        secrets: Secrets::none().unwrap(),
    })
}

/// What no server can send but a guard must refuse: the target itself is judged.
fn judges_unsendable_targets(policy: &Policy, from: &Destination, input: &Value) -> Result<(), Error> {
    let answers = input["redirects"].as_array().into_iter().flatten();
    for target in answers.filter_map(|answer| answer[1].as_str()) {
        if target.chars().any(char::is_control) {
            let reached = policy
                .address
                .reach(from.clone(), &["93.184.216.34".parse().unwrap()])?;
            policy.address.follow(&reached, target)?;
        }
    }
    Ok(())
}

async fn run(line: &Value, world: &World) -> Result<u16, String> {
    let input = &line["input"];
    let policy = policy(&line["config"]).map_err(|error| error.to_string())?;
    let client = Client::with(Options::default(), policy, world.resolver(), world.connector());
    let url = input["url"].as_str().unwrap();
    let destination = client
        .check(url)
        .map_err(|fault| format!("{}: {fault}", fault.code()))?;
    judges_unsendable_targets(&client.policy(), &destination, input).map_err(|error| error.to_string())?;
    let mut request = if input["method"] == "POST" {
        client.post(destination).body("application/json", "{}")
    } else {
        client.get(destination)
    };
    for (name, value) in input["headers"].as_object().into_iter().flatten() {
        request = request.header(name, value.as_str().unwrap());
    }
    let response = request.send().await.map_err(|error| error.to_string())?;
    Ok(response.status)
}

fn check(line: &Value, world: &World, took_ms: u128) -> Result<(), String> {
    let check = &line["check"];
    let connected = world.connected();
    // Whatever a line asks for: nothing inside is dialled unless its configuration opens something inside.
    let config = &line["config"];
    let opens_inside = config["ssrf_allow_private"] == true || config.get("ssrf_allow_hosts").is_some();
    if let Some(address) = connected.iter().find(|address| classify(**address).is_err())
        && !opens_inside
    {
        return Err(format!("nothing_inside: connected to {address}"));
    }
    let urls = || format!("{connected:?}");
    for address in list(&check["connected"]) {
        if !connected.contains(&address.parse().unwrap()) {
            return Err(format!("not connected to {address}: {}", urls()));
        }
    }
    for address in list(&check["must_not_connect"]) {
        if connected.contains(&address.parse().unwrap()) {
            return Err(format!("connected to {address}"));
        }
    }
    if check["must_not_resolve"] == true && !world.looked_up().is_empty() {
        return Err(format!("looked up {:?}", world.looked_up()));
    }
    if let Some(requests_max) = check["max_requests"].as_u64()
        && world.requests().len() as u64 > requests_max
    {
        return Err("too many requests".to_owned());
    }
    if let Some(limit) = check["returns_within_ms"].as_u64()
        && took_ms > u128::from(limit)
    {
        return Err(format!("took {took_ms} ms"));
    }
    for (host, absent) in check["headers_absent_at"].as_object().into_iter().flatten() {
        for head in world
            .requests()
            .iter()
            .filter(|head| head.contains(&format!("host: {host}\r\n")))
        {
            if let Some(name) = list(absent)
                .iter()
                .find(|name| head.contains(&format!("\r\n{name}:")))
            {
                return Err(format!("{name} went to {host}"));
            }
        }
    }
    Ok(())
}

#[tokio::test(start_paused = true)]
async fn every_line_comes_out_as_it_should() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/corpora/ssrf.jsonl");
    let text = std::fs::read_to_string(path).unwrap();
    let mut kinds: BTreeMap<String, [usize; 3]> = BTreeMap::new();
    let mut wrong = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let line: Value = serde_json::from_str(line).unwrap();
        let mut world = World::of(&line["input"]);
        let before = tokio::time::Instant::now();
        let result = run(&line, &world).await;
        world.end().await;
        let outcome = if result.is_ok() { "allow" } else { "refuse" };
        let expected = line["expect"].as_str().unwrap();
        let count = kinds
            .entry(line["kind"].as_str().unwrap().to_owned())
            .or_default();
        count[0] += 1;
        count[1] += usize::from(outcome == expected);
        count[2] += usize::from(outcome == "allow");
        let accepted = list(&line["accept"]);
        if outcome != expected {
            println!("{} ({}): {outcome}", line["id"], line["why"]);
            if !accepted.iter().any(|other| other == outcome) {
                wrong.push(format!("{} ({}): {outcome}, {result:?}", line["id"], line["why"]));
            }
        }
        if let Err(problem) = check(&line, &world, before.elapsed().as_millis()) {
            wrong.push(format!("{} ({}): {problem}", line["id"], line["why"]));
        }
    }
    for (kind, [lines, right, allowed]) in &kinds {
        println!("{kind}: {right}/{lines} as expected, {allowed} allowed");
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
