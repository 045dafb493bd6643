use serde_json::json;
use tidegate_core::tool::{Effect, ToolMode};

use super::{Registry, Template};

fn applied(text: &str) -> Result<Registry, String> {
    let mut registry = Registry::built_in().map_err(|fault| format!("{fault:?}"))?;
    registry
        .apply(text)
        .map_err(|fault| format!("line {}: {}", fault.line, fault.problem))?;
    Ok(registry)
}

fn names(registry: &Registry) -> Vec<&str> {
    registry.rows().iter().map(|row| row.spec.name.as_str()).collect()
}

const GREET: &str = r#"
[[tool]]
name = "greet"
description = "Greets somebody."
mode = "command"
command = ["/bin/echo", "hello {who}"]
accept = [{ who = "Ann" }]
refuse = [{}, { who = "x", to = "y" }]
[[tool.parameters]]
name = "who"
type = "string"
description = "Whom."
required = true
"#;

#[test]
fn the_rows_that_come_with_the_program() {
    let registry = Registry::built_in().unwrap();
    assert_eq!(
        names(&registry),
        [
            "read_text",
            "write_file",
            "list_files",
            "calculate",
            "search_knowledge_base",
            "read_document",
            "list_documents",
            "last_output",
            "describe_capabilities",
            "current_time",
            "get_study_plan",
            "execute_shell",
            "run_sandboxed",
            "git_status",
            "git_diff",
            "git_log",
            "git_commit",
            "git_clone",
            "git_push",
            "get_page_title",
        ]
    );
    for row in registry.rows() {
        assert_eq!(row.spec.effect, row.spec.mode.effect(), "{}", row.spec.name);
        assert!(
            !row.accept.is_empty() && !row.refuse.is_empty(),
            "{}",
            row.spec.name
        );
        let schema = row.spec.parameters_schema();
        for example in &row.accept {
            assert!(
                example.keys().all(|key| schema["properties"].get(key).is_some()),
                "{}",
                row.spec.name
            );
        }
    }
}

#[test]
fn the_schema_says_what_the_check_holds() {
    let registry = Registry::built_in().unwrap();
    let schema = registry.get("get_study_plan").unwrap().spec.parameters_schema();
    assert_eq!(schema["required"], json!([]));
    let calculate = registry.get("calculate").unwrap().spec.parameters_schema();
    assert_eq!(calculate["required"], json!(["expression"]));
    assert_eq!(schema["additionalProperties"], json!(false));
    assert_eq!(schema["properties"]["weeks"]["minimum"], json!(1));
    let gaps = &schema["properties"]["knowledge_gaps"];
    assert_eq!(gaps["maxItems"], json!(20));
    assert_eq!(gaps["items"], json!({"type": "string", "maxLength": 200}));
    assert_eq!(gaps.get("maxLength"), None);
}

#[test]
fn an_operator_adds_narrows_and_removes() {
    let text = format!(
        "remove = [\"write_file\", \"get_study_plan\"]\n{GREET}
[[tool]]
name = \"read_text\"
extends = true
timeout_ms = 500
output_bytes_max = 1000
description = \"Reads the handbook.\"
accept = [{{ path = \"handbook.md\" }}]
refuse = [{{ path = \"other.md\" }}]
[[tool.parameters]]
name = \"path\"
type = \"string\"
description = \"The handbook.\"
one_of = [\"handbook.md\"]
[[tool]]
name = \"current_time\"
extends = true
effect = \"network\"
"
    );
    let registry = applied(&text).unwrap();
    assert_eq!(
        names(&registry),
        [
            "read_text",
            "list_files",
            "calculate",
            "search_knowledge_base",
            "read_document",
            "list_documents",
            "last_output",
            "describe_capabilities",
            "current_time",
            "execute_shell",
            "run_sandboxed",
            "git_status",
            "git_diff",
            "git_log",
            "git_commit",
            "git_clone",
            "git_push",
            "get_page_title",
            "greet"
        ]
    );
    let read = registry.get("read_text").unwrap();
    assert_eq!((read.spec.timeout_ms, read.spec.output_bytes_max), (500, 1000));
    assert_eq!(read.spec.description, "Reads the handbook.");
    assert!(
        read.check(json!({"path": "handbook.md"}).as_object().unwrap())
            .is_ok()
    );
    assert!(
        read.check(json!({"path": "other.md"}).as_object().unwrap())
            .is_err()
    );
    // The built-in example that the narrowing rules out is no example any more.
    assert_eq!(read.accept.len(), 2);
    assert_eq!(registry.get("current_time").unwrap().spec.effect, Effect::Network);
    let greet = registry.get("greet").unwrap();
    assert_eq!(
        (greet.spec.mode, greet.spec.effect),
        (ToolMode::Command, Effect::External)
    );
    assert!(matches!(greet.template, Template::Command(_)));
}

#[test]
fn a_removed_tool_can_be_replaced() {
    let text = format!(
        "remove = [\"calculate\"]\n{}",
        GREET.replace("greet", "calculate")
    );
    assert_eq!(
        applied(&text).unwrap().get("calculate").unwrap().spec.mode,
        ToolMode::Command
    );
}

#[test]
fn mistakes_name_line_and_fix() {
    let greet = |from: &str, to: &str| GREET.replace(from, to);
    for (text, line, fragment) in [
        ("remove = [\"write_fil\"]".to_owned(), 1, "did you mean `write_file`"),
        ("\nremov = []".to_owned(), 2, "did you mean `remove`"),
        ("[[tool]\nname = 1".to_owned(), 1, ""),
        ("[[tool]]\ndescription = \"x\"".to_owned(), 1, "name"),
        (greet("command =", "comand ="), 6, "did you mean `command`"),
        (greet("required =", "mandatory ="), 13, "no key of a parameter"),
        (greet("mode = \"command\"", "mode = \"magic\""), 5, "shell"),
        (greet("mode = \"command\"\n", ""), 2, "`mode` is missing"),
        (greet("greet", "gre et"), 2, "A-Z a-z 0-9"),
        (greet("greet", "read_text"), 2, "`extends = true`"),
        (format!("{GREET}{GREET}"), 15, "twice"),
        (greet("hello {who}", "hello {whom}"), 2, "`{whom}` is no parameter"),
        (greet("hello {who}", "hello"), 2, "stands nowhere in the template"),
        (greet("hello {who}", "hello {who"), 2, "opens no placeholder"),
        (greet("\"/bin/echo\"", "\"{who}\""), 2, "fixed program"),
        (greet("accept = [{ who = \"Ann\" }]\n", ""), 2, "`accept` is missing"),
        (greet("who = \"Ann\"", "whom = \"Ann\""), 2, "`accept` example"),
        (greet("refuse = [{}", "refuse = [{ who = \"x\" }, {}"), 2, "`refuse` example"),
        (greet("mode =", "effect = \"read\"\nmode ="), 2, "may only be more"),
        (greet("mode =", "timeout_ms = 0\nmode ="), 2, "`timeout_ms` must be from"),
        (greet("mode =", "output_bytes_max = 9_000_000\nmode ="), 2, "`output_bytes_max` must be from"),
        (greet("mode =", "url = \"https://x.example/\"\nmode ="), 2, "has no `url`"),
        (greet("type = \"string\"", "type = \"string\"\nmin = 3"), 2, "for numbers"),
        (greet("type = \"string\"", "type = \"integer\"\nmin = 3\nmax = 2"), 2, "above `max`"),
        (greet("type = \"string\"", "type = \"string_list\""), 2, "JSON body only"),
        (greet("\"Greets somebody.\"", "\" \""), 2, "`description` is missing"),
        ("[[tool]]\nname = \"reed_text\"\nextends = true".to_owned(), 1, "did you mean `read_text`"),
        ("[[tool]]\nname = \"read_text\"\nextends = true\nmode = \"command\"".to_owned(), 1, "cannot change `mode`"),
        ("[[tool]]\nname = \"read_text\"\nextends = true\ntimeout_ms = 99_999".to_owned(), 1, "may only sink"),
        ("[[tool]]\nname = \"write_file\"\nextends = true\neffect = \"read\"".to_owned(), 1, "may only rise"),
        ("[[tool]]\nname = \"read_text\"\nextends = true\neffect = \"write\"".to_owned(), 1, "writes no file"),
        (
            "[[tool]]\nname = \"read_text\"\nextends = true\noutput_bytes_max = 1".to_owned(),
            1,
            "must be from 256",
        ),
        (
            "[[tool]]\nname = \"read_text\"\nextends = true\n[[tool.parameters]]\nname = \"path\"\nmax = 1".to_owned(),
            1,
            "for numbers",
        ),
        (
            "[[tool]]\nname = \"get_study_plan\"\nextends = true\n[[tool.parameters]]\nname = \"weeks\"\nmax = 200".to_owned(),
            1,
            "`max` may only sink",
        ),
        (
            "[[tool]]\nname = \"read_text\"\nextends = true\n[[tool.parameters]]\nname = \"path\"\none_of = [\"x.md\"]".to_owned(),
            1,
            "`accept` is missing",
        ),
        (
            "[[tool]]\nname = \"r\"\ndescription = \"Reads.\"\nmode = \"read_text\"\naccept = [{}]".to_owned(),
            1,
            "needs a parameter `path`",
        ),
        (
            "[[tool]]\nname = \"t\"\ndescription = \"T.\"\nmode = \"http_get\"\nurl = \"https://x.example/{a}\"\naccept = [{}]\n\
             [[tool.parameters]]\nname = \"a\"\ntype = \"string\"\ndescription = \"A.\"".to_owned(),
            1,
            "stands in the path",
        ),
    ] {
        let problem = applied(&text).err().unwrap_or_else(|| panic!("accepted: {text}"));
        assert!(problem.contains(fragment), "{problem}\n{text}");
        assert!(problem.starts_with(&format!("line {line}: ")), "{problem}\n{text}");
    }
}

/// Of a text that may be anything, logs keep a hash: what stays must be said, and nobody takes that back.
#[test]
fn a_text_is_free_unless_its_row_says_what_it_is() {
    let registry = Registry::built_in().unwrap();
    let free: Vec<String> = registry
        .rows()
        .iter()
        .flat_map(|row| {
            let free = row.spec.parameters.iter().filter(|parameter| parameter.free_text);
            free.map(|parameter| format!("{}.{}", row.spec.name, parameter.name))
        })
        .collect();
    assert_eq!(
        free,
        [
            "write_file.content",
            "search_knowledge_base.query",
            "get_study_plan.subject",
            "get_study_plan.level",
            "get_study_plan.knowledge_gaps",
            "run_sandboxed.code",
            "git_commit.message",
        ]
    );
    let who = |rest: &str| -> Result<bool, String> {
        let registry = applied(&format!("{GREET}{rest}"))?;
        let row = registry.rows().iter().find(|row| row.spec.name == "greet");
        Ok(row.unwrap().spec.parameters[0].free_text)
    };
    assert_eq!(who(""), Ok(true));
    assert_eq!(who("free_text = false\n"), Ok(false));
    assert_eq!(who("one_of = [\"Ann\", \"x\"]\n"), Ok(false));
    assert!(who("one_of = [\"Ann\", \"x\"]\nfree_text = true\n").is_err());
    let narrowed = |name: &str, parameter: &str, free_text: bool| {
        applied(&format!(
            "[[tool]]\nname = \"{name}\"\nextends = true\n[[tool.parameters]]\nname = \"{parameter}\"\nfree_text = {free_text}\n"
        ))
    };
    assert!(narrowed("read_text", "path", true).is_ok());
    assert!(narrowed("write_file", "content", false).is_err());
}
