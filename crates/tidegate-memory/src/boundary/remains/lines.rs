//! Lines that show by how they begin that they were copied: quoted blocks, headers of mails, speakers, markup.

use super::{Cut, Cuts};

/// How many lines without a gap somebody writes themselves.
const OWN_LINES_MAX: usize = 12;

/// How many bytes without a blank line somebody writes themselves.
const OWN_PARAGRAPH_BYTES_MAX: usize = 1_500;

/// The longest tag, in bytes.
const TAG_BYTES_MAX: usize = 300;

/// How deep code is indented.
const CODE_INDENT: usize = 4;

/// What opens a line of a quoted block.
const QUOTE_MARKS: [char; 12] = ['>', '|', '│', '┃', '▌', '❯', '›', '»', '¦', '▎', '➤', '►'];

/// Names of headers of mails.
const HEADERS: &[&str] = &[
    "from",
    "to",
    "sent",
    "date",
    "subject",
    "cc",
    "bcc",
    "reply-to",
    "received",
    "message-id",
    "forwarded by",
    "in-reply-to",
    "von",
    "an",
    "betreff",
    "gesendet",
    "datum",
    "antwort an",
    "de",
    "objet",
    "re",
    "fwd",
];

/// Headers that alone tell a mail.
const STRONG_HEADERS: &[&str] = &[
    "from",
    "received",
    "message-id",
    "in-reply-to",
    "von",
    "fwd",
    "gesendet",
    "sent",
    "forwarded by",
];

/// How lines begin behind which another's mail stands.
const FORWARDS: &[&str] = &[
    "begin forwarded message",
    "forwarded message",
    "original message",
    "-----original",
    "--- forwarded",
    "ursprüngliche nachricht",
    "weitergeleitete nachricht",
    "anfang der weitergeleiteten",
];

/// Names of speakers and roles.
const SPEAKERS: &[&str] = &[
    "system",
    "assistant",
    "user",
    "human",
    "ai",
    "bot",
    "developer",
    "tool",
    "admin",
    "administrator",
    "model",
    "memory",
    "memories",
    "instruction",
    "instructions",
    "prompt",
    "function",
    "operator",
    "the user",
    "the assistant",
    "chatbot",
    "agent",
    "server",
    "user profile",
    "profile",
    "output",
];

/// What may stand before a colon at the beginning of a line that is still the person's own.
const OWN_LABELS: &[&str] = &[
    "about me",
    "hi",
    "hello",
    "hey",
    "btw",
    "also",
    "remember",
    "remember this",
    "please remember this",
    "keep in mind",
    "keep this in mind",
    "don't forget",
    "my situation",
    "by the way",
    "just so you know",
    "for context",
    "for reference",
    "for the record",
    "please remember",
    "please note",
    "one thing to know",
    "ps",
    "p.s",
];

/// The same in parts: "quick note", "a bit of context", "one more thing".
const LABEL_LEADS: &[&str] = &[
    "a",
    "an",
    "one",
    "some",
    "quick",
    "small",
    "little",
    "short",
    "more",
    "bit",
    "of",
    "extra",
    "just",
    "important",
];
const LABEL_NOUNS: &[&str] = &[
    "note",
    "context",
    "background",
    "info",
    "fyi",
    "reminder",
    "question",
    "update",
    "situation",
    "goal",
    "important",
    "fact",
    "disclaimer",
];

/// Whether a label before a colon says nothing but that something about the person follows.
fn is_own_label(label: &str) -> bool {
    let mut words: Vec<&str> = label.split_whitespace().collect();
    let noun = words.pop().unwrap_or_default();
    // "One:" and "up:" alone are the first of several.
    let is_noun =
        LABEL_NOUNS.contains(&noun) || (!words.is_empty() && matches!(noun, "one" | "thing" | "up"));
    let leads = words
        .iter()
        .all(|word| LABEL_LEADS.contains(word) || (*word == "heads" && label.ends_with("up")));
    OWN_LABELS.contains(&label) || (is_noun && leads)
}

/// How a letter begins to somebody who is not us.
const SALUTATIONS: &[&str] = &[
    "dear ",
    "to whom it may concern",
    "sehr geehrte",
    "liebe ",
    "lieber ",
    "hallo zusammen",
    "cher ",
];

/// Who may be greeted and still be us.
const US: &[&str] = &[
    "assistant",
    "ai",
    "tidegate",
    "bot",
    "chatbot",
    "tutor",
    "computer",
    "assistent",
];

/// Cuts lines.
pub(super) fn cut(text: &str, cuts: &mut Cuts) {
    let mut lines = Lines {
        cuts,
        rest: None,
        is_quoted: false,
        was_blank: true,
        is_first: true,
        labels: Labels::Few,
        block: 0..0,
        in_block: 0,
    };
    let is_form = text
        .lines()
        .filter(|line| is_labelled(line.trim(), Labels::Form))
        .count()
        > 1;
    if is_form {
        lines.labels = Labels::Form;
    }
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let end = start + line.len();
        lines.line(start, end, line);
        start = end;
    }
    lines.end_block();
    tags(text, lines.cuts);
    square_tags(text, lines.cuts);
    numbered(text, lines.cuts);
    letter(text, lines.cuts);
}

/// What the labels before colons tell in a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Labels {
    /// At most one line has one, and it may be the person's own: "quick note".
    Few,
    /// Several lines have them: each of them is a field.
    Form,
}

struct Lines<'c> {
    cuts: &'c mut Cuts,
    /// Why everything from here on is cut.
    rest: Option<Cut>,
    /// Whether a quoted block goes on.
    is_quoted: bool,
    was_blank: bool,
    /// Whether no line has been read yet.
    is_first: bool,
    /// What labels tell.
    labels: Labels,
    /// The lines without a gap that are read.
    block: std::ops::Range<usize>,
    in_block: usize,
}

impl Lines<'_> {
    fn line(&mut self, start: usize, end: usize, line: &str) {
        let plain = line.trim();
        if plain.is_empty() {
            self.is_quoted = false;
            self.was_blank = true;
            self.end_block();
            return;
        }
        let is_first = std::mem::take(&mut self.is_first);
        if self.in_block == 0 {
            self.block = start..end;
        }
        self.block.end = end;
        self.in_block += 1;
        if self.rest.is_none() && self.cuts.at(start).is_none() {
            self.rest = opens_rest(plain, is_first);
        }
        let indent = line.len() - line.trim_start().len();
        let is_indented = line.starts_with('\t') || indent >= CODE_INDENT;
        let is_quote = is_quoted(plain);
        let why = if self.rest.is_some() {
            self.rest
        } else if is_quote || self.is_quoted {
            // A block goes on in lines without the mark, to the next blank line.
            self.is_quoted = true;
            Some(Cut::BlockQuote)
        } else if is_indented && self.was_blank {
            Some(Cut::Code)
        } else if is_data(plain) {
            Some(Cut::Markup)
        } else if is_labelled(plain, self.labels) {
            Some(Cut::Transcript)
        } else {
            None
        };
        if let Some(why) = why {
            self.cuts.cut(start, end, why);
        }
        // Indented lines that follow one another are one block.
        self.was_blank = why == Some(Cut::Code);
    }

    /// A block of lines has ended: longer than people write, it was pasted.
    fn end_block(&mut self) {
        if self.in_block > OWN_LINES_MAX || self.block.len() > OWN_PARAGRAPH_BYTES_MAX {
            self.cuts.cut(self.block.start, self.block.end, Cut::Pasted);
        }
        self.in_block = 0;
        self.block = 0..0;
    }
}

/// Whether a line is one of a quoted block. The marks of lists and the initials of a writer may stand before the mark.
fn is_quoted(plain: &str) -> bool {
    let plain = plain.trim_start_matches(['-', '*', '+', ' ']);
    let plain = plain.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let plain = plain.trim_start();
    let initials: usize = plain
        .chars()
        .take(3)
        .take_while(char::is_ascii_alphabetic)
        .count();
    plain.starts_with(QUOTE_MARKS)
        || plain.starts_with("&gt;")
        || plain.get(initials..).is_some_and(|rest| rest.starts_with('>'))
}

/// Whether everything from this line on is somebody else's.
fn opens_rest(plain: &str, is_first: bool) -> Option<Cut> {
    let bare = plain.trim_start_matches(['-', '=', '*', '#', '_', '>', '[', '(', '<', ' ']);
    if FORWARDS.iter().any(|start| bare.starts_with(start)) || is_attribution(plain) {
        return Some(Cut::Forwarded);
    }
    if let Some((label, _)) = bare.split_once([':', '：', ']']) {
        let label = label.trim_matches(|letter: char| !letter.is_alphanumeric());
        let first = label.split(' ').next().unwrap_or_default();
        if STRONG_HEADERS.contains(&label) || (is_first && HEADERS.contains(&label)) {
            return Some(Cut::Forwarded);
        }
        let is_short = label.split(' ').count() <= 3;
        if SPEAKERS.contains(&label) || (is_short && SPEAKERS.contains(&first) && label.len() > first.len()) {
            return Some(Cut::Transcript);
        }
    }
    let is_rule =
        plain.len() >= 3 && plain.chars().all(|letter| "-=*_#~<>+–—. ".contains(letter)) && plain != "...";
    if is_rule || plain.starts_with("-----begin") || plain.starts_with("=====") {
        return Some(Cut::Pasted);
    }
    let marks = plain.bytes().take_while(|byte| *byte == b'#').count();
    if (1..=6).contains(&marks) && plain.get(marks..).is_some_and(|rest| rest.starts_with(' ')) {
        return Some(Cut::Pasted);
    }
    let greeted = SALUTATIONS.iter().find_map(|start| plain.strip_prefix(start));
    greeted
        .filter(|whom| !US.iter().any(|us| whom.starts_with(us)))
        .map(|_| Cut::Forwarded)
}

/// "On Monday, Ann wrote:" and the like.
fn is_attribution(plain: &str) -> bool {
    let is_end = ["wrote:", "writes:", "schrieb:", "said:", "a écrit :"]
        .iter()
        .any(|end| plain.ends_with(end));
    is_end || ((plain.starts_with("am ") || plain.starts_with("on ")) && plain.contains(" schrieb "))
}

/// Whether a line is data and no sentence.
fn is_data(plain: &str) -> bool {
    plain.starts_with(['{', '}', '[', '<', '$', '\\', '@'])
        || plain.starts_with("\":")
        || plain.starts_with("//")
        || plain.starts_with("/*")
        || plain.starts_with("%%")
        || is_call(plain)
        || plain.contains("&lt;")
        || plain.contains("&gt;")
        || plain.matches(['{', '}', '|', '\t']).count() >= 2
}

/// Whether a line begins with somebody's name, or a header's or a field's.
fn is_labelled(plain: &str, labels: Labels) -> bool {
    let plain = without_time(plain.trim_start_matches(['-', '*', '•', '[', '(', ' ']));
    let Some((label, rest)) = plain.split_once([':', '：']) else {
        return false;
    };
    // "Ann (teacher)".
    let label = label.split(['(', '[']).next().unwrap_or_default();
    let label = label.trim().trim_matches(['*', ']', ')']);
    let is_text = !rest.trim().is_empty();
    let words = label.split_whitespace().count();
    let is_label = (1..=LABEL_WORDS_MAX).contains(&words)
        && !label
            .split_whitespace()
            .any(|word| ["i", "me", "my", "mine", "i'm"].contains(&word))
        && label
            .chars()
            .all(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '.' | '-' | '_' | '\'' | '/'));
    let is_time = label.chars().all(|letter| letter.is_ascii_digit());
    is_text
        && is_label
        && !is_time
        && (labels == Labels::Form || HEADERS.contains(&label) || !is_own_label(label))
}

/// The longest name of a speaker, in words.
const LABEL_WORDS_MAX: usize = 4;

/// A line without the time that stands before it in a conversation.
fn without_time(line: &str) -> &str {
    let rest = line.trim_start_matches(|letter: char| letter.is_ascii_digit() || ":.,/- ])".contains(letter));
    let has_time = rest.len() < line.len() && line.starts_with(|letter: char| letter.is_ascii_digit());
    let rest = rest
        .strip_prefix("am ")
        .or_else(|| rest.strip_prefix("pm "))
        .unwrap_or(rest);
    if has_time {
        rest.trim_start_matches([' ', '-', ']', ')'])
    } else {
        line
    }
}

/// Cuts from the first tag to the last one.
fn tags(text: &str, cuts: &mut Cuts) {
    let is_tag = |at: usize| {
        let rest = text.get(at + 1..).unwrap_or_default();
        let name = rest.trim_start_matches(['/', '!', '?']);
        name.starts_with(|letter: char| letter.is_ascii_alphabetic())
            && rest
                .bytes()
                .take(TAG_BYTES_MAX)
                .find(|byte| matches!(byte, b'<' | b'>' | b'\n'))
                == Some(b'>')
    };
    let opens: Vec<usize> = text
        .match_indices('<')
        .map(|(at, _)| at)
        .filter(|at| is_tag(*at))
        .collect();
    if let (Some(first), Some(last)) = (opens.first(), opens.last()) {
        let end = text
            .get(*last..)
            .and_then(|rest| rest.find('>'))
            .map_or(text.len(), |end| last + end + 1);
        // A single tag opens something that has no end.
        let end = if first == last { text.len() } else { end };
        cuts.cut(*first, end, Cut::Markup);
    }
}

/// Cuts from the first tag in square brackets to the last one.
fn square_tags(text: &str, cuts: &mut Cuts) {
    let has_end = text.contains("[/") || text.contains("[quote");
    if let (true, Some(first)) = (has_end, text.find('[')) {
        let end = text.rfind(']').map_or(text.len(), |end| end + 1);
        let end = if text.contains("[/") { end } else { text.len() };
        cuts.cut(first, end.max(first), Cut::Markup);
    }
}

/// Whether a line is a call or an assignment.
fn is_call(plain: &str) -> bool {
    let name = plain.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
    let rest = name.and_then(|end| plain.get(end..)).unwrap_or_default();
    rest.trim_start().starts_with('=') || (rest.starts_with('(') && plain.ends_with([')', ';']))
}

/// How letters begin and end.
const GREETINGS: &[&str] = &["hi ", "hello ", "hey ", "hallo ", "good morning ", "guten tag "];
const SIGN_OFFS: &[&str] = &[
    "best,",
    "best wishes",
    "best regards",
    "kind regards",
    "regards",
    "sincerely",
    "yours",
    "warmly",
    "cheers,",
    "love,",
    "mfg",
    "viele grüße",
    "liebe grüße",
    "mit freundlichen",
    "xoxo",
];

/// Cuts a letter: from the greeting to the end, where it is signed.
fn letter(text: &str, cuts: &mut Cuts) {
    let is_signed = text
        .lines()
        .any(|line| SIGN_OFFS.iter().any(|end| line.trim_start().starts_with(end)));
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        let is_greeting = GREETINGS
            .iter()
            .any(|greeting| line.trim_start().starts_with(greeting));
        if is_signed && is_greeting {
            cuts.cut(start, text.len(), Cut::Forwarded);
            return;
        }
        start += line.len();
    }
}

/// Cuts the points of a numbered list: such are exercises, answers and rules.
fn numbered(text: &str, cuts: &mut Cuts) {
    let is_numbered = |line: &str| {
        let line = line.trim_start().trim_start_matches('(');
        let rest = line.trim_start_matches(|letter: char| letter.is_ascii_digit());
        let letter = line.len() > 2
            && line.as_bytes().get(1) == Some(&b')')
            && line.starts_with(|first: char| first.is_ascii_lowercase());
        (rest.len() < line.len() && (rest.starts_with(". ") || rest.starts_with(") "))) || letter
    };
    if text.lines().filter(|line| is_numbered(line)).count() < 2 {
        return;
    }
    let mut start = 0;
    for line in text.split_inclusive('\n') {
        if is_numbered(line) {
            cuts.cut(start, start + line.len(), Cut::Pasted);
        }
        start += line.len();
    }
}
