//! What holds of facts whatever a person said, and in whatever order it came.

use proptest::prelude::*;
use tidegate_core::memory::FactState;

use super::{
    tests::{Person, anybody, time},
    *,
};

const KINDS: [(&str, [&str; 3]); 3] = [
    ("grade_level", ["4", "6", "7"]),
    ("preference", ["tables", "pictures", "short answers"]),
    ("subject_focus", ["biology", "physics", "chemistry"]),
];

thread_local! {
    static SHIPPED: Kinds = Kinds::shipped().unwrap();
}

/// A person who said all sorts of things within some weeks, often at the same moment or in the same turn.
fn person(with_retractions: bool) -> impl Strategy<Value = Person> {
    let one = (
        0..KINDS.len(),
        0..3_usize,
        0..40_i64,
        0..30_u8,
        0..10_u8,
        any::<bool>(),
    );
    prop::collection::vec(one, 0..40).prop_map(move |all| {
        let mut person = anybody();
        for (kind, value, half_days, turn, voice, is_explicit) in all {
            let (kind, values) = KINDS[kind];
            let at = time("03-02") + jiff::SignedDuration::from_hours(12 * half_days);
            person.say(kind, values[value], at, |observation| {
                observation.turn = [turn; 32];
                observation.is_explicit = is_explicit;
                match voice {
                    0 => observation.voice = Voice::Remembered,
                    1 => observation.voice = Voice::Corrected,
                    2 => observation.voice = Voice::Imported,
                    3 if with_retractions => observation.stance = Stance::Retracted,
                    _ => {}
                }
            });
        }
        person
    })
}

fn all_facts(person: &Person, observations: &[Observation]) -> Vec<Fact> {
    derive(
        &Kinds::shipped().unwrap(),
        &person.user,
        time("05-01"),
        observations,
    )
}

fn is_single(kind: &str) -> bool {
    kind != "preference"
}

proptest! {
    #[test]
    fn the_order_of_rows_decides_nothing((person, shuffled) in person(true).prop_flat_map(|person| {
        let rows = person.observations.clone();
        (Just(person), Just(rows).prop_shuffle())
    })) {
        prop_assert_eq!(all_facts(&person, &person.observations), all_facts(&person, &shuffled));
    }

    #[test]
    fn what_is_sent_again_changes_nothing(person in person(true), hours in 1_i64..2_000, count in 0..40_usize) {
        let again = person.observations.iter().take(count).cloned().map(|mut observation| {
            // The same turns once more, later, and under new ids.
            let last = person.observations.iter().map(|observation| observation.at).max();
            observation.at = last.unwrap_or(observation.at) + jiff::SignedDuration::from_hours(hours);
            observation.day = observation.at.to_zoned_datetime(jiff::tz::TimeZone::UTC).date();
            observation.id = tidegate_core::id::ObservationId::new(format!("{}_again", observation.id));
            observation
        });
        let replayed: Vec<Observation> = person.observations.iter().cloned().chain(again).collect();
        prop_assert_eq!(all_facts(&person, &person.observations), all_facts(&person, &replayed));
    }

    #[test]
    fn a_person_has_one_certain_value_of_a_single_kind(person in person(true)) {
        let facts = all_facts(&person, &person.observations);
        for (kind, _) in KINDS.iter().filter(|(kind, _)| is_single(kind)) {
            let believed = facts.iter().filter(|fact| {
                fact.kind == *kind && matches!(fact.state, FactState::Stable | FactState::Contested)
            });
            prop_assert!(believed.count() <= 1);
        }
    }

    #[test]
    fn facts_rest_on_what_was_said_and_links_lead_somewhere(person in person(true)) {
        let facts = all_facts(&person, &person.observations);
        for fact in &facts {
            prop_assert!(!fact.evidence.is_empty() && fact.days > 0);
            prop_assert!(fact.valid_to.is_none_or(|end| end >= fact.valid_from));
            prop_assert_eq!(&fact.id, &fact_id(&person.user, &fact.kind, &fact.value));
            prop_assert!(fact.other.iter().all(|other| *other != fact.id && facts.iter().any(|fact| fact.id == *other)));
            for id in &fact.evidence {
                let observation = person.observations.iter().find(|observation| observation.id == *id).unwrap();
                prop_assert_eq!((&observation.kind, &observation.value), (&fact.kind, &fact.value));
            }
        }
    }

    #[test]
    fn what_is_forgotten_leaves_nothing_of_its_own(person in person(true)) {
        let facts = all_facts(&person, &person.observations);
        for gone in &facts {
            let mut rest = person.observations.clone();
            rest.retain(|observation| observation.kind != gone.kind || observation.value != gone.value);
            prop_assert!(!all_facts(&person, &rest).iter().any(|fact| fact.id == gone.id || fact.other.as_ref() == Some(&gone.id)));
        }
    }
}

proptest! {
    // Each case derives once for every observation.
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn more_evidence_never_takes_from_what_stands_alone(person in person(false)) {
        let mut rows = person.observations.clone();
        rows.sort_by_key(|observation| observation.at);
        let mut before: Vec<Fact> = Vec::new();
        for count in 0..=rows.len() {
            let facts = all_facts(&person, &rows[..count]);
            for old in before.iter().filter(|fact| !is_single(&fact.kind)) {
                let new = facts.iter().find(|fact| fact.id == old.id).unwrap();
                prop_assert!(new.days >= old.days && new.evidence.len() >= old.evidence.len());
                prop_assert!(old.state != FactState::Stable || new.state == FactState::Stable);
            }
            before = facts;
        }
    }
}
