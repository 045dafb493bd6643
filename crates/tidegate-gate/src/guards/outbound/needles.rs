//! The forms in which one value is searched for.

use base64::{Engine, engine::general_purpose::STANDARD_NO_PAD};

use super::{CHARS_MIN, views};
use crate::guards::base32;

/// How long the pieces are by which a split value is known, in letters.
pub(super) const SHINGLE_LETTERS: usize = 8;

/// Values of more letters (key files) are known by chunks and not by all their pieces.
const SHINGLED_LETTERS_MAX: usize = 128;

/// The length of such a chunk. Any run of twice as many letters holds one.
const CHUNK_LETTERS: usize = 24;

/// Bounds the memory of the pieces; further values are searched for as wholes only.
const SHINGLES_MAX: usize = 20_000;

/// Without a digit, only a value of this many letters is told from words when its punctuation is dropped.
const WORDLESS_LETTERS_MIN: usize = 20;

/// What people write where a secret is not needed.
const PLACEHOLDERS: [&str; 6] = [
    "yourapikey",
    "yourapikeyhere",
    "nokeyrequired",
    "placeholder",
    "replaceme",
    "changemechangeme",
];

/// Where in which value a piece stands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shingle {
    pub(super) owner: usize,
    pub(super) offset: usize,
}

/// All forms of all values, each with the value's number.
#[derive(Default)]
pub(super) struct Forms {
    pub(super) exact: Vec<(usize, Vec<u8>)>,
    pub(super) folded: Vec<(usize, Vec<u8>)>,
    pub(super) shingles: Vec<Vec<u8>>,
    pub(super) shingle_places: Vec<Shingle>,
    /// The folded length of each value.
    pub(super) lengths: Vec<usize>,
}

impl Forms {
    pub(super) fn add(&mut self, value: &str) {
        let value = value.trim();
        let folded = views::folded(value.as_bytes());
        if value.chars().count() < CHARS_MIN || is_placeholder(value, &folded) {
            return;
        }
        let owner = self.lengths.len();
        self.lengths.push(folded.len());
        self.exact.push((owner, value.as_bytes().to_vec()));
        let squeezed = views::squeezed(value.as_bytes());
        if squeezed.len() >= CHARS_MIN && squeezed != value.as_bytes() {
            self.exact.push((owner, squeezed));
        }
        for aligned in base64_forms(value.as_bytes()) {
            self.exact.push((owner, aligned));
        }
        let hexadecimal = value.bytes().flat_map(hex_digits).collect();
        self.folded.push((owner, hexadecimal));
        for aligned in base32::forms(value.as_bytes()) {
            self.folded.push((owner, aligned));
        }
        let has_digit = folded.iter().any(u8::is_ascii_digit);
        if folded.len() >= WORDLESS_LETTERS_MIN || folded.len() >= CHARS_MIN && has_digit {
            self.add_pieces(owner, value, &folded);
            self.folded.push((owner, folded));
        }
    }

    fn add_pieces(&mut self, owner: usize, value: &str, folded: &[u8]) {
        if folded.len() > SHINGLED_LETTERS_MAX {
            // Without the lines that every key file has in common.
            let lines: String = value.lines().filter(|line| !line.starts_with("-----")).collect();
            let letters = views::folded(lines.as_bytes());
            for chunk in letters.chunks_exact(CHUNK_LETTERS) {
                self.folded.push((owner, chunk.to_vec()));
            }
            return;
        }
        if self.shingles.len() + folded.len() > SHINGLES_MAX {
            return;
        }
        for (offset, piece) in folded.windows(SHINGLE_LETTERS).enumerate() {
            self.shingles.push(piece.to_vec());
            self.shingle_places.push(Shingle { owner, offset });
        }
    }
}

fn is_placeholder(value: &str, folded: &[u8]) -> bool {
    let is_one_letter = value
        .chars()
        .next()
        .is_some_and(|first| value.chars().all(|letter| letter == first));
    is_one_letter || PLACEHOLDERS.iter().any(|known| known.as_bytes() == folded)
}

/// Base64 at each of the three places at which the value can begin in what is encoded, without the letters
/// that depend on what stands before or behind. Views write the URL-safe letters as the standard ones.
fn base64_forms(bytes: &[u8]) -> Vec<Vec<u8>> {
    let mut forms = Vec::new();
    for before in 0..3 {
        let mut padded = vec![0; before];
        padded.extend_from_slice(bytes);
        let encoded = STANDARD_NO_PAD.encode(&padded);
        let range = (before * 8).div_ceil(6)..padded.len() * 8 / 6;
        forms.extend(encoded.get(range).map(|form| form.as_bytes().to_vec()));
    }
    forms
}

fn hex_digits(byte: u8) -> [u8; 2] {
    let digit = |half: u8| if half < 10 { b'0' + half } else { b'a' + half - 10 };
    [digit(byte >> 4), digit(byte & 0xf)]
}
