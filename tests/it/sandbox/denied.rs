//! What must not work, tried from inside by programs that want it to work.

use std::fmt::Write as _;

use super::*;

/// Runs scripts that must fail, and looks at the world afterwards.
async fn all_fail(scripts: &[(&str, String)], world: &World) {
    let before = world.snapshot();
    for sandbox in sandboxes().await {
        for (name, script) in scripts {
            let outcome = sandbox.run(bash(script), &world.policy()).await.expect("a run");
            let said = text(&outcome.stdout) + &text(&outcome.stderr);
            assert_ne!(
                outcome.exit,
                Exit::Code(0),
                "{name} at {:?}: {said}",
                sandbox.level()
            );
            assert!(
                !said.contains("canary"),
                "{name} at {:?}: {said}",
                sandbox.level()
            );
            assert_eq!(
                world.snapshot(),
                before,
                "{name} at {:?}: {said}",
                sandbox.level()
            );
        }
    }
}

#[tokio::test]
async fn nothing_outside_is_read_or_changed() {
    let world = World::new();
    let outside = world.path("outside").display().to_string();
    let library = world.path("library").display().to_string();
    let scripts = [
        ("read", format!("cat {outside}/secret")),
        ("list", format!("ls {outside}")),
        ("write", format!("echo x > {outside}/secret")),
        ("make", format!("echo x > {outside}/new")),
        ("make a folder", format!("mkdir {outside}/new")),
        ("append", format!("echo x >> {outside}/secret")),
        ("truncate", format!("truncate -s 0 {outside}/secret")),
        (
            "remove",
            format!("rm -f {outside}/secret; test ! -e {outside}/secret && test -e {outside}"),
        ),
        ("rename", format!("mv readme.md {outside}/moved")),
        (
            "permissions",
            format!("chmod 777 {outside}/secret; test \"$(stat -c %a {outside}/secret)\" = 777"),
        ),
        ("owner", format!("chown 12345 {outside}/secret")),
        (
            "hard link from outside",
            format!("ln {outside}/secret deep/linked && cat deep/linked"),
        ),
        ("the library", format!("echo x > {library}/text")),
        ("make in the library", format!("echo x > {library}/new")),
        (
            "permissions in the library",
            format!("chmod 600 {library}/text; test \"$(stat -c %a {library}/text)\" = 600"),
        ),
        (
            "through /proc/self/root",
            format!("echo x > /proc/self/root{outside}/secret"),
        ),
        (
            "read through /proc/self/root",
            format!("cat /proc/self/root{outside}/secret"),
        ),
        (
            "through the first process",
            format!("cat /proc/1/root{outside}/secret"),
        ),
        ("a system file", "echo x >> /etc/passwd".to_owned()),
        ("a system program", "echo x > /usr/bin/x".to_owned()),
        ("shadow", "cat /etc/shadow".to_owned()),
        ("a home", "cat /root/.bashrc /home/*/.bashrc".to_owned()),
        (
            "the server's environment",
            format!("cat /proc/{}/environ", std::process::id()),
        ),
        (
            "the server's memory",
            format!("head -c 1 /proc/{}/mem", std::process::id()),
        ),
    ];
    all_fail(&scripts, &world).await;
}

#[tokio::test]
async fn what_is_hidden_stays_hidden() {
    let world = World::new();
    let work = world.path("work").display().to_string();
    let scripts = [
        (
            "credentials",
            "test -s deep/.env || exit 1; cat deep/.env".to_owned(),
        ),
        ("credentials by absolute path", format!("grep . {work}/deep/.env")),
        ("everything at once", "grep -r canary .".to_owned()),
        (
            "an archive",
            "tar cf - . | tr -d '\\0' | grep -a canary".to_owned(),
        ),
        ("data", "cat server/data/tidegate.db".to_owned()),
        ("names of data", "ls server/data/* | grep db".to_owned()),
        ("write credentials", "echo x > deep/.env".to_owned()),
        (
            "remove credentials",
            "rm -f deep/.env; test ! -e deep/.env".to_owned(),
        ),
        (
            "move credentials",
            "mv deep/.env deep/plain && cat deep/plain".to_owned(),
        ),
        ("move the folder above data", "mv server other".to_owned()),
        (
            "move the folder above data far",
            "mv -T server $HOME/y".to_owned(),
        ),
        ("link credentials", "ln deep/.env plain && cat plain".to_owned()),
        ("write data", "echo x > server/data/tidegate.db".to_owned()),
        ("make data", "echo x > server/data/new".to_owned()),
        (
            "move data",
            "python3 -c \"import os; os.rename('server/data', 'elsewhere')\"".to_owned(),
        ),
    ];
    all_fail(&scripts, &world).await;
}

#[tokio::test]
async fn a_link_opens_nothing() {
    let world = World::new();
    std::os::unix::fs::symlink(world.path("outside/secret"), world.path("work/link")).expect("a link");
    std::os::unix::fs::symlink(world.path("outside"), world.path("work/deep/folder")).expect("a link");
    let scripts = [
        ("read", "cat link".to_owned()),
        ("write", "echo x > link".to_owned()),
        ("below", "cat deep/folder/secret".to_owned()),
        ("make below", "echo x > deep/folder/new".to_owned()),
        (
            "a new one",
            format!(
                "ln -s {} $HOME/l && cat $HOME/l",
                world.path("outside/secret").display()
            ),
        ),
        (
            "a new one to data",
            "ln -s $PWD/server/data/tidegate.db $HOME/l && cat $HOME/l".to_owned(),
        ),
    ];
    all_fail(&scripts, &world).await;
}

#[tokio::test]
async fn a_protected_file_is_read_only() {
    let world = World::new();
    let before = world.snapshot();
    let mut policy = world.policy();
    policy.hidden.clear();
    policy.masked.clear();
    policy.protected = vec![world.path("work/deep")];
    for sandbox in sandboxes().await {
        for (script, works) in [
            ("cat deep/notes.md", true),
            ("echo x > deep/notes.md", false),
            ("echo x > deep/new", false),
            ("rm -rf deep/notes.md; test ! -e deep/notes.md", false),
            ("mv deep other", false),
            ("echo hello > readme.md; printf hello > readme.md", true),
        ] {
            let outcome = sandbox.run(bash(script), &policy).await.expect("a run");
            assert_eq!(
                outcome.exit == Exit::Code(0),
                works,
                "{script} {}",
                text(&outcome.stderr)
            );
        }
        assert_eq!(world.snapshot(), before);
    }
}

/// Python tries what bash has no words for. Each prints `held` where the kernel refuses.
const ATTEMPTS: &[(&str, &str)] = &[
    (
        "tcp",
        "socket.socket(socket.AF_INET, socket.SOCK_STREAM).connect(('127.0.0.1', PORT))",
    ),
    (
        "udp",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))",
    ),
    (
        "tcp over ipv6",
        "socket.socket(socket.AF_INET6, socket.SOCK_STREAM)",
    ),
    ("raw", "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)"),
    (
        "unix",
        "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).connect('SOCKET')",
    ),
    (
        "abstract unix",
        "socket.socket(socket.AF_UNIX, socket.SOCK_STREAM).bind('\\0x')",
    ),
    ("packet", "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)"),
    ("netlink", "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)"),
    ("a pair of another family", "socket.socketpair(socket.AF_INET)"),
    ("signal the server", "os.kill(SERVER, 0)"),
    (
        "signal everybody",
        "os.kill(-1, 0) if os.getppid() > 2 else held()",
    ),
    ("ptrace", "call(101, 16, SERVER, 0, 0)"),
    ("ptrace itself", "call(101, 0, 0, 0, 0)"),
    ("memory of another", "call(310, SERVER, 0, 0, 0, 0, 0)"),
    ("mount", "call(165, b'none', b'/tmp', b'tmpfs', 0, 0)"),
    ("unshare user", "call(272, 0x10000000)"),
    ("unshare network", "call(272, 0x40000000)"),
    ("clone user", "call(56, 0x10000000 | 17, 0, 0, 0, 0)"),
    ("clone3", "call(435, 0, 0)"),
    (
        "setns",
        "call(308, os.open('/proc/self/ns/user', os.O_RDONLY), 0)",
    ),
    ("chroot", "os.chroot('/')"),
    ("pivot_root", "call(155, b'/', b'/')"),
    ("io_uring", "call(425, 1, ctypes.create_string_buffer(256))"),
    ("bpf", "call(321, 0, 0, 0)"),
    (
        "perf",
        "call(298, ctypes.create_string_buffer(128), 0, -1, -1, 0)",
    ),
    ("userfaultfd", "call(323, 1)"),
    ("keyctl", "call(250, 0, -3, 0)"),
    ("open by handle", "call(304, -100, 0, 0)"),
    ("shared memory that stays", "call(29, 0, 4096, 0o1600)"),
    ("message queue that stays", "call(68, 0, 0o1600)"),
    (
        "limits of the server",
        "resource.prlimit(SERVER, resource.RLIMIT_NOFILE, (9, 9))",
    ),
    (
        "priority of the server",
        "os.setpriority(os.PRIO_PROCESS, SERVER, 19)",
    ),
    ("priority of the user", "os.setpriority(os.PRIO_USER, 0, 19)"),
    ("processors of the server", "os.sched_setaffinity(SERVER, {0})"),
    ("second call table", "call(0x40000000 | 41, 2, 1, 0)"),
    (
        "a device",
        "os.mknod(os.environ['HOME'] + '/d', 0o020600, os.makedev(1, 3))",
    ),
    ("host name", "socket.sethostname('x')"),
    ("clock", "time.clock_settime(time.CLOCK_REALTIME, 0)"),
    ("become another user", "os.setuid(12345)"),
    (
        "more files",
        "resource.setrlimit(resource.RLIMIT_NOFILE, (9999, 9999))",
    ),
];

#[tokio::test]
async fn the_kernels_other_doors_are_shut() {
    if !cfg!(target_arch = "x86_64") || Programs::find().get("python3").is_none() {
        eprintln!("left out here: the attempts are written for python3 on x86-64");
        return;
    }
    let world = World::new();
    let socket = world.path("work/socket");
    let _unix = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let tcp = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a listener");
    let port = tcp.local_addr().expect("its address").port();
    for sandbox in sandboxes().await {
        let level = sandbox.level().expect("a level").name();
        let mut script = format!(
            "import os, sys, socket, ctypes, resource, time\nSERVER = {}\nPORT = {port}\n\
             libc = ctypes.CDLL(None, use_errno=True)\n\
             def held(): raise OSError('held')\n\
             def call(*args):\n  if libc.syscall(*args) == -1: raise OSError(ctypes.get_errno(), 'denied')\n",
            std::process::id()
        );
        for (name, attempt) in ATTEMPTS {
            let attempt = attempt.replace("SOCKET", &socket.display().to_string());
            writeln!(
                script,
                "try:\n  {attempt}\n  print('OPEN: {name}')\nexcept (OSError, ValueError) as e: print('held: {name}', e)"
            )
            .expect("text grows");
        }
        let task = Task::program("/usr/bin/python3", ["-c", &script]);
        let outcome = sandbox.run(task, &world.policy()).await.expect("a run");
        let said = text(&outcome.stdout);
        assert_eq!(
            outcome.exit,
            Exit::Code(0),
            "{level}: {said} {}",
            text(&outcome.stderr)
        );
        assert!(!said.contains("OPEN"), "{level}: {said}");
        assert_eq!(said.matches("held:").count(), ATTEMPTS.len(), "{level}: {said}");
    }
}

#[tokio::test]
async fn the_network_is_there_only_where_the_policy_says_so() {
    if Programs::find().get("python3").is_none() {
        eprintln!("left out here: no python3");
        return;
    }
    let tcp = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a listener");
    let port = tcp.local_addr().expect("its address").port();
    let script = format!(
        "import socket\nsocket.create_connection(('127.0.0.1', {port}))\n\
         try: socket.socket(socket.AF_UNIX)\nexcept OSError: print('no unix')"
    );
    for sandbox in sandboxes().await {
        let mut policy = Policy {
            network: true,
            ..Policy::default()
        };
        let task = || Task::program("/usr/bin/python3", ["-c", &script]);
        let outcome = sandbox.run(task(), &policy).await.expect("a run");
        assert_eq!(text(&outcome.stdout), "no unix\n", "{}", text(&outcome.stderr));
        policy.network = false;
        let outcome = sandbox.run(task(), &policy).await.expect("a run");
        assert_eq!(outcome.exit, Exit::Code(1));
    }
}
