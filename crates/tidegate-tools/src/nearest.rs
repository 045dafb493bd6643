//! "Did you mean": the known name nearest to one that is not.

/// How alike two names must be, from 0 to 1, before one is offered for the other.
const LIKENESS_MIN: f64 = 0.7;

/// The known name that is most like `name`, where one is like it at all.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(likeness, _)| *likeness >= LIKENESS_MIN)
        .max_by(|left, right| left.0.total_cmp(&right.0))
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::nearest;

    #[test]
    fn offers_what_was_meant() {
        let known = ["timeout_ms", "output_bytes_max", "parameters"];
        assert_eq!(nearest("timeout", known), Some("timeout_ms"));
        assert_eq!(nearest("parameter", known), Some("parameters"));
        assert_eq!(nearest("zzz", known), None);
    }
}
