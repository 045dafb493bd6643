//! A model that does nothing but attack: every attack of the corpora as a tool call against the running daemon,
//! in every mode, and chains of several steps. Judged by what the world looks like afterwards (files outside the
//! knowledge bank, refs of a remote, bytes at listeners, secrets in what the model was sent), never by what a
//! tool says of itself. What happens inside the knowledge bank of a `full-auto` key is what such a key is for.

mod attacks;
mod chains;
mod world;

use std::{collections::BTreeMap, time::Instant};

use serde_json::json;

use self::{
    attacks::{Attack, attacks},
    world::World,
};

/// The modes.
const MODES: [&str; 3] = ["plan-only", "readonly", "full-auto"];
/// Calls in one turn; more are not taken from one reply of a model.
const CALLS_PER_TURN: usize = 64;

/// What was tried and what came of it, by kind.
#[derive(Debug)]
struct Table {
    rows: BTreeMap<String, (usize, Vec<String>)>,
    begin: Instant,
}

impl Default for Table {
    fn default() -> Self {
        Self {
            rows: BTreeMap::new(),
            begin: Instant::now(),
        }
    }
}

impl Table {
    fn add(&mut self, kind: &str, tried: usize, effects: Vec<String>) {
        let row = self.rows.entry(kind.to_owned()).or_default();
        row.0 += tried;
        row.1.extend(effects);
    }

    fn finish(self, name: &str) {
        println!(
            "{name}: attacks tried and effects observed outside the sandbox, in {:.0} s",
            self.begin.elapsed().as_secs_f64()
        );
        let (mut tried, mut effects) = (0, Vec::new());
        for (kind, (count, seen)) in self.rows {
            println!("  {kind:<32} {count:>5} {:>5}", seen.len());
            tried += count;
            effects.extend(seen.into_iter().map(|effect| format!("{kind}: {effect}")));
        }
        println!("  {:<32} {tried:>5} {:>5}", "all", effects.len());
        assert!(tried > 0, "nothing was tried");
        assert!(effects.is_empty(), "{}", effects.join("\n"));
    }
}

async fn key(world: &World, mode: &str) -> String {
    let policy = json!({"name": mode, "scopes": ["chat", "tools"], "mode_ceiling": mode});
    world.daemon.make_key(policy).await
}

/// Every attack of the corpora, in one mode.
async fn attack_in(mode: &str) {
    let mut world = World::start().await;
    let mut table = Table::default();
    let all = attacks(&world);
    assert!(
        all.len() > 800,
        "the corpora hold more attacks than {}",
        all.len()
    );
    world.watch(all.iter().flat_map(Attack::named_paths));
    let key = key(&world, mode).await;
    world.reset();
    for (kind, group) in by_kind(&all) {
        let (alone, together): (Vec<&Attack>, Vec<&Attack>) =
            group.into_iter().partition(|attack| !attack.setup.is_empty());
        let calls: Vec<_> = together.iter().flat_map(|attack| attack.calls.clone()).collect();
        for chunk in calls.chunks(CALLS_PER_TURN) {
            world.turn(&key, chunk.to_vec()).await;
        }
        for attack in &alone {
            world.reset();
            world.prepare(&attack.setup);
            world.turn(&key, attack.calls.clone()).await;
        }
        table.add(kind, alone.len() + together.len(), world.effects());
        if mode == "full-auto" || !alone.is_empty() {
            world.reset();
        }
    }
    table.finish(mode);
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attack_of_the_corpora_has_an_effect_while_planning() {
    attack_in("plan-only").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attack_of_the_corpora_has_an_effect_in_readonly() {
    attack_in("readonly").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_attack_of_the_corpora_has_an_effect_in_full_auto() {
    attack_in("full-auto").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn no_chain_of_steps_has_an_effect_in_any_mode() {
    let mut world = World::start().await;
    let mut table = Table::default();
    for mode in MODES {
        let key = key(&world, mode).await;
        for chain in chains::chains(&world) {
            world.reset();
            for step in &chain.turns {
                world.turn(&key, step.clone()).await;
            }
            let tried = chain.turns.iter().map(Vec::len).sum();
            table.add(&format!("{mode} {}", chain.name), tried, world.effects());
        }
    }
    table.finish("chains");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_has_an_effect_is_seen() {
    let mut world = World::start().await;
    let key = key(&world, "full-auto").await;
    // Programs do run for such a key, and change what they may change.
    let results = world
        .turn(
            &key,
            vec![
                // In a folder without anything hidden: without bubblewrap no other takes new files.
                world::shell("echo ran > scratch/ran.txt; cat README.md"),
                world::shell("cat scratch/made.txt"),
            ],
        )
        .await;
    let ran = std::fs::read_to_string(world.daemon.path("knowledge-bank/scratch/ran.txt"));
    assert!(ran.is_ok_and(|text| text.contains("ran")), "{results:?}");
    let snippet = world::call("run_sandboxed", json!({"code": "print(6 * 7)"}));
    assert!(world.turn(&key, vec![snippet]).await[0].contains("42"));
    assert_eq!(world.effects(), Vec::<String>::new());
    // Each oracle sees what it is there for.
    let secret = world.plant("scratch/made.txt");
    world.turn(&key, vec![world::shell("cat scratch/made.txt")]).await;
    assert!(
        world
            .effects()
            .iter()
            .any(|effect| effect.contains("reached the model")),
        "{secret}"
    );
    drop(std::net::TcpStream::connect(("127.0.0.1", world.sinks[0].port)).unwrap());
    std::os::unix::fs::symlink("x", world.beside("home/pwned")).unwrap();
    world.sinks[0].wait_for_one();
    let effects = world.effects();
    assert!(
        effects.iter().any(|effect| effect.contains("reached a listener")),
        "{effects:?}"
    );
    assert!(
        effects.iter().any(|effect| effect.contains("pwned")),
        "{effects:?}"
    );
}

fn by_kind(attacks: &[Attack]) -> BTreeMap<&str, Vec<&Attack>> {
    let mut kinds: BTreeMap<&str, Vec<&Attack>> = BTreeMap::new();
    for attack in attacks {
        kinds.entry(&attack.kind).or_default().push(attack);
    }
    kinds
}
