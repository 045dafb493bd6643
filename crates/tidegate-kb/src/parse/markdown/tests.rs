use super::*;

fn sections(text: &str) -> Vec<(String, String)> {
    let parsed = read(text.to_owned(), &Limits::default()).expect("a document");
    assert_eq!(parsed.text, text, "the text is the file");
    parsed
        .sections
        .iter()
        .map(|section| {
            for whole in &section.whole {
                assert!(section.bytes.start <= whole.start && whole.end <= section.bytes.end);
            }
            (
                section.headings.join("/"),
                text[section.bytes.clone()].trim().to_owned(),
            )
        })
        .collect()
}

#[test]
fn headings_make_sections() {
    for (text, expected) in [
        (
            "# A\n\nx\n\n## B\ny\n# C\nz",
            vec![("A", "x"), ("A/B", "y"), ("C", "z")],
        ),
        (
            "before\n\nA\n=\nx\n\nB\n---\ny",
            vec![("", "before"), ("A", "x"), ("A/B", "y")],
        ),
        (
            "## B ##\nx\n#no heading\n####### nor this",
            vec![("B", "x\n#no heading\n####### nor this")],
        ),
        (
            "# A\n```\n# code\n```\ntext",
            vec![("A", "```\n# code\n```\ntext")],
        ),
        ("~~~\n# never closed\n", vec![("", "~~~\n# never closed")]),
        ("# A\n## B\n## C\nx", vec![("A/B", "## B"), ("A/C", "x")]),
        ("# A", vec![("A", "# A")]),
        ("---\ntitle: T\n---\n# A\nx", vec![("A", "x")]),
        ("a\n\n---\n\nb", vec![("", "a\n\n---\n\nb")]),
        ("- item\n---\nb", vec![("", "- item\n---\nb")]),
        (
            "    # code by its indent\nx",
            vec![("", "# code by its indent\nx")],
        ),
        ("\u{feff}# A\r\nx\r\n", vec![("A", "x")]),
        ("", vec![]),
        ("# \n\n", vec![("", "#")]),
    ] {
        let expected: Vec<(String, String)> = expected
            .iter()
            .map(|(path, text)| ((*path).to_owned(), (*text).to_owned()))
            .collect();
        assert_eq!(sections(text), expected, "{text:?}");
    }
}

#[test]
fn tables_and_code_are_whole() {
    let text = "a\n\n| x | y |\n|---|---|\n| 1 | 2 |\n\nb\n\n```rust\nfn a() {}\n\nfn b() {}\n```\nc\n";
    let parsed = read(text.to_owned(), &Limits::default()).expect("a document");
    let whole: Vec<&str> = parsed.sections[0]
        .whole
        .iter()
        .map(|range| text[range.clone()].trim())
        .collect();
    assert_eq!(
        whole,
        [
            "| x | y |\n|---|---|\n| 1 | 2 |",
            "```rust\nfn a() {}\n\nfn b() {}\n```"
        ]
    );
}

#[test]
fn titles_come_from_the_head_or_the_first_heading() {
    for (text, expected) in [
        ("---\ntitle: T\nauthority: primary\n---\n# A\nx", Some("T")),
        ("# A\nx", Some("A")),
        ("x", None),
    ] {
        let parsed = read(text.to_owned(), &Limits::default()).expect("a document");
        assert_eq!(parsed.title.as_deref(), expected);
    }
}
