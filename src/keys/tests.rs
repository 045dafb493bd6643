use proptest::prelude::*;

use super::*;

/// Chance that repeats itself: every byte follows from the seed and the position.
#[derive(Debug)]
struct Seeded(u64);

impl Entropy for Seeded {
    fn fill(&self, bytes: &mut [u8]) {
        let mut state = self.0 ^ bytes.len() as u64;
        for byte in bytes {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *byte = (state >> 56) as u8;
        }
    }
}

proptest! {
    #[test]
    fn a_made_key_parses_to_its_id_and_hash(seed: u64) {
        let (id, plain) = generate(&Seeded(seed));
        let parsed = parse(plain.expose()).unwrap();
        prop_assert_eq!(&parsed.id, &id);
        prop_assert!(matches(&parsed.hash(), &hash(&plain)));
        prop_assert_eq!(plain.expose().len(), KEY_CHARS);
        prop_assert!(!id.as_str().contains([':', '_']));
        let rotated = generate_for(&id, &Seeded(seed ^ 1));
        prop_assert!(!matches(&hash(&rotated), &hash(&plain)));
        prop_assert_eq!(parse(rotated.expose()).unwrap().id, id);
    }

    #[test]
    fn one_changed_letter_is_refused(seed: u64, at in 0..KEY_CHARS, letter in "[0-9a-zA-Z_ ]") {
        let (_, plain) = generate(&Seeded(seed));
        let mut text = plain.expose().to_owned();
        text.replace_range(at..=at, &letter);
        prop_assume!(text != plain.expose());
        prop_assert!(parse(&text).is_err());
    }

    #[test]
    fn a_cut_or_longer_key_is_refused(seed: u64, keep in 0..KEY_CHARS, more in "[0-9a-z ]{1,9}") {
        let (_, plain) = generate(&Seeded(seed));
        prop_assert!(parse(&plain.expose()[..keep]).is_err());
        let longer = format!("{}{more}", plain.expose());
        prop_assert!(parse(&longer).is_err());
    }

    #[test]
    fn no_text_makes_the_parser_panic(text in ".{0,120}", tail in "\\PC{73}") {
        prop_assert!(parse(&text).is_err());
        let prefixed = format!("tg_{tail}");
        prop_assert!(parse(&prefixed).is_err());
    }
}

#[test]
fn faults_are_told_apart() {
    let (_, plain) = generate(&Seeded(7));
    let key = plain.expose();
    let table = [
        (String::new(), KeyFault::Prefix),
        ("null".to_owned(), KeyFault::Prefix),
        (format!("sk{}", &key[2..]), KeyFault::Prefix),
        (key[..40].to_owned(), KeyFault::Shape),
        (format!("tg_{}", "a".repeat(100_000)), KeyFault::Shape),
        (key.replacen('_', "x", 2).replacen('x', "_", 1), KeyFault::Shape),
        (format!("{}U", &key[..KEY_CHARS - 1]), KeyFault::Alphabet),
    ];
    for (text, fault) in table {
        assert_eq!(
            parse(&text).unwrap_err(),
            fault,
            "{}",
            text.get(..20).unwrap_or(&text)
        );
    }
    let last = if key.ends_with('0') { "1" } else { "0" };
    let wrong = format!("{}{last}", &key[..KEY_CHARS - 1]);
    assert_eq!(parse(&wrong).unwrap_err(), KeyFault::Checksum);
}

#[test]
fn neither_debug_nor_faults_show_a_key() {
    let (id, plain) = generate(&Seeded(3));
    let parsed = parse(plain.expose()).unwrap();
    let secret = parsed.secret.expose().to_owned();
    let shown = format!("{parsed:?} {plain:?} {}", redacted(&id));
    assert!(!shown.contains(&secret) && shown.contains(id.as_str()), "{shown}");
}
