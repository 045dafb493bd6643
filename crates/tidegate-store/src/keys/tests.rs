use tidegate_core::{
    caller::Scope,
    clock::Clock as _,
    key::KeyRecord,
    port::{KeyRemoval, KeyStore as _, LastAdmin, PolicyChange},
};

use crate::{
    Store,
    conformance::key,
    tests::{Morning, Opened, folder},
};

/// Two processes, each with a connection of its own, take away the two administrators at the same moment: one of
/// them must find the other's change, in whatever way each of them does it.
#[tokio::test]
async fn two_processes_cannot_take_away_both_administrators() {
    let (_folder, path) = folder();
    let (daemon, cli) = (Opened::at(&path).await, Opened::at(&path).await);
    let rule = LastAdmin::Stays { now: Morning.now() };
    let take = async |store: &Store, record: &KeyRecord, way: usize| match way {
        0 => store.delete(&record.id, rule).await.unwrap() == KeyRemoval::Removed,
        way => {
            let mut policy = record.policy.clone();
            match way {
                1 => policy.enabled = false,
                2 => policy.expires_at = Some(Morning.now()),
                _ => policy.scopes = [Scope::Chat].into(),
            }
            let set = store.set_policy(&record.id, &record.policy, &policy, rule).await;
            matches!(set.unwrap(), PolicyChange::Changed(_))
        }
    };
    // One who looks like an administrator and is none.
    let mut expired = key("expired", 0);
    expired.policy.scopes = [Scope::Admin].into();
    expired.policy.expires_at = Some(Morning.now());
    daemon.store.insert(&expired).await.unwrap();
    for round in 0..32 {
        let admins = ["a", "b"].map(|name| {
            let mut record = key(&format!("{name}{round}"), 0);
            record.policy.scopes = [Scope::Chat, Scope::Admin].into();
            record
        });
        for record in &admins {
            daemon.store.insert(record).await.unwrap();
        }
        let (one, other) = tokio::join!(
            take(&daemon.store, &admins[0], round % 4),
            take(&cli.store, &admins[1], round / 4 % 4)
        );
        assert!(one != other, "round {round}: exactly one of them went");
        for record in &admins {
            daemon.store.delete(&record.id, LastAdmin::MayGo).await.unwrap();
        }
    }
    cli.close().await;
    daemon.close().await;
}
