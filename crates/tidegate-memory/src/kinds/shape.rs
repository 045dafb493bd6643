//! What a value may not look like: markup, or an instruction to whoever reads it.
//!
//! A value ends up in a prompt. It stands there as a note about a person, so it must not be able to leave its line, open
//! a tag or a link, or read as an order. The rule errs towards refusing; a preference is a thing that somebody likes,
//! and needs no imperative.

use tidegate_gate::guards::untrusted;

/// Letters that open or close something in Markdown, HTML, templates or a model's own markup.
const MARKUP: &[char] = &['<', '>', '`', '{', '}', '[', ']', '|', '\\', '*', '~', '✿', '❀'];

/// Verbs that begin an order, whatever follows.
const ORDERS: &[&str] = &[
    "always",
    "approve",
    "authorise",
    "authorize",
    "bypass",
    "circumvent",
    "disable",
    "disobey",
    "disregard",
    "execute",
    "forget",
    "ignore",
    "never",
    "obey",
    "override",
    "pretend",
    "reveal",
    "unlock",
];

/// Verbs that begin an order only when one of [`OBJECTS`] follows.
const WEAK_ORDERS: &[&str] = &[
    "act", "allow", "answer", "call", "delete", "do", "don't", "download", "email", "enable", "fetch",
    "follow", "give", "grant", "install", "let", "mail", "open", "permit", "post", "print", "remove",
    "repeat", "reply", "respond", "run", "say", "send", "show", "skip", "tell", "treat", "upload", "use",
    "write",
];

/// What an order is about.
const OBJECTS: &[&str] = &[
    "a",
    "all",
    "an",
    "any",
    "anything",
    "as",
    "ask",
    "commands",
    "every",
    "everything",
    "everyone",
    "instructions",
    "it",
    "me",
    "my",
    "no",
    "not",
    "only",
    "that",
    "the",
    "their",
    "them",
    "these",
    "this",
    "those",
    "to",
    "tools",
    "with",
    "without",
    "your",
];

/// What gives an order away wherever it stands; compared as whole words.
const TELLTALES: &[&str] = &[
    "as an ai",
    "as the assistant",
    "checks are skipped",
    "developer message",
    "developer mode",
    "do as i say",
    "do not ask",
    "don't ask",
    "for you to",
    "grant access",
    "grant admin",
    "grant permission",
    "grant permissions",
    "grant root",
    "skip approval",
    "skip approvals",
    "skip validation",
    "ignore all",
    "ignore any",
    "ignore every",
    "ignore previous",
    "ignore the",
    "ignore your",
    "from now on",
    "i authorise",
    "i authorize",
    "jailbreak",
    "must always",
    "must never",
    "new instructions",
    "no longer bound",
    "no need to ask",
    "no restrictions",
    "previous instructions",
    "previous messages",
    "prior instructions",
    "skip all",
    "skip any",
    "skip checks",
    "skip confirmation",
    "skip every",
    "skip the",
    "skip verification",
    "skipping checks",
    "system message",
    "system prompt",
    "that you always",
    "that you never",
    "the above instructions",
    "the assistant",
    "the model",
    "without any approval",
    "without any confirmation",
    "without approval",
    "without asking",
    "without being asked",
    "without checking",
    "without checks",
    "without confirmation",
    "without confirming",
    "without permission",
    "you always",
    "you are",
    "you can",
    "you have to",
    "you may",
    "you must",
    "you need to",
    "you never",
    "you ought",
    "you shall",
    "you should",
    "you will",
    "you're",
    "your guidelines",
    "your instructions",
    "your prompt",
    "your rules",
    "your system",
    "your tools",
];

/// Names of speakers that open a turn.
const SPEAKERS: &[&str] = &[
    "admin",
    "ai",
    "assistant",
    "developer",
    "human",
    "important",
    "instruction",
    "instructions",
    "note to ai",
    "operator",
    "prompt",
    "root",
    "system",
    "tool",
    "user",
];

/// Whether the text holds anything that is not plain words on one line: control characters, line breaks, invisible
/// characters, links, tags, or Markdown.
pub fn is_markup(text: &str) -> bool {
    if holds_markup(text) {
        return true;
    }
    // What a reader makes of it counts, too: full-width brackets are brackets.
    !text.is_ascii() && holds_markup(&untrusted::folded(text))
}

fn holds_markup(text: &str) -> bool {
    let is_odd = |letter: char| {
        letter.is_control()
            || untrusted::is_invisible(letter)
            || is_private(letter)
            || MARKUP.contains(&letter)
    };
    text.chars().any(is_odd)
        || text.trim_start().starts_with('#')
        || text.contains("://")
        || text.contains("__")
        || is_entity(text)
        // Of all control tokens only our own marker has no bracket, and it has this.
        || (text.contains('_') && untrusted::neutralise(text) != text)
}

/// Code points to which no standard gives a meaning.
fn is_private(letter: char) -> bool {
    matches!(letter, '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{10ffff}' | '\u{fff0}'..='\u{ffff}')
}

/// Whether a character reference such as `&lt;` stands in the text.
fn is_entity(text: &str) -> bool {
    text.split('&').skip(1).any(|rest| {
        let name: String = rest
            .chars()
            .take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '#')
            .collect();
        !name.is_empty() && rest.get(name.len()..).is_some_and(|after| after.starts_with(';'))
    })
}

/// Whether the text reads like an order to whoever reads it, or like the beginning of somebody's turn. Case, spaces,
/// typographic quotes and invisible characters do not matter.
pub fn is_instruction_shaped(text: &str) -> bool {
    let read = if text.is_ascii() {
        text.to_ascii_lowercase()
    } else {
        untrusted::folded(text).to_lowercase()
    };
    let read = read.replace(['’', '‘', '`', '´'], "'");
    let (mut joined, mut starts) = (String::with_capacity(read.len() + 1), Vec::new());
    for word in words(&read) {
        starts.push(joined.len());
        joined.push_str(word);
        joined.push(' ');
    }
    let stands_at = |start: usize| {
        let rest = joined.get(start..).unwrap_or_default();
        TELLTALES.iter().any(|telltale| {
            rest.strip_prefix(telltale)
                .is_some_and(|after| after.starts_with(' '))
        })
    };
    starts.into_iter().any(stands_at) || opens_a_turn(&read) || read.split(CLAUSE_ENDS).any(is_order)
}

/// Marks that end a clause.
const CLAUSE_ENDS: [char; 15] = [
    '.', ';', ':', '!', '?', ',', '(', ')', '"', '“', '”', '–', '—', '/', '\n',
];

/// Words that may stand before an order.
const RUN_UPS: [&str; 12] = [
    "please", "kindly", "now", "just", "and", "then", "so", "to", "also", "but", "or", "be",
];

/// Whether a clause begins like an order.
fn is_order(clause: &str) -> bool {
    let mut words = words(clause).skip_while(|word| RUN_UPS.contains(word));
    let (Some(first), second) = (words.next(), words.next().unwrap_or_default()) else {
        return false;
    };
    ORDERS.contains(&first) || (WEAK_ORDERS.contains(&first) && OBJECTS.contains(&second))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '\'')
        .map(|word| word.trim_matches('\''))
        .filter(|word| !word.is_empty())
}

/// Whether a speaker's name and a colon stand in the text.
fn opens_a_turn(read: &str) -> bool {
    read.match_indices(':').any(|(at, _)| {
        let before = read.get(..at).unwrap_or_default().trim_end();
        SPEAKERS.iter().any(|speaker| {
            before
                .strip_suffix(speaker)
                .is_some_and(|rest| !rest.ends_with(char::is_alphanumeric))
        })
    })
}
