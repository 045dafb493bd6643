mod suites;

use std::sync::LazyLock;

use super::*;

/// Made once: it takes time.
static REDACTOR: LazyLock<Redactor> = LazyLock::new(|| Redactor::new([]).unwrap());

/// The verdict on one candidate of an extractor that claims everything.
fn verdict(
    kinds: &Kinds,
    turn: &str,
    others: &[Other<'_>],
    kind: &str,
    value: &str,
    quote: &str,
) -> Result<Accepted, Reason> {
    let gate = Boundary {
        kinds,
        limits: Limits::default(),
        redactor: &REDACTOR,
    };
    let reading = Reading::of(turn, others.iter().copied());
    let candidate = Candidate {
        kind: kind.to_owned(),
        value: value.to_owned(),
        quote: quote.to_owned(),
        is_explicit: true,
        is_first_person: true,
    };
    gate.judge(&reading, Held::default(), &[candidate])
        .remove(0)
        .map_err(|refusal| refusal.reason)
}

#[test]
fn tells_voice_and_stance() {
    let kinds = Kinds::shipped().unwrap();
    for (turn, voice, stance) in [
        ("I teach 4th grade.", Voice::Stated, Stance::Affirmed),
        (
            "Remember that I teach 4th grade.",
            Voice::Remembered,
            Stance::Affirmed,
        ),
        (
            "Please remember: I teach 4th grade.",
            Voice::Remembered,
            Stance::Affirmed,
        ),
        (
            "Can you please remember that I teach 4th grade?",
            Voice::Remembered,
            Stance::Affirmed,
        ),
        (
            "And keep in mind that I teach 4th grade.",
            Voice::Remembered,
            Stance::Affirmed,
        ),
        (
            "Don't forget, I teach 4th grade.",
            Voice::Remembered,
            Stance::Affirmed,
        ),
        (
            "Merk dir, dass ich die 4. Klasse unterrichte.",
            Voice::Remembered,
            Stance::Affirmed,
        ),
        ("I no longer teach 4th grade.", Voice::Stated, Stance::Retracted),
        (
            "I don't teach 4th grade anymore.",
            Voice::Stated,
            Stance::Retracted,
        ),
        ("I stopped teaching 4th grade.", Voice::Stated, Stance::Retracted),
        (
            "Remember that I no longer teach 4th grade.",
            Voice::Stated,
            Stance::Retracted,
        ),
    ] {
        let quote = turn.trim_end_matches(['.', '?']);
        let said = verdict(&kinds, turn, &[], "grade_level", "4", quote);
        if turn.starts_with("Merk") {
            // The verb at the end is not understood, and so nothing is kept.
            assert!(said.is_err());
            continue;
        }
        let said = said.unwrap_or_else(|reason| panic!("{turn}: {reason:?}"));
        assert_eq!((said.voice, said.stance), (voice, stance), "{turn}");
    }
    for turn in [
        "Do you remember that I teach 4th grade?",
        "Remember when I taught 4th grade?",
        "I remember that she said I teach 4th grade.",
    ] {
        assert!(
            verdict(
                &kinds,
                turn,
                &[],
                "grade_level",
                "4",
                turn.trim_end_matches(['.', '?'])
            )
            .is_err(),
            "{turn}"
        );
    }
}

#[test]
fn caps_hold() {
    let kinds = Kinds::shipped().unwrap();
    let gate = Boundary {
        kinds: &kinds,
        limits: Limits {
            per_turn: 2,
            per_day: 3,
            per_user: 10,
        },
        redactor: &REDACTOR,
    };
    let reading = Reading::of("I like tables. I like lists. I like maps. I like tables.", []);
    let found: Vec<Candidate> = ["tables", "tables", "lists", "maps"]
        .iter()
        .map(|value| Candidate {
            kind: "preference".to_owned(),
            value: (*value).to_owned(),
            quote: format!("I like {value}"),
            is_explicit: false,
            is_first_person: true,
        })
        .collect();
    let reasons = |today, total| -> Vec<&'static str> {
        gate.judge(&reading, Held { today, total }, &found)
            .into_iter()
            .map(|verdict| verdict.map_or_else(|refusal| refusal.reason.code(), |_| "kept"))
            .collect()
    };
    assert_eq!(reasons(0, 0), ["kept", "repeated", "kept", "turn_cap"]);
    assert_eq!(reasons(2, 2), ["kept", "repeated", "day_cap", "day_cap"]);
    assert_eq!(reasons(0, 10), ["user_cap", "repeated", "user_cap", "user_cap"]);
    let many = vec![found[0].clone(); CANDIDATES_MAX + 5];
    assert_eq!(gate.judge(&reading, Held::default(), &many).len(), CANDIDATES_MAX);
}

#[test]
fn flags_can_only_take_away() {
    let kinds = Kinds::shipped().unwrap();
    let gate = Boundary {
        kinds: &kinds,
        limits: Limits::default(),
        redactor: &REDACTOR,
    };
    let reading = Reading::of("I teach 4th grade.", []);
    for (is_explicit, is_first_person, passes) in
        [(true, true, true), (false, true, false), (true, false, false)]
    {
        let candidate = Candidate {
            kind: "grade_level".to_owned(),
            value: "fourth grade".to_owned(),
            quote: "I teach 4th grade".to_owned(),
            is_explicit,
            is_first_person,
        };
        let verdict = gate.judge(&reading, Held::default(), &[candidate]).remove(0);
        assert_eq!(verdict.is_ok(), passes);
    }
}

#[test]
fn too_much_is_refused() {
    let kinds = Kinds::shipped().unwrap();
    let long = format!("{}\n\nI teach 4th grade.", "Words. ".repeat(TURN_BYTES_MAX / 7));
    assert_eq!(
        verdict(&kinds, &long, &[], "grade_level", "4", "I teach 4th grade"),
        Err(Reason::TurnLength)
    );
    let view = "word ".repeat(1_000_000);
    let other = Other {
        source: Source::Tool,
        text: &view,
    };
    assert_eq!(
        verdict(
            &kinds,
            "I teach 4th grade.",
            &[other],
            "grade_level",
            "4",
            "I teach 4th grade"
        ),
        Err(Reason::TooMuchInView)
    );
}

#[test]
fn known_secrets_are_refused() {
    let kinds = Kinds::shipped().unwrap();
    let redactor = Redactor::new([tidegate_core::secret::Secret::new("tulip-garden-42".to_owned())]).unwrap();
    let gate = Boundary {
        kinds: &kinds,
        limits: Limits::default(),
        redactor: &redactor,
    };
    let reading = Reading::of("I like tulip-garden-42.", []);
    let candidate = Candidate {
        kind: "preference".to_owned(),
        value: "tulip-garden-42".to_owned(),
        quote: "I like tulip-garden-42".to_owned(),
        is_explicit: true,
        is_first_person: true,
    };
    let refusal = gate
        .judge(&reading, Held::default(), &[candidate])
        .remove(0)
        .unwrap_err();
    assert_eq!(refusal.reason, Reason::Secret);
    assert!(!refusal.to_string().contains("tulip"));
}

#[test]
fn own_words_and_what_was_cut() {
    let reading = Reading::of("I teach 4th grade.\n> She said \"no\".\n\nThanks `x` please!", []);
    assert_eq!(reading.own_words(), "I teach 4th grade\nThanks […] please");
    assert_eq!(reading.cut_parts(), ["> She said \"no\".", "`x`"]);
}

#[test]
fn the_same_words_in_ones_own_earlier_message_may_be_said_again() {
    let kinds = Kinds::shipped().unwrap();
    let earlier = Reading::of("I teach 4th grade.\n> I teach 2nd grade in Rome.", []);
    let others: Vec<Other<'_>> = earlier
        .cut_parts()
        .into_iter()
        .map(|text| Other {
            source: Source::Earlier,
            text,
        })
        .collect();
    assert!(
        verdict(
            &kinds,
            "I teach 4th grade.",
            &others,
            "grade_level",
            "4",
            "I teach 4th grade"
        )
        .is_ok()
    );
    assert_eq!(
        verdict(
            &kinds,
            "I teach 2nd grade in Rome.",
            &others,
            "grade_level",
            "2",
            "I teach 2nd grade in Rome"
        ),
        Err(Reason::Overlap(Source::Earlier))
    );
}

proptest::proptest! {
    /// Whatever is kept stands in the turn word for word, and nothing panics.
    #[test]
    fn what_is_kept_was_said(
        turn in proptest::collection::vec(proptest::sample::select(vec![
            "I teach 4th grade", "I like tables", "my name is Maria", "> ", "\n", "\n\n", "\"", "'", "`", "```", ". ", "? ", ", ", ": ", "if ", "not ",
            "my friend ", "Hi", "\u{202e}", "\u{200b}", "ä", "<b>", "[quote]", "1. ", "- ", "(", ")", "*", "_", "and ", "that ", "remember ", "Dear ", "é", "🙂",
        ]), 0..14),
    ) {
        let turn = turn.concat();
        let kinds = Kinds::shipped().unwrap();
        for (kind, value, quote) in [
            ("grade_level", "4", "I teach 4th grade"), ("preference", "tables", "I like tables"), ("name", "Maria", "my name is Maria"),
        ] {
            if let Ok(kept) = verdict(&kinds, &turn, &[], kind, value, quote) {
                proptest::prop_assert!(turn.contains(&kept.quote));
            }
        }
        let reading = Reading::of(&turn, []);
        for found in crate::extract::rules::extract(&reading) {
            proptest::prop_assert!(turn.contains(&found.quote) && turn.contains(&found.value));
        }
    }
}
