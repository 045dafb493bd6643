use proptest::prelude::*;

use super::{Problem, evaluate};

#[test]
fn values() {
    for (expression, expected) in [
        ("1 + 2", "3"),
        ("0.1 + 0.2", "0.3"),
        ("-2 ** 2", "-4"),
        ("2 ** 3 ** 2", "512"),
        ("2 ** -2", "0.25"),
        ("2^10", "1024"),
        ("7 // 2", "3"),
        ("-7 // 2", "-4"),
        ("-7 % 3", "2"),
        ("7 % -3", "-2"),
        ("7.5 % 2", "1.5"),
        ("1 / 3", "≈ 0.333333333333 (exactly 1/3)"),
        ("2 / 3", "≈ 0.666666666667 (exactly 2/3)"),
        ("-1 / 8", "-0.125"),
        ("10 ** 20", "100000000000000000000"),
        ("sqrt(144)", "12"),
        ("sqrt(2)", "≈ 1.41421356237"),
        ("sqrt(2) ** 2", "≈ 2"),
        ("sqrt(1/4)", "0.5"),
        ("pi", "≈ 3.14159265359"),
        ("round(2.5)", "3"),
        ("round(-2.5)", "-3"),
        ("round(19.987, 2)", "19.99"),
        ("round(1234, -2)", "1200"),
        ("floor(-1.5) + ceil(1.2)", "0"),
        ("min(3, 1, 2) + max(3, 1, 2)", "4"),
        ("abs(-3.50)", "3.5"),
        ("1_000 × 3 ÷ 4 − 1", "749"),
        ("1.5e3", "1500"),
        ("1e-3", "0.001"),
        ("0 ** 0", "1"),
        ("1 / 7 * 10 ** 30", "≈ 1.42857142857e29"),
        ("1 / 7 / 10 ** 9", "≈ 1.42857142857e-10"),
        ("1/3 - 1/3", "0"),
        ("999999999999.9 / 3 * 3", "999999999999.9"),
        ("2999999999999 / 3", "≈ 1000000000000"),
    ] {
        assert_eq!(evaluate(expression).as_deref(), Ok(expected), "{expression}");
    }
}

#[test]
fn refusals_say_why() {
    let long = "1".repeat(1001);
    let many = vec!["1"; 70].join("+");
    let deep = format!("{}1{}", "(".repeat(100), ")".repeat(100));
    let signs = format!("{}1", "-".repeat(200));
    for (expression, fragment) in [
        ("", "empty"),
        ("1 +", "ends too early"),
        ("1 2", "not expected"),
        ("(1", "closing bracket"),
        ("1,000 + 1", "comma"),
        ("15%", "percent"),
        ("x = 3", "equations"),
        ("x + 3", "not known"),
        ("3 = 3", "equations"),
        ("import(1)", "not known"),
        ("__import__('os')", "not part of arithmetic"),
        ("1 / 0", "division by zero"),
        ("1 % 0", "division by zero"),
        ("0 ** -1", "division by zero"),
        ("sqrt(-1)", "negative"),
        ("2 ** 0.5", "whole numbers"),
        ("9 ** 9 ** 9", "exponents go up to"),
        ("10 ** 1000 * 10 ** 1000", "bits"),
        ("1e1001", "exponents go up to"),
        ("1e99999999999", "exponents go up to"),
        ("1..2", "two points"),
        ("2 ** 1001", "exponents go up to"),
        ("999 ** 999", "bits"),
        (long.as_str(), "1000 characters"),
        (many.as_str(), "128"),
        (deep.as_str(), "nested"),
        (signs.as_str(), "nested"),
    ] {
        let why = match evaluate(expression) {
            Err(Problem::Syntax(why) | Problem::Undefined(why) | Problem::TooLarge(why)) => why,
            Ok(value) => panic!("{expression} gave {value}"),
        };
        assert!(why.contains(fragment), "{expression}: {why}");
    }
}

/// An expression as a tree, so that it can be written with full brackets and computed in another way.
#[derive(Debug, Clone)]
enum Tree {
    Leaf(i64),
    Node(Box<Tree>, &'static str, Box<Tree>),
}

impl Tree {
    fn text(&self) -> String {
        match self {
            Self::Leaf(value) => value.to_string(),
            Self::Node(left, operator, right) => format!("({} {operator} {})", left.text(), right.text()),
        }
    }

    fn value(&self) -> Option<i128> {
        match self {
            Self::Leaf(value) => Some(i128::from(*value)),
            Self::Node(left, operator, right) => {
                let (left, right) = (left.value()?, right.value()?);
                match *operator {
                    "+" => left.checked_add(right),
                    "-" => left.checked_sub(right),
                    "*" => left.checked_mul(right),
                    "//" => {
                        let quotient = left.checked_div(right)?;
                        let below = left % right != 0 && (left < 0) != (right < 0);
                        Some(quotient - i128::from(below))
                    }
                    "%" => {
                        let rest = left.checked_rem(right)?;
                        let other_sign = rest != 0 && (rest < 0) != (right < 0);
                        Some(if other_sign { rest + right } else { rest })
                    }
                    other => panic!("{other}"),
                }
            }
        }
    }
}

fn tree() -> impl Strategy<Value = Tree> {
    let leaf = (-1_000_000_000_i64..1_000_000_000).prop_map(Tree::Leaf);
    leaf.prop_recursive(4, 16, 2, |inner| {
        (
            inner.clone(),
            prop::sample::select(vec!["+", "-", "*", "//", "%"]),
            inner,
        )
            .prop_map(|(left, operator, right)| Tree::Node(Box::new(left), operator, Box::new(right)))
    })
}

proptest! {
    #[test]
    fn agrees_with_machine_arithmetic(tree in tree()) {
        if let Some(expected) = tree.value() {
            prop_assert_eq!(evaluate(&tree.text()), Ok(expected.to_string()));
        }
    }

    #[test]
    fn never_panics(text in "[-0-9.+*/%^() ,a-z=π_]{0,60}") {
        let _outcome = evaluate(&text);
    }

    #[test]
    fn fractions_come_back(numerator in -10_000_i64..10_000, denominator in 1_i64..10_000) {
        let text = format!("{numerator} / {denominator} * {denominator}");
        prop_assert_eq!(evaluate(&text), Ok(numerator.to_string()));
    }
}
