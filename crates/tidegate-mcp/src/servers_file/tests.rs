use serde_json::json;

use super::*;

#[derive(Debug)]
struct Refs;

impl References for Refs {
    fn resolve(&self, reference: &str) -> Result<Secret, String> {
        match reference {
            "env:TOKEN" => Ok(Secret::new("t0ken")),
            "env:HOME" => Ok(Secret::new("/home/ann")),
            "file:key" => Ok(Secret::new("from-file")),
            other => Err(format!("`{other}` is not there; set it")),
        }
    }
}

fn parse(value: &Value) -> ServersFile {
    ServersFile::parse(&value.to_string(), 64, &Refs).unwrap()
}

/// One entry; its notes are an error.
fn one(entry: &Value) -> Result<(Server, Vec<String>), Vec<String>> {
    let mut file = parse(&json!({"mcpServers": {"s": entry}}));
    let shown = |notes: &[Note]| notes.iter().map(ToString::to_string).collect::<Vec<String>>();
    if file.problems.is_empty() {
        Ok((file.servers.remove(0), shown(&file.warnings)))
    } else {
        Err(shown(&file.problems))
    }
}

#[test]
fn the_forms_of_other_clients_are_understood() {
    let desktop = json!({"mcpServers": {"fs": {"command": "npx", "args": ["-y", "server", "/tmp"], "env": {"A": "1"}}}});
    let editor = json!({"inputs": [], "servers": {"fs": {
        "type": "stdio", "command": "npx", "args": ["-y", "server", "/tmp"], "env": {"A": "1"},
    }}});
    let nested = json!({"mcp": {"servers": {"fs": {"command": "npx", "args": ["-y", "server", "/tmp"], "env": {"A": 1}}}}});
    let expected = parse(&desktop);
    let Endpoint::Stdio {
        command, args, env, ..
    } = &expected.servers[0].endpoint
    else {
        panic!("{expected:?}");
    };
    assert_eq!((command.as_str(), args.len(), env[0].1.expose()), ("npx", 3, "1"));
    assert_eq!(parse(&editor), expected);
    assert_eq!(parse(&nested), expected);
    for (entry, wire) in [
        (json!({"url": "https://mcp.example.org/mcp"}), Wire::Any),
        (
            json!({"type": "http", "url": "https://mcp.example.org/mcp"}),
            Wire::Http,
        ),
        (
            json!({"type": "streamable-http", "url": "https://mcp.example.org/mcp"}),
            Wire::Http,
        ),
        (
            json!({"transport": "streamableHttp", "httpUrl": "https://mcp.example.org/mcp"}),
            Wire::Http,
        ),
        (
            json!({"type": "sse", "serverUrl": "https://mcp.example.org/sse"}),
            Wire::Sse,
        ),
    ] {
        let (server, warnings) = one(&entry).unwrap();
        assert!(warnings.is_empty(), "{warnings:?}");
        let Endpoint::Remote { wire: found, .. } = server.endpoint else {
            panic!();
        };
        assert_eq!(found, wire);
    }
    let (server, _) = one(&json!({"command": "x", "disabled": true, "env": {"K": "env:NOT_THERE"}})).unwrap();
    assert!(!server.enabled, "what is switched off needs no secrets");
}

#[test]
fn the_file_that_ships_is_understood_without_a_word() {
    let text = include_str!("../../../../mcp_servers.json");
    let file = ServersFile::parse(text, 64, &Refs).unwrap();
    assert!(file.problems.is_empty() && file.warnings.is_empty(), "{file:?}");
    assert!(!file.servers.is_empty());
}

#[test]
fn references_are_followed_wherever_a_secret_may_stand() {
    let (server, _) = one(&json!({
        "url": "https://mcp.example.org/${TOKEN}/mcp",
        "headers": {"x-key": "file:key", "x-both": "a ${env:TOKEN} b ${NONE:-c}"},
        "bearer_token_env": "TOKEN",
    }))
    .unwrap();
    let Endpoint::Remote {
        url, headers, bearer, ..
    } = server.endpoint
    else {
        panic!();
    };
    assert_eq!(url, "https://mcp.example.org/t0ken/mcp");
    let values: Vec<&str> = headers.iter().map(|(_, value)| value.expose()).collect();
    assert_eq!(values, ["from-file", "a t0ken b c"]);
    assert_eq!(bearer.unwrap().expose(), "t0ken");
    let (server, _) = one(&json!({"command": "${userHome}/bin/x", "args": ["env:TOKEN", "${TOKEN}"], "env": {"DB": "file:///x"}})).unwrap();
    let Endpoint::Stdio {
        command, args, env, ..
    } = &server.endpoint
    else {
        panic!();
    };
    assert_eq!(command, "/home/ann/bin/x");
    assert_eq!(
        args,
        &["env:TOKEN", "t0ken"],
        "an argument is a reference in braces alone"
    );
    assert_eq!(env[0].1.expose(), "file:///x");
    let shown = format!("{server:?}");
    assert!(!shown.contains("from-file"), "{shown}");
}

#[test]
fn deadlines_filters_and_trust_are_read() {
    let (server, _) = one(&json!({
        "command": "x", "timeout": 30, "connect_timeout_ms": 1500, "trust": "read_only",
        "tools": {"include": ["read_*"], "exclude": ["*_all"]}, "protocol": "discover",
        "limits": {"memory_mb": 512, "open_files": 64},
    }))
    .unwrap();
    assert_eq!(
        (server.timeout_ms, server.connect_timeout_ms),
        (Some(30_000), Some(1500))
    );
    assert!(server.trusts_read_only);
    assert_eq!(server.handshake, Handshake::Discover);
    let wanted: Vec<bool> = ["read_a", "read_all", "write"]
        .iter()
        .map(|name| server.tools.wants(name))
        .collect();
    assert_eq!(wanted, [true, false, false]);
    let Endpoint::Stdio { limits, .. } = server.endpoint else {
        panic!();
    };
    assert_eq!(
        (limits.memory_bytes_max, limits.open_files_max),
        (Some(512 << 20), Some(64))
    );
    assert!(
        !one(&json!({"command": "x"})).unwrap().0.trusts_read_only,
        "not by default"
    );
}

#[test]
fn each_bad_entry_says_what_to_do_and_costs_the_others_nothing() {
    let file = parse(&json!({"mcpServers": {
        "good": {"command": "x"},
        "no-command": {"args": []},
        "both": {"command": "x", "url": "https://a.example/"},
        "args": {"command": "x", "args": "y"},
        "secret": {"command": "x", "env": {"KEY": "env:NOT_THERE"}},
        "input": {"url": "https://a.example/", "headers": {"k": "Bearer ${input:key}"}},
        "scheme": {"url": "file:///etc/passwd"},
        "login": {"url": "https://ann:pw@a.example/"},
        "type": {"type": "carrier-pigeon", "command": "x"},
        "timeout": {"command": "x", "timeout": 1e9},
        "pattern": {"command": "x", "tools": {"allow": ["[a"]}},
        "b@d/n me!": {"command": "x"},
        "s.x": {"command": "x"},
        "s_x": {"command": "x"},
        "list": [],
    }}));
    let names: Vec<&str> = file.servers.iter().map(|server| server.name.as_str()).collect();
    assert_eq!(names, ["good", "s.x"]);
    let shown: Vec<String> = file.problems.iter().map(ToString::to_string).collect();
    for wanted in [
        "server `no-command`, `command`: is missing; write the program to start, or `url` for a server elsewhere",
        "server `both`, `url`: stands beside `command`",
        "server `args`, `args`: must be a list",
        "server `secret`, `env.KEY`: `env:NOT_THERE` is not there; set it",
        "server `input`, `headers.k`: `${input:key}` would ask a person",
        "server `scheme`, `url`: must begin with https://",
        "server `login`, `url`: must hold no name and password",
        "server `type`, `type`: must be \"stdio\", \"http\" or \"sse\"",
        "server `timeout`, `timeout`: must be a number of seconds, at most an hour",
        "server `pattern`, `tools.allow`: the set in `[a` has no end",
        "server `b@d/n me!`: the name must be",
        "server `s_x`: another server's tools begin with `mcp__s_x__` already; rename one of them",
        "server `list`: must be an object",
    ] {
        assert!(
            shown.iter().any(|line| line.starts_with(wanted)),
            "{wanted}: {shown:#?}"
        );
    }
    assert_eq!(shown.len(), 13, "{shown:#?}");
}

#[test]
fn what_is_not_known_is_a_warning() {
    let (_, warnings) =
        one(&json!({"command": "x", "autoApprove": ["*"], "comand": "y", "envFile": ".env", "headers": {}}))
            .unwrap();
    assert_eq!(warnings.len(), 4, "{warnings:#?}");
    assert!(
        warnings
            .iter()
            .any(|line| line.contains("the permission gate decides about every call"))
    );
    let file = parse(&json!({"mcpServers": {}, "servers": {"x": {}}, "other": 1}));
    assert_eq!(file.warnings.len(), 2);
}

#[test]
fn a_file_that_is_none_is_refused_as_a_whole() {
    for text in [
        "",
        "{",
        "[]",
        "{}",
        "{\"mcpServers\": []}",
        "{\"mcpServers\": {},}",
    ] {
        assert!(ServersFile::parse(text, 64, &Refs).is_err(), "{text}");
    }
    let many: Map<String, Value> = (0..70)
        .map(|n| (format!("s{n}"), json!({"command": "x"})))
        .collect();
    let file = parse(&json!({"mcpServers": many}));
    assert_eq!((file.servers.len(), file.problems.len()), (64, 6));
}
