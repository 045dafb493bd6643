//! Lines about the front door: what is sent to a daemon, and what it answers.

mod drive;
mod fill;
mod form;
mod judge;
mod target;

use anyhow::Result;

use super::case::{self, Case, Outcome};
use super::{Judged, Place, Verdict};
use drive::Bench;
use form::Input;
use target::Target;

/// The daemon that lines are put to.
pub(super) struct Http {
    bench: Bench,
}

impl Http {
    /// The daemon at that place, or one of its own.
    pub(super) fn new(place: Option<&Place>) -> Result<Self> {
        let target = match place {
            Some(place) => Target::find(&place.url, &place.key)?,
            None => Target::start()?,
        };
        Ok(Self {
            bench: Bench::new(target),
        })
    }

    pub(super) fn judge(&mut self, case: &Case) -> Result<Judged> {
        let input = match Input::read(&case.input, &case.config) {
            Ok(input) => input,
            Err(judged) => return Ok(judged),
        };
        if let Some(lack) = self.bench.lacks(&input) {
            return Ok(Judged::Unknown(lack.to_owned()));
        }
        self.bench.judge(case, &input).map(Judged::Done)
    }
}
