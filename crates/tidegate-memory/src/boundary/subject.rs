//! How a clause speaks of the person: as who does something, as whose something is, or as whom it helps.

use std::ops::Range;

use super::{
    cleft, cues,
    cues::{is_adverb, is_any},
    reason::Reason,
    relation::Relation,
    sentence::Sentence,
    words::{CALLERS, HARMLESS, MARKS, OWN_VERBS, PUPILS},
};

/// How the clause speaks of the person.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Subject {
    /// "I teach …": where "I" stands.
    I(usize),
    /// "My class is …": where "my" stands.
    My(usize),
    /// "… is what I teach", "… is my subject": where the person is named, behind the value.
    Behind(usize),
    /// "… helps me": where the person is named, behind the value.
    Object(usize),
}

/// A clause with a value in it.
#[derive(Debug)]
pub(super) struct Clause<'s> {
    /// The sentence.
    pub(super) sentence: &'s Sentence,
    /// Where the clause stands in it.
    pub(super) at: Range<usize>,
    /// Where the value stands.
    pub(super) target: Range<usize>,
    /// How it speaks of the person.
    pub(super) subject: Subject,
}

impl Clause<'_> {
    /// What stands between the person and the value, both left out.
    pub(super) fn between(&self) -> Range<usize> {
        match self.subject {
            Subject::I(at) | Subject::My(at) => at + 1..self.target.start,
            Subject::Behind(at) | Subject::Object(at) => self.target.end..at,
        }
    }

    /// What is said of the person with the value: of "I live in Ohio and teach 4th grade", what stands behind "and".
    pub(super) fn predicate(&self, person: usize) -> Range<usize> {
        let word = |at: usize| self.sentence.word(at);
        let whole = person + 1..self.target.start;
        let verb = |from: usize| (from..whole.end).find(|at| !is_adverb(word(*at)));
        let is_one_of_several = verb(whole.start).is_some_and(|first| is_any(OWN_VERBS, word(first)));
        let last = whole.clone().rev().find(|at| {
            is_any(&["and", "und"], word(*at))
                && verb(at + 1).is_some_and(|verb| is_any(OWN_VERBS, word(verb)))
        });
        match last {
            Some(and) if is_one_of_several => and + 1..whole.end,
            Some(_) | None => whole,
        }
    }

    /// What stands behind the value.
    pub(super) fn tail(&self) -> Range<usize> {
        self.target.end..self.at.end.max(self.target.end)
    }

    /// Whether one of the words stands between two places.
    pub(super) fn has(&self, within: Range<usize>, words: &[&str]) -> bool {
        self.sentence.find(within, words).is_some()
    }
}

impl Subject {
    /// How the clause speaks of the person, or why it does not.
    pub(super) fn of(
        sentence: &Sentence,
        at: &Range<usize>,
        target: &Range<usize>,
        relation: Relation,
        is_strict: bool,
    ) -> Result<Self, Reason> {
        let word = |at: usize| sentence.word(at);
        let lead = at.start..target.start;
        let opener = word(at.start);
        if is_any(&["who", "whom", "whose", "which", "where"], opener) && lead.start > 0 {
            return Err(Reason::OtherPerson);
        }
        let asks_to_be_called = matches!(relation, Relation::Name)
            && sentence
                .find(lead.clone(), &["call me", "calls me", "nenn mich"])
                .is_some();
        if asks_to_be_called {
            let me = lead.clone().find(|at| is_any(&["me", "mich"], word(*at)));
            // "My brother calls me Dummy" gives nobody a name.
            let is_by_other = (lead.start..me.unwrap_or(lead.start)).any(|at| {
                !(is_any(CALLERS, word(at))
                    || is_any(HARMLESS, word(at))
                    || is_any(MARKS, word(at))
                    || is_adverb(word(at)))
            });
            return match me {
                Some(me) if !is_by_other => Ok(Self::I(me)),
                Some(_) => Err(Reason::OtherPerson),
                None => Err(Reason::NotFirstPerson),
            };
        }
        if let Some(i) = lead.clone().rev().find(|at| is_mine(sentence, *at, is_strict)) {
            return if cues::other_person(sentence, lead.start..i) && !is_remark(sentence, lead.start, i) {
                Err(Reason::OtherPerson)
            } else {
                Ok(Self::I(i))
            };
        }
        if let Some(my) = lead.clone().rev().find(|at| is_of_mine(sentence, *at)) {
            return owned(sentence, lead.start, my, target, relation).map(|()| Self::My(my));
        }
        if let (Some(me), false) = (cleft::person(sentence, lead.clone()), is_strict) {
            return Ok(Self::My(me));
        }
        if cues::other_person(sentence, lead.clone())
            || sentence.find(lead, &["the user", "this user"]).is_some()
        {
            return Err(Reason::OtherPerson);
        }
        behind(sentence, at, target, relation, is_strict).ok_or(Reason::NotFirstPerson)
    }
}

fn is_mine(sentence: &Sentence, at: usize, is_strict: bool) -> bool {
    is_any(&["i", "ich"], sentence.word(at)) || (!is_strict && sentence.word(at) == "we")
}

fn is_of_mine(sentence: &Sentence, at: usize) -> bool {
    is_any(
        &["my", "our", "mein", "meine", "meinen", "meiner"],
        sentence.word(at),
    )
}

/// Whether what is the person's is nobody else: "my son", "my class".
fn owned(
    sentence: &Sentence,
    start: usize,
    my: usize,
    target: &Range<usize>,
    relation: Relation,
) -> Result<(), Reason> {
    // What is said of a person directly may have them in it: "my son sleeps late on Sundays".
    let end = if target.start == my + 1 {
        target.end
    } else {
        target.start
    };
    let owned = my + 1..(my + 4).min(end);
    let is_person = owned.clone().any(|at| cues::is_person(sentence, at));
    let is_pupil = owned.into_iter().any(|at| {
        // The person's school is where they are.
        is_any(PUPILS, sentence.word(at)) && !(relation == Relation::Place && sentence.word(at) == "school")
    });
    if is_person || (is_pupil && !relation.is_of_pupils()) || cues::other_person(sentence, start..my) {
        Err(Reason::OtherPerson)
    } else {
        Ok(())
    }
}

/// Where the person is named behind the value, or beside it.
fn behind(
    sentence: &Sentence,
    at: &Range<usize>,
    target: &Range<usize>,
    relation: Relation,
    is_strict: bool,
) -> Option<Subject> {
    let word = |at: usize| sentence.word(at);
    let lead = at.start..target.start;
    let tail = target.end..at.end.max(target.end);
    let is_copula = is_any(&["is", "are", "'s", "ist", "sind"], word(target.end));
    let named = tail
        .clone()
        .find(|at| is_mine(sentence, *at, is_strict) || is_of_mine(sentence, *at));
    if let Some(behind) = named
        && is_copula
        && lead.len() <= LEAD_MAX
    {
        return Some(Subject::Behind(behind));
    }
    // "On Fridays I teach", "Fridays I teach".
    let is_day = target.start == at.start && word(target.start).trim_end_matches('s').ends_with("day");
    let is_fronted = is_day || is_any(&["on", "every", "each", "in", "at"], word(at.start));
    let behind_time = fronted_end(sentence, target.end);
    if is_fronted && relation == Relation::Other && is_mine(sentence, behind_time, is_strict) {
        return Some(Subject::Behind(behind_time));
    }
    if is_strict {
        return None;
    }
    let object = tail
        .into_iter()
        .find(|at| is_any(&["me", "mir", "mich", "i", "myself", "mine", "my"], word(*at)));
    if let Some(object) = object {
        return Some(Subject::Object(object));
    }
    // "The hardest part for me is …".
    let told = lead.clone().rev().find(|at| is_any(&["is", "are"], word(*at)));
    let for_me = told
        .and_then(|told| told.checked_sub(2))
        .filter(|at| *at >= lead.start && sentence.reads(*at, "for me"));
    if let Some(at) = for_me {
        return Some(Subject::My(at + 1));
    }
    // "For me, tables work best."
    let me = lead.clone().find(|at| is_any(&["me", "mir"], word(*at)))?;
    is_any(&["for", "to", "with"], word(lead.start)).then_some(Subject::My(me))
}

/// Where the person is named behind a day: "on Monday evenings I …".
pub(super) fn fronted_end(sentence: &Sentence, day_end: usize) -> usize {
    const TIMES: &[&str] = &[
        "morning",
        "mornings",
        "afternoon",
        "afternoons",
        "evening",
        "evenings",
        "night",
        "nights",
    ];
    if is_any(TIMES, sentence.word(day_end)) {
        day_end + 1
    } else {
        day_end
    }
}

/// How many words may stand before a value that begins its clause.
const LEAD_MAX: usize = 4;

/// Whether what stands before "I" is a remark to us: "as you know", "thank you".
fn is_remark(sentence: &Sentence, from: usize, to: usize) -> bool {
    let first = sentence.word(from);
    is_any(
        &["as", "hi", "hello", "hey", "thanks", "thank", "ok", "okay"],
        first,
    ) && !(from..to)
        .any(|at| cues::is_person(sentence, at) || is_any(&["he", "she", "they"], sentence.word(at)))
}
