use serde_json::Map;
use tidegate_core::{
    caller::{Caller, Mode, Scope},
    id::{CallId, KeyId, RunId, UserId},
    tool::{Arguments, Effect, ToolMode},
};

use super::*;

fn call() -> (ToolCall, ToolSpec, ToolContext) {
    let key_id = KeyId::new("k1");
    let mut arguments = Map::new();
    arguments.insert("path".into(), "notes/a.md".into());
    (
        ToolCall {
            id: CallId::new("call_1"),
            name: "write_file".into(),
            arguments: Arguments::Object(arguments),
        },
        ToolSpec {
            name: "write_file".into(),
            description: String::new(),
            mode: ToolMode::WriteText,
            effect: Effect::Write,
            parameters: Vec::new(),
            input_schema: None,
            timeout_ms: 1_000,
            output_bytes_max: 1_000,
        },
        ToolContext {
            run_id: RunId::new("run_1"),
            learner: tidegate_gate::Learner::default(),
            host: Arc::new(tidegate_gate::NoHost),
            caller: Arc::new(Caller {
                user: UserId::of(&key_id, Some("ann")).unwrap(),
                key_id,
                scopes: [Scope::Tools].into(),
                mode_ceiling: Mode::FullAuto,
                models: None,
                tools: None,
                tokens_per_day: None,
            }),
        },
    )
}

/// A hook that is a shell script.
fn script(folder: &Path, when: When, text: &str) -> Hooks {
    build(
        &[Options {
            name: "check".into(),
            when,
            command: vec!["sh".into(), "-c".into(), text.into()],
            timeout_ms: 5_000,
            ..Options::default()
        }],
        folder,
        None,
    )
}

async fn decide(hooks: &Hooks) -> Result<HookDecision, HookFault> {
    let (call, spec, context) = call();
    hooks.gates[0].before_tool(&call, &spec, &context).await
}

#[tokio::test]
async fn a_command_allows_and_refuses() {
    let folder = tempfile::tempdir().unwrap();
    let allow = script(
        folder.path(),
        When::BeforeTool,
        "cat >/dev/null; echo '{\"decision\":\"allow\"}'",
    );
    assert_eq!(decide(&allow).await, Ok(HookDecision::Pass));
    let refuse = script(
        folder.path(),
        When::BeforeTool,
        "grep -q notes/a.md && echo '{\"decision\":\"refuse\",\"reason\":\"notes are closed\"}'",
    );
    assert_eq!(
        decide(&refuse).await,
        Ok(HookDecision::Refuse("notes are closed".into()))
    );
}

#[tokio::test]
async fn everything_but_a_decision_is_a_fault() {
    let folder = tempfile::tempdir().unwrap();
    for text in [
        "echo '{\"decision\":\"allow\"}'; exit 3",
        "echo yes",
        "true",
        "echo '{\"decision\":\"maybe\"}'",
        "echo '{\"decision\":\"allow\"} {\"decision\":\"allow\"}'",
        "kill -9 $$",
        "head -c 100000 /dev/zero",
    ] {
        let hooks = script(folder.path(), When::BeforeTool, text);
        assert!(decide(&hooks).await.is_err(), "{text}");
    }
    let missing = build(
        &[Options {
            name: "gone".into(),
            command: vec!["/no/such/program".into()],
            ..Options::default()
        }],
        folder.path(),
        None,
    );
    assert!(decide(&missing).await.is_err());
}

#[tokio::test]
async fn a_slow_command_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = build(
        &[Options {
            name: "slow".into(),
            command: vec!["sh".into(), "-c".into(), "exec tail -f /dev/null".into()],
            timeout_ms: 50,
            ..Options::default()
        }],
        folder.path(),
        None,
    );
    assert!(decide(&hooks).await.unwrap_err().0.contains("50 ms"));
}

#[tokio::test]
async fn a_hook_about_another_tool_is_not_started() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = build(
        &[Options {
            name: "other".into(),
            tools: vec!["read_text".into()],
            command: vec!["false".into()],
            ..Options::default()
        }],
        folder.path(),
        None,
    );
    assert_eq!(decide(&hooks).await, Ok(HookDecision::Pass));
}

#[tokio::test]
async fn a_hook_sees_the_call_and_no_environment() {
    let folder = tempfile::tempdir().unwrap();
    let hooks = script(
        folder.path(),
        When::AfterTool,
        "cat > told.json; env > environment",
    );
    let (call, spec, context) = call();
    let result = ToolResult::ok("secret output");
    hooks.observers[0]
        .after_tool(&call, &spec, &result, &context)
        .await
        .unwrap();
    let told = std::fs::read_to_string(folder.path().join("told.json")).unwrap();
    let seen: Value = serde_json::from_str(&told).unwrap();
    assert_eq!(seen["tool"], "write_file");
    assert_eq!(seen["arguments"]["path"], "notes/a.md");
    assert_eq!(seen["user"], "k1:ann");
    assert_eq!(seen["status"], "ok");
    assert!(!told.contains("secret output"));
    let environment = std::fs::read_to_string(folder.path().join("environment")).unwrap();
    let names: BTreeSet<_> = environment
        .lines()
        .filter_map(|line| line.split('=').next())
        .collect();
    // A shell adds these by itself.
    assert!(
        names.is_subset(&["PATH", "PWD", "OLDPWD", "SHLVL", "_"].into()),
        "{names:?}"
    );
}

#[test]
fn an_incomplete_hook_says_what_it_lacks() {
    let keys: Vec<_> = Options::default()
        .faults()
        .into_iter()
        .map(|(key, _)| key)
        .collect();
    assert_eq!(keys, ["name", "command"]);
}
