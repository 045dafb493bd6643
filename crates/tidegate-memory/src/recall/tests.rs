use proptest::prelude::*;

use super::*;
use crate::{
    derive::{
        derive,
        tests::{anybody, time},
    },
    kinds::Kinds,
};

fn keys(ranked: &[Recalled]) -> Vec<RowKey> {
    ranked.iter().map(|recalled| recalled.key).collect()
}

#[test]
fn a_question_is_searched_by_what_it_is_about() {
    assert_eq!(
        terms("What do I know about LONG division, and long Division?"),
        ["long", "division"]
    );
    assert_eq!(
        terms("How many of the 4 commas are in C#?"),
        ["many", "4", "commas"]
    );
    assert_eq!(terms("ｆｕｌｌ width, 水"), ["full", "width", "水"]);
    assert!(terms("What do you tell me about it?").is_empty() && terms("").is_empty());
    let long = (0..100)
        .map(|number| format!("word{number}"))
        .collect::<Vec<_>>()
        .join(" ");
    assert_eq!(terms(&long).len(), TERMS_MAX);
    assert!(terms(&"x".repeat(500)).is_empty());
}

#[test]
fn ranks_are_joined_as_they_say() {
    let options = Options {
        rrf_k: 20,
        vector_weight: 1.0,
        ..Options::default()
    };
    let ranked = rank(&[(1, 9.0), (2, 5.0)], &[(2, 0.8), (4, 0.4)], &options);
    assert_eq!(keys(&ranked), [2, 1, 4]);
    assert_eq!(ranked[0].words, Some(Leg { rank: 2, score: 5.0 }));
    assert!((ranked[0].score - 0.5 * (21.0 / 22.0 + 1.0)).abs() < 1e-6);
    let light = Options {
        vector_weight: 0.1,
        ..options
    };
    assert_eq!(
        keys(&rank(&[(1, 9.0), (2, 5.0)], &[(2, 0.8), (4, 0.4)], &light)),
        [2, 1, 4]
    );
    assert_eq!(keys(&rank(&[(1, 1.0), (7, 1.0)], &[], &options)), [7, 1]);
}

#[test]
fn only_what_is_above_zero_counts() {
    let options = Options::default();
    let vectors = [(1, 0.0), (2, -0.3), (3, f32::NAN), (4, 0.01)];
    assert_eq!(keys(&rank(&[(5, 0.0)], &vectors, &options)), [4]);
    let none = Options {
        vector_weight: 0.0,
        ..options
    };
    assert!(rank(&[], &vectors, &none).is_empty());
    let nothing = Options { depth: 0, ..options };
    assert!(rank(&[(1, 1.0)], &[], &nothing).is_empty());
}

#[test]
fn the_nearest_are_found_among_many() {
    let mut matrix = Matrix::new(3);
    assert!(matrix.is_empty() && matrix.push(1, &[2.0, 0.0, 0.0]) && matrix.push(2, &[1.0, 1.0, 0.0]));
    assert!(matrix.push(3, &[-1.0, 0.0, 0.0]));
    assert!(!matrix.push(4, &[0.0; 3]) && !matrix.push(5, &[1.0; 4]) && !matrix.push(6, &[f32::NAN; 3]));
    assert_eq!(matrix.len(), 3);
    let nearest = matrix.nearest(&[5.0, 0.0, 0.0], 10);
    assert_eq!(nearest.iter().map(|(key, _)| *key).collect::<Vec<_>>(), [1, 2]);
    assert!((nearest[1].1 - 0.5_f32.sqrt()).abs() < 0.005);
    assert_eq!(matrix.nearest(&[5.0, 0.0, 0.0], 1).len(), 1);
    assert!(matrix.nearest(&[0.0; 3], 10).is_empty() && matrix.nearest(&[1.0; 2], 10).is_empty());
    assert!(Matrix::new(0).nearest(&[], 10).is_empty());
}

#[test]
fn what_no_longer_holds_has_no_note() {
    let kinds = Kinds::shipped().unwrap();
    let mut person = anybody();
    person.say("grade_level", "4", time("03-02"), |said| {
        said.voice = tidegate_core::memory::Voice::Remembered;
    });
    person.say("grade_level", "6", time("03-03"), |said| {
        said.voice = tidegate_core::memory::Voice::Remembered;
    });
    person.say("access_need", "large print", time("03-03"), |_| {});
    person.say("preference", "tables", time("03-03"), |_| {});
    let notes: Vec<_> = derive(&kinds, &person.user, time("03-04"), &person.observations)
        .iter()
        .map(|fact| note(kinds.get(&fact.kind).unwrap(), fact))
        .collect();
    let expected = [None, Some("grade level: 6"), Some("likes: tables"), None];
    assert_eq!(notes.iter().map(Option::as_deref).collect::<Vec<_>>(), expected);
}

fn list() -> impl Strategy<Value = Vec<(RowKey, f32)>> {
    prop::collection::vec((0..60_i64, -1.0..1.0_f32), 0..80)
}

proptest! {
    #[test]
    fn scores_are_shares_and_in_order(words in list(), vectors in list(), rrf_k in 0..100_u32, vector_weight in 0.0..=1.0_f32) {
        let options = Options { rrf_k, vector_weight, ..Options::default() };
        let ranked = rank(&words, &vectors, &options);
        prop_assert!(ranked.len() <= options.limit);
        prop_assert!(ranked.iter().all(|recalled| recalled.score > 0.0 && recalled.score <= 1.0 + 1e-6));
        prop_assert!(ranked.is_sorted_by(|left, right| left.score >= right.score));
        let mut seen = keys(&ranked);
        seen.sort_unstable();
        seen.dedup();
        prop_assert_eq!(seen.len(), ranked.len());
        for recalled in &ranked {
            let is_above = |list: &[(RowKey, f32)]| list.iter().any(|(key, score)| *key == recalled.key && *score > 0.0);
            prop_assert!(is_above(&words) || is_above(&vectors));
        }
    }

    #[test]
    fn the_order_of_a_list_does_not_matter((words, shuffled) in list().prop_flat_map(|list| (Just(list.clone()), Just(list).prop_shuffle()))) {
        prop_assert_eq!(rank(&words, &[], &Options::default()), rank(&shuffled, &[], &Options::default()));
    }
}
