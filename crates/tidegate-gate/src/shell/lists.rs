//! The operator's own lists of commands.

use super::{
    floor::{Floor, Walk},
    shape::{ONE, RUN, Shape, UNKNOWN, base},
};

/// The lists, as patterns in which `*` is any text and `?` one letter.
#[derive(Debug, Clone, Default)]
pub(super) struct Lists {
    pub(super) deny: Vec<String>,
    /// `None`: no list is in force.
    pub(super) allow: Option<Vec<String>>,
    /// Whether the machine is a container that is thrown away.
    pub(super) is_disposable: bool,
}

impl Walk<'_> {
    /// Compares one command with the lists. Every command of a line is compared, in payloads too.
    pub(super) fn listed(&mut self, words: &[Shape]) {
        let lists = self.lists();
        if lists.deny.is_empty() && lists.allow.is_none() {
            return;
        }
        let whole = words
            .iter()
            .map(|word| word.text.as_str())
            .collect::<Vec<_>>()
            .join(" ");
        let mut bare = words.iter().map(|word| word.text.as_str());
        let bare = std::iter::once(base(bare.next().unwrap_or_default()))
            .chain(bare)
            .collect::<Vec<_>>()
            .join(" ");
        let denied = lists
            .deny
            .iter()
            .find(|pattern| {
                let pattern = pattern.to_lowercase();
                matches(&pattern, &whole.to_lowercase()) || matches(&pattern, &bare.to_lowercase())
            })
            .cloned();
        let is_unlisted = lists
            .allow
            .as_ref()
            .is_some_and(|allow| !allow.iter().any(|pattern| matches(pattern, &whole)));
        if let Some(pattern) = denied {
            self.refuse_listed(
                Floor::DenyCommands,
                "denied_command",
                format!("the operator's list deny_commands forbids {pattern:?}"),
            );
        }
        if is_unlisted {
            self.refuse_listed(
                Floor::AllowCommands,
                "unlisted_command",
                "a command of the line is not on the operator's list allow_commands".to_owned(),
            );
        }
    }
}

/// Whether the text, which may hold marks, could match the pattern.
fn matches(pattern: &str, text: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let text: Vec<char> = text.chars().collect();
    let is_any = |letter: char| matches!(letter, RUN | UNKNOWN);
    // One row per letter of the pattern: which beginnings of the text it reaches.
    let mut reached = vec![false; text.len() + 1];
    let spread = |reached: &mut Vec<bool>| {
        for (at, letter) in text.iter().enumerate() {
            if is_any(*letter)
                && reached.get(at).copied().unwrap_or(false)
                && let Some(next) = reached.get_mut(at + 1)
            {
                *next = true;
            }
        }
    };
    if let Some(start) = reached.first_mut() {
        *start = true;
    }
    spread(&mut reached);
    for wanted in pattern {
        let mut next = vec![false; text.len() + 1];
        for (at, is_reached) in reached.iter().enumerate() {
            if !is_reached {
                continue;
            }
            if wanted == '*' {
                for slot in next.iter_mut().skip(at) {
                    *slot = true;
                }
                break;
            }
            match text.get(at) {
                Some(letter) if is_any(*letter) => {
                    // The unknown part may end here, or go on.
                    for slot in next.iter_mut().skip(at).take(2) {
                        *slot = true;
                    }
                }
                Some(letter) if wanted == '?' || *letter == ONE || *letter == wanted => {
                    if let Some(slot) = next.get_mut(at + 1) {
                        *slot = true;
                    }
                }
                Some(_) | None => {}
            }
        }
        spread(&mut next);
        reached = next;
    }
    reached.last().copied().unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pattern_holds_for_the_whole_text() {
        for (pattern, text) in [
            ("npm publish*", "npm publish --tag x"),
            ("*", ""),
            ("ls*", "ls -la"),
            ("a?c", "abc"),
            ("make *", "make build"),
        ] {
            assert!(matches(pattern, text), "{pattern} {text}");
        }
        assert!(!matches("make *", "./make build"));
        assert!(!matches("ls", "ls -la"));
        let unknown = format!("{UNKNOWN} publish");
        assert!(matches("npm publish*", &unknown));
        assert!(!matches("make", &unknown));
    }
}
