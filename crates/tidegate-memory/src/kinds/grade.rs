//! School years as people write them.

/// The last school year there is anywhere.
const YEAR_MAX: usize = 13;

/// Words that stand beside the number.
const NOUNS: &[&str] = &[
    "grade",
    "grades",
    "grader",
    "graders",
    "class",
    "year",
    "years",
    "form",
    "standard",
    "level",
    "school",
    "klasse",
    "klassen",
    "klassenstufe",
    "jahrgang",
    "jahrgangsstufe",
    "stufe",
    "schuljahr",
    "classe",
    "année",
    "grado",
    "curso",
    "año",
    "the",
    "in",
    "a",
    "an",
    "of",
    "my",
    "die",
    "der",
    "la",
    "le",
    "el",
    "no",
    "number",
];

/// Numbers and ordinals from 1 on, in English, and in German without their endings.
const WORDS: [&[&str]; YEAR_MAX] = [
    &["one", "first", "eins", "erst"],
    &["two", "second", "zwei", "zweit"],
    &["three", "third", "drei", "dritt"],
    &["four", "fourth", "vier", "viert"],
    &["five", "fifth", "fünf", "fünft"],
    &["six", "sixth", "sechs", "sechst"],
    &["seven", "seventh", "sieben", "siebt"],
    &["eight", "eighth", "acht"],
    &["nine", "ninth", "neun", "neunt"],
    &["ten", "tenth", "zehn", "zehnt"],
    &["eleven", "eleventh", "elf", "elft"],
    &["twelve", "twelfth", "zwölf", "zwölft"],
    &["thirteen", "thirteenth", "dreizehn", "dreizehnt"],
];

/// The school year in one form: `1` to `13`, `k`, `pre-k` or `college`. Takes folded text.
pub(super) fn parse(folded: &str) -> Option<String> {
    let plain = folded.replace(['-', '.', '_', '(', ')', '\'', '’', '"'], " ");
    let words: Vec<&str> = plain.split_whitespace().collect();
    match words.join(" ").as_str() {
        "k" | "kindergarten" | "grade k" | "kinder" | "k grade" => return Some("k".to_owned()),
        "pre k" | "prek" | "preschool" | "pre school" | "pre kindergarten" | "nursery" | "grade pre k" => {
            return Some("pre-k".to_owned());
        }
        "college" | "university" | "undergraduate" | "uni" => return Some("college".to_owned()),
        _ => {}
    }
    let mut years = words
        .iter()
        .filter(|word| !NOUNS.contains(word))
        .map(|word| year(word));
    let first = years.next()??;
    // "4 or 5" is no school year.
    years.next().is_none().then(|| first.to_string())
}

fn year(word: &str) -> Option<usize> {
    let digits = word.trim_end_matches(|letter: char| !letter.is_ascii_digit());
    let year = if digits.is_empty() {
        let stem = word
            .strip_suffix("er")
            .or_else(|| word.strip_suffix("en"))
            .or_else(|| word.strip_suffix('e'))
            .unwrap_or(word);
        WORDS
            .iter()
            .position(|words| words.contains(&word) || words.contains(&stem))
            .map(|index| index + 1)?
    } else {
        let ending = word.get(digits.len()..)?;
        if digits.len() > 2
            || !matches!(
                ending,
                "" | "st" | "nd" | "rd" | "th" | "e" | "er" | "ème" | "º" | "ª"
            )
        {
            return None;
        }
        digits.parse().ok()?
    };
    (1..=YEAR_MAX).contains(&year).then_some(year)
}
