//! Git remotes pass the same rules.

use super::*;

#[test]
fn git_remotes_lead_to_hosts_and_nowhere_else() {
    let policy = policy(|options| options.blocked_domains = strings(&["bad.example"]));
    for (remote, transport, port) in [
        ("https://git.example/a/b.git", Transport::Http, 443),
        ("git@git.example:a/b.git", Transport::Ssh, 22),
        ("git.example:a/b.git", Transport::Ssh, 22),
        ("ssh://git@git.example/a/b.git", Transport::Ssh, 22),
        ("ssh://git.example:2222/a/b.git", Transport::Ssh, 2222),
        ("git@[2606:4700::1]:a/b.git", Transport::Ssh, 22),
    ] {
        let judged = policy.check_remote(remote).unwrap();
        assert_eq!(
            (judged.transport(), judged.destination().port()),
            (transport, port),
            "{remote}"
        );
    }
    for remote in [
        "",
        "/srv/repo",
        "./repo",
        "../repo",
        "repo",
        "~/repo",
        "c:repo",
        "file:///srv/repo",
        "ext::sh -c id",
        "ext::sh%20-c%20id",
        "fd::3",
        "helper::https://git.example/a",
        "https::https://git.example/",
        "-uX",
        "--upload-pack=id",
        "ssh://-oProxyCommand=id/x",
        "-oProxyCommand=id:x",
        "git@-oProxyCommand=id:x",
        "ssh://git:pass@git.example/x",
        "https://user:pass@git.example/x",
        "git://git.example/x",
        "ftp://git.example/x",
        "http://169.254.169.254/x",
        "git@169.254.169.254:x",
        "ssh://127.0.0.1/x",
        "git@localhost:x",
        "git@router:x",
        "git@[::1]:x",
        "git@0x7f.1:x",
        "https://bad.example/x",
        "git@bad.example:x",
        "git@sub.bad.example.:x",
        "git@git.example:-x",
        "git@git.example:",
        "git@a b:x",
        "git@git.example:x\n",
        "ssh://git@git.example%2f@127.0.0.1/x",
        "a@b@git.example:x",
        "https://git.example\\@x/",
    ] {
        assert!(policy.check_remote(remote).is_err(), "{remote}");
    }
}
