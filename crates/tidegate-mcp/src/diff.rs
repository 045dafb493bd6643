//! What changed between two texts, line by line, for a person who has to approve it.

use crate::text;

/// The most lines of each text that are compared; of longer ones the rest counts as changed as a whole.
const LINES_MAX: usize = 400;
/// How many lines that are the same stand around a change.
const CONTEXT: usize = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    Same,
    Gone,
    New,
}

/// The lines of both, `-` before what is gone and `+` before what is new.
pub(crate) fn diff(old: &str, new: &str) -> String {
    let (old, old_rest) = split(old);
    let (new, new_rest) = split(new);
    let mut lines = compare(&old, &new);
    if old_rest != new_rest {
        lines.extend(old_rest.iter().map(|line| (Change::Gone, *line)));
        lines.extend(new_rest.iter().map(|line| (Change::New, *line)));
    }
    let is_near = |index: usize| {
        let from = index.saturating_sub(CONTEXT);
        lines
            .iter()
            .skip(from)
            .take(index - from + CONTEXT + 1)
            .any(|(change, _)| *change != Change::Same)
    };
    let mut out = String::new();
    let mut is_gap = false;
    for (index, (change, line)) in lines.iter().enumerate() {
        let sign = match change {
            Change::Same if !is_near(index) => {
                is_gap = true;
                continue;
            }
            Change::Same => ' ',
            Change::Gone => '-',
            Change::New => '+',
        };
        if std::mem::take(&mut is_gap) && !out.is_empty() {
            out.push_str("  …\n");
        }
        text::add(&mut out, format_args!("{sign} {line}\n"));
    }
    out
}

fn split(text: &str) -> (Vec<&str>, Vec<&str>) {
    let mut lines: Vec<&str> = text.lines().collect();
    let rest = lines.split_off(lines.len().min(LINES_MAX));
    (lines, rest)
}

/// By the longest common subsequence.
fn compare<'t>(old: &[&'t str], new: &[&'t str]) -> Vec<(Change, &'t str)> {
    let width = new.len() + 1;
    let mut lengths = vec![0_u32; (old.len() + 1) * width];
    let at =
        |lengths: &[u32], row: usize, column: usize| lengths.get(row * width + column).copied().unwrap_or(0);
    for (row, before) in old.iter().enumerate().rev() {
        for (column, after) in new.iter().enumerate().rev() {
            let length = if before == after {
                at(&lengths, row + 1, column + 1) + 1
            } else {
                at(&lengths, row + 1, column).max(at(&lengths, row, column + 1))
            };
            if let Some(cell) = lengths.get_mut(row * width + column) {
                *cell = length;
            }
        }
    }
    let (mut row, mut column) = (0, 0);
    let mut lines = Vec::with_capacity(old.len() + new.len());
    loop {
        match (old.get(row), new.get(column)) {
            (Some(before), Some(after)) if before == after => {
                lines.push((Change::Same, *before));
                row += 1;
                column += 1;
            }
            (Some(before), after)
                if after.is_none() || at(&lengths, row + 1, column) >= at(&lengths, row, column + 1) =>
            {
                lines.push((Change::Gone, *before));
                row += 1;
            }
            (_, Some(after)) => {
                lines.push((Change::New, *after));
                column += 1;
            }
            (_, None) => return lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn shows_what_changed_with_a_little_around_it() {
        let old = "1\n2\n3\n4\n5\n6\n7\n8\n9";
        let new = "1\nzwei\n3\n4\n5\n6\n7\n8\n9\n10";
        assert_eq!(
            diff(old, new),
            "  1\n- 2\n+ zwei\n  3\n  4\n  …\n  8\n  9\n+ 10\n"
        );
        assert_eq!(diff(old, old), "");
    }

    proptest! {
        #[test]
        fn both_texts_are_in_it(old in "[ab\n]{0,30}", new in "[ab\n]{0,30}") {
            let (before, _) = split(&old);
            let (after, _) = split(&new);
            let lines = compare(&before, &after);
            let side = |skip: Change| -> Vec<&str> {
                lines.iter().filter(|(change, _)| *change != skip).map(|(_, line)| *line).collect()
            };
            prop_assert_eq!(side(Change::New), before);
            prop_assert_eq!(side(Change::Gone), after);
        }
    }
}
