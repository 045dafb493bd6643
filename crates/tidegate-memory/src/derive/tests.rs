use jiff::tz::TimeZone;
use tidegate_core::{
    clock::after,
    id::{KeyId, ObservationId},
    memory::{Basis, FactState},
};

use super::*;

/// One person and what they said.
#[derive(Debug, Clone)]
pub(crate) struct Person {
    pub(crate) user: UserId,
    pub(crate) observations: Vec<Observation>,
}

impl Person {
    pub(crate) fn new(user: UserId) -> Self {
        Self {
            user,
            observations: Vec::new(),
        }
    }

    /// Says something, each time in a turn of its own unless `change` says otherwise.
    pub(crate) fn say(
        &mut self,
        kind: &str,
        value: &str,
        at: Timestamp,
        change: impl FnOnce(&mut Observation),
    ) {
        let number = self.observations.len();
        let mut observation = Observation {
            id: ObservationId::new(format!("obs_{number}")),
            kind: kind.to_owned(),
            value: value.to_owned(),
            quote: format!("this is what was said: {value}"),
            turn: Sha256::digest(number.to_be_bytes()).into(),
            conversation: String::new(),
            day: at.to_zoned_datetime(TimeZone::UTC).date(),
            at,
            voice: Voice::Stated,
            stance: Stance::Affirmed,
            extractor: "rules".to_owned(),
            is_explicit: true,
            is_first_person: true,
        };
        change(&mut observation);
        self.observations.push(observation);
    }
}

pub(crate) fn anybody() -> Person {
    Person::new(UserId::of(&KeyId::new("k1"), Some("ann")).unwrap())
}

pub(crate) fn time(text: &str) -> Timestamp {
    let text = if text.contains('T') {
        text.to_owned()
    } else {
        format!("2026-{text}T09:00:00Z")
    };
    text.parse().unwrap()
}

/// Plays lines such as `03-02 grade_level 4`, with `remember`, `correct`, `retract` or `imported` at the end.
fn told(lines: &[&str]) -> Person {
    let mut person = anybody();
    for line in lines {
        let words: Vec<&str> = line.split(' ').collect();
        let [at, kind, value, how @ ..] = words.as_slice() else {
            panic!("{line}");
        };
        person.say(kind, value, time(at), |observation| match how.first() {
            Some(&"remember") => observation.voice = Voice::Remembered,
            Some(&"correct") => observation.voice = Voice::Corrected,
            Some(&"imported") => observation.voice = Voice::Imported,
            Some(&"retract") => observation.stance = Stance::Retracted,
            Some(&"inferred") => observation.is_explicit = false,
            Some(&"other") => observation.is_first_person = false,
            Some(other) => panic!("{other}"),
            None => {}
        });
    }
    person
}

fn facts_at(person: &Person, now: &str) -> Vec<Fact> {
    derive(
        &Kinds::shipped().unwrap(),
        &person.user,
        time(now),
        &person.observations,
    )
}

fn state(facts: &[Fact], value: &str) -> Option<FactState> {
    facts
        .iter()
        .find(|fact| fact.value == value)
        .map(|fact| fact.state)
}

const OLD: [&str; 3] = [
    "03-02 grade_level 4",
    "03-04 grade_level 4",
    "03-07 grade_level 4",
];

fn with<'l>(first: &[&'l str], rest: &[&'l str]) -> Vec<&'l str> {
    first.iter().chain(rest).copied().collect()
}

#[expect(clippy::too_many_lines, reason = "a table")]
#[test]
fn states_follow_from_days() {
    use FactState::{Candidate, Contested, Expired, Retracted, Stable, Superseded};
    type Row<'r> = (&'r str, Vec<&'r str>, &'r str, &'r [(&'r str, Option<FactState>)]);
    let three_six = [
        "09-18 grade_level 6",
        "09-20 grade_level 6",
        "09-25 grade_level 6",
    ];
    let rows: &[Row<'_>] = &[
        ("once", vec![OLD[0]], "03-09", &[("4", Some(Candidate))]),
        ("twice", OLD[..2].to_vec(), "03-09", &[("4", Some(Candidate))]),
        ("three days", OLD.to_vec(), "03-09", &[("4", Some(Stable))]),
        (
            "three times a day",
            vec![
                "2026-03-02T09:00:00Z grade_level 4",
                "2026-03-02T10:00:00Z grade_level 4",
                "2026-03-02T11:00:00Z grade_level 4",
            ],
            "03-09",
            &[("4", Some(Candidate))],
        ),
        (
            "remembered",
            vec!["03-02 grade_level 4 remember"],
            "03-09",
            &[("4", Some(Stable))],
        ),
        (
            "corrected",
            vec!["03-02 grade_level 4 correct"],
            "03-09",
            &[("4", Some(Stable))],
        ),
        (
            "imported once",
            vec!["03-02 grade_level 4 imported"],
            "03-09",
            &[("4", Some(Candidate))],
        ),
        (
            "inferred",
            vec!["03-02 grade_level 4 inferred"],
            "03-09",
            &[("4", None)],
        ),
        (
            "of somebody else",
            vec!["03-02 grade_level 4 other"],
            "03-09",
            &[("4", None)],
        ),
        (
            "no such kind",
            vec!["03-02 zodiac leo"],
            "03-09",
            &[("leo", None)],
        ),
        (
            "no such value",
            vec!["03-02 grade_level 44"],
            "03-09",
            &[("44", None)],
        ),
        (
            "one new word contests",
            with(&OLD, &three_six[..1]),
            "09-19",
            &[("4", Some(Contested)), ("6", Some(Candidate))],
        ),
        (
            "its own days supersede",
            with(&OLD, &three_six),
            "09-26",
            &[("4", Some(Superseded)), ("6", Some(Stable))],
        ),
        (
            "remembered supersedes",
            with(&OLD, &["09-18 grade_level 6 remember"]),
            "09-19",
            &[("4", Some(Superseded)), ("6", Some(Stable))],
        ),
        (
            "corrected supersedes",
            with(&OLD, &["09-18 grade_level 6 correct"]),
            "09-19",
            &[("4", Some(Superseded)), ("6", Some(Stable))],
        ),
        (
            "the old one again, once",
            with(&OLD, &["09-18 grade_level 6", "09-19 grade_level 4"]),
            "09-20",
            &[("4", Some(Contested)), ("6", Some(Candidate))],
        ),
        (
            "the old one again, for days",
            with(
                &OLD,
                &[
                    "09-18 grade_level 6",
                    "09-19 grade_level 4",
                    "09-20 grade_level 4",
                    "09-21 grade_level 4",
                ],
            ),
            "09-22",
            &[("4", Some(Stable)), ("6", Some(Candidate))],
        ),
        (
            "a challenge that is taken back",
            with(&OLD, &["09-18 grade_level 6", "09-19 grade_level 6 retract"]),
            "09-20",
            &[("4", Some(Stable)), ("6", Some(Retracted))],
        ),
        (
            "taken back",
            with(&OLD, &["09-18 grade_level 4 retract"]),
            "09-20",
            &[("4", Some(Retracted))],
        ),
        (
            "taken back, then said again",
            with(&OLD, &["09-18 grade_level 4 retract", "09-19 grade_level 4"]),
            "09-20",
            &[("4", Some(Candidate))],
        ),
        (
            "never said, taken back",
            vec!["03-02 grade_level 4 retract"],
            "03-09",
            &[("4", None)],
        ),
        (
            "by turns",
            vec![
                "03-02 grade_level 4",
                "03-03 grade_level 6",
                "03-04 grade_level 4",
                "03-05 grade_level 6",
                "03-06 grade_level 4",
                "03-07 grade_level 6",
            ],
            "03-08",
            &[("4", Some(Candidate)), ("6", Some(Candidate))],
        ),
        (
            "both at one moment, for days",
            vec![
                "03-02 grade_level 4",
                "03-02 grade_level 6",
                "03-03 grade_level 4",
                "03-03 grade_level 6",
                "03-04 grade_level 4",
                "03-04 grade_level 6",
            ],
            "03-08",
            &[("4", Some(Candidate)), ("6", Some(Candidate))],
        ),
        (
            "both to be remembered at one moment",
            with(
                &OLD,
                &["09-18 grade_level 6 remember", "09-18 grade_level 7 remember"],
            ),
            "09-19",
            &[
                ("4", Some(Contested)),
                ("6", Some(Candidate)),
                ("7", Some(Candidate)),
            ],
        ),
        (
            "too old",
            OLD.to_vec(),
            "2028-03-07T09:00:00Z",
            &[("4", Some(Expired))],
        ),
        (
            "old and said again",
            with(&OLD, &["2028-03-01T09:00:00Z grade_level 4"]),
            "2028-03-07T09:00:00Z",
            &[("4", Some(Stable))],
        ),
        (
            "days too far apart",
            vec![
                "03-02 knowledge_gap commas",
                "11-02 knowledge_gap commas",
                "2027-07-02T09:00:00Z knowledge_gap commas",
            ],
            "2027-07-03T09:00:00Z",
            &[("commas", Some(Candidate))],
        ),
        (
            "an expired challenge contests no more",
            with(
                &[
                    "03-02 subject_focus biology remember",
                    "03-03 subject_focus physics",
                ],
                &["2027-03-02T09:00:00Z subject_focus biology"],
            ),
            "2027-06-01T09:00:00Z",
            &[("biology", Some(Stable)), ("physics", Some(Expired))],
        ),
        (
            "several side by side",
            vec![
                "03-02 preference tables remember",
                "03-02 preference pictures remember",
            ],
            "03-03",
            &[("tables", Some(Stable)), ("pictures", Some(Stable))],
        ),
    ];
    for (name, lines, now, expected) in rows {
        let facts = facts_at(&told(lines), now);
        for (value, expected) in *expected {
            assert_eq!(state(&facts, value), *expected, "{name}: {value} in {facts:#?}");
        }
    }
}

#[test]
fn two_days_of_seven_minutes_are_not_enough_where_two_are_asked_for() {
    let kinds = Kinds::shipped().unwrap().adjusted(|kind| kind.days_to_stable = 2);
    let mut person = told(&[
        "2026-03-02T23:58:00Z grade_level 4",
        "2026-03-03T00:02:00Z grade_level 4",
    ]);
    let states = |person: &Person| derive(&kinds, &person.user, time("03-09"), &person.observations)[0].state;
    assert_eq!(states(&person), FactState::Candidate);
    person.say("grade_level", "4", time("2026-03-03T23:58:00Z"), |_| {});
    assert_eq!(states(&person), FactState::Stable);
}

#[test]
fn intervals_and_links_say_what_took_the_place_of_what() {
    let lines = with(
        &OLD,
        &[
            "09-18 grade_level 6",
            "09-20 grade_level 6",
            "09-25 grade_level 6",
        ],
    );
    let facts = facts_at(&told(&lines), "09-26");
    let [old, new] = facts.as_slice() else {
        panic!("{facts:#?}");
    };
    assert_eq!(
        (old.valid_from, old.valid_to),
        (time("03-02"), Some(time("09-18")))
    );
    assert_eq!((new.valid_from, new.valid_to), (time("09-18"), None));
    assert_eq!((old.other.as_ref(), new.other.as_ref()), (Some(&new.id), None));
    assert_eq!(
        (old.days, new.days, old.basis, new.basis),
        (3, 3, Basis::Days, Basis::Days)
    );
    assert_eq!(
        old.evidence.iter().map(ObservationId::as_str).collect::<Vec<_>>(),
        ["obs_0", "obs_1", "obs_2"]
    );
    let facts = facts_at(&told(&lines[..4]), "09-19");
    assert_eq!(facts[0].other.as_ref(), Some(&facts[1].id));
    assert_eq!(facts[1].other.as_ref(), Some(&facts[0].id));
    let facts = facts_at(&told(&with(&OLD, &["09-18 grade_level 4 retract"])), "09-19");
    assert_eq!(
        (facts[0].valid_to, facts[0].evidence.len()),
        (Some(time("09-18")), 4)
    );
    let facts = facts_at(&told(&OLD), "2028-03-07T09:00:00Z");
    assert_eq!(facts[0].valid_to, Some(after(time("03-07"), 400 * 86_400)));
}

#[test]
fn the_same_turn_counts_once_on_whichever_day() {
    let mut person = anybody();
    for day in ["03-02", "03-03", "03-04", "03-05"] {
        person.say("grade_level", "4", time(day), |observation| {
            observation.turn = [7; 32];
        });
    }
    let facts = facts_at(&person, "03-06");
    assert_eq!(
        (facts[0].state, facts[0].days, facts[0].last_at),
        (FactState::Candidate, 1, time("03-02"))
    );
}

#[test]
fn a_change_of_the_table_changes_every_state() {
    let person = told(&["03-02 preference tables", "03-04 preference tables inferred"]);
    let state_with = |adjust: &dyn Fn(&mut Kind)| {
        let kinds = Kinds::shipped().unwrap().adjusted(adjust);
        derive(&kinds, &person.user, time("03-09"), &person.observations)
            .first()
            .map(|fact| (fact.state, fact.days))
    };
    assert_eq!(state_with(&|_| {}), Some((FactState::Candidate, 2)));
    assert_eq!(
        state_with(&|kind| kind.days_to_stable = 2),
        Some((FactState::Stable, 2))
    );
    assert_eq!(
        state_with(&|kind| kind.explicit_only = true),
        Some((FactState::Candidate, 1))
    );
    assert_eq!(
        state_with(&|kind| kind.reconfirm_after_days = 1),
        Some((FactState::Expired, 2))
    );
    assert_eq!(
        derive(
            &Kinds::parse("").unwrap(),
            &person.user,
            time("03-09"),
            &person.observations
        ),
        []
    );
}

#[test]
fn everything_a_fact_is_stored_under_is_found() {
    let person = told(&[
        "03-02 grade_level 4",
        "03-03 grade_level 4th",
        "03-04 grade_level Fourth retract",
        "03-04 grade_level 5",
        "03-04 role 4",
    ]);
    let kinds = Kinds::shipped().unwrap();
    let facts = facts_at(&person, "03-09");
    assert_eq!(state(&facts, "4"), Some(FactState::Retracted));
    let stored = stored_values(&kinds, &facts[0], &person.observations);
    assert_eq!(stored.into_iter().collect::<Vec<_>>(), ["4", "4th", "Fourth"]);
    let unknown = Kinds::parse("").unwrap();
    assert_eq!(stored_values(&unknown, &facts[0], &person.observations).len(), 1);
}

#[test]
fn an_id_belongs_to_one_person_kind_and_value() {
    let ids = [
        ("k1:ann", "a", "b"),
        ("k1:ann", "ab", ""),
        ("k1:an", "na", "b"),
        ("k1:ann", "a", "B"),
        ("k1:Ann", "a", "b"),
    ];
    let ids = ids.map(|(user, kind, value)| {
        let user = UserId::of(&KeyId::new("k"), Some(user)).unwrap();
        fact_id(&user, kind, value)
    });
    assert_eq!(
        ids.iter().collect::<std::collections::BTreeSet<_>>().len(),
        ids.len()
    );
    assert!(
        ids.iter()
            .all(|id| id.as_str().starts_with("fact_") && id.as_str().len() == 29)
    );
}
