use super::*;
use crate::shell::syntax::Command;

fn words(line: &str) -> Vec<String> {
    let read = read(line, 0).unwrap_or_else(|fault| panic!("{line:?}: {fault:?}"));
    let Command::Simple { words, .. } = &read.script.items[0].first.stages[0].command else {
        panic!("{line:?}");
    };
    words
        .iter()
        .map(|word| word.literal().unwrap_or_else(|| "?".to_owned()))
        .collect()
}

#[test]
fn words_lose_their_quotes_as_the_shell_takes_them() {
    for (line, expected) in [
        ("cat note\"s.t\"xt", vec!["cat", "notes.txt"]),
        ("r\\m a", vec!["rm", "a"]),
        ("r$''m a", vec!["rm", "a"]),
        ("$'\\x72m' $'\\162' $'a\\tb'", vec!["rm", "r", "a\tb"]),
        (
            "echo 'a; b' \"c | d\" e\\;f",
            vec!["echo", "a; b", "c | d", "e;f"],
        ),
        ("git \\\n push", vec!["git", "push"]),
        ("git pu\\\nsh", vec!["git", "push"]),
        ("echo \"a\\$b\\c\" # d", vec!["echo", "a$b\\c"]),
        ("echo a#b", vec!["echo", "a#b"]),
        ("{git,push}", vec!["git", "push"]),
        (
            "echo a{b,c}d {1..3} {x}",
            vec!["echo", "abd", "acd", "1", "2", "3", "{x}"],
        ),
        ("grep -F '$(' a", vec!["grep", "-F", "$(", "a"]),
        ("ls a\rb", vec!["ls", "a\rb"]),
        ("test a [ ]", vec!["test", "a", "[", "]"]),
    ] {
        assert_eq!(words(line), expected, "{line}");
    }
}

#[test]
fn everything_the_shell_can_read_is_read() {
    for line in [
        "for f in a b; do echo $f; done",
        "for f\ndo echo; done",
        "for ((i=0;i<3;i++)); do echo $i; done",
        "while :; do :; done",
        "until false; do break; done < x",
        "if a; then b; elif c; then d; else e; fi > out",
        "case x in a|b) c;; (d) e ;; *) f; esac",
        "case x in\n a)\n b\n ;;\nesac",
        "f() { echo hi; }; f",
        "function g { echo; }",
        "function g() ( echo )",
        ":(){ :|:& };:",
        "[[ -f x && $a =~ ^(b|c)+$ ]] && echo",
        "[[ ( -n $x ) || ! -e y ]]",
        "[[ $x == *.md ]]",
        "(( i++ )) || true",
        "a=(1 2 $(x) \"y z\"); echo ${a[@]}",
        "a[1]=x b+=y cmd",
        "declare -a a=(1 2)",
        "echo $((1+2)) $(( $(x) * 2 )) $[3+4]",
        "echo ${x:-a b} ${x##*/} ${#x} ${!x} ${x//a/b} ${x@P} \"${x:-'}\"",
        "cat <<E\nfoo $x `y`\nE",
        "cat <<'E' | sh\nfoo $x `\nE\necho",
        "cat <<-E\n\tx\n\tE",
        "cat <<A <<B\n1\nA\n2\nB",
        "diff <(a) <(b | c) > >(d)",
        "exec 3> x 4<&- {fd}>y 2>&1 &>z",
        "coproc N { a; }",
        "coproc a b",
        "time -p ls | wc; ! grep -q x y",
        "echo $( (a) ; b ) $((a) | b)",
        "a && b || c & d; e &",
        "{ a; b; } 2>&1 | c |& d",
        "( ( a ) )",
        "select x in a; do b; done <<< 1",
        "x=1 y=\"$z\" cmd",
        "ls # comment\ntouch x",
        "echo `echo \\`date\\``",
        "> log git push",
        "echo } { ] if",
    ] {
        assert!(read(line, 0).is_ok(), "{line:?}: {:?}", read(line, 0).err());
    }
}

#[test]
fn what_is_broken_is_not_read() {
    for line in [
        "echo 'a",
        "echo \"a",
        "echo `a",
        "echo $(a",
        "ls &&",
        "{ ls",
        "ls > ",
        "done",
        "ls ;; pwd",
        "if true; then ls",
        "case x in",
        "cat <<E\nno end",
        "( )",
        "a | ",
        "& a",
        "; a",
        "a ; ; b",
        "a )",
        "for x in",
        "echo ${x",
        "a <<<",
        "\\",
        "a (b",
        "{ }",
        "while; do a; done",
    ] {
        assert!(read(line, 0).is_err(), "{line:?}");
    }
}

#[test]
fn nesting_and_words_have_a_bound() {
    let deep = format!("{}ls{}", "(".repeat(600), ")".repeat(600));
    assert!(matches!(read(&deep, 0), Err(Fault::Depth)));
    let deep = format!("{}ls;{}", "{ ".repeat(300), " }".repeat(300));
    assert!(matches!(read(&deep, 0), Err(Fault::Depth)));
    let deep = format!("echo {}x{}", "$(echo ".repeat(40), ")".repeat(40));
    assert!(matches!(read(&deep, 0), Err(Fault::Depth)));
    let deep = format!("echo {}x{}", "${a:-".repeat(40), "}".repeat(40));
    assert!(matches!(read(&deep, 0), Err(Fault::Depth)));
    assert!(matches!(read(&"a ".repeat(401), 0), Err(Fault::Words)));
    assert!(matches!(read(&"ls;".repeat(401), 0), Err(Fault::Words)));
}
