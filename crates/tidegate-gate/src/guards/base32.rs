//! Base32, as far as a value in the middle of something encoded can be told.

/// A value in Base32 (RFC 4648 §6) in lower case, at each of the five places at which it can begin in what is
/// encoded. Letters that depend on what stands before or behind are left out.
pub(super) fn forms(bytes: &[u8]) -> Vec<Vec<u8>> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let mut forms = Vec::new();
    for before in 0..5_usize {
        let mut padded = vec![0; before];
        padded.extend_from_slice(bytes);
        let bit = |place: usize| {
            padded
                .get(place / 8)
                .map_or(0, |byte| usize::from(byte >> (7 - place % 8) & 1))
        };
        let letters = (before * 8).div_ceil(5)..padded.len() * 8 / 5;
        let form = letters
            .filter_map(|letter| {
                let index = (0..5).fold(0, |index, place| index << 1 | bit(letter * 5 + place));
                LETTERS.get(index).copied()
            })
            .collect();
        forms.push(form);
    }
    forms
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_value_is_known_at_every_place() {
        // The test vector of RFC 4648 §10.
        let forms = super::forms(b"foobar");
        assert_eq!(forms.len(), 5);
        assert!(b"mzxw6ytboi======".starts_with(&forms[0][..9]));
    }
}
