//! The setting that was probably meant by a name that no setting has. No guess is better than a bad one: a name
//! that differs in more than every third letter was not mistyped.

use super::{
    table::{self, SETTINGS},
    tree::join,
};

/// The most letters that may be wrong.
fn distance_max(name: &str) -> usize {
    (name.chars().count() / 3).max(1)
}

/// The key that is nearest to the unknown one, under the names the operator gave; `None` where none is near.
pub(super) fn nearest(key: &str) -> Option<String> {
    let typed = table::segments(key);
    let (name, section) = typed.split_last()?;
    let rows = SETTINGS.iter().map(|setting| setting.key);
    let sections = SETTINGS.iter().map(table::Setting::section);
    rows.chain(sections)
        .filter(|candidate| !candidate.is_empty())
        .filter_map(|candidate| {
            let row = table::segments(candidate);
            let (row_name, row_section) = row.split_last()?;
            // A name of the operator's own cannot be misspelt.
            let is_own = row_name == "*" || row_name == "[]";
            let wrong_name = strsim::damerau_levenshtein(row_name, name);
            if is_own || wrong_name > distance_max(name) {
                return None;
            }
            let wrong_section = distance_of_sections(row_section, section);
            // In another section only the very name is meant, or one whose section was mistyped as well.
            let fits =
                wrong_section == 0 || wrong_name == 0 || wrong_name + wrong_section <= distance_max(key);
            fits.then(|| {
                (
                    wrong_section.min(1),
                    wrong_name,
                    wrong_section,
                    named(&row, &typed),
                )
            })
        })
        .min()
        .map(|(.., found)| found)
}

/// How many letters two sections differ in; names of the operator's own fit whatever they are.
fn distance_of_sections(row: &[String], typed: &[String]) -> usize {
    let text = |parts: &[String]| parts.join(".");
    if row.len() != typed.len() {
        return strsim::damerau_levenshtein(&text(row), &text(typed)).max(1);
    }
    row.iter()
        .zip(typed)
        .filter(|(row, _)| *row != "*")
        .map(|(row, typed)| strsim::damerau_levenshtein(row, typed))
        .sum()
}

/// The row's key with the operator's own names where the row has `*`.
fn named(row: &[String], typed: &[String]) -> String {
    row.iter().enumerate().fold(String::new(), |key, (at, part)| {
        if part == "[]" {
            return key + "[]";
        }
        let own = typed.get(at).filter(|_| part == "*" && row.len() == typed.len());
        join(
            &key,
            own.map_or(if part == "*" { "NAME" } else { part }, String::as_str),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_mistyped_is_found_and_what_was_not_is_left_alone() {
        for (typed, meant) in [
            ("engine.round_max", Some("engine.rounds_max")),
            ("rounds_max", Some("engine.rounds_max")),
            ("datadir", Some("data_dir")),
            ("sever", Some("server")),
            ("server.bnid", Some("server.bind")),
            ("hooks[3].whenn", Some("hooks[].when")),
            (
                "models.providers.mine.native_tool",
                Some("models.providers.mine.native_tools"),
            ),
            (
                "models.providers.\"a.b\".base_ulr",
                Some("models.providers.\"a.b\".base_url"),
            ),
            (
                "models.provider.mine.base_url",
                Some("models.providers.mine.base_url"),
            ),
            ("models.aliases.fast.modell", Some("models.aliases.fast.model")),
            ("tidegate.toml", None),
            ("bogus", None),
            ("server.bogus", None),
            ("models.providers.x.bogus", None),
            ("engine.nonsense_altogether", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(typed).as_deref(), meant, "{typed}");
        }
    }
}
