//! One function a target: any bytes in, and what must hold whatever they are.

use std::{net::IpAddr, path::PathBuf, sync::LazyLock};

use tempfile::TempDir;
use tidegate_core::secret::Secret;
use tidegate_gate::{
    Access,
    guards::{
        address::{self, classify},
        secrets::{Redactor, Stream},
    },
    shell::{self, OperandKind, Place, Verdict},
};
use tidegate_io::files::Roots;

/// A value that must never come out.
const SECRET: &str = "sk-inv-4Tz8WqLm2RtYb7KpZ";
/// An address inside.
const INSIDE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

/// The analyser of command lines: it ends, says the same twice, and plans exactly what only reads.
pub fn shell(bytes: &[u8]) {
    static POLICY: LazyLock<shell::Policy> =
        LazyLock::new(|| shell::Policy::compile(&shell::Options::default()).expect("the built-in rules"));
    let line = String::from_utf8_lossy(bytes);
    let place = Place::new("/w/proj", "/w/home");
    let analysis = POLICY.analyse(&line, &place);
    assert_eq!(analysis.command(), line);
    assert_eq!(analysis, POLICY.analyse(&line, &place));
    match analysis.verdict() {
        Verdict::ReadOnly => assert!(analysis.plan().is_some()),
        Verdict::NeedsGrant { .. } | Verdict::Refused { .. } => assert!(analysis.plan().is_none()),
    }
    for operand in analysis.operands() {
        let is_absolute = operand.text.starts_with('/');
        assert!(is_absolute || operand.kind == OperandKind::Dynamic, "{operand:?}");
    }
}

/// The guard of addresses: what it lets pass names no address inside, reads the same twice, and is refused when
/// its name turns out to lead inside.
pub fn url(bytes: &[u8]) {
    static POLICY: LazyLock<address::Policy> = LazyLock::new(address::Policy::default);
    let text = String::from_utf8_lossy(bytes);
    let Ok(destination) = POLICY.check(&text) else {
        return;
    };
    if let Some(literal) = destination.literal() {
        assert!(classify(literal).is_ok(), "{literal}");
    } else {
        assert!(
            POLICY.reach(destination.clone(), &[INSIDE]).is_err(),
            "{destination:?}"
        );
    }
    let again = POLICY.check(destination.as_str()).expect("it has passed before");
    assert_eq!(again.as_str(), destination.as_str());
    if let Ok(mut reached) = POLICY.reach(destination, &[[93, 184, 216, 34].into()]) {
        for target in text.split_whitespace().take(4) {
            let Ok(next) = POLICY.follow(&reached, target) else {
                break;
            };
            if let Some(literal) = next.literal() {
                assert!(classify(literal).is_ok(), "{literal}");
            }
            match POLICY.reach(next, &[[93, 184, 216, 34].into()]) {
                Ok(next) => reached = next,
                Err(_) => break,
            }
        }
    }
}

/// The redactor: a secret comes out of no text, whole or in pieces, however the pieces are cut.
pub fn redactor(bytes: &[u8]) {
    static REDACTOR: LazyLock<std::sync::Arc<Redactor>> = LazyLock::new(|| {
        let values = [SECRET, "4Tz8WqLm2RtYb7Kp", "Zpassword-of-four"].map(Secret::new);
        std::sync::Arc::new(Redactor::new(values).expect("a redactor"))
    });
    let text = String::from_utf8_lossy(bytes);
    let middle = text
        .char_indices()
        .nth(text.chars().count() / 2)
        .map_or(0, |(at, _)| at);
    let (before, after) = text.split_at(middle);
    let whole = format!("{before}{SECRET}{after}");
    assert!(!REDACTOR.redact(&whole).contains(SECRET));
    // The first byte says how long a piece is.
    let size = usize::from(bytes.first().copied().unwrap_or(1)).clamp(1, 64);
    let letters: Vec<char> = whole.chars().collect();
    let mut stream = Stream::new(std::sync::Arc::clone(&REDACTOR));
    let mut shown = String::new();
    for piece in letters.chunks(size) {
        shown += &stream.push(&piece.iter().collect::<String>());
    }
    shown += &stream.finish();
    assert!(!shown.contains(SECRET));
}

/// The resolver of paths: whatever it finds lies inside.
pub fn path(bytes: &[u8]) {
    static WORLD: LazyLock<(TempDir, PathBuf, Roots)> = LazyLock::new(world);
    let (_, inside, roots) = &*WORLD;
    let text = String::from_utf8_lossy(bytes);
    for access in [Access::Read, Access::List, Access::Write] {
        let fact = roots.fact("path", &text, access);
        if let Ok(found) = fact.resolution {
            assert!(
                found.real.starts_with(inside),
                "{text:?} leads to {:?}",
                found.real
            );
        }
        if let Ok(place) = roots.resolve(&text) {
            assert!(place.resolved().real.starts_with(inside), "{text:?}");
        }
    }
}

/// A folder with links in every direction, and something beside it.
fn world() -> (TempDir, PathBuf, Roots) {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().expect("a folder");
    let real = folder.path().canonicalize().expect("its real path");
    let (inside, beside) = (real.join("in"), real.join("beside"));
    std::fs::create_dir_all(inside.join("a/b")).expect("a folder");
    std::fs::create_dir_all(&beside).expect("a folder");
    for (target, link) in [
        ("a/b", "deep"),
        ("../../beside", "a/b/up"),
        ("..", "a/back"),
        ("loop", "loop"),
        ("/", "root"),
        ("../in", "round"),
    ] {
        symlink(target, inside.join(link)).expect("a link");
    }
    symlink(&beside, inside.join("out")).expect("a link");
    let roots = Roots::open(std::slice::from_ref(&inside)).expect("roots");
    (folder, inside, roots)
}
