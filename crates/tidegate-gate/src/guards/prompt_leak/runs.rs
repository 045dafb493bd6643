//! Long runs of letters and digits, which may be something encoded.

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};

/// The shortest run that is decoded, in characters: what forty letters give in base64.
const CHARS_MIN: usize = 52;

/// The longest run that is put together before it is decoded, in characters; a longer one is decoded in parts.
const CHARS_MAX: usize = 16 << 10;

/// From how many characters on a run is held back. Addresses and names in ordinary text are shorter.
const HELD_CHARS_MIN: usize = 32;

/// The run that the text is in.
#[derive(Debug, Default)]
pub(super) struct Run {
    text: String,
    began: usize,
    /// Whether the last character was the end of a line: encoded text is wrapped.
    has_wrapped: bool,
}

impl Run {
    /// Takes a character; gives a run that is over and long enough.
    pub(super) fn hear(&mut self, letter: char, place: usize) -> Option<String> {
        if letter.is_ascii_alphanumeric() || matches!(letter, '+' | '/' | '-' | '_' | '=') {
            if self.has_wrapped && self.text.len() < HELD_CHARS_MIN {
                self.text.clear();
            }
            self.has_wrapped = false;
            if self.text.is_empty() {
                self.began = place;
            }
            self.text.push(letter);
            return (self.text.len() >= CHARS_MAX).then(|| std::mem::take(&mut self.text));
        }
        if matches!(letter, '\n' | '\r') && !self.text.is_empty() {
            self.has_wrapped = true;
            return None;
        }
        self.end()
    }

    /// The text is over, or the run is.
    pub(super) fn end(&mut self) -> Option<String> {
        self.has_wrapped = false;
        let run = std::mem::take(&mut self.text);
        (run.len() >= CHARS_MIN).then_some(run)
    }

    pub(super) fn open_from(&self) -> Option<usize> {
        (self.text.len() >= HELD_CHARS_MIN).then_some(self.began)
    }
}

/// What a run may stand for: base64 at each of its four alignments, and hexadecimal.
pub(super) fn decoded(run: &str) -> Vec<String> {
    let config = GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true);
    let engine = GeneralPurpose::new(&alphabet::STANDARD, config);
    let standard: String = run
        .chars()
        .filter_map(|letter| match letter {
            '-' => Some('+'),
            '_' => Some('/'),
            '=' => None,
            letter => Some(letter),
        })
        .collect();
    let mut texts = Vec::new();
    for skipped in 0..4 {
        let aligned = standard.get(skipped..).unwrap_or_default();
        // A single letter at the end stands for less than a byte.
        let length = aligned.len() - usize::from(aligned.len() % 4 == 1);
        if let Ok(bytes) = engine.decode(aligned.get(..length).unwrap_or_default()) {
            texts.push(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    let digits: Vec<u32> = run.chars().filter_map(|letter| letter.to_digit(16)).collect();
    if digits.len() == run.len() {
        let bytes: Vec<u8> = digits
            .chunks_exact(2)
            .filter_map(|pair| {
                let [high, low] = pair else { return None };
                u8::try_from(high * 16 + low).ok()
            })
            .collect();
        texts.push(String::from_utf8_lossy(&bytes).into_owned());
    }
    texts
}
