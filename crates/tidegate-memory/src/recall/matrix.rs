//! One person's vectors side by side, and which of them are near.
//!
//! A number of a vector is kept in one byte: a question is compared with all of them, and what takes the time is to get
//! them out of memory. A cosine is then exact to less than a hundredth, which is closer than two models ever agree.

use tidegate_core::port::RowKey;

use super::best;

/// The greatest number of a row.
const ROW_MAX: f32 = 127.0;

/// The greatest number of a question. Its square sum over all dimensions stays that of one such number, because its
/// length is 1; so no sum of products leaves 32 bits.
const QUESTION_MAX: f32 = 32_767.0;

/// One person's vectors of one model, side by side in memory.
#[derive(Debug, Clone, Default)]
pub struct Matrix {
    dimensions: usize,
    keys: Vec<RowKey>,
    /// What one unit of each row stands for.
    units: Vec<f32>,
    values: Vec<i8>,
}

impl Matrix {
    /// An empty one for vectors of so many numbers.
    pub fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            ..Self::default()
        }
    }

    /// Adds a vector, scaled to length 1. False where it has another number of dimensions or no direction, and was left
    /// out. Each key is added once.
    pub fn push(&mut self, key: RowKey, vector: &[f32]) -> bool {
        let Some(scale) = scale_of(vector).filter(|_| vector.len() == self.dimensions) else {
            return false;
        };
        let greatest = vector
            .iter()
            .fold(0.0_f32, |greatest, value| greatest.max(value.abs()));
        self.keys.push(key);
        self.units.push(greatest * scale / ROW_MAX);
        self.values
            .extend(vector.iter().map(|value| row_number(value / greatest)));
        true
    }

    /// How many vectors there are.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// The notes that are nearest to `question` by cosine, best first, at most `depth`, and only those above zero.
    pub fn nearest(&self, question: &[f32], depth: usize) -> Vec<(RowKey, f32)> {
        let Some(scale) = scale_of(question).filter(|_| question.len() == self.dimensions) else {
            return Vec::new();
        };
        let question: Vec<i16> = question
            .iter()
            .map(|value| question_number(value * scale))
            .collect();
        let rows = self.values.chunks_exact(self.dimensions).zip(&self.units);
        let cosines = rows.map(|(row, unit)| cosine(row, &question, *unit));
        let near = self.keys.iter().copied().zip(cosines);
        best(near.filter(|(_, cosine)| *cosine > 0.0).collect(), depth)
    }
}

/// A share of the greatest number of a row.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a share is at most 1, so the product fits"
)]
fn row_number(share: f32) -> i8 {
    (share * ROW_MAX).round() as i8
}

/// A number of a vector of length 1.
#[expect(
    clippy::cast_possible_truncation,
    reason = "a number of such a vector is at most 1, so the product fits"
)]
fn question_number(value: f32) -> i16 {
    (value * QUESTION_MAX).round() as i16
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a cosine needs no more than a float's precision"
)]
fn cosine(row: &[i8], question: &[i16], unit: f32) -> f32 {
    dot(row, question) as f32 * unit / QUESTION_MAX
}

/// The inner product. Integers may be added in any order, so that the compiler uses wide registers by itself.
fn dot(row: &[i8], question: &[i16]) -> i32 {
    let pairs = row.iter().zip(question);
    pairs
        .map(|(row, question)| i32::from(*row) * i32::from(*question))
        .sum()
}

/// What makes the length of a vector 1; `None` where it has no direction.
fn scale_of(vector: &[f32]) -> Option<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    (length.is_finite() && length > f32::MIN_POSITIVE).then(|| length.recip())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn exact(left: &[f32], right: &[f32]) -> f32 {
        let dot = |left: &[f32], right: &[f32]| -> f32 {
            left.iter().zip(right).map(|(left, right)| left * right).sum()
        };
        dot(left, right) / (dot(left, left) * dot(right, right)).sqrt()
    }

    #[test]
    fn the_greatest_numbers_do_not_run_over() {
        for dimensions in [1, 16, 256, 4_096] {
            let vector = vec![1.0_f32; dimensions];
            let mut matrix = Matrix::new(dimensions);
            assert!(matrix.push(1, &vector));
            let cosine = matrix.nearest(&vector, 1)[0].1;
            assert!((cosine - 1.0).abs() < 0.01, "{dimensions}: {cosine}");
        }
        let mut spike = vec![0.0_f32; 300];
        spike[299] = -2.0;
        let mut matrix = Matrix::new(300);
        assert!(matrix.push(7, &spike));
        assert!((matrix.nearest(&spike, 1)[0].1 - 1.0).abs() < 1e-3);
    }

    proptest! {
        #[test]
        fn a_cosine_is_exact_to_a_hundredth(
            row in prop::collection::vec(-1.0..1.0_f32, 64),
            question in prop::collection::vec(-1.0..1.0_f32, 64),
        ) {
            let mut matrix = Matrix::new(64);
            prop_assume!(matrix.push(1, &row) && scale_of(&question).is_some());
            let expected = exact(&row, &question);
            match matrix.nearest(&question, 1).first() {
                Some((_, cosine)) => prop_assert!((cosine - expected).abs() < 0.01, "{cosine} {expected}"),
                None => prop_assert!(expected < 0.01, "{expected}"),
            }
        }
    }
}
