//! The second tier: lists, thresholds, failures, and what the log says of them.

use super::*;

const LISTS: [(&str, &str); 3] = [
    ("routing/patterns.txt", "address = you|your"),
    (
        "routing/examples.txt",
        "# ours\nwhat is your favourite colour\nwho are you\nhow big is your memory\nare you a robot",
    ),
    (
        "routing/counterexamples.txt",
        "how deep is the sea\nwhy is grass green\nwrite a poem about rain\nwhat time does the train leave",
    ),
];

async fn ready(embedder: &Arc<Words>, options: Options) -> Bench {
    let bench = bench(Some(Arc::clone(embedder) as _), options);
    for (path, text) in LISTS {
        bench.folder.put(path, Ok(text));
    }
    bench.gate.prepare().await;
    bench
}

fn score(kind: ScoreKind, threshold: f64) -> Options {
    Options {
        embedding_score: kind,
        embedding_threshold: Some(threshold),
        embedding_threshold_model: Some("words-64".into()),
        ..Options::default()
    }
}

#[tokio::test]
async fn each_score_leans_to_the_list_that_is_nearer_and_is_logged_whole() {
    for (kind, name, threshold) in [
        (ScoreKind::Probe, "probe", 0.5),
        (ScoreKind::Margin, "margin", 0.2),
        (ScoreKind::Centroid, "centroid", 0.2),
        (ScoreKind::Nearest, "nearest", 0.9),
    ] {
        let embedder = Words::new(None);
        let bench = ready(&embedder, score(kind, threshold)).await;
        let near = bench.decide("your favourite colour is what").await;
        assert!(
            near.about_agent && near.tier == Tier::Embedding,
            "{name}: {near:?}"
        );
        let line = bench.lines.last();
        assert_eq!(line["score_kind"], name);
        assert_eq!(line["model"], "words-64");
        assert_eq!(line["lists"], bench.gate.lists_digest());
        assert_eq!(line["score"].as_f64(), near.score());
        assert_eq!(line["threshold"], threshold);
        assert_eq!(
            (&line["addressed"], &line["decision"]),
            (&true.into(), &"about_agent".into())
        );
        assert!(line["margin"].is_number() && line["latency_us"].is_number());
        assert_eq!(line["nearest"].as_array().unwrap().len(), 3);
        assert_eq!(line["nearest_negative"].as_array().unwrap().len(), 3);
        assert_eq!(line["nearest"][0]["id"], line["rule"]);
        assert!(line["nearest"][0]["cosine"].as_f64().unwrap() > 0.99, "{line}");

        let far = bench.decide("do you know how deep the sea is").await;
        assert!(!far.about_agent && far.score() < near.score(), "{name}: {far:?}");
    }
}

#[tokio::test]
async fn examples_are_embedded_once_and_an_edit_counts_without_a_request_waiting() {
    let embedder = Words::new(Some(0.5));
    let bench = ready(&embedder, Options::default()).await;
    assert_eq!(embedder.asked.load(Ordering::Relaxed), 8);
    let before = bench.decide("are you made of cheese").await;
    bench.gate.prepare().await;
    assert_eq!(embedder.asked.load(Ordering::Relaxed), 9, "the question alone");

    bench
        .folder
        .put("routing/examples.txt", Ok("are you made of cheese\nwho are you"));
    let during = bench.decide("are you made of cheese").await;
    let of = |decision: &Decision| decision.comparison.as_ref().unwrap().lists.clone();
    assert_eq!(of(&during), of(&before), "the last good lists serve meanwhile");
    // The task that was started by that question: on this runtime it runs whenever this one waits.
    let mut after = during;
    for _ in 0..10_000 {
        if of(&after) != of(&before) {
            break;
        }
        tokio::task::yield_now().await;
        after = bench.decide("are you made of cheese").await;
    }
    assert_eq!(of(&after), bench.gate.lists_digest());
    assert!(after.about_agent, "{after:?}");
}

#[tokio::test]
async fn until_the_lists_are_ready_the_rules_decide_alone() {
    let embedder = Words::new(Some(-9.0));
    let bench = bench(Some(Arc::clone(&embedder) as _), Options::default());
    let first = bench.decide("do you adore zebras").await;
    assert!(!first.about_agent && first.tier == Tier::None && first.comparison.is_none());
    assert!(bench.lines.last().get("model").is_none());
    bench.gate.prepare().await;
    assert_eq!(bench.decide("do you adore zebras").await.tier, Tier::Embedding);
}

#[tokio::test]
async fn no_tool_is_taken_away_on_a_model_whose_threshold_is_unknown() {
    let ask = "your favourite colour is what";
    let other = |model: Option<&str>| Options {
        embedding_threshold: Some(-9.0),
        embedding_threshold_model: model.map(Into::into),
        ..Options::default()
    };
    for options in [
        Options::default(),
        other(None),
        other(Some("another-model")),
        // What was measured for a model was measured on the probe.
        Options {
            embedding_score: ScoreKind::Nearest,
            ..Options::default()
        },
    ] {
        let measured = (options.embedding_score == ScoreKind::Nearest).then_some(-9.0);
        let bench = ready(&Words::new(measured), options).await;
        let decision = bench.decide(ask).await;
        assert!(!decision.about_agent && !decision.near_miss, "{decision:?}");
        let line = bench.lines.last();
        assert!(line["score"].is_number() && line["threshold"].is_null(), "{line}");
        assert_eq!(
            (&line["tier"], &line["tools_stripped"]),
            (&"embedding".into(), &false.into())
        );
    }
    let bench = ready(&Words::new(Some(0.5)), other(Some("another-model"))).await;
    assert_eq!(
        bench.decide(ask).await.threshold,
        Some(0.5),
        "the measured one counts"
    );
    let bench = ready(&Words::new(Some(9.0)), other(Some("words-64"))).await;
    assert!(bench.decide(ask).await.about_agent, "the operator's goes first");
}

#[tokio::test]
async fn a_word_of_the_work_or_a_guard_stands_against_a_score() {
    let options = score(ScoreKind::Nearest, 0.6);
    let bench = ready(&Words::new(None), options).await;
    bench.folder.put(
        "routing/patterns.txt",
        Ok("address = you|your\nguard = ^paint .*\nprefix = please"),
    );
    assert!(
        bench
            .decide("what is your favourite shade of colour")
            .await
            .about_agent
    );
    for (text, excluded) in [
        ("what is your favourite budget colour", true),
        ("please paint your favourite colour", false),
        ("what is the favourite colour", false),
    ] {
        let decision = bench.decide(text).await;
        assert!(decision.score().unwrap() >= 0.6, "{text}: {decision:?}");
        assert!(!decision.about_agent && decision.near_miss, "{text}");
        assert_eq!(
            (decision.excluded_by.is_some(), decision.addressed),
            (excluded, excluded),
            "{text}"
        );
    }
}

#[tokio::test]
async fn a_near_miss_lies_within_a_share_of_the_scores_own_spread() {
    let ask = "your favourite colour is what";
    let embedder = Words::new(None);
    let decision = ready(&embedder, score(ScoreKind::Probe, 9.0))
        .await
        .decide(ask)
        .await;
    let comparison = decision.comparison.unwrap();
    assert!(comparison.spread > 0.5, "{comparison:?}");
    for (share, near_miss) in [(0.04, true), (0.06, false)] {
        let bench = ready(
            &embedder,
            score(ScoreKind::Probe, comparison.score + share * comparison.spread),
        )
        .await;
        assert_eq!(bench.decide(ask).await.near_miss, near_miss);
    }
    let options = Options {
        near_miss_margin: 0.5,
        ..score(ScoreKind::Probe, comparison.score + 0.4 * comparison.spread)
    };
    assert!(ready(&embedder, options).await.decide(ask).await.near_miss);
}

#[tokio::test]
async fn a_dead_embedder_costs_one_try_and_then_rests() {
    let embedder = Words::new(Some(0.5));
    let bench = ready(&embedder, Options::default()).await;
    let asked = embedder.asked.load(Ordering::Relaxed);
    embedder.dead.store(true, Ordering::Relaxed);
    assert!(!bench.fires("how deep are you").await);
    bench
        .folder
        .put("routing/patterns.txt", Ok("ours.who = who are you"));
    assert!(bench.fires("who are you").await);
    assert!(!bench.fires("how deep are you").await);
    assert_eq!(embedder.asked.load(Ordering::Relaxed), asked + 1);
    embedder.dead.store(false, Ordering::Relaxed);
    *bench.clock.0.lock().unwrap() = Timestamp::UNIX_EPOCH
        .checked_add(Duration::from_secs(31))
        .unwrap();
    assert_eq!(bench.decide("how deep are you").await.tier, Tier::Embedding);
}

#[tokio::test]
async fn lists_that_give_nothing_leave_the_rules_alone() {
    let embedder = Words::new(Some(-9.0));
    for (path, text) in [
        ("routing/examples.txt", "# none"),
        ("routing/counterexamples.txt", "!!\n??"),
    ] {
        let bench = ready(&embedder, Options::default()).await;
        bench.folder.put(path, Ok(text));
        let other = self::bench(Some(Arc::clone(&embedder) as _), Options::default());
        for (name, shown) in LISTS {
            other
                .folder
                .put(name, Ok(if name == path { text } else { shown }));
        }
        other.gate.prepare().await;
        assert_eq!(other.decide("are you green").await.tier, Tier::None, "{path}");
        // An edit that makes the lists useless: those of before go on.
        bench.gate.prepare().await;
        *bench.clock.0.lock().unwrap() = Timestamp::UNIX_EPOCH
            .checked_add(Duration::from_secs(31))
            .unwrap();
        assert_eq!(
            bench.decide("are you green").await.tier,
            Tier::Embedding,
            "{path}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_embedder_costs_one_time_limit() {
    let embedder = Words::new(Some(0.5));
    let options = Options {
        embedding_timeout_ms: 70,
        ..Options::default()
    };
    let bench = ready(&embedder, options).await;
    embedder.hangs.store(true, Ordering::Relaxed);
    for limit in [70, 0] {
        let started = tokio::time::Instant::now();
        assert_eq!(bench.decide("how deep are you").await.tier, Tier::None);
        assert_eq!(started.elapsed(), Duration::from_millis(limit));
    }
}
