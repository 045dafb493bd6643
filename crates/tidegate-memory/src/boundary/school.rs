//! Whether a school year in a clause is the person's: the one that they teach or attend, and not one of a worksheet, a child
//! or a plan.

use std::ops::Range;

use super::{
    assertion::{Clause, Subject},
    cues::{is_adverb, is_any},
    words::{
        GROUPS, IN_GRADE, JOBS, NEGATIONS, NOT_IN_GRADE, NOT_THIS_GROUP, OTHER_WORK, OWN_ACTS, PREPOSITIONS,
        THINGS,
    },
};

/// Whether the school year is the person's.
pub(super) fn holds(clause: &Clause<'_>) -> bool {
    let word = |at: usize| clause.sentence.word(at);
    match clause.subject {
        Subject::I(i) => of_person(clause, i),
        Subject::My(my) => of_group(clause, my),
        Subject::Behind(behind) => {
            let is_taught =
                (behind..clause.at.end).any(|at| is_any(&["teach", "teaching", "attend", "am"], word(at)));
            let is_mine =
                word(behind) == "my" && is_any(&["grade", "class", "level", "year"], word(behind + 1));
            is_taught || is_mine
        }
        Subject::Object(_) => false,
    }
}

/// The most words between "I have" and a class.
const CLASS_WORDS_MAX: usize = 5;

/// "I teach …", "I am in …", "I have a class of …".
fn of_person(clause: &Clause<'_>, i: usize) -> bool {
    let word = |at: usize| clause.sentence.word(at);
    let end = clause.target.end;
    let between = i + 1..clause.target.start;
    let changes_nothing = |at: usize| {
        is_adverb(word(at))
            || is_any(NEGATIONS, word(at))
            || is_any(&["been", "longer", "stopped", "quit"], word(at))
            || (word(at) == "have" && is_perfect(clause, at))
    };
    let Some(verb) = between.clone().find(|at| !changes_nothing(*at)) else {
        return false;
    };
    let rest = verb + 1..clause.target.start;
    let acts = rest
        .clone()
        .any(|at| word(at).ends_with("ing") && !is_any(OWN_ACTS, word(at)));
    let is_other = acts || is_any(THINGS, word(end));
    match word(verb) {
        "teach" | "teaching" | "tutor" | "coach" | "unterrichte" | "taught" => !clause.has(
            rest,
            &["about", "like", "as", "how", "with", "next", "near", "except"],
        ),
        "am" | "bin" => !is_other && is_in_grade(clause, rest, clause.has(between, JOBS)),
        "work" | "working" | "arbeite" => !is_other && !clause.has(rest, OTHER_WORK),
        "have" => {
            let is_group = is_any(GROUPS, word(end)) || word(end - 1).ends_with("graders");
            is_group && !acts && rest.len() <= CLASS_WORDS_MAX
        }
        "attend" | "go" | "study" | "besuche" | "gehe" | "attending" => {
            !is_other && !clause.has(rest, &["with", "about", "like", "through", "over"])
        }
        "take" | "lead" | "run" | "handle" | "cover" => is_any(&["class", "classes"], word(end)),
        _ => false,
    }
}

/// "My class is …", "my students are in …", "my 4th graders …".
fn of_group(clause: &Clause<'_>, my: usize) -> bool {
    let word = |at: usize| clause.sentence.word(at);
    let between = my + 1..clause.target.start;
    if between.is_empty() {
        // The year itself is the subject.
        return word(clause.target.end - 1).ends_with("graders");
    }
    let is_group = clause.has(between.clone(), GROUPS)
        && clause.has(between.clone(), &["is", "are", "'s", "ist", "sind"]);
    let acts = between.clone().any(|at| word(at).ends_with("ing"));
    let is_other = acts
        || is_any(THINGS, word(clause.target.end))
        || clause.has(between.clone(), NOT_THIS_GROUP)
        || clause.has(between, NOT_IN_GRADE);
    is_group && !is_other
}

/// Whether what stands between "I am" and the school year says that it is the person's: "in the", "a teacher of", "a new"
/// before "4th grade teacher".
fn is_in_grade(clause: &Clause<'_>, rest: Range<usize>, is_teacher: bool) -> bool {
    let word = |at: usize| clause.sentence.word(at);
    let job = rest.clone().find(|at| is_any(JOBS, word(*at)));
    let is_job_next = is_any(JOBS, word(clause.target.end))
        || is_any(JOBS, word(clause.target.end + 1))
        || is_any(JOBS, word(clause.target.end + 2));
    // Behind the job, "of" and "for" lead to the class.
    let before_job = rest.start..job.unwrap_or(rest.end);
    let is_plain = |at: usize| !is_any(PREPOSITIONS, word(at)) && !is_any(NOT_IN_GRADE, word(at));
    if job.is_some() || is_teacher || is_job_next {
        let leads = before_job.clone().all(is_plain);
        return leads && !clause.has(rest, &["like", "than", "as"]);
    }
    let is_year = word(clause.target.end - 1).ends_with("grader")
        || word(clause.target.end - 1).starts_with("klässler");
    rest.clone()
        .all(|at| is_any(IN_GRADE, word(at)) || is_adverb(word(at)) || (is_year && is_plain(at)))
}

/// Whether "have" only says that something goes on: "I have been teaching", "I have taught".
fn is_perfect(clause: &Clause<'_>, have: usize) -> bool {
    let next = (have + 1..clause.target.start)
        .map(|at| clause.sentence.word(at))
        .find(|word| !is_adverb(word));
    next.is_some_and(|next| {
        is_any(
            &["been", "taught", "worked", "tutored", "attended", "studied"],
            next,
        )
    })
}
