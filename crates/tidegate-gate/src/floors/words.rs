//! Names of files inside text that is no path by itself: words and payloads of shell lines.

/// Characters that end a name inside a word: of options, revisions, addresses, quotes and code.
const SEPARATORS: [char; 24] = [
    ' ', '\t', '\n', '\r', '=', ':', '@', ',', ';', '(', ')', '[', ']', '{', '}', '<', '>', '|', '&', '"',
    '\'', '`', '!', '\0',
];

/// The longest name that is looked at, in bytes (`PATH_MAX` of limits.h): the kernel opens no longer one.
const PATH_BYTES_MAX: usize = 4_096;

/// The names that a text may hold. The text as a whole is one of them, unless it is an assignment or an option
/// with a value: what stands before the `=` of those is no file.
pub(super) fn names(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let (before, rest) = match text.split_once('=') {
        Some((before, after)) if is_name_of_value(before) => ("", after),
        Some(_) | None => (text, text),
    };
    if !before.starts_with("--") {
        found.push(before);
    }
    for part in rest.split(SEPARATORS) {
        if part.starts_with("--") {
            continue;
        }
        // The whole text stands there already.
        if part.len() < before.len() || before.is_empty() {
            found.push(part);
        }
        // The value that is joined to a short option: `-f.env`.
        let mut letters = part.chars();
        if letters.next() == Some('-')
            && letters
                .next()
                .is_some_and(|letter| letter.is_ascii_alphanumeric())
        {
            found.push(letters.as_str());
        }
    }
    found.retain(|name| !name.is_empty() && name.len() <= PATH_BYTES_MAX);
    found
}

/// Whether what stands before an `=` names a variable or an option, and no file.
fn is_name_of_value(text: &str) -> bool {
    let name = text.trim_start_matches('-');
    !name.is_empty()
        && name
            .chars()
            .all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-' | '+'))
}

#[cfg(test)]
mod tests {
    use super::names;

    #[test]
    fn names_are_found_inside_words() {
        for (text, name) in [
            (".env", ".env"),
            ("HEAD:.env", ".env"),
            ("main:src/../.env", "src/../.env"),
            ("stash@{0}:.env", ".env"),
            ("--file=.env", ".env"),
            ("-f.env", ".env"),
            ("if=/w/.env", "/w/.env"),
            ("f=@.env", ".env"),
            ("print(open('.env').read())", ".env"),
            ("cat .env; ls", ".env"),
        ] {
            assert!(names(text).contains(&name), "{text}: {:?}", names(text));
        }
        for (text, name) in [
            ("API_KEY=x", "API_KEY"),
            ("--my_token=x", "my_token"),
            ("--api_key", "--api_key"),
        ] {
            assert!(!names(text).contains(&name), "{text}: {:?}", names(text));
        }
    }
}
