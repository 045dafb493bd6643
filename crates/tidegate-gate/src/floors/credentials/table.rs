//! What names credentials go by.

use std::{collections::HashSet, sync::LazyLock};

use crate::floors::spelling::{Chains, Spellings};

/// What a name says about a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Judgement {
    /// Nothing.
    Harmless,
    /// The public half of a key: may be read, and not be replaced.
    Public,
    /// It holds credentials.
    Secret,
}

impl Judgement {
    pub(super) fn worse(self, other: Self) -> Self {
        self.max(other)
    }
}

/// Folders, wherever they stand in a path; several names follow each other.
const FOLDERS: [&[&str]; 79] = [
    &[".ssh"],
    &[".gnupg"],
    &[".aws"],
    &[".azure"],
    &[".kube"],
    &[".oci"],
    &[".aliyun"],
    &[".bluemix"],
    &[".databricks"],
    &[".fly"],
    &[".linode-cli"],
    &[".ngrok2"],
    &[".snowflake"],
    &[".terraform.d"],
    &[".vault"],
    &[".password-store"],
    &[".lpass"],
    &[".pki"],
    &[".secrets"],
    &[".config", "gcloud"],
    &[".config", "gh"],
    &[".config", "glab-cli"],
    &[".config", "hub"],
    &[".config", "op"],
    &[".config", "1password"],
    &[".config", "bitwarden"],
    &[".config", "bitwarden cli"],
    &[".config", "doctl"],
    &[".config", "hcloud"],
    &[".config", "flyctl"],
    &[".config", "ngrok"],
    &[".config", "rclone"],
    &[".config", "sops"],
    &[".config", "age"],
    &[".config", "keepassxc"],
    &[".config", "solana"],
    &[".config", "configstore"],
    &[".config", "github-copilot"],
    &[".config", "google-chrome"],
    &[".config", "chromium"],
    &[".config", "bravesoftware"],
    &[".config", "microsoft-edge"],
    &[".config", "vivaldi"],
    &[".config", "opera"],
    &[".config", "git", "credentials"],
    &[".config", "pip", "pip.conf"],
    &[".config", "containers", "auth.json"],
    &[".mozilla"],
    &[".thunderbird"],
    &[".local", "share", "keyrings"],
    &[".local", "share", "kwalletd"],
    &[".gnome2", "keyrings"],
    &["library", "keychains"],
    &["library", "application support", "google", "chrome"],
    &["library", "application support", "firefox"],
    &["appdata", "roaming", "mozilla"],
    &["appdata", "local", "google", "chrome"],
    &[".bitcoin"],
    &[".litecoin"],
    &[".dogecoin"],
    &[".zcash"],
    &[".ethereum"],
    &[".electrum"],
    &[".monero"],
    &[".docker", "config.json"],
    &[".cargo", "credentials"],
    &[".gem", "credentials"],
    &[".m2", "settings.xml"],
    &[".gradle", "gradle.properties"],
    &[".composer", "auth.json"],
    &[".kaggle", "kaggle.json"],
    &["huggingface", "token"],
    &["run", "secrets"],
    &["etc", "ssl", "private"],
    &["etc", "shadow"],
    &["etc", "shadow-"],
    &["etc", "gshadow"],
    &["etc", "gshadow-"],
    &["etc", "security", "opasswd"],
];

/// What `/proc` shows of a process that may hold its secrets.
const PROCESS_FILES: [&str; 8] = ["environ", "mem", "maps", "fd", "root", "cwd", "cmdline", "task"];

/// Whole names.
const NAMES: [&str; 91] = [
    ".envrc",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".pypirc",
    ".git-credentials",
    ".gitconfig",
    ".pgpass",
    "pgpass.conf",
    ".my.cnf",
    ".mylogin.cnf",
    ".s3cfg",
    ".boto",
    ".rclone.conf",
    "rclone.conf",
    ".passwd-s3fs",
    ".smbcredentials",
    ".authinfo",
    ".msmtprc",
    ".fetchmailrc",
    ".mbsyncrc",
    ".offlineimaprc",
    ".xauthority",
    ".erlang.cookie",
    ".p4tickets",
    ".dockercfg",
    ".dockerconfigjson",
    ".htpasswd",
    "htpasswd",
    ".vault-token",
    ".vault_pass",
    ".vault-password",
    ".terraformrc",
    ".rediscli_auth",
    ".dbshell",
    "fish_history",
    "config.txt",
    "configb.txt",
    "credentials.json",
    "credentials.toml",
    "credentials.yml",
    "credentials.yaml",
    "credentials.xml",
    "credentials.csv",
    "credentials.txt",
    "credentials.ini",
    "credentials.db",
    "credentials.tfrc.json",
    "client_secret.json",
    "application_default_credentials.json",
    "access_tokens.db",
    "kaggle.json",
    "kubeconfig",
    "token.json",
    "tokens.json",
    "token.txt",
    "tokens.txt",
    "secrets.json",
    "secrets.toml",
    "secrets.yml",
    "secrets.yaml",
    "secrets.env",
    "secrets.txt",
    "secret.txt",
    "secret.json",
    "secret.yml",
    "secret.yaml",
    "secret.toml",
    "password.txt",
    "passwords.txt",
    "passwords.csv",
    "passwd.txt",
    "wallet.dat",
    "wallet.json",
    "terraform.tfstate",
    "key3.db",
    "key4.db",
    "logins.json",
    "login data",
    "cookies.sqlite",
    "login.keychain",
    "login.keychain-db",
    "master.passwd",
    "krb5.keytab",
    "ssh_host_rsa_key",
    "ssh_host_ecdsa_key",
    "ssh_host_ed25519_key",
    "vault-password.txt",
    ".secret",
];

/// Extensions.
const EXTENSIONS: [&str; 22] = [
    "pem",
    "key",
    "rsa",
    "p12",
    "pkcs12",
    "pfx",
    "p8",
    "jks",
    "jceks",
    "bks",
    "keystore",
    "keytab",
    "ppk",
    "kdb",
    "kdbx",
    "env",
    "tfstate",
    "agekey",
    "kubeconfig",
    "ovpn",
    "keychain",
    "htpasswd",
];

/// The names under which OpenSSH keeps private keys; what follows a separator or a digit is a copy.
const KEY_FILES: [&str; 5] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "id_xmss"];

/// Files of keys of a service's own account, told by a part of their names without its separators.
const ACCOUNT_KEYS: [&str; 2] = ["serviceaccount", "adminsdk"];

/// Words that make a name secret wherever they stand in it.
const WORDS: [&str; 4] = ["_key", "_secret", "_token", "_password"];

/// How other words go on that begin like one of [`WORDS`]: keyboards, keywords, tokenizers, secretaries.
const LONGER_WORDS: [(&str, &str); 15] = [
    ("_key", "board"),
    ("_key", "word"),
    ("_key", "note"),
    ("_key", "stone"),
    ("_key", "frame"),
    ("_key", "pad"),
    ("_key", "press"),
    ("_token", "ize"),
    ("_token", "iza"),
    ("_token", "ise"),
    ("_token", "isa"),
    ("_secret", "ary"),
    ("_secret", "aries"),
    ("_secret", "ariat"),
    ("_password", "less"),
];

/// Keys that are no secret: the public half of a pair, and the keys of tables. What stands before `_key`.
const OPEN_KEYS: [&str; 3] = ["public", "primary", "foreign"];

/// Forms of an environment file that hold no values.
const EXAMPLES: [&str; 3] = [".env.example", ".env.sample", ".env.template"];

/// Files of these extensions speak about keys and do not hold them: source code.
const SOURCE: [&str; 40] = [
    "adb", "ads", "c", "cc", "clj", "cpp", "cs", "css", "cxx", "dart", "erl", "ex", "exs", "f90", "go", "h",
    "hh", "hpp", "hs", "java", "js", "jsx", "kt", "lua", "ml", "mli", "php", "pl", "py", "pyi", "r", "rb",
    "rs", "scala", "sql", "swift", "ts", "tsx", "vue", "zig",
];

/// Prose; a plural in its name speaks about such things.
const PROSE: [&str; 4] = ["adoc", "md", "org", "rst"];

/// [`FOLDERS`], to be asked for a component each.
static CHAINS: LazyLock<Chains> = LazyLock::new(|| Chains::of(&FOLDERS));

/// [`NAMES`], to be asked for one.
static KNOWN: LazyLock<HashSet<&'static str>> = LazyLock::new(|| NAMES.into_iter().collect());

/// Whether any folder on the way, or the path itself, is one of [`FOLDERS`] or shows a process.
pub(super) fn judge_folders(components: &[Spellings<'_>]) -> Judgement {
    let is_process = components.windows(3).any(|window| {
        let [proc, which, file] = window else { return false };
        let is_one = |name: &str| {
            matches!(name, "self" | "thread-self" | "*") || name.bytes().all(|digit| digit.is_ascii_digit())
        };
        proc.all().any(|name| name == "proc")
            && which.all().any(is_one)
            && file.all().any(|name| PROCESS_FILES.contains(&name))
    });
    if is_process || CHAINS.stand_in(components, Spellings::all) {
        Judgement::Secret
    } else {
        Judgement::Harmless
    }
}

/// What the components of a path say, each of them and together.
pub(super) fn judge(components: &[Spellings<'_>]) -> Judgement {
    judge_names(components).worse(judge_folders(components))
}

/// What each component says by itself.
pub(super) fn judge_names(components: &[Spellings<'_>]) -> Judgement {
    components
        .iter()
        .flat_map(Spellings::all)
        .map(judge_name)
        .fold(Judgement::Harmless, Judgement::worse)
}

fn judge_name(name: &str) -> Judgement {
    if !name.bytes().any(|byte| matches!(byte, b'.' | b'_')) {
        // No other name of the tables is without both.
        return match name {
            "htpasswd" | "kubeconfig" | "login data" => Judgement::Secret,
            _ => Judgement::Harmless,
        };
    }
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    let is_secret = || {
        KNOWN.contains(name)
            || EXTENSIONS.contains(&extension)
            || is_environment(name)
            || is_history(name)
            || is_account_key(name, extension)
            || (may_hold_word(name)
                && !SOURCE.contains(&extension)
                && WORDS.iter().any(|word| holds_word(name, word, extension)))
    };
    if EXAMPLES.contains(&name) {
        Judgement::Harmless
    } else {
        match judge_key_file(name) {
            Judgement::Harmless if is_secret() => Judgement::Secret,
            judgement @ (Judgement::Harmless | Judgement::Public | Judgement::Secret) => judgement,
        }
    }
}

/// `id_rsa` by itself, as a copy (`id_rsa.old`, `id_rsa2`) or with a word before it (`work_id_rsa`); `.pub` is the
/// public half.
fn judge_key_file(name: &str) -> Judgement {
    if !name.as_bytes().windows(3).any(|window| window == b"id_") {
        return Judgement::Harmless;
    }
    let found = KEY_FILES.iter().find_map(|file| {
        let (before, rest) = name.split_once(file)?;
        let stands_apart = before.is_empty() || before.ends_with(['_', '-', '.']);
        (stands_apart && !rest.starts_with(char::is_alphabetic)).then_some(rest)
    });
    match found {
        Some(rest)
            if rest
                .rsplit_once('.')
                .is_some_and(|(_, extension)| extension == "pub") =>
        {
            Judgement::Public
        }
        Some(_) => Judgement::Secret,
        None => Judgement::Harmless,
    }
}

/// What was typed, passwords on command lines among it: `.bash_history`, `.psql_history`, `.zhistory`.
fn is_history(name: &str) -> bool {
    name.starts_with('.') && name.ends_with("history")
}

fn is_account_key(name: &str, extension: &str) -> bool {
    if extension != "json" {
        return false;
    }
    let letters: String = name
        .chars()
        .filter(|letter| !matches!(letter, '-' | '_'))
        .collect();
    ACCOUNT_KEYS.iter().any(|part| letters.contains(part))
}

/// `.env` and its variants: `.env.local`, `.env-production`, `.env_1`; not `.envoy`.
fn is_environment(name: &str) -> bool {
    name.strip_prefix(".env")
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

/// Whether any of [`WORDS`] could stand in the name, by how they begin: nearly every name ends here.
fn may_hold_word(name: &str) -> bool {
    name.as_bytes()
        .windows(2)
        .any(|pair| matches!(pair, [b'_', b'k' | b's' | b't' | b'p']))
}

fn holds_word(name: &str, word: &str, extension: &str) -> bool {
    name.match_indices(word).any(|(at, word)| {
        let (before, rest) = (
            name.get(..at).unwrap_or(""),
            name.get(at + word.len()..).unwrap_or(""),
        );
        let is_plural = rest.starts_with("s.") || rest.starts_with("s_") || rest.starts_with("s-");
        let is_longer = LONGER_WORDS
            .iter()
            .any(|(known, more)| *known == word && rest.starts_with(more));
        let is_open = word == "_key" && is_open_key(before);
        !(is_longer || is_open || (is_plural && PROSE.contains(&extension)))
    })
}

/// Whether the last word before `_key` says that the key is open: a word by itself, not the end of one.
fn is_open_key(before: &str) -> bool {
    OPEN_KEYS.iter().any(|kind| {
        before
            .strip_suffix(kind)
            .is_some_and(|rest| !rest.ends_with(char::is_alphanumeric))
    })
}

#[cfg(test)]
mod tests {
    use super::{FOLDERS, NAMES, WORDS, may_hold_word};

    #[test]
    fn names_without_dot_and_line_are_asked_for_by_themselves() {
        let mut bare: Vec<&str> = NAMES
            .into_iter()
            .filter(|name| !name.contains(['.', '_']))
            .collect();
        bare.sort_unstable();
        assert_eq!(bare, ["htpasswd", "kubeconfig", "login data"]);
        assert!(FOLDERS.iter().all(|folder| !folder.is_empty()));
        assert!(WORDS.into_iter().all(may_hold_word));
    }
}
