//! Puts values of `[routing]` into a configuration file, and leaves everything else in it as it was typed.

/// Why a file was left alone.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(super) enum Problem {
    /// It cannot be read as TOML.
    #[error("it is not TOML: {0}")]
    NotToml(String),
    /// The values stand in it in a way that a change of single lines does not reach.
    #[error("`[routing]` is not written as a section of its own in it")]
    OutOfReach,
}

/// The text with these keys of `[routing]`, each with its value in TOML.
pub(super) fn with_routing(text: &str, values: &[(&str, String)]) -> Result<String, Problem> {
    let parsed: toml::Table = text
        .parse()
        .map_err(|problem: toml::de::Error| Problem::NotToml(problem.message().to_owned()))?;
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let header = lines.iter().position(|line| heading(line) == Some("routing"));
    let begin = match header {
        Some(at) => at + 1,
        None if parsed.contains_key("routing") => return Err(Problem::OutOfReach),
        None => {
            if lines.last().is_some_and(|line| !line.trim().is_empty()) {
                lines.push(String::new());
            }
            lines.push("[routing]".to_owned());
            lines.len()
        }
    };
    for (key, value) in values.iter().rev() {
        let line = format!("{key} = {value}");
        let end = lines
            .iter()
            .skip(begin)
            .position(|line| heading(line).is_some())
            .map_or(lines.len(), |count| begin + count);
        let section = lines.iter().enumerate().take(end).skip(begin);
        let old = section
            .filter(|(_, line)| names(line, key))
            .map(|(at, _)| at)
            .next();
        match old.and_then(|at| lines.get_mut(at)) {
            Some(old) => *old = line,
            None => lines.insert(begin, line),
        }
    }
    let mut new = lines.join("\n");
    new.push('\n');
    // What a reader of the new text finds is what was asked for, and nothing else has changed.
    let mut wanted = parsed;
    let section = wanted
        .entry("routing")
        .or_insert_with(|| toml::Value::Table(toml::Table::new()));
    for (key, value) in values {
        let value = format!("v = {value}").parse::<toml::Table>().ok();
        let value = value.and_then(|mut table| table.remove("v"));
        let (Some(table), Some(value)) = (section.as_table_mut(), value) else {
            return Err(Problem::OutOfReach);
        };
        table.insert((*key).to_owned(), value);
    }
    match new.parse::<toml::Table>() {
        Ok(found) if found == wanted => Ok(new),
        Ok(_) | Err(_) => Err(Problem::OutOfReach),
    }
}

/// The name in a heading; a heading of lists counts, too.
fn heading(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let name = line.strip_prefix('[')?;
    let end = name.find(']')?;
    Some(name.get(..end)?.trim())
}

/// Whether a line sets a key.
fn names(line: &str, key: &str) -> bool {
    line.split_once('=').is_some_and(|(name, _)| name.trim() == key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(text: &str) -> Result<String, Problem> {
        with_routing(
            text,
            &[
                ("embedding_threshold", "0.5".into()),
                ("embedding_threshold_model", "\"m\"".into()),
            ],
        )
    }

    #[test]
    fn everything_else_stays_as_it_was_typed() {
        const NEW: &str = "embedding_threshold = 0.5\nembedding_threshold_model = \"m\"\n";
        for (before, after) in [
            ("", format!("[routing]\n{NEW}")),
            ("# mine\ndata_dir = 'x'\n", format!("# mine\ndata_dir = 'x'\n\n[routing]\n{NEW}")),
            (
                "[routing] # why\n\n  words_max = 30\n[logs]\nembedding_threshold = 1\n",
                format!("[routing] # why\n{NEW}\n  words_max = 30\n[logs]\nembedding_threshold = 1\n"),
            ),
            (
                "[a]\n[routing]\nembedding_threshold_model=\"old\"\n# and\n  embedding_threshold = 0.9 # high\n[[hooks]]\n",
                "[a]\n[routing]\nembedding_threshold_model = \"m\"\n# and\nembedding_threshold = 0.5\n[[hooks]]\n".to_owned(),
            ),
        ] {
            assert_eq!(put(before).as_deref(), Ok(after.as_str()), "{before}");
            assert_eq!(put(&after).as_ref(), Ok(&after));
        }
    }

    #[test]
    fn what_cannot_be_reached_is_left_alone() {
        assert_eq!(put("routing = { words_max = 3 }\n"), Err(Problem::OutOfReach));
        assert_eq!(put("routing.words_max = 3\n"), Err(Problem::OutOfReach));
        assert!(matches!(put("[routing\n"), Err(Problem::NotToml(_))));
        // What looks like a heading inside of a text is none, and the check at the end sees it.
        assert_eq!(put("x = '''\n[routing]\n'''\n"), Err(Problem::OutOfReach));
    }
}
