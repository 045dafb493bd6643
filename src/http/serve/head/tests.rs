use proptest::prelude::*;

use super::*;

const HEAD: &[u8] = b"GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n";

/// Shows a watch the bytes in pieces of a length and asks for its verdict.
fn verdict(bytes: &[u8], piece: usize) -> Verdict {
    let watch = Watch::default();
    for part in bytes.chunks(piece) {
        watch.see(part);
    }
    watch.take(Some(0))
}

#[test]
fn a_line_feed_alone_is_seen_wherever_it_stands_and_however_it_arrives() {
    let table: [(&[u8], Verdict); 9] = [
        (HEAD, Verdict::Sound),
        (b"\r\n\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", Verdict::Sound),
        (b"GET / HTTP/1.1\nHost: x\r\n\r\n", Verdict::Unsound),
        (b"GET / HTTP/1.1\r\nHost: x\n\r\n", Verdict::Unsound),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\n", Verdict::Unsound),
        (b"GET / HTTP/1.1\nHost: x\n\n", Verdict::Unsound),
        (b"\nGET / HTTP/1.1\r\nHost: x\r\n\r\n", Verdict::Unsound),
        (b"GET / HTTP/1.1\r\nA: \r\r\n\r\n", Verdict::Sound),
        (b"GET / HTTP/1.1\r\nHost: x\r\n", Verdict::Unsound),
    ];
    for (bytes, expected) in table {
        for piece in 1..=bytes.len() {
            let text = String::from_utf8_lossy(bytes);
            assert_eq!(verdict(bytes, piece), expected, "{text:?} in pieces of {piece}");
        }
    }
}

#[test]
fn a_body_may_hold_what_it_likes_and_the_head_behind_it_may_not() {
    let body = b"a\nb\n\nc";
    let mut bytes = HEAD.to_vec();
    bytes.extend_from_slice(body);
    bytes.extend_from_slice(HEAD);
    bytes.extend_from_slice(b"GET / HTTP/1.1\nHost: x\r\n\r\n");
    for piece in 1..=bytes.len() {
        let watch = Watch::default();
        let mut verdicts = Vec::new();
        for part in bytes.chunks(piece) {
            watch.see(part);
            // As hyper does: it takes a request as soon as its head is whole, pipelined ones later.
            while verdicts.len() < 3 && watch.has_ended() {
                let body_bytes = if verdicts.is_empty() { body.len() as u64 } else { 0 };
                verdicts.push(watch.take(Some(body_bytes)));
            }
        }
        assert_eq!(
            verdicts,
            [Verdict::Sound, Verdict::Sound, Verdict::Unsound],
            "in pieces of {piece}"
        );
    }
}

#[test]
fn what_was_not_followed_is_not_called_sound() {
    let watch = Watch::default();
    watch.see(HEAD);
    assert_eq!(watch.take(None), Verdict::Sound);
    watch.see(HEAD);
    assert_eq!(watch.take(Some(0)), Verdict::Unsound);

    let watch = Watch::default();
    watch.see(HEAD);
    watch.see(&vec![b'a'; AHEAD_BYTES_MAX + 1]);
    assert_eq!(watch.take(Some(1 << 20)), Verdict::Unsound);
}

#[test]
fn bodies_are_not_kept() {
    let watch = Watch::default();
    watch.see(HEAD);
    assert_eq!(watch.take(Some(1 << 30)), Verdict::Sound);
    let body = "\n".repeat(1 << 16);
    for _ in 0..8 {
        watch.see(body.as_bytes());
    }
    assert_eq!(watch.0.lock().unwrap().ahead.capacity(), 0);
}

impl Watch {
    fn has_ended(&self) -> bool {
        matches!(self.0.lock().unwrap().place, Place::Ended(_))
    }
}

proptest! {
    /// Against the rule in its plainest form, over heads made of the bytes that matter.
    #[test]
    fn the_verdict_is_that_of_the_plain_rule(lines in prop::collection::vec("[a-z:\\r]{1,4}", 1..6), ends in prop::collection::vec(any::<bool>(), 6), piece in 1_usize..9) {
        let mut head = Vec::new();
        for (line, crlf) in lines.iter().map(|line| format!("x{}", line.trim_end_matches('\r'))).chain([String::new()]).zip(&ends) {
            head.extend_from_slice(line.as_bytes());
            head.extend_from_slice(if *crlf { b"\r\n" } else { b"\n" });
        }
        let bare = (0..head.len()).any(|at| head[at] == b'\n' && (at == 0 || head[at - 1] != b'\r'));
        let expected = if bare { Verdict::Unsound } else { Verdict::Sound };
        prop_assert_eq!(verdict(&head, piece), expected);
    }
}
