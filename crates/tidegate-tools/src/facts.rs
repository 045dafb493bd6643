//! What a call means in the world, resolved just before the gate is asked. Never fails: what cannot be resolved is
//! a fact too, and one that the gate refuses.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use sha2::{Digest, Sha256};
use tidegate_core::{
    caller::Mode,
    tool::{ToolCall, ToolMode, ToolSpec},
};
use tidegate_gate::{
    Access, Denial, Facts, PathFact, PathFault, hex,
    shell::{Operand, OperandKind, Place, Verdict},
};
use tidegate_io::files::{self, resolve_operand};

use crate::{
    Tools,
    arguments::Values,
    registry::Template,
    runners::{self, files::list_files},
};

/// Words of a line that are looked at for the names of scripts.
const SCRIPT_WORDS_MAX: usize = 400;
/// Scripts of one line whose contents an approval is bound to.
const SCRIPTS_MAX: usize = 32;
/// The longest script whose content is looked at, in bytes.
const SCRIPT_BYTES_MAX: u64 = 1 << 20;
/// Files that one command may stand for, all its patterns together; one more is no line that a person wrote.
const OPERANDS_MAX: usize = 20_000;

impl Tools {
    pub(crate) async fn resolve(&self, call: &ToolCall, spec: &ToolSpec, mode: Mode) -> Facts {
        let Some(arguments) = call.arguments.object() else {
            return Facts::default();
        };
        let Ok(values) = Values::from_object(arguments, spec) else {
            return Facts::default();
        };
        let mut facts = match spec.mode {
            ToolMode::Shell => {
                self.command_facts(values.text("command").unwrap_or_default(), mode)
                    .await
            }
            ToolMode::ReadText
            | ToolMode::ListFiles
            | ToolMode::WriteText
            | ToolMode::Calculate
            | ToolMode::CurrentTime
            | ToolMode::StudyPlan
            | ToolMode::SearchKnowledge
            | ToolMode::ReadDocument
            | ToolMode::ListDocuments
            | ToolMode::Command
            | ToolMode::HttpGet
            | ToolMode::HttpPost
            | ToolMode::PageTitle
            | ToolMode::Sandbox
            | ToolMode::GitRead
            | ToolMode::GitClone
            | ToolMode::GitCommit
            | ToolMode::GitPush
            | ToolMode::Mcp
            | ToolMode::SearchTools
            | ToolMode::LastOutput
            | ToolMode::Introspect => self.path_facts(&values, spec).await,
        };
        self.destination(&mut facts, &values, spec);
        if spec.mode == ToolMode::GitPush {
            self.push_destination(&mut facts, &values, spec).await;
        }
        facts
    }

    /// The paths that a tool's own arguments name.
    async fn path_facts(&self, values: &Values<'_>, spec: &ToolSpec) -> Facts {
        let write_bytes = if spec.mode == ToolMode::WriteText {
            values.text("content").map_or(0, str::len)
        } else {
            0
        };
        let wanted: Vec<_> = runners::slots(spec.mode)
            .unwrap_or_default()
            .iter()
            .filter_map(|slot| {
                let access = slot.access?;
                let requested = match values.text(slot.name) {
                    None | Some("") if !slot.required => list_files::TOP,
                    requested => requested.unwrap_or_default(),
                };
                Some((slot.name, requested.to_owned(), access))
            })
            .collect();
        let mut facts = Facts {
            write_bytes: u64::try_from(write_bytes).unwrap_or(u64::MAX),
            ..Facts::default()
        };
        if wanted.is_empty() {
            return facts;
        }
        let roots = self.files.roots.clone();
        let fallback = wanted.clone();
        facts.paths = tokio::task::spawn_blocking(move || {
            wanted
                .iter()
                .map(|(argument, requested, access)| roots.fact(argument, requested, *access))
                .collect::<Vec<_>>()
        })
        .await
        // Where the look-up itself broke, nothing is known, and the gate must be told so.
        .unwrap_or_else(|_broken| fallback.into_iter().map(unreadable).collect());
        facts
    }

    /// What a line for the shell is, and every file that it touches, as they really are.
    async fn command_facts(&self, line: &str, mode: Mode) -> Facts {
        let (shell, place) = (Arc::clone(&self.outside.shell), self.outside.place.clone());
        let view = self.outside.view.clone();
        let line = line.to_owned();
        let found = tokio::task::spawn_blocking(move || {
            let analysis = shell.analyse(&line, &place);
            let mut paths = Vec::new();
            for operand in analysis.operands() {
                paths.extend(operand_facts(operand, &view));
                if paths.len() > OPERANDS_MAX {
                    paths.push(unreadable(("command", operand.text.clone(), operand.access)));
                    break;
                }
            }
            // Contents are what an approval is bound to; where nothing is asked, nobody looks at them.
            let digests = match (analysis.verdict(), may_ask(mode, &paths)) {
                (Verdict::NeedsGrant { .. }, true) => scripts(&line, &place, &view),
                (Verdict::NeedsGrant { .. } | Verdict::ReadOnly | Verdict::Refused { .. }, _) => Vec::new(),
            };
            (analysis, paths, digests)
        });
        // Without an analysis the gate refuses.
        let Ok((analysis, paths, digests)) = found.await else {
            return Facts::default();
        };
        let sandbox = self.tried.sandbox(&self.outside.isolation).await;
        let can_mask = self.tried.can_mask(&self.outside.isolation).await;
        let found = |name: &str| sandbox?.programs().get(name).map(PathBuf::from);
        let programs = analysis
            .programs()
            .iter()
            .map(|name| (name.clone(), found(name)))
            .collect();
        Facts {
            paths,
            programs,
            digests,
            urls: analysis.urls().to_vec(),
            working_folder: Some(PathBuf::from(self.outside.place.working_folder())),
            can_mask,
            command: Some(Arc::new(analysis)),
            ..Facts::default()
        }
    }

    /// Where a push would go, as the repository has it just now. Unknown where nothing is run: nothing is pushed there.
    async fn push_destination(&self, facts: &mut Facts, values: &Values<'_>, spec: &ToolSpec) {
        let Some(walls) = self.tried.walls(&self.outside, &self.files.zones).await else {
            return;
        };
        let addresses = &self.outside.network.policy().address;
        match runners::git::push_target(walls, &self.files.roots, addresses, spec, values).await {
            Ok(url) => facts.urls.push(url),
            Err(denial) => facts.refusal = Some(denial),
        }
    }

    /// Where the call would go, judged by the guards before any name is looked up.
    fn destination(&self, facts: &mut Facts, values: &Values<'_>, spec: &ToolSpec) {
        let policy = self.outside.network.policy();
        let text = |name| values.text(name).unwrap_or_default();
        let judged: Result<String, Denial> = match spec.mode {
            ToolMode::PageTitle => policy
                .address
                .check(text("url"))
                .map(|destination| destination.as_str().to_owned())
                .map_err(|fault| fault.denial()),
            ToolMode::GitClone => {
                runners::git::judged(&policy.address, text("url")).map(|remote| remote.as_str().to_owned())
            }
            ToolMode::HttpGet | ToolMode::HttpPost => {
                let Some(Template::Http(template)) = self.registry.get(&spec.name).map(|row| &row.template)
                else {
                    return;
                };
                let Ok(wanted) = template.render(values) else {
                    return;
                };
                policy
                    .address
                    .check_named(&wanted.url, template.base())
                    .map(|destination| destination.as_str().to_owned())
                    .map_err(|fault| fault.denial())
            }
            ToolMode::ReadText
            | ToolMode::ListFiles
            | ToolMode::WriteText
            | ToolMode::Calculate
            | ToolMode::CurrentTime
            | ToolMode::StudyPlan
            | ToolMode::SearchKnowledge
            | ToolMode::ReadDocument
            | ToolMode::ListDocuments
            | ToolMode::Command
            | ToolMode::Shell
            | ToolMode::Sandbox
            | ToolMode::GitRead
            | ToolMode::GitCommit
            | ToolMode::GitPush
            | ToolMode::Mcp
            | ToolMode::SearchTools
            | ToolMode::LastOutput
            | ToolMode::Introspect => return,
        };
        match judged {
            Ok(url) => facts.urls.push(url),
            Err(denial) => facts.refusal = Some(denial),
        }
    }
}

/// Whether a line that is not read-only may be asked about: in `full-auto` only for a file with several names.
fn may_ask(mode: Mode, paths: &[PathFact]) -> bool {
    let has_several_names = |path: &PathFact| {
        path.resolution
            .as_ref()
            .is_ok_and(|resolved| resolved.hard_links > 1)
    };
    match mode {
        Mode::PlanOnly | Mode::ReadOnly => true,
        Mode::FullAuto => paths.iter().any(has_several_names),
    }
}

/// The files that words of a line name, and digests of what they hold. Any of them may be a script that the line
/// runs, so that an approval of the line is an approval of these contents.
fn scripts(line: &str, place: &Place, view: &files::View) -> Vec<(PathBuf, String)> {
    let words = line.split(|letter: char| letter.is_whitespace() || "'\"`;|&<>()={}$,".contains(letter));
    let mut found = Vec::new();
    for word in words.filter(|word| !word.is_empty()).take(SCRIPT_WORDS_MAX) {
        let path = Path::new(place.working_folder()).join(word);
        let facts = resolve_operand(
            &path.to_string_lossy(),
            Access::Read,
            files::OperandKind::Literal,
            view,
        );
        for real in facts
            .into_iter()
            .filter_map(|fact| Some(fact.resolution.ok()?.real))
        {
            if let Some(bytes) = view.read(&real, SCRIPT_BYTES_MAX) {
                found.push((real, hex(&Sha256::digest(bytes))));
            }
        }
        if found.len() >= SCRIPTS_MAX {
            break;
        }
    }
    found
}

fn operand_facts(operand: &Operand, view: &files::View) -> Vec<PathFact> {
    let kind = match operand.kind {
        OperandKind::Literal => files::OperandKind::Literal,
        OperandKind::Glob => files::OperandKind::Glob,
        // What only shows while the line runs is the gate's to ask about.
        OperandKind::Dynamic => return Vec::new(),
    };
    let mut facts = resolve_operand(&operand.text, operand.access, kind, view);
    if !operand.is_certain {
        // A word that need not be a path, and is none.
        facts.retain(|fact| {
            !matches!(
                fact.resolution,
                Err(PathFault::Missing | PathFault::Malformed(_) | PathFault::Unreadable(_))
            )
        });
    }
    facts
}

fn unreadable((argument, requested, access): (&'static str, String, Access)) -> PathFact {
    PathFact {
        argument: argument.to_owned(),
        requested,
        access,
        resolution: Err(PathFault::Unreadable("the look-up broke".to_owned())),
    }
}
