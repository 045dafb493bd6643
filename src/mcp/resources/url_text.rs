//! Paths in addresses (RFC 3986, section 2.1): what is not unreserved is written as `%` and two digits.

/// The path, as it stands in an address. Slashes stay.
pub(super) fn encode(path: &str) -> String {
    let digit = |value: u8| {
        char::from_digit(u32::from(value), 16)
            .unwrap_or('0')
            .to_ascii_uppercase()
    };
    let mut text = String::with_capacity(path.len());
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~/".contains(&byte) {
            text.push(char::from(byte));
        } else {
            text.extend(['%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    text
}

/// The path of an address; `None` where the digits are none, or the bytes no text.
pub(super) fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |letter: Option<u8>| char::from(letter?).to_digit(16);
            let (high, low) = (digit(rest.next())?, digit(rest.next())?);
            bytes.push(u8::try_from(high * 16 + low).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}
