//! The effective permission mode of a run: one axis, and a request can only lower it.

pub use tidegate_core::caller::Mode;

/// The least of what the key may have, what the operator configured, and what the request asked for.
/// An unset configuration or request lowers nothing.
pub fn effective_mode(ceiling: Mode, configured: Option<Mode>, requested: Option<Mode>) -> Mode {
    [configured, requested]
        .into_iter()
        .flatten()
        .fold(ceiling, Mode::min)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_setting_and_no_request_can_raise_a_ceiling() {
        for ceiling in Mode::ALL {
            for configured in Mode::ALL.map(Some).into_iter().chain([None]) {
                for requested in Mode::ALL.map(Some).into_iter().chain([None]) {
                    let mode = effective_mode(ceiling, configured, requested);
                    assert!(mode <= ceiling);
                    assert!(configured.is_none_or(|limit| mode <= limit));
                    assert!(requested.is_none_or(|limit| mode <= limit));
                }
            }
        }
        assert_eq!(effective_mode(Mode::FullAuto, None, None), Mode::FullAuto);
    }
}
