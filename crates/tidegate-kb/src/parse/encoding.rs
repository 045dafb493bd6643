//! From bytes to text: byte order marks, UTF-8, UTF-16, and the guess that browsers make for everything else.

use chardetng::{EncodingDetector, Iso2022JpDetection, Utf8Detection};
use encoding_rs::{Encoding, UTF_8, UTF_16BE, UTF_16LE};

use super::Problem;

/// How many bytes are looked at to tell text from something else.
const SAMPLE_BYTES: usize = 64 << 10;

/// A hundredth of a text may be control characters; in binary data about a tenth are.
const CONTROLS_SHARE: usize = 100;

/// A decoded text.
#[derive(Debug)]
pub(super) struct Decoded {
    pub(super) text: String,
    pub(super) warning: Option<String>,
}

/// Decodes a text. `declared` is what the document says about itself; a byte order mark and valid UTF-8 count more.
/// UTF-8 comes out byte for byte, its mark too.
pub(super) fn decode(bytes: &[u8], declared: Option<&'static Encoding>) -> Result<Decoded, Problem> {
    if let Some((encoding, mark)) = Encoding::for_bom(bytes) {
        if encoding == UTF_8 {
            return whole(UTF_8, bytes);
        }
        return whole(encoding, bytes.get(mark..).unwrap_or_default());
    }
    if let Some(encoding) = wide(bytes) {
        return whole(encoding, bytes);
    }
    let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(bytes);
    if sample.contains(&0) {
        return Err(Problem::Binary);
    }
    if std::str::from_utf8(bytes).is_ok() {
        return whole(UTF_8, bytes);
    }
    let encoding = declared.unwrap_or_else(|| {
        let mut detector = EncodingDetector::new(Iso2022JpDetection::Allow);
        detector.feed(bytes, true);
        detector.guess(None, Utf8Detection::Allow)
    });
    whole(encoding, bytes)
}

fn whole(encoding: &'static Encoding, bytes: &[u8]) -> Result<Decoded, Problem> {
    let (text, is_broken) = encoding.decode_without_bom_handling(bytes);
    let text = text.into_owned();
    let sample = text
        .get(..text.floor_char_boundary(SAMPLE_BYTES))
        .unwrap_or(&text);
    let controls = sample.chars().filter(|one| is_binary(*one)).count();
    if controls > sample.chars().count() / CONTROLS_SHARE && controls > 1 {
        return Err(Problem::Binary);
    }
    let warning =
        is_broken.then(|| format!("some bytes are not valid {}; they were replaced", encoding.name()));
    Ok(Decoded { text, warning })
}

fn is_binary(character: char) -> bool {
    let is_space = matches!(character, '\n' | '\r' | '\t' | '\u{c}' | '\u{1b}');
    (character.is_control() && !is_space) || character == char::REPLACEMENT_CHARACTER
}

/// UTF-16 without a mark: in text of most scripts every other byte is zero, and it is always the same one.
fn wide(bytes: &[u8]) -> Option<&'static Encoding> {
    let sample = bytes.get(..SAMPLE_BYTES).unwrap_or(bytes);
    let pairs = sample.len() / 2;
    if pairs < 4 || bytes.len() % 2 == 1 {
        return None;
    }
    let zeros = |parity: usize| {
        sample
            .iter()
            .skip(parity)
            .step_by(2)
            .filter(|byte| **byte == 0)
            .count()
    };
    let (high_first, low_first) = (zeros(0), zeros(1));
    let is_most = |count: usize| count >= pairs - pairs / 5;
    match (is_most(high_first), is_most(low_first)) {
        (true, false) if low_first == 0 => Some(UTF_16BE),
        (false, true) if high_first == 0 => Some(UTF_16LE),
        (true | false, true | false) => None,
    }
}

#[cfg(test)]
mod tests {
    use encoding_rs::{SHIFT_JIS, WINDOWS_1251, WINDOWS_1252};

    use super::*;

    #[test]
    fn texts_of_all_kinds_are_decoded() {
        let german = "Größe und Maß: die Übung für später, schön und ärgerlich. ".repeat(4);
        let japanese = "これは日本語の文書です。漢字とかなが混ざっています。".repeat(4);
        let russian = "Это русский текст, в котором достаточно слов для догадки. ".repeat(4);
        let utf16 = |text: &str, big: bool| -> Vec<u8> {
            text.encode_utf16()
                .flat_map(|unit| {
                    if big {
                        unit.to_be_bytes()
                    } else {
                        unit.to_le_bytes()
                    }
                })
                .collect()
        };
        let mut marked = vec![0xff, 0xfe];
        marked.extend(utf16(&japanese, false));
        for (bytes, expected) in [
            (german.clone().into_bytes(), &german),
            (WINDOWS_1252.encode(&german).0.into_owned(), &german),
            (SHIFT_JIS.encode(&japanese).0.into_owned(), &japanese),
            (WINDOWS_1251.encode(&russian).0.into_owned(), &russian),
            (utf16(&german, true), &german),
            (utf16(&german, false), &german),
            (marked, &japanese),
        ] {
            let decoded = decode(&bytes, None).expect("a text");
            assert_eq!((&decoded.text, &decoded.warning), (expected, &None));
        }
        // The mark of UTF-8 stays, so that ranges are those of the file.
        assert_eq!(decode(b"\xef\xbb\xbfa", None).expect("a text").text, "\u{feff}a");
    }

    #[test]
    fn what_is_no_text_is_told_apart() {
        for bytes in [
            b"# Title\n\0\0\0binary".to_vec(),
            (0..=255).cycle().take(4096).collect(),
            vec![0; 64],
            vec![0xff; 512],
        ] {
            let outcome = decode(&bytes, None);
            assert!(
                matches!(outcome, Err(Problem::Binary)) || bytes[0] == 0xff,
                "{outcome:?}"
            );
        }
        // One stray byte does not make a text binary.
        assert!(decode(b"a form feed \x0c and a bell \x07 in a text", None).is_ok());
    }
}
