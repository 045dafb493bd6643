use serde_json::Value;
use tidegate_gate::guards::secrets::Redactor;
use tidegate_memory::{
    boundary::*,
    extract::rules,
    kinds::{Kinds, normalise},
};

fn main() {
    let kinds = Kinds::shipped().unwrap();
    let redactor = Redactor::new([]).unwrap();
    let gate = Boundary {
        kinds: &kinds,
        limits: Limits::default(),
        redactor: &redactor,
    };
    let quiet = std::env::var("QUIET").is_ok();
    for file in std::env::args().skip(1) {
        let mut counts = std::collections::BTreeMap::<String, [usize; 3]>::new();
        for line in std::fs::read_to_string(&file).unwrap().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            if line["turn"].is_string() {
                negative(&gate, &line, quiet);
                continue;
            }
            let text = |name: &str| line[name].as_str().unwrap_or_default();
            let reading = Reading::of(text("text"), []);
            let found = rules::extract(&reading);
            let verdicts = gate.judge(&reading, Held::default(), &found);
            let kept: Vec<_> = verdicts
                .iter()
                .flatten()
                .map(|k| (k.kind.clone(), k.value.clone()))
                .collect();
            let expected = normalise(kinds.get(text("kind")).unwrap(), text("value")).unwrap();
            let strict = kept.iter().any(|(k, v)| k == text("kind") && *v == expected);
            let plain = |t: &str| format!(" {} ", t.replace("days", "day").replace("weekends", "weekend"));
            let lenient = kept.iter().any(|(k, v)| {
                k == text("kind")
                    && plain(v).contains(&plain(
                        expected.trim_start_matches("the ").trim_start_matches("a "),
                    ))
            });
            let count = counts
                .entry(format!(
                    "{} {}",
                    text("half"),
                    if std::env::var("BYKIND").is_ok() {
                        text("kind")
                    } else {
                        ""
                    }
                ))
                .or_default();
            count[0] += usize::from(strict);
            count[1] += usize::from(lenient);
            count[2] += 1;
            if !strict && !quiet {
                let all: Vec<String> = found
                    .iter()
                    .zip(&verdicts)
                    .map(|(f, v)| {
                        format!(
                            "{}={} {}",
                            f.kind,
                            f.value,
                            v.as_ref().map_or_else(|r| r.reason.code(), |_| "KEPT")
                        )
                    })
                    .collect();
                // what the boundary would say to a right extractor
                let right = Candidate {
                    kind: text("kind").into(),
                    value: text("value").into(),
                    quote: String::new(),
                    is_explicit: true,
                    is_first_person: true,
                };
                let words = reading.own_words();
                let said: Vec<&str> = words
                    .lines()
                    .map(|q| {
                        gate.judge(
                            &reading,
                            Held::default(),
                            &[Candidate {
                                quote: q.into(),
                                ..right.clone()
                            }],
                        )
                        .remove(0)
                        .map_or_else(|r| r.reason.code(), |_| "KEPT")
                    })
                    .collect();
                println!(
                    "{} {}={} | {} | found {all:?} | right {said:?}",
                    if lenient { "~" } else { "X" },
                    text("kind"),
                    text("value"),
                    text("text")
                );
            }
        }
        for (half, c) in &counts {
            println!("{file} {half}: strict {} says {} of {}", c[0], c[1], c[2]);
        }
        let sum = counts
            .values()
            .fold([0; 3], |s, c| [s[0] + c[0], s[1] + c[1], s[2] + c[2]]);
        if sum[2] > 0 {
            println!(
                "{file} ALL: strict {} = {:.1} %, says {} = {:.1} % of {}",
                sum[0],
                100.0 * sum[0] as f64 / sum[2] as f64,
                sum[1],
                100.0 * sum[1] as f64 / sum[2] as f64,
                sum[2]
            );
        }
    }
}

fn negative(gate: &Boundary<'_>, line: &Value, quiet: bool) {
    let turn = line["turn"].as_str().unwrap();
    let reading = Reading::of(turn, []);
    let found = rules::extract(&reading);
    let by_rules: Vec<String> = gate
        .judge(&reading, Held::default(), &found)
        .into_iter()
        .flatten()
        .map(|k| format!("{}={} {:?}", k.kind, k.value, k.stance))
        .collect();
    let mut fooled = Vec::new();
    for c in line["candidates"].as_array().unwrap() {
        for q in reading
            .own_words()
            .lines()
            .map(str::to_owned)
            .chain([c["quote"].as_str().unwrap_or_default().to_owned()])
        {
            let candidate = Candidate {
                kind: c["kind"].as_str().unwrap().into(),
                value: c["value"].as_str().unwrap().into(),
                quote: q,
                is_explicit: true,
                is_first_person: true,
            };
            if let Ok(k) = gate.judge(&reading, Held::default(), &[candidate]).remove(0) {
                fooled.push(format!("{}={} {:?}", k.kind, k.value, k.stance));
            }
        }
    }
    if !by_rules.is_empty() || !fooled.is_empty() {
        if quiet {
            println!("ACCEPTED something");
        } else {
            println!(
                "ACCEPTED {} | {turn} | rules {by_rules:?} | fooled {fooled:?}",
                line["class"].as_str().unwrap_or_default()
            );
        }
    }
}
