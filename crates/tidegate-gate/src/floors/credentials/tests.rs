use super::*;
use crate::testing::{fact, inside};

const CREDENTIALS: [&str; 112] = [
    ".env",
    "a/.env",
    ".ENV",
    ".env.local",
    ".env.production",
    ".env-ci",
    "prod.env",
    ".env.",
    ".env ",
    " .env",
    ".env~",
    ".env.bak",
    ".env.swp",
    "#.env#",
    ".env:x",
    ".env::$DATA",
    ".\\.env",
    "src\\..\\.env",
    "ｉｄ_ｒｓａ",
    ".e\u{200b}nv",
    ".envrc",
    "id_rsa",
    "ID_RSA",
    "id_rsa.old",
    "keys/id_ed25519",
    "id_ecdsa",
    "id_dsa",
    "id_ed25519_sk",
    ".id_rsa.swp",
    ".ssh",
    ".ssh/known_hosts",
    ".ssh/id_rsa.pub",
    "x/.SSH./config",
    ".gnupg/trustdb.gpg",
    ".aws/credentials",
    ".kube/config",
    ".docker/config.json",
    ".config/gcloud/x.db",
    ".mozilla/firefox/x/cookies.sqlite",
    ".cargo/credentials.toml",
    ".gitconfig",
    ".git-credentials",
    ".netrc",
    ".npmrc",
    ".pypirc",
    ".vault-token",
    ".bash_history",
    "foo.pem",
    "foo.PEM",
    "SERVER~1.PEM",
    "a.p12",
    "a.pfx",
    "a.jks",
    "tls/new.key",
    "server.key.",
    "server.KEY ",
    "API_KEY.txt",
    "API_KEY",
    "x_Key.txt",
    "my_key.json",
    "my_token",
    "GITHUB_TOKEN",
    "my_secret.txt",
    "OLD_SECRET.bak",
    "root_password",
    "api_keys.json",
    "client_secrets.yaml",
    "api_tokens/a.txt",
    "credentials.json",
    "service-account.json",
    "token.json",
    "password.txt",
    "wallet.dat",
    "terraform.tfstate",
    "terraform.tfstate.backup",
    "config.txt",
    "sub/Config.TXT",
    "configb.txt",
    "config.txt.bak",
    "HEAD:.env",
    "id_rsa2",
    "work_id_rsa",
    "backup-id_ed25519.old",
    ".config/rclone/rclone.conf",
    ".config/git/credentials",
    ".m2/settings.xml",
    ".terraform.d/credentials.tfrc.json",
    ".cache/huggingface/token",
    ".psql_history",
    ".zhistory",
    ".irb_history",
    "my-service-account-prod.json",
    "x-firebase-adminsdk-1.json",
    "proc/self/environ",
    "proc/1/mem",
    "run/secrets/db",
    "etc/shadow",
    "etc/shadow-",
    "etc/gshadow",
    "tls/private.p8",
    "host.keytab",
    "client.ovpn",
    "prod.kubeconfig",
    ".pgpass",
    ".my.cnf",
    ".authinfo",
    ".htpasswd",
    ".ssh.bak/config",
    ".electrum/wallets/x",
    "secrets.yml",
    ".local/share/keyrings/login.keyring",
    "Library/Keychains/login.keychain-db",
];

fn zones() -> Zones {
    Zones {
        readable: vec!["/w/my_key_project".into(), "/other".into()],
        writable: vec!["/w/my_key_project".into(), "/other".into()],
        allowed_sensitive: vec![
            "/w/my_key_project/fixtures/test.pem".into(),
            "/w/my_key_project/certs/".into(),
        ],
        ..Zones::default()
    }
}

fn is_refused(name: &str, access: Access) -> bool {
    let path = fact("path", name, access, inside(&format!("/w/my_key_project/{name}")));
    check_path(&path, &zones()).is_some()
}

#[test]
fn files_of_credentials_are_refused_for_every_access() {
    for name in CREDENTIALS {
        for access in [Access::Read, Access::List, Access::Write] {
            assert!(is_refused(name, access), "{name:?} {access:?}");
        }
    }
}

#[test]
fn names_that_only_sound_alike_are_not() {
    for name in [
        ".env.example",
        ".env.sample",
        ".env.template",
        "sub/.env.example",
        ".envoy/x",
        "environment.md",
        "environment.yml",
        "src/env.rs",
        "config.toml",
        "old-config.txt",
        "config.txt.md",
        "docs/configb.txtx",
        "my_key.py",
        "monkey_keys.md",
        "db_password.rs",
        "count_tokens.py",
        "key.txt",
        "a.keys",
        "keyboard.md",
        "monkey.txt",
        "secretary.txt",
        "passwords-policy.md",
        "server.crt",
        "pemfile.txt",
        "sshd_notes.md",
        "grid_rsa_plot.csv",
        "id_rsapple.txt",
        ".editorconfig",
        ".gitattributes",
        "profile.json",
        "docker/config.json",
        "config/gh/x",
        "bashrc",
        "notes.txt",
        ".",
        "日本語.md",
    ] {
        for access in [Access::Read, Access::List, Access::Write] {
            assert!(!is_refused(name, access), "{name:?} {access:?}");
        }
    }
}

#[test]
fn a_public_key_may_be_read_and_not_replaced() {
    assert!(!is_refused("id_rsa.pub", Access::Read));
    assert!(is_refused("id_rsa.pub", Access::Write));
}

#[test]
fn the_operators_exemptions_are_exact() {
    assert!(!is_refused("fixtures/test.pem", Access::Read));
    assert!(!is_refused("certs/deep/a.pem", Access::Write));
    assert!(is_refused("fixtures/TEST.PEM", Access::Read));
    assert!(is_refused("other/test.pem", Access::Read));
}

#[test]
fn the_refusal_names_the_line_to_add_and_no_path_outside() {
    let zones = zones();
    let denial = |requested: &str, real: &str| {
        let path = fact("path", requested, Access::Read, inside(real));
        check_path(&path, &zones).expect("a refusal").reason
    };
    let reason = denial("harmless", "/w/my_key_project/sub/config.txt");
    assert!(
        reason.contains("allowed_sensitive_files = [\"sub/config.txt\"]"),
        "{reason}"
    );
    let reason = denial("harmless", "/other/config.txt");
    assert!(
        reason.contains("allowed_sensitive_files = [\"/other/config.txt\"]"),
        "{reason}"
    );
    let reason = denial("link", "/home/me/.ssh/id_rsa");
    assert!(
        !reason.contains("/home") && !reason.contains("id_rsa"),
        "{reason}"
    );
}

#[test]
fn a_name_that_could_not_be_resolved_is_judged_as_it_was_written() {
    for (requested, is_refused) in [(".env/", true), ("notes.txt/x", false), ("a/../.ssh/x", true)] {
        let path = fact("path", requested, Access::Read, Err(crate::PathFault::Missing));
        assert_eq!(check_path(&path, &zones()).is_some(), is_refused, "{requested}");
    }
}
