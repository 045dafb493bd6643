use std::path::PathBuf;

use super::*;

/// Where a model lies that cannot be part of this repository, as the build was told.
fn folder() -> Option<PathBuf> {
    let folder = option_env!("TIDEGATE_TEST_MINILM").map(PathBuf::from);
    if folder.is_none() {
        println!("skipped: TIDEGATE_TEST_MINILM names no folder with all-MiniLM-L6-v2");
    }
    folder
}

fn load(folder: &Path) -> Result<Local, Error> {
    let profile = Profile::of("all-MiniLM-L6-v2").unwrap();
    Local::load(folder, "all-MiniLM-L6-v2", profile, None, 1)
}

#[tokio::test]
async fn minilm_gives_the_vectors_of_its_makers() {
    let Some(folder) = folder() else { return };
    let local = load(&folder).unwrap();
    assert_eq!(local.model().id, "local/all-MiniLM-L6-v2/53aa5117");
    assert_eq!(local.model().tokens_max, 254);
    assert_eq!(local.tokens("a refund"), 3);
    let texts = GOLDEN.map(|(text, ..)| text);
    let vectors = local.embed(&texts, Purpose::Document).await.unwrap();
    for ((text, first, next), index) in GOLDEN.iter().zip(0..) {
        let vector = vectors.get(index).and_then(Option::as_ref).unwrap();
        assert_eq!(vector.len(), 384);
        for (value, expected) in vector.iter().zip(first) {
            assert!((value - expected).abs() < 1e-4, "{text:?}: {value} {expected}");
        }
        let other = vectors
            .get((index + 1) % GOLDEN.len())
            .and_then(Option::as_ref)
            .unwrap();
        let cosine: f32 = vector.iter().zip(other).map(|(a, b)| a * b).sum();
        assert!((cosine - next).abs() < 1e-4, "{text:?}: {cosine} {next}");
    }
    let vectors = local.embed(&["", "a", " "], Purpose::Query).await.unwrap();
    assert_eq!(
        vectors.iter().map(Option::is_some).collect::<Vec<_>>(),
        [false, true, false]
    );
    let fault = local
        .embed(&[&"a ".repeat(255)], Purpose::Query)
        .await
        .unwrap_err();
    assert!(fault.to_string().contains("reads 254"), "{fault}");
}

/// A model of the smallest size, with weights of a pattern.
fn tiny(folder: &Path) {
    let write =
        |name: &str, bytes: &[u8]| tidegate_io::files::write_private(&folder.join(name), bytes).unwrap();
    write(
        "config.json",
        br#"{"model_type":"bert","hidden_act":"gelu","hidden_size":4,"num_hidden_layers":1,"num_attention_heads":2,
            "intermediate_size":8,"layer_norm_eps":1e-12,"max_position_embeddings":6}"#,
    );
    write(
        "tokenizer.json",
        br###"{"normalizer":{"type":"BertNormalizer","lowercase":true,"strip_accents":null},
            "model":{"type":"WordPiece","vocab":{"[PAD]":0,"[UNK]":1,"[CLS]":2,"[SEP]":3,"a":4,"##b":5}}}"###,
    );
    let mut header = serde_json::Map::new();
    let mut data = Vec::new();
    let mut put = |name: String, shape: &[usize]| {
        let start = data.len();
        for number in 0..u8::try_from(shape.iter().product::<usize>()).unwrap() {
            data.extend_from_slice(&(f32::from(number % 7) / 7.0 - 0.4).to_le_bytes());
        }
        let entry =
            serde_json::json!({ "dtype": "F32", "shape": shape, "data_offsets": [start, data.len()] });
        header.insert(format!("bert.{name}"), entry);
    };
    put("embeddings.word_embeddings.weight".to_owned(), &[6, 4]);
    put("embeddings.position_embeddings.weight".to_owned(), &[6, 4]);
    put("embeddings.token_type_embeddings.weight".to_owned(), &[2, 4]);
    for (name, rows, columns) in [
        ("attention.self.query", 4, 4),
        ("attention.self.key", 4, 4),
        ("attention.self.value", 4, 4),
        ("attention.output.dense", 4, 4),
        ("intermediate.dense", 8, 4),
        ("output.dense", 4, 8),
    ] {
        put(format!("encoder.layer.0.{name}.weight"), &[rows, columns]);
        put(format!("encoder.layer.0.{name}.bias"), &[rows]);
    }
    for name in [
        "embeddings.LayerNorm",
        "encoder.layer.0.attention.output.LayerNorm",
        "encoder.layer.0.output.LayerNorm",
    ] {
        put(format!("{name}.weight"), &[4]);
        put(format!("{name}.bias"), &[4]);
    }
    let header = serde_json::to_vec(&header).unwrap();
    let mut file = u64::try_from(header.len()).unwrap().to_le_bytes().to_vec();
    file.extend_from_slice(&header);
    file.extend_from_slice(&data);
    write("model.safetensors", &file);
}

#[tokio::test]
async fn a_small_model_is_loaded_and_run() {
    let folder = tempfile::tempdir().unwrap();
    tiny(folder.path());
    let profile = Profile::of("tiny").unwrap();
    let local = Local::load(folder.path(), "tiny", profile, None, 2).unwrap();
    assert_eq!(local.model().tokens_max, 4);
    let texts = ["a", "ab", "a a", "", "ab"];
    let vectors = local.embed(&texts, Purpose::Document).await.unwrap();
    assert_eq!(vectors.get(3), Some(&None));
    assert_eq!(vectors.get(1), vectors.get(4));
    assert_ne!(vectors.first(), vectors.get(1));
    for vector in vectors.iter().flatten() {
        let norm: f32 = vector.iter().map(|value| value * value).sum();
        assert!((norm - 1.0).abs() < 1e-5 && vector.len() == 4, "{vector:?}");
    }
    let fault = local.embed(&["a a a a a"], Purpose::Query).await.unwrap_err();
    assert!(matches!(&fault, EmbedError::Refused(_)), "{fault}");
}

#[test]
fn a_folder_that_is_no_model_is_told() {
    let fault = |change: &dyn Fn(&Path)| {
        let folder = tempfile::tempdir().unwrap();
        tiny(folder.path());
        change(folder.path());
        let profile = Profile::of("tiny").unwrap();
        Local::load(folder.path(), "tiny", profile, None, 1)
            .unwrap_err()
            .to_string()
    };
    let write = |folder: &Path, name: &str, text: &str| {
        tidegate_io::files::write_private(&folder.join(name), text.as_bytes()).unwrap();
    };
    let missing = fault(&|folder| std::fs::remove_file(folder.join("config.json")).unwrap());
    assert!(missing.contains("config.json"), "{missing}");
    let none = fault(&|folder| std::fs::remove_file(folder.join("model.safetensors")).unwrap());
    assert!(none.contains("model.safetensors"), "{none}");
    let weights = fault(&|folder| write(folder, "model.safetensors", "version https://git-lfs"));
    assert!(weights.contains("model.safetensors"), "{weights}");
    let tokenizer = fault(&|folder| {
        let text = r#"{"normalizer":{"type":"Precompiled"},"model":{"type":"Unigram","vocab":{}}}"#;
        write(folder, "tokenizer.json", text);
    });
    assert!(tokenizer.contains("uncased"), "{tokenizer}");
    let pooling = fault(&|folder| {
        std::fs::create_dir(folder.join("1_Pooling")).unwrap();
        write(
            folder,
            "1_Pooling/config.json",
            r#"{"pooling_mode_max_tokens":true}"#,
        );
    });
    assert!(pooling.contains("pooling"), "{pooling}");
}

/// Texts, the first components of their vectors, and the cosine to the next one (the last to the first), computed in
/// double precision from the published weights.
const GOLDEN: [(&str, [f32; 4], f32); 4] = [
    (
        "What can you do?",
        [-0.000_534, 0.052_283, -0.013_132, 0.028_004],
        0.030_633,
    ),
    (
        "Refunds are paid within 14 days of the return.",
        [-0.051_056, 0.029_568, 0.086_285, 0.011_657],
        -0.038_231,
    ),
    (
        "Café déjà vu: 東京, naïve façade",
        [0.067_591, 0.054_521, 0.108_745, -0.030_858],
        -0.075_473,
    ),
    (
        include_str!("long.txt"),
        [-0.042_28, 0.000_88, -0.062_845, -0.023_192],
        0.040_11,
    ),
];
