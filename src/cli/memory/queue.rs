//! Learning, looked at: the queue of finished turns, and what would be learned from a text.

use serde_json::{Value, json};
use tidegate_core::port::CaptureQueue as _;
use tidegate_engine::memory::Trial;
use tidegate_memory::boundary::{Accepted, Candidate, Refusal};

use super::{Desk, failed};
use crate::cli::{
    error::Error,
    output::{self, Out},
};

/// The exit code of a trial of which nothing would be kept.
const NOTHING_KEPT: u8 = 3;

impl Desk {
    pub(super) async fn status(&self, is_json: bool, out: Out<'_>) -> Result<(), Error> {
        let counts = self.memory.counts().await.map_err(failed)?;
        let oldest = counts.oldest_at.map(|time| format!("{time:.0}"));
        if is_json {
            let value = json!({
                "enabled": !self.is_off,
                "waiting": counts.waiting,
                "working_on": counts.leased,
                "given_up": counts.dead,
                "oldest_at": oldest,
            });
            return Ok(output::json(out, &value)?);
        }
        let enabled = if self.is_off {
            "no (`memory.enabled`)"
        } else {
            "yes"
        };
        for (name, text) in [
            ("Enabled", enabled.to_owned()),
            ("Waiting", counts.waiting.to_string()),
            ("Working on", counts.leased.to_string()),
            ("Given up", counts.dead.to_string()),
            ("Oldest", oldest.unwrap_or_else(|| "-".to_owned())),
        ] {
            writeln!(out, "{name:<11} {text}")?;
        }
        if counts.dead > 0 {
            writeln!(
                out,
                "\nWhat was given up is tried again after `tidegate memory revive`."
            )?;
        }
        Ok(())
    }

    pub(super) async fn revive(&self, is_json: bool, out: Out<'_>) -> Result<(), Error> {
        let revived = self.store.revive(self.clock.now()).await?;
        if is_json {
            return Ok(output::json(out, &json!({"revived": revived}))?);
        }
        match revived {
            0 => writeln!(out, "No turn was given up.")?,
            1 => writeln!(out, "1 turn waits again.")?,
            turns => writeln!(out, "{turns} turns wait again.")?,
        }
        Ok(())
    }
}

/// What would be learned from a text.
pub(super) fn trial(trial: &Trial, is_json: bool, out: Out<'_>) -> Result<u8, Error> {
    let kept = trial.verdicts.iter().any(|(_, verdict)| verdict.is_ok());
    let code = if kept { 0 } else { NOTHING_KEPT };
    if is_json {
        let value = json!({
            "extractor": trial.extractor,
            "raw_reply": trial.raw_reply,
            "parsed": trial.parsed.iter().map(candidate).collect::<Vec<_>>(),
            "dropped": trial.dropped,
            "fault": trial.fault,
            "verdicts": trial.verdicts.iter().map(verdict).collect::<Vec<_>>(),
            "elapsed_ms": trial.elapsed_ms,
        });
        output::json(out, &value)?;
        return Ok(code);
    }
    writeln!(
        out,
        "Looked for by {}, in {} ms.",
        output::plain(&trial.extractor),
        trial.elapsed_ms
    )?;
    if let Some(reply) = &trial.raw_reply {
        writeln!(out, "\nThe model's reply, as it came:")?;
        for line in reply.lines() {
            writeln!(out, "  {}", output::plain(line))?;
        }
    }
    if let Some(fault) = &trial.fault {
        writeln!(out, "\nFault: {}", output::plain(fault))?;
    }
    if trial.dropped > 0 {
        writeln!(out, "\n{} entries of it are in no usable form.", trial.dropped)?;
    }
    writeln!(out)?;
    if trial.verdicts.is_empty() {
        writeln!(out, "Nothing was found that could be remembered.")?;
    }
    for (found, verdict) in &trial.verdicts {
        let what = format!("{}: {}", found.kind, found.value);
        match verdict {
            Ok(kept) => writeln!(
                out,
                "kept      {}  “{}”",
                output::plain(&format!("{}: {}", kept.kind, kept.value)),
                output::plain(&kept.quote)
            )?,
            Err(refusal) => writeln!(
                out,
                "refused   {}  “{}”\n          {refusal} ({})",
                output::plain(&what),
                output::plain(&found.quote),
                refusal.reason.code()
            )?,
        }
    }
    Ok(code)
}

fn candidate(candidate: &Candidate) -> Value {
    json!({
        "kind": candidate.kind,
        "value": candidate.value,
        "quote": candidate.quote,
        "is_explicit": candidate.is_explicit,
        "is_first_person": candidate.is_first_person,
    })
}

fn verdict((found, verdict): &(Candidate, Result<Accepted, Refusal>)) -> Value {
    let outcome = match verdict {
        Ok(kept) => json!({
            "kept": true,
            "value": kept.value,
            "quote": kept.quote,
            "voice": kept.voice,
            "stance": kept.stance,
        }),
        Err(refusal) => json!({
            "kept": false,
            "reason": refusal.reason.code(),
            "why": refusal.to_string(),
        }),
    };
    json!({"candidate": candidate(found), "verdict": outcome})
}
