//! Calls, sessions, facts and policies to decide on, and strategies that make them.

use std::{collections::BTreeSet, path::PathBuf, sync::Arc};

use proptest::prelude::*;
use serde_json::Value;
use tidegate_core::{
    approval::{Approval, ApprovalState},
    caller::{Attendance, Caller, Mode, Scope},
    clock::Timestamp,
    id::{ApprovalId, CallId, KeyId, RunId, UserId},
    tool::{Arguments, Effect, Parameter, ParameterType, ToolCall, ToolMode, ToolSpec},
};
use tidegate_gate::{
    Access, Decision, Facts, Grant, PathFact, PathFault, PathKind, PermissionGate, ResolvedPath, Session,
    Zones,
    caps::Caps,
    shell::{self, OperandKind, Place, Verdict},
};

const WORKSPACE: &str = "/w/proj";

pub(crate) fn policy() -> shell::Policy {
    shell::Policy::compile(&shell::Options::default()).unwrap()
}

pub(crate) fn place() -> Place {
    Place::new(WORKSPACE, "/w/home")
}

pub(crate) fn spec(name: &str, mode: ToolMode, effect: Effect, parameters: &[&str]) -> ToolSpec {
    let parameter = |name: &&str| Parameter {
        name: (*name).to_owned(),
        kind: ParameterType::String,
        description: String::new(),
        required: true,
        one_of: Vec::new(),
        min: None,
        max: None,
        chars_max: None,
        free_text: false,
    };
    ToolSpec {
        name: name.to_owned(),
        description: String::new(),
        mode,
        effect,
        parameters: parameters.iter().map(parameter).collect(),
        timeout_ms: 1_000,
        output_bytes_max: 1_000,
    }
}

pub(crate) fn call(spec: &ToolSpec, arguments: Value) -> ToolCall {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object");
    };
    ToolCall {
        id: CallId::new("c1"),
        name: spec.name.clone(),
        arguments: Arguments::Object(arguments),
    }
}

pub(crate) fn session(mode: Mode, attendance: Attendance) -> Session {
    let key_id = KeyId::new("k1");
    Session {
        caller: Arc::new(Caller {
            user: UserId::of(&key_id, None).unwrap(),
            key_id,
            scopes: BTreeSet::from([Scope::Tools]),
            mode_ceiling: Mode::FullAuto,
            models: None,
            tools: None,
            tokens_per_day: None,
        }),
        mode,
        conversation: "c".to_owned(),
        attendance,
    }
}

pub(crate) fn zones() -> Zones {
    Zones {
        readable: vec![WORKSPACE.into()],
        writable: vec![WORKSPACE.into()],
        no_prompt: vec!["/w/proj/scratch".into()],
        prompt: vec!["/w/proj/scratch/slow".into()],
        ..Zones::default()
    }
}

/// A grant for exactly what the gate asks about, as an operator would give it.
pub(crate) fn granted(
    gate: &PermissionGate,
    call: &ToolCall,
    spec: &ToolSpec,
    facts: &Facts,
    session: &Session,
) -> Decision {
    let decision = gate.decide(call.clone(), spec, facts, session, None);
    let Decision::Ask(question) = decision else {
        return decision;
    };
    let grant = Grant::of(&Approval {
        id: ApprovalId::new("a1"),
        run_id: RunId::new("r1"),
        binding: question.binding,
        summary: String::new(),
        arguments: String::new(),
        reasons: Vec::new(),
        created_at: Timestamp::UNIX_EPOCH,
        expires_at: Timestamp::MAX,
        state: ApprovalState::Claimed,
        decided_by: None,
        decided_at: None,
    });
    gate.decide(call.clone(), spec, facts, session, grant.as_ref())
}

pub(crate) fn strictness(decision: &Decision) -> u8 {
    match decision {
        Decision::Allow(_) => 0,
        Decision::Ask(_) => 1,
        Decision::Deny(_) => 2,
    }
}

pub(crate) fn rank(verdict: &Verdict) -> u8 {
    match verdict {
        Verdict::ReadOnly => 0,
        Verdict::NeedsGrant { .. } => 1,
        Verdict::Refused { .. } => 2,
    }
}

/// Files of a line as a plain disk would have them.
pub(crate) fn command_facts(policy: &shell::Policy, command: &str) -> Facts {
    let analysis = policy.analyse(command, &place());
    let paths = analysis
        .operands()
        .iter()
        .filter(|operand| operand.kind != OperandKind::Dynamic)
        .map(|operand| fact(operand.access, &operand.text))
        .collect();
    Facts {
        paths,
        can_mask: true,
        command: Some(Arc::new(analysis)),
        ..Facts::default()
    }
}

pub(crate) fn fact(access: Access, real: &str) -> PathFact {
    let tidy: PathBuf = std::path::Path::new(real).components().collect();
    PathFact {
        argument: "path".to_owned(),
        requested: real.to_owned(),
        access,
        resolution: Ok(ResolvedPath {
            real: tidy,
            kind: PathKind::File,
            hard_links: 1,
            is_link: false,
        }),
    }
}

pub(crate) fn shell_spec() -> ToolSpec {
    spec("execute_shell", ToolMode::Shell, Effect::External, &["command"])
}

pub(crate) fn write_spec() -> ToolSpec {
    spec(
        "write_file",
        ToolMode::WriteText,
        Effect::Write,
        &["path", "content"],
    )
}

pub(crate) fn read_spec() -> ToolSpec {
    spec("read_text", ToolMode::ReadText, Effect::Read, &["path"])
}

pub(crate) fn any_mode() -> impl Strategy<Value = Mode> {
    prop::sample::select(Mode::ALL.to_vec())
}

pub(crate) fn any_attendance() -> impl Strategy<Value = Attendance> {
    prop::sample::select(vec![Attendance::Attended, Attendance::Deny, Attendance::Approve])
}

/// Paths that mean something to a floor or a zone, and paths that mean nothing.
pub(crate) fn any_path() -> impl Strategy<Value = String> {
    let names = vec![
        "notes.txt",
        ".env",
        "id_rsa",
        ".bashrc",
        ".ssh",
        "scratch",
        "slow",
        "secret",
        ".git",
        "config",
        "hooks",
        "server.pem",
        "credentials",
        "a",
        "data",
        "..",
        ".env.example",
        "authorized_keys",
        "x.desktop",
    ];
    let roots = vec![WORKSPACE, "/w/home", "/etc", "/", "/w", "/w/proj/scratch"];
    (
        prop::sample::select(roots),
        prop::collection::vec(prop::sample::select(names), 0..4),
    )
        .prop_map(|(root, names)| format!("{root}/{}", names.join("/")))
}

pub(crate) fn any_fact() -> impl Strategy<Value = PathFact> {
    let access = prop::sample::select(vec![Access::Read, Access::List, Access::Write]);
    let kind = prop::sample::select(vec![
        PathKind::File,
        PathKind::Folder,
        PathKind::Special,
        PathKind::Missing,
    ]);
    let fault = prop::option::weighted(
        0.15,
        prop::sample::select(vec![
            PathFault::Outside,
            PathFault::Missing,
            PathFault::Malformed("x".to_owned()),
            PathFault::Unreadable("x".to_owned()),
        ]),
    );
    (access, any_path(), kind, any::<bool>(), fault).prop_map(|(access, path, kind, is_link, fault)| {
        let mut fact = fact(access, &path);
        if let Ok(resolved) = &mut fact.resolution {
            resolved.kind = kind;
            resolved.is_link = is_link;
        }
        if let Some(fault) = fault {
            fact.resolution = Err(fault);
        }
        fact
    })
}

/// A policy, and the same with more in the way.
pub(crate) fn stricter(zones: &Zones, path: &str, how: u8) -> (Zones, Caps) {
    let (mut zones, mut caps) = (zones.clone(), Caps::default());
    let path = PathBuf::from(path);
    match how % 7 {
        0 => zones.blocked.push(path),
        1 => zones.own.push(path),
        2 => zones.prompt.push(path),
        3 => zones.no_prompt.clear(),
        4 => zones.writable.clear(),
        5 => caps.write_bytes_max = 1,
        _ => zones.read.push("/w/proj/src".into()),
    }
    (zones, caps)
}
