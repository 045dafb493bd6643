use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::json;
use tidegate_core::{
    id::{KeyId, UserId},
    tool::ToolMode,
};

use super::*;
use crate::{
    Access, PathFact, PathFault, PathKind, ResolvedPath,
    testing::{call, fact, resolved, spec, write_fact},
};

const EFFECTS: [Effect; 4] = [Effect::Read, Effect::Write, Effect::Network, Effect::External];

fn zones() -> Zones {
    Zones {
        readable: vec!["/w".into()],
        writable: vec!["/w".into()],
        no_prompt: vec!["/w/scratch".into()],
        blocked: vec!["/w/data".into()],
        ..Zones::default()
    }
}

fn gate() -> PermissionGate {
    PermissionGate::new(Policy {
        zones: zones(),
        ..Policy::default()
    })
}

fn session(mode: Mode, scopes: &[Scope], tools: Option<&[&str]>) -> Session {
    let key_id: KeyId = serde_json::from_value(json!("abcdefghjkmn")).expect("a key id");
    let user: UserId = serde_json::from_value(json!("abcdefghjkmn")).expect("a user");
    Session {
        caller: Arc::new(Caller {
            key_id,
            user,
            scopes: scopes.iter().copied().collect::<BTreeSet<_>>(),
            mode_ceiling: mode,
            models: None,
            tools: tools.map(|tools| tools.iter().map(|tool| (*tool).to_owned()).collect()),
            tokens_per_day: None,
        }),
        mode,
        conversation: String::new(),
        attendance: Attendance::Attended,
    }
}

/// A tool of that effect, a call of it, and facts that no floor minds.
fn ordinary(effect: Effect) -> (ToolSpec, ToolCall, Facts) {
    let (mode, paths) = match effect {
        Effect::Read => (
            ToolMode::ReadText,
            vec![fact("path", "a.txt", Access::Read, resolved("/w/a.txt"))],
        ),
        Effect::Write => (
            ToolMode::WriteText,
            vec![write_fact("a.txt", resolved("/w/a.txt"))],
        ),
        Effect::Network => (ToolMode::HttpPost, Vec::new()),
        Effect::External => (ToolMode::Command, Vec::new()),
    };
    let arguments = match effect {
        Effect::Read => json!({"path": "a.txt"}),
        Effect::Write | Effect::Network | Effect::External => json!({"path": "a.txt", "content": "text"}),
    };
    let facts = Facts {
        paths,
        write_bytes: 4,
        ..Facts::default()
    };
    (spec("tool", mode, effect), call("tool", &arguments), facts)
}

fn outcome(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allow(_) => "allow",
        Decision::Ask(question) => question.code,
        Decision::Deny(denial) => denial.floor,
    }
}

#[test]
fn every_mode_and_effect_has_its_answer() {
    for mode in Mode::ALL {
        for effect in EFFECTS {
            let expected = match (mode, effect) {
                (Mode::PlanOnly, Effect::Write | Effect::Network | Effect::External) => "plan_only",
                (Mode::ReadOnly, Effect::Write | Effect::Network | Effect::External) => "readonly",
                (Mode::PlanOnly | Mode::ReadOnly, Effect::Read) | (Mode::FullAuto, _) => "allow",
            };
            let scope_sets: [(&[Scope], bool); 5] = [
                (&[], false),
                (&[Scope::Chat], false),
                (&[Scope::Admin, Scope::Chat], false),
                (&[Scope::Tools], true),
                (&[Scope::Chat, Scope::Tools], true),
            ];
            for (scopes, opens_tools) in scope_sets {
                let tool_lists: [(Option<&[&str]>, bool); 4] = [
                    (None, true),
                    (Some(&["tool"]), true),
                    (Some(&["tool2", "too"]), false),
                    (Some(&[]), false),
                ];
                for (tools, is_listed) in tool_lists {
                    let expected = match (opens_tools, is_listed) {
                        (false, _) => "scope",
                        (true, false) => "tool_allow_list",
                        (true, true) => expected,
                    };
                    let (spec, call, facts) = ordinary(effect);
                    let session = session(mode, scopes, tools);
                    let decision = gate().decide(call, &spec, &facts, &session, None);
                    assert_eq!(
                        outcome(&decision),
                        expected,
                        "{mode:?} {effect:?} {scopes:?} {tools:?}"
                    );
                }
            }
        }
    }
}

#[test]
fn what_is_allowed_is_the_very_call() {
    let (spec, call, facts) = ordinary(Effect::Read);
    let session = session(Mode::ReadOnly, &[Scope::Tools], None);
    match gate().decide(call.clone(), &spec, &facts, &session, None) {
        Decision::Allow(allowed) => {
            assert_eq!(allowed.get(), &call);
            assert_eq!(allowed.into_inner(), call);
        }
        other @ (Decision::Ask(_) | Decision::Deny(_)) => panic!("{other:?}"),
    }
}

#[test]
fn a_no_prompt_zone_spares_the_question_and_nothing_else() {
    let (write, call, _) = ordinary(Effect::Write);
    for (real, mode, expected) in [
        ("/w/scratch/a.txt", Mode::ReadOnly, "allow"),
        ("/w/scratch/a.txt", Mode::PlanOnly, "plan_only"),
        ("/w/scratch/.env", Mode::ReadOnly, "credentials"),
        ("/w/scratch2/a.txt", Mode::ReadOnly, "readonly"),
        ("/elsewhere/a.txt", Mode::FullAuto, "paths"),
    ] {
        let facts = Facts {
            paths: vec![write_fact("a.txt", resolved(real))],
            write_bytes: 4,
            ..Facts::default()
        };
        let session = session(mode, &[Scope::Tools], None);
        let decision = gate().decide(call.clone(), &write, &facts, &session, None);
        assert_eq!(outcome(&decision), expected, "{real}");
    }
}

#[test]
fn a_call_that_is_not_understood_is_refused() {
    let session = session(Mode::FullAuto, &[Scope::Tools], None);
    let (spec, _, facts) = ordinary(Effect::Read);
    let gate = gate();
    let decide = |call, spec: &ToolSpec| outcome(&gate.decide(call, spec, &facts, &session, None));
    assert_eq!(
        decide(call("other", &json!({"path": "a.txt"})), &spec),
        "unrecognised"
    );
    assert_eq!(decide(call("tool", &json!([1])), &spec), "malformed");
    let modest = crate::testing::spec("tool", ToolMode::Command, Effect::Read);
    assert_eq!(decide(call("tool", &json!({})), &modest), "unrecognised");
}

/// Names that meet every floor, and names that meet none.
fn any_path() -> impl Strategy<Value = PathFact> {
    let access = prop::sample::select(vec![Access::Read, Access::List, Access::Write]);
    let folder = prop::sample::select(vec![
        "/w",
        "/w/scratch",
        "/w/data",
        "/w/sub",
        "/elsewhere",
        "/w/.git",
    ]);
    let name = prop::sample::select(vec!["a.txt", ".env", ".bashrc", "id_rsa.pub", "b"]);
    let kind = prop::sample::select(vec![
        PathKind::File,
        PathKind::Folder,
        PathKind::Special,
        PathKind::Missing,
    ]);
    let resolved = (folder, name, kind, any::<bool>()).prop_map(|(folder, name, kind, is_link)| {
        Ok(ResolvedPath {
            real: format!("{folder}/{name}").into(),
            kind,
            hard_links: 1,
            is_link,
        })
    });
    let fault = prop::sample::select(vec![
        Err(PathFault::Outside),
        Err(PathFault::Missing),
        Err(PathFault::Malformed("it is empty".into())),
        Err(PathFault::Unreadable("denied".into())),
    ]);
    (access, prop_oneof![4 => resolved, 1 => fault])
        .prop_map(|(access, resolution)| fact("path", "a.txt", access, resolution))
}

prop_compose! {
    fn any_question()(
        mode in prop::sample::select(vec![
            ToolMode::ReadText, ToolMode::ListFiles, ToolMode::WriteText, ToolMode::Calculate, ToolMode::Command,
            ToolMode::HttpGet, ToolMode::LastOutput,
        ]),
        effect in prop::sample::select(EFFECTS.to_vec()),
        has_content in any::<bool>(),
        paths in prop::collection::vec(any_path(), 0..3),
    ) -> (ToolSpec, ToolCall, Facts) {
        let arguments = if has_content {
            json!({"path": "a.txt", "content": "x"})
        } else {
            json!({"path": "a.txt"})
        };
        (spec("tool", mode, effect), call("tool", &arguments), Facts { paths, write_bytes: 1, ..Facts::default() })
    }
}

fn decide(zones: &Zones, question: &(ToolSpec, ToolCall, Facts), session: &Session) -> Decision {
    let (spec, call, facts) = question;
    PermissionGate::new(Policy {
        zones: zones.clone(),
        ..Policy::default()
    })
    .decide(call.clone(), spec, facts, session, None)
}

#[test]
fn a_file_with_several_names_is_asked_about_in_every_mode_before_a_command_changes_it() {
    use crate::shell;
    let rules = shell::Policy::compile(&shell::Options::default()).expect("rules");
    let place = shell::Place::new("/w", "/home/me");
    for (line, hard_links, mode, expected) in [
        ("echo x >> a.txt", 1, Mode::FullAuto, "allow"),
        ("echo x >> a.txt", 2, Mode::FullAuto, "hard_links"),
        ("sed -i s/a/b/ a.txt", 2, Mode::FullAuto, "hard_links"),
        ("sed -i s/a/b/ a.txt", 2, Mode::ReadOnly, "hard_links"),
        ("sed -i s/a/b/ a.txt", 2, Mode::PlanOnly, "plan_only"),
        ("rm a.txt", 2, Mode::FullAuto, "allow"),
        ("rm a.txt; echo x > a.txt", 2, Mode::FullAuto, "hard_links"),
        ("cat a.txt", 2, Mode::ReadOnly, "allow"),
    ] {
        let analysis = rules.analyse(line, &place);
        let paths = analysis
            .operands()
            .iter()
            .map(|operand| {
                let real = resolved(&operand.text).map(|resolved| ResolvedPath {
                    hard_links,
                    ..resolved
                });
                fact("command", &operand.text, operand.access, real)
            })
            .collect();
        let facts = Facts {
            paths,
            can_mask: true,
            command: Some(Arc::new(analysis)),
            ..Facts::default()
        };
        let mut spec = spec("tool", ToolMode::Shell, Effect::External);
        spec.parameters.clear();
        let call = call("tool", &json!({"command": line}));
        let session = session(mode, &[Scope::Tools], None);
        let decision = gate().decide(call, &spec, &facts, &session, None);
        assert_eq!(outcome(&decision), expected, "{line} {hard_links} {mode:?}");
    }
}

proptest! {
    #[test]
    fn a_blocked_zone_never_turns_a_refusal_into_an_allow(
        question in any_question(),
        blocked in prop::sample::select(vec!["/w", "/w/scratch", "/w/sub", "/", "", "/elsewhere"]),
        mode in prop::sample::select(Mode::ALL.to_vec()),
    ) {
        let session = session(mode, &[Scope::Tools], None);
        let before = decide(&zones(), &question, &session);
        let mut more = zones();
        more.blocked.push(blocked.into());
        let after = decide(&more, &question, &session);
        let order = |decision: &Decision| match decision {
            Decision::Allow(_) => 2,
            Decision::Ask(_) => 1,
            Decision::Deny(_) => 0,
        };
        prop_assert!(order(&after) <= order(&before), "{:?} became {:?}", before, after);
    }

    #[test]
    fn no_mode_opens_a_floor(question in any_question()) {
        let (spec, call, facts) = &question;
        let floor = floors::check(call, spec, facts, &zones());
        for mode in Mode::ALL {
            let decision = decide(&zones(), &question, &session(mode, &[Scope::Tools], None));
            if floor.is_some() {
                prop_assert!(matches!(decision, Decision::Deny(_)), "{:?} in {:?}", decision, mode);
            }
        }
    }

    #[test]
    fn a_freer_mode_never_allows_less_and_a_key_without_the_scope_gets_nothing(question in any_question()) {
        let allows = |mode, scopes: &[Scope]| {
            matches!(decide(&zones(), &question, &session(mode, scopes, None)), Decision::Allow(_))
        };
        let allowed = Mode::ALL.map(|mode| allows(mode, &[Scope::Tools]));
        prop_assert!(allowed.is_sorted(), "{:?}", allowed);
        prop_assert!(!Mode::ALL.into_iter().any(|mode| allows(mode, &[Scope::Chat, Scope::Admin])));
    }

    #[test]
    fn whatever_is_allowed_touches_only_paths_inside(question in any_question()) {
        let decision = decide(&zones(), &question, &session(Mode::FullAuto, &[Scope::Tools], None));
        if matches!(decision, Decision::Allow(_)) {
            for path in &question.2.paths {
                match &path.resolution {
                    Ok(resolved) => {
                        prop_assert!(resolved.real.starts_with("/w") && !resolved.real.starts_with("/w/data"));
                        prop_assert!(resolved.kind != PathKind::Special);
                    }
                    Err(fault) => {
                        prop_assert!(*fault == PathFault::Missing && path.access != Access::Write);
                    }
                }
            }
        }
    }

    #[test]
    fn a_reason_never_shows_where_a_path_leads(question in any_question()) {
        let decision = decide(&zones(), &question, &session(Mode::FullAuto, &[Scope::Tools], None));
        if let Decision::Deny(denial) = decision {
            prop_assert!(!denial.reason.contains("/elsewhere"), "{}", denial.reason);
            prop_assert!(!denial.reason.contains("/w/"), "{}", denial.reason);
        }
    }
}
