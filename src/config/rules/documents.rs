//! What `[kb]` and `[embeddings]` must be to work: patterns that can be read, numbers within their bounds, a server where
//! one is needed.

use std::path::Path;

use tidegate_core::glob::Glob;
use tidegate_kb::authority::NUDGE_MAX;

use super::is_url;
use crate::{
    app::knowledge::{EmbeddingOptions, ProviderName},
    config::{Config, settings::Problems},
};

/// The most files that are worked on at once.
const WORKERS_MAX: usize = 64;

pub(super) fn check(config: &Config, problems: &mut Problems<'_>) {
    patterns(config, problems);
    let nudge = config.kb.authority_nudge;
    if nudge > f64::from(NUDGE_MAX) {
        problems.add(
            "kb.authority_nudge",
            format!("{nudge} would put authority before relevance; set a number from 0 to {NUDGE_MAX}"),
        );
    }
    let workers = config.kb.workers_max;
    if workers > WORKERS_MAX {
        problems.add(
            "kb.workers_max",
            format!("{workers} processes at once would only wait for each other; set at most {WORKERS_MAX}"),
        );
    }
    for (name, fault) in config.embeddings.embed(Path::new("")).faults() {
        problems.add(&format!("embeddings.{name}"), fault);
    }
    for fault in config.kb.chroma().faults() {
        problems.add(&format!("kb.{}", fault.name), fault.problem);
    }
    servers(config, problems);
    idle(&config.embeddings, problems);
}

fn patterns(config: &Config, problems: &mut Problems<'_>) {
    let ignored = config.kb.ignore.iter().enumerate();
    let ignored = ignored.map(|(at, pattern)| (format!("kb.ignore[{at}]"), pattern));
    let rows = config.kb.authority.iter().enumerate();
    let rows = rows.map(|(at, row)| (format!("kb.authority[{at}].pattern"), &row.pattern));
    for (key, pattern) in ignored.chain(rows) {
        if pattern.is_empty() {
            problems.add(
                &key,
                "an empty pattern matches no file; write one such as `drafts/**`".into(),
            );
        } else if let Some(inside) = pattern.strip_prefix('/') {
            problems.add(
                &key,
                format!("`{pattern}` matches no file, since paths begin inside the knowledge bank; write `{inside}`"),
            );
        } else if let Err(fault) = Glob::new(pattern) {
            problems.add(&key, format!("`{pattern}`: {fault}"));
        } else if let Some((bank, inside)) = below(&config.tools.knowledge_bank, pattern) {
            problems.warn(
                &key,
                format!(
                    "`{pattern}` means a folder `{bank}` inside the knowledge bank, where paths begin; for the bank itself \
                     write `{inside}`"
                ),
            );
        }
    }
}

/// The bank's own name and what follows it, where a pattern begins with it.
fn below<'t>(bank: &'t Path, pattern: &'t str) -> Option<(&'t str, &'t str)> {
    let name = bank.file_name()?.to_str()?;
    let inside = pattern.strip_prefix(name)?.strip_prefix('/')?;
    (!inside.is_empty()).then_some((name, inside))
}

/// Settings that the provider in force does not look at.
fn idle(options: &EmbeddingOptions, problems: &mut Problems<'_>) {
    let (model, base_url) = (
        ("embeddings.model", options.model.is_some()),
        ("embeddings.base_url", options.base_url.is_some()),
    );
    let (name, unread) = match options.provider {
        ProviderName::Builtin => ("builtin", &[model, base_url][..]),
        ProviderName::Local => ("local", &[base_url][..]),
        // Whoever switches vectors off keeps the rest for later.
        ProviderName::Ollama | ProviderName::Openai | ProviderName::None => return,
    };
    for (key, _) in unread.iter().filter(|(_, is_set)| *is_set) {
        problems.warn(
            key,
            format!(
                "it has no effect while `embeddings.provider` is `{name}`; set that to `ollama` or `openai`, or leave this \
                 away"
            ),
        );
    }
}

fn servers(config: &Config, problems: &mut Problems<'_>) {
    let options = &config.embeddings;
    let is_given = |text: &Option<String>| text.as_ref().is_some_and(|text| !text.trim().is_empty());
    match options.provider {
        ProviderName::Openai => {
            for (key, example, value) in [
                (
                    "embeddings.base_url",
                    "http://127.0.0.1:8081/v1",
                    &options.base_url,
                ),
                ("embeddings.model", "text-embedding-3-small", &options.model),
            ] {
                if !is_given(value) {
                    let need = format!("the provider `openai` needs it; set it, such as to `{example}`");
                    problems.add(key, need);
                }
            }
        }
        ProviderName::Local if !cfg!(feature = "local-embedder") => problems.add(
            "embeddings.provider",
            "this program was built without local models; build it with `--features local-embedder`, or set another \
             provider such as `builtin`"
                .into(),
        ),
        ProviderName::Builtin | ProviderName::Ollama | ProviderName::Local | ProviderName::None => {}
    }
    for (key, value) in [
        ("embeddings.base_url", &options.base_url),
        ("embeddings.pull_url", &options.pull_url),
    ] {
        if let Some(address) = value.as_ref().filter(|address| !address.trim().is_empty())
            && !is_url(address)
        {
            problems.add(
                key,
                format!("`{address}` is no address; write one such as `http://127.0.0.1:8081/v1`"),
            );
        }
    }
}
