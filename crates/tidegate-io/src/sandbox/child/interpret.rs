//! Runs a line that was judged, without a shell, inside the walls.
//!
//! The tree is walked as it is. Words are filled in (files that a pattern finds, what another line prints), but
//! never read as commands again. Where a shell would start another one of itself, a thread with a state of its
//! own does: the working folder, variables and streams are the state's and not the process's.

mod glob;
mod words;

use std::{
    collections::BTreeMap,
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::{AsFd, OwnedFd},
        unix::process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, ExitStatus},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use tidegate_gate::shell::{Argument, Node, Redirection, Run};

use super::{super::plan::Plan, NOT_FOUND, command, not_started};

/// The status of what could not be done, a redirection or a change of folder.
const FAILED: u8 = 1;

/// The status of `timeout` where the time is up.
const TIMED_OUT: u8 = 124;

/// How often a program with a deadline of its own is looked after.
const LOOK_INTERVAL: Duration = Duration::from_millis(5);

/// The most rounds of one loop.
const ROUNDS_MAX: usize = 100_000;

/// The longest line that a loop reads, in bytes.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Runs the line; its status.
pub(super) fn run(plan: &Plan, stdin: File, environment: &[(String, String)]) -> u8 {
    let world = World { plan, environment };
    let own = || -> io::Result<State> {
        Ok(State {
            folder: std::env::current_dir()?,
            variables: BTreeMap::new(),
            status: 0,
            deadline: None,
            input: Arc::new(stdin.into()),
            output: Arc::new(io::stdout().as_fd().try_clone_to_owned()?),
            errors: Arc::new(io::stderr().as_fd().try_clone_to_owned()?),
        })
    };
    match own() {
        Ok(mut state) => world.node(&plan.node, &mut state),
        Err(problem) => {
            drop(writeln!(io::stderr(), "the line cannot begin: {problem}"));
            FAILED
        }
    }
}

/// What holds for the whole line.
#[derive(Clone, Copy)]
struct World<'p> {
    plan: &'p Plan,
    environment: &'p [(String, String)],
}

/// What a part of the line may change.
#[derive(Clone)]
struct State {
    folder: PathBuf,
    variables: BTreeMap<String, String>,
    status: u8,
    deadline: Option<Instant>,
    input: Arc<OwnedFd>,
    output: Arc<OwnedFd>,
    errors: Arc<OwnedFd>,
}

impl State {
    fn complain(&self, name: &str, problem: &dyn std::fmt::Display) {
        if let Ok(errors) = self.errors.try_clone() {
            drop(writeln!(File::from(errors), "{name}: {problem}"));
        }
    }

    fn is_late(&self) -> bool {
        self.deadline.is_some_and(|deadline| Instant::now() >= deadline)
    }
}

impl World<'_> {
    fn node(self, node: &Node, state: &mut State) -> u8 {
        if state.is_late() {
            state.status = TIMED_OUT;
            return TIMED_OUT;
        }
        let status = match node {
            Node::Run(run) => self.program(run, state),
            Node::Pipe(stages) => self.pipe(stages, state),
            Node::And(first, second) => match self.node(first, state) {
                0 => self.node(second, state),
                status => status,
            },
            Node::Or(first, second) => match self.node(first, state) {
                0 => 0,
                _failed => self.node(second, state),
            },
            Node::Not(body) => u8::from(self.node(body, state) == 0),
            Node::Sequence(nodes) => nodes.iter().fold(0, |_, node| self.node(node, state)),
            Node::Subshell(body) => self.node(body, &mut state.clone()),
            Node::If { branches, otherwise } => self.branches(branches, otherwise.as_deref(), state),
            Node::Each {
                variable,
                pattern,
                body,
            } => self.each(variable, pattern, body, state),
            Node::Lines { variable, body } => self.lines(variable, body, state),
            Node::ChangeFolder(argument) => self.change_folder(argument, state),
            Node::Timeout { limit_ms, body } => self.timeout(*limit_ms, body, state),
            Node::Redirected { redirections, body } => {
                let mut inner = state.clone();
                match self.redirect(redirections, &mut inner) {
                    Ok(()) => {
                        let status = self.node(body, &mut inner);
                        state.folder = inner.folder;
                        state.variables = inner.variables;
                        status
                    }
                    Err(problem) => {
                        state.complain("redirection", &problem);
                        FAILED
                    }
                }
            }
        };
        state.status = status;
        status
    }

    fn branches(self, branches: &[(Node, Node)], otherwise: Option<&Node>, state: &mut State) -> u8 {
        for (condition, body) in branches {
            if self.node(condition, state) == 0 {
                return self.node(body, state);
            }
        }
        otherwise.map_or(0, |body| self.node(body, state))
    }

    fn each(self, variable: &str, pattern: &Argument, body: &Node, state: &mut State) -> u8 {
        let mut status = 0;
        for value in self.expand(pattern, state).into_iter().take(ROUNDS_MAX) {
            state.variables.insert(variable.to_owned(), value);
            status = self.node(body, state);
        }
        status
    }

    fn lines(self, variable: &str, body: &Node, state: &mut State) -> u8 {
        let Ok(input) = state.input.try_clone().map(File::from) else {
            return FAILED;
        };
        let mut status = 0;
        for _ in 0..ROUNDS_MAX {
            let Some(line) = read_line(&input) else { break };
            state.variables.insert(variable.to_owned(), line);
            status = self.node(body, state);
        }
        status
    }

    fn change_folder(self, argument: &Argument, state: &mut State) -> u8 {
        let to = self.text(argument, state);
        let folder = state.folder.join(&to);
        match folder.canonicalize() {
            Ok(real) if real.is_dir() => {
                state.folder = real;
                0
            }
            Ok(_) => {
                state.complain("cd", &format_args!("{to}: Not a directory"));
                FAILED
            }
            Err(problem) => {
                state.complain("cd", &format_args!("{to}: {problem}"));
                FAILED
            }
        }
    }

    fn timeout(self, limit_ms: u64, body: &Node, state: &mut State) -> u8 {
        let mut inner = state.clone();
        let limit = Instant::now().checked_add(Duration::from_millis(limit_ms));
        inner.deadline = match (limit, state.deadline) {
            (Some(own), Some(outer)) => Some(own.min(outer)),
            (own, outer) => own.or(outer),
        };
        self.node(body, &mut inner)
    }

    /// All stages run at once; the status is that of the last one.
    fn pipe(self, stages: &[Node], state: &State) -> u8 {
        let mut input = Arc::clone(&state.input);
        let mut all = Vec::with_capacity(stages.len());
        for (number, node) in stages.iter().enumerate() {
            let mut own = state.clone();
            own.input = Arc::clone(&input);
            if number + 1 < stages.len() {
                match io::pipe() {
                    Ok((reader, writer)) => {
                        own.output = Arc::new(writer.into());
                        input = Arc::new(reader.into());
                    }
                    Err(problem) => {
                        state.complain("pipe", &problem);
                        return FAILED;
                    }
                }
            }
            all.push((node, own));
        }
        // The last reader must go with its stage, or the writers before it never learn of its end.
        drop(input);
        thread::scope(|scope| {
            let running: Vec<_> = all
                .into_iter()
                .map(|(node, mut own)| {
                    thread::Builder::new().spawn_scoped(scope, move || self.node(node, &mut own))
                })
                .collect();
            running.into_iter().fold(0, |_, started| match started {
                Ok(thread) => thread.join().unwrap_or(FAILED),
                Err(problem) => {
                    state.complain("pipe", &problem);
                    FAILED
                }
            })
        })
    }

    fn program(self, run: &Run, state: &State) -> u8 {
        let mut state = state.clone();
        if let Err(problem) = self.redirect(&run.redirections, &mut state) {
            state.complain(&run.program, &problem);
            return FAILED;
        }
        let arguments: Vec<String> = run
            .arguments
            .iter()
            .flat_map(|argument| self.expand(argument, &mut state))
            .collect();
        let Some(program) = self.plan.programs.get(&run.program) else {
            state.complain(&run.program, &"command not found");
            return NOT_FOUND;
        };
        match self.start(program, &run.program, &arguments, &state) {
            Ok(child) => wait(child, state.deadline),
            Err(problem) => {
                state.complain(&run.program, &problem);
                not_started(&problem)
            }
        }
    }

    fn start(self, program: &Path, name: &str, arguments: &[String], state: &State) -> io::Result<Child> {
        let mut command = command(program, self.environment);
        command.arg0(name).args(arguments).current_dir(&state.folder);
        command
            .stdin(state.input.try_clone()?)
            .stdout(state.output.try_clone()?)
            .stderr(state.errors.try_clone()?);
        command.spawn()
    }

    fn redirect(self, redirections: &[Redirection], state: &mut State) -> io::Result<()> {
        for redirection in redirections {
            match redirection {
                Redirection::InputFile(argument) => {
                    let name = self.text(argument, state);
                    let path = state.folder.join(name);
                    state.input = Arc::new(File::open(path)?.into());
                }
                Redirection::InputText(argument) => {
                    let text = self.text(argument, state);
                    state.input = Arc::new(super::unnamed(text.as_bytes())?.into());
                }
                Redirection::InputStream(node) => {
                    let path = self.stream(node, state)?;
                    state.input = Arc::new(File::open(path)?.into());
                }
                Redirection::Discard(descriptor) => {
                    let nothing = Arc::new(OpenOptions::new().write(true).open("/dev/null")?.into());
                    *stream(state, *descriptor)? = nothing;
                }
                Redirection::Join(descriptor, other) => {
                    let other = Arc::clone(stream(state, *other)?);
                    *stream(state, *descriptor)? = other;
                }
            }
        }
        Ok(())
    }

    /// Runs a line with its output going into a pipe, and gives what the reader makes of it.
    fn printed<T: Send>(
        self,
        node: &Node,
        state: &mut State,
        read: impl FnOnce(io::PipeReader) -> T + Send,
    ) -> io::Result<T> {
        let (reader, writer) = io::pipe()?;
        let mut inner = state.clone();
        inner.output = Arc::new(OwnedFd::from(writer));
        let (printed, status) = thread::scope(|scope| {
            let line = thread::Builder::new().spawn_scoped(scope, move || self.node(node, &mut inner))?;
            let printed = read(reader);
            Ok::<_, io::Error>((printed, line.join().unwrap_or(FAILED)))
        })?;
        state.status = status;
        Ok(printed)
    }
}

fn stream(state: &mut State, descriptor: u8) -> io::Result<&mut Arc<OwnedFd>> {
    match descriptor {
        1 => Ok(&mut state.output),
        2 => Ok(&mut state.errors),
        _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "no such stream")),
    }
}

/// One line, read byte by byte: what is behind it belongs to whoever reads next.
fn read_line(mut input: &File) -> Option<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    loop {
        match input.read(&mut byte) {
            Ok(1) if byte == *b"\n" => break,
            Ok(1) if line.len() < LINE_BYTES_MAX => line.extend_from_slice(&byte),
            // The last line may lack its end; a shell does not run the body for it either.
            Ok(_) | Err(_) => return None,
        }
    }
    Some(String::from_utf8_lossy(&line).into_owned())
}

/// Waits for a program, no longer than to its deadline.
fn wait(mut child: Child, deadline: Option<Instant>) -> u8 {
    let Some(deadline) = deadline else {
        return child.wait().map_or(NOT_FOUND, code);
    };
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return code(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(LOOK_INTERVAL),
            Ok(None) | Err(_) => {
                // Where it has just ended by itself, there is nothing to kill.
                drop(child.kill());
                drop(child.wait());
                return TIMED_OUT;
            }
        }
    }
}

/// The status as a shell gives it: 128 and the signal for a program that a signal ended.
fn code(status: ExitStatus) -> u8 {
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(u8::MAX)
}
