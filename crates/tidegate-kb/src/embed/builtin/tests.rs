use serde::Deserialize;

use super::*;

#[derive(Deserialize)]
struct Golden {
    text: String,
    ids: Vec<u16>,
    first8: [f32; 8],
    sum: f32,
    ramp: f32,
    cos_next: f32,
}

const TOLERANCE: f32 = 1e-4;

fn golden() -> Vec<Golden> {
    include_str!("../../../assets/static-minilm-256-v1/golden.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn dot(a: &[f32], b: &[f32]) -> f32 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[test]
fn tokens_and_vectors_are_those_of_the_golden_file() {
    let builtin = Builtin::load().unwrap();
    let golden = golden();
    assert_eq!(golden.len(), 20);
    let vectors: Vec<Vec<f32>> = golden
        .iter()
        .map(|golden| {
            builtin
                .embed_one(&golden.text)
                .unwrap_or_else(|| vec![0.0; DIMENSIONS])
        })
        .collect();
    for (index, (expected, vector)) in golden.iter().zip(&vectors).enumerate() {
        let text = &expected.text;
        let ids: Vec<u16> = builtin.tokens(text).map(|token| token.id).collect();
        assert_eq!(ids, expected.ids, "{text:?}");
        assert_eq!(Embedder::tokens(&builtin, text), ids.len());
        for (value, expected) in vector.iter().zip(expected.first8) {
            assert!(
                (value - expected).abs() <= TOLERANCE,
                "{text:?}: {value} {expected}"
            );
        }
        let sum: f32 = vector.iter().sum();
        let ramp: f32 = vector
            .iter()
            .zip(1_u16..)
            .map(|(value, k)| value * f32::from(k) / 256.0)
            .sum();
        let cos_next = dot(vector, vectors.get((index + 1) % 20).unwrap());
        for (name, value, expected) in [
            ("sum", sum, expected.sum),
            ("ramp", ramp, expected.ramp),
            ("cos_next", cos_next, expected.cos_next),
        ] {
            assert!(
                (value - expected).abs() <= TOLERANCE,
                "{text:?}: {name} {value} {expected}"
            );
        }
    }
    assert_eq!(builtin.embed_one(&golden.last().unwrap().text), None);
}

#[test]
fn offsets_are_where_the_tokens_begin() {
    let builtin = Builtin::load().unwrap();
    let text = "Café: a refund, please";
    let offsets: Vec<usize> = builtin.token_offsets(text).collect();
    assert_eq!(offsets, [0, 5, 7, 9, 15, 17]);
}

#[tokio::test]
async fn a_batch_has_the_vectors_of_its_texts_however_long_they_are() {
    let builtin = Builtin::load().unwrap();
    let long = "the refund is paid within 14 days. ".repeat(1_000);
    let exact = "refund ".repeat(TOKENS_A_TURN);
    let texts = ["a refund", "", "日本語", &long, &exact, "a refund"];
    let vectors = builtin.embed(&texts, Purpose::Document).await.unwrap();
    assert_eq!(vectors.len(), texts.len());
    for (vector, text) in vectors.iter().zip(texts) {
        assert_eq!(*vector, builtin.embed_one(text));
    }
    assert_eq!(
        vectors.iter().map(Option::is_some).collect::<Vec<_>>(),
        [true, false, false, true, true, true]
    );
}

#[tokio::test]
async fn other_tasks_run_while_a_long_batch_is_embedded() {
    let builtin = Builtin::load().unwrap();
    let text = "refund ".repeat(10 * TOKENS_A_TURN);
    let mut turns = 0;
    let texts = [text.as_str()];
    let batch = builtin.embed(&texts, Purpose::Document);
    tokio::pin!(batch);
    // Each turn of the runtime polls the batch once: it must not be done in one.
    let vectors = loop {
        tokio::select! {
            biased;
            vectors = &mut batch => break vectors.unwrap(),
            () = std::future::ready(()) => turns += 1,
        }
        tokio::task::yield_now().await;
    };
    assert!(turns >= 10, "{turns}");
    assert!(vectors.first().unwrap().is_some());
}

#[tokio::test]
async fn a_text_beyond_the_bound_is_refused() {
    let builtin = Builtin::load().unwrap();
    let text = "a ".repeat(TEXT_BYTES_MAX / 2 + 1);
    let fault = builtin.embed(&[&text], Purpose::Query).await.unwrap_err();
    assert!(matches!(&fault, EmbedError::Refused(_)), "{fault}");
    assert!(fault.to_string().contains("1048576"), "{fault}");
}
