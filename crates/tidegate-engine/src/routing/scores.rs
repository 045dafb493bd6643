//! Scores: how far a question's vector leans to the list of questions about the assistant. Pure arithmetic.
//!
//! | score | what it is |
//! |---|---|
//! | nearest | the highest cosine to a positive |
//! | margin | mean of the three highest cosines to positives less the same for negatives |
//! | centroid | cosine to the positives' mean less the cosine to the negatives' mean |
//! | probe | w·e with (PᵀP/\|P\| + NᵀN/\|N\| + λI) w = mean(P) − mean(N): a ridge-regularised linear discriminant |

/// What keeps the probe's matrix away from a singular one where there are fewer examples than dimensions.
const RIDGE: f64 = 0.01;

/// Nearest examples that are averaged and named.
pub(super) const NEAREST: usize = 3;

/// The most dimensions a probe is solved for: 4096 would take a minute and 128 MiB.
pub(super) const DIMENSIONS_MAX: usize = 2_048;

/// An example's place in its list, and its cosine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Near {
    /// Its place.
    pub(super) index: usize,
    /// The cosine, from -1 to 1.
    pub(super) cosine: f32,
}

/// Vectors of one length, row by row.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Rows {
    dimensions: usize,
    values: Vec<f32>,
}

impl Rows {
    /// Rows of `dimensions` numbers; a vector of another length is left out. Each is brought to length 1: the port
    /// promises it, but a wrong promise must not turn into a wrong decision.
    pub(super) fn new<'a>(dimensions: usize, vectors: impl Iterator<Item = &'a [f32]>) -> Self {
        let mut values = Vec::new();
        for vector in vectors.filter(|vector| vector.len() == dimensions) {
            if let Some(unit) = unit(vector) {
                values.extend(unit);
            }
        }
        Self { dimensions, values }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len().checked_div(self.dimensions).unwrap_or_default()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &[f32]> {
        self.values.chunks_exact(self.dimensions.max(1))
    }

    /// The mean of all rows; zeros where there is none.
    pub(super) fn mean(&self) -> Vec<f64> {
        let mut mean = vec![0.0_f64; self.dimensions];
        for row in self.iter() {
            for (sum, value) in mean.iter_mut().zip(row) {
                *sum += f64::from(*value);
            }
        }
        let count = f64::from(u32::try_from(self.len().max(1)).unwrap_or(u32::MAX));
        for value in &mut mean {
            *value /= count;
        }
        mean
    }

    /// Adds the mean of the rows' outer products to the lower triangle of `matrix`.
    fn add_products(&self, matrix: &mut [f64]) {
        let share = 1.0 / f64::from(u32::try_from(self.len().max(1)).unwrap_or(u32::MAX));
        for row in self.iter() {
            for (line, (place, left)) in matrix
                .chunks_exact_mut(self.dimensions)
                .zip(row.iter().enumerate())
            {
                let left = f64::from(*left) * share;
                for (sum, right) in line.iter_mut().zip(row).take(place + 1) {
                    *sum += left * f64::from(*right);
                }
            }
        }
    }
}

/// The same rows in 16 bits a number, for the search that every question pays for: half the memory, and twice as many
/// products at once. A cosine is off by less than 0.001.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Grid {
    dimensions: usize,
    values: Vec<i16>,
}

/// What 1 is in a grid. Products of two such vectors of length 1 sum to at most its square: they fit in 32 bits.
const ONE: f32 = 16_384.0;

impl Grid {
    pub(super) fn new(rows: &Rows) -> Self {
        Self {
            dimensions: rows.dimensions,
            values: rows.values.iter().map(|value| coarse(*value)).collect(),
        }
    }

    /// The nearest rows to a vector of length 1, nearest first.
    pub(super) fn nearest(&self, vector: &[f32]) -> Vec<Near> {
        let vector: Vec<i16> = vector.iter().map(|value| coarse(*value)).collect();
        let mut best: Vec<(usize, i32)> = Vec::with_capacity(NEAREST + 1);
        for (index, row) in self.values.chunks_exact(self.dimensions.max(1)).enumerate() {
            let product: i32 = row
                .iter()
                .zip(&vector)
                .map(|(x, y)| i32::from(*x) * i32::from(*y))
                .sum();
            if best.len() < NEAREST || best.last().is_some_and(|last| product > last.1) {
                let at = best.partition_point(|near| near.1 >= product);
                best.insert(at, (index, product));
                best.truncate(NEAREST);
            }
        }
        let near = |(index, product)| Near {
            index,
            cosine: narrow(f64::from(product) / f64::from(ONE * ONE)),
        };
        best.into_iter().map(near).collect()
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "components of vectors of length 1 lie within -1 and 1; what does not is cut to the range"
)]
fn coarse(value: f32) -> i16 {
    (value * ONE).round().clamp(-ONE, ONE) as i16
}

/// A vector of length 1 in the same direction; `None` where it has none.
pub(super) fn unit(vector: &[f32]) -> Option<Vec<f32>> {
    let length = vector.iter().map(|x| x * x).sum::<f32>().sqrt();
    (length.is_finite() && length > 0.0).then(|| vector.iter().map(|x| x / length).collect())
}

/// The sum of products.
pub(super) fn dot(left: &[f32], right: &[f32]) -> f32 {
    // Eight sums side by side, so that the compiler may use wide registers.
    let mut sums = [0.0_f32; 8];
    let (a, b) = (left.chunks_exact(8), right.chunks_exact(8));
    let rest: f32 = a.remainder().iter().zip(b.remainder()).map(|(x, y)| x * y).sum();
    for (a, b) in a.zip(b) {
        for ((sum, x), y) in sums.iter_mut().zip(a).zip(b) {
            *sum += x * y;
        }
    }
    sums.iter().sum::<f32>() + rest
}

/// The mean cosine of the nearest; `None` where there are none.
pub(super) fn mean_cosine(nearest: &[Near]) -> Option<f64> {
    let count = u32::try_from(nearest.len()).ok().filter(|count| *count > 0)?;
    Some(nearest.iter().map(|near| f64::from(near.cosine)).sum::<f64>() / f64::from(count))
}

/// The difference of both means, each brought to length 1: a dot product with it is the centroid score.
pub(super) fn centroid(positives: &Rows, negatives: &Rows) -> Vec<f32> {
    let unit = |mean: Vec<f64>| {
        let length = mean
            .iter()
            .map(|x| x * x)
            .sum::<f64>()
            .sqrt()
            .max(f64::MIN_POSITIVE);
        mean.into_iter().map(move |x| x / length)
    };
    unit(positives.mean())
        .zip(unit(negatives.mean()))
        .map(|(positive, negative)| narrow(positive - negative))
        .collect()
}

/// The probe's weights; `None` where a list is empty or the arithmetic breaks down.
pub(super) fn probe(positives: &Rows, negatives: &Rows) -> Option<Vec<f32>> {
    let dimensions = positives.dimensions;
    if positives.len() == 0 || negatives.len() == 0 || !(1..=DIMENSIONS_MAX).contains(&dimensions) {
        return None;
    }
    let mut matrix = vec![0.0_f64; dimensions * dimensions];
    positives.add_products(&mut matrix);
    negatives.add_products(&mut matrix);
    for (place, line) in matrix.chunks_exact_mut(dimensions).enumerate() {
        if let Some(diagonal) = line.get_mut(place) {
            *diagonal += RIDGE;
        }
    }
    let difference: Vec<f64> = positives
        .mean()
        .into_iter()
        .zip(negatives.mean())
        .map(|(positive, negative)| positive - negative)
        .collect();
    let weights = solve(matrix, difference)?;
    let weights: Vec<f32> = weights.into_iter().map(narrow).collect();
    weights.iter().all(|weight| weight.is_finite()).then_some(weights)
}

/// Solves `matrix` x = `right` by Cholesky's factors. Only the lower triangle of the symmetric matrix is looked at;
/// `None` where it is not positive definite.
pub(super) fn solve(mut matrix: Vec<f64>, mut right: Vec<f64>) -> Option<Vec<f64>> {
    let n = right.len();
    if n == 0 || matrix.len() != n * n {
        return None;
    }
    // Row by row: L[i][j] = (A[i][j] - Σ L[i][k] L[j][k]) / L[j][j].
    for i in 0..n {
        let (done, open) = matrix.split_at_mut(i * n);
        let line = open.get_mut(..n)?;
        for (j, factor) in done.chunks_exact(n).enumerate() {
            let (known, rest) = line.split_at_mut(j);
            let sum: f64 = known.iter().zip(factor).map(|(x, y)| x * y).sum();
            let entry = rest.first_mut()?;
            *entry = (*entry - sum) / factor.get(j)?;
        }
        let (known, rest) = line.split_at_mut(i);
        let diagonal = rest.first_mut()?;
        let square = *diagonal - known.iter().map(|x| x * x).sum::<f64>();
        if !(square.is_finite() && square > 0.0) {
            return None;
        }
        *diagonal = square.sqrt();
    }
    // Forwards: L y = right.
    for (i, line) in matrix.chunks_exact(n).enumerate() {
        let (known, rest) = right.split_at_mut(i);
        let sum: f64 = known.iter().zip(line).map(|(x, y)| x * y).sum();
        let entry = rest.first_mut()?;
        *entry = (*entry - sum) / line.get(i)?;
    }
    // Backwards: Lᵀ x = y, taking each found value out of the ones above it.
    for (i, line) in matrix.chunks_exact(n).enumerate().rev() {
        let (above, rest) = right.split_at_mut(i);
        let entry = rest.first_mut()?;
        *entry /= line.get(i)?;
        for (value, factor) in above.iter_mut().zip(line) {
            *value -= factor * *entry;
        }
    }
    Some(right)
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "a weight needs no more digits than the vectors it is multiplied with"
)]
fn narrow(value: f64) -> f32 {
    value as f32
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rows(vectors: &[Vec<f32>]) -> Rows {
        let dimensions = vectors.first().map_or(0, Vec::len);
        Rows::new(dimensions, vectors.iter().map(Vec::as_slice))
    }

    #[test]
    fn a_system_of_three_is_solved() {
        // Worked by hand: x = (1, -2, 3). The upper triangle is wrong on purpose: nobody looks at it.
        let matrix = vec![4.0, 9.0, 9.0, 2.0, 5.0, 9.0, 0.0, 1.0, 3.0];
        let found = solve(matrix, vec![0.0, -5.0, 7.0]).unwrap();
        for (found, expected) in found.iter().zip([1.0, -2.0, 3.0]) {
            assert!((found - expected).abs() < 1e-12, "{found}");
        }
        assert_eq!(
            solve(vec![1.0, 0.0, 2.0, 1.0], vec![1.0, 1.0]),
            None,
            "not definite"
        );
        assert_eq!(solve(vec![1.0], vec![1.0, 2.0]), None);
        assert_eq!(solve(vec![f64::NAN], vec![1.0]), None);
        assert_eq!(solve(Vec::new(), Vec::new()), None);
    }

    #[test]
    fn the_probe_parts_what_a_line_can_part() {
        let positives = rows(&[vec![1.0, 0.2, 0.0], vec![1.0, -0.1, 0.3]]);
        let negatives = rows(&[vec![0.1, 1.0, 0.1], vec![-0.2, 0.4, 1.0]]);
        let weights = probe(&positives, &negatives).unwrap();
        for row in positives.iter() {
            for other in negatives.iter() {
                assert!(dot(&weights, row) > dot(&weights, other));
            }
        }
        assert_eq!(probe(&rows(&[]), &negatives), None);
        let nothing = Rows::new(
            3,
            [
                [0.0_f32; 3].as_slice(),
                [f32::NAN; 3].as_slice(),
                [1.0].as_slice(),
            ]
            .into_iter(),
        );
        assert_eq!((nothing.len(), probe(&positives, &nothing)), (0, None));
    }

    #[test]
    fn the_nearest_come_first_and_centroids_have_length_one() {
        let positives = rows(&[vec![0.0, 2.0], vec![3.0, 0.0], vec![1.0, 1.0], vec![-1.0, 0.0]]);
        let near = Grid::new(&positives).nearest(&[1.0, 0.0]);
        assert_eq!(near.iter().map(|near| near.index).collect::<Vec<_>>(), [1, 2, 0]);
        assert!((mean_cosine(&near).unwrap() - (1.0 + 0.5_f64.sqrt()) / 3.0).abs() < 1e-3);
        assert_eq!(mean_cosine(&[]), None);
        let difference = centroid(&rows(&[vec![1.0, 0.0]]), &rows(&[vec![0.0, 1.0], vec![0.0, 2.0]]));
        assert_eq!(difference, [1.0, -1.0]);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_was_solved_solves_the_system(
            points in proptest::collection::vec(proptest::collection::vec(-1.0_f32..1.0, 7), 1..12),
            right in proptest::collection::vec(-1.0_f64..1.0, 7),
        ) {
            let points = rows(&points);
            let mut matrix = vec![0.0; 49];
            points.add_products(&mut matrix);
            for place in 0..7 {
                matrix[place * 8] += RIDGE;
            }
            let found = solve(matrix.clone(), right.clone()).unwrap();
            for i in 0..7 {
                let sum: f64 = (0..7).map(|j| matrix[i.max(j) * 7 + i.min(j)] * found[j]).sum();
                prop_assert!((sum - right[i]).abs() < 1e-8, "{sum} {}", right[i]);
            }
        }

        #[test]
        fn nearest_are_those_of_a_sort(points in proptest::collection::vec(proptest::collection::vec(-1.0_f32..1.0, 9), 1..20)) {
            let points = rows(&points);
            let query = unit(&[1.0; 9]).unwrap();
            let mut all: Vec<f32> = points.iter().map(|row| dot(row, &query)).collect();
            all.sort_by(|a, b| b.total_cmp(a));
            let near = Grid::new(&points).nearest(&query);
            prop_assert_eq!(near.len(), all.len().min(NEAREST));
            for (near, exact) in near.iter().zip(all) {
                prop_assert!((near.cosine - exact).abs() < 1e-3, "{near:?} {exact}");
            }
        }
    }
}
