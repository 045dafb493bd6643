use super::*;

fn text(page: &str) -> String {
    read(page.as_bytes(), &Limits::default())
        .expect("a document")
        .text
}

#[test]
fn words_are_kept_and_what_is_around_them_is_not() {
    for (page, expected) in [
        ("<p>One <b>bold</b>\n word.<p>Two", "One bold word.\n\nTwo"),
        ("<nav>Home</nav><p>Text</p><footer>(c)</footer>", "Text"),
        ("<script>alert('<p>x')</script><style>p{}</style>Text", "Text"),
        (
            "<p hidden>no</p><p style='display: none'>no</p><div aria-hidden=true>no<div>no</div></div><p>yes",
            "yes",
        ),
        ("<div role=navigation>no</div>yes", "yes"),
        ("<ul><li>a<li>b<ul><li>c</ul></ul>d", "- a\n- b\n- c\n\nd"),
        ("<ul><li><p>a</p></li><li><div>b</div></li></ul>", "- a\n- b"),
        ("<pre>a\n  b</pre>", "a\n  b"),
        ("a<br>b &amp; c&nbsp;d &eacute;", "a\nb & c d é"),
        (
            "<table><tr><th>n<th>v<tr><td>a<td>1</table>x",
            "| n | v |\n| a | 1 |\n\nx",
        ),
        (
            "<table><tr><td>one</td></tr><tr><td><p>two</p></td></tr></table>",
            "one\n\ntwo",
        ),
        ("<table><tr><td><table><tr><td>a<td>b</table></table>", "a\n\nb"),
        ("<img alt='a picture' src=x>", "a picture"),
        ("<aside>only this", "only this"),
        (
            "<nav>never closed <p>and all the text",
            "never closed\n\nand all the text",
        ),
        (
            "<header>h</header><main><h1>T</h1><p>long enough text</main><div>other</div>",
            "long enough text",
        ),
        ("<main></main><p>text outside</p>", "text outside"),
    ] {
        assert_eq!(text(page), expected, "{page}");
    }
}

#[test]
fn headings_and_title() {
    let page = "<html><head><title>A &amp; B</title></head><body><h1>One</h1>x<h2>Two <i>b</i></h2><p>y<h1>Three</h1>";
    let parsed = read(page.as_bytes(), &Limits::default()).expect("a document");
    assert_eq!(parsed.title.as_deref(), Some("A & B"));
    let found: Vec<(String, &str)> = parsed
        .sections
        .iter()
        .map(|section| {
            (
                section.headings.join("/"),
                parsed.text[section.bytes.clone()].trim(),
            )
        })
        .collect();
    let expected = [("One", "x"), ("One/Two b", "y"), ("Three", "Three")];
    let expected: Vec<(String, &str)> = expected
        .iter()
        .map(|(path, text)| ((*path).to_owned(), *text))
        .collect();
    assert_eq!(found, expected);
}

#[test]
fn depth_costs_nothing() {
    for open in [
        "<div>",
        "<b>",
        "<table><tr><td>",
        "<ul><li>",
        "<blockquote>",
        "<nav>",
        "<svg>",
    ] {
        let page = format!("{}deep{}", open.repeat(100_000), "</div>".repeat(100_000));
        let outcome = read(page.as_bytes(), &Limits::default());
        let is_seen = outcome.is_ok_and(|parsed| parsed.text.contains("deep"));
        assert_eq!(is_seen, open != "<svg>", "{open}");
    }
}

#[test]
fn the_declared_encoding_is_used() {
    let page = b"<meta charset=\"iso-8859-2\"><p>\xb1\xe6\xea";
    assert_eq!(read(page, &Limits::default()).expect("a document").text, "ąćę");
}
