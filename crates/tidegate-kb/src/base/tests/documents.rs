use tidegate_core::knowledge::{CitationId, DocumentState};

use super::*;

#[tokio::test]
async fn documents_are_read_by_citation_place_and_page() {
    let bench = office().await;
    let base = bench.base(Options::default());
    let answer = base
        .search(&request("doctor's certificate after three days ill"))
        .await
        .unwrap();
    let sick = answer.passages[0].citation.clone();
    let around = base
        .read(&ReadFrom::Citation(sick.clone()), 10_000)
        .await
        .unwrap();
    assert_eq!((around.parts.len(), around.chunks, around.next), (2, 2, None));
    assert!(around.parts[1].citation == sick && around.document.title == "Leave");
    let alone = base.read(&ReadFrom::Citation(sick), 10).await.unwrap();
    assert_eq!((alone.parts.len(), alone.parts[0].ordinal), (1, 1));
    let from = |ordinal| ReadFrom::Document {
        path: "handbook/leave.md".to_owned(),
        ordinal,
    };
    let begin = base.read(&from(0), 1).await.unwrap();
    assert_eq!((begin.parts.len(), begin.next), (1, Some(1)));
    assert!(matches!(
        base.read(&from(9), 1).await,
        Err(KnowledgeError::NotFound(_))
    ));
    let page = ReadFrom::Page {
        path: "handbook/leave.md".to_owned(),
        page: 2,
    };
    assert!(matches!(
        base.read(&page, 100).await,
        Err(KnowledgeError::NotFound(_))
    ));
    let nowhere = ReadFrom::Document {
        path: "no.md".to_owned(),
        ordinal: 0,
    };
    assert!(matches!(
        base.read(&nowhere, 100).await,
        Err(KnowledgeError::NotFound(_))
    ));
    let unknown = CitationId::of_digest(&[1; 32]);
    let error = base
        .read(&ReadFrom::Citation(unknown.clone()), 100)
        .await
        .unwrap_err();
    assert!(error.to_string().contains(unknown.as_str()));
    bench.close().await;
}

#[tokio::test]
async fn documents_are_listed_in_pages_and_counted() {
    let bench = office().await;
    let base = bench.base(Options::default());
    let (first, more) = base.list(&Filter::default(), None, 3).await.unwrap();
    assert!(more && first.len() == 3);
    let (rest, more) = base
        .list(&Filter::default(), Some(&first[2].path), 3)
        .await
        .unwrap();
    assert!(!more && rest.len() == 2);
    assert!(matches!(rest[0].state, DocumentState::Indexed { chunks: 1, .. }));
    let status = base.status().await.unwrap();
    assert_eq!((status.documents, status.chunks, status.embedded), (5, 6, 6));
    assert_eq!((status.vectors_in, status.problems.len()), ("embedded", 0));
    assert_eq!(status.serving_model, status.configured_model);
    bench.close().await;
}
