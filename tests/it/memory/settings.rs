//! `[memory]`: each setting changes what it says.

use std::{
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use serde_json::{Value, json};
use tidegate_core::{
    caller::Origin,
    clock::{Clock, Timestamp},
    id::{KeyId, RequestId, RunId, UserId},
    port::{Capture, CaptureQueue as _, MemoryStore as _, RunStore as _},
    run::{Checkpoint, RunRecord, Stage},
};
use tidegate_engine::memory::{Memory, Options, Parts, Worker};
use tidegate_testkit::Reply;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    api::Api,
    person::{Person, is_extraction, script},
    recall::prompt,
};
use crate::support::{Daemon, Home, Setup, outcome, signal};

/// A daemon with these settings that was told six things that ann likes.
async fn told(settings: &str) -> Daemon {
    let daemon = Setup::default().config(settings).start().await;
    let api = Api::new(&daemon);
    for value in [
        "tables",
        "short answers",
        "maps of the sea",
        "long walks",
        "old clocks",
        "green tea",
    ] {
        api.tell("ann", "preference", value).await;
    }
    daemon
}

fn count(text: &str, part: &str) -> usize {
    text.matches(part).count()
}

#[tokio::test]
async fn what_a_request_is_told_keeps_within_its_bounds() {
    for (settings, expected) in [
        ("[memory]\npeople_cached_max = 0\n", 6),
        ("[memory]\nrecall_notes_max = 2\n", 2),
        // Room for the heading and two of them.
        ("[memory]\nrecall_chars_max = 400\n", 2),
    ] {
        let daemon = told(settings).await;
        Person::new(&daemon, "ann").says("Name three rivers.").await;
        let text = prompt(&daemon);
        let notes = count(&text, "\n- Likes: “");
        assert!(
            notes == expected || (expected == 2 && notes > 0 && notes < 6),
            "{settings}: {text}"
        );
    }
    let daemon = told("[memory]\nabout_me_chars_max = 200\n").await;
    Person::new(&daemon, "ann")
        .says("What do you know about me?")
        .await;
    assert!(prompt(&daemon).contains(" more.\n"), "{}", prompt(&daemon));
}

#[tokio::test]
async fn uncertain_notes_are_as_many_as_is_set_and_found_by_as_much_of_a_search() {
    for (settings, is_told) in [
        ("[memory]\nenabled = true\n", true),
        ("[memory]\nrecall_uncertain_max = 0\n", false),
        // The note shares no word with the question: only the search knows how near they are.
        ("[memory]\nrecall_limit = 0\n", false),
    ] {
        let daemon = Setup::default().config(settings).start().await;
        let ann = Person::new(&daemon, "ann");
        ann.says("I find multiplication hard.").await;
        assert_eq!(ann.facts().await.len(), 1);
        // Vectors come in the background where they take long.
        let api = Api::new(&daemon);
        let deadline = Instant::now() + Duration::from_mins(1);
        let path = "/v1/memory/search?user=ann&q=multiplying%20numbers";
        while api.ok("GET", path, Value::Null).await["data"] == json!([]) {
            assert!(Instant::now() < deadline, "the note never got its vector");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        ann.says("multiplying numbers").await;
        assert_eq!(
            prompt(&daemon).contains("“multiplication”"),
            is_told,
            "{settings}"
        );
    }
}

#[tokio::test]
async fn both_lists_of_a_search_are_joined_as_is_set() {
    let search = async |settings: &str, question: &str| {
        let daemon = told(settings).await;
        let path = format!("/v1/memory/search?user=ann&q={question}");
        Api::new(&daemon).ok("GET", &path, Value::Null).await["data"].clone()
    };
    // "like" and its kin are stop words: the two notes share no word with the question.
    let by_meaning = search("[memory]\nrecall_vector_weight = 1.0\n", "watches").await;
    let by_words = search("[memory]\nrecall_vector_weight = 0.0\n", "watches").await;
    assert!(!by_meaning.as_array().unwrap().is_empty());
    assert_eq!(by_words, json!([]));
    let second = async |k: u32| {
        let settings = format!("[memory]\nrecall_vector_weight = 0.0\nrecall_rrf_k = {k}\n");
        search(&settings, "tables%20clocks").await[1]["score"]
            .as_f64()
            .unwrap()
    };
    let (steep, flat) = (second(0).await, second(1_000).await);
    assert!((steep - 0.5).abs() < 0.01 && flat > 0.99, "{steep} {flat}");
}

#[tokio::test]
async fn no_more_is_learned_of_a_turn_a_day_and_a_person_than_is_set() {
    for (settings, expected) in [
        ("[memory]\nper_turn_max = 1\n", 2),
        ("[memory]\nper_day_max = 1\n", 1),
        ("[memory]\nper_person_max = 3\n", 3),
    ] {
        let daemon = Setup::default().config(settings).start().await;
        let ann = Person::new(&daemon, "ann");
        for said in ["I like tables. I like charts.", "I like walks. I like clocks."] {
            ann.says(said).await;
            ann.memory().await;
        }
        assert_eq!(ann.facts().await.len(), expected, "{settings}");
    }
}

#[tokio::test]
async fn as_many_turns_are_learned_from_at_once_as_is_set() {
    for (workers, expected) in [(1, (1, 1)), (2, (2, 0))] {
        let settings = format!("[memory]\nextractor = \"model\"\nworkers_max = {workers}\n");
        let daemon = Setup::default().config(&settings).start().await;
        daemon.upstream.respond_with(|body| {
            if is_extraction(body) {
                Reply::text("later").delay_first_ms(60_000)
            } else {
                Reply::text("Noted.")
            }
        });
        for name in ["ann", "bob"] {
            Person::new(&daemon, name).says("I teach 4th grade.").await;
        }
        let asked = || {
            daemon
                .upstream
                .chats()
                .iter()
                .filter(|body| is_extraction(body))
                .count()
        };
        let deadline = Instant::now() + Duration::from_mins(1);
        while asked() < workers {
            assert!(Instant::now() < deadline, "the model was asked {} times", asked());
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let (_, out, _) = outcome(&daemon.run(&["memory", "status", "--json"]));
        let status: Value = serde_json::from_str(&out).unwrap();
        let found = (
            status["working_on"].as_u64().unwrap(),
            status["waiting"].as_u64().unwrap(),
        );
        assert_eq!(found, expected, "{status}");
    }
}

#[tokio::test]
async fn the_model_that_is_named_is_asked_and_no_other() {
    let daemon = Setup::default()
        .config("[memory]\nextractor = \"model\"\nmodel = \"small\"\n")
        .start()
        .await;
    daemon
        .upstream
        .set_models(Some(vec!["scripted".to_owned(), "small".to_owned()]));
    let found =
        json!([{"kind": "preference", "value": "tables", "quote": "I like tables", "explicit": true}]);
    script(&daemon, found, Reply::text("Noted."));
    let ann = Person::new(&daemon, "ann");
    ann.says("I like tables.").await;
    assert_eq!(ann.facts().await[0]["evidence"][0]["extractor"], "small");
    for body in daemon.upstream.chats() {
        assert_eq!(body["model"] == "small", is_extraction(&body), "{body}");
    }
}

const SHOES: &str = r#"[[kind]]
name = "shoe"
about = "Shoes that the person likes."
value = "text"
single = true
label = "shoes"
certain = "Wears: {value}."
uncertain = "May wear: {value}."
"#;

#[tokio::test]
async fn the_table_of_kinds_is_the_operators_and_is_read_again_on_sighup() {
    let daemon = Setup::default()
        .config("[memory]\nkinds_file = \"shoes.toml\"\n")
        .file("shoes.toml", SHOES)
        .start()
        .await;
    let api = Api::new(&daemon);
    api.tell("ann", "shoe", "boots").await;
    let ann = Person::new(&daemon, "ann");
    ann.says("Name three rivers.").await;
    assert!(prompt(&daemon).contains("Wears: “boots”"));
    // A table that is broken changes nothing; one that is not changes what everything is called.
    let changed = async |table: &str, expected: &str| {
        daemon.write("shoes.toml", table);
        signal(daemon.pid(), "HUP");
        let deadline = Instant::now() + Duration::from_mins(1);
        loop {
            ann.says("Name three rivers.").await;
            if prompt(&daemon).contains(expected) {
                return;
            }
            assert!(Instant::now() < deadline, "{}", prompt(&daemon));
        }
    };
    changed(&SHOES.replace("Wears", "Walks in"), "Walks in: “boots”").await;
    changed("[[kind]]\nname = 7\n", "Walks in: “boots”").await;
    changed(&SHOES.replace("Wears", "Runs in"), "Runs in: “boots”").await;
}

#[test]
fn a_table_that_is_broken_is_named_with_the_line_before_anything_starts() {
    let home = Home::new("[discovery]\nollama = false\n");
    home.write(
        "memory-kinds.toml",
        &format!("{SHOES}\n[[kind]]\nname = \"Hat\"\n"),
    );
    for command in ["serve", "doctor"] {
        let (code, out, err) = home.run(&[command]);
        let said = format!("{out}{err}");
        assert_ne!(code, Some(0), "{said}");
        assert!(
            said.contains("memory-kinds.toml") && said.contains("line 10"),
            "{said}"
        );
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    for (settings, part) in [
        ("extractor = \"magic\"", "`rules`, `model`, `both`"),
        ("model = \" \"", "no model has an empty name"),
        ("recall_vector_weight = 2.0", "a number from 0 to 1"),
        ("attempts_max = 0", "a whole number, 1"),
    ] {
        let home = Home::new(&format!("[discovery]\nollama = false\n[memory]\n{settings}\n"));
        let (code, out, err) = home.run(&["config", "--check"]);
        let said = format!("{out}{err}");
        assert_ne!(code, Some(0), "{said}");
        assert!(
            said.contains("memory.") && said.contains(part),
            "{settings}: {said}"
        );
    }
    let home = Home::new("[discovery]\nollama = false\n[memory]\nmodel = \"small\"\n");
    let (code, out, err) = home.run(&["config", "--check"]);
    assert_eq!(code, Some(0), "{err}");
    assert!(
        format!("{out}{err}").contains("rules alone look for facts"),
        "{out}{err}"
    );
}

/// A clock that the test turns.
#[derive(Debug)]
struct Turned(Mutex<Timestamp>);

impl Clock for Turned {
    fn now(&self) -> Timestamp {
        *self.0.lock().unwrap()
    }
}

const DAY_S: i64 = 86_400;

/// Memory over a store of its own, with nothing to ask.
#[derive(Debug)]
struct Desk {
    store: Arc<tidegate_store::Store>,
    clock: Arc<Turned>,
    tracker: TaskTracker,
    stop: CancellationToken,
    _folder: tempfile::TempDir,
}

impl Desk {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(Turned(Mutex::new(Timestamp::from_second(100 * DAY_S).unwrap())));
        let options = tidegate_store::Options {
            path: folder.path().join("memory.db"),
            ..tidegate_store::Options::default()
        };
        let (store, writer) = tidegate_store::Store::open(options, Arc::clone(&clock) as _)
            .await
            .unwrap();
        let (tracker, stop) = (TaskTracker::new(), CancellationToken::new());
        tracker.spawn(writer.run(stop.clone()));
        store.lock_daemon().unwrap();
        Self {
            store: Arc::new(store),
            clock,
            tracker,
            stop,
            _folder: folder,
        }
    }

    /// Queues a turn and gives it up.
    async fn bury(&self, id: &str) {
        let now = self.clock.now();
        let user = UserId::of(&KeyId::new("k1"), Some("ann")).unwrap();
        let run = RunRecord {
            id: RunId::new(id),
            request_id: RequestId::new("req"),
            key_id: user.key_id(),
            user: user.clone(),
            origin: Origin::Http,
            model: "m".to_owned(),
            created_at: now,
        };
        let first = Checkpoint {
            at: now,
            stage: Stage::BeforeModel { round: 1 },
            state: None,
        };
        self.store.open(&run, &first).await.unwrap();
        let capture = Capture {
            run: run.id,
            turn: [7; 32],
            conversation: "c".to_owned(),
            day: self.clock.today(),
            at: now,
            said: "I like tables.".to_owned(),
            in_sight: Vec::new(),
        };
        self.store.enqueue(&user, &capture).await.unwrap();
        let claimed = self.store.claim(now, Timestamp::MAX, 1).await.unwrap().remove(0);
        assert!(self.store.bury(&claimed.lease, "test").await.unwrap());
    }

    /// Lets a worker with these options begin, and waits until `done`.
    async fn work(&self, options: Options, done: impl AsyncFn(&tidegate_store::Store) -> bool) {
        self.work_by(tidegate_memory::kinds::SHIPPED, options, done).await;
    }

    /// The same by a table of kinds.
    async fn work_by(
        &self,
        kinds: &str,
        options: Options,
        done: impl AsyncFn(&tidegate_store::Store) -> bool,
    ) {
        let models = tidegate::app::open_models(tidegate_llm::Options::default()).unwrap();
        let parts = Parts {
            store: Arc::clone(&self.store) as _,
            queue: Arc::clone(&self.store) as _,
            keys: Arc::clone(&self.store) as _,
            embedder: None,
            model: Arc::new(models),
            ledger: Arc::clone(&self.store) as _,
            model_log: Arc::new(tidegate::app::NoLog),
            prices: Arc::default(),
            redactor: Arc::new(tidegate_gate::guards::secrets::Redactor::new([]).unwrap()),
            clock: Arc::clone(&self.clock) as _,
            entropy: Arc::new(tidegate::clock::OsEntropy),
            options,
        };
        let kinds = tidegate_memory::kinds::Kinds::parse(kinds).unwrap();
        let memory = Arc::new(Memory::new(parts, kinds));
        let stop = CancellationToken::new();
        let worker = Worker::new(memory).run(stop.clone());
        let watch = async {
            let deadline = Instant::now() + Duration::from_mins(1);
            while !done(&self.store).await {
                assert!(Instant::now() < deadline, "it never came to that");
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            stop.cancel();
        };
        tokio::join!(worker, watch);
    }

    async fn close(self) {
        self.stop.cancel();
        self.tracker.close();
        self.tracker.wait().await;
    }
}

fn observation(user: &str, number: u8, day: i64, kind: &str) -> (UserId, tidegate_core::memory::Observation) {
    let at = Timestamp::from_second(day * DAY_S).unwrap();
    let observation = json!({"id": format!("obs_{user}{number}"), "kind": kind, "value": format!("v{number}"),
        "quote": format!("I like v{number}"), "turn": vec![number; 32], "conversation": "c", "day": at.to_string()[..10],
        "at": at.to_string(), "voice": "stated", "stance": "affirmed", "extractor": "rules", "is_explicit": true,
        "is_first_person": true});
    let user = UserId::of(&KeyId::new("k1"), Some(user)).unwrap();
    (user, serde_json::from_value(observation).unwrap())
}

#[tokio::test]
async fn what_is_too_old_or_too_much_goes_with_the_start_of_the_worker() {
    let desk = Desk::open().await;
    desk.bury("run_old").await;
    *desk.clock.0.lock().unwrap() = Timestamp::from_second(110 * DAY_S).unwrap();
    desk.bury("run_new").await;
    for number in 0..5 {
        let (user, observation) = observation("ann", number, 100 + i64::from(number), "preference");
        desk.store.append(&user, vec![observation]).await.unwrap();
    }
    let dead = async |store: &tidegate_store::Store| store.capture_counts().await.unwrap().dead;
    // For ever, and for a week. In `tidegate.toml`: [memory], dead_days = 7 and kept_per_person_max = 2.
    let kept = |dead_days, kept_per_person_max| Options {
        dead_days,
        kept_per_person_max,
        ..Options::default()
    };
    let left = async |store: &tidegate_store::Store| {
        let (user, _) = observation("ann", 0, 0, "preference");
        store
            .observations(&user, 0, 100)
            .await
            .unwrap()
            .observations
            .len()
    };
    desk.work(kept(0, 4), async |store| left(store).await == 4).await;
    assert_eq!(dead(&desk.store).await, 2);
    desk.work(kept(7, 2), async |store| {
        left(store).await == 2 && dead(store).await == 1
    })
    .await;
    desk.close().await;
}

/// The values of a kind that are kept of Ann.
async fn values(store: &tidegate_store::Store, kind: &str) -> Vec<String> {
    let (user, _) = observation("ann", 0, 0, kind);
    let all = store.observations(&user, 0, 100).await.unwrap().observations;
    let of_kind = all.into_iter().filter(|kept| kept.kind == kind);
    of_kind.map(|kept| kept.value).collect()
}

#[tokio::test]
async fn each_kind_is_kept_for_as_long_as_its_row_says() {
    let desk = Desk::open().await;
    for number in 0..5 {
        for (offset, kind) in [(0, "preference"), (5, "knowledge_gap"), (10, "name")] {
            let day = 100 + i64::from(number);
            let (user, observation) = observation("ann", number + offset, day, kind);
            desk.store.append(&user, vec![observation]).await.unwrap();
        }
    }
    // Today is day 110. In `memory-kinds.toml`: what is liked is kept for eight days, what is hard for six and a name for ever.
    *desk.clock.0.lock().unwrap() = Timestamp::from_second(110 * DAY_S).unwrap();
    let kept_for = |table: &str, kind: &str, days: u32| {
        let name = format!("name = \"{kind}\"\n");
        assert!(table.contains(&name));
        table.replace(&name, &format!("{name}retention_days = {days}\n"))
    };
    let table = kept_for(tidegate_memory::kinds::SHIPPED, "preference", 8);
    let table = kept_for(&table, "knowledge_gap", 6);
    desk.work_by(&table, Options::default(), async |store| {
        values(store, "preference").await.len() < 5 && values(store, "knowledge_gap").await.len() < 5
    })
    .await;
    assert_eq!(values(&desk.store, "preference").await, ["v2", "v3", "v4"]);
    assert_eq!(values(&desk.store, "knowledge_gap").await, ["v9"]);
    assert_eq!(values(&desk.store, "name").await.len(), 5);
    desk.close().await;
}

#[test]
fn doctor_names_everybody_who_looks_for_facts() {
    for (extractor, named) in [
        ("model", "found by the model `small`"),
        ("both", "found by rules and the model `small`"),
    ] {
        let home = Home::new(&format!(
            "[discovery]\nollama = false\n[memory]\nextractor = \"{extractor}\"\nmodel = \"small\"\n"
        ));
        let (_, report, stderr) = home.run(&["doctor"]);
        assert!(report.contains(named), "{extractor}: {report}{stderr}");
    }
}

#[tokio::test]
async fn no_more_of_a_person_is_kept_than_is_set() {
    let mut daemon = told("[memory]\nenabled = true\n").await;
    let api_values = async |daemon: &Daemon| Api::new(daemon).values("ann").await.len();
    assert_eq!(api_values(&daemon).await, 6);
    assert!(daemon.terminate(Duration::from_secs(20)).await);
    let config = daemon.read("tidegate.toml");
    assert!(config.contains("[memory]\nenabled = true"), "{config}");
    let fewer = "[memory]\nkept_per_person_max = 2\ndead_days = 7\n";
    daemon.write(
        "tidegate.toml",
        &config.replace("[memory]\nenabled = true", fewer),
    );
    daemon.launch().await;
    let deadline = Instant::now() + Duration::from_mins(1);
    while api_values(&daemon).await != 2 {
        assert!(Instant::now() < deadline, "nothing went");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
