//! BERT's word pieces for uncased models: a word is the longest beginning that the vocabulary has, then the longest
//! beginning of the rest, and so on; or unknown.

#[cfg(test)]
mod tests;

use std::{borrow::Cow, ops::Range, str::CharIndices};

use super::characters::{Class, class, fold, is_punctuation};

/// Characters after which a word is unknown, whatever it is made of (BERT's own bound).
const WORD_CHARS_MAX: usize = 100;

/// The longest piece a vocabulary may have, in bytes. It bounds how far each place of a text is looked at; the
/// longest of BERT's is 18.
const PIECE_BYTES_MAX: usize = 64;

/// What begins a piece that continues a word.
const CONTINUED: &str = "##";

/// Why a vocabulary cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VocabularyError {
    /// There are too many pieces for an id of 16 bits.
    #[error("the vocabulary holds {0} pieces, and at most 65,534 can be told apart")]
    TooMany(usize),
    /// A piece is too long.
    #[error("piece {line} of the vocabulary is longer than {PIECE_BYTES_MAX} bytes")]
    TooLong {
        /// Its line, from 0.
        line: usize,
    },
    /// There is no unknown piece.
    #[error("the vocabulary has no piece `{0}`")]
    Missing(&'static str),
}

/// A piece of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    /// The piece's line in the vocabulary, from 0.
    pub id: u16,
    /// Where in the text, in bytes; always whole characters. An accent, or what is dropped, may belong to the token
    /// before it.
    pub span: Range<usize>,
}

/// Pieces by their text.
///
/// A hash table of ids over the text itself: about 250 KB for BERT's vocabulary, where a map of strings takes ten
/// times as much. Keys are fixed when it is made, so nobody can make it slow from outside.
pub struct Vocabulary {
    text: Cow<'static, str>,
    /// Where each line begins, and one past the end.
    starts: Vec<u32>,
    /// An id + 1, or 0 where there is none. Its length is a power of two.
    slots: Vec<u16>,
    unknown: u16,
    /// The longest piece in bytes.
    longest: usize,
}

impl std::fmt::Debug for Vocabulary {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Vocabulary")
            .field("pieces", &self.len())
            .finish_non_exhaustive()
    }
}

impl Vocabulary {
    /// Reads a vocabulary of one piece a line, which has `[UNK]`.
    pub fn new(text: Cow<'static, str>) -> Result<Self, VocabularyError> {
        const UNKNOWN: &str = "[UNK]";
        let mut starts = vec![0_u32];
        let mut end = 0;
        for line in text.lines() {
            end += line.len() + 1;
            starts.push(u32::try_from(end).unwrap_or(u32::MAX));
        }
        let count = starts.len() - 1;
        if count >= usize::from(u16::MAX) {
            return Err(VocabularyError::TooMany(count));
        }
        let mut vocabulary = Self {
            slots: vec![0; (count * 2).next_power_of_two()],
            starts,
            text,
            unknown: 0,
            longest: 0,
        };
        for id in 0..u16::try_from(count).unwrap_or(u16::MAX) {
            let (continued, letters) = vocabulary.piece(id);
            let bytes = letters.len();
            if bytes > PIECE_BYTES_MAX {
                return Err(VocabularyError::TooLong { line: id.into() });
            }
            let slot = vocabulary.slot(hash(continued, letters.as_bytes()), continued, letters.as_bytes());
            if let Some(slot) = vocabulary.slots.get_mut(slot).filter(|slot| **slot == 0) {
                *slot = id + 1;
            }
            vocabulary.longest = vocabulary.longest.max(bytes);
        }
        vocabulary.unknown = vocabulary.id(UNKNOWN).ok_or(VocabularyError::Missing(UNKNOWN))?;
        Ok(vocabulary)
    }

    /// How many pieces there are.
    pub fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Whether there is no piece; never so, since `[UNK]` is one.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The id of what stands for an unknown word.
    pub fn unknown(&self) -> u16 {
        self.unknown
    }

    /// Whether a piece continues a word.
    pub fn continues(&self, id: u16) -> bool {
        self.piece(id).0
    }

    /// The id of a piece by its exact text, such as `[CLS]`.
    pub fn id(&self, piece: &str) -> Option<u16> {
        let (continued, letters) = taken_apart(piece);
        self.find(hash(continued, letters.as_bytes()), continued, letters.as_bytes())
    }

    /// The pieces of a text, one by one. Takes time in proportion to the text, whatever it holds.
    pub fn tokens<'a>(&'a self, text: &'a str) -> Tokens<'a> {
        Tokens {
            vocabulary: self,
            characters: text.char_indices(),
            word: Word::default(),
            pieces: Vec::new(),
            given: 0,
            alone: None,
        }
    }

    fn piece(&self, id: u16) -> (bool, &str) {
        let id = usize::from(id);
        let line = match (self.starts.get(id), self.starts.get(id + 1)) {
            (Some(start), Some(next)) => self.text.get(*start as usize..*next as usize - 1),
            _ => None,
        };
        taken_apart(line.unwrap_or_default())
    }

    /// The slot that holds a piece, or the free one where it would be.
    fn slot(&self, hash: u32, continued: bool, letters: &[u8]) -> usize {
        let mask = self.slots.len() - 1;
        let mut slot = hash as usize & mask;
        // At least half of the slots are free, so this ends.
        while let Some(id) = self.slots.get(slot).and_then(|id| id.checked_sub(1)) {
            let (its_kind, its_letters) = self.piece(id);
            if its_kind == continued && its_letters.as_bytes() == letters {
                break;
            }
            slot = (slot + 1) & mask;
        }
        slot
    }

    fn find(&self, hash: u32, continued: bool, letters: &[u8]) -> Option<u16> {
        let slot = self.slot(hash, continued, letters);
        self.slots.get(slot)?.checked_sub(1)
    }

    /// The longest piece that `letters` begin with, and its length in bytes.
    fn longest_match(&self, letters: &[u8], continued: bool) -> Option<(u16, usize)> {
        let window = letters.get(..letters.len().min(self.longest))?;
        let mut hashes = [0_u32; PIECE_BYTES_MAX];
        let mut state = seed(continued);
        for (slot, byte) in hashes.iter_mut().zip(window) {
            state = step(state, *byte);
            *slot = finish(state);
        }
        // A piece is whole characters, so a cut inside one finds nothing.
        hashes
            .iter()
            .take(window.len())
            .enumerate()
            .rev()
            .find_map(|(last, hash)| {
                let bytes = last + 1;
                self.find(*hash, continued, window.get(..bytes)?)
                    .map(|id| (id, bytes))
            })
    }
}

fn taken_apart(piece: &str) -> (bool, &str) {
    match piece.strip_prefix(CONTINUED) {
        Some(letters) if !letters.is_empty() => (true, letters),
        Some(_) | None => (false, piece),
    }
}

/// FNV-1a with one seed for each kind of piece: it grows byte by byte, so all beginnings of a word cost one pass.
fn hash(continued: bool, letters: &[u8]) -> u32 {
    finish(
        letters
            .iter()
            .fold(seed(continued), |state, byte| step(state, *byte)),
    )
}

fn seed(continued: bool) -> u32 {
    if continued { 0x2f0b_4c47 } else { 0x811c_9dc5 }
}

fn step(state: u32, byte: u8) -> u32 {
    (state ^ u32::from(byte)).wrapping_mul(0x0100_0193)
}

/// Spreads the upper bits over the lower ones, which choose the slot.
fn finish(state: u32) -> u32 {
    state ^ (state >> 15)
}

/// A word being read: its folded letters, at most [`WORD_CHARS_MAX`] of them.
#[derive(Debug, Default)]
struct Word {
    letters: String,
    /// For each byte of `letters`, where in the text the character stands that it came from.
    origins: Vec<usize>,
    chars: usize,
    end: usize,
}

impl Word {
    fn clear(&mut self) {
        self.letters.clear();
        self.origins.clear();
        self.chars = 0;
    }

    fn push(&mut self, letter: char, origin: usize) {
        self.chars += 1;
        // The first is kept even so: it says where the word begins.
        if self.chars <= WORD_CHARS_MAX {
            self.letters.push(letter);
            self.origins.resize(self.letters.len(), origin);
        }
    }

    fn origin(&self, byte: usize) -> usize {
        self.origins.get(byte).copied().unwrap_or(self.end)
    }
}

/// The pieces of a text.
#[derive(Debug)]
pub struct Tokens<'a> {
    vocabulary: &'a Vocabulary,
    characters: CharIndices<'a>,
    word: Word,
    /// The pieces of the last word, of which `given` were handed out.
    pieces: Vec<Token>,
    given: usize,
    /// A word of one character that ended the last word and comes after it.
    alone: Option<(char, Range<usize>)>,
}

impl Iterator for Tokens<'_> {
    type Item = Token;

    fn next(&mut self) -> Option<Token> {
        loop {
            if let Some(token) = self.pieces.get(self.given) {
                self.given += 1;
                return Some(token.clone());
            }
            if let Some((character, span)) = self.alone.take() {
                self.word.clear();
                self.word.push(character, span.start);
                self.word.end = span.end;
            } else if !self.read_word() {
                return None;
            }
            self.cut_word();
        }
    }
}

impl Tokens<'_> {
    /// Reads up to the end of the next word, or of a word of one character; whether there was anything.
    fn read_word(&mut self) -> bool {
        self.word.clear();
        while let Some((at, character)) = self.characters.next() {
            let end = self.characters.offset();
            match class(character) {
                Class::Dropped => {}
                Class::Space if self.word.chars == 0 => {}
                Class::Space => return true,
                Class::Ideograph => fold(character, |part| self.alone = Some((part, at..end))),
                Class::Other => {
                    let (word, alone) = (&mut self.word, &mut self.alone);
                    fold(character, |part| {
                        if is_punctuation(part) {
                            *alone = Some((part, at..end));
                        } else {
                            word.push(part, at);
                            word.end = end;
                        }
                    });
                }
            }
            if self.alone.is_some() {
                return true;
            }
        }
        self.word.chars > 0
    }

    /// Cuts the word into pieces; an empty one has none.
    fn cut_word(&mut self) {
        self.pieces.clear();
        self.given = 0;
        let word = &self.word;
        if word.chars == 0 {
            return;
        }
        let mut start = 0;
        while word.chars <= WORD_CHARS_MAX && start < word.letters.len() {
            let rest = word.letters.as_bytes().get(start..).unwrap_or_default();
            let Some((id, bytes)) = self.vocabulary.longest_match(rest, start > 0) else {
                break;
            };
            self.pieces.push(Token {
                id,
                span: word.origin(start)..word.origin(start + bytes),
            });
            start += bytes;
        }
        if word.chars > WORD_CHARS_MAX || start < word.letters.len() {
            self.pieces.clear();
            self.pieces.push(Token {
                id: self.vocabulary.unknown,
                span: word.origin(0)..word.end,
            });
        }
    }
}
