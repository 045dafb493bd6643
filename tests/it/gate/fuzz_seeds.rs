//! The fuzz targets without a fuzzer: their seeds and many mutations of them, each in bounded time. What a fuzzer
//! finds becomes a seed, and so stays found.

#[path = "../../../fuzz/src/targets.rs"]
#[expect(unreachable_pub, reason = "the fuzz targets are a crate of their own")]
mod targets;

use std::{
    fs,
    path::Path,
    time::{Duration, Instant},
};

/// Mutations of each target's seeds in one run.
const MUTATIONS: usize = 3_000;
/// The longest input that is made.
const BYTES_MAX: usize = 20_000;
/// The same for the redactor, which looks at every piece of a stream again while a secret may be under way.
const REDACTED_BYTES_MAX: usize = 6_000;
/// How long one input may take in a build without optimisation on a busy machine.
const INPUT_TIME_MAX: Duration = Duration::from_secs(1);
/// What often means something to one of the targets.
const TOKENS: [&str; 24] = [
    "$(", "`", "\\", "'", "\"", "&&", "|", ";", "\n", "\0", "{a,b}", "<<E", "../", "//", "%2e", "@", ":80",
    "[::", "]", "0x7f", "～", "\u{200b}", "sk-inv-", "${IFS}",
];

/// Numbers that look like chance and are the same in every run (xorshift64, Marsaglia 2003).
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (end.max(1) as u64)).unwrap()
    }
}

fn seeds(target: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/seeds")
        .join(target);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    // One seed a line: short ones are read at a glance.
    files
        .iter()
        .flat_map(|file| {
            let bytes = fs::read(file).unwrap();
            bytes
                .split(|&byte| byte == b'\n')
                .map(<[u8]>::to_vec)
                .collect::<Vec<_>>()
        })
        .filter(|seed| !seed.is_empty())
        .collect()
}

fn mutated(seed: &[u8], other: &[u8], bytes_max: usize, chance: &mut Chance) -> Vec<u8> {
    let mut bytes = seed.to_vec();
    for _ in 0..=chance.below(4) {
        let at = chance.below(bytes.len() + 1);
        match chance.below(7) {
            0 if at < bytes.len() => bytes[at] ^= 1 << chance.below(8),
            1 if at < bytes.len() => drop(bytes.remove(at)),
            2 => bytes.insert(at, u8::try_from(chance.below(256)).unwrap()),
            3 => drop(bytes.splice(at..at, TOKENS[chance.below(TOKENS.len())].bytes())),
            4 => drop(bytes.splice(at..at, other[chance.below(other.len())..].iter().copied())),
            5 => bytes.truncate(at),
            _ => {
                let piece = bytes[at..].to_vec();
                let power = chance.below(12);
                let times = chance.below(1 << power);
                let room = bytes_max.saturating_sub(bytes.len()) / piece.len().max(1);
                drop(bytes.splice(at..at, piece.repeat(times.min(room))));
            }
        }
    }
    bytes.truncate(bytes_max);
    bytes
}

fn run(target: &str, bytes_max: usize, check: fn(&[u8])) {
    let seeds = seeds(target);
    assert!(seeds.len() >= 20, "{target} has {} seeds", seeds.len());
    let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
    let mut slowest = Duration::ZERO;
    let mut one = |input: &[u8]| {
        let time = || {
            let begin = Instant::now();
            check(input);
            begin.elapsed()
        };
        let mut took = time();
        if took > INPUT_TIME_MAX {
            took = took.min(time());
        }
        let start = String::from_utf8_lossy(&input[..input.len().min(300)]);
        assert!(
            took <= INPUT_TIME_MAX,
            "{target}: {took:?} for {} bytes: {start:?}",
            input.len()
        );
        slowest = slowest.max(took);
    };
    for seed in &seeds {
        one(seed);
    }
    for _ in 0..MUTATIONS {
        let (seed, other) = (chance.below(seeds.len()), chance.below(seeds.len()));
        one(&mutated(&seeds[seed], &seeds[other], bytes_max, &mut chance));
    }
    println!(
        "{target}: {} seeds, {MUTATIONS} mutations, the slowest took {slowest:?}",
        seeds.len()
    );
}

#[test]
fn command_lines() {
    run("shell", BYTES_MAX, targets::shell);
}

#[test]
fn addresses() {
    run("url", BYTES_MAX, targets::url);
}

#[test]
fn secrets_in_texts() {
    run("redactor", REDACTED_BYTES_MAX, targets::redactor);
}

#[test]
fn paths() {
    run("path", BYTES_MAX, targets::path);
}
