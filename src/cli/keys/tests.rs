use clap::Parser;
use jiff::tz::TimeZone;
use tidegate_store::Store;

use super::*;
use crate::{
    cli::args::{Arguments, Command},
    clock::{OsEntropy, SystemClock},
    lifecycle::Lifecycle,
};

/// A real database in a temporary folder.
struct Office {
    store: Store,
    clock: SystemClock,
    lifecycle: Lifecycle,
    _folder: tempfile::TempDir,
}

impl Office {
    async fn open() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = SystemClock::new(TimeZone::UTC);
        let options = tidegate_store::Options {
            path: folder.path().join("t.db"),
            ..tidegate_store::Options::default()
        };
        let (store, worker) = Store::open(options, std::sync::Arc::new(clock.clone()))
            .await
            .unwrap();
        let lifecycle = Lifecycle::new();
        lifecycle.writers.spawn(worker.run(lifecycle.closing.clone()));
        Self {
            store,
            clock,
            lifecycle,
            _folder: folder,
        }
    }

    /// Runs `tidegate keys …`; what it printed.
    async fn keys(&self, arguments: &[&str]) -> Result<String, Error> {
        let arguments = ["tidegate", "keys"].iter().chain(arguments);
        let Some(Command::Keys(command)) = Arguments::try_parse_from(arguments).unwrap().command else {
            panic!("not a keys command")
        };
        let desk = Desk {
            store: &self.store,
            clock: &self.clock,
            entropy: &OsEntropy,
            rotation_grace: Duration::from_mins(1),
        };
        let mut text = Vec::new();
        desk.run(&command, &mut text).await?;
        Ok(String::from_utf8(text).unwrap())
    }

    async fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.keys(arguments).await.unwrap()).unwrap()
    }
}

#[tokio::test]
async fn a_key_lives_and_dies() {
    let office = Office::open().await;
    let made = office
        .json(&[
            "create",
            "--name",
            "ann",
            "--scope",
            "chat",
            "--mode",
            "full-auto",
            "--expires",
            "90d",
            "--rpm",
            "5",
            "--tokens-per-day",
            "1000",
            "--model",
            "m",
            "--tool",
            "calculate",
            "--metadata",
            "team=a=b",
            "--json",
        ])
        .await;
    let raw = made["key"].as_str().unwrap();
    let id = made["id"].as_str().unwrap();
    assert_eq!(keys::parse(raw).unwrap().id.as_str(), id);

    let shown = office.json(&["show", id, "--json"]).await;
    assert_eq!(shown["scopes"], json!(["chat"]));
    assert_eq!(shown["mode_ceiling"], "full-auto");
    assert_eq!(shown["requests_per_minute"], 5);
    assert_eq!(shown["tokens_per_day"], 1000);
    assert_eq!(shown["models"], json!(["m"]));
    assert_eq!(shown["tools"], json!(["calculate"]));
    assert_eq!(shown["metadata"]["team"], "a=b");
    assert!(shown["expires_at"].is_string());
    // A pasted key names its id, and its secret is not looked up or repeated.
    assert_eq!(office.json(&["show", raw, "--json"]).await["id"], id);

    assert_eq!(office.json(&["disable", id, "--json"]).await["enabled"], false);
    assert!(office.keys(&["list"]).await.unwrap().contains("disabled"));
    assert_eq!(office.json(&["enable", id, "--json"]).await["enabled"], true);

    let rotated = office.json(&["rotate", id, "--grace", "1h", "--json"]).await;
    assert_ne!(rotated["key"], made["key"]);
    assert!(rotated["previous_valid_until"].is_string());

    let everything = office.keys(&["list", "--json"]).await.unwrap() + &office.keys(&["list"]).await.unwrap();
    for key in [&made["key"], &rotated["key"]] {
        let secret = key.as_str().unwrap().rsplit('_').next().unwrap();
        assert!(!everything.contains(secret));
    }
    assert_eq!(office.json(&["revoke", id, "--json"]).await["deleted"], true);
    let gone = office.keys(&["show", id]).await.unwrap_err();
    assert!(matches!(gone, Error::NotFound(_)) && gone.exit_code() == 1);
    office.lifecycle.close().await;
}

#[tokio::test]
async fn the_defaults_are_careful() {
    let office = Office::open().await;
    assert!(
        office
            .keys(&["list"])
            .await
            .unwrap()
            .contains("tidegate keys create")
    );
    let made = office.json(&["create", "--name", "x", "--json"]).await;
    assert_eq!(made["scopes"], json!(["chat", "tools"]));
    assert_eq!(made["mode_ceiling"], "readonly");
    assert_eq!(made["expires_at"], Value::Null);
    office.lifecycle.close().await;
}

#[tokio::test]
async fn what_makes_no_sense_is_said() {
    let office = Office::open().await;
    let long = "t".repeat(bounds::LISTED_CHARS_MAX + 1);
    for (arguments, word) in [
        (vec!["create", "--name", " "], "--name"),
        (vec!["create", "--name", "x", "--expires", "2001-01-01"], "past"),
        (vec!["create", "--name", "x", "--expires", "soon"], "2027-01-31"),
        (
            vec!["create", "--name", "x", "--metadata", "novalue"],
            "KEY=VALUE",
        ),
        (vec!["create", "--name", "\u{202e}nna"], "--name"),
        (vec!["create", "--name", "x", "--model", "m\n"], "--model"),
        (
            vec!["create", "--name", "x", "--tool", "a", "--tool", "b\u{200b}"],
            "--tool",
        ),
        (vec!["create", "--name", "x", "--tool", &long], "--tool"),
        (
            vec!["create", "--name", "x", "--metadata", "a=b\nc"],
            "--metadata",
        ),
        (vec!["create", "--name", "x", "--metadata", "=b"], "--metadata"),
        (vec!["rotate", "x", "--grace", "long"], "30m"),
    ] {
        let error = office.keys(&arguments).await.unwrap_err();
        assert_eq!(error.exit_code(), 2, "{arguments:?}");
        assert!(error.to_string().contains(word), "{error}");
    }
    office.lifecycle.close().await;
}

#[test]
fn a_generated_key_is_one() {
    let mut text = Vec::new();
    generate(&OsEntropy, &mut text).unwrap();
    keys::parse(String::from_utf8(text).unwrap().trim()).unwrap();
}

/// The daemon changes keys too. Whichever comes first, both changes stand.
#[tokio::test]
async fn a_change_by_the_daemon_at_the_same_time_stays() {
    let office = Office::open().await;
    let made = office.json(&["create", "--name", "x", "--json"]).await;
    let id = KeyId::new(made["id"].as_str().unwrap());
    let rename = async |name: &str| {
        let mut key = office.store.find(&id).await.unwrap().unwrap();
        loop {
            let renamed = KeyPolicy {
                name: name.to_owned(),
                ..key.policy.clone()
            };
            let set = office
                .store
                .set_policy(&id, &key.policy, &renamed, LastAdmin::MayGo)
                .await;
            match set.unwrap() {
                PolicyChange::Changed(_) => return,
                PolicyChange::Conflict(newer) => key = newer,
                PolicyChange::Missing | PolicyChange::LastAdmin => panic!("the key is gone"),
            }
        }
    };
    for round in 0..20 {
        let (word, enabled) = if round % 2 == 0 {
            ("disable", false)
        } else {
            ("enable", true)
        };
        let name = format!("name {round}");
        let command = [word, id.as_str()];
        let (switched, ()) = tokio::join!(office.keys(&command), rename(&name));
        switched.unwrap();
        let found = office.store.find(&id).await.unwrap().unwrap().policy;
        assert_eq!((found.name, found.enabled), (name, enabled));
    }
    office.lifecycle.close().await;
}

#[tokio::test]
async fn the_last_administrator_goes_only_by_force() {
    let office = Office::open().await;
    let make = async |name: &str| {
        let made = office
            .json(&["create", "--name", name, "--scope", "admin", "--json"])
            .await;
        made["id"].as_str().unwrap().to_owned()
    };
    let (first, second) = (make("first").await, make("second").await);
    office.keys(&["disable", &first]).await.unwrap();
    for command in ["disable", "revoke", "delete"] {
        let error = office.keys(&[command, &second]).await.unwrap_err();
        assert!(
            matches!(error, Error::Refused(_)) && error.exit_code() == 1,
            "{error}"
        );
        assert!(
            error.to_string().contains("--scope admin") && error.to_string().contains("--force"),
            "{error}"
        );
    }
    office.keys(&["enable", &first]).await.unwrap();
    office.keys(&["revoke", &second]).await.unwrap();
    office.keys(&["revoke", &first, "--force"]).await.unwrap();
    office.lifecycle.close().await;
}
