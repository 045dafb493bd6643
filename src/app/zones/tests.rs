use std::os::unix::fs::symlink;

use super::*;
use crate::{
    app::shipped,
    config::{Environment, Flags, load},
};

/// A home that is its own knowledge bank, with a configuration of these lines.
struct World {
    folder: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        for file in shipped::FILES {
            shipped::write(folder.path(), file).unwrap();
        }
        Self { folder }
    }

    fn home(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.home().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        tidegate_io::files::write_private(&path, text.as_bytes()).unwrap();
    }

    fn zones(&self, lines: &str, variables: &[(&str, &str)]) -> Zones {
        self.put(FILE, &format!("time_zone = \"UTC\"\n{lines}"));
        let flags = Flags {
            file: Some(self.home().join(FILE)),
            settings: Vec::new(),
        };
        let environment = Environment::from_pairs(variables.iter().copied());
        let loaded = load(&flags, &environment).unwrap();
        zones(&Settings::resolve(&loaded, &environment, &self.home()).unwrap())
    }

    fn check(&self, zones: &Zones, blocked: &[&str], free: &[&str]) {
        for name in blocked {
            assert!(zones.is_blocked(&self.home().join(name)), "{name} {zones:?}");
        }
        for name in free {
            assert!(!zones.is_blocked(&self.home().join(name)), "{name} {zones:?}");
        }
    }
}

#[test]
fn what_it_is_configured_by_and_what_it_keeps_are_blocked_wherever_they_lie() {
    let world = World::new();
    let lines = "[gate]\nno_prompt_paths = [\"drafts\"]\n[tools]\nknowledge_bank = \".\"\n\
                 [store]\npath = \"../kept/here.db\"\n";
    let zones = world.zones(lines, &[]);
    let blocked = [
        "data/tidegate.db",
        "logs/tools.jsonl",
        "AGENT.md",
        "skills/policy-lookup/SKILL.md",
        "tidegate.toml",
        "mcp_servers.json",
        "kept/here.db",
        "kept/here.db-wal",
        "kept/here.db-shm",
        "kept/here.db.lock",
        "kept/here.db.keys",
    ];
    world.check(&zones, &blocked, &["knowledge-bank/handbook.md", "kept/notes.md"]);
    assert_eq!(zones.no_prompt, [world.home().join("drafts")]);
}

#[test]
fn files_that_hold_a_credential_are_blocked() {
    let world = World::new();
    let (_, first) = crate::keys::generate(&crate::clock::OsEntropy);
    for (name, text) in [
        ("keys/one", "sk-test"),
        ("keys/two", "sk-test"),
        ("keys/first", first.expose()),
    ] {
        world.put(name, text);
    }
    let lines = "[tools]\nknowledge_bank = \".\"\n[models.providers.mine]\nbase_url = \"http://127.0.0.1:1\"\n\
                 api_key = \"file:keys/one\"\nheaders = { x-gateway = \"file:keys/two\" }\n";
    let zones = world.zones(lines, &[("TIDEGATE_BOOTSTRAP_KEY", "file:keys/first")]);
    world.check(&zones, &["keys/one", "keys/two", "keys/first"], &["keys/other"]);
}

#[test]
fn the_programs_of_hooks_are_blocked_there_or_not() {
    let world = World::new();
    for name in ["hooks/check.sh", "lib/rules.py", "real/linked.sh", "run/inner"] {
        world.put(name, "#!/bin/sh\n");
    }
    world.put("policy.md", "be kind");
    world.put("notes/a.md", "a");
    symlink(world.home().join("real/linked.sh"), world.home().join("alias.sh")).unwrap();
    let rows = [
        r#"["./hooks/check.sh", "policy.md", "."]"#,
        r#"["python3", "-I", "lib/rules.py"]"#,
        r#"["python3", "missing.py", "later/missing"]"#,
        r#"["./alias.sh"]"#,
        r#"["sh", "-c", "exec ./run/inner notes"]"#,
        r#"["judge", "--rules=rules.json"]"#,
    ];
    let hooks = rows
        .map(|command| format!("[[hooks]]\nname = \"h\"\ncommand = {command}\n"))
        .concat();
    let lines = format!("[tools]\nknowledge_bank = \".\"\n{hooks}");
    let zones = world.zones(&lines, &[("PATH", "bin:/usr/bin")]);
    let blocked = [
        "hooks/check.sh",
        "hooks/beside.sh",
        "policy.md",
        "lib/rules.py",
        "lib/json.py",
        "missing.py",
        "later/missing",
        "alias.sh",
        "real/linked.sh",
        "run/inner",
        "bin/judge",
        "rules.json",
    ];
    world.check(
        &zones,
        &blocked,
        &["notes/a.md", "other.md", "bin/other", "later/other"],
    );
}

#[test]
fn the_programs_of_tools_are_blocked_and_what_they_read_is_not() {
    let world = World::new();
    world.put("bin/count", "#!/bin/sh\n");
    world.put("scripts/run.py", "print(1)\n");
    world.put("notes/a.md", "a");
    let rows = [
        r#"["bin/count", "notes/a.md", "{topic}"]"#,
        r#"["/usr/bin/python3", "scripts/run.py", "notes"]"#,
        r#"["./soon", "{topic}"]"#,
    ];
    let tools = rows
        .map(|command| format!("[[tool]]\nname = \"t\"\nmode = \"command\"\ncommand = {command}\n"))
        .concat();
    world.put("own/tools.toml", &tools);
    let lines = "[tools]\nknowledge_bank = \".\"\ntools_file = \"own/tools.toml\"\n";
    let zones = world.zones(lines, &[]);
    let blocked = [
        "own/tools.toml",
        "bin/count",
        "scripts/run.py",
        "scripts/os.py",
        "soon",
    ];
    world.check(&zones, &blocked, &["notes/a.md", "notes", "own/other.md"]);
}

#[test]
fn a_path_is_real_as_far_as_it_exists() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir(root.join("a")).unwrap();
    symlink(root.join("a"), root.join("b")).unwrap();
    for (path, expected) in [
        ("b/new/file", "a/new/file"),
        ("b/new/../file", "a/file"),
        ("b/new/..", "a"),
        ("./b/./new", "a/new"),
    ] {
        assert_eq!(real(&root.join(path)), root.join(expected), "{path}");
    }
}
