use std::sync::Arc;

use proptest::prelude::*;
use serde_json::json;
use tidegate_core::{
    caller::{Attendance, Caller, Mode, Scope},
    clock::Timestamp,
    id::{KeyId, RunId, UserId},
    tool::{Effect, ToolMode},
};

use super::*;
use crate::{
    Basis, Decision, PermissionGate, Policy,
    testing::{call, resolved, spec, write_fact},
};

fn session(mode: Mode) -> Session {
    let key_id = KeyId::new("k1");
    Session {
        caller: Arc::new(Caller {
            user: UserId::of(&key_id, Some("ann")).unwrap(),
            key_id,
            scopes: [Scope::Tools].into(),
            mode_ceiling: mode,
            models: None,
            tools: None,
            tokens_per_day: None,
        }),
        mode,
        conversation: "c1".to_owned(),
        attendance: Attendance::Attended,
    }
}

fn facts(real: &str) -> Facts {
    Facts {
        paths: vec![write_fact("a.txt", resolved(real))],
        write_bytes: 1,
        ..Facts::default()
    }
}

fn claimed(binding: ApprovalBinding) -> Approval {
    let at = Timestamp::UNIX_EPOCH;
    Approval {
        id: ApprovalId::new("appr_1"),
        run_id: RunId::new("run_1"),
        binding,
        summary: String::new(),
        arguments: String::new(),
        reasons: Vec::new(),
        created_at: at,
        expires_at: at,
        state: ApprovalState::Claimed,
        decided_by: None,
        decided_at: None,
    }
}

#[test]
fn only_a_claimed_approval_becomes_a_grant() {
    for state in ApprovalState::ALL {
        let approval = Approval {
            state,
            ..claimed(binding(
                &call("t", &json!({})),
                &Facts::default(),
                &session(Mode::ReadOnly),
                "p",
            ))
        };
        assert_eq!(
            Grant::of(&approval).is_some(),
            state == ApprovalState::Claimed,
            "{state:?}"
        );
    }
}

#[test]
fn a_grant_opens_its_own_call_and_nothing_beside() {
    let zones = crate::Zones {
        readable: vec!["/w".into()],
        writable: vec!["/w".into()],
        ..crate::Zones::default()
    };
    let policy = |digest: &str| Policy {
        zones: zones.clone(),
        digest: digest.to_owned(),
        ..Policy::default()
    };
    let gate = PermissionGate::new(policy("p1"));
    let write = spec("write_file", ToolMode::WriteText, Effect::Write);
    let arguments = json!({"path": "a.txt", "content": "x"});
    let asked = |arguments: &Value| call("write_file", arguments);
    let session = session(Mode::ReadOnly);
    let Decision::Ask(question) = gate.decide(asked(&arguments), &write, &facts("/w/a.txt"), &session, None)
    else {
        panic!("it is asked about");
    };
    let grant = Grant::of(&claimed(question.binding)).unwrap();
    let decide = |gate: &PermissionGate, arguments: &Value, real: &str, session: &Session| match gate.decide(
        asked(arguments),
        &write,
        &facts(real),
        session,
        Some(&grant),
    ) {
        Decision::Allow(allowed) => allowed.basis() == &Basis::Grant(ApprovalId::new("appr_1")),
        Decision::Ask(_) | Decision::Deny(_) => false,
    };
    assert!(decide(&gate, &arguments, "/w/a.txt", &session));
    let turned = json!({"content": "x", "path": "a.txt"});
    assert!(
        decide(&gate, &turned, "/w/a.txt", &session),
        "the order of names is no difference"
    );
    assert!(!decide(
        &gate,
        &json!({"path": "a.txt", "content": "y"}),
        "/w/a.txt",
        &session
    ));
    assert!(
        !decide(&gate, &arguments, "/w/b.txt", &session),
        "a link led elsewhere meanwhile"
    );
    assert!(
        !decide(&gate, &arguments, "/w/.bashrc", &session),
        "no grant opens a floor"
    );
    assert!(!decide(
        &PermissionGate::new(policy("p2")),
        &arguments,
        "/w/a.txt",
        &session
    ));
    let elsewhere = Session {
        conversation: "c2".to_owned(),
        ..session.clone()
    };
    assert!(!decide(&gate, &arguments, "/w/a.txt", &elsewhere));
    let planning = Session {
        mode: Mode::PlanOnly,
        ..session.clone()
    };
    assert!(!decide(&gate, &arguments, "/w/a.txt", &planning));
}

proptest! {
    #[test]
    fn canonical_text_tells_values_apart_and_ignores_the_order_of_names(
        left in "[a-c]{0,3}", right in "[a-c]{0,3}", number in any::<i64>(),
    ) {
        let text = |value: &Value| {
            let mut out = String::new();
            canonical(value, &mut out);
            out
        };
        let one = json!({"a": left, "b": [right, number], "c": null});
        let two = json!({"c": null, "b": [right, number], "a": left});
        prop_assert_eq!(text(&one), text(&two));
        let other = json!({"a": format!("{left}x"), "b": [right, number], "c": null});
        prop_assert_ne!(text(&one), text(&other));
    }
}
