//! The system call filter: what no inspection, build or script needs, and what other walls do not hold.
//!
//! The list names what is denied. It is the third wall and not the first: files are Landlock's, processes and
//! networks the namespaces'. It closes what those leave open (sockets, other processes' limits, kernel doors
//! with a history) and, where Landlock stands alone, what Landlock has no rule for.

use std::collections::BTreeMap;

use libc::{c_long, c_ulong};
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter, SeccompRule,
    TargetArch, apply_filter,
};

use super::super::wire::Walls;

/// Denied whatever the arguments.
const DENIED: &[c_long] = &[
    // Other processes' memory and descriptors.
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_process_madvise,
    libc::SYS_process_mrelease,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
    // Kernel doors that work around the other walls, or that were holes before.
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_add_key,
    libc::SYS_request_key,
    libc::SYS_keyctl,
    libc::SYS_open_by_handle_at,
    libc::SYS_fanotify_init,
    // Mounts and namespaces.
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_open_tree,
    libc::SYS_move_mount,
    libc::SYS_mount_setattr,
    libc::SYS_unshare,
    libc::SYS_setns,
    // The machine.
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_kexec_load,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
    libc::SYS_settimeofday,
    libc::SYS_clock_settime,
    libc::SYS_acct,
    libc::SYS_quotactl,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    // What would outlive the run.
    libc::SYS_shmget,
    libc::SYS_msgget,
    libc::SYS_semget,
    libc::SYS_mq_open,
];

/// Denied where Landlock stands alone: it has no rule for owners and extended attributes.
const DENIED_ALONE: &[c_long] = &[
    libc::SYS_fchown,
    libc::SYS_fchownat,
    libc::SYS_setxattr,
    libc::SYS_lsetxattr,
    libc::SYS_fsetxattr,
    libc::SYS_removexattr,
    libc::SYS_lremovexattr,
    libc::SYS_fremovexattr,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chown,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_lchown,
];

/// Denied to a process that reads a document: everything that begins with a path, and other programs.
const DENIED_READER: &[c_long] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_unlinkat,
    libc::SYS_renameat2,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_mkdirat,
    libc::SYS_mknodat,
    libc::SYS_readlinkat,
    libc::SYS_truncate,
    libc::SYS_chdir,
    libc::SYS_kill,
    libc::SYS_tkill,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_open,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_creat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_unlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rename,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_renameat,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_link,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_symlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mkdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_rmdir,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_mknod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_readlink,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_fork,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_vfork,
];

/// These say that they did and do nothing where Landlock stands alone. It has no rule for permissions and times,
/// and programs that unpack, copy or configure give up where they may not set them. Nobody leaves the process
/// group, which is what is killed.
const PRETENDED_ALONE: &[c_long] = &[
    libc::SYS_setsid,
    libc::SYS_setpgid,
    libc::SYS_fchmod,
    libc::SYS_fchmodat,
    libc::SYS_fchmodat2,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_chmod,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utime,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_utimes,
    #[cfg(target_arch = "x86_64")]
    libc::SYS_futimesat,
];

/// The namespaces a new process could be put into (clone(2)).
const NAMESPACES: &[i32] = &[
    libc::CLONE_NEWNS,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWCGROUP,
];

/// Requests to a terminal or a file that act beyond it: typing into a terminal, file attributes.
const REQUESTS: &[c_ulong] = &[
    libc::TIOCSTI,
    libc::TIOCLINUX,
    libc::FS_IOC_SETFLAGS,
    // FS_IOC_FSSETXATTR of linux/fs.h, on machines whose requests are laid out as most are.
    0x401c_5820,
];

/// The kinds of socket that stay where other machines may be reached (socket(2)).
const FAMILIES: &[i32] = &[libc::AF_INET, libc::AF_INET6, libc::AF_NETLINK];

type Rules = BTreeMap<c_long, Vec<SeccompRule>>;

/// Builds the filters and puts them in force for this process and everything it starts. There is no way back.
pub(super) fn apply(walls: Walls, network: bool) -> Result<(), String> {
    let problem = |problem: &dyn std::fmt::Display| format!("the system call filter: {problem}");
    let mut programs = vec![
        program(
            denied(walls, network).map_err(|error| problem(&error))?,
            libc::EPERM,
        ),
        // The C library falls back to `clone`, whose flags can be looked at.
        program(whole(&[libc::SYS_clone3]), libc::ENOSYS),
    ];
    if walls == Walls::Alone {
        programs.push(program(pretended().map_err(|error| problem(&error))?, 0));
    }
    for program in programs {
        apply_filter(&program.map_err(|error| problem(&error))?).map_err(|error| problem(&error))?;
    }
    apply_filter(&second_call_table()).map_err(|error| problem(&error))
}

/// The filter of a process that reads a document: the one of a run without a network, and [`DENIED_READER`].
pub(super) fn apply_reader() -> Result<(), String> {
    let problem = |problem: &dyn std::fmt::Display| format!("the system call filter: {problem}");
    let denied = program(whole(DENIED_READER), libc::EPERM).map_err(|error| problem(&error))?;
    apply_filter(&denied).map_err(|error| problem(&error))?;
    apply(Walls::Alone, false)
}

fn program(rules: Rules, errno: i32) -> Result<BpfProgram, seccompiler::BackendError> {
    let machine = TargetArch::try_from(std::env::consts::ARCH)?;
    let denial = SeccompAction::Errno(errno.unsigned_abs());
    BpfProgram::try_from(SeccompFilter::new(rules, SeccompAction::Allow, denial, machine)?)
}

/// On x86-64 the same calls have a second set of numbers, from 0x40000000 up (the x32 table). None of them.
fn second_call_table() -> BpfProgram {
    let instruction = |code, jt, jf, k| seccompiler::sock_filter { code, jt, jf, k };
    if !cfg!(target_arch = "x86_64") {
        // Return: allow.
        return vec![instruction(0x06, 0, 0, 0x7fff_0000)];
    }
    vec![
        // Load the number of the call.
        instruction(0x20, 0, 0, 0),
        // Below the second table: skip one.
        instruction(0x35, 0, 1, 0x4000_0000),
        // Return: not implemented.
        instruction(0x06, 0, 0, 0x0005_0000 | libc::ENOSYS.unsigned_abs()),
        // Return: allow.
        instruction(0x06, 0, 0, 0x7fff_0000),
    ]
}

fn whole(calls: &[c_long]) -> Rules {
    calls.iter().map(|call| (*call, Vec::new())).collect()
}

fn pretended() -> Result<Rules, seccompiler::BackendError> {
    let mut rules = whole(PRETENDED_ALONE);
    // The time of an open file may be set to now, which is what `touch` does to a file it has opened.
    rules.insert(
        libc::SYS_utimensat,
        vec![all([is_not(1, 0)?])?, all([is_not(2, 0)?])?],
    );
    Ok(rules)
}

fn denied(walls: Walls, network: bool) -> Result<Rules, seccompiler::BackendError> {
    let mut rules = whole(DENIED);
    if walls == Walls::Alone {
        rules.extend(whole(DENIED_ALONE));
        // Nobody has a group of its own here, so a signal to the own group would end the whole run; `timeout`
        // sends one after the signal to its program. One to everybody is nobody's business.
        rules.insert(
            libc::SYS_kill,
            vec![all([is_word(0, 0)?])?, all([is_word(0, 0xffff_ffff)?])?],
        );
    }
    let sockets = if network {
        unlike_all(0, FAMILIES)?
    } else {
        Vec::new()
    };
    rules.insert(libc::SYS_socket, sockets);
    rules.insert(libc::SYS_socketpair, vec![all([is_not_word(0, libc::AF_UNIX)?])?]);
    rules.insert(libc::SYS_clone, with_any(0, NAMESPACES)?);
    let requests = REQUESTS.iter().map(|request| all([is_word(1, *request)?]));
    rules.insert(libc::SYS_ioctl, requests.collect::<Result<_, _>>()?);
    // Limits, priorities and processors: its own, and nobody else's.
    rules.insert(
        libc::SYS_prlimit64,
        vec![all([is_not_word(0, 0)?, is_not(2, 0)?])?],
    );
    let own = |argument| Ok::<_, seccompiler::BackendError>(vec![all([is_not_word(argument, 0)?])?]);
    rules.insert(
        libc::SYS_setpriority,
        vec![all([is_not_word(0, 0)?])?, all([is_not_word(1, 0)?])?],
    );
    rules.insert(
        libc::SYS_ioprio_set,
        vec![all([is_not_word(0, 1)?])?, all([is_not_word(1, 0)?])?],
    );
    for call in [
        libc::SYS_sched_setaffinity,
        libc::SYS_sched_setscheduler,
        libc::SYS_sched_setparam,
        libc::SYS_sched_setattr,
    ] {
        rules.insert(call, own(0)?);
    }
    Ok(rules)
}

type Condition = Result<SeccompCondition, seccompiler::BackendError>;

fn all<const N: usize>(conditions: [SeccompCondition; N]) -> Result<SeccompRule, seccompiler::BackendError> {
    SeccompRule::new(Vec::from(conditions))
}

fn is_not(argument: u8, value: u64) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Qword, SeccompCmpOp::Ne, value)
}

fn is_not_word(argument: u8, value: i32) -> Condition {
    let value = u64::from(value.unsigned_abs());
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Ne, value)
}

fn is_word(argument: u8, value: c_ulong) -> Condition {
    SeccompCondition::new(argument, SeccompCmpArgLen::Dword, SeccompCmpOp::Eq, value)
}

/// One rule that holds where the argument is none of the values.
fn unlike_all(argument: u8, values: &[i32]) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    let unlike = values.iter().map(|value| is_not_word(argument, *value));
    Ok(vec![SeccompRule::new(unlike.collect::<Result<_, _>>()?)?])
}

/// One rule for each flag.
fn with_any(argument: u8, flags: &[i32]) -> Result<Vec<SeccompRule>, seccompiler::BackendError> {
    flags
        .iter()
        .map(|flag| {
            let flag = u64::from(flag.unsigned_abs());
            let set = SeccompCmpOp::MaskedEq(flag);
            all([SeccompCondition::new(
                argument,
                SeccompCmpArgLen::Dword,
                set,
                flag,
            )?])
        })
        .collect()
}
