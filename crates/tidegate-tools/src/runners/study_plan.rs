//! `study_plan`: a week-by-week plan out of the syllabi of the knowledge bank.
//!
//! Nothing is made up here: every line of a plan is a unit or a topic of a syllabus, cited with its file and
//! heading. What does not fit into the weeks there are is named, not dropped in silence, and where no syllabus
//! fits the answer says which there are. The same files and arguments always give the same plan.

mod matching;
mod schedule;
mod syllabus;

use tidegate_core::tool::{FailureCode, ToolResult};
use tidegate_gate::{Access, Learner};
use tidegate_io::files::{EntryKind, FileError};

use self::{
    matching::{fits_level, fits_subject},
    schedule::{Plan, plan},
    syllabus::Syllabus,
};
use super::files::{Job, failed};
use crate::{arguments::Values, output::add};

/// The most syllabi that are read.
const SYLLABI_MAX: usize = 200;
/// The largest syllabus, in bytes.
const SYLLABUS_BYTES_MAX: usize = 256 << 10;

/// What the learner asked for.
#[derive(Debug, Clone)]
struct Wish {
    subject: String,
    level: Option<String>,
    /// The level that the person is known to have: it chooses, where the call does not say, and it shuts nothing out.
    known_level: Option<String>,
    weeks: Option<usize>,
    gaps: Vec<String>,
}

/// The syllabi there are, and what could not be read.
#[derive(Debug, Default)]
struct Library {
    syllabi: Vec<Syllabus>,
    faults: Vec<String>,
}

impl Wish {
    /// What the call says; where it says nothing, what is known of the person. `None` without a subject.
    fn of(values: &Values<'_>, learner: &Learner) -> Option<Self> {
        let given = |name| {
            let text = values.text(name).map(str::trim);
            text.filter(|text| !text.is_empty()).map(str::to_owned)
        };
        let mut gaps: Vec<String> = values
            .texts("knowledge_gaps")
            .iter()
            // One text with commas in it is how models often write a list.
            .flat_map(|gaps| gaps.split([',', ';']))
            .map(str::trim)
            .filter(|gap| !gap.is_empty())
            .map(str::to_owned)
            .collect();
        if gaps.is_empty() {
            gaps.clone_from(&learner.gaps);
        }
        Some(Self {
            subject: given("subject").or_else(|| learner.subject.clone())?,
            level: given("level"),
            known_level: learner.level.clone(),
            weeks: values.count("weeks"),
            gaps,
        })
    }
}

/// Runs the tool.
pub(crate) async fn run(job: Job, values: &Values<'_>, learner: &Learner) -> ToolResult {
    let Some(wish) = Wish::of(values, learner) else {
        return ToolResult::failed(
            FailureCode::MissingArgument,
            "no subject is given, and the user's main subject is not known. Ask the user, and give `subject`.",
        );
    };
    job.run(move |job, _| match read_library(job) {
        Ok(library) => answer(&library, &wish),
        Err(result) => result,
    })
    .await
}

fn read_library(job: &Job) -> Result<Library, ToolResult> {
    let folder = &job.files.options.syllabi_folder;
    let place = job.place(folder, Access::List, 0)?;
    let listing = match place.list(SYLLABI_MAX) {
        Ok(listing) => listing,
        // No folder is no syllabi: the answer says so.
        Err(FileError::NotFound(_)) => return Ok(Library::default()),
        Err(error) => return Err(failed(&error)),
    };
    let mut library = Library::default();
    if listing.left_out > 0 {
        library.faults.push(format!(
            "only the first {SYLLABI_MAX} files of {folder} were read"
        ));
    }
    for entry in listing.entries {
        let is_markdown = std::path::Path::new(&entry.name)
            .extension()
            .is_some_and(|extension| extension.eq_ignore_ascii_case("md"));
        if !is_markdown || matches!(entry.kind, EntryKind::Folder | EntryKind::Other) {
            continue;
        }
        let file = format!("{folder}/{}", entry.name);
        let read = job
            .place(&file, Access::Read, 0)
            .map_err(|_refused| "it may not be read".to_owned())
            .and_then(|place| {
                place
                    .read_text(SYLLABUS_BYTES_MAX)
                    .map_err(|error| error.to_string())
            })
            .and_then(|text| Syllabus::parse(&file, &text));
        match read {
            Ok(syllabus) => library.syllabi.push(syllabus),
            Err(why) => library.faults.push(format!("{file} was left out: {why}")),
        }
    }
    Ok(library)
}

fn answer(library: &Library, wish: &Wish) -> ToolResult {
    let of_subject: Vec<&Syllabus> = library
        .syllabi
        .iter()
        .filter(|syllabus| fits_subject(&wish.subject, syllabus))
        .collect();
    if of_subject.is_empty() {
        return library.nothing(&format!("no syllabus is on `{}`.", wish.subject));
    }
    let of_level = |level: &String| -> Vec<&Syllabus> {
        let fits = |syllabus: &&Syllabus| fits_level(level, &syllabus.level);
        of_subject.iter().copied().filter(fits).collect()
    };
    let chosen: Vec<&Syllabus> = match (&wish.level, &wish.known_level) {
        (Some(level), _) => of_level(level),
        (None, Some(known)) => Some(of_level(known))
            .filter(|fitting| !fitting.is_empty())
            .unwrap_or_else(|| of_subject.clone()),
        (None, None) => of_subject.clone(),
    };
    match (chosen.as_slice(), &wish.level) {
        ([], level) => library.nothing(&format!(
            "no syllabus on {} is for the level `{}`.",
            wish.subject,
            level.as_deref().unwrap_or_default()
        )),
        ([first, others @ ..], _) if others.iter().all(|one| one.level == first.level) => {
            let mut plan = plan(first, wish.weeks, &wish.gaps);
            plan.notes
                .extend(others.iter().map(|one| format!("{} would fit as well", one.file)));
            ToolResult::ok(library.shown(first, &plan))
        }
        ([_, ..], _) => {
            let levels: Vec<String> = chosen
                .iter()
                .map(|one| format!("{} {}", one.subject, one.level))
                .collect();
            ToolResult::failed(
                FailureCode::MissingArgument,
                format!(
                    "several syllabi fit: {}. Ask the user which level, and give `level`.",
                    levels.join("; ")
                ),
            )
        }
    }
}

impl Library {
    /// Nothing fits: what there is.
    fn nothing(&self, why: &str) -> ToolResult {
        let mut message = why.to_owned();
        if self.syllabi.is_empty() {
            message.push_str(" There are no syllabi in the knowledge bank.");
        } else {
            message.push_str(" There are syllabi on:");
            for one in &self.syllabi {
                add(
                    &mut message,
                    format_args!(
                        "\n- {}, {} ({} weeks, {})",
                        one.subject, one.level, one.weeks, one.file
                    ),
                );
            }
        }
        for fault in &self.faults {
            add(&mut message, format_args!("\nNote: {fault}."));
        }
        message.push_str("\nTell the user so; do not make up a plan.");
        ToolResult::failed(FailureCode::NotFound, message)
    }

    fn shown(&self, syllabus: &Syllabus, plan: &Plan) -> String {
        let mut text = format!(
            "Study plan: {}, {}, {} weeks (source: {})\n",
            syllabus.subject,
            syllabus.level,
            plan.weeks.len(),
            syllabus.file
        );
        let notes = plan.notes.iter().chain(&self.faults);
        for note in notes {
            add(&mut text, format_args!("Note: {note}.\n"));
        }
        for (position, week) in plan.weeks.iter().enumerate() {
            add(&mut text, format_args!("\nWeek {}\n", position + 1));
            for item in week {
                let label = item.kind.label();
                add(
                    &mut text,
                    format_args!(
                        "- {label}{} [{} › {}]\n",
                        item.unit.title, syllabus.file, item.unit.heading
                    ),
                );
                for topic in &item.topics {
                    add(&mut text, format_args!("  - {topic}\n"));
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests;
