//! From bytes to text: byte order marks, UTF-8, UTF-16, UTF-32, and the guess that browsers make for everything else.

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
    if let Some(decoded) = utf32(bytes) {
        return decoded;
    }
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
    checked(text.into_owned(), encoding.name(), is_broken)
}

/// How the bytes of a letter become its number.
type Number = fn([u8; 4]) -> u32;

/// UTF-32 behind its byte order mark (Unicode 16, table 23-5). The mark of the one with the low byte first begins as
/// that of UTF-16, where a NUL would follow, which no text has.
fn utf32(bytes: &[u8]) -> Option<Result<Decoded, Problem>> {
    let (body, number): (&[u8], Number) = match bytes {
        [0xff, 0xfe, 0, 0, body @ ..] => (body, u32::from_le_bytes),
        [0, 0, 0xfe, 0xff, body @ ..] => (body, u32::from_be_bytes),
        _ => return None,
    };
    let (units, rest) = body.as_chunks::<4>();
    let mut is_broken = !rest.is_empty();
    let text: String = units
        .iter()
        .map(|unit| {
            char::from_u32(number(*unit)).unwrap_or_else(|| {
                is_broken = true;
                char::REPLACEMENT_CHARACTER
            })
        })
        .collect();
    Some(checked(text, "UTF-32", is_broken))
}

fn checked(text: String, name: &str, is_broken: bool) -> Result<Decoded, Problem> {
    let sample = text
        .get(..text.floor_char_boundary(SAMPLE_BYTES))
        .unwrap_or(&text);
    let controls = sample.chars().filter(|one| is_binary(*one)).count();
    if controls > sample.chars().count() / CONTROLS_SHARE && controls > 1 {
        return Err(Problem::Binary);
    }
    let warning = is_broken.then(|| format!("some bytes are not valid {name}; they were replaced"));
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
        let utf32 = |text: &str, bytes: fn(u32) -> [u8; 4]| -> Vec<u8> {
            let marked = std::iter::once('\u{feff}').chain(text.chars());
            marked.flat_map(|letter| bytes(u32::from(letter))).collect()
        };
        let mut broken = utf32("a word", u32::to_le_bytes);
        broken.extend([0, 0xd8, 0, 0, 1]);
        let decoded = decode(&broken, None).expect("a text");
        assert_eq!(decoded.text, "a word\u{fffd}");
        assert!(decoded.warning.is_some_and(|warning| warning.contains("UTF-32")));
        for (bytes, expected) in [
            (german.clone().into_bytes(), &german),
            (WINDOWS_1252.encode(&german).0.into_owned(), &german),
            (SHIFT_JIS.encode(&japanese).0.into_owned(), &japanese),
            (WINDOWS_1251.encode(&russian).0.into_owned(), &russian),
            (utf16(&german, true), &german),
            (utf16(&german, false), &german),
            (marked, &japanese),
            (utf32(&german, u32::to_le_bytes), &german),
            (utf32(&japanese, u32::to_be_bytes), &japanese),
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
            [b"\0\0\xfe\xff".to_vec(), vec![0; 64]].concat(),
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
