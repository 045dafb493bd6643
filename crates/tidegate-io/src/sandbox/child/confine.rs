//! The walls, in order.

use std::io::ErrorKind;

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, PathBeneath, PathFd,
    PathFdError, Ruleset, RulesetAttr, RulesetCreated, RulesetCreatedAttr, RulesetStatus, Scope,
};
use rustix::{
    process::{Resource, Rlimit, setpriority_process, setrlimit},
    thread::{CapabilitySet, CapabilitySets, remove_capability_from_bounding_set, set_capabilities},
};

use super::{
    super::{
        usage,
        wire::{Access, Order, Rule, Walls},
    },
    filter,
};

/// How many files one process may have open.
const FILES_OPEN_MAX: u64 = 1024;

/// The priority of everything that runs here (setpriority(2)): about a tenth of the server's share.
pub(super) const NICE: i32 = 10;

/// What Landlock is asked for: files, TCP, and signals and abstract sockets that stay inside (Linux 6.12).
const ABI_WANTED: ABI = ABI::V6;

/// What it must at least hold where namespaces stand in front of it (Linux 5.13).
const ABI_NEEDED_BEHIND: ABI = ABI::V1;

/// Builds every wall of the order.
pub(super) fn walls(order: &Order) -> Result<(), String> {
    // The server goes first, whatever runs here: it is the one that counts and kills.
    setpriority_process(None, NICE)
        .map_err(|problem| format!("the priority cannot be lowered: {problem}"))?;
    limits(order)?;
    if order.walls == Walls::Nothing {
        return Ok(());
    }
    drop_capabilities()?;
    files(order)?;
    filter::apply(order.walls, order.network)
}

fn limits(order: &Order) -> Result<(), String> {
    let limits = &order.limits;
    let mut bounds = vec![
        (Resource::Core, 0),
        (Resource::Cpu, limits.cpu_s),
        (Resource::Data, limits.memory_bytes),
        (Resource::Fsize, limits.file_bytes),
        (Resource::Memlock, 0),
        (Resource::Msgqueue, 0),
        (Resource::Nofile, FILES_OPEN_MAX),
        (Resource::Rtprio, 0),
    ];
    // The kernel counts a user's processes, and in a user namespace only those in it. Outside of one, the
    // bound is as far above all that run now as this run may go.
    match order.walls {
        Walls::Behind => bounds.push((Resource::Nproc, limits.processes)),
        Walls::Alone | Walls::Nothing => {
            bounds.push((Resource::Nproc, usage::tasks().saturating_add(limits.processes)));
        }
    }
    for (resource, bound) in bounds {
        set_limit(resource, bound)
            .map_err(|problem| format!("the limit {resource:?} cannot be set: {problem}"))?;
    }
    Ok(())
}

/// A limit only ever sinks.
pub(super) fn set_limit(resource: Resource, bound: u64) -> rustix::io::Result<()> {
    let old = rustix::process::getrlimit(resource);
    let bound = old.maximum.map_or(bound, |maximum| maximum.min(bound));
    // Processor time ends with a signal that can be caught; a second later comes one that cannot.
    let maximum = if resource == Resource::Cpu {
        bound.saturating_add(1)
    } else {
        bound
    };
    let maximum = old.maximum.map_or(maximum, |old| old.min(maximum));
    setrlimit(
        resource,
        Rlimit {
            current: Some(bound),
            maximum: Some(maximum),
        },
    )
}

/// Nothing is kept, whoever runs the server. The bounding set first: it is what a program of the superuser's
/// would get back when it is executed.
pub(super) fn drop_capabilities() -> Result<(), String> {
    for capability in CapabilitySet::all().iter() {
        // Without the right to do so there are none to get back. A kernel may know fewer.
        if remove_capability_from_bounding_set(capability) == Err(rustix::io::Errno::PERM) {
            break;
        }
    }
    let none = CapabilitySets {
        effective: CapabilitySet::empty(),
        permitted: CapabilitySet::empty(),
        inheritable: CapabilitySet::empty(),
    };
    set_capabilities(None, none).map_err(|problem| format!("the capabilities cannot be dropped: {problem}"))
}

fn files(order: &Order) -> Result<(), String> {
    let problem = |problem: &dyn std::fmt::Display| format!("Landlock: {problem}");
    let mut ruleset = ruleset(order).map_err(|error| problem(&error))?;
    for rule in &order.rules {
        ruleset = match PathFd::new(&rule.path) {
            Ok(handle) => {
                let rights = rights(rule, &handle);
                ruleset
                    .add_rule(PathBeneath::new(handle, rights))
                    .map_err(|error| problem(&error))?
            }
            // What is not there needs no door. What may not be opened here has none either.
            Err(PathFdError::OpenCall { source, .. })
                if matches!(source.kind(), ErrorKind::NotFound | ErrorKind::PermissionDenied) =>
            {
                ruleset
            }
            Err(error) => return Err(problem(&error)),
        };
    }
    let status = ruleset.restrict_self().map_err(|error| problem(&error))?;
    match (status.ruleset, order.walls) {
        (RulesetStatus::FullyEnforced, _) | (RulesetStatus::PartiallyEnforced, Walls::Behind) => Ok(()),
        (RulesetStatus::PartiallyEnforced | RulesetStatus::NotEnforced, _) => {
            Err("Landlock: the kernel does not enforce what was asked for".to_owned())
        }
    }
}

fn ruleset(order: &Order) -> Result<RulesetCreated, landlock::RulesetError> {
    let ruleset = match order.walls {
        Walls::Alone | Walls::Nothing => Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI_WANTED))?,
        Walls::Behind => Ruleset::default()
            .set_compatibility(CompatLevel::HardRequirement)
            .handle_access(AccessFs::from_all(ABI_NEEDED_BEHIND))?
            .set_compatibility(CompatLevel::BestEffort)
            .handle_access(AccessFs::from_all(ABI_WANTED))?,
    };
    let ruleset = ruleset.scope(Scope::from_all(ABI_WANTED))?;
    let ruleset = if order.network {
        ruleset
    } else {
        ruleset.handle_access(AccessNet::from_all(ABI_WANTED))?
    };
    ruleset.create()
}

fn rights(rule: &Rule, handle: &PathFd) -> BitFlags<AccessFs> {
    let read = AccessFs::from_read(ABI_WANTED);
    let rights = match rule.access {
        Access::List => AccessFs::ReadDir.into(),
        Access::Read => read,
        Access::Device => AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::ReadDir,
        // Devices are neither made nor controlled by anybody.
        Access::Write => {
            AccessFs::from_all(ABI_WANTED) & !(AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev)
        }
    };
    let is_folder = rustix::fs::fstat(handle).is_ok_and(|stat| {
        rustix::fs::FileType::from_raw_mode(stat.st_mode) == rustix::fs::FileType::Directory
    });
    if is_folder {
        rights
    } else {
        rights & AccessFs::from_file(ABI_WANTED)
    }
}
