use std::{fmt::Write as _, fs, io::Write, path::PathBuf};

use proptest::prelude::*;
use zip::{ZipWriter, write::SimpleFileOptions};

use super::*;

fn fixture(name: &str) -> Vec<u8> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/fixtures/knowledge");
    fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// An archive of these entries.
fn packed(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = ZipWriter::new(std::io::Cursor::new(Vec::new()));
    for (name, bytes) in entries {
        zip.start_file(*name, SimpleFileOptions::default())
            .expect("an entry");
        zip.write_all(bytes).expect("its bytes");
    }
    zip.finish().expect("an archive").into_inner()
}

/// A Word document with this body.
fn docx(body: &str) -> Vec<u8> {
    packed(&[(
        "word/document.xml",
        format!("<w:document><w:body>{body}</w:body></w:document>").as_bytes(),
    )])
}

fn sections(name: &str, bytes: &[u8]) -> (Parsed, Vec<String>) {
    let parsed = read(name, bytes, &Limits::default()).unwrap_or_else(|problem| panic!("{name}: {problem}"));
    let sections = parsed
        .sections
        .iter()
        .map(|section| {
            let page = section.page.map(|page| format!("{page}:")).unwrap_or_default();
            let text = parsed.text[section.bytes.clone()].trim().replace('\n', "/");
            format!("{page}{}|{text}", section.headings.join(">"))
        })
        .collect();
    (parsed, sections)
}

#[test]
fn a_pdf_has_pages_and_headings() {
    for name in ["handbook.pdf", "owner-locked.pdf"] {
        let (parsed, sections) = sections(name, &fixture(name));
        assert_eq!(
            (parsed.format, parsed.title.as_deref()),
            (Format::Pdf, Some("Pump handbook 2024"))
        );
        let starts: Vec<&str> = sections
            .iter()
            .map(|section| &section[..section.find('|').unwrap() + 12])
            .collect();
        assert_eq!(
            starts,
            [
                "1:Pump handbook|Pump handbo",
                "1:Safety|Disconnect ",
                "1:Safety>Protective equipment|Gloves and ",
                "2:Maintenance|Replace the",
                "3:Disposal|Used oil is",
            ],
            "{sections:#?}"
        );
        assert!(parsed.text.contains("order number\nSK-4711") || parsed.text.contains("SK-4711"));
    }
}

#[test]
fn a_word_document_has_headings_lists_and_tables() {
    let (parsed, sections) = sections("policy.docx", &fixture("policy.docx"));
    assert_eq!(
        (parsed.format, parsed.title.as_deref()),
        (Format::Docx, Some("Travel policy"))
    );
    assert_eq!(
        sections,
        [
            "Travel policy>Booking|Trips are booked at least fourteen days ahead.//- First class is for journeys of more than six \
             hours./- Taxis need a reason.",
            "Travel policy>Booking>Allowances|| Country | Per day |/| Norway | 95 euros |/| Portugal | 48 euros |",
        ]
    );
    assert_eq!(parsed.sections[1].whole.len(), 1);
}

#[test]
fn slides_are_pages_with_notes() {
    let (parsed, sections) = sections("review.pptx", &fixture("review.pptx"));
    assert_eq!(
        (parsed.format, parsed.title.as_deref()),
        (Format::Pptx, Some("Quarterly review"))
    );
    assert_eq!(
        sections,
        [
            "1:Quarterly review|Third quarter",
            "2:Sales|Revenue rose by twelve percent/Churn fell to two percent//Mention the Lisbon office.",
            "3:Regions|| Region | Sales |/| North | 120 |",
        ]
    );
}

#[test]
fn rows_of_sheets_carry_their_headers() {
    let (parsed, sections) = sections("stock.xlsx", &fixture("stock.xlsx"));
    assert_eq!(parsed.format, Format::Xlsx);
    assert_eq!(
        sections,
        [
            "1:Inventory|Part: Seal kit; Stock: 12; Price: 38.5; Since: 2024-02-29/Part: Valve; Stock: 3; Since: \
             2023-12-01 14:30",
            "2:Suppliers|Name: Nordic Seals; City: Bergen",
        ]
    );
}

#[test]
fn chapters_of_a_book_come_in_the_order_of_reading() {
    let (parsed, sections) = sections("tale.epub", &fixture("tale.epub"));
    assert_eq!(
        (parsed.format, parsed.title.as_deref()),
        (Format::Epub, Some("The lighthouse"))
    );
    assert_eq!(
        sections,
        [
            "Arrival|The keeper came ashore in a storm.",
            "The lamp|He lit the lamp at dusk — every day."
        ]
    );
}

/// Every bad file has one outcome.
#[test]
fn bad_files_have_a_clear_outcome() {
    let half = |name: &str| {
        let bytes = fixture(name);
        bytes[..bytes.len() / 2].to_vec()
    };
    let laughs = "<!DOCTYPE d [<!ENTITY a \"ha\"><!ENTITY b \"&a;&a;&a;&a;\">]><w:document><w:t>&b;</w:t></w:document>";
    let ole = |inner: &str| {
        let mut bytes = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1".to_vec();
        bytes.extend(inner.encode_utf16().flat_map(u16::to_le_bytes));
        bytes
    };
    let nested = packed(&[("inner.zip", &packed(&[("bomb", "0".repeat(1 << 16).as_bytes())]))]);
    for (name, bytes, code) in [
        ("empty.md", Vec::new(), "empty"),
        ("blank.md", b" \n\n\t".to_vec(), "no_text"),
        (
            "blank.html",
            b"<html><script>x</script></html>".to_vec(),
            "no_text",
        ),
        ("binary.md", b"# Title\n\0\0\0\x01\x02".to_vec(), "binary"),
        (
            "binary.xyz",
            (0..=255).cycle().take(5000).collect(),
            "unsupported_format",
        ),
        (
            "image.md",
            b"\x89PNG\r\n\x1a\n....".to_vec(),
            "unsupported_format",
        ),
        ("locked.pdf", fixture("locked.pdf"), "password_protected"),
        ("locked.docx", fixture("locked.docx"), "password_protected"),
        ("old.doc", ole("WordDocument"), "unsupported_format"),
        ("scan.pdf", fixture("scan.pdf"), "scanned_pdf"),
        ("cut.pdf", b"%PDF-1.7\n1 0 obj\n<< /Type /Ca".to_vec(), "corrupt"),
        ("cut.docx", half("policy.docx"), "corrupt"),
        ("cut.xlsx", half("stock.xlsx"), "corrupt"),
        ("cut.epub", half("tale.epub"), "corrupt"),
        ("text.pdf", b"just words".to_vec(), "wrong_extension"),
        ("text.docx", b"just words".to_vec(), "wrong_extension"),
        ("archive.zip", packed(&[("a.txt", b"text")]), "unsupported_format"),
        ("nested.docx", nested, "unsupported_format"),
        (
            "laughs.docx",
            packed(&[("word/document.xml", laughs.as_bytes())]),
            "corrupt",
        ),
        (
            "bomb.docx",
            docx(&"<w:p/>".repeat(20 << 20 >> 2)),
            "unpacks_too_large",
        ),
        ("deep.docx", docx(&"<w:tbl>".repeat(100_000)), "too_deeply_nested"),
        ("unclosed.docx", docx("<w:p><w:r>"), "corrupt"),
        ("none.docx", docx("<w:p/>"), "no_text"),
        ("deep.json", "[".repeat(100_000).into_bytes(), "too_deeply_nested"),
    ] {
        let problem = read(name, &bytes, &Limits::default()).expect_err(name);
        assert_eq!(problem.code(), code, "{name}: {problem}");
        assert!(
            !problem.hint().is_empty() && !problem.to_string().ends_with('.'),
            "{name}"
        );
    }
}

/// What looks bad and can be read.
#[test]
fn odd_files_are_read_all_the_same() {
    let pdf = fixture("handbook.pdf");
    // A tenth is missing: the table of objects is gone, the pages are not.
    let cut = pdf[..pdf.len() * 9 / 10].to_vec();
    let utf16: Vec<u8> = std::iter::once(0xfeff_u16)
        .chain("Größe der Pumpe".encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    for (name, bytes, format, words) in [
        ("named.md", pdf, Format::Pdf, "Disconnect the power"),
        ("cut.pdf", cut, Format::Pdf, "Disconnect the power"),
        ("stock.docx", fixture("stock.xlsx"), Format::Xlsx, "Seal kit"),
        (
            "page.txt",
            b"<!DOCTYPE html><p>words".to_vec(),
            Format::Html,
            "words",
        ),
        ("wide.txt", utf16, Format::Text, "Größe der Pumpe"),
        (
            "latin.txt",
            b"Gr\xf6\xdfe der Pumpe und \xdcbung".to_vec(),
            Format::Text,
            "Größe der Pumpe und Übung",
        ),
        ("unknown.xyz", b"some words".to_vec(), Format::Text, "some words"),
        ("README", b"some words".to_vec(), Format::Text, "some words"),
        (".gitignore", b"target".to_vec(), Format::Text, "target"),
        ("main.rs", b"fn main() {}".to_vec(), Format::Code, "fn main() {}"),
        ("a.tsv", b"a\tb\n1\t2".to_vec(), Format::Csv, "a: 1; b: 2"),
        ("a.jsonl", b"{\"a\":1}\n{\"a\":2}".to_vec(), Format::Json, "a: 2"),
        (
            "about.md",
            b"# On %PDF-\nfiles".to_vec(),
            Format::Markdown,
            "files",
        ),
        (
            "a.docx",
            docx("<w:p><w:t>a &lt; b &#228;</w:t></w:p>"),
            Format::Docx,
            "a < b ä",
        ),
    ] {
        let parsed =
            read(name, &bytes, &Limits::default()).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert_eq!(parsed.format, format, "{name}");
        assert!(parsed.text.contains(words), "{name}: {}", parsed.text);
    }
}

#[test]
fn what_is_deleted_or_doubled_in_a_word_document_is_not_read() {
    let body = "<w:p><w:r><w:t>kept</w:t></w:r><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>\
                <mc:AlternateContent><mc:Choice><w:t> once</w:t></mc:Choice><mc:Fallback><w:t> once</w:t></mc:Fallback>\
                </mc:AlternateContent></w:p><w:tbl><w:tr><w:tc><w:p><w:t>a</w:t></w:p><w:tbl><w:tr><w:tc><w:p><w:t>in\
                </w:t></w:p></w:tc></w:tr></w:tbl></w:tc><w:tc><w:p><w:t>b</w:t></w:p></w:tc></w:tr></w:tbl>";
    let parsed = read("a.docx", &docx(body), &Limits::default()).expect("a document");
    assert_eq!(parsed.text, "kept once\n\n| a| in | | b |");
}

#[test]
fn bounds_hold() {
    let limits = Limits {
        file_bytes_max: 1000,
        text_bytes_max: 300,
        sections_max: 3,
        entries_max: 2,
        pages_max: 1,
        ..Limits::default()
    };
    let many = packed(&[("a", b""), ("b", b""), ("word/document.xml", b"<a/>")]);
    for (name, bytes, code) in [
        ("a.md", vec![b'a'; 1001], "too_large"),
        ("a.md", b"# a\nx\n".repeat(4), "too_much_content"),
        (
            "a.html",
            format!("<p>{}", "x ".repeat(400)).into_bytes(),
            "too_much_content",
        ),
        (
            "a.csv",
            format!("{},b\n{}", "a".repeat(100), "1,2\n".repeat(9)).into_bytes(),
            "too_much_content",
        ),
        ("a.docx", many, "unpacks_too_large"),
    ] {
        let problem = read(name, &bytes, &limits).expect_err(name);
        assert_eq!(problem.code(), code, "{name}: {problem}");
    }
    let one_page = Limits {
        pages_max: 1,
        ..Limits::default()
    };
    for name in ["handbook.pdf", "review.pptx", "stock.xlsx", "tale.epub"] {
        let problem = read(name, &fixture(name), &one_page).expect_err(name);
        assert_eq!(problem.code(), "too_much_content", "{name}: {problem}");
    }
}

/// Ten megabytes without a border, in each of the formats that are read in the daemon's own process.
#[test]
fn huge_lines_are_read_in_one_pass() {
    let limits = Limits::default();
    let huge = "x".repeat(10 << 20);
    for name in ["a.md", "a.txt", "a.rs", "a.csv"] {
        assert!(read(name, huge.as_bytes(), &limits).is_ok(), "{name}");
    }
    let mut lines = String::new();
    for number in 0..200_000 {
        writeln!(lines, "# h{number}").expect("a line");
    }
    let outcome = read("a.md", lines.as_bytes(), &limits);
    assert_eq!(outcome.expect_err("too many").code(), "too_much_content");
}

fn is_consistent(parsed: &Parsed) -> bool {
    let mut at = 0;
    parsed.sections.iter().all(|section| {
        let is_in_order = section.bytes.start >= at && parsed.text.get(section.bytes.clone()).is_some();
        at = section.bytes.end;
        let mut inner = section.bytes.start;
        is_in_order
            && section.whole.iter().all(|whole| {
                let is_inside = whole.start >= inner && whole.end <= section.bytes.end;
                inner = whole.end;
                is_inside && parsed.text.get(whole.clone()).is_some()
            })
    })
}

proptest! {
    #[test]
    fn anything_gives_ranges_in_order(
        extension in prop::sample::select(vec!["md", "txt", "csv", "json", "html", "rs"]),
        text in "([#|`<>\"\\{\\}\\[\\],;:=-]|---\n|```\n|<h1>|</h1>|<p>|<td>|<li>|\\PC| |\n|\r\n|\t){0,80}",
    ) {
        if let Ok(parsed) = read(&format!("a.{extension}"), text.as_bytes(), &Limits::default()) {
            prop_assert!(is_consistent(&parsed), "{:?}", parsed);
        }
    }

    #[test]
    fn broken_documents_never_panic(
        name in prop::sample::select(vec!["policy.docx", "review.pptx", "stock.xlsx", "tale.epub"]),
        at in any::<prop::sample::Index>(),
        byte in any::<u8>(),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = fixture(name);
        let at = at.index(bytes.len());
        bytes[at] = byte;
        if byte % 4 == 0 {
            bytes.truncate(cut.index(bytes.len()).max(1));
        }
        if let Ok(parsed) = read(name, &bytes, &Limits::default()) {
            prop_assert!(is_consistent(&parsed));
        }
    }
}
