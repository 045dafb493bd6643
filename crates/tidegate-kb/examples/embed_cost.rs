//! What an embedder costs: `cargo run --release -p tidegate-kb --example embed_cost`.
//!
//! Without arguments the built-in one: loading, 30 tokens, abstracts a second, the memory of the process. With
//! arguments another one, through the same door as the server's: `ollama MODEL URL`, `openai MODEL URL`, or, with
//! `--features local-embedder`, `local FOLDER`.

use std::{error::Error, io::Write as _, sync::Arc, time::Instant};

use tidegate_core::{
    clock::{Clock, Entropy, Timestamp},
    embedding::Purpose,
    port::Embedder,
};
use tidegate_kb::embed::{Builtin, Options, Provider, open};

/// No time passes: nothing is to rest here.
#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

impl Entropy for Still {
    fn fill(&self, bytes: &mut [u8]) {
        bytes.fill(0);
    }
}

const QUESTION: &str = "How long does it take until the refund for a returned item is paid, and whom do I ask when \
                        it has not come after two weeks?";
const RUNS: u32 = 20_000;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match arguments.as_slice() {
        [] => builtin(),
        ["local", folder] => {
            other(&Options {
                provider: Provider::Local,
                folder: Some(folder.into()),
                ..Options::default()
            })
            .await
        }
        [provider @ ("ollama" | "openai"), model, url] => {
            other(&Options {
                provider: if *provider == "ollama" {
                    Provider::Ollama
                } else {
                    Provider::OpenAi
                },
                model: Some((*model).to_owned()),
                base_url: Some((*url).to_owned()),
                ..Options::default()
            })
            .await
        }
        _ => Err("give nothing, `local FOLDER`, `ollama MODEL URL` or `openai MODEL URL`".into()),
    }
}

fn builtin() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    let before = resident_kb();
    let begun = Instant::now();
    let builtin = Builtin::load()?;
    writeln!(
        out,
        "load: {:?}, {} KB of memory",
        begun.elapsed(),
        resident_kb() - before
    )?;
    let tokens = builtin.tokens(QUESTION).count();
    let first = Instant::now();
    std::hint::black_box(builtin.embed_one(QUESTION));
    writeln!(out, "first question: {:?}", first.elapsed())?;
    let begun = Instant::now();
    for _ in 0..RUNS {
        std::hint::black_box(builtin.embed_one(std::hint::black_box(QUESTION)));
    }
    writeln!(out, "{tokens} tokens: {:?}", begun.elapsed() / RUNS)?;
    let begun = Instant::now();
    for _ in 0..RUNS {
        std::hint::black_box(builtin.tokens(std::hint::black_box(QUESTION)).count());
    }
    writeln!(out, "of which cutting: {:?}", begun.elapsed() / RUNS)?;
    let junk = "x\u{301}q!".repeat((1 << 20) / 5);
    let begun = Instant::now();
    std::hint::black_box(builtin.embed_one(&junk));
    writeln!(out, "a megabyte of junk: {:?}", begun.elapsed())?;
    writeln!(out, "memory now: {} KB", resident_kb())?;
    Ok(())
}

async fn other(options: &Options) -> Result<(), Box<dyn Error>> {
    let begun = Instant::now();
    let embedder = open(options, Arc::new(Still), Arc::new(Still))
        .await?
        .ok_or("no embedder is configured")?;
    let mut out = std::io::stdout().lock();
    writeln!(out, "open: {:?}", begun.elapsed())?;
    writeln!(out, "{:#?}", embedder.model())?;
    writeln!(out, "tokens of the question: {}", embedder.tokens(QUESTION))?;
    for round in ["first query", "the same"] {
        let begun = Instant::now();
        let vectors = embedder.embed(&[QUESTION], Purpose::Query).await?;
        let length = vectors.iter().flatten().map(Vec::len).next().unwrap_or_default();
        writeln!(out, "{round}: {:?}, {length} numbers", begun.elapsed())?;
    }
    cosines(&mut out, &*embedder).await?;
    let passage = "The refund is paid within fourteen days of the return of the goods. ".repeat(12);
    let documents: Vec<String> = (0..16).map(|number| format!("{number} {passage}")).collect();
    let documents: Vec<&str> = documents.iter().map(String::as_str).collect();
    let begun = Instant::now();
    let vectors = embedder.embed(&documents, Purpose::Document).await?;
    let count = vectors.iter().flatten().count();
    writeln!(
        out,
        "{count} passages of {} tokens: {:?}",
        embedder.tokens(&passage),
        begun.elapsed()
    )?;
    writeln!(out, "state: {:?}, memory {} KB", embedder.state(), resident_kb())?;
    let fault = embedder.embed(&[&"word ".repeat(20_000)], Purpose::Query).await;
    writeln!(out, "a text too long: {:?}", fault.map(|vectors| vectors.len()))?;
    Ok(())
}

/// A query against a passage that answers it and one that does not.
async fn cosines(out: &mut impl std::io::Write, embedder: &dyn Embedder) -> Result<(), Box<dyn Error>> {
    let query = embedder
        .embed(&["When do I get my money back?"], Purpose::Query)
        .await?;
    let passages = [
        "Refunds are paid within 14 days.",
        "",
        "The bridge was built in 1890.",
    ];
    let passages = embedder.embed(&passages, Purpose::Document).await?;
    for (name, passage) in ["answers it", "is empty", "does not"].iter().zip(&passages) {
        let cosine = query.first().and_then(Option::as_ref).zip(passage.as_ref());
        let cosine = cosine.map(|(a, b)| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>());
        writeln!(out, "cosine of a passage that {name}: {cosine:?}")?;
    }
    Ok(())
}

/// The memory of this process that is in use, as Linux counts it; 0 elsewhere.
fn resident_kb() -> i64 {
    std::fs::read_to_string("/proc/self/status")
        .ok()
        .and_then(|status| {
            let line = status.lines().find(|line| line.starts_with("VmRSS:"))?.to_owned();
            line.split_whitespace().nth(1)?.parse().ok()
        })
        .unwrap_or_default()
}
