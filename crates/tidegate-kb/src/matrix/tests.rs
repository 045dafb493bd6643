use std::collections::HashMap;

use proptest::prelude::*;

use super::*;
use crate::index::cosine;

/// Vectors of length 1 from a generator of its own, so that a failure repeats.
fn vectors(count: usize, dimensions: usize, seed: u64) -> Vec<Vec<f32>> {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = move || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        #[expect(clippy::cast_precision_loss, reason = "31 bits of noise")]
        let unit = (state >> 33) as f32 / (1_u64 << 31) as f32;
        unit - 0.5
    };
    (0..count)
        .map(|_| unit((0..dimensions).map(|_| next()).collect()))
        .collect()
}

fn unit(mut vector: Vec<f32>) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    if length > 0.0 {
        for value in &mut vector {
            *value /= length;
        }
    }
    vector
}

fn filled(rows: &[Vec<f32>]) -> Matrix {
    let mut matrix = Matrix::new(rows[0].len());
    for (key, row) in (0..).zip(rows) {
        assert!(matrix.put(key, row));
    }
    matrix
}

#[test]
fn cosines_by_codes_are_within_a_hundredth() {
    for dimensions in [1, 15, 16, 17, 256, 384] {
        let rows = vectors(300, dimensions, 7);
        let found = filled(&rows).view().nearest(&rows[5], rows.len(), None);
        assert_eq!(found.len(), rows.len());
        for (key, score) in found {
            let exact = cosine(&rows[5], &rows[usize::try_from(key).unwrap()]);
            assert!((score - exact).abs() < 0.01, "{dimensions}: {score} {exact}");
        }
    }
}

#[test]
fn the_nearest_by_full_vectors_are_among_the_candidates() {
    let rows = vectors(5_000, 64, 3);
    let view = filled(&rows).view();
    for query in vectors(20, 64, 11) {
        let mut exact: Vec<(ChunkKey, f32)> = (0..)
            .zip(&rows)
            .map(|(key, row)| (key, cosine(&query, row)))
            .collect();
        exact.sort_by(|left, right| right.1.total_cmp(&left.1));
        let candidates: Vec<ChunkKey> = view
            .nearest(&query, 100, None)
            .into_iter()
            .map(|found| found.0)
            .collect();
        for (key, _) in &exact[..10] {
            assert!(candidates.contains(key));
        }
    }
}

#[test]
fn a_filter_leaves_nothing_else_in() {
    let rows = vectors(BLOCK_ROWS + 500, 16, 5);
    let matrix = filled(&rows);
    let keys: Vec<ChunkKey> = (0..).step_by(7).take(600).chain([999_999]).collect();
    let found = matrix
        .view()
        .nearest(&rows[0], 1_000, Some(&matrix.allowed(&keys)));
    assert_eq!(found.len(), 600);
    assert!(found.iter().all(|(key, _)| key % 7 == 0));
    let nothing = matrix.view().nearest(&rows[0], 10, Some(&matrix.allowed(&[])));
    assert!(nothing.is_empty());
}

#[test]
fn a_view_stays_as_it_was() {
    let rows = vectors(10, 16, 1);
    let mut matrix = filled(&rows);
    let view = matrix.view();
    for key in 0..10 {
        matrix.remove(key);
    }
    assert_eq!(matrix.rows(), 0);
    assert!(matrix.blocks.is_empty());
    assert_eq!(view.nearest(&rows[3], 1, None)[0].0, 3);
    assert!(matrix.view().nearest(&rows[3], 1, None).is_empty());
}

#[test]
fn what_is_no_vector_of_this_matrix_is_not_taken() {
    let mut matrix = Matrix::new(4);
    assert!(!matrix.put(1, &[1.0, 0.0]));
    assert!(!Matrix::default().put(1, &[]));
    assert!(matrix.put(2, &[0.0; 4]));
    assert!(matrix.put(3, &[f32::NAN, 1.0, 0.0, 0.0]));
    assert!(matrix.put(4, &[f32::INFINITY, 1.0, 0.0, 0.0]));
    let found = matrix.view().nearest(&[0.0, 1.0, 0.0, 0.0], 10, None);
    assert_eq!(found[0].0, 3, "{found:?}");
    assert!(found.iter().all(|(_, score)| (-1.0..=1.0).contains(score)));
    assert!(matrix.view().nearest(&[1.0; 3], 10, None).is_empty());
    assert!(matrix.view().nearest(&[1.0, 0.0, 0.0, 0.0], 0, None).is_empty());
}

proptest! {
    #[test]
    fn it_holds_what_was_put_in_and_not_taken_out(steps in prop::collection::vec((0..40_i64, any::<bool>(), 0..8_u64), 0..200)) {
        let mut matrix = Matrix::new(8);
        let mut expected: HashMap<ChunkKey, Vec<f32>> = HashMap::new();
        for (key, put, seed) in steps {
            if put {
                let vector = vectors(1, 8, seed).remove(0);
                prop_assert!(matrix.put(key, &vector));
                expected.insert(key, vector);
            } else {
                matrix.remove(key);
                expected.remove(&key);
            }
        }
        prop_assert_eq!(matrix.rows(), expected.len());
        let query = vectors(1, 8, 99).remove(0);
        let found = matrix.view().nearest(&query, 100, None);
        prop_assert_eq!(found.len(), expected.len());
        for (key, score) in &found {
            prop_assert!((score - cosine(&query, &expected[key])).abs() < 0.02);
        }
        prop_assert!(found.is_sorted_by(|left, right| left.1 >= right.1));
    }
}
