//! `tidegate audit verify`: whether the audit trail is whole.

use tidegate_io::chain;

use super::{error::Error, output::Out};
use crate::config::Settings;

/// Exit code where a line is missing or was altered.
const BROKEN: u8 = 1;

/// Verifies the trail; what is wrong is one line each.
pub fn verify(settings: &Settings, out: Out<'_>) -> Result<u8, Error> {
    let chain = settings.config.audit.chain(&settings.logs);
    let report = chain::verify(&chain).map_err(|problem| Error::Usage(problem.to_string()))?;
    if report.lines == 0 && report.faults.is_empty() {
        writeln!(out, "the audit trail has no lines yet: {}", chain.path.display())?;
        return Ok(0);
    }
    for fault in &report.faults {
        writeln!(out, "broken: {fault}")?;
    }
    if report.torn > 0 {
        writeln!(out, "note: {} line(s) were cut short by a crash", report.torn)?;
    }
    if report.first_line > 1 {
        writeln!(
            out,
            "note: lines before {} have been rotated away",
            report.first_line
        )?;
    }
    if report.faults.is_empty() {
        writeln!(out, "the audit trail is whole: {} lines", report.lines)?;
        Ok(0)
    } else {
        Ok(BROKEN)
    }
}
