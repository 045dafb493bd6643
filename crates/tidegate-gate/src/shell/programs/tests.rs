use super::*;
use crate::shell::{Options, Place, Policy, Verdict};

#[test]
fn every_example_of_the_table_holds() {
    let policy = Policy::compile(&Options::default()).unwrap();
    let programs = Programs::compile("").unwrap();
    let place = Place::new("/w/proj", "/w/home");
    let mut wrong = Vec::new();
    for example in programs.examples() {
        let analysis = policy.analyse(&example.line, &place);
        if (*analysis.verdict() == Verdict::ReadOnly) != example.is_accepted {
            wrong.push(format!("{:?}: {:?}", example.line, analysis.verdict()));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn an_operators_table_adds_replaces_and_removes() {
    let own = r#"
        [[program]]
        name = "mytool"
        flags = "v"
        operands = ["read*"]

        [[program]]
        name = "ls"
        operands = ["list*"]

        [[program]]
        name = "cat"
        remove = true
    "#;
    let policy = Policy::compile(&Options {
        programs: own.to_owned(),
        ..Options::default()
    })
    .unwrap();
    let place = Place::new("/w/proj", "/w/home");
    for (line, is_accepted) in [
        ("mytool -v a", true),
        ("mytool -x", false),
        ("ls a", true),
        ("ls -l", false),
        ("cat a", false),
    ] {
        let verdict = policy.analyse(line, &place).verdict().clone();
        assert_eq!(verdict == Verdict::ReadOnly, is_accepted, "{line}: {verdict:?}");
    }
    for broken in [
        "[[program]]",
        "x = 1",
        "[[program]]\nname = \"a\"\naccept = [\"a -x\"]",
        "[[program]]\nname = \"a\"\nflags = \"x\"\nrefuse = [\"a -x\"]",
        "[[program]]\nname = \"a/b\"",
        "[[program]]\nname = \"a\"\noperands = [\"what\"]",
    ] {
        let options = Options {
            programs: broken.to_owned(),
            ..Options::default()
        };
        assert!(Policy::compile(&options).is_err(), "{broken}");
    }
}
