//! The tools that run programs, as the engine uses them: facts, the real gate, run.

use std::{
    collections::BTreeSet,
    io::{Read, Write},
    net::TcpListener,
    sync::Arc,
};

use serde_json::{Value, json};
use tidegate_core::{
    caller::{Attendance, Caller, Mode, Scope},
    clock::Clock,
    id::{CallId, KeyId, RunId, UserId},
    tool::{Arguments, ToolCall, ToolResult},
};
use tidegate_gate::{
    Access, Decision, Facts, PathFact, PathKind, PermissionGate, ResolvedPath, Session, ToolBox, ToolContext,
    Zones,
    gate::Policy as GatePolicy,
    guards::{address, outbound},
    shell,
};
use tidegate_io::{
    files::View,
    guarded::{self, Client},
};
use tidegate_tools::{Isolation, Options as ToolOptions, Outside, Tools};

use super::*;

#[derive(Debug)]
struct Frozen;

impl Clock for Frozen {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }
}

struct Desk {
    tools: Tools,
    gate: PermissionGate,
    context: ToolContext,
}

impl Desk {
    fn new(world: &World, hosts: Vec<String>) -> Self {
        let zones = Zones {
            readable: vec![world.path("work")],
            writable: vec![world.path("work")],
            own: vec![world.path("outside")],
            ..Zones::default()
        };
        let rules = address::Options {
            ssrf_allow_hosts: hosts,
            ..address::Options::default()
        };
        let policy = guarded::Policy {
            address: address::Policy::compile(&rules).expect("rules"),
            secrets: outbound::Secrets::none().expect("none"),
        };
        let network = Client::new(guarded::Options::default(), policy).expect("a client");
        let options = ToolOptions {
            knowledge_bank: world.path("work"),
            ..ToolOptions::default()
        };
        let outside = Outside {
            network,
            shell: Arc::new(shell::Policy::compile(&shell::Options::default()).expect("rules")),
            place: shell::Place::new(
                world.path("work").display().to_string(),
                tidegate_io::sandbox::HOME,
            ),
            view: View::open(Path::new("/")).expect("the machine"),
            knowledge: None,
            isolation: Isolation::Sandbox {
                options: Options::default(),
                program: program(),
            },
        };
        let tools = Tools::open(options, zones.clone(), Arc::new(Frozen), outside).expect("tools");
        let key_id = KeyId::new("k1");
        Self {
            tools,
            gate: PermissionGate::new(GatePolicy {
                zones,
                network: address::Policy::compile(&rules).expect("rules"),
                ..GatePolicy::default()
            }),
            context: ToolContext {
                run_id: RunId::new("r1"),
                caller: Arc::new(Caller {
                    user: UserId::of(&key_id, None).expect("a user"),
                    key_id,
                    scopes: BTreeSet::from([Scope::Tools]),
                    mode_ceiling: Mode::FullAuto,
                    models: None,
                    tools: None,
                    tokens_per_day: None,
                }),
                learner: tidegate_gate::Learner::default(),
                host: Arc::new(tidegate_gate::NoHost),
            },
        }
    }

    async fn call(&self, name: &str, arguments: Value, written: Option<PathBuf>) -> ToolResult {
        match self.decide(name, arguments, written).await {
            Err(result) => result,
            Ok(Decision::Allow(call)) => self.tools.run(call, &self.context).await,
            Ok(Decision::Deny(denial)) => ToolResult::Refused {
                floor: denial.floor.to_owned(),
                reason: denial.reason,
            },
            Ok(Decision::Ask(question)) => panic!("{name}: {question:?}"),
        }
    }

    /// What the gate makes of a call; a call that does not fit its row has its result.
    async fn decide(
        &self,
        name: &str,
        arguments: Value,
        written: Option<PathBuf>,
    ) -> Result<Decision, ToolResult> {
        let specs = self.tools.specs();
        let spec = specs.iter().find(|spec| spec.name == name).expect("a row");
        let call = ToolCall {
            id: CallId::new("c1"),
            name: name.to_owned(),
            arguments: Arguments::Object(arguments.as_object().expect("an object").clone()),
        };
        self.tools.check(&call, spec)?;
        let mut facts: Facts = self.tools.facts(&call, spec, Mode::FullAuto).await;
        facts.paths.extend(written.map(|real| PathFact {
            argument: "folder".to_owned(),
            requested: "folder".to_owned(),
            access: Access::Write,
            resolution: Ok(ResolvedPath {
                kind: if real.exists() {
                    PathKind::File
                } else {
                    PathKind::Missing
                },
                real,
                hard_links: 1,
                is_link: false,
            }),
        }));
        let session = Session {
            caller: Arc::clone(&self.context.caller),
            mode: Mode::FullAuto,
            conversation: "c".to_owned(),
            attendance: Attendance::Attended,
        };
        Ok(self.gate.decide(call, spec, &facts, &session, None))
    }

    async fn ok(&self, name: &str, arguments: Value) -> String {
        match self.call(name, arguments, None).await {
            ToolResult::Ok { text, .. } => text,
            other @ (ToolResult::Failed { .. }
            | ToolResult::Refused { .. }
            | ToolResult::NeedsApproval { .. }
            | ToolResult::TimedOut { .. }
            | ToolResult::Cancelled) => panic!("{name}: {other:?}"),
        }
    }
}

/// The sandbox that the tools take.
async fn strongest() -> Option<Sandbox> {
    sandboxes().await.into_iter().next()
}

async fn repository(sandbox: &Sandbox, world: &World) {
    let script = "git init -q -b main . && git config user.name one && git config user.email one@example.org && \
                  printf '.env\\nserver\\nsocket\\n' > .git/info/exclude && git add readme.md deep/notes.md && \
                  git add -f deep/.env && git commit -q -m 'Begin here'";
    let policy = Policy {
        writable: vec![world.path("work")],
        working_folder: WorkingFolder::Folder(world.path("work")),
        ..Policy::default()
    };
    let outcome = sandbox.run(bash(script), &policy).await.expect("a run");
    assert_eq!(outcome.exit, Exit::Code(0), "{}", text(&outcome.stderr));
}

#[tokio::test]
async fn a_snippet_computes_and_reaches_nothing() {
    if strongest().await.is_some() {
        let world = World::new();
        let desk = Desk::new(&world, Vec::new());
        let said = desk
            .ok(
                "run_sandboxed",
                json!({"code": "import math, os\nprint(math.factorial(20), os.getcwd())"}),
            )
            .await;
        assert!(
            said.starts_with("exit code: 0\nstdout:\n2432902008176640000 /tmp"),
            "{said}"
        );
        let code = format!("print(open({:?}).read())", world.path("work/readme.md"));
        for code in [
            code.as_str(),
            "import urllib.request as u; u.urlopen('http://127.0.0.1/')",
            "raise SystemExit(3)",
        ] {
            let result = desk.call("run_sandboxed", json!({"code": code}), None).await;
            let ToolResult::Failed { message, .. } = result else {
                panic!("{code}: {result:?}")
            };
            assert!(
                message.starts_with("exit code: ") && !message.contains("hello"),
                "{message}"
            );
        }
    }
}

#[tokio::test]
async fn looks_at_a_repository_say_what_changed_and_no_credentials() {
    if let Some(sandbox) = strongest().await {
        let world = World::new();
        repository(&sandbox, &world).await;
        let desk = Desk::new(&world, Vec::new());
        std::fs::OpenOptions::new()
            .append(true)
            .open(world.path("work/readme.md"))
            .and_then(|mut file| file.write_all(b"\nmore"))
            .expect("a change");
        let before = world.snapshot();
        let said = desk.ok("git_status", json!({})).await;
        assert!(
            said.contains("## main") && said.contains(" M readme.md"),
            "{said}"
        );
        let said = desk.ok("git_diff", json!({"path": "readme.md"})).await;
        assert!(said.contains("+more"), "{said}");
        let said = desk.ok("git_diff", json!({})).await;
        assert!(said.contains("+more") && !said.contains("canary"), "{said}");
        let said = desk.ok("git_log", json!({"count": 1})).await;
        assert!(said.contains("Begin here") && said.contains(" one\n"), "{said}");
        assert_eq!(world.snapshot(), before);
        for arguments in [
            json!({"revision": "--output=x"}),
            json!({"path": "--help"}),
            json!({"path": "deep/.env"}),
        ] {
            let result = desk.call("git_diff", arguments.clone(), None).await;
            assert!(!result.is_ok(), "{arguments}: {result:?}");
        }
        let said = desk
            .ok("execute_shell", json!({"command": "git log --oneline | wc -l"}))
            .await;
        assert_eq!(said.trim(), "1");
    }
}

#[tokio::test]
async fn a_repository_that_names_a_program_is_left_alone() {
    if let Some(sandbox) = strongest().await {
        for (number, setting) in [
            "[core]\n\tfsmonitor = touch planted",
            "[diff]\n\texternal = touch planted",
            "[include]\n\tpath = x",
        ]
        .iter()
        .enumerate()
        {
            let world = World::new();
            repository(&sandbox, &world).await;
            std::fs::OpenOptions::new()
                .append(true)
                .open(world.path("work/.git/config"))
                .and_then(|mut file| writeln!(file, "{setting}"))
                .expect("a setting");
            let desk = Desk::new(&world, Vec::new());
            let result = desk.call("git_status", json!({}), None).await;
            assert!(
                matches!(&result, ToolResult::Failed { message, .. } if message.contains("names a program")),
                "{number} {result:?}"
            );
            let result = desk
                .call("execute_shell", json!({"command": "git diff"}), None)
                .await;
            assert!(!result.is_ok(), "{number} {result:?}");
            assert!(!world.path("work/planted").exists());
        }
    }
}

#[tokio::test]
async fn a_commit_holds_what_was_named_and_runs_no_hook() {
    if let Some(sandbox) = strongest().await {
        let world = World::new();
        repository(&sandbox, &world).await;
        let hook = world.path("work/.git/hooks/post-commit");
        std::fs::create_dir_all(hook.parent().expect("a folder")).expect("hooks");
        std::io::Write::write_all(
            &mut fs::File::create_new(&hook).expect("a hook"),
            b"#!/bin/sh\ntouch /tmp/hooked; exit 1\n",
        )
        .expect("its text");
        fs::set_permissions(&hook, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("its mode");
        for name in ["work/new.md", "work/other.md"] {
            drop(fs::File::create_new(world.path(name)).expect("a file"));
        }
        let desk = Desk::new(&world, Vec::new());
        let named = Some(world.path("work/new.md"));
        let result = desk
            .call(
                "git_commit",
                json!({"message": "Add the new page", "paths": ["new.md"]}),
                named.clone(),
            )
            .await;
        assert!(result.is_ok(), "{:?} {result:?}", sandbox.level());
        let said = desk.ok("git_log", json!({"count": 1})).await;
        assert!(said.contains("Add the new page"), "{said}");
        let said = desk.ok("git_status", json!({})).await;
        assert!(said.contains("?? other.md") && !said.contains("new.md"), "{said}");
        for arguments in [
            json!({"message": " "}),
            json!({"message": "x", "paths": ["--all"]}),
            json!({"message": "x", "paths": ["../outside/secret"]}),
            json!({"message": "x", "paths": ["deep/.env"]}),
        ] {
            let result = desk.call("git_commit", arguments.clone(), named.clone()).await;
            assert!(!result.is_ok(), "{arguments}: {result:?}");
        }
    }
}

/// A server of files, as much HTTP as git's plain transport asks for.
fn serve(root: PathBuf) -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a listener");
    let port = listener.local_addr().expect("its address").port();
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut stream = stream;
            let mut head = Vec::new();
            let mut byte = [0];
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
                head.extend_from_slice(&byte);
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let path = head
                .split(' ')
                .nth(1)
                .unwrap_or("/")
                .split('?')
                .next()
                .unwrap_or("/")
                .trim_start_matches('/');
            let answer = match fs::read(root.join(path)) {
                Ok(body) => [
                    format!(
                        "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
                        body.len()
                    )
                    .into_bytes(),
                    body,
                ]
                .concat(),
                Err(_) => {
                    b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
                }
            };
            drop(stream.write_all(&answer));
        }
    });
    port
}

#[tokio::test]
async fn a_clone_goes_into_a_new_folder_and_nowhere_else() {
    if let Some(sandbox) = strongest().await {
        let world = World::new();
        repository(&sandbox, &world).await;
        let policy = Policy {
            writable: vec![world.path("work")],
            working_folder: WorkingFolder::Folder(world.path("work")),
            ..Policy::default()
        };
        let outcome = sandbox
            .run(bash("git update-server-info"), &policy)
            .await
            .expect("a run");
        assert_eq!(outcome.exit, Exit::Code(0));
        let port = serve(world.path("work"));
        let desk = Desk::new(&world, vec![format!("127.0.0.1:{port}")]);
        let url = format!("http://127.0.0.1:{port}/.git");
        let folder = |name: &str| Some(world.path("work").join(name));
        let result = desk
            .call("git_clone", json!({"url": url, "folder": "copy"}), folder("copy"))
            .await;
        assert!(result.is_ok(), "{:?} {result:?}", sandbox.level());
        assert_eq!(
            fs::read(world.path("work/copy/readme.md")).expect("the copy"),
            b"hello"
        );
        for (url, name) in [
            (url.as_str(), "copy"),
            (&format!("http://127.0.0.1:{port}/nothing"), "none"),
            ("http://127.0.0.1:1/x", "loopback"),
            ("ext::sh -c id", "ext"),
            ("file:///etc", "file"),
            ("git@example.org:x.git", "ssh"),
            ("--upload-pack=id", "option"),
        ] {
            let result = desk
                .call("git_clone", json!({"url": url, "folder": name}), folder(name))
                .await;
            assert!(!result.is_ok(), "{url}: {result:?}");
            assert!(
                name == "copy" || !world.path("work").join(name).exists(),
                "{name} was left behind"
            );
        }
    }
}

#[tokio::test]
async fn a_second_name_of_a_file_opens_nothing_that_the_first_does_not() {
    if strongest().await.is_some() {
        let world = World::new();
        for (from, to) in [
            ("outside/secret", "work/plain.md"),
            ("work/deep/.env", "work/deep/list.md"),
            ("library/text", "work/shared.md"),
        ] {
            fs::hard_link(world.path(from), world.path(to)).expect("a link");
        }
        let desk = Desk::new(&world, Vec::new());
        for path in ["plain.md", "deep/list.md"] {
            for (tool, arguments) in [
                ("read_text", json!({"path": path})),
                ("write_file", json!({"path": path, "content": "x"})),
                ("execute_shell", json!({"command": format!("cat {path}")})),
                ("execute_shell", json!({"command": format!("echo x >> {path}")})),
            ] {
                let result = desk.call(tool, arguments.clone(), None).await;
                assert!(
                    matches!(result, ToolResult::Refused { .. }),
                    "{arguments}: {result:?}"
                );
            }
        }
        // A twin of anything else may be read, and is replaced under its own name alone by the file tool.
        assert!(
            desk.ok("read_text", json!({"path": "shared.md"}))
                .await
                .contains("library")
        );
        let change = json!({"command": "echo more >> shared.md"});
        let decision = desk.decide("execute_shell", change, None).await;
        assert!(
            matches!(&decision, Ok(Decision::Ask(question)) if question.code == "hard_links"),
            "{decision:?}"
        );
        desk.ok("write_file", json!({"path": "shared.md", "content": "new"}))
            .await;
        assert_eq!(
            fs::read(world.path("library/text")).expect("the twin"),
            b"library"
        );
        let change = json!({"command": "echo more >> shared.md"});
        desk.ok("execute_shell", change).await;
    }
}
