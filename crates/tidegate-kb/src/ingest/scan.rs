//! What is in the folder against what is known of it.

use std::collections::{BTreeMap, HashMap};

use tidegate_core::port::{Failure, KnownFile};
use tidegate_io::files::{Leads, Node, NodeKind, ReadFault, Roots};
use unicode_normalization::UnicodeNormalization as _;

/// The time of change of a file that was read in the moment it was changed: no file's, so that the next scan compares
/// the bytes.
pub(super) const NO_MARK_NS: i64 = i64::MIN;

/// What is to be done.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Difference {
    /// Files to look into, with what is known of them.
    pub(super) look: Vec<(Node, Option<KnownFile>)>,
    /// What cannot be a document, and why.
    pub(super) refused: Vec<(Node, Failure)>,
    /// Known files that are not there.
    pub(super) vanished: Vec<KnownFile>,
}

/// A recipe that says that a file was refused, and why: it is the same until the reason is another one.
pub(super) fn refusal(failure: &Failure) -> String {
    format!("refused: {}", failure.code)
}

/// Compares. `is_current` says whether a known file was read as it would be read today.
pub(super) fn difference(
    nodes: Vec<Node>,
    known: Vec<KnownFile>,
    leads: &dyn Fn(&str) -> Leads,
    is_current: &dyn Fn(&KnownFile) -> bool,
) -> Difference {
    let mut known: BTreeMap<String, KnownFile> =
        known.into_iter().map(|file| (file.path.clone(), file)).collect();
    let mut nodes = nodes;
    nodes.sort_unstable_by(|one, other| one.path.cmp(&other.path));
    let mut names: HashMap<String, String> = HashMap::with_capacity(nodes.len());
    let mut closed: Vec<String> = Vec::new();
    let mut difference = Difference::default();
    for node in nodes {
        if node.kind == NodeKind::Link && leads(&node.path) == Leads::Inside {
            // What it leads to is indexed under its own name.
            continue;
        }
        let before = known.remove(&node.path);
        if node.kind == NodeKind::ClosedFolder {
            closed.push(format!("{}/", node.path));
        }
        let failure = refuse(&node, leads).or_else(|| {
            let first = names.entry(fold(&node.path)).or_insert_with(|| node.path.clone());
            (*first != node.path).then(|| collision(first))
        });
        match failure {
            Some(failure) => {
                let is_known = before.is_some_and(|before| before.recipe == refusal(&failure));
                if !is_known {
                    difference.refused.push((node, failure));
                }
            }
            None if before
                .as_ref()
                .is_some_and(|before| is_same(&node, before) && is_current(before)) => {}
            None => difference.look.push((node, before)),
        }
    }
    // What is in a folder that cannot be opened may well be there.
    difference.vanished = known
        .into_values()
        .filter(|file| !closed.iter().any(|folder| file.path.starts_with(folder)))
        .collect();
    difference
}

fn is_same(node: &Node, known: &KnownFile) -> bool {
    (node.bytes, node.modified_ns) == (known.mark.bytes, known.mark.modified_ns)
}

/// Whether a file that is looked at again only to be sure was read, or refused, as it is.
pub(super) fn is_done(node: &Node, known: &KnownFile) -> bool {
    let is_unmarked = known.mark.modified_ns == NO_MARK_NS && node.bytes == known.mark.bytes;
    is_unmarked || (known.failed && is_same(node, known))
}

/// Names that people, or other file systems, take for the same are equal after this.
pub(super) fn fold(path: &str) -> String {
    if path.is_ascii() {
        path.to_ascii_lowercase()
    } else {
        path.nfc().flat_map(char::to_lowercase).collect()
    }
}

fn failure(code: &str, reason: impl Into<String>, hint: &str) -> Failure {
    Failure {
        code: code.to_owned(),
        reason: reason.into(),
        hint: hint.to_owned(),
    }
}

fn collision(first: &str) -> Failure {
    failure(
        "name_collision",
        format!("its name differs from `{first}` by case or by the form of its accents only"),
        "rename one of them",
    )
}

/// A second name of a file that nobody may read here. It is never opened.
pub(super) fn twin() -> Failure {
    failure(
        "hard_link",
        ReadFault::Twin.to_string(),
        "take the link out of the knowledge bank; where its text is for everybody, put a copy of it in its place",
    )
}

fn refuse(node: &Node, leads: &dyn Fn(&str) -> Leads) -> Option<Failure> {
    match node.kind {
        NodeKind::File => None,
        NodeKind::Link => Some(match leads(&node.path) {
            Leads::Outside | Leads::Inside => failure(
                "link_outside",
                "the link leads out of the knowledge bank",
                "copy what it leads to into the knowledge bank",
            ),
            Leads::Nowhere => failure(
                "link_broken",
                "the link leads nowhere",
                "remove it, or put back what it led to",
            ),
        }),
        NodeKind::Twin => Some(twin()),
        NodeKind::Special => Some(failure(
            "not_a_file",
            "it is a pipe, socket or device",
            "take it out of the knowledge bank",
        )),
        NodeKind::ClosedFolder => Some(failure(
            "folder_unreadable",
            "the folder cannot be opened by this user, or lies too deep",
            "make it readable for the user that runs the server",
        )),
        NodeKind::Nameless => Some(failure(
            "name_not_text",
            "its name is not UTF-8 text",
            "rename it",
        )),
    }
}

/// Asks the disk where links lead.
pub(super) fn leads(roots: &Roots) -> impl Fn(&str) -> Leads + '_ {
    |path| roots.leads(path)
}

#[cfg(test)]
mod tests {
    use tidegate_core::port::FileMark;

    use super::*;

    fn node(path: &str, kind: NodeKind) -> Node {
        Node {
            path: path.to_owned(),
            kind,
            bytes: 1,
            modified_ns: 1,
        }
    }

    fn known(path: &str, recipe: &str) -> KnownFile {
        KnownFile {
            path: path.to_owned(),
            mark: FileMark {
                bytes: 1,
                modified_ns: 1,
                sha256: [0; 32],
            },
            recipe: recipe.to_owned(),
            failed: false,
        }
    }

    fn compare(nodes: Vec<Node>, known: Vec<KnownFile>) -> (Vec<String>, Vec<(String, String)>, Vec<String>) {
        let leads = |path: &str| match path {
            "in" => Leads::Inside,
            "out" => Leads::Outside,
            _ => Leads::Nowhere,
        };
        let difference = difference(nodes, known, &leads, &|known| known.recipe == "now");
        (
            difference.look.into_iter().map(|(node, _)| node.path).collect(),
            difference
                .refused
                .into_iter()
                .map(|(node, failure)| (node.path, failure.code))
                .collect(),
            difference.vanished.into_iter().map(|known| known.path).collect(),
        )
    }

    fn owned(paths: &[&str]) -> Vec<String> {
        paths.iter().map(|path| (*path).to_owned()).collect()
    }

    #[test]
    fn only_what_changed_is_looked_into() {
        let mut larger = node("larger", NodeKind::File);
        larger.bytes = 2;
        let mut newer = node("newer", NodeKind::File);
        newer.modified_ns = 0;
        let nodes = vec![
            node("same", NodeKind::File),
            node("stale", NodeKind::File),
            node("new", NodeKind::File),
            larger,
            newer,
        ];
        let before = ["same", "larger", "newer", "gone"].map(|path| known(path, "now"));
        let before = before.into_iter().chain([known("stale", "then")]).collect();
        let (look, refused, vanished) = compare(nodes, before);
        assert_eq!(look, ["larger", "new", "newer", "stale"]);
        assert_eq!((refused, vanished), (vec![], owned(&["gone"])));
    }

    #[test]
    fn what_cannot_be_a_document_says_why_once() {
        let nodes = || {
            vec![
                node("in", NodeKind::Link),
                node("out", NodeKind::Link),
                node("dangling", NodeKind::Link),
                node("pipe", NodeKind::Special),
                node("odd\u{fffd}", NodeKind::Nameless),
                node("locked", NodeKind::ClosedFolder),
            ]
        };
        let before = vec![
            known("in", "now"),
            known("locked/kept.md", "now"),
            known("locked2/gone.md", "now"),
        ];
        let (look, refused, vanished) = compare(nodes(), before);
        assert_eq!(look, owned(&[]));
        let codes = [
            ("dangling", "link_broken"),
            ("locked", "folder_unreadable"),
            ("odd\u{fffd}", "name_not_text"),
            ("out", "link_outside"),
            ("pipe", "not_a_file"),
        ];
        let codes = codes.map(|(path, code)| (path.to_owned(), code.to_owned()));
        assert_eq!(refused, codes);
        assert_eq!(vanished, ["in", "locked2/gone.md"]);
        let before = codes
            .iter()
            .map(|(path, code)| known(path, &format!("refused: {code}")))
            .collect();
        assert_eq!(compare(nodes(), before), (vec![], vec![], vec![]));
        let healed = compare(
            vec![node("out", NodeKind::File)],
            vec![known("out", "refused: link_outside")],
        );
        assert_eq!(healed.0, ["out"]);
    }

    #[test]
    fn what_was_read_the_moment_it_was_written_waits_for_nothing() {
        let file = node("young", NodeKind::File);
        for failed in [false, true] {
            let mut young = known("young", "now");
            young.failed = failed;
            young.mark.modified_ns = NO_MARK_NS;
            assert!(is_done(&file, &young), "failed: {failed}");
            young.mark.bytes = 2;
            assert!(!is_done(&file, &young), "failed: {failed}");
        }
        let mut refused = known("refused", "then");
        assert!(!is_done(&node("refused", NodeKind::File), &refused));
        refused.failed = true;
        assert!(is_done(&node("refused", NodeKind::File), &refused));
    }

    #[test]
    fn of_names_that_look_alike_the_first_counts() {
        let nodes = ["A.md", "a.md", "gr\u{fc}n.md", "gru\u{308}n.md", "x/a.md", "b.md"];
        let (look, refused, _) = compare(nodes.map(|path| node(path, NodeKind::File)).to_vec(), vec![]);
        assert_eq!(look, ["A.md", "b.md", "gru\u{308}n.md", "x/a.md"]);
        let collisions: Vec<&str> = refused.iter().map(|(path, _)| path.as_str()).collect();
        assert_eq!(collisions, ["a.md", "gr\u{fc}n.md"]);
        assert!(refused.iter().all(|(_, code)| code == "name_collision"));
    }
}
