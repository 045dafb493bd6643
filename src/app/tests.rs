use std::path::Path;

use super::*;
use crate::config::{Flags, load};

/// The settings of a home in a temporary folder.
fn settings(home: &Path, pairs: &[(&str, &str)]) -> Settings {
    let flags = Flags {
        file: None,
        settings: pairs
            .iter()
            .map(|(key, text)| ("--set".to_owned(), (*key).to_owned(), (*text).to_owned()))
            .collect(),
    };
    let environment = Environment::default();
    Settings::resolve(&load(&flags, &environment).unwrap(), &environment, home).unwrap()
}

fn shipped(home: &Path) {
    for file in shipped::FILES {
        shipped::write(home, file).unwrap();
    }
}

/// No Ollama of the machine that runs the tests may matter.
const ALONE: [(&str, &str); 3] = [
    ("discovery.ollama", "false"),
    ("server.bind", "127.0.0.1:0"),
    ("time_zone", "UTC"),
];

#[tokio::test]
async fn without_instructions_the_error_says_how_to_get_them() {
    let home = tempfile::tempdir().unwrap();
    let lifecycle = Lifecycle::new();
    let built = App::build(
        settings(home.path(), &ALONE),
        &Environment::default(),
        &lifecycle,
        Purpose::Serve,
    )
    .await;
    assert!(built.unwrap_err().to_string().contains("tidegate init"));
    lifecycle.close().await;
}

#[tokio::test]
async fn an_app_starts_shows_its_key_once_and_stops() {
    let home = tempfile::tempdir().unwrap();
    shipped(home.path());
    let mut shown = Vec::new();
    for start in 1..=2 {
        let lifecycle = Lifecycle::new();
        let environment = Environment::default();
        let app = App::build(
            settings(home.path(), &ALONE),
            &environment,
            &lifecycle,
            Purpose::Serve,
        )
        .await
        .unwrap();
        assert!(matches!(app.source, Source::Nothing(_)));
        let before = shown.len();
        app.serve(&environment, &mut shown).await.unwrap();
        assert_eq!(shown.len() > before, start == 1);
        lifecycle.soft.cancel();
        let signal = async || std::future::pending().await;
        assert_eq!(
            lifecycle.shut_down(signal, 5_000).await,
            crate::lifecycle::Drained::Finished
        );
        drop(app);
        assert!(lifecycle.close().await);
    }
    let text = String::from_utf8(shown).unwrap();
    let key = text
        .split_whitespace()
        .find(|word| word.starts_with("tg_"))
        .unwrap();
    crate::keys::parse(key).unwrap();
}

#[tokio::test]
async fn a_second_daemon_on_the_same_data_is_refused() {
    let home = tempfile::tempdir().unwrap();
    shipped(home.path());
    let lifecycle = Lifecycle::new();
    let environment = Environment::default();
    let first = App::build(
        settings(home.path(), &ALONE),
        &environment,
        &lifecycle,
        Purpose::Serve,
    )
    .await
    .unwrap();
    let second = App::build(
        settings(home.path(), &ALONE),
        &environment,
        &lifecycle,
        Purpose::Serve,
    )
    .await;
    assert!(matches!(
        second,
        Err(Error::Database(tidegate_store::Error::DaemonRunning { .. }))
    ));
    let looked = App::build(
        settings(home.path(), &ALONE),
        &environment,
        &lifecycle,
        Purpose::Look,
    )
    .await;
    assert!(looked.is_ok());
    drop((first, looked));
    lifecycle.close().await;
}

#[tokio::test]
async fn a_key_that_cannot_be_shown_does_not_stay() {
    /// A closed terminal.
    struct Closed;
    impl Write for Closed {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::BrokenPipe.into())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let home = tempfile::tempdir().unwrap();
    shipped(home.path());
    let lifecycle = Lifecycle::new();
    let environment = Environment::default();
    let app = App::build(
        settings(home.path(), &ALONE),
        &environment,
        &lifecycle,
        Purpose::Serve,
    )
    .await
    .unwrap();
    let error = app.serve(&environment, &mut Closed).await.unwrap_err();
    assert!(matches!(error, Error::KeyNotShown(_)));
    let again = bootstrap::first_key(&*app.store, &*app.clock, &OsEntropy, None)
        .await
        .unwrap();
    assert!(matches!(again, FirstKey::Made(..)));
    lifecycle.soft.cancel();
    lifecycle.tracker.close();
    lifecycle.tracker.wait().await;
    lifecycle.close().await;
}
