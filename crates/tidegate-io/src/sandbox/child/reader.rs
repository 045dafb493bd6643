//! The walls around a process that reads a foreign document: it needs nothing but its standard streams and memory.
//!
//! Less is open here than in a run of a program, and nothing is executed afterwards, so that no file of the system
//! has to stay readable: no files, no programs, no network, no processes.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible, Ruleset, RulesetAttr, RulesetStatus,
    Scope,
};
use rustix::process::{Resource, Signal, set_parent_process_death_signal, setpriority_process};

use super::{
    super::usage,
    confine::{NICE, drop_capabilities, set_limit},
    filter,
};

/// How many threads it may start.
const THREADS_MAX: u64 = 16;

/// How many files it may have open: its three streams and nothing worth mentioning.
const FILES_OPEN_MAX: u64 = 16;

/// Confines this process for good. Memory is what it may ask for from now on, in bytes.
///
/// Gives the walls that this machine does not offer. Bounds on memory and time, and the system call filter, which by
/// itself closes files, network and programs, are never among them.
///
/// # Errors
/// One of those could not be built.
pub fn confine_reader(memory_bytes: u64, cpu_s: u64) -> Result<Vec<String>, String> {
    let mut missing = Vec::new();
    set_parent_process_death_signal(Some(Signal::KILL))
        .map_err(|problem| format!("the process cannot be bound to the server's: {problem}"))?;
    setpriority_process(None, NICE)
        .map_err(|problem| format!("the priority cannot be lowered: {problem}"))?;
    for (resource, bound) in [
        (Resource::Core, 0),
        (Resource::Cpu, cpu_s),
        (Resource::Data, memory_bytes),
        (Resource::Fsize, 0),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Nofile, FILES_OPEN_MAX),
        (Resource::Nproc, usage::tasks().saturating_add(THREADS_MAX)),
        (Resource::Rtprio, 0),
    ] {
        set_limit(resource, bound)
            .map_err(|problem| format!("the limit {resource:?} cannot be set: {problem}"))?;
    }
    if let Err(problem) = drop_capabilities() {
        missing.push(problem);
    }
    if let Err(problem) = no_files() {
        missing.push(problem);
    }
    filter::apply_reader()?;
    Ok(missing)
}

/// Landlock without a single rule.
fn no_files() -> Result<(), String> {
    let abi = ABI::V6;
    let ruleset = || {
        Ruleset::default()
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(abi))?
            .handle_access(AccessNet::from_all(abi))?
            .scope(Scope::from_all(abi))?
            .create()?
            .restrict_self()
    };
    let status = ruleset().map_err(|problem| format!("Landlock: {problem}"))?;
    match status.ruleset {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err("Landlock: the kernel does not have it".to_owned()),
    }
}
