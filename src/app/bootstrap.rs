//! The first key: made when there is none, shown once, never again.

use std::{
    io::{self, Write},
    net::SocketAddr,
};

use tidegate_core::{
    caller::Scope,
    clock::{Clock, Entropy},
    id::KeyId,
    key::{KeyPolicy, KeyRecord},
    port::KeyStore,
    secret::PlainKey,
};

use super::Error;
use crate::keys;

/// The variable that names the first key, for containers and tests.
pub const VARIABLE: &str = "TIDEGATE_BOOTSTRAP_KEY";

/// What came of looking for a first key.
#[derive(Debug)]
pub enum FirstKey {
    /// It was made just now; this is the only time it can be shown.
    Made(KeyId, PlainKey),
    /// It was taken from the environment just now.
    Taken(KeyId),
    /// There was a key already, and the environment names none or one of them.
    Present,
    /// There was a key already, and the environment names another one, which opens nothing.
    Ignored,
}

/// Makes sure that there is a key. `given` is what the environment says.
pub async fn first_key(
    store: &dyn KeyStore,
    clock: &dyn Clock,
    entropy: &dyn Entropy,
    given: Option<&str>,
) -> Result<FirstKey, Error> {
    let (id, plain) = match given {
        Some(text) => {
            let parsed = keys::parse(text.trim()).map_err(Error::BootstrapKey)?;
            (parsed.id, PlainKey::new(text.trim()))
        }
        None => keys::generate(entropy),
    };
    let hash = keys::hash(&plain);
    let record = KeyRecord {
        id: id.clone(),
        hash,
        previous: None,
        created_at: clock.now(),
        last_used_at: None,
        policy: KeyPolicy {
            scopes: Scope::ALL.into(),
            ..KeyPolicy::new("bootstrap")
        },
    };
    if store.insert_first(&record).await? {
        return Ok(if given.is_some() {
            FirstKey::Taken(id)
        } else {
            FirstKey::Made(id, plain)
        });
    }
    if given.is_none() {
        return Ok(FirstKey::Present);
    }
    let stored = store.find(&id).await?;
    let opens = stored.is_some_and(|stored| keys::matches(&stored.hash, &hash));
    Ok(if opens {
        FirstKey::Present
    } else {
        FirstKey::Ignored
    })
}

/// Where a client on this machine, or the first allowed one, reaches the API.
pub fn base_url(bind: SocketAddr, allowed_hosts: &[String]) -> String {
    match allowed_hosts.first() {
        Some(host) if !bind.ip().is_loopback() => format!("http://{host}:{}", bind.port()),
        Some(_) | None if bind.ip().is_unspecified() => format!("http://127.0.0.1:{}", bind.port()),
        Some(_) | None => format!("http://{bind}"),
    }
}

/// Shows a new key with two ways to try it. The only place that shows one at start.
pub fn show(out: &mut dyn Write, base_url: &str, key: &PlainKey) -> io::Result<()> {
    let key = key.expose();
    writeln!(
        out,
        r#"
Your first key, shown this once. It opens everything, so keep it safe; `tidegate keys create` makes others.

    {key}

Try it:

    curl {base_url}/v1/chat/completions \
      -H "Authorization: Bearer {key}" \
      -H "Content-Type: application/json" \
      -d '{{"model": "tidegate", "messages": [{{"role": "user", "content": "What can you do for me?"}}]}}'

From Python, after `pip install openai`:

    from openai import OpenAI

    client = OpenAI(base_url="{base_url}/v1", api_key="{key}")
    stream = client.chat.completions.create(
        model="tidegate",
        messages=[{{"role": "user", "content": "What can you do for me?"}}],
        stream=True,
    )
    for chunk in stream:
        print(chunk.choices[0].delta.content or "", end="", flush=True)
"#
    )?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use jiff::tz::TimeZone;
    use tokio_util::{sync::CancellationToken, task::TaskTracker};

    use super::*;
    use crate::clock::{OsEntropy, SystemClock};

    /// A real store in a temporary folder, with its worker.
    struct Desk {
        store: tidegate_store::Store,
        clock: Arc<SystemClock>,
        stop: CancellationToken,
        tracker: TaskTracker,
        _folder: tempfile::TempDir,
    }

    impl Desk {
        async fn open() -> Self {
            let folder = tempfile::tempdir().unwrap();
            let clock = Arc::new(SystemClock::new(TimeZone::UTC));
            let options = tidegate_store::Options {
                path: folder.path().join("t.db"),
                ..tidegate_store::Options::default()
            };
            let (store, worker) = tidegate_store::Store::open(options, Arc::clone(&clock) as _)
                .await
                .unwrap();
            let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
            tracker.spawn(worker.run(stop.clone()));
            Self {
                store,
                clock,
                stop,
                tracker,
                _folder: folder,
            }
        }

        async fn first(&self, given: Option<&str>) -> Result<FirstKey, Error> {
            first_key(&self.store, &*self.clock, &OsEntropy, given).await
        }

        async fn close(self) {
            self.stop.cancel();
            self.tracker.close();
            self.tracker.wait().await;
        }
    }

    #[tokio::test]
    async fn a_key_is_made_once() {
        let desk = Desk::open().await;
        let FirstKey::Made(id, plain) = desk.first(None).await.unwrap() else {
            panic!("no key was made")
        };
        let stored = desk.store.find(&id).await.unwrap().unwrap();
        assert!(keys::matches(&stored.hash, &keys::hash(&plain)));
        assert_eq!(stored.policy.scopes, Scope::ALL.into());
        assert!(matches!(desk.first(None).await.unwrap(), FirstKey::Present));
        desk.close().await;
    }

    #[tokio::test]
    async fn the_environment_names_the_first_key_and_no_second() {
        let desk = Desk::open().await;
        let (id, plain) = keys::generate(&OsEntropy);
        let taken = desk.first(Some(plain.expose())).await.unwrap();
        assert!(matches!(taken, FirstKey::Taken(taken) if taken == id));
        assert!(matches!(
            desk.first(Some(plain.expose())).await.unwrap(),
            FirstKey::Present
        ));
        let (_, other) = keys::generate(&OsEntropy);
        assert!(matches!(
            desk.first(Some(other.expose())).await.unwrap(),
            FirstKey::Ignored
        ));
        let error = desk.first(Some("secret")).await.unwrap_err().to_string();
        assert!(
            error.contains("tidegate keys generate") && !error.contains("secret"),
            "{error}"
        );
        desk.close().await;
    }

    #[test]
    fn what_is_shown_can_be_pasted() {
        let (_, plain) = keys::generate(&OsEntropy);
        let mut text = Vec::new();
        show(&mut text, "http://127.0.0.1:8088", &plain).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert_eq!(text.matches(plain.expose()).count(), 3);
        assert!(text.contains(r#"{"model": "tidegate", "messages""#), "{text}");
    }

    #[test]
    fn the_address_shown_is_one_that_answers() {
        for (bind, hosts, shown) in [
            ("127.0.0.1:8088", vec![], "http://127.0.0.1:8088"),
            ("[::1]:8088", vec!["x"], "http://[::1]:8088"),
            (
                "0.0.0.0:80",
                vec!["agent.example.org"],
                "http://agent.example.org:80",
            ),
        ] {
            let hosts: Vec<_> = hosts.into_iter().map(str::to_owned).collect();
            assert_eq!(base_url(bind.parse().unwrap(), &hosts), shown);
        }
    }
}
