use std::sync::atomic::{AtomicBool, Ordering};

use tempfile::TempDir;
use tidegate_core::{
    clock::{Clock, Timestamp},
    embedding::{EmbedError, EmbeddingModel, Purpose},
    knowledge::{Authority, Format, Passage},
    port::{FileMark, KnownFile, NewChunk, NewDocument},
};
use tidegate_store::Store;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::*;
use crate::{chunk, embed::Builtin, matrix::Embedded, parse};

mod documents;

#[derive(Debug)]
struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH
    }
}

/// The built-in embedder, which can be away and reads no long texts.
#[derive(Debug)]
struct Flaky {
    inner: Builtin,
    model: EmbeddingModel,
    is_away: AtomicBool,
}

#[async_trait]
impl Embedder for Flaky {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    async fn embed(&self, texts: &[&str], purpose: Purpose) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        if self.is_away.load(Ordering::SeqCst) {
            return Err(EmbedError::Unavailable("it is away".to_owned()));
        }
        assert!(
            texts
                .iter()
                .all(|text| self.tokens(text) <= self.model.tokens_max)
        );
        self.inner.embed(texts, purpose).await
    }

    fn tokens(&self, text: &str) -> usize {
        Embedder::tokens(&self.inner, text)
    }

    fn state(&self) -> EmbedderState {
        self.inner.state()
    }
}

struct Bench {
    _folder: TempDir,
    store: Arc<Store>,
    embedder: Arc<Flaky>,
    shutdown: CancellationToken,
    tracker: TaskTracker,
}

impl Bench {
    async fn new() -> Self {
        let folder = TempDir::new().unwrap();
        let options = tidegate_store::Options {
            path: folder.path().join("tidegate.db"),
            ..tidegate_store::Options::default()
        };
        let (store, worker) = Store::open(options, Arc::new(Still)).await.unwrap();
        let (shutdown, tracker) = (CancellationToken::new(), TaskTracker::new());
        tracker.spawn(worker.run(shutdown.clone()));
        tracker.close();
        let inner = Builtin::load().unwrap();
        let embedder = Flaky {
            // Less than it reads in truth, so that a query can be too long for it.
            model: EmbeddingModel {
                tokens_max: 450,
                ..inner.model().clone()
            },
            inner,
            is_away: AtomicBool::new(false),
        };
        Self {
            _folder: folder,
            store: Arc::new(store),
            embedder: Arc::new(embedder),
            shutdown,
            tracker,
        }
    }

    /// A document of Markdown, cut and embedded as files are.
    async fn put(&self, path: &str, authority: Authority, text: &str) {
        let parsed = parse::read(path, text.as_bytes(), &parse::Limits::default()).unwrap();
        let pieces = chunk::split(
            &parsed,
            &|text| self.embedder.tokens(text),
            &chunk::Limits::default(),
        );
        let citations = chunk::citations(path, &pieces);
        let mut chunks = Vec::new();
        for (piece, citation) in pieces.into_iter().zip(citations) {
            let text = chunk::embedded_text(&piece.place, &piece.text);
            let vector = self.embedder.inner.embed_one(&text);
            chunks.push(NewChunk {
                citation,
                sha256: piece.sha256,
                place: piece.place,
                text: piece.text,
                vector: Some(vector),
            });
        }
        let document = NewDocument {
            file: KnownFile {
                path: path.to_owned(),
                mark: FileMark {
                    bytes: 1,
                    modified_ns: 0,
                    sha256: [0; 32],
                },
                recipe: String::new(),
                failed: false,
            },
            title: parsed.title.unwrap_or_else(|| path.to_owned()),
            format: parsed.format,
            authority,
            at: Still.now(),
            content: Ok(chunks),
        };
        self.store.put(document, &self.embedder.model().id).await.unwrap();
        self.store.serve(&self.embedder.model().id).await.unwrap();
    }

    fn base(&self, options: Options) -> Base {
        let store: Arc<dyn ChunkStore> = Arc::<Store>::clone(&self.store);
        let index = Arc::new(Embedded::new(Arc::clone(&store)));
        let embedder: Arc<dyn Embedder> = Arc::<Flaky>::clone(&self.embedder);
        Base::new(store, index, vec![embedder], Arc::new(NoIntake), options)
    }

    async fn close(self) {
        self.shutdown.cancel();
        self.tracker.wait().await;
    }
}

const LEAVE: &str = "# Leave\n\n## Parental leave\n\nEmployees receive sixteen weeks of paid parental leave after the birth \
                     or adoption of a child.\n\n## Sick leave\n\nWho falls ill tells the manager before nine in the morning \
                     and brings a doctor's certificate after three days.\n";
const TRAVEL: &str = "# Travel expenses\n\nHotels are reimbursed up to 140 euros a night. Receipts go to the finance \
                      department within thirty days of the journey.\n";
const RULE: &str = "# § 12.4 Notification of action taken\n\nA creditor shall notify an applicant of action taken within \
                    thirty days after receiving a completed application concerning the creditor's approval of, \
                    counteroffer to, or adverse action on the application.\n";
const SUMMARY: &str = "# When will I hear from the lender?\n\nA lender must tell you within thirty days of your completed \
                       application whether the credit application was approved, or that action on the application is \
                       adverse.\n";
const BREAD: &str = "# Bread\n\nKnead the dough for ten minutes, let it rise until it has doubled, and bake it in a hot \
                     oven with a little steam.\n";

async fn office() -> Bench {
    let bench = Bench::new().await;
    bench.put("handbook/leave.md", Authority::Primary, LEAVE).await;
    bench.put("handbook/travel.md", Authority::Primary, TRAVEL).await;
    bench.put("law/12-4.md", Authority::Primary, RULE).await;
    bench.put("web/lender.md", Authority::Secondary, SUMMARY).await;
    bench.put("web/bread.md", Authority::Secondary, BREAD).await;
    bench
}

fn request(query: &str) -> SearchRequest {
    SearchRequest {
        query: query.to_owned(),
        filter: Filter::default(),
        k: 5,
    }
}

fn documents(passages: &[Passage]) -> Vec<&str> {
    passages.iter().map(|passage| passage.document.as_str()).collect()
}

#[tokio::test]
async fn a_question_finds_its_passage_and_where_it_stands() {
    let bench = office().await;
    let base = bench.base(Options::default());
    base.warm().await.unwrap();
    let answer = base
        .search(&request("how many weeks of parental leave do I get?"))
        .await
        .unwrap();
    let first = &answer.passages[0];
    assert_eq!(first.document, "handbook/leave.md");
    assert_eq!(
        first.place.headings.last().map(String::as_str),
        Some("Parental leave")
    );
    assert_eq!((first.authority, answer.words_only), (Authority::Primary, None));
    assert!(first.text.contains("sixteen weeks") && first.score > 0.0);
    bench.close().await;
}

#[tokio::test]
async fn nothing_relevant_is_an_answer() {
    let bench = office().await;
    let base = bench.base(Options::default());
    for query in [
        "who won the football championship in 1974?",
        "quantum chromodynamics of gluons",
        "量子力学",
    ] {
        let answer = base.search(&request(query)).await.unwrap();
        assert!(
            answer.passages.is_empty(),
            "{query}: {:?}",
            documents(&answer.passages)
        );
        let explained = base.explain(&request(query)).await.unwrap();
        assert_eq!(explained.relevant, 0, "{query}");
    }
    let all = bench.base(Options {
        relevant_cosine_min: Some(0.0),
        ..Options::default()
    });
    let answer = all
        .search(&request("who won the football championship?"))
        .await
        .unwrap();
    assert!(!answer.passages.is_empty());
    bench.close().await;
}

#[tokio::test]
async fn what_is_no_question_is_refused_in_words() {
    let bench = office().await;
    let base = bench.base(Options::default());
    for (query, part) in [
        ("", "no letter or digit"),
        (" \n\t ", "no letter or digit"),
        ("\u{0}\u{7}\u{1b}[", "no letter or digit"),
        ("\"*()^:-", "no letter or digit"),
        (&"credit ".repeat(14_286)[..], "100001 characters"),
        (&"x".repeat(100_000)[..], "100000 characters"),
    ] {
        let error = base.search(&request(query)).await.unwrap_err();
        assert!(
            matches!(error, KnowledgeError::Invalid(_)) && error.to_string().contains(part),
            "{error}"
        );
    }
    let none = SearchRequest {
        k: 0,
        ..request("leave")
    };
    assert!(matches!(
        base.search(&none).await,
        Err(KnowledgeError::Invalid(_))
    ));
    let filter = Filter {
        paths: vec!["law/[".to_owned()],
        ..Filter::default()
    };
    let wrong = SearchRequest {
        filter,
        ..request("leave")
    };
    let error = base.search(&wrong).await.unwrap_err();
    assert!(error.to_string().contains("law/["), "{error}");
    bench.close().await;
}

#[tokio::test]
async fn odd_questions_are_plain_words() {
    let bench = office().await;
    let base = bench.base(Options::default());
    for query in [
        "what is the of",
        "leave\" OR 1=1 --",
        "NEAR(parental leave, 2) AND text:leave* NOT ^sick",
        "'; DROP TABLE kb_chunks; --",
        "parental\u{0}leave\u{202e} weeks",
        "отпуск по уходу за ребёнком",
        "育児休暇は何週間ですか",
        "🙂 leave",
    ] {
        base.search(&request(query)).await.unwrap();
    }
    let answer = base
        .search(&request("(parental* AND \"leave\") weeks:^"))
        .await
        .unwrap();
    assert_eq!(answer.passages[0].document, "handbook/leave.md");
    let long = format!(
        "{} how many weeks of parental leave?",
        "parental leave weeks ".repeat(400)
    );
    assert!(bench.embedder.tokens(&long) > bench.embedder.model().tokens_max);
    let answer = base.search(&request(&long)).await.unwrap();
    assert_eq!(answer.words_only, None);
    assert_eq!(answer.passages[0].document, "handbook/leave.md");
    bench.close().await;
}

#[tokio::test]
async fn a_dead_embedder_leaves_words() {
    let bench = office().await;
    let base = bench.base(Options::default());
    bench.embedder.is_away.store(true, Ordering::SeqCst);
    let answer = base
        .search(&request("how many weeks of parental leave?"))
        .await
        .unwrap();
    assert_eq!(answer.passages[0].document, "handbook/leave.md");
    assert!(answer.words_only.unwrap().contains("it is away"));
    let none = base
        .search(&request("football championship of 1974"))
        .await
        .unwrap();
    assert!(none.passages.is_empty());
    let explained = base
        .explain(&request("how many weeks of parental leave?"))
        .await
        .unwrap();
    assert_eq!(
        (explained.model, explained.fusion.as_str()),
        (None, "words alone")
    );
    bench.embedder.is_away.store(false, Ordering::SeqCst);
    let answer = base
        .search(&request("how many weeks of parental leave?"))
        .await
        .unwrap();
    assert_eq!(answer.words_only, None);
    bench.close().await;
}

#[tokio::test]
async fn a_model_that_is_not_configured_leaves_words() {
    let bench = office().await;
    bench.store.serve("another-model").await.unwrap();
    let base = bench.base(Options::default());
    let answer = base.search(&request("parental leave weeks")).await.unwrap();
    assert_eq!(answer.passages[0].document, "handbook/leave.md");
    assert!(answer.words_only.unwrap().contains("another-model"));
    let status = base.status().await.unwrap();
    assert!(
        status
            .problems
            .iter()
            .any(|problem| problem.contains("another-model")),
        "{status:?}"
    );
    bench.close().await;
}

#[tokio::test]
async fn the_source_stands_above_what_is_said_of_it_and_that_is_told() {
    let bench = office().await;
    let query = "when must the lender tell me whether my credit application was approved";
    let plain = bench.base(Options {
        pair_rule: false,
        authority_nudge: 0.0,
        ..Options::default()
    });
    let before = plain.search(&request(query)).await.unwrap();
    assert_eq!(documents(&before.passages)[..2], ["web/lender.md", "law/12-4.md"]);
    let base = bench.base(Options::default());
    let after = base.search(&request(query)).await.unwrap();
    assert_eq!(documents(&after.passages)[..2], ["law/12-4.md", "web/lender.md"]);
    let explained = base.explain(&request(query)).await.unwrap();
    let first = &explained.passages[0];
    let summary = after.passages[1].citation.as_str();
    let told = first.authority_moves.join("; ");
    assert!(
        told.contains(summary) && told.contains("from rank 2 to 1"),
        "{told}"
    );
    assert_eq!(first.fused.rank, 2);
    assert_eq!(
        explained.passages.iter().take(explained.relevant).count(),
        after.passages.len()
    );
    // What only the summary's side answers stays.
    let answer = base
        .search(&request("how long do I knead the dough and bake the bread"))
        .await
        .unwrap();
    assert_eq!(answer.passages[0].document, "web/bread.md");
    bench.close().await;
}

#[tokio::test]
async fn a_filter_narrows_before_anything_is_compared() {
    let bench = office().await;
    let base = bench.base(Options {
        relevant_cosine_min: Some(0.0),
        ..Options::default()
    });
    let with = |filter| SearchRequest {
        filter,
        ..request("credit application approved within thirty days")
    };
    let paths = Filter {
        paths: vec!["handbook/**".to_owned()],
        ..Filter::default()
    };
    let answer = base.search(&with(paths)).await.unwrap();
    assert!(!answer.passages.is_empty());
    assert!(
        documents(&answer.passages)
            .iter()
            .all(|path| path.starts_with("handbook/"))
    );
    let primary = Filter {
        authority_min: Some(Authority::Primary),
        ..Filter::default()
    };
    let answer = base.search(&with(primary)).await.unwrap();
    assert_eq!(answer.passages[0].document, "law/12-4.md");
    assert!(
        answer
            .passages
            .iter()
            .all(|passage| passage.authority == Authority::Primary)
    );
    let format = Filter {
        formats: vec![Format::Pdf],
        ..Filter::default()
    };
    assert!(base.search(&with(format)).await.unwrap().passages.is_empty());
    bench.close().await;
}

#[tokio::test]
async fn a_search_sees_what_was_put_in_and_taken_out_before_it() {
    let bench = Bench::new().await;
    let base = bench.base(Options::default());
    let ask = request("how long to knead dough for bread");
    let empty = base.search(&ask).await.unwrap();
    assert!(empty.passages.is_empty() && empty.words_only.is_none());
    bench.put("bread.md", Authority::Secondary, BREAD).await;
    assert_eq!(
        documents(&base.search(&ask).await.unwrap().passages),
        ["bread.md"]
    );
    bench.put("leave.md", Authority::Secondary, LEAVE).await;
    let leave = base
        .explain(&request("doctor's certificate when ill"))
        .await
        .unwrap();
    assert!(leave.passages[0].vectors.is_some() && leave.passages[0].passage.document == "leave.md");
    bench.put("bread.md", Authority::Secondary, TRAVEL).await;
    assert!(base.search(&ask).await.unwrap().passages.is_empty());
    bench
        .store
        .remove(vec!["bread.md".to_owned(), "leave.md".to_owned()])
        .await
        .unwrap();
    assert!(base.explain(&ask).await.unwrap().passages.is_empty());
    bench.close().await;
}

#[tokio::test]
async fn equal_texts_are_shown_once() {
    let bench = Bench::new().await;
    bench.put("a/bread.md", Authority::Secondary, BREAD).await;
    bench.put("b/copy.md", Authority::Primary, BREAD).await;
    let answer = bench
        .base(Options::default())
        .search(&request("knead the bread dough"))
        .await
        .unwrap();
    assert_eq!(documents(&answer.passages), ["b/copy.md"]);
    bench.close().await;
}
