//! `tidegate triage calibrate`: a person marks near misses, and the threshold follows from the marks.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{BufRead, ErrorKind},
    path::Path,
};

use tidegate_core::port::OperatorFiles as _;
use tidegate_engine::routing::{ScoreKind, example_ids};
use tidegate_io::{operator_files::Disk, terminal::SingleKeys};

use super::{
    Origin, config_file, kind_name,
    labels::{Labels, Mark},
    log,
    threshold::{self, Found},
};
use crate::{
    cli::{
        args,
        error::Error,
        output::{self, Out},
    },
    config::Settings,
};

/// Questions that are put before a person in one go, those nearest to the threshold.
const QUESTIONS_MAX: usize = 1_000;

/// The largest configuration file that is changed, in bytes.
const FILE_BYTES_MAX: usize = 1 << 20;

/// Digits of a threshold that are kept.
const DIGITS: f64 = 10_000.0;

/// A question that may be marked.
#[derive(Debug, Clone)]
struct Candidate {
    line: log::Line,
    score: f64,
    /// How far its score lies from the threshold.
    distance: f64,
}

/// Marks, finds, and prints or writes.
pub(super) fn run(
    settings: &Settings,
    file: &Path,
    command: &args::triage::Calibrate,
    keys: &mut dyn BufRead,
    out: Out<'_>,
) -> Result<(), Error> {
    let max = command.max_false_positives;
    if !(0.0..1.0).contains(&max) {
        return Err(Error::Usage(
            "--max-false-positives is a share from 0 to 1, such as 0.02".into(),
        ));
    }
    let mut labels = Labels::open(command.labels.as_deref(), &settings.logs)?;
    let origin = origin(settings, &labels, command.model.as_deref(), &mut *out)?;
    if !command.no_ask {
        let candidates = candidates(settings, &origin, &labels)?;
        ask(
            &candidates,
            &origin,
            &mut labels,
            &examples(settings),
            keys,
            &mut *out,
        )?;
    }
    let (about, tasks) = (
        labels.scores(&origin, Mark::About),
        labels.scores(&origin, Mark::Task),
    );
    writeln!(
        out,
        "{} marked as about the agent, {} as tasks, in {}",
        about.len(),
        tasks.len(),
        output::plain(&labels.path().display().to_string())
    )?;
    let needed = threshold::tasks_needed(max);
    let few = (about.len() < threshold::ABOUT_MIN || tasks.len() < needed).then(|| {
        format!(
            "too few marks for a rate of {max}: mark at least {} questions about the agent and {needed} tasks",
            threshold::ABOUT_MIN
        )
    });
    let found = threshold::find(&about, &tasks, max);
    match (few, found) {
        (Some(few), _) if command.write => Err(Error::Refused(few)),
        (few, Some(found)) => {
            let lines = settings_of(&origin, &found);
            print(&found, &lines, few.as_deref(), &mut *out)?;
            if command.write {
                write(file, &lines, out)
            } else {
                Ok(())
            }
        }
        (Some(few), None) => Ok(writeln!(out, "{few}")?),
        (None, None) => Err(Error::Refused(format!(
            "no threshold keeps the rate of {max}: every marked question about the agent scores below too many \
             tasks; add examples and counterexamples, or allow a higher rate"
        ))),
    }
}

/// What is calibrated: the one origin of the log's open lines, or the newest of `model`.
fn origin(settings: &Settings, labels: &Labels, model: Option<&str>, out: Out<'_>) -> Result<Origin, Error> {
    // In the order of their newest line, newest last. There are as many as there were models and edits of lists.
    let mut seen: Vec<Origin> = Vec::new();
    log::read(&settings.logs, |line| {
        if let Some(origin) = line.origin().filter(|_| line.is_open()) {
            seen.retain(|other| *other != origin);
            seen.push(origin);
        }
    })?;
    for marked in labels.origins() {
        if !seen.contains(&marked) {
            seen.insert(0, marked);
        }
    }
    let named: Vec<String> = seen
        .iter()
        .map(|origin| {
            let score = kind_name(origin.kind);
            output::plain(&format!("{} (lists {}, {score})", origin.model, origin.lists))
        })
        .collect();
    let fitting: Vec<&Origin> = seen
        .iter()
        .filter(|origin| model.is_none_or(|model| model == origin.model))
        .collect();
    match (fitting.as_slice(), model) {
        ([], Some(model)) => Err(Error::NotFound(format!(
            "the log holds no score of `{}`; it holds those of: {}",
            output::plain(model),
            if named.is_empty() {
                "none".to_owned()
            } else {
                named.join(", ")
            }
        ))),
        ([], None) => Err(Error::NotFound(
            "the log holds no score that a threshold decides on yet; let the gate see some questions first"
                .into(),
        )),
        ([.., newest], Some(_)) => {
            if fitting.len() > 1 {
                let version = output::plain(&newest.lists);
                writeln!(
                    out,
                    "lines of older lists or other scores are left out; these are of lists {version}"
                )?;
            }
            Ok((*newest).clone())
        }
        ([only], None) => Ok((*only).clone()),
        ([..], None) => Err(Error::Refused(format!(
            "scores of different models or lists cannot be compared, and the log holds those of {}; name one with \
             --model, which takes the newest of its lists",
            named.join(", ")
        ))),
    }
}

/// Questions without a mark, each once, those nearest to the threshold first.
fn candidates(settings: &Settings, origin: &Origin, labels: &Labels) -> Result<Vec<Candidate>, Error> {
    let mut kept: Vec<Candidate> = Vec::new();
    let trim = |kept: &mut Vec<Candidate>| {
        kept.sort_by(|a, b| a.distance.total_cmp(&b.distance));
        let mut ids = BTreeSet::new();
        kept.retain(|candidate| ids.insert(candidate.line.id().to_owned()));
        kept.truncate(QUESTIONS_MAX);
    };
    log::read(&settings.logs, |line| {
        let Some(score) = line
            .score
            .filter(|_| line.is_open() && line.origin().as_ref() == Some(origin))
        else {
            return;
        };
        if labels.holds(line.id(), origin) {
            return;
        }
        // Without a threshold the highest scores come first: one will lie among them.
        let distance = line
            .threshold
            .map_or(-score, |threshold| (score - threshold).abs());
        kept.push(Candidate {
            line,
            score,
            distance,
        });
        if kept.len() >= 2 * QUESTIONS_MAX {
            trim(&mut kept);
        }
    })?;
    trim(&mut kept);
    Ok(kept)
}

/// The texts of examples by the ids of the log; of lists that cannot be read, none.
fn examples(settings: &Settings) -> BTreeMap<String, String> {
    let routing = &settings.config.routing;
    [&routing.examples_file, &routing.counterexamples_file]
        .into_iter()
        .filter_map(|file| Disk.read(file, routing.file_bytes_max).ok())
        .flat_map(|text| example_ids(&text).collect::<Vec<_>>())
        .collect()
}

fn ask(
    candidates: &[Candidate],
    origin: &Origin,
    labels: &mut Labels,
    examples: &BTreeMap<String, String>,
    keys: &mut dyn BufRead,
    out: Out<'_>,
) -> Result<(), Error> {
    if candidates.is_empty() {
        return Ok(writeln!(out, "every question of the log is marked already")?);
    }
    writeln!(
        out,
        "{} questions without a mark, nearest to the threshold first. Keys: a about the agent, t task, s skip, q quit.",
        candidates.len()
    )?;
    if candidates.iter().all(|candidate| candidate.line.query.is_none()) {
        writeln!(
            out,
            "The log holds no text of questions. To see it, set `routing.log_query = \"text\"` and let new questions come."
        )?;
    }
    let _keys = SingleKeys::start();
    for (at, candidate) in candidates.iter().enumerate() {
        show(at + 1, candidates.len(), candidate, examples, &mut *out)?;
        let mark = loop {
            write!(out, "a/t/s/q: ")?;
            out.flush()?;
            let key = next_key(keys)?;
            writeln!(
                out,
                "{}",
                key.map_or_else(String::new, |key| output::plain(&key.to_string()))
            )?;
            match key {
                Some('a') => break Some(Mark::About),
                Some('t') => break Some(Mark::Task),
                Some('s') => break None,
                Some('q') | None => return Ok(()),
                Some(_) => {}
            }
        };
        if let Some(mark) = mark {
            labels.add(candidate.line.id(), mark, origin, candidate.score)?;
        }
    }
    Ok(())
}

fn show(
    at: usize,
    count: usize,
    candidate: &Candidate,
    examples: &BTreeMap<String, String>,
    out: Out<'_>,
) -> Result<(), Error> {
    let line = &candidate.line;
    let what = match (&line.query, &line.query_hash) {
        (Some(text), _) => format!("\"{}\"", output::plain(text)),
        (None, Some(hash)) => format!("question {}", output::plain(hash)),
        (None, None) => format!("request {}", output::plain(&line.request)),
    };
    let threshold = line
        .threshold
        .map_or_else(|| "none".to_owned(), |threshold| format!("{threshold:.3}"));
    writeln!(out, "\n{at}/{count}  {what}")?;
    writeln!(
        out,
        "  score {:.3}, threshold {threshold}, decided: {}",
        candidate.score,
        output::plain(&line.decision)
    )?;
    for (name, near) in [
        ("example", line.nearest.first()),
        ("counterexample", line.nearest_negative.first()),
    ] {
        if let Some(near) = near {
            let text = examples.get(&near.id).unwrap_or(&near.id);
            writeln!(
                out,
                "  nearest {name}: {} ({:.2})",
                output::plain(text),
                near.cosine
            )?;
        }
    }
    Ok(())
}

/// The next key that shows something; `None` at the end of the input.
fn next_key(keys: &mut dyn BufRead) -> Result<Option<char>, Error> {
    let mut byte = [0];
    loop {
        match keys.read(&mut byte) {
            Ok(0) => return Ok(None),
            Ok(_) if byte.first().is_some_and(u8::is_ascii_whitespace) => {}
            Ok(_) => return Ok(byte.first().map(|byte| char::from(byte.to_ascii_lowercase()))),
            Err(problem) if problem.kind() == ErrorKind::Interrupted => {}
            Err(problem) => return Err(problem.into()),
        }
    }
}

/// The settings that a threshold needs to count.
fn settings_of(origin: &Origin, found: &Found) -> Vec<(&'static str, String)> {
    let text = |text: &str| toml::Value::String(text.to_owned()).to_string();
    // Rounded up, so that what lies just below does not fire.
    let threshold = (found.threshold * DIGITS).ceil() / DIGITS;
    let mut lines = vec![
        ("embedding_threshold", toml::Value::Float(threshold).to_string()),
        ("embedding_threshold_model", text(&origin.model)),
        ("embedding_threshold_lists", text(&origin.lists)),
    ];
    if origin.kind != ScoreKind::Probe {
        lines.push(("embedding_score", text(kind_name(origin.kind))));
    }
    lines
}

fn print(found: &Found, lines: &[(&str, String)], few: Option<&str>, out: Out<'_>) -> Result<(), Error> {
    writeln!(
        out,
        "of the marked, {:.3} of the questions about the agent and {:.3} of the tasks lie at or above it:\n",
        found.recall, found.false_positives
    )?;
    writeln!(out, "[routing]")?;
    for (key, value) in lines {
        writeln!(out, "{key} = {value}")?;
    }
    if let Some(few) = few {
        writeln!(out, "\n{few}")?;
    }
    Ok(())
}

fn write(file: &Path, lines: &[(&str, String)], out: Out<'_>) -> Result<(), Error> {
    let shown = output::plain(&file.display().to_string());
    let (text, mode) = match file.metadata() {
        Ok(metadata) => {
            let text = Disk
                .read(file, FILE_BYTES_MAX)
                .map_err(|problem| Error::Refused(problem.to_string()))?;
            (text, Some(metadata.permissions()))
        }
        Err(problem) if problem.kind() == ErrorKind::NotFound => (String::new(), None),
        Err(problem) => return Err(problem.into()),
    };
    let new = config_file::with_routing(&text, lines).map_err(|problem| {
        Error::Refused(format!(
            "{shown} was left alone, since {problem}; put the lines above into it"
        ))
    })?;
    // Where it is a link, the file behind it is what is read.
    let file = file.canonicalize().unwrap_or_else(|_| file.to_path_buf());
    tidegate_io::files::write_private(&file, new.as_bytes())?;
    if let Some(mode) = mode {
        std::fs::set_permissions(&file, mode)?;
    }
    writeln!(out, "\nwritten to {shown}; it counts from the next start")?;
    Ok(())
}
