//! All vectors in memory, a byte a component, compared one by one.
//!
//! A row is its vector divided by its greatest component, in steps of 1/127: a quarter of the memory and of the time of
//! full vectors, with cosines that are off by some thousandths. So the rows only nominate candidates, and whoever needs
//! exact cosines compares the full vectors of a few (`embedded`).
//!
//! Rows lie in blocks that are shared with searches under way and copied when they change while one looks at
//! them. A search therefore holds no lock, and a write never waits for one.

mod embedded;
mod nearest;

use std::{collections::HashMap, sync::Arc};

use tidegate_core::port::ChunkKey;

pub use embedded::Embedded;
use nearest::Nearest;

/// Rows in a block: little enough to copy in a millisecond.
const BLOCK_ROWS: usize = 4096;
/// The greatest absolute number of steps.
const STEPS_MAX: f32 = 127.0;
/// What is added to a number of steps to keep it as a byte without a sign: SSE2, which is all that can be counted on,
/// widens those in one instruction and signed ones in three, and three times the speed hang on it. Where there is AVX2
/// it is used ([`Scan`]).
const OFFSET: i16 = 128;
/// As many products side by side as let the compiler use wide registers.
const LANES: usize = 16;

/// Rows that lie one after the other.
#[derive(Debug, Clone, Default)]
struct Block {
    keys: Vec<ChunkKey>,
    /// What a row's codes are to be multiplied by.
    scales: Vec<f32>,
    codes: Vec<u8>,
}

/// Where a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Spot {
    block: u32,
    row: u32,
}

/// Vectors of one model and one dimension.
#[derive(Debug, Default)]
pub(crate) struct Matrix {
    dimensions: usize,
    blocks: Vec<Arc<Block>>,
    spots: HashMap<ChunkKey, Spot>,
}

/// The rows at one moment. Cheap to make, and unaffected by what comes later.
#[derive(Debug, Clone)]
pub(crate) struct View {
    dimensions: usize,
    blocks: Vec<Arc<Block>>,
    rows: usize,
}

/// Rows that a filter lets through, by block.
#[derive(Debug)]
pub(crate) struct Allowed(Vec<Vec<u32>>);

impl Matrix {
    /// An empty one.
    pub(crate) fn new(dimensions: usize) -> Self {
        Self {
            dimensions,
            blocks: Vec::new(),
            spots: HashMap::new(),
        }
    }

    /// How many components a vector has.
    pub(crate) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.spots.len()
    }

    /// Puts a vector in, in the place of an earlier one of that key. One of another dimension is not taken, and the
    /// answer is `false`.
    pub(crate) fn put(&mut self, key: ChunkKey, vector: &[f32]) -> bool {
        if vector.len() != self.dimensions || self.dimensions == 0 {
            return false;
        }
        self.remove(key);
        if self
            .blocks
            .last()
            .is_none_or(|block| block.keys.len() >= BLOCK_ROWS)
        {
            self.blocks.push(Arc::new(Block::with_room(self.dimensions)));
        }
        let index = self.blocks.len() - 1;
        let Some(block) = self.blocks.last_mut().map(Arc::make_mut) else {
            return false;
        };
        let spot = Spot::new(index, block.keys.len());
        block.keys.push(key);
        block.scales.push(encode(vector, &mut block.codes));
        self.spots.insert(key, spot);
        true
    }

    /// Takes a row out. The last row of all takes its place, so that nothing is ever empty in between.
    pub(crate) fn remove(&mut self, key: ChunkKey) {
        let Some(spot) = self.spots.remove(&key) else {
            return;
        };
        let Some(last) = self.blocks.last_mut().map(Arc::make_mut) else {
            return;
        };
        let Some((moved, scale, codes)) = last.pop(self.dimensions) else {
            return;
        };
        if last.keys.is_empty() {
            self.blocks.pop();
        }
        if moved == key {
            return;
        }
        let (block, row) = (spot.block as usize, spot.row as usize);
        if let Some(block) = self.blocks.get_mut(block).map(Arc::make_mut) {
            block.replace(row, self.dimensions, moved, scale, &codes);
            self.spots.insert(moved, spot);
        }
    }

    /// The rows as they are now.
    pub(crate) fn view(&self) -> View {
        View {
            dimensions: self.dimensions,
            blocks: self.blocks.clone(),
            rows: self.rows(),
        }
    }

    /// The rows of these keys.
    pub(crate) fn allowed(&self, keys: &[ChunkKey]) -> Allowed {
        let mut rows = vec![Vec::new(); self.blocks.len()];
        for spot in keys.iter().filter_map(|key| self.spots.get(key)) {
            if let Some(rows) = rows.get_mut(spot.block as usize) {
                rows.push(spot.row);
            }
        }
        Allowed(rows)
    }
}

impl Spot {
    /// Blocks and rows beyond 32 bits would not fit any memory; they would alias, and a search would miss rows.
    fn new(block: usize, row: usize) -> Self {
        Self {
            block: u32::try_from(block).unwrap_or(u32::MAX),
            row: u32::try_from(row).unwrap_or(u32::MAX),
        }
    }
}

impl Block {
    fn with_room(dimensions: usize) -> Self {
        Self {
            keys: Vec::new(),
            scales: Vec::new(),
            // Blocks of a small collection grow with it; doubling wastes at most as much as they hold.
            codes: Vec::with_capacity(dimensions * LANES),
        }
    }

    fn pop(&mut self, dimensions: usize) -> Option<(ChunkKey, f32, Vec<u8>)> {
        let (key, scale) = (self.keys.pop()?, self.scales.pop()?);
        let codes = self.codes.split_off(self.codes.len().saturating_sub(dimensions));
        Some((key, scale, codes))
    }

    fn replace(&mut self, row: usize, dimensions: usize, key: ChunkKey, scale: f32, codes: &[u8]) {
        let from = row * dimensions;
        let (Some(old_key), Some(old_scale)) = (self.keys.get_mut(row), self.scales.get_mut(row)) else {
            return;
        };
        (*old_key, *old_scale) = (key, scale);
        if let Some(old) = self.codes.get_mut(from..from + dimensions) {
            old.copy_from_slice(codes);
        }
    }

    #[expect(
        clippy::inline_always,
        reason = "what is not inlined is compiled for the narrowest registers"
    )]
    #[inline(always)]
    fn scan(&self, query: &Query, nearest: &mut Nearest) {
        for ((codes, scale), key) in self
            .codes
            .chunks_exact(query.steps.len())
            .zip(&self.scales)
            .zip(&self.keys)
        {
            nearest.offer(*key, query.product(codes) * scale);
        }
    }

    #[expect(
        clippy::inline_always,
        reason = "what is not inlined is compiled for the narrowest registers"
    )]
    #[inline(always)]
    fn scan_rows(&self, rows: &[u32], query: &Query, nearest: &mut Nearest) {
        let dimensions = query.steps.len();
        for row in rows.iter().map(|row| *row as usize) {
            let from = row * dimensions;
            if let (Some(key), Some(scale), Some(codes)) = (
                self.keys.get(row),
                self.scales.get(row),
                self.codes.get(from..from + dimensions),
            ) {
                nearest.offer(*key, query.product(codes) * scale);
            }
        }
    }
}

impl View {
    /// How many rows there are.
    pub(crate) fn rows(&self) -> usize {
        self.rows
    }

    /// The `count` rows nearest to a vector, nearest first, with cosines that are off by some thousandths.
    pub(crate) fn nearest(
        &self,
        vector: &[f32],
        count: usize,
        allowed: Option<&Allowed>,
    ) -> Vec<(ChunkKey, f32)> {
        if vector.len() != self.dimensions || self.dimensions == 0 {
            return Vec::new();
        }
        let query = Query::new(vector);
        let mut nearest = Nearest::new(count.min(self.rows));
        // In the widest registers that the processor has.
        pulp::Arch::new().dispatch(Scan {
            view: self,
            query: &query,
            allowed,
            nearest: &mut nearest,
        });
        let mut found = nearest.into_sorted();
        for (_, score) in &mut found {
            *score = (*score * query.scale).clamp(-1.0, 1.0);
        }
        found
    }
}

/// A look at every row, compiled once for each kind of register: everything within it must be inlined.
struct Scan<'s> {
    view: &'s View,
    query: &'s Query,
    allowed: Option<&'s Allowed>,
    nearest: &'s mut Nearest,
}

impl pulp::NullaryFnOnce for Scan<'_> {
    type Output = ();

    #[expect(
        clippy::inline_always,
        reason = "what is not inlined is compiled for the narrowest registers"
    )]
    #[inline(always)]
    fn call(self) {
        match self.allowed {
            None => {
                for block in &self.view.blocks {
                    block.scan(self.query, self.nearest);
                }
            }
            Some(Allowed(rows)) => {
                for (block, rows) in self.view.blocks.iter().zip(rows) {
                    block.scan_rows(rows, self.query, self.nearest);
                }
            }
        }
    }
}

/// A query in steps.
struct Query {
    steps: Vec<i16>,
    scale: f32,
    /// What the offset of all codes adds to each product.
    excess: i32,
}

impl Query {
    fn new(vector: &[f32]) -> Self {
        let mut codes = Vec::with_capacity(vector.len());
        let scale = encode(vector, &mut codes);
        let steps: Vec<i16> = codes.into_iter().map(|code| i16::from(code) - OFFSET).collect();
        Self {
            excess: steps
                .iter()
                .map(|steps| i32::from(*steps) * i32::from(OFFSET))
                .sum(),
            steps,
            scale,
        }
    }

    /// The sum of the products with a row's steps: exact, up to 66,000 components.
    #[expect(
        clippy::inline_always,
        reason = "what is not inlined is compiled for the narrowest registers"
    )]
    #[inline(always)]
    fn product(&self, codes: &[u8]) -> f32 {
        let mut sums = [0_i32; LANES];
        let (query_blocks, query_rest) = self.steps.as_chunks::<LANES>();
        let (code_blocks, code_rest) = codes.as_chunks::<LANES>();
        for (query, codes) in query_blocks.iter().zip(code_blocks) {
            for ((sum, query), code) in sums.iter_mut().zip(query).zip(codes) {
                *sum += i32::from(*query) * i32::from(*code);
            }
        }
        let rest = query_rest.iter().zip(code_rest);
        let rest: i32 = rest
            .map(|(query, code)| i32::from(*query) * i32::from(*code))
            .sum();
        #[expect(clippy::cast_precision_loss, reason = "a cosine needs no more than 24 bits")]
        let product = (sums.iter().sum::<i32>() + rest - self.excess) as f32;
        product
    }
}

/// Appends a vector's codes; what its steps are to be multiplied by, zero where it has no direction.
fn encode(vector: &[f32], codes: &mut Vec<u8>) -> f32 {
    let greatest = vector
        .iter()
        .fold(0.0_f32, |greatest, value| greatest.max(value.abs()));
    let (scale, steps) = if greatest > 0.0 && greatest.is_finite() {
        (greatest / STEPS_MAX, STEPS_MAX / greatest)
    } else {
        (0.0, 0.0)
    };
    // Cut off after adding a half, which rounds: a call that rounds would take longer than all the rest.
    let middle = f32::from(OFFSET) + 0.5;
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "from 1 to 255 by construction; what is no number has no right code, and any is harmless"
    )]
    codes.extend(vector.iter().map(|value| (value * steps + middle) as i32 as u8));
    scale
}

#[cfg(test)]
mod tests;
