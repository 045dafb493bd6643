//! What servers answer, read without trust.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;

use super::Dialect;

#[derive(Deserialize)]
struct Ollama {
    embeddings: Vec<Vec<f32>>,
}

#[derive(Deserialize)]
struct OpenAi {
    data: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    index: usize,
    embedding: Embedding,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Embedding {
    Numbers(Vec<f32>),
    /// Little-endian f32, one after the other.
    Base64(String),
}

/// The vectors of an answer to `count` texts, in their order and of length 1; or what is wrong with it.
pub(super) fn vectors(dialect: Dialect, body: &[u8], count: usize) -> Result<Vec<Vec<f32>>, String> {
    let vectors = match dialect {
        Dialect::Ollama => {
            let answer: Ollama = serde_json::from_slice(body).map_err(|problem| unreadable(&problem))?;
            answer.embeddings
        }
        Dialect::OpenAi => {
            let answer: OpenAi = serde_json::from_slice(body).map_err(|problem| unreadable(&problem))?;
            in_order(answer.data)?
        }
    };
    if vectors.len() != count {
        return Err(format!("{} vectors for {count} texts", vectors.len()));
    }
    vectors.into_iter().map(unit).collect()
}

/// What Ollama's description of a model says of its context: the key is named after the architecture.
pub(super) fn context(body: &[u8]) -> Result<usize, String> {
    #[derive(Deserialize)]
    struct Description {
        #[serde(default)]
        model_info: serde_json::Map<String, serde_json::Value>,
    }
    let description: Description = serde_json::from_slice(body).map_err(|problem| unreadable(&problem))?;
    description
        .model_info
        .iter()
        .find(|(key, _)| key.ends_with(".context_length"))
        .and_then(|(_, value)| usize::try_from(value.as_u64()?).ok())
        .filter(|tokens| *tokens > 0)
        .ok_or_else(|| "the description names no context length".to_owned())
}

/// The position of a fault, not its words: they may repeat what was sent.
fn unreadable(problem: &serde_json::Error) -> String {
    format!(
        "it is no list of vectors (line {}, column {})",
        problem.line(),
        problem.column()
    )
}

fn in_order(items: Vec<Item>) -> Result<Vec<Vec<f32>>, String> {
    let mut slots: Vec<Option<Vec<f32>>> = Vec::new();
    slots.resize_with(items.len(), || None);
    for Item { index, embedding } in items {
        let slot = slots
            .get_mut(index)
            .filter(|slot| slot.is_none())
            .ok_or_else(|| format!("index {index} is none of the texts', or stands twice"))?;
        *slot = Some(match embedding {
            Embedding::Numbers(numbers) => numbers,
            Embedding::Base64(text) => decoded(&text)?,
        });
    }
    // As many items as slots and none twice: all are filled.
    Ok(slots.into_iter().flatten().collect())
}

fn decoded(text: &str) -> Result<Vec<f32>, String> {
    let bytes = STANDARD
        .decode(text)
        .map_err(|_| "a vector is neither numbers nor base64".to_owned())?;
    let (numbers, rest) = bytes.as_chunks::<4>();
    if !rest.is_empty() {
        return Err("a vector in base64 ends within a number".to_owned());
    }
    Ok(numbers.iter().map(|number| f32::from_le_bytes(*number)).collect())
}

/// The vector at length 1.
fn unit(mut vector: Vec<f32>) -> Result<Vec<f32>, String> {
    if vector.is_empty() {
        return Err("a vector is empty".to_owned());
    }
    let squares: f64 = vector.iter().map(|value| f64::from(*value).powi(2)).sum();
    if !squares.is_finite() {
        return Err("a vector holds what is no number".to_owned());
    }
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a length is rounded to the precision of its numbers"
    )]
    let norm = squares.sqrt() as f32;
    if !norm.is_normal() {
        return Err("a vector has no direction".to_owned());
    }
    for value in &mut vector {
        *value /= norm;
    }
    Ok(vector)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_answers_are_read_in_the_order_of_the_texts() {
        let ollama = br#"{"model":"m","embeddings":[[3,4],[0,-2.5]],"total_duration":1}"#;
        assert_eq!(
            vectors(Dialect::Ollama, ollama, 2).unwrap(),
            [vec![0.6, 0.8], vec![0.0, -1.0]]
        );
        // 0x3f800000 and 0 in base64, and numbers beside it.
        let openai = br#"{"object":"list","data":[
            {"object":"embedding","index":1,"embedding":"AACAPwAAAAA="},
            {"object":"embedding","index":0,"embedding":[0.0,5e-1]}],"usage":{"prompt_tokens":1}}"#;
        assert_eq!(
            vectors(Dialect::OpenAi, openai, 2).unwrap(),
            [vec![0.0, 1.0], vec![1.0, 0.0]]
        );
    }

    #[test]
    fn bad_answers_are_told_without_repeating_them() {
        for (dialect, body, part) in [
            (
                Dialect::Ollama,
                r#"{"embeddings":[[1.0]]}"#,
                "1 vectors for 2 texts",
            ),
            (
                Dialect::Ollama,
                r#"{"embeddings":[[1.0],[1.0],[1.0]]}"#,
                "3 vectors",
            ),
            (Dialect::Ollama, r#"{"embeddings":[[1.0],[]]}"#, "empty"),
            (Dialect::Ollama, r#"{"embeddings":[[1.0],[0.0]]}"#, "no direction"),
            (
                Dialect::Ollama,
                r#"{"embeddings":[[1.0],[NaN]]}"#,
                "no list of vectors",
            ),
            (
                Dialect::Ollama,
                r#"{"embeddings":[[1.0],[null]]}"#,
                "no list of vectors",
            ),
            (Dialect::Ollama, r#"{"embeddings":[[1.0],[1e39]]}"#, "no number"),
            (Dialect::Ollama, r#"{"embeddings":[[1.0"#, "no list of vectors"),
            (
                Dialect::Ollama,
                r#"{"error":"secret words"}"#,
                "no list of vectors",
            ),
            (Dialect::OpenAi, "", "no list of vectors"),
            (
                Dialect::OpenAi,
                r#"{"data":[{"index":0,"embedding":[1.0]},{"index":0,"embedding":[1.0]}]}"#,
                "stands twice",
            ),
            (
                Dialect::OpenAi,
                r#"{"data":[{"index":7,"embedding":[1.0]}]}"#,
                "index 7",
            ),
            (
                Dialect::OpenAi,
                r#"{"data":[{"index":0,"embedding":"!"}]}"#,
                "nor base64",
            ),
            (
                Dialect::OpenAi,
                r#"{"data":[{"index":0,"embedding":"AAAA"}]}"#,
                "within a number",
            ),
            // A quiet NaN in base64.
            (
                Dialect::OpenAi,
                r#"{"data":[{"index":0,"embedding":"AADAfw=="},{"index":1,"embedding":[1]}]}"#,
                "no number",
            ),
        ] {
            let fault = vectors(dialect, body.as_bytes(), 2).unwrap_err();
            assert!(fault.contains(part), "{body}: {fault}");
            assert!(!fault.contains("secret"), "{fault}");
        }
    }

    #[test]
    fn a_description_says_the_context_of_any_architecture() {
        let body =
            br#"{"model_info":{"general.architecture":"nomic-bert","nomic-bert.context_length":2048}}"#;
        assert_eq!(context(body), Ok(2048));
        for body in [
            r#"{"model_info":{"x.context_length":0}}"#,
            r#"{"license":"x"}"#,
            "[",
        ] {
            assert!(context(body.as_bytes()).is_err(), "{body}");
        }
    }
}
