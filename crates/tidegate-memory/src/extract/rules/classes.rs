//! Kinds told by a cue and a word of a closed class: what somebody may work towards, need in order to take part, or speak.

use std::{cmp::Reverse, sync::LazyLock};

use super::{
    Find, Spelling,
    cue::{Cues, Plain},
    cues::{AIMS, NEEDS, WISHES},
    phrase,
};
use crate::boundary::{Sentence, clauses, is_any};

static WISHED: LazyLock<Cues<()>> = LazyLock::new(|| read(WISHES));
static AIMED: LazyLock<Cues<()>> = LazyLock::new(|| read(AIMS));
static NEEDED: LazyLock<Vec<Needed>> = LazyLock::new(|| {
    let ways = NEEDS.iter().map(|way| Needed {
        verbs: read(way.verbs),
        reach_words: way.reach_words,
        needs: read(way.needs),
    });
    ways.collect()
});

/// A way of needing something, ready to be looked for.
struct Needed {
    verbs: Cues<()>,
    reach_words: usize,
    needs: Cues<()>,
}

fn read(cues: &[&'static str]) -> Cues<()> {
    Cues::read(cues.iter().map(|cue| (*cue, ())))
}

/// The most words between "I am" and "speaker".
const SPEAKER_WORDS_MAX: usize = 6;

/// What is found by such words.
pub(super) fn find(spelling: Spelling<'_>, plain: &Plain<'_>, finds: &mut Vec<Find>) {
    let sentence = spelling.sentence;
    goals(sentence, plain, finds);
    needs(sentence, plain, finds);
    speakers(spelling, finds);
}

/// Words at which what somebody works towards goes on.
const AIM_INNER: &[&str] = &[
    "of", "for", "in", "to", "on", "as", "a", "my", "with", "at", "better",
];

/// Times of a wish for the moment.
const TODAY: &[&str] = &[
    "tonight",
    "today",
    "now",
    "quickly",
    "tomorrow",
    "morning",
    "afternoon",
    "evening",
    "hour",
];

/// "I want to become a paramedic": what is wished and takes longer than a day.
fn goals(sentence: &Sentence, plain: &Plain<'_>, finds: &mut Vec<Find>) {
    let aims = AIMED.find(plain);
    for wish in WISHED.find(plain) {
        let Some(aim) = aims.iter().find(|aim| aim.from == wish.behind) else {
            continue;
        };
        let Some(value) = phrase::from(sentence, aim.from, AIM_INNER) else {
            continue;
        };
        let is_order = is_any(&["run", "open", "start"], sentence.word(value.start))
            && is_any(&["a", "an"], sentence.word(value.start + 1));
        let value = if is_order {
            value.start + 2..value.end
        } else {
            value
        };
        let is_asked = is_any(
            &["how", "what", "why", "about", "more", "if"],
            sentence.word(aim.behind),
        );
        let is_of_today = (value.start..value.end + 2).any(|at| is_any(TODAY, sentence.word(at)));
        if value.end > aim.behind && !is_asked && !is_of_today {
            finds.push(Find::new("goal", value.clone(), wish.from..value.end));
        }
    }
}

/// "I need everything in large print", "I have low vision", "I'm deaf".
fn needs(sentence: &Sentence, plain: &Plain<'_>, finds: &mut Vec<Find>) {
    let clauses = clauses(sentence);
    for way in NEEDED.iter() {
        let mut needs = way.needs.find(plain);
        // The longest of those that begin at one place.
        needs.sort_by_key(|need| (need.from, Reverse(need.behind)));
        for verb in way.verbs.find(plain) {
            let clause = clauses.iter().find(|clause| clause.contains(&verb.from));
            let end = clause.map_or(verb.behind, |clause| clause.end);
            let need = needs.iter().find(|need| {
                (verb.behind..=verb.behind + way.reach_words).contains(&need.from) && need.behind <= end
            });
            if let Some(need) = need {
                finds.push(Find::new(
                    "access_need",
                    need.from..need.behind,
                    verb.from..need.behind,
                ));
            }
        }
    }
}

/// "I'm a native Spanish speaker."
fn speakers(spelling: Spelling<'_>, finds: &mut Vec<Find>) {
    let sentence = spelling.sentence;
    for at in 1..sentence.tokens.len() {
        let i = (at.saturating_sub(SPEAKER_WORDS_MAX)..at)
            .rev()
            .find(|i| sentence.reads(*i, "i am"));
        if let Some(i) = i
            && sentence.word(at) == "speaker"
            && spelling.is_capital(at - 1)
        {
            finds.push(Find::new("language", at - 1..at, i..at + 1));
        }
    }
}
