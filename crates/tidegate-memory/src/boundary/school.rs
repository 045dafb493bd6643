//! Whether a school year in a clause is the person's: the one that they teach or attend, and not one of a worksheet, a child
//! or a plan.

use std::ops::Range;

use super::{
    cues::{is_adverb, is_any},
    subject::{Clause, Subject},
    words::{
        GROUPS, IN_GRADE, JOBS, NEGATIONS, NOT_IN_GRADE, NOT_THIS_GROUP, OTHER_WORK, OWN_ACTS, OWN_WORK,
        PREPOSITIONS, ROOMS, THINGS,
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
    let between = clause.predicate(i);
    if is_for_own_group(clause, i) {
        return true;
    }
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
            let is_group = is_any(GROUPS, word(end)) || is_pupils(word(end - 1));
            is_group && !acts && rest.len() <= CLASS_WORDS_MAX
        }
        "attend" | "go" | "study" | "besuche" | "gehe" | "attending" => {
            !is_other && !clause.has(rest, &["with", "about", "like", "through", "over"])
        }
        "take" | "lead" | "run" | "handle" | "cover" => is_any(ROOMS, word(end)),
        _ => false,
    }
}

/// Whether a word names the pupils of a school year.
fn is_pupils(word: &str) -> bool {
    word.ends_with("graders") || is_any(&["kindergartners", "kindergarteners", "preschoolers"], word)
}

/// "I need a game for my 4th graders": whoever says so has them.
pub(super) fn is_for_own_group(clause: &Clause<'_>, i: usize) -> bool {
    let word = |at: usize| clause.sentence.word(at);
    let start = clause.target.start;
    let is_own = start > i + 3
        && is_any(&["my", "our"], word(start - 1))
        && is_any(&["for", "with"], word(start - 2))
        && is_pupils(word(clause.target.end - 1));
    let Some(verb) = (i + 1..start).find(|at| !is_adverb(word(*at))) else {
        return false;
    };
    let is_work = match word(verb) {
        "am" => is_any(OWN_WORK, word(verb + 1)),
        "would" => is_any(&["like", "love", "need"], word(verb + 1)),
        verb => is_any(
            &["need", "want", "plan", "prepare", "make", "use", "work", "read"],
            verb,
        ),
    };
    is_own && is_work
}

/// "My class is …", "my students are in …", "my 4th graders …".
fn of_group(clause: &Clause<'_>, my: usize) -> bool {
    let word = |at: usize| clause.sentence.word(at);
    let between = my + 1..clause.target.start;
    if between.is_empty() {
        // The year itself is the subject.
        return is_pupils(word(clause.target.end - 1));
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
    // "Back in the classroom and teaching": what stands before "and" is another thing.
    let joined = job
        .and_then(|job| job.checked_sub(1))
        .filter(|at| word(*at) == "and");
    let before_job = joined.unwrap_or(rest.start)..job.unwrap_or(rest.end);
    let is_plain = |at: usize| !is_any(PREPOSITIONS, word(at)) && !is_any(NOT_IN_GRADE, word(at));
    if job.is_some() || is_teacher || is_job_next {
        let leads = before_job.clone().all(is_plain);
        return leads && !clause.has(rest, &["like", "than", "as"]);
    }
    let is_year = word(clause.target.end - 1).ends_with("grader")
        || word(clause.target.end - 1).starts_with("klässler");
    // "Halfway through 8th grade" is in it.
    let is_halfway = rest.len() == 2
        && is_any(&["halfway", "midway"], word(rest.start))
        && word(rest.start + 1) == "through";
    // "In my second year of college", "16 and in 11th grade".
    let is_college = is_any(&["college", "university", "uni"], word(clause.target.start));
    let leads = |at: usize| {
        let is_age =
            word(at).bytes().all(|byte| byte.is_ascii_digit()) || is_any(&["years", "old"], word(at));
        is_age || (is_college && is_any(YEARS, word(at)))
    };
    is_halfway
        || rest.clone().all(|at| {
            leads(at) || is_any(IN_GRADE, word(at)) || is_adverb(word(at)) || (is_year && is_plain(at))
        })
}

/// Which year of college it is.
const YEARS: &[&str] = &["first", "second", "third", "fourth", "final", "last", "of"];

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
