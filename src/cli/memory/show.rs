//! What `memory` prints.

use serde_json::{Value, json};
use tidegate_core::{
    id::UserId,
    knowledge::Leg,
    memory::{FactState, Stance, Voice},
    port::{Remembered, Switches},
};
use tidegate_engine::memory::Found;
use tidegate_memory::{
    evidence::{Quote, View},
    kinds::{Kind, Kinds, ValueType},
};

use super::short;
use crate::cli::{
    error::Error,
    output::{self, Out},
};

/// Characters of a value in a table; JSON has all of them.
const VALUE_CHARS: usize = 36;

/// What a list says besides the facts.
pub(super) struct About<'a> {
    pub(super) user: &'a UserId,
    pub(super) pending: u64,
    pub(super) switches: Switches,
    pub(super) is_off: bool,
}

/// What is remembered of a person.
pub(super) fn list(views: &[View], about: &About<'_>, is_json: bool, out: Out<'_>) -> Result<(), Error> {
    if is_json {
        let value = json!({
            "user": about.user,
            "facts": views,
            "pending": about.pending,
            "learning": about.switches.learning && !about.is_off,
            "recall": about.switches.recall && !about.is_off,
        });
        return Ok(output::json(out, &value)?);
    }
    let user = output::plain(about.user.as_str());
    if views.is_empty() {
        writeln!(out, "Nothing is remembered of {user}.")?;
    } else {
        let rows: Vec<Vec<String>> = views.iter().map(row).collect();
        let head = ["ID", "ABOUT", "VALUE", "STATE", "DAYS", "LAST SAID"];
        output::columns(&mut *out, &head, &rows)?;
    }
    match about.pending {
        0 => {}
        1 => writeln!(out, "\n1 turn waits to be learned from.")?,
        turns => writeln!(out, "\n{turns} turns wait to be learned from.")?,
    }
    if about.is_off {
        writeln!(
            out,
            "\nMemory is switched off (`memory.enabled`): nothing is learned, and the agent is told nothing."
        )?;
    }
    if !about.switches.learning {
        writeln!(out, "\nLearning is off for {user}.")?;
    }
    if !about.switches.recall {
        writeln!(out, "\nRecall is off for {user}.")?;
    }
    Ok(())
}

fn row(view: &View) -> Vec<String> {
    let days = match view.state {
        FactState::Candidate => format!("{} of {}", view.days, view.days_to_stable),
        FactState::Stable
        | FactState::Contested
        | FactState::Superseded
        | FactState::Expired
        | FactState::Retracted => view.days.to_string(),
    };
    let last = view.evidence.last();
    vec![
        short(&view.id),
        view.label.clone(),
        cut(&view.shown),
        view.state.name().to_owned(),
        days,
        last.map_or_else(|| "-".to_owned(), |quote| quote.day.to_string()),
    ]
}

/// A value as far as a table has room for it.
fn cut(text: &str) -> String {
    if text.chars().count() <= VALUE_CHARS {
        return text.to_owned();
    }
    let mut cut: String = text.chars().take(VALUE_CHARS - 1).collect();
    cut.push('…');
    cut
}

/// Why a fact is believed, or not.
pub(super) fn why(view: &View, is_json: bool, out: Out<'_>) -> Result<(), Error> {
    if is_json {
        return Ok(output::json(out, view)?);
    }
    writeln!(
        out,
        "{}: {} ({})",
        output::plain(&view.label),
        output::plain(&view.shown),
        view.state.name()
    )?;
    writeln!(out, "{}.", output::plain(&capitalised(&view.why)))?;
    let since = format!("since {:.0}", view.valid_from);
    match view.valid_to {
        None => writeln!(out, "Holds {since}.")?,
        Some(end) => writeln!(out, "Held {since}, until {end:.0}.")?,
    }
    if let Some(other) = &view.other {
        writeln!(
            out,
            "To be read with {}: {}.",
            short(&other.id),
            output::plain(&other.value)
        )?;
    }
    writeln!(out, "\nWhat the person said:")?;
    for quote in &view.evidence {
        writeln!(
            out,
            "  {}  “{}”  ({})",
            quote.day,
            output::plain(&quote.quote),
            way(quote)
        )?;
    }
    Ok(writeln!(out, "\n{}", view.id)?)
}

/// In which way something was said.
fn way(quote: &Quote) -> String {
    let voice = match quote.voice {
        Voice::Stated => "in passing",
        Voice::Remembered => "to be remembered",
        Voice::Corrected => "by hand",
        Voice::Imported => "imported",
    };
    let stance = match quote.stance {
        Stance::Affirmed => "",
        Stance::Retracted => ", taken back",
    };
    match quote.voice {
        Voice::Corrected => format!("{voice}{stance}"),
        Voice::Stated | Voice::Remembered | Voice::Imported => {
            format!("{voice}{stance}, found by {}", output::plain(&quote.extractor))
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|letter| letter.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// What a search found.
pub(super) fn found(found: &[Found], user: &UserId, is_json: bool, out: Out<'_>) -> Result<(), Error> {
    let leg = |leg: Option<Leg>| leg.map(|Leg { rank, score }| json!({"rank": rank, "score": score}));
    if is_json {
        let views: Vec<Value> = found
            .iter()
            .map(|found| {
                json!({
                    "id": found.fact,
                    "kind": found.kind,
                    "text": found.text,
                    "score": found.score,
                    "words": leg(found.words),
                    "vectors": leg(found.vectors),
                })
            })
            .collect();
        return Ok(output::json(out, &json!({"user": user, "found": views}))?);
    }
    if found.is_empty() {
        let user = output::plain(user.as_str());
        return Ok(writeln!(
            out,
            "Nothing that is remembered of {user} is about this."
        )?);
    }
    let leg = |leg: Option<Leg>| {
        leg.map_or_else(
            || "-".to_owned(),
            |Leg { rank, score }| format!("{rank} ({score:.3})"),
        )
    };
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|found| {
            vec![
                format!("{:.3}", found.score),
                leg(found.words),
                leg(found.vectors),
                short(&found.fact),
                cut(&found.text),
            ]
        })
        .collect();
    let head = ["SCORE", "WORDS", "MEANING", "ID", "FACT"];
    Ok(output::columns(out, &head, &rows)?)
}

/// What may be remembered at all.
pub(super) fn kinds(kinds: &Kinds, is_json: bool, out: Out<'_>) -> Result<(), Error> {
    if is_json {
        let views: Vec<Value> = kinds.iter().map(kind).collect();
        return Ok(output::json(out, &views)?);
    }
    let rows: Vec<Vec<String>> = kinds
        .iter()
        .map(|kind| {
            let period = match kind.reconfirm_after_days {
                0 => "-".to_owned(),
                days => format!("{days} days"),
            };
            vec![
                kind.name.clone(),
                kind.label.clone(),
                if kind.is_single { "one" } else { "several" }.to_owned(),
                kind.days_to_stable.to_string(),
                period,
            ]
        })
        .collect();
    let head = ["KIND", "ABOUT", "VALUES", "DAYS TO BELIEVE", "TOO OLD AFTER"];
    Ok(output::columns(out, &head, &rows)?)
}

fn kind(kind: &Kind) -> Value {
    let value = match kind.value {
        ValueType::Grade => "grade",
        ValueType::Word => "word",
        ValueType::Name => "name",
        ValueType::Text => "text",
    };
    json!({
        "name": kind.name,
        "about": kind.about,
        "label": kind.label,
        "value": value,
        "single": kind.is_single,
        "explicit_only": kind.explicit_only,
        "days_to_stable": kind.days_to_stable,
        "reconfirm_after_days": kind.reconfirm_after_days,
        "retention_days": kind.retention_days,
    })
}

/// The people of a key.
pub(super) fn people(people: &[Remembered], is_json: bool, out: Out<'_>) -> Result<(), Error> {
    let name = |person: &Remembered| {
        let name = person.user.as_str().split_once(':');
        name.map(|(_, name)| name.to_owned())
    };
    if is_json {
        let views: Vec<Value> = people
            .iter()
            .map(|person| {
                json!({
                    "id": person.user,
                    "user": name(person),
                    "observations": person.observations,
                    "last_at": person.last_at.map(|time| time.to_string()),
                })
            })
            .collect();
        return Ok(output::json(out, &views)?);
    }
    if people.is_empty() {
        return Ok(writeln!(out, "Nobody is remembered.")?);
    }
    let rows: Vec<Vec<String>> = people
        .iter()
        .map(|person| {
            vec![
                name(person).unwrap_or_else(|| "(nobody named)".to_owned()),
                person.observations.to_string(),
                person
                    .last_at
                    .map_or_else(|| "-".to_owned(), |time| format!("{time:.0}")),
            ]
        })
        .collect();
    Ok(output::columns(out, &["USER", "SAYINGS", "LAST SAID"], &rows)?)
}
