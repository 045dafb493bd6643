//! The write gate: what of a turn may become an observation about the person who wrote it.
//!
//! A candidate comes from an extractor that may be wrong, or fooled on purpose. Nothing of what it claims is believed:
//! the words must stand in the newest turn of a person, outside of everything that was quoted, pasted or seen elsewhere
//! ([`Reading`]); they must say the value; and the sentence must be a statement of the person, of themselves, of now, and
//! meant. The extractor's own flags can only take away.
//!
//! English is understood, and the simplest German. A sentence that is not understood is refused: what is lost will be said
//! again. Everything is pure, and linear in what is read.

mod assertion;
mod clause;
mod cleft;
mod content;
mod cues;
mod given;
mod grade;
mod lead;
mod overlap;
mod place;
mod reason;
mod relation;
mod remains;
mod school;
mod sentence;
mod subject;
mod text;
mod value;
#[rustfmt::skip]
mod words;

use std::{collections::HashSet, ops::Range, sync::OnceLock};

use tidegate_core::memory::{Stance, Voice};
use tidegate_gate::guards::secrets::Redactor;

use self::{
    assertion::Said, cues::Scope, overlap::Index, relation::Relation, remains::Cuts, sentence::Everything,
};
pub(crate) use self::{
    clause::clauses,
    cues::{is_adverb, is_any},
    grade::grades,
    sentence::{Sentence, Token, sentences},
    text::Folded,
};
pub use self::{
    given::{given_value, given_words},
    reason::Reason,
    remains::Cut,
};
use crate::kinds::{Kind, Kinds, normalise};

/// The longest turn of which anything is kept, in bytes.
pub const TURN_BYTES_MAX: usize = 32 * 1024;

/// The longest quote, in characters.
pub const QUOTE_CHARS_MAX: usize = 300;

/// How many candidates of one turn are looked at.
pub const CANDIDATES_MAX: usize = 64;

/// What is shown to a model for what was cut out of a sentence.
const GAP_SHOWN: &str = "[…]";

/// Where a text that was in view came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// A passage of a document.
    Retrieved,
    /// What a tool, a page or another server returned.
    Tool,
    /// What the assistant said before the turn. What it said in reply is not among them: it may repeat the person.
    Assistant,
    /// What the client set down as instructions.
    System,
    /// What was cut out of the person's earlier messages.
    Earlier,
}

/// A text that was in view and is not the newest turn.
#[derive(Debug, Clone, Copy)]
pub struct Other<'t> {
    /// Where it came from.
    pub source: Source,
    /// The text.
    pub text: &'t str,
}

/// What an extractor found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Of which kind.
    pub kind: String,
    /// The value, in any form.
    pub value: String,
    /// The words that say so.
    pub quote: String,
    /// Whether the extractor takes it to be said outright.
    pub is_explicit: bool,
    /// Whether the extractor takes it to be said of the person.
    pub is_first_person: bool,
}

/// What may become an observation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Accepted {
    /// Of which kind.
    pub kind: String,
    /// The value as it is compared.
    pub value: String,
    /// The person's own words, as they stand in the turn.
    pub quote: String,
    /// In which way it was said: stated, or with the request to remember it.
    pub voice: Voice,
    /// Whether it is so, or no longer.
    pub stance: Stance,
    /// Whether it was said outright.
    pub is_explicit: bool,
    /// Whether it was said of the person.
    pub is_first_person: bool,
}

/// Why a candidate may not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", reason.sentence())]
pub struct Refusal {
    /// The reason.
    pub reason: Reason,
}

/// How much is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Of one turn.
    pub per_turn: usize,
    /// Of one person on one local day.
    pub per_day: usize,
    /// Of one person.
    pub per_user: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            per_turn: 5,
            per_day: 20,
            per_user: 5_000,
        }
    }
}

/// How much of a person is kept already.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Held {
    /// Of this local day.
    pub today: usize,
    /// In all.
    pub total: usize,
}

/// A turn that was read: what remains of it, and what stood beside it.
#[derive(Debug)]
pub struct Reading<'t> {
    raw: &'t str,
    folded: Folded,
    cuts: Cuts,
    sentences: Vec<Sentence>,
    /// The sentences of the whole turn, read when a refusal is to be explained.
    everything: OnceLock<Vec<Sentence>>,
    /// From where on sentences are not meant, and why.
    frame: Option<(usize, Reason)>,
    /// Nothing, if there was too much in view.
    index: Option<Index>,
    is_too_long: bool,
}

impl<'t> Reading<'t> {
    /// Reads the newest turn of a person, and what else was in view.
    pub fn of<'o>(raw: &'t str, others: impl IntoIterator<Item = Other<'o>>) -> Self {
        let is_too_long = raw.len() > TURN_BYTES_MAX;
        let folded = if is_too_long {
            Folded::default()
        } else {
            Folded::of(raw)
        };
        let (cuts, sentences) = remains::cut(if is_too_long { "" } else { raw }, &folded);
        let frame = sentences.iter().enumerate().find_map(|(at, sentence)| {
            let (scope, reason) = cues::frame(sentence)?;
            Some((at, scope, reason))
        });
        // What takes everything back counts wherever it stands.
        let taken_back = sentences
            .iter()
            .filter_map(cues::frame)
            .find(|(scope, _)| *scope == Scope::Turn);
        let frame = match (taken_back, frame) {
            (Some((_, reason)), _) => Some((0, reason)),
            (None, Some((at, _, reason))) => Some((at, reason)),
            (None, None) => None,
        };
        Self {
            raw,
            folded,
            cuts,
            sentences,
            everything: OnceLock::new(),
            frame,
            index: Index::of(others),
            is_too_long,
        }
    }

    /// What remains: the sentences of the person, each on a line, with `[…]` for what was cut out of them. Only this is
    /// shown to a model that looks for facts.
    pub fn own_words(&self) -> String {
        let lines: Vec<String> = self
            .sentences
            .iter()
            .map(|sentence| {
                let parts: Vec<&str> = self
                    .runs(sentence.span())
                    .into_iter()
                    .map(|(run, is_cut)| if is_cut { GAP_SHOWN } else { self.slice(run) })
                    .filter(|part| !part.is_empty())
                    .collect();
                parts.join(" ")
            })
            .collect();
        lines.join("\n")
    }

    /// The parts of a stretch of the folded text, each with whether it is cut.
    fn runs(&self, stretch: Range<usize>) -> Vec<(Range<usize>, bool)> {
        let mut runs: Vec<(Range<usize>, bool)> = Vec::new();
        for at in stretch {
            let is_cut = self.cuts.at(at).is_some();
            match runs.last_mut() {
                Some((run, was_cut)) if *was_cut == is_cut => run.end = at + 1,
                Some(_) | None => runs.push((at..at + 1, is_cut)),
            }
        }
        runs
    }

    /// The parts of the turn that do not count as the person's own words: in later turns they are [`Source::Earlier`].
    pub fn cut_parts(&self) -> Vec<&'t str> {
        self.runs(0..self.folded.text.len())
            .into_iter()
            .filter(|(_, is_cut)| *is_cut)
            .map(|(run, _)| self.slice(run))
            .collect()
    }

    /// The sentences that remain.
    pub(crate) fn sentences(&self) -> &[Sentence] {
        &self.sentences
    }

    /// The words as they were sent.
    pub(crate) fn slice(&self, at: Range<usize>) -> &'t str {
        let (from, to) = (self.folded.raw_at(at.start), self.folded.raw_at(at.end));
        self.raw.get(from..to).unwrap_or_default().trim()
    }

    /// Every place in what remains at which the words stand in a row.
    fn find(&self, words: &[String]) -> Vec<(usize, Range<usize>)> {
        find_all(&self.sentences, words)
    }

    /// Why words that do not stand in what remains were not found.
    fn why_missing(&self, words: &[String]) -> Reason {
        if self.is_too_long {
            return Reason::TurnLength;
        }
        let everything = self
            .everything
            .get_or_init(|| sentences(&self.folded, &Everything));
        let found = find_all(everything, words).into_iter().next();
        let cut = found.and_then(|(index, range)| {
            let span = everything.get(index)?.span_of(range);
            span.into_iter().find_map(|at| self.cuts.at(at))
        });
        cut.map_or(Reason::NotSaid, Reason::Cut)
    }
}

fn find_all(sentences: &[Sentence], words: &[String]) -> Vec<(usize, Range<usize>)> {
    let mut found = Vec::new();
    let Some(first) = words.first() else { return found };
    for (index, sentence) in sentences.iter().enumerate() {
        for start in 0..sentence.tokens.len() {
            if sentence.word(start) == first
                && let Some(end) = ends(sentence, start, words)
            {
                found.push((index, start..end));
            }
        }
    }
    found
}

/// Where the words end that begin at a place. Marks between them do not count; gaps do.
fn ends(sentence: &Sentence, start: usize, words: &[String]) -> Option<usize> {
    let mut at = start;
    for word in words {
        while at > start
            && sentence
                .tokens
                .get(at)
                .is_some_and(|token| !token.is_word() && token.word != sentence::GAP)
        {
            at += 1;
        }
        if sentence.word(at) != word {
            return None;
        }
        at += 1;
    }
    Some(at)
}

/// The gate.
#[derive(Debug, Clone, Copy)]
pub struct Boundary<'b> {
    /// What may be kept at all.
    pub kinds: &'b Kinds,
    /// How much.
    pub limits: Limits,
    /// Which secrets are known.
    pub redactor: &'b Redactor,
}

impl Boundary<'_> {
    /// Judges what an extractor found in a turn, in the order in which it was found. Candidates beyond
    /// [`CANDIDATES_MAX`] are not looked at.
    pub fn judge(
        &self,
        reading: &Reading<'_>,
        held: Held,
        candidates: &[Candidate],
    ) -> Vec<Result<Accepted, Refusal>> {
        let mut known = HashSet::new();
        let mut kept = 0;
        candidates
            .iter()
            .take(CANDIDATES_MAX)
            .map(|candidate| {
                let accepted = self.examine(reading, candidate)?;
                let cap = if !known.insert((accepted.kind.clone(), accepted.value.clone())) {
                    Some(Reason::Repeated)
                } else if kept >= self.limits.per_turn {
                    Some(Reason::TurnCap)
                } else if held.today + kept >= self.limits.per_day {
                    Some(Reason::DayCap)
                } else if held.total + kept >= self.limits.per_user {
                    Some(Reason::UserCap)
                } else {
                    None
                };
                if let Some(reason) = cap {
                    return Err(reason);
                }
                kept += 1;
                Ok(accepted)
            })
            .map(|verdict| verdict.map_err(|reason| Refusal { reason }))
            .collect()
    }

    fn examine(&self, reading: &Reading<'_>, candidate: &Candidate) -> Result<Accepted, Reason> {
        let kind = self.kinds.get(&candidate.kind).ok_or(Reason::UnknownKind)?;
        let length = candidate.quote.chars().take(QUOTE_CHARS_MAX + 1).count();
        if length == 0 || length > QUOTE_CHARS_MAX {
            return Err(Reason::QuoteLength);
        }
        let quoted = sentences(&Folded::of(&candidate.quote), &Everything);
        if quoted.len() > 1 {
            return Err(Reason::SeveralSentences);
        }
        let words = sentence::words(&candidate.quote);
        let places = reading.find(&words);
        if places.is_empty() {
            return Err(reading.why_missing(&words));
        }
        let value = normalise(kind, &candidate.value).map_err(Reason::Value)?;
        if kind.explicit_only && !(candidate.is_explicit && candidate.is_first_person) {
            return Err(Reason::Concluded);
        }
        let mut first_fault = None;
        for (index, quote) in places {
            match self.examine_at(reading, index, quote.clone(), kind, candidate, &value) {
                Ok(said) => {
                    let span = reading
                        .sentences
                        .get(index)
                        .map_or(0..0, |sentence| sentence.span_of(quote));
                    return Ok(Accepted {
                        kind: kind.name.clone(),
                        value,
                        quote: reading.slice(span).to_owned(),
                        voice: said.voice,
                        stance: said.stance,
                        is_explicit: candidate.is_explicit,
                        is_first_person: candidate.is_first_person,
                    });
                }
                Err(fault) => {
                    first_fault.get_or_insert(fault);
                }
            }
        }
        Err(first_fault.unwrap_or(Reason::NotSaid))
    }

    fn examine_at(
        &self,
        reading: &Reading<'_>,
        index: usize,
        quote: Range<usize>,
        kind: &Kind,
        candidate: &Candidate,
        value: &str,
    ) -> Result<Said, Reason> {
        let sentence = reading.sentences.get(index).ok_or(Reason::NotSaid)?;
        let span = sentence.span();
        if sentence.is_mixed || reading.folded.is_disguised(span.start, span.end) {
            return Err(Reason::Disguised);
        }
        if let Some((_, reason)) = reading.frame.filter(|(from, _)| index >= *from) {
            return Err(reason);
        }
        content::sentence(sentence, reading.slice(span), self.redactor)?;
        let places = value::places(sentence, quote.clone(), kind, &candidate.value, value);
        let text = reading.slice(sentence.span_of(quote.clone()));
        content::words(sentence, quote.clone(), value, text)?;
        let mut fault = Reason::Unsupported;
        for (at, target) in places.into_iter().enumerate() {
            let said = examine_clause(reading, sentence, &quote, target.clone(), value)
                .and_then(|()| assertion::examine(sentence, target, Relation::of(kind), kind.explicit_only));
            match said {
                Ok(said) => return Ok(said),
                Err(reason) if at == 0 => fault = reason,
                Err(_) => {}
            }
        }
        Err(fault)
    }
}

/// The words around the value stand nowhere else, and order nothing.
fn examine_clause(
    reading: &Reading<'_>,
    sentence: &Sentence,
    quote: &Range<usize>,
    target: Range<usize>,
    value: &str,
) -> Result<(), Reason> {
    let index = reading.index.as_ref().ok_or(Reason::TooMuchInView)?;
    let words = |range: Range<usize>| -> Vec<String> {
        let tokens = sentence.tokens.get(range).unwrap_or_default();
        tokens
            .iter()
            .filter(|token| token.is_word())
            .map(|token| token.word.clone())
            .collect()
    };
    let clause = clauses(sentence)
        .into_iter()
        .find(|clause| clause.contains(&target.start))
        .unwrap_or(target);
    let copied = index
        .holds(&words(quote.clone()))
        .or_else(|| index.holds(&words(clause.clone())))
        .or_else(|| index.holds_part(&words(0..sentence.tokens.len())));
    if let Some(source) = copied {
        return Err(Reason::Overlap(source));
    }
    content::words(
        sentence,
        clause.clone(),
        value,
        reading.slice(sentence.span_of(clause)),
    )
}

#[cfg(test)]
mod tests;
