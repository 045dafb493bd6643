//! Text from outside: control tokens and call markup are taken out, and what came from elsewhere is wrapped.
//!
//! Text is read as a model, or a client that normalises, would read it: invisible characters ignored,
//! compatibility forms (full-width brackets and bars) mapped. A token is removed the moment its last letter
//! arrives, so what is left never holds one, however they were nested, and one pass is enough.

mod markers;

use tidegate_core::markup;
use unicode_normalization::UnicodeNormalization;

/// The longest token of the general form `<|…|>`, between the bars, in characters.
const GENERAL_CHARS_MAX: usize = 64;

/// The longest name between angle or square brackets that is looked up, in characters.
const NAME_CHARS_MAX: usize = 32;

/// The longest source that is shown in a marker, in characters.
const SOURCE_CHARS_MAX: usize = 200;

pub use markers::Unmarked;

const BEGIN: &str = "EXTERNAL_UNTRUSTED_CONTENT";
const END: &str = "END_UNTRUSTED_CONTENT";
/// What both markers end with. No other text may hold it.
const MARKER_CORE: &str = "UNTRUSTED_CONTENT";

/// Names of tokens between `<` and `>`, also with `/` before them; compared without case.
const ANGLE_NAMES: [&str; 71] = [
    "s",
    "bos",
    "eos",
    "pad",
    "unk",
    "sop",
    "eop",
    "sep",
    "cls",
    "mask",
    "think",
    "thinking",
    "tool_call",
    "tool_calls",
    "tool_response",
    "tools",
    "function_calls",
    "function_results",
    "function",
    "invoke",
    "parameter",
    "start_of_turn",
    "end_of_turn",
    "start_of_turn|",
    "end_of_turn|",
    "start_of_image",
    "end_of_utterance",
    "fim_prefix",
    "fim_suffix",
    "bos_token",
    "eos_token",
    "pad_token",
    "unk_token",
    "eod",
    "eot",
    "escape",
    "fim_middle",
    "fim_pad",
    "fim-prefix",
    "fim-suffix",
    "fim-middle",
    "fim-pad",
    "file_sep",
    "repo_name",
    "reponame",
    "gh_stars",
    "issue_start",
    "issue_comment",
    "issue_closed",
    "toolcall",
    "tool▁call",
    "tool▁calls",
    "available_tools",
    "function_call",
    "function_response",
    "arg_key",
    "arg_value",
    "minimax:tool_call",
    "seed:think",
    "seed:tool_call",
    "longcat_tool_call",
    "start_function_call",
    "end_function_call",
    "start_function_declaration",
    "end_function_declaration",
    "start_function_response",
    "end_function_response",
    "end_of_image",
    "start_of_audio",
    "end_of_audio",
    "untrusted_content",
];

/// The same, compared with case: in small letters they are tags of any page.
const ANGLE_NAMES_EXACT: [&str; 4] = ["PRE", "SUF", "MID", "EOT"];

/// Names of roles and of ends that stand between bars. Where blanks stand beside the bars too, only these and names
/// with an underscore are tokens: `a <| b |> c` is an expression.
const BAR_NAMES: [&str; 12] = [
    "system",
    "user",
    "assistant",
    "tool",
    "developer",
    "endoftext",
    "end",
    "start",
    "message",
    "channel",
    "call",
    "return",
];

/// Names that open a call and take a value: `<function=name>`, `<invoke name="…">`.
const ANGLE_OPENERS: [&str; 6] = [
    "<function=",
    "<parameter=",
    "<invoke ",
    "<tool_call ",
    "<parameter ",
    "<function ",
];

/// Names of tokens between `[` and `]`, also with `/` before them; compared without case.
const SQUARE_NAMES: [&str; 11] = [
    "inst",
    "sys",
    "system_prompt",
    "available_tools",
    "tool_results",
    "tool_result",
    "tool_calls",
    "tool_content",
    "gmask",
    "smask",
    "model_settings",
];

/// The same, compared with case: in small letters they are words of any manual.
const SQUARE_NAMES_EXACT: [&str; 14] = [
    "ARGS",
    "BOS",
    "CALL_ID",
    "CLS",
    "EOS",
    "IMG",
    "IMG_BREAK",
    "IMG_END",
    "MASK",
    "MIDDLE",
    "PREFIX",
    "SEP",
    "SUFFIX",
    "THINK",
];

/// The text without control tokens and with our own call markup defused. The same text again when it is put
/// through a second time.
pub fn neutralise(text: &str) -> String {
    let mut output = Output::with_capacity(text.len());
    for letter in text.chars() {
        output.push(letter);
    }
    output.text
}

/// The text between markers that say where it came from, both with `boundary_id`, which must be new and random
/// for each result so that the text cannot close its own wrapping.
pub fn wrap(text: &str, source: &str, boundary_id: &str) -> String {
    let id: String = boundary_id
        .chars()
        .filter(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_'))
        .collect();
    format!(
        "<<<{BEGIN} id=\"{id}\" source=\"{}\">>>\n{}\n<<<{END} id=\"{id}\">>>",
        escape_source(source),
        neutralise(text)
    )
}

/// The text, with the end of its wrapping where it begins with a wrapping's beginning and was cut before its end.
pub fn closed(mut text: String) -> String {
    let Some(rest) = text.strip_prefix("<<<").and_then(|rest| rest.strip_prefix(BEGIN)) else {
        return text;
    };
    let id = rest
        .strip_prefix(" id=\"")
        .and_then(|rest| rest.split('"').next());
    let end = format!("\n<<<{END} id=\"{}\">>>", id.unwrap_or_default());
    if !text.ends_with(&end) {
        // The cut may have left a part of the end.
        let kept = (0..end.len()).rev().find(|length| {
            end.get(..*length)
                .is_some_and(|part| !part.is_empty() && text.ends_with(part))
        });
        text.truncate(text.len() - kept.unwrap_or(0));
        text.push_str(&end);
    }
    text
}

/// A source as the value of an attribute, on one line.
fn escape_source(source: &str) -> String {
    let mut escaped = String::new();
    for letter in neutralise(source).chars().take(SOURCE_CHARS_MAX) {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            letter if letter.is_control() => escaped.push(' '),
            letter => escaped.push(letter),
        }
    }
    escaped
}

/// The text as a reader takes it in: compatibility forms folded (NFKC), characters that show nothing dropped. For
/// checks on words, which such characters would otherwise hide.
pub fn folded(text: &str) -> String {
    use unicode_normalization::UnicodeNormalization as _;
    text.nfkc().filter(|letter| !is_invisible(*letter)).collect()
}

/// Characters that show nothing, or turn the direction of what is shown.
pub fn is_invisible(letter: char) -> bool {
    matches!(
        letter,
        '\u{ad}'
            | '\u{34f}'
            | '\u{61c}'
            | '\u{115f}'
            | '\u{1160}'
            | '\u{17b4}'
            | '\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{3164}'
            | '\u{feff}'
            | '\u{ffa0}'
            | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}'
    )
}

/// Joiners are part of several scripts and of emoji: they stay in the text, and no token is told by them.
fn is_joiner(letter: char) -> bool {
    matches!(letter, '\u{200c}' | '\u{200d}')
}

/// One letter as it is read, and where the text was when it came.
#[derive(Debug, Clone, Copy)]
struct Read {
    letter: char,
    text_length: usize,
}

/// The text so far, and how it reads.
#[derive(Debug)]
struct Output {
    text: String,
    read: Vec<Read>,
}

impl Output {
    fn with_capacity(bytes: usize) -> Self {
        Self {
            text: String::with_capacity(bytes),
            read: Vec::new(),
        }
    }

    fn push(&mut self, letter: char) {
        if is_joiner(letter) {
            self.text.push(letter);
            return;
        }
        if is_invisible(letter) {
            // Line and paragraph separators are the only ones among them that mean something.
            if matches!(letter, '\u{2028}' | '\u{2029}') {
                self.push('\n');
            }
            return;
        }
        let text_length = self.text.len();
        // A flower is drawn where our own marker would be read.
        match markup::neutralise(letter.encode_utf8(&mut [0; 4])).chars().next() {
            Some(harmless) => self.text.push(harmless),
            None => self.text.push(letter),
        }
        for letter in std::iter::once(letter).nfkc() {
            self.read.push(Read { letter, text_length });
            if let Some(count) = self.token_length() {
                self.remove(count);
                // The rest of this character's reading went with it.
                return;
            }
        }
    }

    /// Takes the last `count` read letters back, and the text they came from.
    fn remove(&mut self, count: usize) {
        let first = self.read.len().saturating_sub(count);
        let Some(&Read { text_length, .. }) = self.read.get(first) else {
            return;
        };
        self.text.truncate(text_length);
        while self
            .read
            .last()
            .is_some_and(|read| read.text_length >= text_length)
        {
            self.read.pop();
        }
    }

    /// How many letters the token has that has just been completed, if one has.
    fn token_length(&self) -> Option<usize> {
        match self.last(0)? {
            '>' => self.general_form().or_else(|| self.angle_form()),
            ']' => self.square_form(),
            '=' | ' ' | '\t' | '\n' => self.opener(),
            't' | 'T' => self.marker_core(),
            _ => None,
        }
    }

    /// The letter that many before the last.
    fn last(&self, back: usize) -> Option<char> {
        let at = self.read.len().checked_sub(back + 1)?;
        self.read.get(at).map(|read| read.letter)
    }

    /// What stands between the last letter and the nearest `open` before it, within `chars_max`.
    fn between(&self, open: char, chars_max: usize) -> Option<(String, usize)> {
        let mut reversed = Vec::new();
        for back in 1..=chars_max + 1 {
            match self.last(back)? {
                letter if letter == open => {
                    return Some((reversed.into_iter().rev().collect(), back + 1));
                }
                '\n' => return None,
                letter => reversed.push(letter),
            }
        }
        None
    }

    /// `<|anything|>`, `<|family|anything>`, and with one bar `<|name>` or `<name|>`.
    fn general_form(&self) -> Option<usize> {
        let (inside, count) = self.between('<', GENERAL_CHARS_MAX + 2)?;
        let is_word = |name: &str| {
            name.chars().count() > 1
                && name
                    .chars()
                    .all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '▁' | '"'))
        };
        let is_token = match (inside.strip_prefix('|'), inside.strip_suffix('|')) {
            (Some(_), Some(_)) => inside
                .strip_prefix('|')
                .and_then(|rest| rest.strip_suffix('|'))
                .is_some_and(is_between_bars),
            (Some(rest), None) => match rest.split_once('|') {
                Some((family, _)) => is_word(family),
                None => is_word(rest),
            },
            (None, Some(rest)) => is_word(rest.trim_start_matches('/')),
            (None, None) => false,
        };
        is_token.then_some(count)
    }

    /// `<name>`, `</name>`, `<<SYS>>`, and numbered spares.
    fn angle_form(&self) -> Option<usize> {
        if self.last(1) == Some('>') {
            return self.double_angle_form();
        }
        let (inside, count) = self.between('<', NAME_CHARS_MAX)?;
        let name = inside.trim_matches([' ', '/']).to_ascii_lowercase();
        // `a < s > b` is no token.
        let is_tight = !inside.starts_with(' ') || name.len() > 1;
        let is_known = ANGLE_NAMES.contains(&name.as_str())
            || ANGLE_NAMES_EXACT.contains(&inside.as_str())
            || is_spare(&name);
        (is_known && is_tight).then_some(count)
    }

    fn double_angle_form(&self) -> Option<usize> {
        let inside: String = (2..=8)
            .map_while(|back| self.last(back))
            .take_while(|letter| *letter != '<')
            .collect();
        let count = inside.chars().count() + 2;
        let name: String = inside.chars().rev().collect();
        let is_sys = name.trim_matches([' ', '/']).eq_ignore_ascii_case("sys");
        (is_sys && self.last(count) == Some('<') && self.last(count + 1) == Some('<')).then_some(count + 2)
    }

    fn square_form(&self) -> Option<usize> {
        let (inside, count) = self.between('[', NAME_CHARS_MAX)?;
        let name = inside.strip_prefix('/').unwrap_or(&inside);
        let is_known = SQUARE_NAMES.iter().any(|known| known.eq_ignore_ascii_case(name))
            || SQUARE_NAMES_EXACT.contains(&name)
            || is_spare(&name.to_ascii_lowercase());
        is_known.then_some(count)
    }

    fn opener(&self) -> Option<usize> {
        ANGLE_OPENERS.iter().find_map(|opener| {
            let is_here = opener.chars().rev().enumerate().all(|(back, expected)| {
                self.last(back).is_some_and(|letter| {
                    letter.eq_ignore_ascii_case(&expected) || (expected == ' ' && letter.is_whitespace())
                })
            });
            is_here.then(|| opener.chars().count())
        })
    }

    /// The core of our own markers, with any blanks between its letters.
    fn marker_core(&self) -> Option<usize> {
        let mut back = 0;
        for expected in MARKER_CORE.chars().rev() {
            let mut blanks = 0;
            while back > 0 && self.last(back)?.is_whitespace() {
                back += 1;
                blanks += 1;
                if blanks > NAME_CHARS_MAX {
                    return None;
                }
            }
            if !self.last(back)?.eq_ignore_ascii_case(&expected) {
                return None;
            }
            back += 1;
        }
        Some(back)
    }
}

/// How spare tokens are called, before their numbers.
const SPARES: [&str; 7] = [
    "unused",
    "unused_token_",
    "extra_id_",
    "reserved_",
    "special_",
    "control_",
    "ctrl",
];

/// Whether what stands between two bars makes them a token.
fn is_between_bars(inside: &str) -> bool {
    let name = inside.trim();
    if name.is_empty() || name.contains('>') {
        return false;
    }
    let is_tight = name.len() == inside.len();
    let is_one_word = !name.contains(char::is_whitespace);
    is_tight
        || (is_one_word && (name.contains('_') || BAR_NAMES.contains(&name.to_ascii_lowercase().as_str())))
}

/// Spare tokens of vocabularies: `<unused12>`, `<extra_id_3>`, `<reserved_5>`, and bytes: `<0x0A>`.
fn is_spare(name: &str) -> bool {
    let is_byte = name
        .strip_prefix("0x")
        .is_some_and(|digits| digits.len() == 2 && digits.chars().all(|digit| digit.is_ascii_hexdigit()));
    is_byte
        || SPARES.iter().any(|prefix| {
            name.strip_prefix(prefix).is_some_and(|number| {
                !number.is_empty() && number.chars().all(|digit| digit.is_ascii_digit())
            })
        })
}

#[cfg(test)]
mod tests;
