//! Write caps: how much one turn may write, whoever allowed it. Asked before the mode and before any grant, so
//! that no approval waves them through; a sub-agent's writes count as its parent's.

use crate::{Denial, Facts};

/// The caps of one turn. Zero means none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Caps {
    /// How many calls of one turn may write.
    pub writes_per_turn_max: u32,
    /// How many bytes one call may write.
    pub write_bytes_max: u64,
}

impl Caps {
    /// The refusal of a call that would write too much.
    pub(crate) fn check(&self, facts: &Facts) -> Option<Denial> {
        if !facts.is_write() {
            return None;
        }
        if self.writes_per_turn_max > 0 && facts.writes_before >= self.writes_per_turn_max {
            return Some(Denial::new(
                "max_writes_per_turn",
                format!(
                    "this turn has made the {} writes it may make.",
                    self.writes_per_turn_max
                ),
            ));
        }
        if self.write_bytes_max > 0 && facts.write_bytes > self.write_bytes_max {
            return Some(Denial::new(
                "max_write_bytes",
                format!("one call may write {} bytes at most.", self.write_bytes_max),
            ));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{resolved, write_fact};

    #[test]
    fn a_cap_counts_calls_and_bytes_and_zero_is_none() {
        let write = |writes_before, write_bytes| Facts {
            paths: vec![write_fact("a", resolved("/w/a"))],
            write_bytes,
            writes_before,
            ..Facts::default()
        };
        let caps = Caps {
            writes_per_turn_max: 2,
            write_bytes_max: 10,
        };
        assert_eq!(caps.check(&write(1, 10)), None);
        assert_eq!(caps.check(&write(2, 1)).unwrap().floor, "max_writes_per_turn");
        assert_eq!(caps.check(&write(0, 11)).unwrap().floor, "max_write_bytes");
        assert_eq!(
            caps.check(&Facts {
                writes_before: 9,
                ..Facts::default()
            }),
            None
        );
        assert_eq!(Caps::default().check(&write(u32::MAX, u64::MAX)), None);
    }
}
