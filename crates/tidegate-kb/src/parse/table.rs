//! Tables of separated values (RFC 4180, and tabs): each row as `header: value` pairs on a line, so that a row found
//! by itself can be understood.

use tidegate_core::knowledge::Format;

use super::{Limits, Parsed, Problem, builder::Builder};

/// The separators that are tried.
const SEPARATORS: [char; 4] = [',', '\t', ';', '|'];

/// How many lines are looked at to find the separator.
const SAMPLE_LINES: usize = 10;

/// The most cells that a row keeps.
const CELLS_MAX: usize = 2000;

/// Reads a table.
pub(super) fn read(text: &str, limits: &Limits) -> Result<Parsed, Problem> {
    let body = text.trim_start_matches('\u{feff}');
    let mut rows = Rows {
        rest: body,
        separator: separator(body),
    };
    let mut sheet = Sheet::new(Builder::new(limits));
    while let Some(row) = rows.next_row() {
        sheet.row(&row)?;
    }
    sheet.finish()?.finish(Format::Csv)
}

/// Turns rows into lines, the first row being the headers.
#[derive(Debug)]
pub(super) struct Sheet<'l> {
    builder: Builder<'l>,
    headers: Option<Vec<String>>,
    lines: String,
    rows: usize,
}

impl<'l> Sheet<'l> {
    /// A sheet whose lines go to this document.
    pub(super) fn new(builder: Builder<'l>) -> Self {
        Self {
            builder,
            headers: None,
            lines: String::new(),
            rows: 0,
        }
    }

    /// The next row. Rows without anything in them are passed over.
    pub(super) fn row(&mut self, cells: &[String]) -> Result<(), Problem> {
        if cells.iter().all(|cell| cell.trim().is_empty()) {
            return Ok(());
        }
        self.rows += 1;
        let Some(headers) = &self.headers else {
            self.headers = Some(cells.iter().map(|cell| one_line(cell)).collect());
            return Ok(());
        };
        let mut is_first = true;
        for (index, cell) in cells.iter().enumerate() {
            let cell = one_line(cell);
            if cell.is_empty() {
                continue;
            }
            if !is_first {
                self.lines.push_str("; ");
            }
            is_first = false;
            if let Some(header) = headers.get(index).filter(|header| !header.is_empty()) {
                self.lines.push_str(header);
                self.lines.push_str(": ");
            }
            self.lines.push_str(&cell);
        }
        self.lines.push('\n');
        if self.lines.len() > self.builder.room() {
            return Err(self.builder.too_much());
        }
        Ok(())
    }

    /// Everything is in. A sheet of one row is that row.
    pub(super) fn finish(mut self) -> Result<Builder<'l>, Problem> {
        if let Some(headers) = self.headers.filter(|_| self.rows == 1) {
            self.builder.paragraph(&headers.join("; "))?;
        }
        self.builder.paragraph(&self.lines)?;
        Ok(self.builder)
    }
}

fn one_line(cell: &str) -> String {
    cell.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The separator that the first lines have the most of, outside of quotes.
fn separator(text: &str) -> char {
    let mut is_quoted = false;
    let mut counts = [0_usize; SEPARATORS.len()];
    let mut lines = 0;
    for character in text.chars() {
        match character {
            '"' => is_quoted = !is_quoted,
            '\n' if !is_quoted => {
                lines += 1;
                if lines == SAMPLE_LINES {
                    break;
                }
            }
            other => {
                let known = SEPARATORS
                    .iter()
                    .position(|separator| !is_quoted && *separator == other);
                if let Some(count) = known.and_then(|at| counts.get_mut(at)) {
                    *count += 1;
                }
            }
        }
    }
    let best = SEPARATORS
        .into_iter()
        .zip(counts)
        .rev()
        .max_by_key(|(_, count)| *count);
    best.map_or(',', |(separator, _)| separator)
}

struct Rows<'t> {
    rest: &'t str,
    separator: char,
}

impl Rows<'_> {
    /// The next row. A quote inside a cell is two of them; a quote that is never closed reaches to the end of its
    /// line only where the file would end otherwise.
    fn next_row(&mut self) -> Option<Vec<String>> {
        if self.rest.is_empty() {
            return None;
        }
        let mut cells = Vec::new();
        let mut cell = String::new();
        let mut is_quoted = false;
        let mut characters = self.rest.char_indices().peekable();
        let mut end = self.rest.len();
        while let Some((at, character)) = characters.next() {
            match character {
                '"' if is_quoted => match characters.next_if(|(_, next)| *next == '"') {
                    Some(_) => cell.push('"'),
                    None => is_quoted = false,
                },
                '"' if cell.trim().is_empty() => {
                    cell.clear();
                    is_quoted = true;
                }
                '\n' if !is_quoted => {
                    end = at + 1;
                    break;
                }
                other if other == self.separator && !is_quoted => {
                    let done = std::mem::take(&mut cell);
                    if cells.len() < CELLS_MAX {
                        cells.push(done);
                    }
                }
                other => cell.push(other),
            }
        }
        cells.push(cell);
        self.rest = self.rest.get(end..).unwrap_or_default();
        Some(cells)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(table: &str) -> String {
        read(table, &Limits::default()).expect("a document").text
    }

    #[test]
    fn rows_carry_their_headers() {
        for (table, expected) in [
            ("name,age\nAnn,3\nBob,\n", "name: Ann; age: 3\nname: Bob"),
            (
                "name;note\r\nAnn;\"a;b \"\"c\"\"\r\nd\"\r\n",
                "name: Ann; note: a;b \"c\" d",
            ),
            ("a\tb\n1\t2\n", "a: 1; b: 2"),
            ("a,b\n1,2,3\n", "a: 1; b: 2; 3"),
            ("\u{feff}a|b\n1|2", "a: 1; b: 2"),
            ("only,headers", "only; headers"),
            ("a,b\n\"never closed,2\n3,4\n", "a: never closed,2 3,4"),
            ("a,b\n5\" pipe,2\n", "a: 5\" pipe; b: 2"),
        ] {
            assert_eq!(text(table), expected, "{table:?}");
        }
    }

    #[test]
    fn long_headers_do_not_multiply_without_bound() {
        let table = format!("{},b\n{}", "h".repeat(100_000), "1,2\n".repeat(1000));
        let outcome = read(&table, &Limits::default());
        assert!(matches!(outcome, Err(Problem::TooMuch { .. })), "{outcome:?}");
    }
}
