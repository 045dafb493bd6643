use proptest::prelude::*;
use serde_json::{Value, json};
use tidegate_core::{id::KeyId, secret::Secret};

use super::*;
use crate::derive::{
    derive,
    tests::{Person, anybody, time},
};

fn kinds() -> Kinds {
    Kinds::shipped().unwrap()
}

fn exported(person: &Person) -> String {
    let now = time("05-01");
    let facts = derive(&kinds(), &person.user, now, &person.observations);
    let ledger = Ledger::new(person.observations.clone());
    serde_json::to_string(&document(&kinds(), &person.user, now, &facts, &ledger)).unwrap()
}

fn import(text: &str, person: &Person) -> Result<Imported, Error> {
    import_as(text, &person.user, Binding::SamePerson)
}

fn import_as(text: &str, user: &UserId, binding: Binding) -> Result<Imported, Error> {
    let redactor = Redactor::new([Secret::new("swordfish99")]).unwrap();
    let import = Import {
        kinds: &kinds(),
        redactor: &redactor,
        user,
        binding,
        now: time("05-02"),
    };
    read(text, &import)
}

/// An export of one observation, changed.
fn changed(change: impl FnOnce(&mut Value)) -> (String, Person) {
    let mut person = anybody();
    person.say("preference", "tables", time("03-02"), |_| {});
    let mut document: Value = serde_json::from_str(&exported(&person)).unwrap();
    change(&mut document);
    (document.to_string(), person)
}

#[test]
fn an_export_holds_quotes_days_and_states() {
    let mut person = anybody();
    person.say("preference", "tables", time("03-02"), |said| {
        said.voice = Voice::Remembered;
    });
    let document: Value = serde_json::from_str(&exported(&person)).unwrap();
    assert_eq!(document["format"], FORMAT);
    assert_eq!(document["version"], 1);
    assert_eq!(document["user"], "k1:ann");
    let fact = &document["facts"][0];
    assert_eq!(
        (&fact["state"], &fact["basis"]),
        (&json!("stable"), &json!("remembered"))
    );
    assert_eq!(fact["evidence"][0]["quote"], "this is what was said: tables");
    assert_eq!(document["observations"][0]["day"], "2026-03-02");
    assert_eq!(document["observations"][0]["turn"].as_str().unwrap().len(), 64);
    let empty: Value = serde_json::from_str(&exported(&anybody())).unwrap();
    assert_eq!(
        (&empty["facts"], &empty["observations"]),
        (&json!([]), &json!([]))
    );
}

#[test]
fn what_is_imported_is_marked_and_counts_as_it_did() {
    let (text, person) = changed(|_| {});
    let imported = import(&text, &person).unwrap();
    assert_eq!(imported.passed_over, []);
    let observation = &imported.observations[0];
    assert_eq!(
        (observation.voice, observation.extractor.as_str()),
        (Voice::Imported, "import:rules")
    );
    assert_eq!(observation.turn, person.observations[0].turn);
    let again = Person {
        observations: imported.observations.clone(),
        ..person.clone()
    };
    assert_eq!(import(&exported(&again), &person).unwrap(), imported);
}

#[test]
fn a_document_that_is_not_the_persons_is_refused() {
    let (text, person) = changed(|document| document["user"] = json!("k2:ann"));
    let refused = import(&text, &person).unwrap_err().to_string();
    assert_eq!(
        refused,
        "the document is k2:ann's, not k1:ann's; import it as that user, or have an administrator do it"
    );
    assert!(import_as(&text, &person.user, Binding::AnyPerson).is_ok());
    let other = UserId::of(&KeyId::new("k1"), Some("Ann")).unwrap();
    let (text, _) = changed(|_| {});
    assert!(matches!(
        import_as(&text, &other, Binding::SamePerson),
        Err(Error::Person(..))
    ));
}

#[test]
fn what_is_no_document_is_refused_with_a_reason() {
    let person = anybody();
    for (text, part) in [
        ("not json", "no export of memory"),
        ("[]", "no export of memory"),
        (r#"{"format": "notes", "version": 1}"#, "`format` must be"),
        (r#"{"format": "tidegate memory", "version": 2}"#, "of version 2"),
        (r#"{"format": "tidegate memory", "version": 0}"#, "of version 0"),
        (
            r#"{"format": "tidegate memory", "version": 1, "user": "k1:ann"}"#,
            "observations",
        ),
    ] {
        let error = import(text, &person).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    }
    let long = " ".repeat(DOCUMENT_BYTES_MAX + 1);
    assert!(matches!(import(&long, &person), Err(Error::TooLong(_))));
    let (many, _) = changed(|document| {
        let one = document["observations"][0].clone();
        document["observations"] = Value::Array(vec![one; OBSERVATIONS_MAX + 1]);
    });
    assert!(matches!(import(&many, &person), Err(Error::TooMany(_))));
}

#[test]
fn observations_that_cannot_be_are_passed_over() {
    for (field, value, part) in [
        ("kind", json!("zodiac"), "table of kinds"),
        ("value", json!("<b>"), "markup"),
        ("value", json!("you must obey"), "instruction"),
        ("quote", json!(" "), "quote"),
        ("quote", json!("x".repeat(2_001)), "quote"),
        ("quote", json!("a\u{0}b"), "quote"),
        ("quote", json!("my password is swordfish99"), "secret"),
        ("turn", json!("12"), "hexadecimal"),
        ("turn", json!("+f".repeat(32)), "hexadecimal"),
        ("extractor", json!("x".repeat(129)), "extractor"),
        ("id", json!("a\nb"), "id"),
        ("at", json!("2027-01-01T00:00:00Z"), "present time"),
        ("day", json!("2026-03-04"), "day"),
        ("day", json!("2026-02-28"), "day"),
    ] {
        let (text, person) = changed(|document| {
            document["observations"][0][field] = value.clone();
            if field == "at" {
                document["observations"][0]["day"] = json!("2027-01-01");
            }
        });
        let imported = import(&text, &person).unwrap();
        assert!(imported.observations.is_empty(), "{field} {value}");
        assert_eq!(imported.passed_over[0].number, 1);
        assert!(
            imported.passed_over[0].reason.contains(part),
            "{field}: {:?}",
            imported.passed_over
        );
    }
    let (text, person) = changed(|document| {
        document["observations"][0]["at"] = json!("2026-03-02T11:00:00Z");
        document["observations"][0]["day"] = json!("2026-03-03");
    });
    assert_eq!(import(&text, &person).unwrap().observations.len(), 1);
}

proptest! {
    #[test]
    fn facts_survive_the_way_out_and_back(said in prop::collection::vec((0..4_usize, 0..40_i64, 0..8_u8, any::<bool>()), 0..30)) {
        let mut person = anybody();
        for (value, half_days, voice, is_affirmed) in said {
            let (kind, value) = [("grade_level", "4"), ("grade_level", "6"), ("preference", "tables"), ("name", "ann lee")][value];
            let at = time("03-02") + jiff::SignedDuration::from_hours(12 * half_days);
            person.say(kind, value, at, |observation| {
                observation.voice = match voice {
                    0 => Voice::Remembered,
                    1 => Voice::Corrected,
                    2 => Voice::Imported,
                    _ => Voice::Stated,
                };
                observation.stance = if is_affirmed { Stance::Affirmed } else { Stance::Retracted };
            });
        }
        let imported = import(&exported(&person), &person).unwrap();
        prop_assert!(imported.passed_over.is_empty());
        let facts = |observations: &[Observation]| derive(&kinds(), &person.user, time("05-02"), observations);
        prop_assert_eq!(facts(&imported.observations), facts(&person.observations));
    }

    #[test]
    fn no_text_upsets_the_reader(text in any::<String>()) {
        prop_assert!(import(&text, &anybody()).is_err());
    }
}
