//! Skills: how a `SKILL.md` is read, and which one, if any, a message calls for.
//!
//! The front matter is read by a reader of our own that knows five keys and refuses everything else, so that a
//! misspelt key is found at once and not by a skill that never matches.

use std::{borrow::Borrow, collections::BTreeSet};

/// Characters of a skill's name.
const NAME_CHARS_MAX: usize = 64;
/// Characters of its description.
const DESCRIPTION_CHARS_MAX: usize = 400;
/// Keywords of one skill.
const KEYWORDS_MAX: usize = 100;
/// Words of one keyword.
const KEYWORD_WORDS_MAX: usize = 6;
/// Tools one skill may name.
const TOOLS_MAX: usize = 64;
/// Words of a message that are looked at.
const WORDS_MAX: usize = 2_000;
/// Words that may stand where a phrase has `...`: "write ... essay" is in "write a long English essay".
const GAP_MAX: usize = 3;
/// Words that are passed over on both sides of a comparison: "the minutes" is as good as "minutes".
const ARTICLES: &[&str] = &[
    "a", "an", "the", "my", "our", "your", "his", "her", "their", "this", "that", "these", "those", "some",
];
/// The least evidence for a match: a phrase of two words, or two keywords of one. One common word alone says
/// too little.
const SCORE_MIN: u32 = 2;

/// A skill as its file describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skill {
    /// Its name, `[a-z0-9-]`.
    pub name: String,
    /// What it is for, one line.
    pub description: String,
    /// Words and phrases that call for it.
    pub keywords: Vec<String>,
    /// The only server tools a request with this skill is offered; `None` leaves them all.
    pub tools: Option<Vec<String>>,
    /// Whether it is used.
    pub enabled: bool,
    /// The instructions.
    pub body: String,
    /// The words of each keyword.
    phrases: Vec<Vec<Step>>,
}

/// Why a message calls for a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillMatch {
    /// The skill's name.
    pub name: String,
    /// The weight of the keywords found: one for each word of each keyword.
    pub score: u32,
    /// The keywords found, in the file's order.
    pub keywords: Vec<String>,
    /// The only server tools this request is offered; `None` leaves them all.
    pub tools: Option<Vec<String>>,
}

/// A key of the front matter and what was written for it.
#[derive(Debug, Default)]
struct Fields {
    name: Option<String>,
    description: Option<String>,
    keywords: Option<Vec<String>>,
    tools: Option<Vec<String>>,
    enabled: Option<bool>,
}

/// Reads a `SKILL.md` whose body has at most `body_chars_max` characters. The error is the end of a sentence
/// that begins with the file's name.
pub fn parse(text: &str, body_chars_max: usize) -> Result<Skill, String> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = text.lines();
    if lines.next().map(str::trim_end) != Some("---") {
        return Err("does not begin with a line `---`".to_owned());
    }
    let (mut head, mut body, mut closed) = (Vec::new(), Vec::new(), false);
    for line in lines {
        if closed {
            body.push(line);
        } else if line.trim_end() == "---" {
            closed = true;
        } else {
            head.push(line);
        }
    }
    if !closed {
        return Err("has no line `---` that ends its front matter".to_owned());
    }
    let body = body.join("\n").trim().to_owned();
    if body.is_empty() {
        return Err("has no instructions below its front matter".to_owned());
    }
    if body.chars().nth(body_chars_max).is_some() {
        return Err(format!(
            "has more than {body_chars_max} characters of instructions"
        ));
    }
    build(fields(&head)?, body)
}

fn build(fields: Fields, body: String) -> Result<Skill, String> {
    let name = fields.name.ok_or("does not give a `name`")?;
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if name.is_empty() || name.len() > NAME_CHARS_MAX || !name.chars().all(plain) {
        return Err(format!(
            "needs a `name` of at most {NAME_CHARS_MAX} characters a-z, 0-9 and -"
        ));
    }
    let description = fields.description.ok_or("does not give a `description`")?;
    if description.is_empty() || description.chars().nth(DESCRIPTION_CHARS_MAX).is_some() {
        return Err(format!(
            "needs a `description` of 1 to {DESCRIPTION_CHARS_MAX} characters"
        ));
    }
    let keywords = fields.keywords.ok_or("does not give `keywords`")?;
    if keywords.is_empty() || keywords.len() > KEYWORDS_MAX {
        return Err(format!("needs 1 to {KEYWORDS_MAX} `keywords`"));
    }
    let phrases: Vec<Vec<Step>> = keywords.iter().map(|keyword| steps(keyword)).collect();
    for (keyword, phrase) in keywords.iter().zip(&phrases) {
        if !(1..=KEYWORD_WORDS_MAX).contains(&phrase.len()) {
            return Err(format!(
                "has the keyword `{keyword}`, which is not 1 to {KEYWORD_WORDS_MAX} words"
            ));
        }
    }
    if fields.tools.as_ref().is_some_and(|tools| tools.len() > TOOLS_MAX) {
        return Err(format!("names more than {TOOLS_MAX} `tools`"));
    }
    Ok(Skill {
        name,
        description,
        keywords,
        tools: fields.tools,
        enabled: fields.enabled.unwrap_or(true),
        body,
        phrases,
    })
}

fn fields(head: &[&str]) -> Result<Fields, String> {
    let mut fields = Fields::default();
    let mut seen = BTreeSet::new();
    let mut lines = head.iter().enumerate().peekable();
    while let Some((index, line)) = lines.next() {
        let number = index + 2;
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let (key, value) = line
            .split_once(':')
            .ok_or_else(|| format!("line {number} is not `key: value`"))?;
        if !seen.insert(key) {
            return Err(format!("gives `{key}` twice"));
        }
        let mut items = Vec::new();
        while let Some((_, next)) = lines.peek()
            && let Some(item) = next.trim_start().strip_prefix("- ")
        {
            items.push(unquoted(item));
            lines.next();
        }
        let value = value.trim();
        if !value.is_empty() && !items.is_empty() {
            return Err(format!("gives `{key}` both a value and a list"));
        }
        let list = || {
            if items.is_empty() {
                list(value)
            } else {
                items.clone()
            }
        };
        match key {
            "name" => fields.name = Some(unquoted(value)),
            "description" => fields.description = Some(unquoted(value)),
            "keywords" => fields.keywords = Some(list()),
            "tools" => fields.tools = Some(list()),
            "enabled" => {
                fields.enabled = Some(match value {
                    "true" => true,
                    "false" => false,
                    _ => return Err("gives `enabled` a value that is neither true nor false".to_owned()),
                });
            }
            _ => {
                return Err(format!(
                    "line {number} has the unknown key `{key}`; known are name, description, keywords, tools, enabled"
                ));
            }
        }
    }
    Ok(fields)
}

/// `a, b` or `[a, b]`.
fn list(value: &str) -> Vec<String> {
    value
        .strip_prefix('[')
        .and_then(|inner| inner.strip_suffix(']'))
        .unwrap_or(value)
        .split(',')
        .map(unquoted)
        .filter(|item| !item.is_empty())
        .collect()
}

fn unquoted(text: &str) -> String {
    let text = text.trim();
    for quote in ['"', '\''] {
        if let Some(inner) = text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)) {
            return inner.to_owned();
        }
    }
    text.to_owned()
}

/// The one skill a message calls for: the highest score, the first name among equals, none below the least
/// evidence. The same message and skills always give the same answer.
pub fn best<'a>(skills: &'a [impl Borrow<Skill>], message: &str) -> Option<(&'a Skill, SkillMatch)> {
    let words = stems(message);
    skills
        .iter()
        .map(Borrow::borrow)
        .filter(|skill| skill.enabled)
        .filter_map(|skill| weigh(skill, &words).map(|found| (skill, found)))
        .max_by(|(_, a), (_, b)| a.score.cmp(&b.score).then_with(|| b.name.cmp(&a.name)))
}

fn weigh(skill: &Skill, words: &[String]) -> Option<SkillMatch> {
    let mut found = Vec::new();
    let mut counted: BTreeSet<&str> = BTreeSet::new();
    let mut score = 0_u32;
    for (keyword, phrase) in skill.keywords.iter().zip(&skill.phrases) {
        if !holds(words, phrase) {
            continue;
        }
        found.push(keyword.clone());
        // Each word is evidence once: "plan", "plans" and "study plan" in one list do not add up.
        let fresh = phrase.iter().filter(|step| counted.insert(&step.word)).count();
        score = score.saturating_add(u32::try_from(fresh).unwrap_or(u32::MAX));
    }
    (score >= SCORE_MIN).then(|| SkillMatch {
        name: skill.name.clone(),
        score,
        keywords: found,
        tools: skill.tools.clone(),
    })
}

/// A word of a keyword.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Step {
    word: String,
    /// Whether others may stand between it and the word before.
    gap: bool,
}

fn steps(keyword: &str) -> Vec<Step> {
    let keyword = keyword.replace('\u{2026}', "...");
    let parts = keyword.split("...").enumerate();
    parts
        .flat_map(|(part, text)| {
            stems(text)
                .into_iter()
                .enumerate()
                .map(move |(index, word)| Step {
                    word,
                    gap: part > 0 && index == 0,
                })
        })
        .collect()
}

/// Whether the words of `phrase` occur in order, side by side but for its gaps.
fn holds(words: &[String], phrase: &[Step]) -> bool {
    let Some((first, rest)) = phrase.split_first() else {
        return false;
    };
    let starts = words.iter().enumerate().filter(|(_, word)| **word == first.word);
    starts.into_iter().any(|(start, _)| {
        let mut at = start;
        rest.iter().all(|step| {
            let look = if step.gap { GAP_MAX + 1 } else { 1 };
            let next = words
                .iter()
                .skip(at + 1)
                .take(look)
                .position(|word| *word == step.word);
            next.is_some_and(|offset| {
                at += 1 + offset;
                true
            })
        })
    })
}

/// The words of a text but for articles, lower-case, without endings.
fn stems(text: &str) -> Vec<String> {
    text.split(|letter: char| !(letter.is_alphanumeric() || letter == '\'' || letter == '\u{2019}'))
        .map(|word| word.trim_matches(['\'', '\u{2019}']).to_lowercase())
        .filter(|word| !ARTICLES.contains(&word.as_str()))
        .map(|word| {
            let bare = word.strip_suffix("'s").or_else(|| word.strip_suffix("\u{2019}s"));
            stem(bare.unwrap_or(&word))
        })
        .filter(|word| !word.is_empty())
        .take(WORDS_MAX)
        .collect()
}

/// A word without plural, -ing, -ed and a final e: studies, studying and study are one. Rough on purpose: both
/// sides of every comparison go through it, so that it only has to be the same for both.
fn stem(word: &str) -> String {
    let long = |rest: &&str| rest.chars().count() >= 3;
    let bare = if let Some(rest) = word
        .strip_suffix("ies")
        .or_else(|| word.strip_suffix("ied"))
        .filter(long)
    {
        format!("{rest}y")
    } else if let Some(rest) = word
        .strip_suffix("ing")
        .or_else(|| word.strip_suffix("ed"))
        .filter(long)
    {
        undoubled(rest).to_owned()
    } else if ["sses", "ches", "shes", "xes"]
        .iter()
        .any(|ending| word.ends_with(ending))
    {
        word.strip_suffix("es").unwrap_or(word).to_owned()
    } else if word.ends_with("ss") || word.ends_with("us") || word.ends_with("is") {
        word.to_owned()
    } else {
        word.strip_suffix('s').filter(long).unwrap_or(word).to_owned()
    };
    match bare.strip_suffix('e').filter(long) {
        Some(rest) => rest.to_owned(),
        None => bare,
    }
}

/// planned and planning: plan. But not passing: pass.
fn undoubled(word: &str) -> &str {
    let mut letters = word.chars().rev();
    match (letters.next(), letters.next()) {
        (Some(last), Some(before)) if last == before && !matches!(last, 'l' | 's' | 'z' | 'e' | 'o') => {
            word.strip_suffix(last).unwrap_or(word)
        }
        _ => word,
    }
}

#[cfg(test)]
mod tests;
