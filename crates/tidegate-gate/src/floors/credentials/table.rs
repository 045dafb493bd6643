//! What names credentials go by.

use crate::floors::spelling::Spellings;

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
const FOLDERS: [&[&str]; 27] = [
    &[".ssh"],
    &[".gnupg"],
    &[".aws"],
    &[".azure"],
    &[".kube"],
    &[".oci"],
    &[".password-store"],
    &[".config", "gcloud"],
    &[".config", "gh"],
    &[".config", "op"],
    &[".config", "google-chrome"],
    &[".config", "chromium"],
    &[".config", "bravesoftware"],
    &[".config", "microsoft-edge"],
    &[".mozilla"],
    &[".thunderbird"],
    &[".local", "share", "keyrings"],
    &["library", "keychains"],
    &["appdata", "roaming", "mozilla"],
    &[".bitcoin"],
    &[".ethereum"],
    &[".electrum"],
    &[".monero"],
    &[".docker", "config.json"],
    &[".cargo", "credentials"],
    &[".gem", "credentials"],
    &["etc", "shadow"],
];

/// Whole names.
const NAMES: [&str; 62] = [
    ".envrc",
    ".netrc",
    "_netrc",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".git-credentials",
    ".gitconfig",
    ".pgpass",
    ".my.cnf",
    ".mylogin.cnf",
    ".s3cfg",
    ".boto",
    ".dockercfg",
    ".dockerconfigjson",
    ".htpasswd",
    ".vault-token",
    ".vault_pass",
    ".terraformrc",
    ".rediscli_auth",
    ".bash_history",
    ".zsh_history",
    ".sh_history",
    ".history",
    ".python_history",
    ".node_repl_history",
    ".psql_history",
    ".mysql_history",
    ".sqlite_history",
    ".rediscli_history",
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
    "credentials.tfrc.json",
    "client_secret.json",
    "application_default_credentials.json",
    "service-account.json",
    "service_account.json",
    "serviceaccount.json",
    "serviceaccountkey.json",
    "token.json",
    "tokens.json",
    "secrets.json",
    "secrets.toml",
    "secrets.yml",
    "secrets.yaml",
    "password.txt",
    "passwords.txt",
    "passwords.csv",
    "wallet.dat",
    "terraform.tfstate",
    "key3.db",
    "key4.db",
    "logins.json",
    "login data",
];

/// Extensions.
const EXTENSIONS: [&str; 13] = [
    "pem", "key", "rsa", "p12", "pfx", "jks", "keystore", "ppk", "kdb", "kdbx", "env", "tfstate", "agekey",
];

/// The names under which OpenSSH keeps private keys; a suffix after a separator is a copy.
const KEY_FILES: [&str; 4] = ["id_rsa", "id_dsa", "id_ecdsa", "id_ed25519"];

/// Words that make a name secret wherever they stand in it.
const WORDS: [&str; 4] = ["_key", "_secret", "_token", "_password"];

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

/// Whether any folder on the way, or the path itself, is one of [`FOLDERS`].
pub(super) fn judge_folders(components: &[Spellings]) -> Judgement {
    let is_there = FOLDERS.iter().any(|folder| {
        components.windows(folder.len()).any(|window| {
            window
                .iter()
                .zip(*folder)
                .all(|(component, name)| component.all().any(|spelling| spelling == *name))
        })
    });
    if is_there {
        Judgement::Secret
    } else {
        Judgement::Harmless
    }
}

/// What the components of a path say, each of them and together.
pub(super) fn judge(components: &[Spellings]) -> Judgement {
    components
        .iter()
        .flat_map(Spellings::all)
        .map(judge_name)
        .fold(judge_folders(components), Judgement::worse)
}

fn judge_name(name: &str) -> Judgement {
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    if EXAMPLES.contains(&name) {
        Judgement::Harmless
    } else if NAMES.contains(&name) || EXTENSIONS.contains(&extension) || is_environment(name) {
        Judgement::Secret
    } else if let Some(rest) = KEY_FILES.iter().find_map(|file| name.strip_prefix(file)) {
        match rest {
            ".pub" | "_sk.pub" => Judgement::Public,
            rest if rest.starts_with(char::is_alphanumeric) => Judgement::Harmless,
            _ => Judgement::Secret,
        }
    } else if !SOURCE.contains(&extension) && WORDS.iter().any(|word| holds_word(name, word, extension)) {
        Judgement::Secret
    } else {
        Judgement::Harmless
    }
}

/// `.env` and its variants: `.env.local`, `.env-production`, `.env_1`; not `.envoy`.
fn is_environment(name: &str) -> bool {
    name.strip_prefix(".env")
        .is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
}

fn holds_word(name: &str, word: &str, extension: &str) -> bool {
    name.match_indices(word).any(|(at, word)| {
        let rest = name.get(at + word.len()..).unwrap_or("");
        let is_plural = rest.starts_with("s.") || rest.starts_with("s_") || rest.starts_with("s-");
        !(is_plural && PROSE.contains(&extension))
    })
}
