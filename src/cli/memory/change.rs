//! The commands that change what is remembered, and those that carry it from place to place.

use std::{
    fs::File,
    io::{self, BufRead as _, Read as _, Write as _},
    path::Path,
};

use serde_json::json;
use tidegate_core::{
    id::UserId,
    port::{Switch, SwitchOwner},
};
use tidegate_memory::export::{Binding, DOCUMENT_BYTES_MAX};

use super::{Desk, failed, show};
use crate::{
    audit::{self, MemoryAct},
    cli::{
        args::memory::{Add, Clear, Correct, Export, Import, OneFact, Retract, SwitchName, Turn, Users},
        error::Error,
        output::{self, Out},
    },
};

/// Who changes here.
const CONSOLE: &str = "console";

/// What has to be typed to erase somebody.
const CONFIRMATION: &str = "erase";

/// The longest answer to a question that is read, in bytes.
const ANSWER_BYTES_MAX: u64 = 256;

/// People that are fetched at a time, and shown at most.
const PAGE_PEOPLE: usize = 1_000;
const PEOPLE_MAX: usize = 100_000;

/// Observations that an import passed over and that are shown.
const PASSED_OVER_MAX: usize = 10;

impl Desk {
    pub(super) async fn add(&self, add: &Add, out: Out<'_>) -> Result<(), Error> {
        let user = self.user(&add.whose).await?;
        let given = self
            .memory
            .prepare_add(&user, &add.kind, &add.value, add.quote.as_deref())
            .map_err(failed)?;
        self.record(MemoryAct::Add, &user, given.fact().as_str())?;
        let view = self.memory.keep(given).await.map_err(failed)?;
        show::why(&view, add.output.json, out)
    }

    pub(super) async fn correct(&self, correct: &Correct, out: Out<'_>) -> Result<(), Error> {
        let user = self.user(&correct.whose).await?;
        let id = self.find(&user, &correct.id).await?.id;
        let given = self
            .memory
            .prepare_correction(&user, &id, &correct.value, correct.quote.as_deref())
            .await
            .map_err(failed)?;
        self.record(MemoryAct::Correct, &user, id.as_str())?;
        let view = self.memory.keep(given).await.map_err(failed)?;
        show::why(&view, correct.output.json, out)
    }

    pub(super) async fn retract(&self, retract: &Retract, out: Out<'_>) -> Result<(), Error> {
        let user = self.user(&retract.whose).await?;
        let id = self.find(&user, &retract.id).await?.id;
        let given = self
            .memory
            .prepare_retraction(&user, &id, retract.quote.as_deref())
            .await
            .map_err(failed)?;
        self.record(MemoryAct::Retract, &user, id.as_str())?;
        let view = self.memory.keep(given).await.map_err(failed)?;
        show::why(&view, retract.output.json, out)
    }

    pub(super) async fn forget(&self, one: &OneFact, out: Out<'_>) -> Result<(), Error> {
        let user = self.user(&one.whose).await?;
        let view = self.find(&user, &one.id).await?;
        self.record(MemoryAct::Forget, &user, view.id.as_str())?;
        let forgotten = self.memory.forget(&user, &view.id).await.map_err(failed)?;
        if one.output.json {
            let value = json!({
                "id": view.id,
                "deleted": true,
                "observations": forgotten.observations,
                "notes": forgotten.notes,
                "pending": forgotten.captures,
            });
            return Ok(output::json(out, &value)?);
        }
        writeln!(
            out,
            "{}: {} is forgotten, and so is what was said of it ({}).",
            output::plain(&view.label),
            output::plain(&view.shown),
            counted(forgotten.observations, "saying")
        )?;
        if forgotten.captures > 0 {
            let turns = counted(forgotten.captures, "turn");
            writeln!(
                out,
                "{turns} that waited to be learned from went, too: it may stand in any of them."
            )?;
        }
        Ok(())
    }

    pub(super) async fn clear(&self, clear: &Clear, out: Out<'_>) -> Result<(), Error> {
        let user = self.user(&clear.whose).await?;
        if !clear.yes {
            confirm(&user)?;
        }
        self.record(MemoryAct::Erase, &user, "")?;
        let erased = self.memory.erase(&user).await.map_err(failed)?;
        if clear.output.json {
            let value = json!({
                "user": user,
                "deleted": true,
                "observations": erased.observations,
                "notes": erased.notes,
                "pending": erased.captures,
                "runs": erased.runs,
                "held_turns": erased.held_turns,
                "approvals": erased.approvals,
                "usage_rows": erased.usage_rows,
                "out_of_files": erased.is_out_of_files,
            });
            return Ok(output::json(out, &value)?);
        }
        writeln!(
            out,
            "{} is erased: {}, {} that waited, {}, {}, {}.",
            output::plain(user.as_str()),
            counted(erased.observations, "saying"),
            counted(erased.captures, "turn"),
            counted(erased.runs, "journal"),
            counted(erased.held_turns, "held turn"),
            counted(erased.approvals, "approval"),
        )?;
        if !erased.is_out_of_files {
            writeln!(
                out,
                "Somebody was reading the database all the while: the text leaves its log as soon as that has ended."
            )?;
        }
        Ok(())
    }

    pub(super) async fn export(&self, export: &Export, out: Out<'_>) -> Result<(), Error> {
        let user = self.user(&export.whose).await?;
        let document = self.memory.export(&user).await.map_err(failed)?;
        let Some(file) = &export.file else {
            return Ok(output::json(out, &document)?);
        };
        if file.exists() {
            return Err(Error::Refused(format!(
                "{} is there already; name another file, or remove it first",
                shown(file)
            )));
        }
        let mut text = serde_json::to_string_pretty(&document).map_err(io::Error::from)?;
        text.push('\n');
        tidegate_io::files::write_private(file, text.as_bytes())
            .map_err(|problem| Error::Refused(format!("{} cannot be written: {problem}", shown(file))))?;
        let sayings = u64::try_from(document.observations.len()).unwrap_or(u64::MAX);
        Ok(writeln!(
            out,
            "{} of {} written to {}.",
            counted(sayings, "saying"),
            output::plain(user.as_str()),
            shown(file)
        )?)
    }

    pub(super) async fn import(&self, import: &Import, out: Out<'_>) -> Result<(), Error> {
        let user = self.user(&import.whose).await?;
        let text = read(&import.file)?;
        // Whoever may run this may say whose it is.
        let mut imported = self
            .memory
            .read_import(&user, &text, Binding::AnyPerson)
            .map_err(failed)?;
        let read = u64::try_from(imported.observations.len()).unwrap_or(u64::MAX);
        self.record(MemoryAct::Import, &user, &format!("{read} observations"))?;
        let passed_over = std::mem::take(&mut imported.passed_over);
        let added = self.memory.take_in(&user, imported).await.map_err(failed)?;
        if import.output.json {
            let value = json!({
                "user": user,
                "added": added,
                "known": read.saturating_sub(added),
                "passed_over": passed_over,
            });
            return Ok(output::json(out, &value)?);
        }
        writeln!(
            out,
            "{} taken in, {} there already, {} passed over.",
            counted(added, "saying"),
            read.saturating_sub(added),
            passed_over.len()
        )?;
        for passed in passed_over.iter().take(PASSED_OVER_MAX) {
            writeln!(
                out,
                "  number {}: {}",
                passed.number,
                output::plain(&passed.reason)
            )?;
        }
        if passed_over.len() > PASSED_OVER_MAX {
            let more = passed_over.len() - PASSED_OVER_MAX;
            writeln!(out, "  and {more} more; --json lists them all")?;
        }
        Ok(())
    }

    pub(super) async fn turn(&self, turn: &Turn, is_on: bool, out: Out<'_>) -> Result<(), Error> {
        let user = self.user(&turn.whose).await?;
        let is_everybody = turn.whose.user.is_none();
        let owner = if is_everybody {
            SwitchOwner::Key(user.key_id())
        } else {
            SwitchOwner::User(user.clone())
        };
        let switches: &[Switch] = match turn.switch {
            None => &[Switch::Learning, Switch::Recall],
            Some(SwitchName::Learning) => &[Switch::Learning],
            Some(SwitchName::Recall) => &[Switch::Recall],
        };
        let detail = if is_everybody { "all users of the key" } else { "" };
        for switch in switches {
            let act = match switch {
                Switch::Learning => MemoryAct::Learning(is_on),
                Switch::Recall => MemoryAct::Recall(is_on),
            };
            self.record(act, &user, detail)?;
            self.memory
                .set_switch(&owner, *switch, is_on)
                .await
                .map_err(failed)?;
        }
        let (own, key) = self.memory.switches(&user).await.map_err(failed)?;
        let now = if is_everybody { key } else { own };
        if turn.output.json {
            let value = json!({
                "key": user.key_id(),
                "user": (!is_everybody).then_some(&user),
                "learning": now.learning,
                "recall": now.recall,
            });
            return Ok(output::json(out, &value)?);
        }
        let word = |is_on| if is_on { "on" } else { "off" };
        let whose = if is_everybody {
            format!("every user of key {}", output::plain(user.as_str()))
        } else {
            output::plain(user.as_str())
        };
        writeln!(
            out,
            "Learning is {}, recall is {}, for {whose}.",
            word(now.learning),
            word(now.recall)
        )?;
        if !is_everybody && own != own.and(key) {
            let in_force = own.and(key);
            writeln!(
                out,
                "The key turns more off: learning is {}, recall is {}.",
                word(in_force.learning),
                word(in_force.recall)
            )?;
        }
        Ok(())
    }

    pub(super) async fn users(&self, users: &Users, out: Out<'_>) -> Result<(), Error> {
        let key = self.key(users.key.as_deref()).await?;
        let mut people = Vec::new();
        while people.len() < PEOPLE_MAX {
            let after = people
                .last()
                .map(|person: &tidegate_core::port::Remembered| person.user.clone());
            let page = self
                .memory
                .remembered(&key, after.as_ref(), PAGE_PEOPLE)
                .await
                .map_err(failed)?;
            let is_last = page.len() < PAGE_PEOPLE;
            people.extend(page);
            if is_last {
                break;
            }
        }
        show::people(&people, users.output.json, out)
    }

    /// Records what is about to be done.
    fn record(&self, act: MemoryAct, user: &UserId, detail: &str) -> Result<(), Error> {
        let entry = audit::memory_entry(act, user, CONSOLE, detail, self.clock.now());
        if let Err(problem) = audit::write_now(&self.audit, &self.logs, &entry) {
            if self.audit.required {
                let text = format!("the change cannot be recorded, so nothing was changed: {problem}");
                return Err(Error::Refused(text));
            }
            tracing::warn!(%problem, "a change of what is remembered could not be recorded");
        }
        Ok(())
    }
}

/// Asks whether somebody is to be erased.
fn confirm(user: &UserId) -> Result<(), Error> {
    let mut stderr = io::stderr();
    write!(
        stderr,
        "Everything that is stored of what {} wrote goes, for good: what is remembered, journals, held turns and \
         approvals.\nType `{CONFIRMATION}` to go on: ",
        output::plain(user.as_str())
    )?;
    stderr.flush()?;
    let mut answer = String::new();
    io::stdin().lock().take(ANSWER_BYTES_MAX).read_line(&mut answer)?;
    if answer.trim() == CONFIRMATION {
        return Ok(());
    }
    Err(Error::Refused(format!(
        "nothing was erased; type `{CONFIRMATION}` when asked, or say --yes"
    )))
}

/// Reads a document, if it is not too long.
fn read(file: &Path) -> Result<String, Error> {
    let unreadable = |problem: io::Error| {
        let text = format!("{} cannot be read: {problem}", shown(file));
        if problem.kind() == io::ErrorKind::NotFound {
            Error::NotFound(format!("{} does not exist", shown(file)))
        } else if problem.kind() == io::ErrorKind::InvalidData {
            Error::Usage(text)
        } else {
            Error::Refused(text)
        }
    };
    let mut text = String::new();
    // One byte more than may be shows that there are more.
    let bytes_max = u64::try_from(DOCUMENT_BYTES_MAX).unwrap_or(u64::MAX) + 1;
    let opened = File::open(file).map_err(unreadable)?;
    opened
        .take(bytes_max)
        .read_to_string(&mut text)
        .map_err(unreadable)?;
    Ok(text)
}

fn shown(file: &Path) -> String {
    output::plain(&file.display().to_string())
}

/// So many of them, in words.
fn counted(count: u64, what: &str) -> String {
    if count == 1 {
        format!("1 {what}")
    } else {
        format!("{count} {what}s")
    }
}
