use serde_json::{Value, json};
use tidegate_core::{
    clock::Timestamp,
    knowledge::{
        Authority, CitationId, Document, DocumentPart, DocumentState, DocumentText, Filter, Format, Passage,
        Place, ReadFrom, SearchAnswer,
    },
};

use super::{citations, filter, found, listed, page, start};
use crate::{arguments::Values, registry::Registry};

fn with<T>(tool: &str, arguments: &Value, check: impl FnOnce(&Values<'_>) -> T) -> T {
    let registry = Registry::built_in().unwrap();
    let spec = &registry.get(tool).unwrap().spec;
    let map = arguments.as_object().cloned().unwrap();
    check(&Values::from_object(&map, spec).unwrap())
}

fn id(number: u8) -> CitationId {
    CitationId::of_digest(&[number; 32])
}

fn place(headings: &[&str], page: Option<u32>) -> Place {
    Place {
        headings: headings.iter().map(|heading| (*heading).to_owned()).collect(),
        page,
        bytes: 0..10,
    }
}

fn document(path: &str, state: DocumentState) -> Document {
    Document {
        path: path.to_owned(),
        title: "Staff handbook".to_owned(),
        format: Format::Pdf,
        authority: Authority::Primary,
        bytes: 1000,
        modified_at: Timestamp::UNIX_EPOCH,
        indexed_at: Timestamp::UNIX_EPOCH,
        state,
    }
}

#[test]
fn a_passage_stands_below_its_id_and_its_source() {
    let answer = SearchAnswer {
        passages: vec![Passage {
            citation: id(1),
            document: "rules/leave.pdf".to_owned(),
            title: "Leave".to_owned(),
            place: place(&["Leave", "Parental leave"], Some(3)),
            authority: Authority::Primary,
            text: "Twelve weeks.\n".to_owned(),
            score: 1.0,
        }],
        words_only: Some("only words were compared: the embedder rests".to_owned()),
        pending: 0,
    };
    let text = found(&answer, true);
    let expected = format!(
        "[{}] rules/leave.pdf, primary, page 3: Leave > Parental leave\nTwelve weeks.\n",
        id(1)
    );
    assert!(text.contains(&expected), "{text}");
    assert!(
        text.contains("(Note: only words were compared: the embedder rests.)"),
        "{text}"
    );
    assert!(!text.contains("still being read"), "{text}");
    assert!(found(&answer, false).contains("still being read"));
}

#[test]
fn nothing_relevant_is_said_in_words() {
    let text = found(&SearchAnswer::default(), true);
    assert!(
        text.starts_with("Nothing in the documents is about this."),
        "{text}"
    );
    let pending = SearchAnswer {
        pending: 7,
        ..SearchAnswer::default()
    };
    assert!(found(&pending, true).contains("7 files are still being read"));
}

#[test]
fn a_filter_is_what_the_arguments_say() {
    let arguments = json!({"query": "x", "path": "a/**", "format": "pdf", "authority_min": "primary"});
    let expected = Filter {
        paths: vec!["a/**".to_owned()],
        formats: vec![Format::Pdf],
        authority_min: Some(Authority::Primary),
    };
    assert_eq!(with("search_knowledge_base", &arguments, filter), Ok(expected));
    assert_eq!(
        with(
            "search_knowledge_base",
            &json!({"query": "x", "path": " "}),
            filter
        ),
        Ok(Filter::default())
    );
}

#[test]
fn a_document_is_read_from_a_citation_a_page_or_a_part() {
    let from = |arguments: Value| with("read_document", &arguments, start);
    let citation = id(4);
    assert_eq!(
        from(json!({"citation": format!("[{citation}]")})),
        Ok(ReadFrom::Citation(citation))
    );
    let path = "a.pdf".to_owned();
    assert_eq!(
        from(json!({"path": "a.pdf", "page": 3})),
        Ok(ReadFrom::Page {
            path: path.clone(),
            page: 3
        })
    );
    assert_eq!(
        from(json!({"path": "a.pdf", "part": 2})),
        Ok(ReadFrom::Document {
            path: path.clone(),
            ordinal: 1
        })
    );
    assert_eq!(
        from(json!({"path": "a.pdf"})),
        Ok(ReadFrom::Document { path, ordinal: 0 })
    );
    for bad in [
        json!({}),
        json!({"citation": "kb-1"}),
        json!({"citation": "../../etc/passwd"}),
        json!({"citation": id(1).as_str(), "path": "a.pdf"}),
    ] {
        assert!(from(bad.clone()).is_err(), "{bad}");
    }
}

#[test]
fn a_page_of_a_document_says_how_to_go_on_and_carries_its_citations() {
    let text = DocumentText {
        document: document(
            "leave.pdf",
            DocumentState::Indexed {
                chunks: 9,
                generation: 1,
            },
        ),
        parts: vec![DocumentPart {
            citation: id(2),
            ordinal: 3,
            place: place(&[], Some(2)),
            text: "Some words.".to_owned(),
        }],
        next: Some(4),
        chunks: 9,
    };
    let shown = page(&text);
    assert!(
        shown.starts_with("leave.pdf (Staff handbook, primary)\n"),
        "{shown}"
    );
    assert!(
        shown.contains(&format!("[{}], page 2\nSome words.\n", id(2))),
        "{shown}"
    );
    assert!(
        shown.contains("go on with path `leave.pdf` and part 5 of 9"),
        "{shown}"
    );
    let cited = citations(&text);
    assert_eq!(cited.len(), 1);
    assert_eq!((&cited[0].id, cited[0].document.as_str()), (&id(2), "leave.pdf"));
    let last = DocumentText { next: None, ..text };
    assert!(!page(&last).contains("go on"), "{}", page(&last));
}

#[test]
fn a_list_names_what_cannot_be_read() {
    let documents = [
        document(
            "a.pdf",
            DocumentState::Indexed {
                chunks: 2,
                generation: 1,
            },
        ),
        document(
            "b.pdf",
            DocumentState::Failed {
                code: "scanned_pdf".to_owned(),
                reason: "it holds pictures of pages".to_owned(),
                hint: "run it through text recognition".to_owned(),
            },
        ),
    ];
    let text = listed(&documents, true);
    assert!(
        text.contains("a.pdf (Staff handbook; pdf, primary, 2 parts)"),
        "{text}"
    );
    assert!(
        text.contains("not readable: it holds pictures of pages"),
        "{text}"
    );
    assert!(text.contains("go on with after `b.pdf`"), "{text}");
    assert_eq!(listed(&[], false), "There is no such document.");
}
