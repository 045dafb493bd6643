//! How long a search takes: processor time, beside a plain loop over the same vectors in the same run.

use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use async_trait::async_trait;
use rustix::time::{ClockId, clock_gettime};
use tidegate_core::embedding::{Calibration, EmbedError, EmbedderState, EmbeddingModel, Fusion, Purpose};
use tidegate_core::knowledge::{Authority, CitationId, Filter, Format, Place, SearchRequest};
use tidegate_core::port::{ChunkStore, Embedder, KnowledgeBase, NewChunk, NewDocument};
use tidegate_kb::base::Options;
use tidegate_kb::index::VectorIndex;
use tidegate_kb::matrix::Embedded;
use tidegate_store::Store;

use super::bank::{Bank, known};

/// Chunks in a document.
const CHUNKS: usize = 100;
/// Words in a chunk, and different words there are.
const WORDS: usize = 150;
const VOCABULARY: f64 = 30_000.0;
/// Words in a question.
const QUESTION: usize = 8;
/// What a search for eight passages asks of the vectors: so many, of which so many with exact cosines.
const FOUND: usize = 300;
const EXACT: usize = 40;
/// Measured searches; the middle one counts.
const RUNS: usize = 31;

/// A size, with its targets in milliseconds of processor time.
struct Size {
    chunks: usize,
    dimensions: usize,
    leg_max_ms: f64,
    whole_max_ms: f64,
    load_max_ms: Option<f64>,
}

const SIZES: [Size; 2] = [
    Size {
        chunks: 10_000,
        dimensions: 256,
        leg_max_ms: 1.0,
        whole_max_ms: 5.0,
        load_max_ms: None,
    },
    Size {
        chunks: 100_000,
        dimensions: 384,
        leg_max_ms: 6.0,
        whole_max_ms: 40.0,
        load_max_ms: Some(1_000.0),
    },
];

/// Measures and prints; whether every target was met.
pub(super) async fn run() -> Result<bool> {
    println!("{:<34} {:>10} {:>10} {:>8}", "", "CPU ms", "wall ms", "target");
    let mut met = true;
    for size in &SIZES {
        met &= measure(size).await?;
    }
    Ok(met)
}

async fn measure(size: &Size) -> Result<bool> {
    let noise = Arc::new(Noise::new(size.dimensions));
    let bank = Bank::open(Arc::<Noise>::clone(&noise)).await?;
    let texts = fill(&bank, size, &noise).await?;
    let what = format!("{} x {}", size.chunks, size.dimensions);
    let mut met = true;

    let store: Arc<dyn ChunkStore> = Arc::<Store>::clone(&bank.store);
    let index = Embedded::new(store);
    let version = bank.store.version().await?;
    let load = Span::begin();
    index.follow(noise.model().id.as_str(), version).await?;
    met &= line(&format!("{what}: load"), load.end(), size.load_max_ms);

    let rows: Vec<Vec<f32>> = texts.iter().map(|text| noise.vector(text)).collect();
    let (mut naive, mut leg, mut first) = (Vec::new(), Vec::new(), 0);
    for number in 0..RUNS {
        let query = noise.vector(&question(number));
        let span = Span::begin();
        let best = plain(&query, &rows).context("there are vectors")?;
        naive.push(span.end());
        let span = Span::begin();
        let found = index.search(&query, FOUND, EXACT, None).await?;
        leg.push(span.end());
        first += usize::from(
            found
                .first()
                .is_some_and(|(_, cosine)| (cosine - best).abs() < 1e-5),
        );
    }
    let (naive, leg) = (middle(naive), middle(leg));
    met &= line(&format!("{what}: vectors, exact"), leg, Some(size.leg_max_ms));
    line(&format!("{what}: plain loop over f32"), naive, None);
    println!(
        "{:<34} {:>10.2} {:>10.2}   nearest found in {first} of {RUNS}",
        format!("{what}: ratio"),
        leg.cpu_ms / naive.cpu_ms,
        leg.wall_ms / naive.wall_ms
    );
    drop(rows);

    for (name, with_vectors) in [("whole query", true), ("words alone", false)] {
        let base = bank.base(Options::default(), with_vectors);
        base.warm().await?;
        let mut whole = Vec::new();
        for number in 0..RUNS {
            let request = SearchRequest {
                query: question(number),
                filter: Filter::default(),
                k: 8,
            };
            let span = Span::begin();
            base.search(&request).await?;
            whole.push(span.end());
        }
        met &= line(&format!("{what}: {name}"), middle(whole), Some(size.whole_max_ms));
    }
    bank.close().await;
    Ok(met)
}

/// Documents of made-up words, whose frequencies fall as those of a language do.
async fn fill(bank: &Bank, size: &Size, noise: &Noise) -> Result<Vec<String>> {
    let mut random = Random(7);
    let texts: Vec<String> = (0..size.chunks).map(|_| words(&mut random, WORDS)).collect();
    for (number, texts) in (0_u32..).zip(texts.chunks(CHUNKS)) {
        let path = format!("{number}.md");
        let chunks = (0_u32..)
            .zip(texts)
            .map(|(chunk, text)| NewChunk {
                citation: CitationId::of_digest(&digest(number, chunk)),
                sha256: digest(number, chunk),
                place: Place::default(),
                text: text.clone(),
                vector: Some(Some(noise.vector(text))),
            })
            .collect();
        let document = NewDocument {
            file: known(&path),
            title: path,
            format: Format::Markdown,
            // Both kinds, so that authority has work to do.
            authority: if number.is_multiple_of(2) {
                Authority::Primary
            } else {
                Authority::Secondary
            },
            at: tidegate_core::clock::Timestamp::UNIX_EPOCH,
            content: Ok(chunks),
        };
        bank.store.put(document, &noise.model().id).await?;
    }
    bank.store.serve(&noise.model().id).await?;
    Ok(texts)
}

fn digest(document: u32, chunk: u32) -> [u8; 32] {
    let mut random = Random((u64::from(document) << 32) | u64::from(chunk));
    std::array::from_fn(|_| random.byte())
}

fn question(number: usize) -> String {
    words(&mut Random(number as u64 + 1_000_003), QUESTION)
}

fn words(random: &mut Random, count: usize) -> String {
    let word = |random: &mut Random| {
        // A rank by Zipf's law.
        let rank = VOCABULARY.powf(random.unit());
        format!("w{rank:.0}")
    };
    (0..count).map(|_| word(random)).collect::<Vec<_>>().join(" ")
}

/// The greatest cosine, by the loop that anybody would write.
fn plain(query: &[f32], rows: &[Vec<f32>]) -> Option<f32> {
    rows.iter()
        .map(|row| {
            query
                .iter()
                .zip(row)
                .map(|(left, right)| left * right)
                .sum::<f32>()
        })
        .max_by(f32::total_cmp)
}

/// Prints a line; whether the target was met.
fn line(what: &str, span: Spent, target: Option<f64>) -> bool {
    let shown = target.map_or_else(String::new, |target| format!("{target:.0}"));
    println!(
        "{what:<34} {:>10.2} {:>10.2} {shown:>8}",
        span.cpu_ms, span.wall_ms
    );
    target.is_none_or(|target| span.cpu_ms <= target)
}

fn middle(mut spans: Vec<Spent>) -> Spent {
    spans.sort_by(|left, right| left.cpu_ms.total_cmp(&right.cpu_ms));
    spans.get(spans.len() / 2).copied().unwrap_or_default()
}

/// What something took.
#[derive(Clone, Copy, Default)]
struct Spent {
    cpu_ms: f64,
    wall_ms: f64,
}

struct Span {
    wall: Instant,
    cpu: Duration,
}

impl Span {
    fn begin() -> Self {
        Self {
            wall: Instant::now(),
            cpu: cpu(),
        }
    }

    fn end(&self) -> Spent {
        Spent {
            cpu_ms: cpu().saturating_sub(self.cpu).as_secs_f64() * 1e3,
            wall_ms: self.wall.elapsed().as_secs_f64() * 1e3,
        }
    }
}

/// The processor time of all threads of this process.
fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(
        u64::try_from(time.tv_sec).unwrap_or_default(),
        u32::try_from(time.tv_nsec).unwrap_or_default(),
    )
}

/// Numbers that look random and are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        // SplitMix64 (Steele and others, 2014).
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[0]
    }

    /// From 0 to 1.
    fn unit(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap_or_default()) / f64::from(u32::MAX)
    }
}

/// An embedder whose vectors are as long as they are to be and mean nothing: a direction for each text.
#[derive(Debug)]
struct Noise {
    model: EmbeddingModel,
    dimensions: usize,
}

impl Noise {
    fn new(dimensions: usize) -> Self {
        Self {
            model: EmbeddingModel {
                id: format!("noise-{dimensions}"),
                tokens_max: 100_000,
                calibration: Calibration {
                    fusion: Fusion::Convex { vector_weight: 0.5 },
                    pair_cosine_min: 0.6,
                    relevant_cosine_min: 0.01,
                    routing_threshold: None,
                },
            },
            dimensions,
        }
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let seed = text.bytes().fold(11_u64, |seed, byte| {
            seed.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        let mut random = Random(seed);
        #[expect(clippy::cast_possible_truncation, reason = "noise")]
        let mut vector: Vec<f32> = (0..self.dimensions)
            .map(|_| (random.unit() - 0.5) as f32)
            .collect();
        let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        for value in &mut vector {
            *value /= length;
        }
        vector
    }
}

#[async_trait]
impl Embedder for Noise {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    async fn embed(&self, texts: &[&str], _purpose: Purpose) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        Ok(texts.iter().map(|text| Some(self.vector(text))).collect())
    }

    fn tokens(&self, text: &str) -> usize {
        text.split_whitespace().count()
    }

    fn state(&self) -> EmbedderState {
        EmbedderState::Ready
    }
}
