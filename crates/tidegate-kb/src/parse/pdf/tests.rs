use std::collections::BTreeMap;

use super::{
    layout::{Bookmark, Layout},
    lines::{Line, Page},
    *,
};

fn line(text: &str, size: u32, is_apart: bool) -> Line {
    Line {
        text: text.to_owned(),
        size,
        is_apart,
        is_close: !is_apart,
    }
}

fn laid_out(pages: Vec<Vec<Line>>, bookmarks: &[Bookmark]) -> Vec<(String, u32, String)> {
    let pages: BTreeMap<u32, Page> = (1..).zip(pages.into_iter().map(|lines| Page { lines })).collect();
    let limits = Limits::default();
    let mut builder = Builder::new(&limits);
    Layout::new(pages, bookmarks).write(&mut builder).expect("a text");
    let parsed = builder.finish(Format::Pdf).expect("a document");
    parsed
        .sections
        .iter()
        .map(|section| {
            let text = parsed.text[section.bytes.clone()].trim().to_owned();
            (section.headings.join("/"), section.page.expect("a page"), text)
        })
        .collect()
}

fn found(sections: &[(&str, u32, &str)]) -> Vec<(String, u32, String)> {
    sections
        .iter()
        .map(|(path, page, text)| ((*path).to_owned(), *page, (*text).to_owned()))
        .collect()
}

const BODY: &str = "a long line of ordinary text that says what the document is about and goes on";

#[test]
fn headings_by_size_and_paragraphs_by_gaps() {
    let pages = vec![vec![
        line("Annual", 200, true),
        line("report", 200, false),
        line(BODY, 100, true),
        line("and it is exam-", 100, false),
        line("ple text", 100, false),
        line(BODY, 100, true),
        line("Part", 140, true),
        line(BODY, 100, true),
    ]];
    let first = format!("{BODY}\nand it is example text\n\n{BODY}");
    assert_eq!(
        laid_out(pages, &[]),
        found(&[("Annual report", 1, &first), ("Annual report/Part", 1, BODY)])
    );
}

#[test]
fn running_heads_and_page_numbers_go() {
    let page = |number: u32| {
        vec![
            line("The handbook", 100, true),
            line(
                &format!("{BODY} number {number}x{}", "y".repeat(number as usize)),
                100,
                true,
            ),
            line("more", 100, true),
            line("still more", 100, true),
            line(&format!("Page {number} of 5"), 100, true),
        ]
    };
    let sections = laid_out((1..=5).map(page).collect(), &[]);
    assert_eq!(sections.len(), 5);
    for (_, _, text) in sections {
        assert!(!text.contains("handbook") && !text.contains("Page"), "{text}");
        assert!(text.starts_with(BODY), "{text}");
    }
}

#[test]
fn the_outline_names_headings_across_pages() {
    let bookmark = |page, level, title: &str| Bookmark {
        page,
        level,
        title: title.to_owned(),
    };
    let pages = vec![
        vec![
            line("1. Scope", 100, true),
            line(BODY, 100, true),
            line("1.1 Terms", 100, true),
        ],
        vec![line("terms go on here", 100, true)],
    ];
    let bookmarks = [bookmark(1, 1, "Scope"), bookmark(1, 2, "Terms")];
    assert_eq!(
        laid_out(pages, &bookmarks),
        found(&[
            ("1. Scope", 1, BODY),
            ("1. Scope/1.1 Terms", 2, "terms go on here")
        ])
    );
}

#[test]
fn garbage_is_told_apart() {
    for bytes in [
        &b"%PDF-1.7\n"[..],
        b"%PDF-1.4\n1 0 obj\n<</Type/Catalog>>\nendobj\ntrailer<</Root 1 0 R>>\n%%EOF",
    ] {
        let outcome = read(bytes, &Limits::default());
        assert!(matches!(outcome, Err(Problem::Corrupt(_))), "{outcome:?}");
    }
}
