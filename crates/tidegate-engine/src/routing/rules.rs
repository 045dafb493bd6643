//! The pattern tier: the operator's rule file, compiled, and how a message is held against it.
//!
//! The format is told at the top of the shipped `routing/patterns.txt`. Every expression is compiled by the
//! `regex` crate, which matches in time linear in the text, and a rule must match a whole sentence: a rule
//! that could be found anywhere would catch "what tools do you need to build a shed". The few rules that are
//! found anywhere (`anywhere.name`) count only in a sentence that holds no guard.

use std::collections::BTreeMap;

use regex::{Regex, RegexBuilder};

/// Rules of one kind that are used; later ones are reported.
const RULES_MAX: usize = 400;

/// Characters of one expression once its parts are put in.
const EXPRESSION_CHARS_MAX: usize = 60_000;

/// Bytes one compiled expression may take.
const COMPILED_BYTES_MAX: usize = 4 << 20;

/// Broken lines that are named.
const BROKEN_MAX: usize = 5;

/// Times something is taken off the ends of a sentence.
const STRIPS_MAX: usize = 8;

/// How the names of rules begin that are found at any place of a sentence.
const ANYWHERE: &str = "anywhere.";

/// Contractions, written out so that a rule needs one form only.
const CONTRACTIONS: &[(&str, &str)] = &[
    ("what's", "what is"),
    ("whats", "what is"),
    ("what're", "what are"),
    ("what've", "what have"),
    ("who's", "who is"),
    ("who've", "who have"),
    ("how's", "how is"),
    ("where's", "where is"),
    ("when's", "when is"),
    ("that's", "that is"),
    ("there's", "there is"),
    ("it's", "it is"),
    ("you're", "you are"),
    ("you've", "you have"),
    ("you'll", "you will"),
    ("u", "you"),
    ("ur", "your"),
    ("r", "are"),
    ("i'm", "i am"),
    ("im", "i am"),
    ("i'd", "i would"),
    ("i've", "i have"),
    ("we're", "we are"),
    ("we've", "we have"),
    ("can't", "can not"),
    ("cannot", "can not"),
    ("won't", "will not"),
    ("don't", "do not"),
    ("doesn't", "does not"),
    ("didn't", "did not"),
    ("isn't", "is not"),
    ("aren't", "are not"),
    ("wasn't", "was not"),
    ("weren't", "were not"),
    ("haven't", "have not"),
    ("couldn't", "could not"),
    ("wouldn't", "would not"),
    ("shouldn't", "should not"),
];

/// One compiled line.
#[derive(Debug)]
struct Rule {
    name: String,
    expression: Regex,
}

/// What a clause turned out to be; any other clause makes the whole message one about something else.
#[derive(Debug, Clone, Copy)]
enum Clause<'a> {
    /// Caught by the rule of that name.
    Caught(&'a str),
    /// It asks nothing.
    Filler,
}

/// A rule file, compiled.
#[derive(Debug, Default)]
pub(super) struct Rules {
    catching: Vec<Rule>,
    fillers: Vec<Regex>,
    prefixes: Vec<Regex>,
    suffixes: Vec<Regex>,
    /// Rules that are found at any place of a sentence.
    anywhere: Vec<Rule>,
    /// What a task, a story or talk about people in general looks like.
    guards: Vec<Regex>,
    /// What speaks to or of the assistant.
    addresses: Vec<Regex>,
    /// Lines that could not be used, as sentences.
    broken: Vec<String>,
}

impl Rules {
    /// Compiles a rule file. A line that cannot be used is left out and named in `broken`.
    pub(super) fn parse(text: &str) -> Self {
        let mut this = Self::default();
        let mut parts = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Err(problem) = this.add(line, &mut parts) {
                this.broken.push(format!("line {}: {problem}", index + 1));
            }
        }
        this
    }

    fn add(&mut self, line: &str, parts: &mut BTreeMap<String, String>) -> Result<(), String> {
        let (name, expression) = line
            .split_once(" = ")
            .map(|(name, expression)| (name.trim(), expression.trim()))
            .ok_or("write `name = expression`")?;
        let expression = put_in(expression, parts)?;
        if let Some(part) = name.strip_prefix('@') {
            if part.is_empty() || !part.chars().all(is_part_letter) {
                return Err("a part's name is made of a-z and _".to_owned());
            }
            compile(&expression)?;
            parts.insert(part.to_owned(), format!("(?:{expression})"));
            return Ok(());
        }
        let (list, whole) = match name {
            "prefix" => return push(&mut self.prefixes, &format!("^(?:{expression})(?: |$)")),
            "suffix" => return push(&mut self.suffixes, &format!("(?:^| )(?:{expression})$")),
            "filler" => return push(&mut self.fillers, &format!("^(?:{expression})$")),
            "guard" => return push(&mut self.guards, &found(&expression)),
            "address" => return push(&mut self.addresses, &found(&expression)),
            _ if name.starts_with(ANYWHERE) => (&mut self.anywhere, found(&expression)),
            _ => (&mut self.catching, format!("^(?:{expression})$")),
        };
        if list.len() >= RULES_MAX {
            return Err(format!("more than {RULES_MAX} rules"));
        }
        list.push(Rule {
            name: name.to_owned(),
            expression: compile(&whole)?,
        });
        Ok(())
    }

    /// What is wrong with the file: some lines of it, or, where no rule is left, all of it.
    pub(super) fn verdict(&self) -> Result<Option<String>, String> {
        if self.broken.is_empty() {
            return Ok(None);
        }
        let named: Vec<&str> = self.broken.iter().take(BROKEN_MAX).map(String::as_str).collect();
        let more = match self.broken.len().saturating_sub(BROKEN_MAX) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let problem = format!("has lines that cannot be used: {}{more}", named.join("; "));
        if self.catching.is_empty() && self.anywhere.is_empty() {
            Err(problem)
        } else {
            Ok(Some(problem))
        }
    }

    /// The rule by which the whole of `text` is about the assistant, if it is. Every sentence must be caught by
    /// a rule or be filler.
    pub(super) fn find(&self, text: &str) -> Option<&str> {
        let mut found = None;
        for sentence in sentences(text) {
            match self.sentence(&sentence)? {
                Clause::Filler => {}
                Clause::Caught(name) => found = found.or(Some(name)),
            }
        }
        found
    }

    /// Whether the second tier may say yes to `text`: it speaks to or of the assistant, and no sentence of it is
    /// a task, a story, a chat or about people in general.
    pub(super) fn addresses(&self, text: &str) -> bool {
        let mut addressed = false;
        for sentence in sentences(text) {
            let bare = self.bare(&sentence);
            if self.guards.iter().any(|guard| guard.is_match(bare)) {
                return false;
            }
            addressed |= self.addresses.iter().any(|address| address.is_match(bare));
        }
        addressed
    }

    /// One sentence, or several clauses joined by "and".
    fn sentence(&self, sentence: &str) -> Option<Clause<'_>> {
        let whole = self.clause(sentence).or_else(|| self.clauses(sentence));
        whole.or_else(|| self.anywhere(sentence))
    }

    /// Clauses joined by "and", each of which must be caught or filler.
    fn clauses(&self, sentence: &str) -> Option<Clause<'_>> {
        let mut whole = Clause::Filler;
        for clause in sentence.split(" and ") {
            match (&whole, self.clause(clause)?) {
                (Clause::Filler, Clause::Caught(name)) => whole = Clause::Caught(name),
                (Clause::Filler | Clause::Caught(_), Clause::Filler)
                | (Clause::Caught(_), Clause::Caught(_)) => {}
            }
        }
        Some(whole)
    }

    /// A turn of phrase that speaks of the assistant, in a sentence without a guard.
    fn anywhere(&self, sentence: &str) -> Option<Clause<'_>> {
        let bare = self.bare(sentence);
        if self.guards.iter().any(|guard| guard.is_match(bare)) {
            return None;
        }
        let rule = self.anywhere.iter().find(|rule| rule.expression.is_match(bare))?;
        Some(Clause::Caught(&rule.name))
    }

    /// A sentence without its prefixes. Suffixes stay: what a sentence ends with may be what guards it.
    fn bare<'a>(&self, sentence: &'a str) -> &'a str {
        let mut rest = sentence;
        for _ in 0..STRIPS_MAX {
            match self.without_prefix(rest) {
                Some(shorter) => rest = shorter,
                None => break,
            }
        }
        rest
    }

    fn without_prefix<'a>(&self, text: &'a str) -> Option<&'a str> {
        self.prefixes.iter().find_map(|prefix| {
            let found = prefix.find(text)?;
            text.get(found.end()..)
                .map(str::trim)
                .filter(|rest| !rest.is_empty())
        })
    }

    fn clause(&self, clause: &str) -> Option<Clause<'_>> {
        let mut rest = clause.trim();
        for _ in 0..STRIPS_MAX {
            if let Some(rule) = self.catching.iter().find(|rule| rule.expression.is_match(rest)) {
                return Some(Clause::Caught(&rule.name));
            }
            if self.fillers.iter().any(|filler| filler.is_match(rest)) {
                return Some(Clause::Filler);
            }
            rest = self.stripped(rest)?;
        }
        None
    }

    /// `text` without one prefix or suffix; `None` where nothing can be taken off.
    fn stripped<'a>(&self, text: &'a str) -> Option<&'a str> {
        self.without_prefix(text).or_else(|| {
            self.suffixes.iter().find_map(|suffix| {
                let found = suffix.find(text)?;
                text.get(..found.start())
                    .map(str::trim)
                    .filter(|rest| !rest.is_empty())
            })
        })
    }
}

/// The expression at any place of a sentence, on borders of words as the rules know them.
fn found(expression: &str) -> String {
    format!("(?:^| )(?:{expression})(?: |$)")
}

fn push(list: &mut Vec<Regex>, expression: &str) -> Result<(), String> {
    if list.len() >= RULES_MAX {
        return Err(format!("more than {RULES_MAX} of its kind"));
    }
    list.push(compile(expression)?);
    Ok(())
}

fn compile(expression: &str) -> Result<Regex, String> {
    RegexBuilder::new(expression)
        .size_limit(COMPILED_BYTES_MAX)
        .build()
        .map_err(|error| match error {
            regex::Error::CompiledTooBig(limit) => format!("the expression takes more than {limit} bytes"),
            other @ (regex::Error::Syntax(_) | _) => {
                // The crate draws a picture of several lines; its last line says what is wrong.
                let text = other.to_string();
                text.lines().last().unwrap_or_default().trim().to_owned()
            }
        })
}

fn is_part_letter(letter: char) -> bool {
    letter.is_ascii_lowercase() || letter == '_'
}

/// Puts the parts into an expression, each `@name` replaced by what it stands for.
fn put_in(expression: &str, parts: &BTreeMap<String, String>) -> Result<String, String> {
    let mut whole = String::with_capacity(expression.len());
    let mut pieces = expression.split('@');
    whole.push_str(pieces.next().unwrap_or_default());
    for piece in pieces {
        let end = piece
            .find(|letter| !is_part_letter(letter))
            .unwrap_or(piece.len());
        let (name, rest) = piece.split_at(end);
        let part = parts
            .get(name)
            .ok_or_else(|| format!("`@{name}` is not defined above this line"))?;
        whole.push_str(part);
        whole.push_str(rest);
        if whole.len() > EXPRESSION_CHARS_MAX {
            return Err(format!(
                "with its parts it is longer than {EXPRESSION_CHARS_MAX} characters"
            ));
        }
    }
    Ok(whole)
}

/// Lower case, straight quotes, one space between words.
pub(super) fn plain(text: &str) -> String {
    text.chars()
        .flat_map(char::to_lowercase)
        .map(|letter| match letter {
            '\u{2018}' | '\u{2019}' | '\u{02bc}' | '`' | '\u{b4}' => '\'',
            ',' | '"' | '\u{201c}' | '\u{201d}' => ' ',
            other => other,
        })
        .collect()
}

/// The sentences of a message as the rules see them.
pub(super) fn sentences(text: &str) -> Vec<String> {
    let mut sentences = Vec::new();
    for line in plain(text).lines() {
        let mut words: Vec<&str> = Vec::new();
        for word in line.split_whitespace() {
            let bare = word.trim_end_matches(['.', '?', '!', '\u{2026}']);
            if !bare.is_empty() {
                words.push(written_out(bare));
            }
            if bare.len() < word.len() {
                take(&mut words, &mut sentences);
            }
        }
        take(&mut words, &mut sentences);
    }
    sentences
}

fn take(words: &mut Vec<&str>, sentences: &mut Vec<String>) {
    let sentence = words.join(" ");
    words.clear();
    let sentence = sentence.trim_matches('\'').trim();
    if !sentence.is_empty() {
        sentences.push(sentence.to_owned());
    }
}

fn written_out(word: &str) -> &str {
    CONTRACTIONS
        .iter()
        .find(|(short, _)| *short == word)
        .map_or(word, |(_, long)| long)
}
