//! Lists a page at a time. A cursor is the number of items that came before; whoever makes one up sees a later page
//! of what they may see anyway.

use rmcp::{ErrorData, model::PaginatedRequestParams};

/// Items of a page.
pub(super) const ITEMS_MAX: usize = 100;

/// The cursor of a request, where it has one.
pub(super) fn cursor(request: Option<PaginatedRequestParams>) -> Option<String> {
    request.and_then(|request| request.cursor)
}

/// The page at that cursor, and the next one's cursor.
pub(super) fn cut<T>(items: Vec<T>, cursor: Option<&str>) -> Result<(Vec<T>, Option<String>), ErrorData> {
    let start = match cursor {
        None => 0,
        Some(text) => text
            .parse::<usize>()
            .map_err(|_| ErrorData::invalid_params("the cursor is none that this server gave", None))?,
    };
    let count = items.len();
    let page: Vec<T> = items.into_iter().skip(start).take(ITEMS_MAX).collect();
    let end = start.saturating_add(page.len());
    Ok((page, (end < count).then(|| end.to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_follow_each_other_and_end() {
        let items: Vec<usize> = (0..250).collect();
        let (first, next) = cut(items.clone(), None).unwrap();
        assert_eq!((first.len(), next.as_deref()), (100, Some("100")));
        let (last, next) = cut(items.clone(), Some("200")).unwrap();
        assert_eq!((last.first(), last.len(), next), (Some(&200), 50, None));
        assert_eq!(
            cut(items.clone(), Some("18446744073709551615")).unwrap().0.len(),
            0
        );
        assert!(cut(items.clone(), Some("-1")).is_err() && cut(items, Some("x")).is_err());
    }
}
