//! `cargo xtask eval`, `retrieval` and `authority`: how well documents are found, measured through the daemon's own search.
//!
//! Documents are cut, embedded and put into a database as files of the knowledge bank are, and questions go through the
//! same knowledge base that tools ask. A collection is a folder with `corpus.jsonl` (`_id`, `title`, `text`, and maybe
//! `authority`), `queries.jsonl` (`_id`, `text`, and maybe `class`) and `qrels.tsv` (query, document, grade).

mod authority;
mod bank;
mod baseline;
mod collection;
mod floor;
mod gate;
mod measure;
mod retrieval;
mod speed;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use tidegate_core::port::Embedder;
use tidegate_kb::embed;
use tokio::runtime::Runtime;

use self::bank::Bank;
use self::baseline::Figures;
use self::collection::Collection;
use crate::{process, routing};

/// What an embedder must reach with words on the collections in the development data; releases are judged by others.
const TARGETS: [(&str, &str, f64); 5] = [
    ("builtin", "cisi default ndcg", 0.420),
    ("builtin", "authority as shipped kept", 1.0),
    ("local", "cisi default ndcg", 0.440),
    ("local", "authority as shipped first", 0.55),
    ("local", "authority as shipped kept", 1.0),
];

/// What to measure.
pub(crate) enum What {
    /// Everything, and whether it is as good as it was.
    Everything {
        /// Development data, with `retrieval/` in it.
        data: Option<PathBuf>,
        /// Write the figures down as what is to be reached.
        bless: bool,
    },
    /// The order of documents.
    Retrieval(Vec<PathBuf>),
    /// What authority does.
    Authority(PathBuf),
    /// How long it takes.
    Speed,
}

/// Measures and prints; whether all is as it should be. `model` is the folder of a local embedding model.
pub(crate) fn run(what: What, model: Option<&Path>) -> Result<bool> {
    if needs_release(&what, model) {
        return again();
    }
    let gate = match &what {
        // The gate has the built-in embedder, whatever documents have.
        What::Everything { data, .. } if model.is_none() => {
            gate::score(data.as_deref().unwrap_or(&beside()))?
        }
        What::Everything { .. } | What::Retrieval(_) | What::Authority(_) | What::Speed => None,
    };
    Runtime::new()?.block_on(measure(what, model, gate.as_ref()))
}

/// A model in this process and times without optimisation would say nothing, and take long.
fn needs_release(what: &What, model: Option<&Path>) -> bool {
    let local = cfg!(feature = "local-embedder");
    (model.is_some() && !local)
        || (cfg!(debug_assertions) && (model.is_some() || matches!(what, What::Speed)))
}

pub(crate) fn again() -> Result<bool> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut all = vec![
        "run",
        "--quiet",
        "--release",
        "--package",
        "xtask",
        "--features",
        "local-embedder",
        "--",
    ];
    all.extend(arguments.iter().map(String::as_str));
    Ok(process::cargo(&all).status()?.success())
}

async fn measure(what: What, model: Option<&Path>, gate: Option<&routing::Figures>) -> Result<bool> {
    let embedder = embedder(model).await?;
    let mut figures = Figures::new(&embedder.model().id)?;
    match what {
        What::Speed => return speed::run().await,
        What::Retrieval(folders) => {
            for folder in folders {
                let collection = Collection::read(&folder)?;
                let bank = Bank::of(&collection, Arc::clone(&embedder)).await?;
                retrieval::run(&collection, &bank, &mut figures).await?;
                bank.close().await;
            }
        }
        What::Authority(folder) => {
            let collection = Collection::read(&folder)?;
            let bank = Bank::of(&collection, embedder).await?;
            authority::run(&collection, &bank, &mut figures).await?;
            bank.close().await;
        }
        What::Everything { data, bless } => {
            let given = data.is_some();
            let data = data.unwrap_or_else(beside);
            if !data.join("retrieval").is_dir() {
                let where_to = format!("{} has no folder `retrieval`", data.display());
                ensure!(!given, "{where_to}");
                println!(
                    "nothing measured: {where_to}, and the collections are no part of this repository; give `--data DIR`"
                );
                return Ok(true);
            }
            let kind = if model.is_some() { "local" } else { "builtin" };
            let mut missed = everything(&data, embedder, kind, &mut figures).await?;
            missed.extend(gate.into_iter().flat_map(|gate| gate::note(gate, &mut figures)));
            for line in &missed {
                println!("missed: {line}");
            }
            let met = missed.is_empty();
            if bless {
                figures.bless()?;
                return Ok(met);
            }
            return Ok(figures.compare() && met);
        }
    }
    Ok(true)
}

/// Whether there is development data beside the repository.
pub(crate) fn has_data() -> bool {
    beside().join("retrieval").is_dir()
}

/// Development data that lies beside the repository.
pub(crate) fn beside() -> PathBuf {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    option_env!("TIDEGATE_SHARED_DATA").map_or(beside, PathBuf::from)
}

async fn everything(
    data: &Path,
    embedder: Arc<dyn Embedder>,
    kind: &str,
    figures: &mut Figures,
) -> Result<Vec<String>> {
    println!("embedding model {}", embedder.model().id);
    let mut folders: Vec<PathBuf> = std::fs::read_dir(data.join("retrieval"))?
        .map(|entry| entry.map(|entry| entry.path()))
        .collect::<Result<_, _>>()?;
    folders.retain(|folder| folder.join("corpus.jsonl").is_file());
    folders.sort();
    let mut collections = Vec::new();
    for folder in folders {
        let collection = Collection::read(&folder)?;
        let bank = Bank::of(&collection, Arc::clone(&embedder)).await?;
        retrieval::run(&collection, &bank, figures).await?;
        collections.push((collection, bank));
    }
    for (collection, bank) in collections
        .iter()
        .filter(|(collection, _)| collection.has_classes())
    {
        authority::run(collection, bank, figures).await?;
    }
    floor::run(&collections, &floor::Foreign::read(data), figures).await?;
    let missed = missed(kind, &collections, figures);
    for (_, bank) in collections {
        bank.close().await;
    }
    Ok(missed)
}

/// What is promised and not reached, in sentences.
fn missed(kind: &str, collections: &[(Collection, Bank)], figures: &Figures) -> Vec<String> {
    let mut missed = Vec::new();
    for (embedder, name, target) in TARGETS {
        if let Some(value) = figures
            .get(name)
            .filter(|value| embedder == kind && *value < target)
        {
            missed.push(format!("{name} is {value:.3}, to be {target:.3}"));
        }
    }
    for (collection, _) in collections {
        let of = |way: &str| {
            figures
                .get(&format!("{} {way} ndcg", collection.name))
                .unwrap_or_default()
        };
        if of("default") < of("words") {
            missed.push(format!("{}: words alone are better", collection.name));
        }
    }
    missed
}

pub(crate) async fn embedder(model: Option<&Path>) -> Result<Arc<dyn Embedder>> {
    let options = embed::Options {
        provider: if model.is_some() {
            embed::Provider::Local
        } else {
            embed::Provider::Builtin
        },
        folder: model.map(Path::to_path_buf),
        document_timeout_ms: 600_000,
        ..embed::Options::default()
    };
    let embedder = embed::open(&options, Arc::new(bank::Still), Arc::new(bank::Still)).await?;
    embedder.context("an embedder was asked for")
}
