//! The one way out to the terminal: text and JSON to standard output, problems to standard error.

use std::io::{self, Write};

use serde::Serialize;

/// Where a command's answer goes.
pub type Out<'w> = &'w mut dyn Write;

/// Prints a value as JSON, indented.
pub fn json(out: Out<'_>, value: &impl Serialize) -> io::Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    writeln!(out)
}

/// Prints columns, each as wide as its widest cell.
pub fn columns(out: Out<'_>, head: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let width = |column: usize| {
        rows.iter()
            .filter_map(|row| row.get(column))
            .map(|cell| cell.chars().count())
            .chain(head.get(column).map(|cell| cell.chars().count()))
            .max()
            .unwrap_or_default()
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    let mut line = |cells: &mut dyn Iterator<Item = &str>| {
        let mut text = String::new();
        for (cell, width) in cells.zip(&widths) {
            text.push_str(cell);
            let spaces = width.saturating_sub(cell.chars().count()) + 2;
            text.extend(std::iter::repeat_n(' ', spaces));
        }
        writeln!(out, "{}", text.trim_end())
    };
    line(&mut head.iter().copied())?;
    for row in rows {
        line(&mut row.iter().map(String::as_str))?;
    }
    Ok(())
}

/// A text that came from elsewhere, safe to show in a terminal: control characters become `\u{…}`.
pub fn plain(text: &str) -> String {
    text.chars()
        .flat_map(|letter| {
            let (escaped, itself) = if letter.is_control() {
                (Some(letter.escape_unicode()), None)
            } else {
                (None, Some(letter))
            };
            escaped.into_iter().flatten().chain(itself)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let mut text = Vec::new();
        columns(
            &mut text,
            &["ID", "NAME"],
            &[vec!["k1".into(), "ann".into()], vec!["key22".into(), "é".into()]],
        )
        .unwrap();
        assert_eq!(
            String::from_utf8(text).unwrap(),
            "ID     NAME\nk1     ann\nkey22  é\n"
        );
    }

    #[test]
    fn nothing_moves_the_cursor() {
        assert_eq!(plain("a\u{1b}[2Jb\n"), "a\\u{1b}[2Jb\\u{a}");
    }
}
