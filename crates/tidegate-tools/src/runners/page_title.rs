//! `page_title`: what a web page calls itself. The address is the model's, so the guarded client fetches it.

use tidegate_core::tool::{FailureCode, ToolResult, ToolSpec};
use tidegate_io::guarded::Client;

use super::http::failure;
use crate::{arguments::Values, output::prefix};

/// How much of a page is read. A title stands in its head; pages with more before it have none that matters.
const PAGE_BYTES_MAX: usize = 512 << 10;

/// The longest title that is shown, in bytes.
const TITLE_BYTES_MAX: usize = 500;

/// Runs the tool.
pub(crate) async fn run(client: &Client, spec: &ToolSpec, values: &Values<'_>) -> ToolResult {
    let url = values.text("url").unwrap_or_default();
    let destination = match client.check(url) {
        Ok(destination) => destination,
        Err(fault) => return super::http::refusal(fault.denial()),
    };
    let request = client
        .get(destination)
        .header("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.1")
        .bytes_max(PAGE_BYTES_MAX)
        .timeout_ms(spec.timeout_ms);
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) => return failure(&error, spec),
    };
    if !response.is_success() {
        let code = if response.status == 404 {
            FailureCode::NotFound
        } else {
            FailureCode::Unsuccessful
        };
        return ToolResult::failed(code, format!("the server answered {}.", response.status));
    }
    match title(&String::from_utf8_lossy(&response.body)) {
        Some(title) => ToolResult::ok(title),
        None => ToolResult::failed(FailureCode::NotFound, "the page has no title."),
    }
}

/// The text of the first `title` element that is no part of a comment or script.
fn title(page: &str) -> Option<String> {
    let mut rest = page;
    loop {
        let (_, tag) = rest.split_once('<')?;
        rest = if let Some(comment) = tag.strip_prefix("!--") {
            comment.split_once("-->")?.1
        } else if is_element(tag, "title") {
            let text = tag.split_once('>')?.1;
            let end = find_end(text, "title").unwrap_or(text.len());
            return Some(tidy(text.get(..end)?)).filter(|title| !title.is_empty());
        } else if let Some(name) = ["script", "style", "template", "svg"]
            .into_iter()
            .find(|name| is_element(tag, name))
        {
            tag.get(find_end(tag, name)?..)?.strip_prefix('<')?
        } else {
            tag
        };
    }
}

/// Whether a tag opens an element of this name.
fn is_element(tag: &str, name: &str) -> bool {
    tag.get(..name.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(name))
        && tag
            .get(name.len()..)
            .and_then(|rest| rest.chars().next())
            .is_some_and(|next| next == '>' || next == '/' || next.is_ascii_whitespace())
}

/// Where the element's end tag begins.
fn find_end(text: &str, name: &str) -> Option<usize> {
    text.match_indices("</")
        .map(|(place, _)| place)
        .find(|place| text.get(place + 2..).is_some_and(|tag| is_element(tag, name)))
}

/// One line, with the common character references resolved.
fn tidy(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, reference)) = rest.split_once('&') {
        plain.push_str(before);
        if let Some((letter, length)) = character(reference) {
            plain.push(letter);
            rest = reference.get(length..).unwrap_or_default();
        } else {
            plain.push('&');
            rest = reference;
        }
    }
    plain.push_str(rest);
    let line: Vec<&str> = plain
        .split(|letter: char| letter.is_whitespace() || letter.is_control())
        .filter(|word| !word.is_empty())
        .collect();
    prefix(&line.join(" "), TITLE_BYTES_MAX).to_owned()
}

/// The character that a reference stands for, and the reference's length behind its `&`.
fn character(reference: &str) -> Option<(char, usize)> {
    const NAMED: [(&str, char); 12] = [
        ("amp", '&'),
        ("lt", '<'),
        ("gt", '>'),
        ("quot", '"'),
        ("apos", '\''),
        ("nbsp", ' '),
        ("ndash", '–'),
        ("mdash", '—'),
        ("hellip", '…'),
        ("middot", '·'),
        ("laquo", '«'),
        ("raquo", '»'),
    ];
    /// The longest reference that is looked for, in bytes.
    const LENGTH_MAX: usize = 10;
    let name = prefix(reference, LENGTH_MAX).split_once(';')?.0;
    let letter = match name.strip_prefix('#') {
        Some(number) => {
            let code = match number.strip_prefix(['x', 'X']) {
                Some(digits) => u32::from_str_radix(digits, 16),
                None => number.parse(),
            };
            char::from_u32(code.ok()?)?
        }
        None => NAMED.iter().find(|(known, _)| *known == name)?.1,
    };
    Some((letter, name.len() + 1))
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use tidegate_core::tool::{Parameter, ParameterType, ToolMode};
    use tidegate_gate::guards::{address, outbound::Secrets};
    use tidegate_io::guarded::{Options, Policy};
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpListener,
        task::JoinSet,
    };

    use super::*;

    fn spec() -> ToolSpec {
        ToolSpec {
            name: "get_page_title".to_owned(),
            description: String::new(),
            mode: ToolMode::PageTitle,
            effect: ToolMode::PageTitle.effect(),
            parameters: vec![Parameter {
                name: "url".to_owned(),
                kind: ParameterType::String,
                description: String::new(),
                required: true,
                one_of: Vec::new(),
                min: None,
                max: None,
                chars_max: None,
                free_text: false,
            }],
            timeout_ms: 5_000,
            output_bytes_max: 1_000,
        }
    }

    /// A client for which these hosts inside are open.
    fn client(open: &[String]) -> Client {
        let options = address::Options {
            ssrf_allow_hosts: open.to_vec(),
            ..address::Options::default()
        };
        let policy = Policy {
            address: address::Policy::compile(&options).unwrap(),
            secrets: Secrets::none().unwrap(),
        };
        Client::new(Options::default(), policy).unwrap()
    }

    #[tokio::test]
    async fn a_page_is_fetched_where_the_rules_let_it() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            for head in [
                "200 OK\r\ncontent-type: text/html",
                "404 X",
                "200 OK\r\ncontent-type: image/png",
            ] {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut request = [0; 4096];
                assert!(stream.read(&mut request).await.unwrap() > 0);
                let page = "<title>Tides &amp; gates</title>";
                let answer = format!("HTTP/1.1 {head}\r\ncontent-length: {}\r\n\r\n{page}", page.len());
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let spec = spec();
        let ask = async |client: &Client, url: String| {
            let arguments = json!({ "url": url });
            let values = Values::from_object(arguments.as_object().unwrap(), &spec).unwrap();
            run(client, &spec, &values).await
        };
        let url = format!("http://{address}/");
        let refused = ask(&client(&[]), url.clone()).await;
        assert!(
            matches!(&refused, ToolResult::Refused { floor, .. } if floor == "address"),
            "{refused:?}"
        );
        let open = client(&[address.to_string()]);
        let title = ToolResult::ok("Tides & gates".to_owned());
        assert_eq!(ask(&open, url.clone()).await, title);
        for code in [FailureCode::NotFound, FailureCode::NotText] {
            let failed = ask(&open, url.clone()).await;
            assert!(
                matches!(&failed, ToolResult::Failed { code: other, .. } if *other == code),
                "{failed:?}"
            );
        }
    }

    #[test]
    fn finds_the_title_of_a_page() {
        for (page, expected) in [
            ("<title>Hello</title>", Some("Hello")),
            (
                "<!doctype html><HTML><Head>\n<TITLE lang=en>\n A &amp; B\n </TITLE >",
                Some("A & B"),
            ),
            ("<title>&#72;&#x69; &unknown; &;</title>", Some("Hi &unknown; &;")),
            ("<!-- <title>no</title> --><title>yes</title>", Some("yes")),
            (
                "<script>'<title>no</title>'</script><title>yes</title>",
                Some("yes"),
            ),
            ("<svg><title>no</title></svg><title>yes</title>", Some("yes")),
            ("<titles>no</titles><title>yes</title>", Some("yes")),
            ("<title>a < b</title>", Some("a < b")),
            ("<title>cut of", Some("cut of")),
            ("<title>  </title>", None),
            ("<title", None),
            ("<script>", None),
            ("<!-- ", None),
            ("no markup", None),
            ("", None),
        ] {
            assert_eq!(title(page).as_deref(), expected, "{page}");
        }
        let long = format!("<title>{}</title>", "é".repeat(1000));
        assert_eq!(title(&long).unwrap().len(), 500);
    }
}
