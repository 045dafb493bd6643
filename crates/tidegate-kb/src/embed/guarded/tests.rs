use std::{
    collections::VecDeque,
    sync::atomic::{AtomicI64, AtomicUsize, Ordering},
};

use tidegate_core::embedding::{Calibration, Fusion};
use tokio::sync::Notify;

use super::*;

#[derive(Debug, Default)]
struct Hand {
    seconds: AtomicI64,
}

impl Clock for Hand {
    fn now(&self) -> Timestamp {
        Timestamp::from_second(self.seconds.load(Ordering::SeqCst)).unwrap()
    }
}

/// A server somewhere else: it answers what the script says, then well; it may wait to be let go.
#[derive(Debug)]
struct Far {
    model: EmbeddingModel,
    script: Mutex<VecDeque<EmbedError>>,
    calls: AtomicUsize,
    gate: Option<Notify>,
}

#[async_trait]
impl Embedder for Far {
    fn model(&self) -> &EmbeddingModel {
        &self.model
    }

    async fn embed(&self, texts: &[&str], _: Purpose) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        if let Some(gate) = &self.gate {
            gate.notified().await;
        }
        if let Some(error) = lock(&self.script).pop_front() {
            return Err(error);
        }
        Ok(texts
            .iter()
            .map(|text| (!text.is_empty()).then(|| vec![f32::from(u8::try_from(text.len()).unwrap())]))
            .collect())
    }

    fn tokens(&self, text: &str) -> usize {
        text.len()
    }

    fn state(&self) -> EmbedderState {
        EmbedderState::Untried
    }
}

struct World {
    far: Arc<Far>,
    clock: Arc<Hand>,
    guarded: Guarded,
}

impl World {
    fn new(script: impl IntoIterator<Item = EmbedError>, gate: Option<Notify>) -> Self {
        let far = Arc::new(Far {
            model: EmbeddingModel {
                id: "far".to_owned(),
                tokens_max: 9,
                calibration: Calibration {
                    fusion: Fusion::ReciprocalRank { k: 20 },
                    pair_cosine_min: 1.0,
                    relevant_cosine_min: 0.0,
                    routing_threshold: None,
                },
            },
            script: Mutex::new(script.into_iter().collect()),
            calls: AtomicUsize::new(0),
            gate,
        });
        let clock = Arc::new(Hand::default());
        let guarded = Guarded::new(far.clone(), Options::default(), clock.clone());
        Self { far, clock, guarded }
    }

    async fn query(&self, text: &str) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
        self.guarded.embed(&[text], Purpose::Query).await
    }

    fn calls(&self) -> usize {
        self.far.calls.load(Ordering::SeqCst)
    }

    fn at(&self, seconds: i64) {
        self.clock.seconds.store(seconds, Ordering::SeqCst);
    }
}

fn down() -> EmbedError {
    EmbedError::Unavailable("it is down".to_owned())
}

#[tokio::test]
async fn a_failure_makes_it_rest_and_one_call_tries_again() {
    let world = World::new([down(), down()], None);
    assert_eq!(world.guarded.state(), EmbedderState::Untried);
    assert_eq!(world.query("a").await, Err(down()));
    let resting = EmbedError::Resting {
        until: Timestamp::from_second(30).unwrap(),
        problem: down().to_string(),
    };
    world.at(29);
    assert_eq!(world.query("a").await, Err(resting.clone()));
    assert_eq!(world.guarded.embed(&["a"], Purpose::Document).await, Err(resting));
    assert!(matches!(world.guarded.state(), EmbedderState::Resting { .. }));
    assert_eq!(world.calls(), 1);

    world.at(30);
    assert_eq!(world.query("a").await, Err(down()));
    world.at(59);
    assert!(matches!(world.query("a").await, Err(EmbedError::Resting { .. })));
    assert_eq!(world.calls(), 2);

    world.at(60);
    assert_eq!(world.query("a").await, Ok(vec![Some(vec![1.0])]));
    assert_eq!(world.guarded.state(), EmbedderState::Untried);
    assert_eq!(world.query("bb").await, Ok(vec![Some(vec![2.0])]));
    assert_eq!(world.calls(), 4);
}

#[tokio::test]
async fn while_one_tries_again_the_others_are_refused_and_a_dropped_try_frees_the_way() {
    let world = World::new([down()], Some(Notify::new()));
    let gate = world.far.gate.as_ref().unwrap();
    gate.notify_one();
    assert_eq!(world.query("a").await, Err(down()));
    world.at(30);
    {
        let probe = world.query("a");
        tokio::pin!(probe);
        assert!(futures_util::poll!(&mut probe).is_pending());
        assert!(matches!(world.query("b").await, Err(EmbedError::Resting { .. })));
        assert_eq!(world.calls(), 2);
    }
    gate.notify_one();
    assert_eq!(world.query("b").await, Ok(vec![Some(vec![1.0])]));
    assert_eq!(world.calls(), 3);
}

#[tokio::test]
async fn what_is_refused_does_not_make_it_rest() {
    let refused = EmbedError::Refused("too long".to_owned());
    let broken = EmbedError::Broken("two for one".to_owned());
    let world = World::new([refused.clone(), broken.clone()], None);
    assert_eq!(world.query("a").await, Err(refused));
    assert_eq!(world.query("a").await, Err(broken));
    assert!(matches!(world.query("a").await, Err(EmbedError::Resting { .. })));
}

#[tokio::test]
async fn a_query_is_asked_once_and_known_even_while_it_rests() {
    let world = World::new([], None);
    let expected = Ok(vec![Some(vec![1.0]), None, Some(vec![2.0]), Some(vec![1.0])]);
    let ask = || world.guarded.embed(&["a", "", "bb", "a"], Purpose::Query);
    assert_eq!(ask().await, expected);
    assert_eq!(ask().await, expected);
    assert_eq!(world.calls(), 1);
    lock(&world.far.script).push_back(down());
    assert_eq!(
        world.guarded.embed(&["a"], Purpose::Document).await,
        Err(down()),
        "documents are not remembered"
    );
    assert_eq!(ask().await, expected);
    assert!(matches!(
        world.query("new").await,
        Err(EmbedError::Resting { .. })
    ));
}
