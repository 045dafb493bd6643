use proptest::prelude::*;

use super::*;

const FACT: &str =
    r#"{"kind":"grade_level","value":"4","quote":"I teach 4th grade","explicit":true,"first_person":true}"#;

#[test]
fn reads_answers_in_many_forms() {
    for reply in [
        format!("{{\"facts\":[{FACT}]}}"),
        format!("```json\n{{\"facts\":[{FACT}]}}\n```"),
        format!("Here you are [1]:\n{{\"facts\":[{FACT}]}}\nAnything else?"),
        format!("<think>{{\"facts\":[]}} hm</think>{{\"Facts\":[{FACT}]}}"),
        format!("[{FACT}]"),
        FACT.to_owned(),
        format!("{{\"memories\":{FACT}}}"),
        r#"{"facts":[{"kind":" Grade_Level","value":4,"quote":"I teach 4th grade","explicit":"yes"}]}"#
            .to_owned(),
    ] {
        let parsed = parse(&reply);
        assert_eq!(parsed.fault, None, "{reply}");
        let [candidate] = parsed.candidates.as_slice() else {
            panic!("{reply}: {parsed:?}")
        };
        assert_eq!(
            (candidate.kind.as_str(), candidate.value.as_str()),
            ("grade_level", "4")
        );
        assert!(candidate.is_explicit && candidate.is_first_person, "{reply}");
    }
}

#[test]
fn says_what_is_wrong() {
    for (reply, fault) in [
        ("", Fault::Empty),
        ("<think>I think</think>  ", Fault::Empty),
        ("not json", Fault::NoJson),
        ("{", Fault::NoJson),
        ("{\"facts\": 3}", Fault::NoFacts),
        ("{\"facts\": null}", Fault::NoFacts),
        ("{\"answer\": \"none\"}", Fault::NoFacts),
    ] {
        let parsed = parse(reply);
        assert_eq!(parsed.fault, Some(fault), "{reply}");
        assert!(parsed.candidates.is_empty());
    }
}

#[test]
fn drops_entries_it_cannot_read() {
    let parsed = parse(&format!(
        r#"{{"facts":[3,null,{{"kind":"x"}},{{"kind":["a"],"value":"b","quote":"c"}},{FACT}]}}"#
    ));
    assert_eq!((parsed.candidates.len(), parsed.dropped), (1, 4));
    let many = parse(&format!("[{}]", vec![FACT; 200].join(",")));
    assert_eq!(
        (many.candidates.len(), many.dropped),
        (CANDIDATES_MAX, 200 - CANDIDATES_MAX)
    );
    // Flags that are missing are not set.
    let bare = parse(r#"[{"kind":"a","value":"b","quote":"c"}]"#);
    assert!(!bare.candidates[0].is_explicit && !bare.candidates[0].is_first_person);
}

#[test]
fn the_prompt_holds_own_words_only() {
    let kinds = Kinds::shipped().unwrap();
    let reading = Reading::of("I teach 4th grade.\n> I am the admin.", []);
    let prompt = prompt(&kinds, &reading);
    assert_eq!(prompt.user, "BEGIN\nI teach 4th grade\nEND");
    assert!(
        kinds
            .iter()
            .all(|kind| prompt.system.contains(&format!("- {}: ", kind.name)))
    );
    let schema = schema(&kinds);
    assert_eq!(
        schema["properties"]["facts"]["items"]["properties"]["kind"]["enum"]
            .as_array()
            .map(Vec::len),
        Some(kinds.len())
    );
}

proptest! {
    #[test]
    fn any_reply_is_read(reply in r#"[\{\}\[\]":,a-z0-9 \\]{0,200}"#) {
        let parsed = parse(&reply);
        prop_assert!(parsed.candidates.len() <= CANDIDATES_MAX);
    }
}
