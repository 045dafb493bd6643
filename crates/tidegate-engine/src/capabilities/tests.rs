use std::collections::BTreeSet;

use tidegate_core::{
    id::{KeyId, UserId},
    tool::{Effect, ToolMode},
};
use tidegate_gate::{Policy, caps::Caps};

use super::*;
use crate::toolset::{Bounds, Catalogue, Selection, Toolset};

fn caller(scopes: &[Scope]) -> Caller {
    let key_id = KeyId::new("k");
    Caller {
        user: UserId::of(&key_id, None).unwrap(),
        key_id,
        scopes: scopes.iter().copied().collect::<BTreeSet<_>>(),
        mode_ceiling: Mode::ReadOnly,
        models: None,
        tools: None,
        tokens_per_day: None,
    }
}

fn tool(name: &str, mode: ToolMode) -> Arc<ToolSpec> {
    Arc::new(ToolSpec {
        name: name.to_owned(),
        description: "Does it. Long story.".to_owned(),
        mode,
        effect: mode.effect(),
        parameters: Vec::new(),
        input_schema: None,
        timeout_ms: 1,
        output_bytes_max: 1,
    })
}

/// What a report rests on, to change a part of it.
#[derive(Debug)]
struct World {
    caller: Caller,
    tools: Vec<Arc<ToolSpec>>,
    options: Options,
    gate: PermissionGate,
    surroundings: Surroundings,
    hooks: Vec<String>,
    mode: Mode,
    requested: Option<Mode>,
}

impl World {
    fn new() -> Self {
        Self {
            caller: caller(&[Scope::Tools]),
            tools: vec![
                tool("write_file", ToolMode::WriteText),
                tool("read_file", ToolMode::ReadText),
            ],
            options: Options::default(),
            gate: PermissionGate::new(Policy::default()),
            surroundings: Surroundings {
                knowledge_bank: "/srv/bank".into(),
                ..Surroundings::default()
            },
            hooks: Vec::new(),
            mode: Mode::ReadOnly,
            requested: None,
        }
    }

    fn subject(&self) -> Subject<'_> {
        Subject {
            model: "tidegate",
            caller: &self.caller,
            requested: self.requested,
            mode: self.mode,
            attendance: self.options.attendance,
            tools: &self.tools,
            options: &self.options,
            gate: &self.gate,
            surroundings: &self.surroundings,
            hooks: &self.hooks,
        }
    }

    fn text(&self) -> String {
        report(self.subject(), &[("planner".to_owned(), "Plans.".to_owned())])
    }

    fn summary(&self) -> String {
        let catalogue = Catalogue::new(self.tools.clone().into(), Bounds::of(&self.options), None);
        summary(&Toolset::new(Selection::all(Arc::new(catalogue)), Vec::new()), self.mode)
    }

    fn zones(&mut self, zones: Zones) {
        self.gate = PermissionGate::new(Policy {
            zones,
            ..Policy::default()
        });
    }
}

#[test]
fn the_report_names_every_tool_and_floor_and_what_is_not_set() {
    let mut world = World::new();
    let text = world.text();
    for part in [
        "`write_file`: Does it. Each call needs an approval.",
        "`read_file`: Does it.\n",
        "planner: Plans.",
        "readonly",
        "before a tool: none",
        "tokens of a turn not set",
        "US dollars of a turn not set",
        "writes in a turn not set",
        "blocked_paths not set",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    for (floor, _) in FLOORS {
        assert!(text.contains(floor), "{floor} is missing in\n{text}");
    }
    let gathered = gather(world.subject(), &[]);
    let names: Vec<_> = gathered.tools.iter().map(|tool| tool.name.as_str()).collect();
    let registry: Vec<_> = world.tools.iter().map(|spec| spec.name.as_str()).collect();
    assert_eq!(names, registry);
    assert!(world.summary().contains("write_file"));
    world.tools.clear();
    assert!(
        world
            .text()
            .contains("Tools: none (the operator offers none to this key)")
    );
}

#[test]
fn the_text_changes_with_every_setting_that_it_tells_of() {
    let plain = World::new().text();
    let changes: [fn(&mut World); 15] = [
        |world| world.options.turn_tokens_max = 60_000,
        |world| world.options.max_turn_cost_usd = 0.5,
        |world| world.options.approval_s = 17,
        |world| world.options.attendance = Attendance::Deny,
        |world| world.options.denials_max = 0,
        |world| world.caller.tokens_per_day = Some(5),
        |world| world.caller.scopes = [Scope::Tools, Scope::ApprovalsDecideAny].into(),
        |world| world.hooks = vec!["office-hours".to_owned()],
        |world| world.surroundings.audit.enabled = true,
        |world| world.surroundings.network.blocked_domains = vec!["pastebin.com".to_owned()],
        |world| world.surroundings.network.private_addresses = true,
        |world| world.surroundings.sandbox = Some((Some("bwrap"), "Programs run in a sandbox.".to_owned())),
        |world| world.surroundings.is_disposable = true,
        |world| {
            world.zones(Zones {
                no_prompt: vec!["/srv/bank/drafts".into()],
                ..Zones::default()
            });
        },
        |world| {
            world.gate = PermissionGate::new(Policy {
                caps: Caps {
                    writes_per_turn_max: 20,
                    write_bytes_max: 0,
                },
                ..Policy::default()
            });
        },
    ];
    for (index, change) in changes.into_iter().enumerate() {
        let mut world = World::new();
        change(&mut world);
        assert_ne!(world.text(), plain, "change {index} is not told");
    }
}

#[test]
fn no_absolute_path_is_told() {
    let mut world = World::new();
    world.zones(Zones {
        readable: vec!["/srv/bank".into(), "/home/ann/secret-project".into()],
        blocked: vec!["/srv/bank/archive".into()],
        own: vec!["/var/lib/tidegate".into()],
        ..Zones::default()
    });
    world.surroundings.sandbox = Some((
        None,
        "Programs cannot be run: none works. `bwrap` does not work: /usr/bin/bwrap is missing.".to_owned(),
    ));
    let text = world.text();
    assert!(text.contains("readable: . and 1 more"), "{text}");
    assert!(text.contains("blocked_paths: archive"), "{text}");
    let json = serde_json::to_string(&gather(world.subject(), &[])).unwrap();
    for secret in ["/srv", "/home", "/var", "/usr", "secret-project"] {
        assert!(
            !text.contains(secret) && !json.contains(secret),
            "{secret}: {text}{json}"
        );
    }
}

#[test]
fn who_decided_the_mode_is_told() {
    let mut world = World::new();
    let decided = |world: &World| gather(world.subject(), &[]).mode.decided_by;
    assert_eq!(decided(&world), "key");
    world.caller.mode_ceiling = Mode::FullAuto;
    world.options.default_permission_mode = Some(Mode::ReadOnly);
    assert_eq!(decided(&world), "setting");
    world.requested = Some(Mode::PlanOnly);
    world.mode = Mode::PlanOnly;
    assert_eq!(decided(&world), "request");
    let gathered = gather(world.subject(), &[]);
    let write = gathered
        .tools
        .iter()
        .find(|tool| tool.name == "write_file")
        .unwrap();
    assert_eq!((write.gate, write.effect), ("refused", Effect::Write.name()));
}
