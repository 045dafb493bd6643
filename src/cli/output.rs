//! The one way out to the terminal: text and JSON to standard output, problems to standard error.

use std::io::{self, Write};

use serde::Serialize;

use crate::keys::bounds::is_deceptive;

/// Where a command's answer goes.
pub type Out<'w> = &'w mut dyn Write;

/// Prints a value as JSON, indented. Characters that would deceive a reader are escaped; in JSON they can only
/// stand in texts, where an escape means the same.
pub fn json(out: Out<'_>, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_string_pretty(value)?;
    let mut shown = String::with_capacity(text.len());
    for letter in text.chars() {
        if is_deceptive(letter) && letter != '\n' {
            let mut units = [0; 2];
            shown.extend(
                letter
                    .encode_utf16(&mut units)
                    .iter()
                    .map(|unit| format!("\\u{unit:04x}")),
            );
        } else {
            shown.push(letter);
        }
    }
    writeln!(out, "{shown}")
}

/// Prints columns, each as wide as its widest cell. Cells are shown as [`plain`] makes them.
pub fn columns(out: Out<'_>, head: &[&str], rows: &[Vec<String>]) -> io::Result<()> {
    let rows: Vec<Vec<String>> = rows
        .iter()
        .map(|row| row.iter().map(|cell| plain(cell)).collect())
        .collect();
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
    for row in &rows {
        line(&mut row.iter().map(String::as_str))?;
    }
    Ok(())
}

/// A text that came from elsewhere, safe to show in a terminal: characters that control it, show nothing or turn
/// the direction of what is shown become `\u{…}`.
pub fn plain(text: &str) -> String {
    text.chars()
        .flat_map(|letter| {
            let (escaped, itself) = if is_deceptive(letter) {
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
        assert_eq!(plain("\u{202e}nna\u{200b}"), "\\u{202e}nna\\u{200b}");
        let mut text = Vec::new();
        columns(&mut text, &["A"], &[vec!["x\u{2066}".into()]]).unwrap();
        assert_eq!(String::from_utf8(text).unwrap(), "A\nx\\u{2066}\n");
    }

    #[test]
    fn json_shows_what_it_holds_and_means_the_same() {
        let value = serde_json::json!({"name": "\u{202e}nna\u{e0041}\u{9b}\n", "é": ["🙂"]});
        let mut text = Vec::new();
        json(&mut text, &value).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(text.contains(r#""\u202enna\udb40\udc41\u009b\n""#), "{text}");
        assert!(text.contains('é') && text.contains('🙂'), "{text}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap(), value);
    }
}
