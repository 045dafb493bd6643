use proptest::prelude::*;

use super::*;

/// The skills that come with the program.
const SHIPPED: [&str; 3] = [
    include_str!("../../../../../skills/meeting-minutes/SKILL.md"),
    include_str!("../../../../../skills/policy-lookup/SKILL.md"),
    include_str!("../../../../../skills/study-planner/SKILL.md"),
];

fn shipped() -> Vec<Skill> {
    SHIPPED.iter().map(|text| parse(text, 8_000).unwrap()).collect()
}

fn matched(message: &str) -> Option<String> {
    best(&shipped(), message).map(|(_, found)| found.name)
}

const WITH_STUDY_PLANNER: &[&str] = &[
    "Can you make me a study plan for grade 8 maths?",
    "I need a revision timetable, three hours a week",
    "Help me plan my studies for the next month",
    "My exam is in five weeks, what should I study first?",
    "How should I prepare for the biology exam?",
    "I have 6 weeks until the finals. Plan my revision please.",
    "Could you make a timetable for my exam week?",
    "I missed October and have to catch up on linear equations",
    "please build a learning plan around my knowledge gaps",
    "Studying plans for Grade 9, ten weeks",
    "What's in the syllabus? I want to study for the math test.",
];

const WITH_POLICY_LOOKUP: &[&str] = &[
    "What is the budget adjustment procedure?",
    "Can you show me the steps of the budget adjustment procedure?",
    "Who has to approve moving 3000 between budget lines?",
    "What does the handbook say about telephones?",
    "Can you look up the refund policy in the handbook?",
    "Can you search the knowledge bank for the attendance rules?",
    "How many days of annual leave do office staff get?",
    "Am I allowed to use a calculator in the test?",
    "What are the rules for late arrivals?",
    "How do I claim my travel expenses?",
    "I want to make a formal complaint, what is the complaint procedure?",
    "Do we need written approval for a class trip?",
];

const WITH_MEETING_MINUTES: &[&str] = &[
    "Write the minutes of yesterday's staff meeting from these notes",
    "Please turn my notes into minutes",
    "Here is the meeting transcript, what was agreed?",
    "Can you summarise the meeting for people who were absent?",
    "List the action items from the call",
    "Draft minutes: present Ann, Bo; we decided to move the fair",
    "write up the board meeting notes",
    "I took meeting notes, make them readable",
    "summary of our Monday meeting please",
];

const WITHOUT: &[&str] = &[
    "Who are you?",
    "what guardrails do you follow",
    "Explain photosynthesis",
    "The meeting starts in 20 minutes, where is room 4?",
    "How do scientists study volcanoes?",
    "Write a poem about autumn",
    "What is the capital of Peru?",
    "Convert 12 miles to kilometres",
    "I had a difficult exam today and feel tired",
    "Plan a quiz night for our customers",
    "Who wrote the declaration of the rights of man?",
    "Translate this notice into French",
    "Can you write a welcome message for new employees?",
    "How long does it take to boil an egg?",
    "Thanks, that helped a lot.",
    "",
];

#[test]
fn the_shipped_skills_match_what_they_should_and_nothing_else() {
    for (name, messages) in [
        ("study-planner", WITH_STUDY_PLANNER),
        ("policy-lookup", WITH_POLICY_LOOKUP),
        ("meeting-minutes", WITH_MEETING_MINUTES),
    ] {
        for message in messages {
            assert_eq!(matched(message).as_deref(), Some(name), "{message}");
        }
    }
    for message in WITHOUT {
        assert_eq!(matched(message), None, "{message}");
    }
}

fn skill(name: &str, keywords: &[&str]) -> Skill {
    Skill {
        name: name.into(),
        description: "x".into(),
        keywords: keywords.iter().map(ToString::to_string).collect(),
        tools: None,
        enabled: true,
        body: "x".into(),
        phrases: keywords.iter().map(|keyword| steps(keyword)).collect(),
    }
}

#[test]
fn one_common_word_is_no_match_and_two_or_a_phrase_are() {
    let skills = [skill("a", &["invoice", "invoices", "customer", "credit note"])];
    assert!(best(&skills, "an invoice, two invoices").is_none());
    assert!(best(&skills, "note the credit").is_none());
    let (_, found) = best(&skills, "the CUSTOMER'S invoices").unwrap();
    assert_eq!((found.score, found.keywords.len()), (2, 3));
    assert_eq!(
        best(&skills, "a Credit Note").unwrap().1.keywords,
        ["credit note"]
    );
}

#[test]
fn a_gap_is_bounded_and_only_where_it_is_written() {
    let skills = [skill("a", &["write ... essay"])];
    for (message, holds) in [
        ("write an essay", true),
        ("Writing my long English history essays", true),
        ("write down one two three essay", false),
        ("essay to write", false),
    ] {
        assert_eq!(best(&skills, message).is_some(), holds, "{message}");
    }
    assert!(best(&[skill("a", &["write essay"])], "write good essay").is_none());
}

#[test]
fn the_higher_score_wins_and_then_the_name() {
    let skills = [
        skill("b", &["blue whale"]),
        skill("a", &["blue whale"]),
        skill("c", &["big blue whale"]),
    ];
    assert_eq!(best(&skills, "a blue whale").unwrap().1.name, "a");
    assert_eq!(best(&skills, "a big blue whale").unwrap().1.name, "c");
    let mut off = skills.to_vec();
    off[2].enabled = false;
    assert_eq!(best(&off, "a big blue whale").unwrap().1.name, "a");
}

#[test]
fn endings_do_not_matter() {
    for (a, b) in [
        ("studies", "studying"),
        ("study", "studied"),
        ("plans", "planning"),
        ("planned", "plan"),
        ("minutes", "minute"),
        ("classes", "class"),
        ("passing", "passes"),
        ("writes", "writing"),
        ("policies", "policy"),
        ("boxes", "box"),
    ] {
        assert_eq!(stem(a), stem(b), "{a} {b}");
    }
    assert_ne!(stem("bus"), stem("bu"));
}

#[test]
fn front_matter_takes_lists_in_three_forms() {
    for keywords in [
        "keywords: a b, 'c d'",
        "keywords: [a b, \"c d\"]",
        "keywords:\n  - a b\n  - c d",
    ] {
        let text = format!(
            "---\nname: x-1\n# why\ndescription: \"Does: things\"\n{keywords}\ntools: [read_text]\nenabled: false\n---\n\nBody\n"
        );
        let skill = parse(&text, 10).unwrap();
        assert_eq!(skill.keywords, ["a b", "c d"]);
        assert_eq!(skill.description, "Does: things");
        assert_eq!(skill.tools, Some(vec!["read_text".to_owned()]));
        assert!(!skill.enabled);
        assert_eq!(skill.body, "Body");
    }
}

#[test]
fn each_mistake_is_named() {
    let good = "---\nname: x\ndescription: y\nkeywords: a b\n---\nBody";
    assert!(parse(good, 4).unwrap().enabled);
    for (text, problem) in [
        ("name: x", "does not begin"),
        ("---\nname: x\n", "ends its front matter"),
        (&good.replace("Body", " "), "no instructions"),
        (&good.replace("Body", "Longer"), "more than 4 characters"),
        (&good.replace("name: x\n", ""), "`name`"),
        (&good.replace("name: x", "name: X y"), "a-z"),
        (&good.replace("description: y\n", ""), "`description`"),
        (&good.replace("description: y", "description:"), "`description`"),
        (&good.replace("keywords: a b\n", ""), "`keywords`"),
        (&good.replace("a b", "[]"), "1 to 100"),
        (&good.replace("a b", "the"), "keyword `the`"),
        (
            &good.replace("a b", "one two three four five six seven"),
            "1 to 6 words",
        ),
        (
            &good.replace("name: x", "nmae: x"),
            "line 2 has the unknown key `nmae`",
        ),
        (&good.replace("name: x", "name: x\nname: z"), "gives `name` twice"),
        (
            &good.replace("name: x", "name: x\nenabled: yes"),
            "neither true nor false",
        ),
        (&good.replace("name: x", "name x"), "line 2 is not"),
        (&good.replace("a b", "a b\n- c"), "both a value and a list"),
    ] {
        let found = parse(text, 4).unwrap_err();
        assert!(found.contains(problem), "{problem}: {found}");
    }
}

proptest! {
    #[test]
    fn any_file_and_message_are_taken(text in "(---\n)?(name|keywords|: |- |\n|\\PC){0,60}(---\n)?\\PC{0,40}", message in "\\PC{0,200}") {
        prop_assert!(parse(&text, 100).is_ok_and(|skill| !skill.body.is_empty()) || parse(&text, 100).is_err());
        let skills = shipped();
        prop_assert_eq!(best(&skills, &message).map(|found| found.1), best(&skills, &message).map(|found| found.1));
    }
}
