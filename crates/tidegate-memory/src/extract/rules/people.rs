//! What a person is called, and what they are: told by the form of the value.

use std::{ops::Range, sync::LazyLock};

use super::{
    Find, Spelling,
    cue::{Cues, Plain},
    patterns::subject_of,
    phrase,
    words::{FAMILY, NO_NAMES, NO_ROLES, NO_SUBJECTS, QUALITIES, ROLE_ENDINGS, ROLE_LEADS, ROLES},
};
use crate::boundary::{Sentence, clauses, grades, is_adverb, is_any};

/// What is found by form.
pub(super) fn find(spelling: Spelling<'_>, plain: &Plain<'_>, finds: &mut Vec<Find>) {
    for naming in NAMED.find(plain) {
        named(spelling, naming.from, naming.behind, *naming.tells, finds);
    }
    introduced(spelling, finds);
    for being in BEING.find(plain) {
        role(spelling, being.from, being.behind, finds);
    }
}

/// How a name that is introduced is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Written {
    /// The person says that it is a name.
    AnyWay,
    /// Only its capital letter tells it from other words.
    Capital,
}

/// How names are introduced.
const NAMINGS: [(&str, Written); 8] = [
    ("my first|full|last|given|real? name|nickname is", Written::AnyWay),
    ("i am called|named", Written::AnyWay),
    ("i am known as", Written::AnyWay),
    ("call me", Written::AnyWay),
    ("i go by", Written::AnyWay),
    ("ich heiße|heisse", Written::AnyWay),
    ("mein name ist", Written::AnyWay),
    (
        "everyone|everybody|people|friends|students|colleagues|folks|they call|calls me",
        Written::Capital,
    ),
];

static NAMED: LazyLock<Cues<Written>> =
    LazyLock::new(|| Cues::read(NAMINGS.into_iter().chain([("nenn mich", Written::AnyWay)])));

/// How somebody says what they are.
static BEING: LazyLock<Cues<()>> =
    LazyLock::new(|| Cues::read([("i am", ()), ("i have been", ()), ("ich bin", ())]));

/// The longest name that is taken, in words.
const NAME_WORDS_MAX: usize = 4;

fn named(spelling: Spelling<'_>, from: usize, behind: usize, written: Written, finds: &mut Vec<Find>) {
    let sentence = spelling.sentence;
    let start = if is_adverb(sentence.word(behind)) {
        behind + 1
    } else {
        behind
    };
    let value = spelling.capitals(start, NAME_WORDS_MAX);
    let value = match written {
        Written::AnyWay if value.is_empty() => start..start + 1,
        Written::AnyWay | Written::Capital => value,
    };
    let is_name = sentence
        .tokens
        .get(value.start)
        .is_some_and(|token| token.is_word() && !is_any(NO_NAMES, &token.word));
    if is_name && !value.is_empty() {
        finds.push(Find::new("name", value.clone(), from..value.end));
    }
}

/// Who likes what stands before the word: "a baseball fan".
const FANS: &[&str] = &["fan", "enthusiast", "lover", "buff", "nerd", "geek", "addict"];

/// Titles, which only stand before names.
const TITLES: &[&str] = &["mr", "mrs", "ms", "miss", "dr", "prof", "professor", "coach"];

/// What may follow a name that somebody introduces themselves by.
const BEHIND_NAMES: &[&str] = &[",", "and", "und", "-", "from", "(", "by", "btw", "here"];

/// "Hi, I'm Ben", "I'm Ms. Diaz, by the way".
fn introduced(spelling: Spelling<'_>, finds: &mut Vec<Find>) {
    let sentence = spelling.sentence;
    for clause in clauses(sentence) {
        let being = |at: &usize| sentence.reads(*at, "i am") || sentence.reads(*at, "ich bin");
        let Some(i) = clause.clone().find(being) else {
            continue;
        };
        let leads = (clause.start..i).all(|at| is_any(GREETINGS, sentence.word(at)));
        let value = spelling.capitals(i + 2, NAME_WORDS_MAX);
        let ends = value.end == sentence.tokens.len() || is_any(BEHIND_NAMES, sentence.word(value.end));
        let is_titled = is_any(TITLES, sentence.word(value.start)) && value.len() > 1;
        let is_name = is_titled
            || value.clone().all(|at| {
                !spelling.is_shouted(at)
                    && !is_origin(sentence.word(at))
                    && !is_any(NO_NAMES, sentence.word(at))
            });
        if leads && ends && is_name && !value.is_empty() {
            finds.push(Find::new("name", value.clone(), i..value.end));
        }
    }
}

/// What may stand before "I'm Ben".
const GREETINGS: &[&str] = &[
    "hi",
    "hello",
    "hey",
    "there",
    "good",
    "morning",
    "afternoon",
    "evening",
    "everyone",
    "and",
    "so",
    "well",
    "oh",
];

/// Whether a word with a capital letter tells where somebody is from: "Polish", "Brazilian", "Japanese".
fn is_origin(word: &str) -> bool {
    const ENDINGS: [&str; 7] = ["ish", "ese", "ian", "ean", "ican", "occan", "abic"];
    const NAMES: &[&str] = &[
        "ian",
        "brian",
        "adrian",
        "julian",
        "vivian",
        "lillian",
        "christian",
        "damian",
        "fabian",
        "sebastian",
        "gillian",
        "marian",
        "sean",
        "jean",
        "dean",
        "trish",
        "satish",
        "ashish",
        "girish",
        "manish",
        "reese",
        "therese",
    ];
    ENDINGS.iter().any(|ending| word.ends_with(ending)) && !is_any(NAMES, word)
}

/// "I'm a biology teacher", "I've been a nurse for years".
fn role(spelling: Spelling<'_>, i: usize, behind: usize, finds: &mut Vec<Find>) {
    let sentence = spelling.sentence;
    let is_article = |at: usize| is_any(&["a", "an", "the", "eine", "ein"], sentence.word(at));
    let Some(start) = (behind..sentence.tokens.len()).find(|at| {
        !is_adverb(sentence.word(*at)) && !is_article(*at) && !is_any(&["no", "longer"], sentence.word(*at))
    }) else {
        return;
    };
    let has_article = (behind..start).any(is_article);
    let Some(value) = phrase::from(sentence, start, &["of"]) else {
        return;
    };
    if sentence.word(value.end - 1) == "major" && has_article {
        subject_before(sentence, start..value.end - 1, i..value.end, finds);
    }
    if has_article && is_any(FANS, sentence.word(value.end - 1)) {
        let liked = value.clone().find(|at| !is_any(QUALITIES, sentence.word(*at)));
        let liked = liked.unwrap_or(value.end)..value.end - 1;
        if liked.start < liked.end {
            finds.push(Find::new("preference", liked, i..value.end));
        }
    }
    let is_over = value.clone().any(|at| {
        is_any(
            &["former", "ex", "aspiring", "future", "wannabe"],
            sentence.word(at),
        )
    });
    let has_quality = value.clone().any(|at| is_any(QUALITIES, sentence.word(at)));
    let is_head = |at: usize| {
        let word = sentence.word(at);
        let ends =
            at + 1 == value.end || sentence.word(at + 1) == "of" || sentence.word(at + 1).ends_with("ing");
        let is_like_role =
            has_article && ends && !has_quality && !spelling.is_capital(at) && ends_like_role(word);
        is_any(ROLES, word) || is_like_role
    };
    let Some(last) = value.clone().rev().find(|at| is_head(*at)).filter(|_| !is_over) else {
        return;
    };
    // "Head of department" goes on, "mother of three" does not.
    let goes_on = sentence.word(last + 1) == "of" && !is_any(FAMILY, sentence.word(last));
    let end = if goes_on { value.end } else { last + 1 };
    // A school year is a fact of its own; "college student" is one phrase.
    let year_end = grades(sentence)
        .into_iter()
        .filter(|grade| grade.value.bytes().all(|byte| byte.is_ascii_digit()))
        .find(|grade| value.start <= grade.at.start && grade.at.end < end)
        .map_or(value.start, |grade| grade.at.end);
    let start = (year_end..end)
        .find(|at| !is_any(ROLE_LEADS, sentence.word(*at)))
        .unwrap_or(year_end);
    finds.push(Find::new("role", start..end, i..end));
    let is_of_subject = is_any(
        &["teacher", "tutor", "instructor", "professor", "lecturer"],
        sentence.word(last),
    );
    let is_of_study = is_any(
        &["student", "researcher", "professor", "lecturer"],
        sentence.word(last),
    );
    if is_of_study
        && sentence.word(end) == "in"
        && !spelling.is_capital(end + 1)
        && let Some(value) = phrase::from(sentence, end + 1, &["of"])
        && let Some(value) = subject_of(sentence, value)
    {
        finds.push(Find::new("subject_focus", value.clone(), i..value.end));
    }
    if is_of_subject {
        subject_before(sentence, start..last, i..end, finds);
    }
}

/// The subject that stands before a job, behind what is no subject: "high school math teacher".
fn subject_before(sentence: &Sentence, before: Range<usize>, quote: Range<usize>, finds: &mut Vec<Find>) {
    let start = before
        .clone()
        .rev()
        .find(|at| is_any(NO_SUBJECTS, sentence.word(*at)))
        .map_or(before.start, |last| last + 1);
    if let Some(value) = subject_of(sentence, start..before.end) {
        finds.push(Find::new("subject_focus", value, quote));
    }
}

/// Whether a word has the ending of words for what people do, and is none of those that only look like it.
fn ends_like_role(word: &str) -> bool {
    ROLE_ENDINGS
        .iter()
        .any(|ending| word.len() > ending.len() + 2 && word.ends_with(ending))
        && !is_any(NO_ROLES, word)
        && !word.starts_with(|letter: char| letter.is_ascii_digit())
}
