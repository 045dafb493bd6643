//! Words and phrases that tell how something is meant. English, and what is most common in German.

use super::words::{
    COMING_TIMES, CONDITIONS, FICTIONS, FRAMES, MAKES, MOCKERIES, NO_CONDITIONS, NOT_KEPT, OTHERS,
    OWN_FRAMES, OWN_REPORTS, PAST_TIMES, PAST_VERBS, PEOPLE, PLAYS, REPORTS, TAKEN_BACK, TEXTS,
    THIRD_OBJECTS, UNREAL, UNSURE,
};
use std::ops::Range;

use super::{reason::Reason, sentence::Sentence};

/// Whether a word is in a table.
pub(crate) fn is_any(table: &[&str], word: &str) -> bool {
    table.contains(&word)
}

/// How many words of a request are looked at.
const MADE_WORDS: usize = 9;

/// Whether a sentence of the turn changes what the others mean: which of them, and how.
pub(super) fn frame(sentence: &Sentence) -> Option<(Scope, Reason)> {
    let all = 0..sentence.tokens.len();
    let is_not = sentence.tokens.len() == 1 && matches!(sentence.word(0), "not" | "psych" | "nope");
    if is_not || sentence.find(all.clone(), TAKEN_BACK).is_some() {
        return Some((Scope::Turn, Reason::Irony));
    }
    let is_cast = (sentence.reads(0, "you are") || sentence.reads(0, "be"))
        && sentence.find(all.clone(), &["i am", "i will be"]).is_some();
    if is_cast || sentence.find(all.clone(), OWN_FRAMES).is_some() {
        return Some((Scope::Rest, Reason::RolePlay));
    }
    if sentence.find(all.clone(), NOT_KEPT).is_some() {
        return Some((Scope::Turn, Reason::Irony));
    }
    // "I teach my class to pretend" frames nothing.
    if let Some(at) = sentence.find(all.clone(), FRAMES)
        && !(0..at).any(|before| is_any(&["i", "my", "ich"], sentence.word(before)))
    {
        return Some((Scope::Rest, Reason::RolePlay));
    }
    let makes = all
        .clone()
        .find(|at| {
            !is_any(
                &["please", "can", "could", "you", "now", ",", "and", "hey", "hi"],
                sentence.word(*at),
            )
        })
        .filter(|at| is_any(MAKES, sentence.word(*at)))?;
    let behind = makes + 1..makes + MADE_WORDS;
    let is_text = behind.clone().any(|at| is_any(TEXTS, sentence.word(at)));
    let is_of_other = behind.clone().any(|at| {
        let next = sentence.word(at + 1);
        sentence.word(at) == "as"
            || (matches!(sentence.word(at), "for" | "from" | "about" | "by")
                && !is_any(&["me", "my", "us", "our", "the", "parents"], next))
    });
    let fiction = behind.clone().any(|at| is_any(FICTIONS, sentence.word(at))) || (is_text && is_of_other);
    fiction.then_some((Scope::Rest, Reason::RolePlay))
}

/// Which sentences of a turn are meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// All of them.
    Turn,
    /// That one, and those behind it.
    Rest,
}

/// What, standing before a place in its sentence, makes it no statement of the person.
pub(super) fn governed(sentence: &Sentence, to: usize) -> Option<Reason> {
    let before = 0..to;
    if MOCKERIES.iter().any(|mockery| sentence.reads(0, mockery)) {
        return Some(Reason::Irony);
    }
    if before.clone().any(|at| is_condition(sentence, at)) {
        return Some(Reason::Condition);
    }
    if sentence.find(0..sentence.tokens.len(), PLAYS).is_some() {
        return Some(Reason::RolePlay);
    }
    before
        .into_iter()
        .any(|at| is_report(sentence, at))
        .then_some(Reason::Reported)
}

/// Whether a condition begins at a place, also one behind the statement.
pub(super) fn is_condition(sentence: &Sentence, at: usize) -> bool {
    let here = |phrases: &[&str]| phrases.iter().any(|phrase| sentence.reads(at, phrase));
    if !here(CONDITIONS) || here(NO_CONDITIONS) {
        return false;
    }
    match sentence.word(at) {
        // "Like I said", "I like I …".
        "like" => !matches!(sentence.word(at + 2), "said" | "told" | "mentioned"),
        _ => true,
    }
}

fn is_report(sentence: &Sentence, at: usize) -> bool {
    if !REPORTS.iter().any(|report| sentence.reads(at, report)) {
        return false;
    }
    let word = sentence.word(at);
    let next = sentence.word(at + 1);
    let before = at.checked_sub(1).map_or("", |before| sentence.word(before));
    let is_own = is_any(OWN_REPORTS, word)
        && is_any(&["i", "have", "already", "to", "just", "me", "also"], before)
        && !is_any(THIRD_OBJECTS, next);
    let to_us = matches!(word, "tell" | "answer" | "say" | "write" | "reply") && matches!(next, "me" | "us");
    // Something that the person likes: "short answer questions".
    let is_noun = is_any(&["short", "long", "an", "your", "the"], before)
        && matches!(word, "answer" | "reply" | "quote");
    !(is_own || to_us || is_noun)
}

/// Whether somebody else is named between two places.
pub(super) fn other_person(sentence: &Sentence, within: Range<usize>) -> bool {
    within.into_iter().any(|at| {
        let word = sentence.word(at);
        let is_idiom = word == "you" && at > 0 && is_any(&["as", "thank", "remember"], sentence.word(at - 1))
            || word == "you" && is_any(&["know", "see"], sentence.word(at + 1))
            || word == "one" && at > 0;
        (is_person(sentence, at) || is_any(OTHERS, word)) && !is_idiom
    })
}

/// Whether a word names somebody else: the mother of "mother tongue" is nobody.
pub(super) fn is_person(sentence: &Sentence, at: usize) -> bool {
    is_any(PEOPLE, sentence.word(at)) && !sentence.reads(at, "mother tongue")
}

/// Whether a time between two places is over.
pub(super) fn is_past_time(sentence: &Sentence, clause: Range<usize>) -> bool {
    // "My last term" is the one that goes on.
    let is_over = |at: usize| {
        at.checked_sub(1)
            .is_none_or(|before| !is_any(&["my", "our", "the"], sentence.word(before)))
    };
    sentence.find(clause, PAST_TIMES).is_some_and(is_over)
}

/// Whether the verb between a subject and a place says that something is over.
pub(super) fn is_past(sentence: &Sentence, subject: usize, to: usize) -> bool {
    let Some(verb) = (subject + 1..to).find(|at| !is_adverb(sentence.word(*at))) else {
        return false;
    };
    let word = sentence.word(verb);
    // "I have taught here for years" goes on.
    if matches!(word, "have" | "has") {
        return false;
    }
    let is_regular = word.ends_with("ed") && !word.ends_with("eed") && word.len() > 4;
    is_any(PAST_VERBS, word)
        || is_regular
        || (verb..to).any(|at| is_any(&["was", "were", "had", "used"], sentence.word(at)))
}

/// Whether it is to come, wished, or not certain.
pub(super) fn is_unreal(sentence: &Sentence, lead: Range<usize>, clause: Range<usize>) -> bool {
    sentence.find(lead.clone(), UNREAL).is_some()
        || sentence.find(clause, COMING_TIMES).is_some()
        || sentence.find(lead, UNSURE).is_some()
}

/// Words between a subject and its verb that change nothing.
pub(crate) fn is_adverb(word: &str) -> bool {
    is_any(
        &[
            "now",
            "currently",
            "also",
            "just",
            "still",
            "actually",
            "really",
            "always",
            "mostly",
            "usually",
            "mainly",
            "only",
            "presently",
            "often",
            "generally",
            "primarily",
            "especially",
            "already",
            "both",
            "do",
            "even",
            "honestly",
            "simply",
            "definitely",
            "certainly",
            "mainly",
            "typically",
            "normally",
            "personally",
            "quite",
            "very",
            "too",
            "so",
            "frankly",
            "particularly",
            "today",
            "kinda",
            "totally",
            "truly",
            "again",
            "constantly",
            "sometimes",
            "jetzt",
            "gerade",
            "auch",
            "immer",
            "noch",
            "sehr",
            "recently",
            "lately",
        ],
        word,
    )
}
