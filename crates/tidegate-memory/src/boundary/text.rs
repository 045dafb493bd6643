//! A turn as it reads: compatibility forms folded, small letters, invisible characters dropped; with the way back to the
//! letters that were sent, and with every place at which text looked like what it is not.

use tidegate_gate::guards::untrusted;
use unicode_normalization::{UnicodeNormalization as _, char::canonical_combining_class};

/// A text as it reads.
#[derive(Debug, Clone, Default)]
pub(crate) struct Folded {
    /// What is read, in small letters.
    pub(crate) text: String,
    /// For each of its bytes, and for its end, where that stood in the text that was sent.
    at: Vec<usize>,
    /// Where a character stood that shows something else than it is, or nothing; ascending.
    disguises: Vec<usize>,
}

impl Folded {
    /// Reads a text.
    pub(crate) fn of(raw: &str) -> Self {
        let mut folded = Self {
            text: String::with_capacity(raw.len()),
            at: Vec::with_capacity(raw.len() + 1),
            disguises: Vec::new(),
        };
        // A mark at the very beginning says in which encoding a file is.
        let skipped = raw.len() - raw.trim_start_matches('\u{feff}').len();
        let mut clusters = raw.char_indices().skip_while(|(at, _)| *at < skipped).peekable();
        while let Some((start, letter)) = clusters.next() {
            let mut cluster = String::from(letter);
            while let Some((_, mark)) = clusters.next_if(|(_, mark)| canonical_combining_class(*mark) != 0) {
                cluster.push(mark);
            }
            folded.push(start, letter, &cluster);
        }
        folded.at.push(raw.len());
        folded
    }

    fn push(&mut self, start: usize, letter: char, cluster: &str) {
        if let Some(read) = read_as(letter) {
            self.append(start, read);
            return;
        }
        if untrusted::is_invisible(letter) {
            // Joiners belong to emoji and to several scripts.
            let is_joiner = matches!(letter, '\u{200c}' | '\u{200d}');
            let follows_latin = self.text.ends_with(|before: char| before.is_ascii());
            if !is_joiner || follows_latin || self.text.is_empty() {
                self.disguises.push(self.text.len());
            }
            return;
        }
        let from = self.text.len();
        for read in cluster.nfkc() {
            for small in read.to_lowercase() {
                self.append(start, small);
            }
        }
        let read = self.text.get(from..).unwrap_or_default();
        let is_letter_in_costume =
            !letter.is_ascii() && read.len() == 1 && read.bytes().all(|byte| byte.is_ascii_alphanumeric());
        let is_small_print = matches!(letter, '\u{aa}' | '\u{ba}' | '\u{b2}' | '\u{b3}' | '\u{b9}');
        let has_loose_mark = read.starts_with(|first: char| first.is_ascii())
            && read.chars().any(|mark| canonical_combining_class(mark) != 0);
        if (is_letter_in_costume && !is_small_print) || has_loose_mark {
            self.disguises.push(from);
        }
    }

    fn append(&mut self, start: usize, letter: char) {
        self.text.push(letter);
        self.at.resize(self.text.len(), start);
    }

    /// Where a byte of the folded text stood in the text that was sent.
    pub(crate) fn raw_at(&self, at: usize) -> usize {
        self.at.get(at).or(self.at.last()).copied().unwrap_or_default()
    }

    /// Whether something between these bytes looks like what it is not.
    pub(crate) fn is_disguised(&self, from: usize, to: usize) -> bool {
        let first = self.disguises.partition_point(|at| *at < from);
        self.disguises.get(first).is_some_and(|at| *at <= to)
    }
}

/// What some characters are read as, whatever compatibility says.
fn read_as(letter: char) -> Option<char> {
    Some(match letter {
        '\r' | '\u{85}' | '\u{2028}' | '\u{2029}' | '\u{b}' | '\u{c}' => '\n',
        '\u{2019}' | '\u{2bc}' | '\u{b4}' | '\u{ff07}' => '\'',
        '\u{2013}' | '\u{2014}' | '\u{2212}' | '\u{2015}' => '–',
        '\u{2026}' => '…',
        _ => return None,
    })
}

/// Letters of other scripts that are drawn like Latin ones, in small letters.
const LOOKALIKES: &str = "аеорсухіјѕһԁӏԛԝвнкмтοναικρτυχεη";

/// Whether a word is written in letters of several scripts, or in such of another one as only look Latin.
pub(crate) fn is_mixed(word: &str) -> bool {
    let has_latin = word.chars().any(|letter| letter.is_ascii_alphabetic());
    let others = || word.chars().filter(|letter| is_other_alphabet(*letter));
    if has_latin {
        return others().next().is_some();
    }
    others().next().is_some() && word.chars().all(|letter| LOOKALIKES.contains(letter))
}

/// Letters that stand in Latin words only to look like Latin letters: phonetic, Greek, Cyrillic, Armenian, Cherokee.
fn is_other_alphabet(letter: char) -> bool {
    matches!(letter,
        '\u{131}'
        | '\u{250}'..='\u{2af}'
        | '\u{370}'..='\u{3ff}'
        | '\u{400}'..='\u{52f}'
        | '\u{530}'..='\u{58f}'
        | '\u{13a0}'..='\u{13ff}'
        | '\u{1d00}'..='\u{1d7f}'
        | '\u{a4d0}'..='\u{a4ff}'
        | '\u{ab30}'..='\u{abbf}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_leads_back() {
        let raw = "Ich heiße Zoe\u{308}. \u{ff29}\u{2019}m";
        let folded = Folded::of(raw);
        assert_eq!(folded.text, "ich heiße zoë. i'm");
        let at = folded.text.find("zoë").unwrap();
        assert_eq!(
            &raw[folded.raw_at(at)..folded.raw_at(at + "zoë".len())],
            "Zoe\u{308}"
        );
        assert!(!folded.is_disguised(0, at + 4));
        assert!(folded.is_disguised(0, folded.text.len()));
    }

    #[test]
    fn tells_disguises() {
        for hidden in [
            "I te\u{200b}ach",
            "I \u{202e}teach",
            "𝐈 teach",
            "I te\u{336}ach",
            "n\u{200d}ot",
        ] {
            let folded = Folded::of(hidden);
            assert!(folded.is_disguised(0, folded.text.len()), "{hidden:?}");
        }
        for plain in [
            "\u{feff}I teach",
            "👩\u{200d}🏫 I teach",
            "5 m² of José’s garden",
            "naïve",
        ] {
            let folded = Folded::of(plain);
            assert!(!folded.is_disguised(0, folded.text.len()), "{plain:?}");
        }
        assert!(is_mixed("tеach") && is_mixed("і") && is_mixed("nοt"));
        assert!(!is_mixed("teach") && !is_mixed("русский") && !is_mixed("ελληνικά") && !is_mixed("schön"));
    }
}
