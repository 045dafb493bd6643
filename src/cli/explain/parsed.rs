//! What a call means in the world, as it was parsed and looked up: for a command its programs, their arguments and
//! every file they touch, for any tool its paths and addresses.

use serde_json::{Value, json};
use tidegate_gate::{
    Access, Facts, PathFact, PathFault,
    shell::{Analysis, Argument, Node, OperandKind, Part, Redirection, Run, Verdict},
};

/// Name and text, a line each.
pub(super) fn lines(facts: &Facts) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    if let Some(analysis) = &facts.command {
        lines.push(("command", analysis.command().to_owned()));
        lines.push(("reads as", verdict(analysis)));
        let runs = analysis.plan().map(runs).unwrap_or_default();
        lines.extend(runs.iter().map(|argv| ("argv", format!("{argv:?}"))));
        for operand in analysis.operands() {
            if operand.kind != OperandKind::Literal {
                let text = format!(
                    "{} {} ({})",
                    access(operand.access),
                    operand.text,
                    kind(operand.kind)
                );
                lines.push(("operand", text));
            }
        }
        lines.extend(analysis.hosts().iter().map(|host| ("reaches", host.clone())));
    }
    for (program, real) in &facts.programs {
        let real = real
            .as_ref()
            .map_or_else(|| "not installed".to_owned(), |real| real.display().to_string());
        lines.push(("program", format!("{program} ({real})")));
    }
    for path in &facts.paths {
        lines.push((
            "path",
            format!("{} {} → {}", access(path.access), path.requested, leads(path)),
        ));
    }
    lines.extend(urls(facts).into_iter().map(|url| ("reaches", url)));
    if let Some(folder) = &facts.working_folder {
        lines.push(("folder", folder.display().to_string()));
    }
    if facts.write_bytes > 0 {
        lines.push(("writes", format!("{} bytes", facts.write_bytes)));
    }
    lines
}

/// The same as JSON.
pub(super) fn value(facts: &Facts) -> Value {
    let paths: Vec<Value> = facts
        .paths
        .iter()
        .map(|path| {
            json!({
                "argument": path.argument,
                "requested": path.requested,
                "access": access(path.access),
                "real": path.resolution.as_ref().ok().map(|resolved| resolved.real.display().to_string()),
                "fault": path.resolution.as_ref().err().map(fault),
            })
        })
        .collect();
    let programs: Vec<Value> = facts
        .programs
        .iter()
        .map(|(name, real)| {
            json!({"name": name, "path": real.as_ref().map(|real| real.display().to_string())})
        })
        .collect();
    let command = facts.command.as_deref().map(|analysis| {
        let operands: Vec<Value> = analysis
            .operands()
            .iter()
            .map(|operand| {
                json!({"text": operand.text, "access": access(operand.access), "kind": kind(operand.kind)})
            })
            .collect();
        json!({
            "line": analysis.command(),
            "verdict": verdict(analysis),
            "programs": analysis.programs(),
            "argv": analysis.plan().map(runs),
            "operands": operands,
            "hosts": analysis.hosts(),
        })
    });
    json!({
        "command": command,
        "programs": programs,
        "paths": paths,
        "urls": urls(facts),
        "working_folder": facts.working_folder.as_ref().map(|folder| folder.display().to_string()),
        "write_bytes": facts.write_bytes,
    })
}

/// The addresses of the call and of its command, each once.
fn urls(facts: &Facts) -> Vec<String> {
    let mut urls = facts.urls.clone();
    let of_command = facts.command.iter().flat_map(|analysis| analysis.urls());
    for url in of_command {
        if !urls.contains(url) {
            urls.push(url.clone());
        }
    }
    urls
}

fn verdict(analysis: &Analysis) -> String {
    match analysis.verdict() {
        Verdict::ReadOnly => "a line that only looks; it runs without a shell".to_owned(),
        Verdict::NeedsGrant { code, reason } => {
            format!("a line that needs somebody's leave ({code}: {reason})")
        }
        Verdict::Refused { floor, code, reason } => {
            format!("a line that never runs ({floor}, {code}: {reason})")
        }
    }
}

fn access(access: Access) -> &'static str {
    match access {
        Access::Read => "read",
        Access::List => "list",
        Access::Write => "write",
    }
}

fn kind(kind: OperandKind) -> &'static str {
    match kind {
        OperandKind::Literal => "literal",
        OperandKind::Glob => "pattern",
        OperandKind::Dynamic => "known only while it runs",
    }
}

fn leads(path: &PathFact) -> String {
    match &path.resolution {
        Ok(resolved) => resolved.real.display().to_string(),
        Err(problem) => fault(problem),
    }
}

fn fault(fault: &PathFault) -> String {
    match fault {
        PathFault::Malformed(problem) => format!("no usable path: {problem}"),
        PathFault::Outside => "outside the folders that may be used".to_owned(),
        PathFault::Missing => "nowhere".to_owned(),
        PathFault::Unreadable(problem) => format!("cannot be looked at: {problem}"),
    }
}

/// The programs of a plan with their arguments, in the order of the line. A plan is as deep as the line was nested,
/// which is bounded.
fn runs(node: &Node) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    collect(node, &mut found);
    found
}

fn collect(node: &Node, found: &mut Vec<Vec<String>>) {
    match node {
        Node::Run(run) => program(run, found),
        Node::Pipe(nodes) | Node::Sequence(nodes) => nodes.iter().for_each(|node| collect(node, found)),
        Node::And(first, second) | Node::Or(first, second) => {
            collect(first, found);
            collect(second, found);
        }
        Node::Not(body)
        | Node::Subshell(body)
        | Node::Each { body, .. }
        | Node::Lines { body, .. }
        | Node::Timeout { body, .. } => collect(body, found),
        Node::If { branches, otherwise } => {
            for (condition, body) in branches {
                collect(condition, found);
                collect(body, found);
            }
            if let Some(body) = otherwise {
                collect(body, found);
            }
        }
        Node::ChangeFolder(folder) => found.push(vec!["cd".to_owned(), word(folder, &mut Vec::new())]),
        Node::Redirected { redirections, body } => {
            redirected(redirections, found);
            collect(body, found);
        }
    }
}

fn program(run: &Run, found: &mut Vec<Vec<String>>) {
    let mut inner = Vec::new();
    let mut argv = vec![run.program.clone()];
    argv.extend(run.arguments.iter().map(|argument| word(argument, &mut inner)));
    redirected(&run.redirections, &mut inner);
    found.append(&mut inner);
    found.push(argv);
}

fn redirected(redirections: &[Redirection], found: &mut Vec<Vec<String>>) {
    for redirection in redirections {
        match redirection {
            Redirection::InputStream(node) => collect(node, found),
            Redirection::InputFile(_)
            | Redirection::InputText(_)
            | Redirection::Discard(_)
            | Redirection::Join(..) => {}
        }
    }
}

/// A word as a person reads it; what is only known while it runs stands in braces.
fn word(argument: &Argument, inner: &mut Vec<Vec<String>>) -> String {
    let mut text = String::new();
    for part in &argument.parts {
        match part {
            Part::Text(part) | Part::Wildcard(part) => text.push_str(part),
            Part::Variable { name, .. } => text.extend(["{", name, "}"]),
            Part::Output { node, .. } => {
                collect(node, inner);
                text.push_str("{output}");
            }
            Part::Stream(node) => {
                collect(node, inner);
                text.push_str("{stream}");
            }
            Part::Status => text.push_str("{status}"),
        }
    }
    text
}
