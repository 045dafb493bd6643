use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
};

use tidegate_core::port::KeyStore as _;

use super::inspect;
use crate::{
    conformance::key,
    tests::{Opened, folder},
};

/// What lies in a folder, with the content of each file.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let entries = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    entries
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect()
}

#[tokio::test]
async fn an_inspection_leaves_everything_as_it_is() {
    let (folder, path) = folder();
    assert_eq!(inspect(&path).await.unwrap(), None);
    assert!(!path.exists());
    let opened = Opened::at(&path).await;
    opened.store.insert(&key("a", 0)).await.unwrap();
    opened.close().await;
    let before = contents(path.parent().unwrap());
    let found = inspect(&path).await.unwrap().unwrap();
    assert!(
        found.has_keys && found.faults.is_empty() && found.write_fault.is_none(),
        "{found:?}"
    );
    assert_eq!(contents(path.parent().unwrap()), before);

    let empty = folder.path().join("empty.db");
    std::fs::File::create_new(&empty).unwrap();
    let found = inspect(&empty).await.unwrap().unwrap();
    assert_eq!((found.schema_version, found.has_keys), (0, false));
    assert_eq!(empty.metadata().unwrap().len(), 0, "it is not migrated");

    let damaged = folder.path().join("damaged.db");
    std::fs::copy(&path, &damaged).unwrap();
    let length = damaged.metadata().unwrap().len();
    std::fs::OpenOptions::new()
        .write(true)
        .open(&damaged)
        .unwrap()
        .set_len(length / 2)
        .unwrap();
    match inspect(&damaged).await {
        Ok(found) => assert!(!found.unwrap().faults.is_empty()),
        Err(error) => assert!(error.to_string().contains("damaged.db"), "{error}"),
    }
}
