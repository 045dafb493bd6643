//! How much a document's word counts, and what follows from it.
//!
//! Authority belongs to the document: by the operator's table, else by its front matter, and never by anything else its
//! text says. It changes the order of passages in two ways, both small and both told ([`Order`]): a *nudge* that is a
//! bounded part of the range of scores, and the *pair rule*: a more trusted passage moves just above a less trusted one,
//! where both are about the same thing and the trusted one answers the question by itself, too.

mod order;

pub use order::{Candidate, Move, NUDGE_MAX, Order, PAIR_TOP, SCORE_SHARE_MIN};

use tidegate_core::{
    glob::{Glob, GlobError},
    knowledge::Authority,
};

/// The name of the field in front matter.
pub const FIELD: &str = "authority";

/// The operator's table: which documents have which authority.
#[derive(Debug, Clone, Default)]
pub struct Table {
    rows: Vec<(Glob, Authority)>,
    recipe: String,
}

/// Why a row of the table cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the pattern `{pattern}` in the table of authorities: {problem}")]
pub struct InvalidRow {
    /// The pattern.
    pub pattern: String,
    /// What is wrong with it.
    pub problem: GlobError,
}

impl Table {
    /// Reads a table. Its first row that matches a path decides.
    pub fn new<'a>(rows: impl IntoIterator<Item = (&'a str, Authority)>) -> Result<Self, InvalidRow> {
        let mut table = Self::default();
        for (pattern, authority) in rows {
            let glob = Glob::new(pattern).map_err(|problem| InvalidRow {
                pattern: pattern.to_owned(),
                problem,
            })?;
            table.rows.push((glob, authority));
            table.recipe.push_str(pattern);
            table.recipe.push('=');
            table.recipe.push_str(authority.name());
            table.recipe.push('\n');
        }
        Ok(table)
    }

    /// The authority of the document at a path inside the knowledge bank, whose front matter says `declared`. The table
    /// goes before the document, since a file that was sent by somebody may say anything of itself; a name that is no
    /// authority counts as nothing said.
    pub fn of(&self, path: &str, declared: Option<&str>) -> Authority {
        let row = self.rows.iter().find(|(glob, _)| glob.matches(path));
        row.map(|(_, authority)| *authority)
            .or_else(|| Authority::named(&declared?.trim().to_ascii_lowercase()))
            .unwrap_or_default()
    }

    /// A text that differs when the table does.
    pub fn recipe(&self) -> &str {
        &self.recipe
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_row_that_matches_decides_then_the_document() {
        let table = Table::new([
            ("law/comments/**", Authority::Interpretation),
            ("law/**", Authority::Primary),
            ("inbox/**", Authority::Secondary),
        ])
        .unwrap();
        let cases = [
            ("law/12.md", None, Authority::Primary),
            ("law/comments/12.md", None, Authority::Interpretation),
            ("law/12.md", Some("secondary"), Authority::Primary),
            ("inbox/sent.md", Some("primary"), Authority::Secondary),
            ("notes/a.md", Some(" Primary "), Authority::Primary),
            ("notes/a.md", Some("interpretation"), Authority::Interpretation),
            ("notes/a.md", Some("the best"), Authority::Secondary),
            ("notes/a.md", None, Authority::Secondary),
        ];
        for (path, declared, expected) in cases {
            assert_eq!(table.of(path, declared), expected, "{path} {declared:?}");
        }
    }

    #[test]
    fn a_row_that_cannot_be_read_is_named() {
        let error = Table::new([("law/[", Authority::Primary)]).unwrap_err();
        assert!(error.to_string().contains("law/["), "{error}");
    }

    #[test]
    fn the_recipe_follows_the_table() {
        let one = Table::new([("a/**", Authority::Primary)]).unwrap();
        let other = Table::new([("a/**", Authority::Secondary)]).unwrap();
        assert_ne!(one.recipe(), other.recipe());
        assert_eq!(Table::default().recipe(), "");
    }
}
