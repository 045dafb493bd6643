//! Requests to work on a text: what they point at is that text, and not what the person says of themselves.

use super::{Cut, Cuts};
use crate::boundary::{sentence::Sentence, text::Folded};

/// What is asked to be done with a text and with little else.
const TEXT_VERBS: &[&str] = &[
    "translate",
    "proofread",
    "summarise",
    "summarize",
    "paraphrase",
    "rephrase",
    "rewrite",
    "reword",
    "edit",
    "correct",
    "fix",
    "improve",
    "polish",
    "shorten",
    "repeat",
    "quote",
    "copy",
    "transcribe",
    "parse",
    "classify",
    "annotate",
    "critique",
    "spellcheck",
    "extract",
    "übersetze",
    "übersetz",
    "korrigiere",
    "korrigier",
    "verbessere",
    "kürze",
    "lies",
    "wiederhole",
];

/// What is also asked to be done with a text.
const WEAK_VERBS: &[&str] = &[
    "read", "check", "review", "explain", "analyse", "analyze", "grade", "mark", "continue", "complete",
    "convert", "evaluate", "format", "look", "feedback", "grammar", "diktiere",
];

/// What texts are called.
const TEXT_NOUNS: &[&str] = &[
    "sentence",
    "sentences",
    "text",
    "texts",
    "paragraph",
    "paragraphs",
    "passage",
    "passages",
    "letter",
    "email",
    "mail",
    "message",
    "messages",
    "essay",
    "story",
    "article",
    "document",
    "file",
    "transcript",
    "poem",
    "quote",
    "quotes",
    "line",
    "lines",
    "excerpt",
    "paste",
    "draft",
    "post",
    "comment",
    "abstract",
    "bio",
    "profile",
    "caption",
    "script",
    "dialogue",
    "conversation",
    "chat",
    "following",
    "statement",
    "statements",
    "phrase",
    "phrases",
    "snippet",
    "webpage",
    "page",
    "satz",
    "brief",
    "absatz",
    "zeile",
    "nachricht",
];

/// Texts that stand in the turn itself if they stand anywhere.
const NEAR_NOUNS: &[&str] = &[
    "sentence",
    "sentences",
    "text",
    "paragraph",
    "passage",
    "message",
    "line",
    "lines",
    "statement",
    "phrase",
    "letter",
    "email",
    "satz",
    "absatz",
    "brief",
];

/// What points at something that stands in the turn.
const POINTERS: &[&str] = &[
    "this",
    "these",
    "following",
    "below",
    "above",
    "next",
    "previous",
    "that",
    "those",
    "it",
    "diesen",
    "dieses",
    "folgenden",
    "folgende",
    "folgendes",
];

/// Times that "this" and "these" stand before.
const TIMES: &[&str] = &[
    "year", "term", "semester", "quarter", "month", "week", "weekend", "spring", "summer", "fall", "autumn",
    "winter", "season", "days",
];

/// Who speaks in what follows.
const SAYS: &[&str] = &[
    "says", "said", "wrote", "writes", "write", "reads", "goes", "states", "claims", "example", "answer",
    "sample", "copied", "pasted", "schrieb", "beispiel", "typed", "posted", "texted", "told", "asked",
    "sent",
];

/// What has been done with a text that follows.
const HANDED: &[&str] = &[
    "posted",
    "handed",
    "sent",
    "found",
    "shows",
    "received",
    "got",
    "shared",
    "texted",
    "submitted",
    "copied",
    "wrong",
    "correct",
    "right",
    "mean",
    "means",
    "wrote",
    "gave",
    "turned",
    "saw",
    "forwarded",
    "pasted",
    "mistake",
    "mistakes",
    "errors",
];

/// What is said to be polite and means nothing else.
const COURTESIES: &[&str] = &[
    "thanks",
    "thank you",
    "please",
    "cheers",
    "danke",
    "thx",
    "many thanks",
];

/// Cuts what such a request points at, and the request.
pub(super) fn cut(folded: &Folded, read: &[Sentence], cuts: &mut Cuts) {
    let end = folded.text.len();
    for (index, sentence) in read.iter().enumerate() {
        if let Some(colon) = hands_over(sentence) {
            cuts.cut(colon, end, Cut::Pasted);
            return;
        }
        let span = sentence.span();
        if is_title(sentence, &folded.text, span.end) {
            cuts.cut(span.start, end, Cut::Pasted);
            return;
        }
        let Some(is_near) = points(sentence) else { continue };
        let follows = read
            .get(index + 1..)
            .is_some_and(|rest| rest.iter().any(|next| !is_courtesy(next)));
        // Something that was cut already may be what is meant.
        let is_cut_behind = (span.end..end).any(|at| cuts.at(at).is_some());
        if follows || is_cut_behind {
            let from = if is_cut_behind && !follows {
                span.start
            } else {
                span.start.min(span.end)
            };
            cuts.cut(from, end, Cut::Pasted);
        } else if is_near {
            cuts.cut(0, end, Cut::Pasted);
        } else {
            cuts.cut(span.start, span.end, Cut::Pasted);
        }
        return;
    }
}

/// The colon behind which the text stands, where a sentence hands one over.
fn hands_over(sentence: &Sentence) -> Option<usize> {
    let colon = sentence.tokens.iter().position(|token| token.word == ":")?;
    let before = sentence.tokens.get(..colon)?;
    let is_handed = before.iter().any(|token| {
        let word = token.word.as_str();
        TEXT_VERBS.contains(&word)
            || TEXT_NOUNS.contains(&word)
            || SAYS.contains(&word)
            || WEAK_VERBS.contains(&word)
    });
    let at = sentence.tokens.get(colon)?.at.start;
    is_handed.then_some(at)
}

/// Whether a sentence points at a text, and whether that one would stand in the turn itself.
fn points(sentence: &Sentence) -> Option<bool> {
    let words: Vec<&str> = sentence.tokens.iter().map(|token| token.word.as_str()).collect();
    let is_strong = |word: &&str| TEXT_VERBS.contains(word);
    // "This year" points at nothing that stands here.
    let is_time = |at: usize| {
        words.get(at + 1).is_some_and(|next| TIMES.contains(next)) && words.get(at + 2) != Some(&"'s")
    };
    for (at, word) in words.iter().enumerate() {
        if !POINTERS.contains(word) || is_time(at) {
            continue;
        }
        let behind = words.get(at + 1..).unwrap_or_default();
        let noun = behind.iter().take(3).find(|word| TEXT_NOUNS.contains(word));
        let before = words.get(..at).unwrap_or_default();
        let asks = before
            .iter()
            .any(|word| is_strong(word) || WEAK_VERBS.contains(word));
        let verb_before = before.iter().rev().take(3).any(is_strong);
        if let Some(noun) = noun {
            let is_near = NEAR_NOUNS.contains(noun);
            // "This sentence" is a matter of language, whatever is asked about it.
            if asks || is_near {
                return Some(is_near);
            }
        } else if verb_before
            || (asks && matches!(*word, "following" | "below" | "above") && is_end(behind.first()))
        {
            return Some(true);
        }
    }
    // "<- translate this", "^ fix".
    if matches!(sentence.word(0), "<" | "^" | "←" | "↑") {
        return Some(true);
    }
    let has = |table: &[&str]| words.iter().any(|word| table.contains(word));
    let speaks = has(&["i", "my", "me", "ich", "we"]);
    let is_reworked = has(&["make", "turn", "put", "change", "convert", "simplify", "adapt"])
        && has(&["this", "these"])
        && !speaks;
    let is_grammar = has(&[
        "tense",
        "grammar",
        "conjugate",
        "punctuation",
        "misspelled",
        "ungrammatical",
    ]) && has(&["that", "this", "it", "above", "below"]);
    if is_reworked || is_grammar {
        return Some(true);
    }
    let is_here = words.first() == Some(&"here")
        && matches!(sentence.word(1), "is" | "are" | "comes")
        && !(sentence.word(2) == "my"
            && matches!(
                sentence.word(3),
                "situation" | "context" | "background" | "problem" | "question" | "deal" | "info"
            ))
        && sentence.word(2) != "the";
    let is_handed = has(HANDED)
        && (0..words.len())
            .any(|at| matches!(sentence.word(at), "this" | "these" | "below" | "following") && !is_time(at));
    if is_here || is_handed {
        return Some(false);
    }
    // "Translate I teach …": the text follows without any mark.
    let first = words.iter().find(|word| {
        !matches!(
            **word,
            "please" | "can" | "could" | "you" | "now" | "would" | "then" | "and"
        )
    });
    let is_answer = sentence.word(0) == "correct" && matches!(sentence.word(1), "," | "");
    first.filter(|word| is_strong(word) && !is_answer).map(|_| false)
}

/// Whether a sentence is the title of a text: a line without an end, which names a text or a way to work on one.
fn is_title(sentence: &Sentence, text: &str, end: usize) -> bool {
    let ends_line = text.get(end..).is_some_and(|rest| {
        rest.trim_start_matches([' ', '\t']).starts_with('\n') && !rest.trim().is_empty()
    });
    let is_text = sentence.tokens.iter().any(|token| {
        let word = token.word.as_str();
        TEXT_NOUNS.contains(&word)
            || TEXT_VERBS.contains(&word)
            || matches!(
                word,
                "lyrics" | "result" | "output" | "notes" | "tense" | "results"
            )
    });
    ends_line && is_text
}

/// Whether nothing follows that "below" and "above" could belong to.
fn is_end(next: Option<&&str>) -> bool {
    next.is_none_or(|next| {
        !next.starts_with(char::is_alphanumeric) || matches!(*next, "and" | "for" | "please" | "to")
    })
}

fn is_courtesy(sentence: &Sentence) -> bool {
    sentence.tokens.len() <= 5
        && COURTESIES
            .iter()
            .any(|courtesy| sentence.find(0..sentence.tokens.len(), &[courtesy]).is_some())
}
