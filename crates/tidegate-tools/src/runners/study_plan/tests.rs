use proptest::prelude::*;
use tidegate_core::tool::ToolResult;

use crate::output::add;

use super::{
    Library, Wish, answer,
    matching::{fits_level, fits_subject},
    schedule::{Kind, plan},
    syllabus::Syllabus,
};

const MATHS: &str = "---
subject: Mathematics
level: Grade 8
weeks: 4
aliases: sums
---
# Mathematics

Prose for people.
- not a topic

## Week 1: Numbers
- Place value
- Negative numbers

## Weeks 2-3: Linear equations
Prerequisites: Negative numbers, Fractions
- One-step equations
- Two-step
  equations
### Practice
  * Word problems

## How it is marked
- A test

## Unit: Statistics
```
- not a topic either
```
- Mean and median
";

const BIOLOGY: &str =
    "---\nsubject: Biology\nlevel: 9th grade\nweeks: 2\n---\n## Week 1: Cells\n## Week 2: Genes\n- DNA\n";
const MATHS_9: &str =
    "---\nsubject: Mathematics\nlevel: Grade 9\nweeks: 1\n---\n## Week 1: Powers\n- Powers of ten\n";

fn library(files: &[(&str, &str)]) -> Library {
    let mut library = Library::default();
    for (file, text) in files {
        match Syllabus::parse(file, text) {
            Ok(syllabus) => library.syllabi.push(syllabus),
            Err(why) => library.faults.push(format!("{file} was left out: {why}")),
        }
    }
    library
}

fn wish(subject: &str, level: Option<&str>, weeks: Option<usize>, gaps: &[&str]) -> Wish {
    Wish {
        subject: subject.to_owned(),
        level: level.map(str::to_owned),
        known_level: None,
        weeks,
        gaps: gaps.iter().map(ToString::to_string).collect(),
    }
}

fn text(wish: &Wish) -> String {
    let library = library(&[
        ("s/maths.md", MATHS),
        ("s/biology.md", BIOLOGY),
        ("s/broken.md", "# Nothing"),
    ]);
    answer(&library, wish).to_model_text()
}

#[test]
fn a_known_level_chooses_and_shuts_nothing_out() {
    let library = library(&[("s/maths.md", MATHS), ("s/maths-9.md", MATHS_9)]);
    let plan = |level: Option<&str>, known: Option<&str>| {
        let wish = Wish {
            known_level: known.map(str::to_owned),
            ..wish("maths", level, None, &[])
        };
        answer(&library, &wish).to_model_text()
    };
    assert!(plan(None, None).contains("several syllabi fit"));
    assert!(plan(None, Some("9")).contains("Mathematics, Grade 9"));
    assert!(plan(Some("8"), Some("9")).contains("Mathematics, Grade 8"));
    assert!(plan(None, Some("4")).contains("several syllabi fit"));
    assert!(plan(Some("4"), Some("9")).contains("no syllabus"));
}

#[test]
fn a_syllabus_is_read_and_nothing_else() {
    let syllabus = Syllabus::parse("s/maths.md", MATHS).unwrap();
    let units: Vec<(&str, u32, Vec<&str>)> = syllabus
        .units
        .iter()
        .map(|unit| {
            (
                unit.title.as_str(),
                unit.weeks,
                unit.topics.iter().map(String::as_str).collect(),
            )
        })
        .collect();
    assert_eq!(
        units,
        [
            ("Numbers", 1, vec!["Place value", "Negative numbers"]),
            (
                "Linear equations",
                2,
                vec!["One-step equations", "Two-step equations", "Word problems"]
            ),
            ("Statistics", 1, vec!["Mean and median"]),
        ]
    );
    assert_eq!(syllabus.units[1].prerequisites, ["Negative numbers", "Fractions"]);
    for (text, fragment) in [
        ("", "front matter"),
        ("---\nsubject: X\n", "front matter"),
        ("---\nsubject: X\nweeks: 2\n---\n## Week 1: A\n", "`level`"),
        (
            "---\nsubject: X\nlevel: 1\nweeks: many\n---\n## Week 1: A\n",
            "`weeks` must be",
        ),
        (
            "---\nsubject: X\nlevel: 1\nweeks: 2\n---\n## Introduction\n",
            "no unit",
        ),
        (
            "---\nsubject: X\nlevel: 1\nweeks: 2\n---\n## Unit: A\n## Unit: A\n",
            "stands twice",
        ),
    ] {
        let why = Syllabus::parse("x.md", text).unwrap_err();
        assert!(why.contains(fragment), "{why}");
    }
}

#[test]
fn the_whole_syllabus_in_its_own_weeks() {
    assert_eq!(
        text(&wish("maths", Some("8"), None, &[])),
        "Study plan: Mathematics, Grade 8, 4 weeks (source: s/maths.md)
Note: s/broken.md was left out: it does not begin with front matter between two lines of `---`.

Week 1
- Numbers [s/maths.md › Week 1: Numbers]
  - Place value
  - Negative numbers

Week 2
- Linear equations [s/maths.md › Weeks 2-3: Linear equations]
  - One-step equations

Week 3
- Linear equations [s/maths.md › Weeks 2-3: Linear equations]
  - Two-step equations
  - Word problems

Week 4
- Statistics [s/maths.md › Unit: Statistics]
  - Mean and median
"
    );
}

#[test]
fn a_gap_gets_a_week_of_its_own_where_there_is_one() {
    let plan = text(&wish(
        "Mathematics",
        None,
        Some(7),
        &["equation", "fractions", "poetry"],
    ));
    for part in [
        "Grade 8, 6 weeks (source: s/maths.md)",
        "Note: the gap `equation` is covered in `Linear equations`.",
        "Note: no topic of this syllabus matches the gap `poetry`.",
        "Note: the last week is for revision.",
        "Note: 7 weeks are available; the syllabus and its revision fill 6, the rest is not planned.",
        "Week 2\n- Extra time for a gap: Linear equations [s/maths.md › Weeks 2-3: Linear equations]\n  - One-step equations\n  - Two-step equations\n  - Word problems\n- Review for a gap, needed for: Linear equations [s/maths.md › Weeks 2-3: Linear equations]\n  - Fractions\n\nWeek 3\n- Linear equations",
        "Week 6\n- Revision: Numbers [s/maths.md › Week 1: Numbers]\n- Revision: Linear equations",
    ] {
        assert!(plan.contains(part), "{part}\n---\n{plan}");
    }
}

#[test]
fn a_gap_without_a_week_is_begun_early() {
    let plan = text(&wish("Mathematics", None, None, &["median", "place value"]));
    for part in [
        "Week 1\n- Extra time for a gap: Numbers [s/maths.md › Week 1: Numbers]\n  - Place value\n- Numbers [",
        "  - Word problems\n- Early start for a gap: Statistics [s/maths.md › Unit: Statistics]\n  - Mean and median\n\nWeek 4\n- Statistics",
    ] {
        assert!(plan.contains(part), "{part}\n---\n{plan}");
    }
    assert!(!plan.contains("Week 5"));
}

#[test]
fn fewer_weeks_move_topics_together_and_name_what_is_cut() {
    let plan = text(&wish("Mathematics", None, Some(2), &["median"]));
    for part in [
        "2 weeks (source",
        "Note: the syllabus takes 4 weeks and 2 are available, so topics were moved together.",
        "Week 1\n- Numbers [s/maths.md › Week 1: Numbers]\n  - Place value\n  - Negative numbers\n- Linear equations [",
        "- Early start for a gap: Statistics [s/maths.md › Unit: Statistics]\n  - Mean and median\n\nWeek 2\n",
    ] {
        assert!(plan.contains(part), "{part}\n---\n{plan}");
    }
    assert!(!plan.contains("not covered") && !plan.contains("Week 3"));

    let mut long = "---\nsubject: Long\nlevel: 1\nweeks: 3\n---\n".to_owned();
    for week in 1..=3 {
        add(&mut long, format_args!("## Week {week}: Part {week}\n"));
        for topic in 1..=5 {
            add(&mut long, format_args!("- Thing {week}.{topic}\n"));
        }
    }
    long.push_str("## Week 4: Wanted\n- Poetry\n");
    let library = library(&[("long.md", &long)]);
    let ToolResult::Ok { text, .. } = answer(&library, &wish("long", None, Some(1), &["poetry"])) else {
        panic!("no plan");
    };
    assert!(
        text.contains("not covered, for lack of time: Thing 2.3; Thing 2.4; Thing 2.5; Thing 3.1"),
        "{text}"
    );
    assert!(text.contains("  - Poetry"), "{text}");
    assert!(
        text.contains("the syllabus says 3 weeks, but its units take 4"),
        "{text}"
    );
}

#[test]
fn says_so_when_nothing_fits() {
    let nothing = text(&wish("Latin", None, None, &[]));
    for part in [
        "Error (not_found): no syllabus is on `Latin`.",
        "- Mathematics, Grade 8 (4 weeks, s/maths.md)",
        "- Biology, 9th grade (2 weeks, s/biology.md)",
        "s/broken.md was left out",
        "do not make up a plan",
    ] {
        assert!(nothing.contains(part), "{part}\n---\n{nothing}");
    }
    assert!(text(&wish("Mathematics", Some("grade 11"), None, &[])).contains("is for the level `grade 11`"));
    assert!(text(&wish("", None, None, &[])).contains("no syllabus is on"));
    let empty = answer(&Library::default(), &wish("Mathematics", None, None, &[]));
    assert!(empty.to_model_text().contains("no syllabi in the knowledge bank"));
    let two = library(&[("a.md", MATHS), ("b.md", MATHS_9)]);
    let which = answer(&two, &wish("Mathematics", None, None, &[])).to_model_text();
    assert!(
        which.contains("missing_argument") && which.contains("Grade 8; Mathematics Grade 9"),
        "{which}"
    );
    assert!(answer(&two, &wish("Mathematics", Some("grade 9"), None, &[])).is_ok());
    let same = library(&[("a.md", MATHS), ("b.md", MATHS)]);
    let first = answer(&same, &wish("Mathematics", None, None, &[])).to_model_text();
    assert!(
        first.contains("(source: a.md)") && first.contains("b.md would fit as well"),
        "{first}"
    );
}

#[test]
fn subjects_and_levels_are_matched_by_words() {
    let syllabus = Syllabus::parse("s/maths.md", MATHS).unwrap();
    for (subject, fits) in [
        ("mathematics", true),
        ("Math", true),
        ("maths", true),
        ("sums", true),
        ("Grade 8 Mathematics", true),
        ("Grade 9 Mathematics", false),
        ("Grade 8", false),
        ("mat", false),
        ("applied mathematics", false),
        ("biology", false),
        ("", false),
    ] {
        assert_eq!(fits_subject(subject, &syllabus), fits, "{subject}");
    }
    for (wanted, level, fits) in [
        ("8", "Grade 8", true),
        ("8th grade", "Grade 8", true),
        ("class 8", "Grade 8", true),
        ("18", "Grade 8", false),
        ("grade", "Grade 8", false),
        ("A1", "Beginner (A1)", true),
        ("beginner", "Beginner (A1)", true),
    ] {
        assert_eq!(fits_level(wanted, level), fits, "{wanted} {level}");
    }
}

fn any_syllabus() -> impl Strategy<Value = Syllabus> {
    prop::collection::vec((1_u32..4, 1_usize..9), 1..12).prop_map(|shape| {
        let mut text = "---\nsubject: S\nlevel: L\nweeks: 9\n---\n".to_owned();
        let mut week = 1;
        for (unit, (weeks, topics)) in shape.into_iter().enumerate() {
            add(
                &mut text,
                format_args!("## Weeks {week}-{}: Part{unit}\n", week + weeks - 1),
            );
            week += weeks;
            for topic in 0..topics {
                add(&mut text, format_args!("- topic{unit}x{topic}\n"));
            }
        }
        Syllabus::parse("s.md", &text).unwrap()
    })
}

proptest! {
    /// Whatever the weeks and gaps: no empty week, never too many, order kept, and every topic stands in the plan
    /// or is named as cut.
    #[test]
    fn a_plan_hides_nothing(
        syllabus in any_syllabus(),
        weeks in prop::option::of(1_usize..60),
        gaps in prop::collection::vec((0_usize..12, 0_usize..9), 0..4),
    ) {
        let gaps: Vec<String> = gaps.iter().map(|(unit, topic)| format!("topic{unit}x{topic}")).collect();
        let made = plan(&syllabus, weeks, &gaps);
        let notes = made.notes.join(" / ");
        prop_assert!(made.weeks.iter().all(|week| !week.is_empty()));
        if let Some(weeks) = weeks {
            prop_assert!(made.weeks.len() <= weeks);
        }
        let regular: Vec<&String> = made
            .weeks
            .iter()
            .flatten()
            .filter(|item| item.kind == Kind::Regular)
            .flat_map(|item| &item.topics)
            .collect();
        let all: Vec<&String> = syllabus.units.iter().flat_map(|unit| &unit.topics).collect();
        let mut positions = Vec::new();
        for topic in &regular {
            positions.push(all.iter().position(|one| one == topic));
        }
        prop_assert!(positions.is_sorted());
        for topic in all {
            let cut = notes.split_once("for lack of time: ").is_some_and(|(_, cut)| {
                cut.split("; ").any(|one| one.split(" / ").next() == Some(topic))
            });
            prop_assert!(regular.contains(&topic) != cut, "{topic}: {notes}");
        }
        for gap in &gaps {
            let quoted = format!("`{gap}`");
            prop_assert!(notes.contains(&quoted));
        }
    }
}

/// The syllabi that come with the program keep the rules, and their plans need no excuse.
#[test]
fn the_shipped_syllabi_are_read() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../knowledge-bank/syllabi");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let syllabus = Syllabus::parse("s.md", &std::fs::read_to_string(&path).unwrap()).unwrap();
            let made = plan(&syllabus, None, &[]);
            assert!(made.notes.is_empty(), "{}: {:?}", path.display(), made.notes);
            count += 1;
        }
    }
    assert!(count >= 3);
}
