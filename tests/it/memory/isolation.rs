//! Many people at once: nobody's words end up with somebody else, and who is erased leaves nothing.

use std::collections::BTreeSet;

use futures_util::{StreamExt as _, stream};
use serde_json::json;
use tidegate_testkit::Reply;

use super::person::{BY_RULES, Person, script};
use crate::support::Setup;

/// People who talk at the same time.
const PEOPLE: usize = 16;
/// What each of them says.
const TURNS: usize = 20;

#[tokio::test]
async fn people_who_talk_at_once_are_never_mixed() {
    let daemon = Setup::default().config(BY_RULES).start().await;
    script(&daemon, json!([]), Reply::text("Noted."));
    // Names that a careless comparison takes for each other.
    let names: Vec<String> = (0..PEOPLE)
        .map(|number| match number % 4 {
            0 => format!("ann{number}"),
            1 => format!("Ann{}", number - 1),
            2 => format!("ann{}:", number - 2),
            _ => format!("ann{}%", number - 3),
        })
        .collect();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), PEOPLE);
    let people: Vec<Person<'_>> = names.iter().map(|name| Person::new(&daemon, name)).collect();
    stream::iter(people.iter().enumerate())
        .for_each_concurrent(PEOPLE, async |(number, person)| {
            for turn in 0..TURNS {
                person.says(&format!("I like topic{number}x{turn}.")).await;
            }
        })
        .await;
    let mut users = BTreeSet::new();
    for (number, person) in people.iter().enumerate() {
        let memory = person.memory().await;
        users.insert(memory["user"].to_string());
        let facts = memory["data"].as_array().unwrap();
        let expected: BTreeSet<String> = (0..TURNS).map(|turn| format!("topic{number}x{turn}")).collect();
        let found: BTreeSet<String> = facts
            .iter()
            .map(|fact| fact["value"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(found, expected, "{}", person.name);
        for fact in facts {
            let value = fact["value"].as_str().unwrap();
            let evidence = fact["evidence"].as_array().unwrap();
            assert!(
                evidence.len() == 1 && evidence[0]["quote"].as_str().unwrap().contains(value),
                "{}: {fact}",
                person.name
            );
        }
        // What is told to the model of one person is of that person.
        let asked = daemon.upstream.chats().len();
        person.says("What do you remember about me?").await;
        let told = daemon.upstream.chats()[asked..]
            .iter()
            .map(ToString::to_string)
            .collect::<String>();
        for other in (0..PEOPLE).filter(|other| *other != number) {
            assert!(
                !told.contains(&format!("topic{other}x")),
                "{}: {told}",
                person.name
            );
        }
    }
    assert_eq!(users.len(), PEOPLE, "{users:?}");
}

#[tokio::test]
async fn of_an_erased_person_the_export_is_empty_and_others_keep_theirs() {
    let daemon = Setup::default().config(BY_RULES).start().await;
    let (ann, anne) = (Person::new(&daemon, "ann"), Person::new(&daemon, "anne"));
    for person in [&ann, &anne] {
        person.says("Remember that I teach 4th grade.").await;
        person.says("I like tables.").await;
        let facts = person.facts().await;
        assert_eq!(facts.len(), 2, "{facts:?}");
        assert_eq!(person.export().await["observations"].as_array().unwrap().len(), 2);
    }
    ann.erases().await;
    let export = ann.export().await;
    assert_eq!(
        (&export["facts"], &export["observations"]),
        (&json!([]), &json!([]))
    );
    assert_eq!(ann.facts().await.len(), 0);
    assert_eq!(anne.export().await["observations"].as_array().unwrap().len(), 2);
    // It is no dead end: the person may begin anew.
    ann.says("I like pictures.").await;
    assert_eq!(ann.facts().await.len(), 1);
}
