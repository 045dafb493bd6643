//! Words as the full-text index takes them.
//!
//! **Quoting.** What stands in a MATCH is a language of its own. A term from outside gets into it by
//! [`expression`] alone, as a string between quotes, which the index takes apart like any text.
//!
//! **Scripts without spaces.** The tokenizer ends a word where a character is neither letter nor number, so that a
//! Chinese sentence would be one word. [`spaced`] sets such letters apart before they are indexed, and a term in such
//! a script is looked for by its pairs of letters.

use std::{borrow::Cow, collections::HashMap};

use rusqlite::{Connection, OptionalExtension as _};

use crate::row::uncount;

/// How the index takes text apart: stems of English, no difference of case or accents. As in the migration.
const TOKENIZER: &str = "porter unicode61 remove_diacritics 2";

/// How much more a word counts in a heading than in the text.
pub(super) const HEADING_WEIGHT: f32 = 2.0;

/// Terms in one search; what is beyond is not looked for. A query of a long paragraph has some two hundred.
const TERMS_MAX: usize = 512;

/// The longest term in bytes. Nobody writes longer words, and what is longer is found nowhere.
const TERM_BYTES_MAX: usize = 512;

/// Frequencies that are kept while nothing changes.
const KEPT_MAX: usize = 10_000;

/// The text with letters of scripts that have no spaces set apart; itself where there are none.
pub(crate) fn spaced(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_unspaced) {
        return Cow::Borrowed(text);
    }
    let mut output = String::with_capacity(text.len() * 2);
    for letter in text.chars() {
        if is_unspaced(letter) {
            output.extend([' ', letter, ' ']);
        } else {
            output.push(letter);
        }
    }
    Cow::Owned(output)
}

/// Letters of scripts that are written without spaces between words: Han with its extensions, kana, Bopomofo, Thai,
/// Lao, Myanmar and Khmer (Unicode 16, blocks). Korean has spaces.
fn is_unspaced(letter: char) -> bool {
    matches!(letter,
        '\u{0e01}'..='\u{0eff}' | '\u{1000}'..='\u{109f}' | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}' | '\u{3041}'..='\u{312f}' | '\u{31a0}'..='\u{31bf}' | '\u{31f0}'..='\u{31ff}'
        | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{ff66}'..='\u{ff9f}' | '\u{20000}'..='\u{3ffff}')
}

/// The terms as one expression that finds chunks with any of them; `None` where there is nothing to look for.
/// A term that is there twice counts twice.
pub(super) fn expression(terms: &[String]) -> Option<String> {
    let output = expressions(terms).collect::<Vec<_>>().join(" OR ");
    (!output.is_empty()).then_some(output)
}

/// Each term as an expression of its own, or as several where it has no spaces; at most a bounded number.
pub(crate) fn expressions(terms: &[String]) -> impl Iterator<Item = String> + '_ {
    terms
        .iter()
        .flat_map(|term| phrases(term))
        .take(TERMS_MAX)
        .map(|phrase| quoted(&phrase))
}

/// A string of the index's language that means `text` and nothing else. NUL would end the expression for SQLite.
fn quoted(text: &str) -> String {
    let mut output = String::with_capacity(text.len() + 2);
    output.push('"');
    for letter in text.chars() {
        match letter {
            '"' => output.push_str("\"\""),
            '\0' => output.push(' '),
            letter => output.push(letter),
        }
    }
    output.push('"');
    output
}

/// What is looked for in place of a term: itself, or its pairs of letters where it has no spaces.
fn phrases(term: &str) -> Vec<String> {
    if term.len() > TERM_BYTES_MAX || !term.chars().any(char::is_alphanumeric) {
        return Vec::new();
    }
    let letters: Vec<char> = term.chars().collect();
    if letters.len() > 2 && letters.iter().all(|letter| is_unspaced(*letter)) {
        letters
            .windows(2)
            .map(|pair| pair.iter().flat_map(|letter| [*letter, ' ']).collect())
            .collect()
    } else {
        vec![spaced(term).into_owned()]
    }
}

/// The expression of SQLite's ranking function.
pub(super) fn rank() -> String {
    format!("bm25({HEADING_WEIGHT:.3}, 1.0)")
}

/// Says in how many chunks words stand: by their stems, which a scratch table of the same tokenizer gives, and kept
/// while the store stays as it is.
#[derive(Debug, Default)]
pub(super) struct Frequencies {
    scratch: Option<Connection>,
    version: i64,
    kept: HashMap<String, u64>,
}

impl Frequencies {
    /// In how many chunks each term stands; for one of several words, no fewer than it does.
    pub(super) fn of(
        &mut self,
        connection: &Connection,
        terms: &[String],
    ) -> Result<Vec<u64>, rusqlite::Error> {
        let version: i64 = connection
            .prepare_cached("SELECT version FROM kb_state")?
            .query_row([], |row| row.get(0))?;
        if version != self.version || self.kept.len() > KEPT_MAX {
            self.kept.clear();
            self.version = version;
        }
        terms.iter().map(|term| self.one(connection, term)).collect()
    }

    fn one(&mut self, connection: &Connection, term: &str) -> Result<u64, rusqlite::Error> {
        if let Some(known) = self.kept.get(term) {
            return Ok(*known);
        }
        let mut least: Option<u64> = None;
        if term.len() <= TERM_BYTES_MAX {
            for stem in self.stems(term)? {
                let found: Option<i64> = connection
                    .prepare_cached("SELECT doc FROM kb_terms WHERE term = ?1")?
                    .query_row([stem], |row| row.get(0))
                    .optional()?;
                let found = uncount(found.unwrap_or(0));
                least = Some(least.map_or(found, |least| least.min(found)));
            }
        }
        let count = least.unwrap_or(0);
        self.kept.insert(term.to_owned(), count);
        Ok(count)
    }

    /// The stems that the index would keep for a text.
    fn stems(&mut self, text: &str) -> Result<Vec<String>, rusqlite::Error> {
        let scratch = match &mut self.scratch {
            Some(scratch) => scratch,
            none => none.insert(scratch()?),
        };
        scratch
            .prepare_cached("INSERT INTO scratch (rowid, text) VALUES (1, ?1)")?
            .execute([spaced(text)])?;
        let stems = scratch
            .prepare_cached("SELECT term FROM stems")?
            .query_map([], |row| row.get(0))?
            .collect();
        scratch
            .prepare_cached("INSERT INTO scratch (scratch) VALUES ('delete-all')")?
            .execute([])?;
        stems
    }
}

fn scratch() -> Result<Connection, rusqlite::Error> {
    let connection = Connection::open_in_memory()?;
    connection.execute_batch(&format!(
        "CREATE VIRTUAL TABLE scratch USING fts5 (text, content = '', tokenize = '{TOKENIZER}'); \
         CREATE VIRTUAL TABLE stems USING fts5vocab (scratch, 'row')"
    ))?;
    Ok(connection)
}

#[cfg(test)]
mod tests;
