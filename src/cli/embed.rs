//! `tidegate embed`: fetches a model, and tries the one that is configured.

use std::{path::Path, sync::Arc};

use indicatif::{ProgressBar, ProgressStyle};
use serde::Serialize;
use tidegate_core::{
    clock::{Clock, Entropy},
    embedding::Purpose,
};
use tidegate_kb::embed::pull;

use super::{
    args,
    error::Error,
    output::{self, Out},
};
use crate::{
    app::{self, knowledge},
    clock::{OsEntropy, SystemClock},
    config::Settings,
    lifecycle::Signals,
};

/// Runs a command.
pub async fn run(settings: Settings, command: &args::embed::Embed, out: Out<'_>) -> Result<(), Error> {
    match command {
        args::embed::Embed::Pull(command) => fetch(&settings, command, out).await,
        args::embed::Embed::Test(command) => test(&settings, command, out).await,
    }
}

/// Fetches the pinned model. A signal ends it in good order: half a file is taken away, whole files stay.
async fn fetch(settings: &Settings, command: &args::embed::Pull, out: Out<'_>) -> Result<(), Error> {
    let options = &settings.config.embeddings;
    let address = command.from.as_ref().or(options.pull_url.as_ref());
    let base_url = address
        .map(|address| address.trim())
        .filter(|address| !address.is_empty());
    let order = pull::Options {
        model: pull::MODEL.to_owned(),
        base_url: base_url.ok_or_else(no_address)?.to_owned(),
        folder: settings.home.join(&options.folder),
    };
    let mut signals = Signals::listen().map_err(app::Error::Signals)?;
    let mut bars = Bars::default();
    let mut show = |progress| bars.show(progress);
    let fetched = tokio::select! {
        outcome = pull::pull(&order, &mut show) => outcome.map_err(|error| Error::Refused(error.to_string())),
        signal = signals.next() => Err(Error::Refused(format!(
            "{signal} broke it off; files that were complete are kept, so the same command goes on from there"
        ))),
    };
    bars.end();
    let fetched = fetched?;
    let kept = bars.kept;
    writeln!(
        out,
        "{} is in {}: {fetched} files were fetched, {kept} were there already, and all have the right SHA-256.",
        order.model,
        output::plain(&order.folder.display().to_string())
    )?;
    next(&options.folder, out)
}

fn no_address() -> Error {
    Error::Usage(format!(
        "there is no address to fetch {} from: set `embeddings.pull_url` to that of a folder with its files, or give it \
         with --from URL",
        pull::MODEL
    ))
}

/// What the operator does with the model now.
fn next(folder: &Path, out: Out<'_>) -> Result<(), Error> {
    writeln!(
        out,
        "\nTo use it, set in tidegate.toml and restart:\n\n[embeddings]\nprovider = \"local\""
    )?;
    if folder != knowledge::EmbeddingOptions::default().folder {
        let folder = toml_text(&folder.display().to_string());
        writeln!(out, "folder = {folder}\nmodel = {}", toml_text(pull::MODEL))?;
    }
    writeln!(
        out,
        "\nThe documents are embedded anew in the background; `tidegate kb status` shows how far that is."
    )?;
    if !cfg!(feature = "local-embedder") {
        writeln!(
            out,
            "This program was built without local models. The files are good, and wait for one that is built by \
             `cargo build --release --features local-embedder`."
        )?;
    }
    Ok(())
}

fn toml_text(text: &str) -> String {
    toml::Value::String(text.to_owned()).to_string()
}

/// A bar for the file that comes, on standard error; nothing where that is no terminal.
#[derive(Debug, Default)]
struct Bars {
    file: String,
    bar: Option<ProgressBar>,
    /// Files that were there.
    kept: usize,
}

impl Bars {
    fn show(&mut self, progress: pull::Progress) {
        if progress.kept {
            self.kept += 1;
            return;
        }
        if progress.file != self.file {
            self.end();
            let bar = ProgressBar::new(progress.bytes_total);
            // A template that cannot be read leaves the plain bar.
            let template = "{msg} {wide_bar} {bytes}/{total_bytes} {bytes_per_sec} {eta}";
            if let Ok(style) = ProgressStyle::with_template(template) {
                bar.set_style(style);
            }
            bar.set_message(progress.file.clone());
            self.file = progress.file;
            self.bar = Some(bar);
        }
        if let Some(bar) = &self.bar {
            bar.set_position(progress.bytes);
        }
    }

    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// What one vector says of its embedder.
#[derive(Debug, Serialize)]
struct Tried {
    model: String,
    dimensions: usize,
    tokens: usize,
    tokens_max: usize,
    micros: u64,
}

/// Makes one vector.
async fn test(settings: &Settings, command: &args::embed::Test, out: Out<'_>) -> Result<(), Error> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::new(settings.zone.clone()));
    let entropy: Arc<dyn Entropy> = Arc::new(OsEntropy);
    let embedder = knowledge::embedder(settings, &clock, &entropy).await?;
    let Some(embedder) = embedder else {
        let text = "no embedder is configured (`embeddings.provider` is `none`): searches go by words";
        return Err(Error::Refused(text.to_owned()));
    };
    let begin = clock.now();
    let vectors = embedder.embed(&[&command.text], Purpose::Query).await;
    let took = clock.now().duration_since(begin);
    let refused = |problem: &dyn std::fmt::Display| {
        Error::Refused(format!("`{}` made no vector: {problem}", embedder.model().id))
    };
    let vector = vectors
        .map_err(|error| refused(&error))?
        .into_iter()
        .next()
        .flatten();
    let vector = vector.ok_or_else(|| refused(&"the text holds nothing that it knows"))?;
    let tried = Tried {
        model: embedder.model().id.clone(),
        dimensions: vector.len(),
        tokens: embedder.tokens(&command.text),
        tokens_max: embedder.model().tokens_max,
        micros: u64::try_from(took.as_micros()).unwrap_or_default(),
    };
    if command.output.json {
        return Ok(output::json(out, &tried)?);
    }
    for (name, value) in [
        ("Model", tried.model),
        ("Dimensions", tried.dimensions.to_string()),
        (
            "Tokens",
            format!("{} of at most {}", tried.tokens, tried.tokens_max),
        ),
        ("Time", format!("{} µs", tried.micros)),
    ] {
        writeln!(out, "{name:<11} {}", output::plain(&value))?;
    }
    Ok(())
}
