mod remotes;
mod spellings;

use std::net::{Ipv4Addr, Ipv6Addr};

use proptest::prelude::*;

use super::*;

fn policy(adjust: impl FnOnce(&mut Options)) -> Policy {
    let mut options = Options::default();
    adjust(&mut options);
    Policy::compile(&options).unwrap()
}

fn strings(list: &[&str]) -> Vec<String> {
    list.iter().map(|&text| text.to_owned()).collect()
}

fn code(policy: &Policy, url: &str) -> &'static str {
    policy.check(url).map_or_else(|fault| fault.code(), |_| "ok")
}

#[test]
fn reads_an_address_in_one_way_only() {
    let policy = Policy::default();
    for (url, expected) in [
        ("https://a.example/b?c=d#e", "ok"),
        ("HTTP://A.EXAMPLE./", "ok"),
        ("http://a.example:/", "ok"),
        ("http://a.example:080/", "ok"),
        ("http://a.example?@127.0.0.1/", "ok"),
        ("http://a.example/@127.0.0.1", "ok"),
        ("http://a.example/a b/é", "ok"),
        ("http://a_b.example/", "ok"),
        ("https://münchen.example/", "ok"),
        ("http://8.8.8.8/", "ok"),
        ("http://a.example:0/", "url_malformed"),
        ("http://a.example:65536/", "url_malformed"),
        ("http://a.example:-1/", "url_malformed"),
        ("http://a.example:80:80/", "url_malformed"),
        ("http:a.example/", "url_malformed"),
        ("http:/a.example/", "url_malformed"),
        ("http:///a.example/", "url_malformed"),
        ("http://?", "url_malformed"),
        ("http://", "url_malformed"),
        ("", "url_malformed"),
        ("//a.example/", "url_malformed"),
        ("a.example/", "url_malformed"),
        ("a.example:80/", "url_scheme"),
        (" http://a.example/", "url_malformed"),
        ("http://a.example/ ", "url_malformed"),
        ("http://a.example/\u{a0}", "url_malformed"),
        ("http://a.exa\tmple/", "url_malformed"),
        ("http://a.example/\u{85}", "url_malformed"),
        ("http://a.example\\@127.0.0.1/", "url_malformed"),
        ("http://a.example?\\@127.0.0.1/", "url_malformed"),
        ("http://a\u{202e}b.example/", "url_malformed"),
        ("http://a,b.example/", "url_malformed"),
        ("http://a..example/", "url_malformed"),
        ("http://.example.com/", "url_malformed"),
        ("http://a.example../", "url_malformed"),
        ("http://a%2fb.example/", "url_malformed"),
        ("http://a%40b.example/", "url_malformed"),
        ("http://a%00.example/", "url_malformed"),
        ("http://a％2fb.example/", "url_malformed"),
        ("http://a／b.example/", "url_malformed"),
        ("http://a＠b.example/", "url_malformed"),
        ("http://[fe80::1%25eth0]/", "url_malformed"),
        ("http://[::1", "url_malformed"),
        ("http://u@a.example/", "url_credentials"),
        ("http://:@a.example/", "url_credentials"),
        ("http://@a.example/", "url_credentials"),
        ("file:///etc/passwd", "url_scheme"),
        ("gopher://a.example/", "url_scheme"),
        ("javascript:alert(1)", "url_scheme"),
        ("view-source:http://a.example/", "url_scheme"),
    ] {
        assert_eq!(code(&policy, url), expected, "{url}");
    }
    let long = format!("http://a.example/{}", "a".repeat(URL_BYTES_MAX));
    assert_eq!(code(&policy, &long), "url_malformed");
}

#[test]
fn names_inside_are_refused_in_every_spelling() {
    let policy = Policy::default();
    for url in [
        "localhost",
        "LOCALHOST.",
        "a.localhost",
        "router",
        "com",
        "com.",
        "printer.local",
        "x.home.arpa",
        "kubernetes.default.svc",
        "host.docker.internal",
        "loc%61lhost",
        "ⓛⓞⓒⓐⓛⓗⓞⓢⓣ",
        "localhost%2e",
    ] {
        assert_eq!(code(&policy, &format!("http://{url}/")), "local_name", "{url}");
    }
    for url in [
        "metadata.google.internal",
        "metadata",
        "instance-data",
        "METADATA.tencentyun.com.",
    ] {
        assert_eq!(
            code(&policy, &format!("http://{url}/")),
            "metadata_service",
            "{url}"
        );
    }
}

#[test]
fn addresses_inside_are_refused_in_every_spelling() {
    let policy = Policy::default();
    for host in [
        "127.0.0.1",
        "127.1",
        "0177.0.0.1",
        "0x7f.1",
        "2130706433",
        "017700000001",
        "127.0.0.1.",
        "①②⑦.0.0.1",
        "127。0。0。1",
        "%31%32%37.0.0.1",
        "127.0.0.1\u{ad}",
        "0",
        "0x0",
        "169.254.169.254",
        "0xa9fea9fe",
        "10.0.0.1",
        "012.1",
        "172.31.255.255",
        "192.168.0.1",
        "100.64.0.1",
        "100.100.100.200",
        "192.0.0.192",
        "198.18.0.1",
        "198.51.100.1",
        "203.0.113.1",
        "192.0.2.1",
        "192.88.99.1",
        "224.0.0.1",
        "240.0.0.1",
        "255.255.255.255",
        "168.63.129.16",
        "[::]",
        "[::1]",
        "[::ffff:127.0.0.1]",
        "[::ffff:127.1]",
        "[::FFFF:7f00:1]",
        "[::127.0.0.1]",
        "[::ffff:0:127.0.0.1]",
        "[64:ff9b::7f00:1]",
        "[64:ff9b::10.0.0.1]",
        "[64:ff9b:1::808:808]",
        "[2002:7f00:1::]",
        "[2002:a00:1::1]",
        "[2001:0:53aa:64c::1]",
        "[2606:4700::5efe:127.0.0.1]",
        "[2606:4700::200:5efe:808:808]",
        "[fe80::1]",
        "[fec0::1]",
        "[fc00::1]",
        "[fd00:ec2::254]",
        "[ff02::1]",
        "[100::1]",
        "[2001:db8::1]",
        "[3fff::1]",
        "[5f00::1]",
        "[2001:2::1]",
        "[2001:10::1]",
        "[4000::1]",
        "[e000::1]",
    ] {
        let url = format!("http://{host}/");
        let fault = policy.check(&url).unwrap_err();
        assert!(
            matches!(fault, Fault::Address { .. } | Fault::Malformed(_)),
            "{url}: {fault:?}"
        );
    }
}

#[test]
fn addresses_of_the_public_internet_pass() {
    let policy = Policy::default();
    for host in [
        "8.8.8.8",
        "9.255.255.255",
        "11.0.0.0",
        "100.63.255.255",
        "100.128.0.0",
        "126.255.255.255",
        "128.0.0.1",
        "169.253.255.255",
        "172.15.255.255",
        "172.32.0.1",
        "192.169.0.1",
        "198.17.255.255",
        "198.20.0.0",
        "223.255.255.254",
        "[2001:4860:4860::8888]",
        "[2606:4700:4700::1111]",
        "[::ffff:8.8.8.8]",
        "[64:ff9b::808:808]",
        "[2a00:1450::1]",
    ] {
        assert_eq!(code(&policy, &format!("http://{host}/")), "ok", "{host}");
    }
}

#[test]
fn a_listed_host_is_opened_exactly() {
    let policy = policy(|options| {
        options.ssrf_allow_hosts = strings(&[
            "192.168.2.3",
            "10.0.0.5:9200",
            "Search.Internal.",
            "[fd00::5]:80",
            "fd00::6",
            "localhost:3000",
        ]);
    });
    for (url, is_open) in [
        ("http://192.168.2.3/", true),
        ("http://192.168.2.3:8888/", true),
        ("http://3232236035/", true),
        ("http://192.168.2.4/", false),
        ("http://[::ffff:192.168.2.3]/", false),
        ("http://10.0.0.5:9200/", true),
        ("http://10.0.0.5/", false),
        ("http://search.internal/", true),
        ("http://x.search.internal/", false),
        ("http://[fd00::5]/", true),
        ("http://[fd00::5]:81/", false),
        ("http://[fd00:0::6]:81/", true),
        ("http://localhost:3000/", true),
        ("http://localhost/", false),
        ("file://192.168.2.3/", false),
    ] {
        assert_eq!(policy.check(url).is_ok(), is_open, "{url}");
    }
    let listed = policy.check("http://search.internal/").unwrap();
    assert!(
        policy
            .reach(listed.clone(), &["10.9.9.9".parse().unwrap()])
            .unwrap()
            .is_inside()
    );
    assert!(
        policy
            .reach(listed, &["169.254.169.254".parse().unwrap()])
            .is_err()
    );
    let other = policy.check("http://other.example/").unwrap();
    assert!(policy.reach(other, &["192.168.2.3".parse().unwrap()]).is_err());
}

#[test]
fn private_addresses_opened_to_all_open_nothing_else() {
    let policy = policy(|options| {
        options.ssrf_allow_private = true;
        options.own_listeners = vec!["127.0.0.1:7007".parse().unwrap(), "0.0.0.0:7008".parse().unwrap()];
    });
    for (url, expected) in [
        ("http://192.168.1.1/", "ok"),
        ("http://localhost:3000/", "ok"),
        ("http://127.0.0.1/", "ok"),
        ("http://[::1]/", "ok"),
        ("http://100.64.0.1/", "ok"),
        ("http://169.254.169.254/", "address_not_public"),
        ("http://100.100.100.200/", "address_not_public"),
        ("http://168.63.129.16/", "address_not_public"),
        ("http://[fd00:ec2::254]/", "address_not_public"),
        ("http://metadata.google.internal/", "metadata_service"),
        ("http://0.0.0.0/", "address_not_public"),
        ("http://[::ffff:10.0.0.1]/", "address_not_public"),
        ("file:///etc/hostname", "url_scheme"),
        ("http://127.0.0.1:7007/", "own_listener"),
        ("http://[::1]:7007/", "own_listener"),
        ("http://127.9.9.9:7008/", "own_listener"),
        ("http://[::ffff:127.0.0.1]:7007/", "own_listener"),
        ("http://0.0.0.0:7008/", "own_listener"),
    ] {
        assert_eq!(code(&policy, url), expected, "{url}");
    }
    let here = policy.check("http://localhost:7007/").unwrap();
    assert_eq!(
        policy.reach(here, &["127.0.0.1".parse().unwrap()]),
        Err(Fault::OwnListener)
    );
}

#[test]
fn a_row_opens_the_place_inside_that_it_names_and_nothing_else() {
    let policy = policy(|options| options.own_listeners = vec!["127.0.0.1:7007".parse().unwrap()]);
    let named = |url: &str, base: &str| policy.check_named(url, base).is_ok();
    assert!(named("http://127.0.0.1:9000/a?b=c", "http://127.0.0.1:9000"));
    assert!(named("http://printer.local/a", "http://printer.local"));
    assert!(!named("http://127.0.0.1:9001/", "http://127.0.0.1:9000"));
    assert!(!named("http://10.0.0.1/", "http://127.0.0.1"));
    assert!(!named("http://169.254.169.254/", "http://169.254.169.254"));
    assert!(!named("http://127.0.0.1:7007/", "http://127.0.0.1:7007"));
    let public = policy
        .check_named("https://api.example/x", "https://api.example")
        .unwrap();
    assert!(policy.reach(public, &["127.0.0.1".parse().unwrap()]).is_err());
}

#[test]
fn every_address_of_an_answer_must_pass() {
    let policy = Policy::default();
    let reach = |answers: &[&str]| {
        let destination = policy.check("http://a.example:8080/").unwrap();
        let answers: Vec<IpAddr> = answers.iter().map(|answer| answer.parse().unwrap()).collect();
        policy.reach(destination, &answers)
    };
    let reached = reach(&["93.184.216.34", "2606:4700::1", "93.184.216.34"]).unwrap();
    assert_eq!(
        reached.addresses(),
        [
            "93.184.216.34:8080".parse().unwrap(),
            "[2606:4700::1]:8080".parse().unwrap()
        ]
    );
    assert!(reach(&["93.184.216.34", "::1"]).is_err());
    assert!(reach(&["10.0.0.1", "93.184.216.34"]).is_err());
    assert!(reach(&[]).is_err());
    assert!(reach(&["93.184.216.34"; ANSWERS_MAX + 1]).is_err());
    // A literal is its own answer, whatever a resolver says.
    let literal = policy.check("http://8.8.8.8/").unwrap();
    let reached = policy.reach(literal, &["1.1.1.1".parse().unwrap()]).unwrap();
    assert_eq!(reached.addresses(), ["8.8.8.8:80".parse().unwrap()]);
}

#[test]
fn redirects_are_read_and_judged_like_any_url() {
    let policy = policy(|options| {
        options.ssrf_allow_hosts = strings(&["10.0.0.5:9200", "10.0.0.6"]);
        options.blocked_domains = strings(&["bad.example"]);
    });
    let reach = |url: &str, answer: &str| {
        policy
            .reach(policy.check(url).unwrap(), &[answer.parse().unwrap()])
            .unwrap()
    };
    let outside = reach("http://a.example/b/c?d", "93.184.216.34");
    let follow = |location: &str| {
        policy.follow(&outside, location).map_or_else(
            |fault| fault.code().to_owned(),
            |target| target.as_str().to_owned(),
        )
    };
    for (location, expected) in [
        ("/x", "http://a.example/x"),
        ("x?y#z", "http://a.example/b/x?y"),
        ("?q=http://127.0.0.1/", "http://a.example/b/c?q=http://127.0.0.1/"),
        ("//two.example/x", "http://two.example/x"),
        ("HTTPS://TWO.example./", "https://two.example/"),
        ("../../../x", "http://a.example/x"),
        ("//127.0.0.1/", "address_not_public"),
        ("///127.0.0.1/", "url_malformed"),
        ("////127.0.0.1/", "url_malformed"),
        ("/\\127.0.0.1/", "url_malformed"),
        ("http:127.0.0.1", "url_malformed"),
        ("http:/127.0.0.1", "url_malformed"),
        ("http://0x7f000001/", "address_not_public"),
        ("http://u:p@two.example/", "url_credentials"),
        ("//u@two.example/", "url_credentials"),
        ("data:text/plain,x", "url_scheme"),
        ("file:///etc/passwd", "url_scheme"),
        ("http://two.example/\r\nX: y", "url_malformed"),
        ("", "url_malformed"),
        ("http://bad.example/", "domain_blocked"),
        ("http://localhost/", "local_name"),
        ("http://10.0.0.5:9200/", "address_not_public"),
        ("http://10.0.0.6/", "address_not_public"),
    ] {
        assert_eq!(follow(location), expected, "{location}");
    }
    let inside = reach("http://10.0.0.5:9200/", "10.0.0.5");
    assert!(policy.follow(&inside, "http://10.0.0.6/").is_ok());
    assert!(policy.follow(&inside, "http://10.0.0.5:22/").is_err());
    let encrypted = reach("https://a.example/", "93.184.216.34");
    assert_eq!(
        policy.follow(&encrypted, "http://a.example/"),
        Err(Fault::Downgrade)
    );
    assert!(policy.follow(&encrypted, "/x").is_ok());
}

#[test]
fn a_blocked_domain_is_blocked_however_it_is_written() {
    let policy = policy(|options| options.blocked_domains = strings(&["pastebin.example"]));
    for (host, expected) in [
        ("pastebin.example", "domain_blocked"),
        ("PASTEBIN.example", "domain_blocked"),
        ("x.pastebin.example", "domain_blocked"),
        ("pastebin.example.", "domain_blocked"),
        ("ｐastebin.example", "domain_blocked"),
        ("paste\u{ad}bin.example", "domain_blocked"),
        ("pastebin%2eexample", "domain_blocked"),
        ("pastebin。example", "domain_blocked"),
        ("pastebin.example:8443", "domain_blocked"),
        ("pastebin.example@ok.example", "url_credentials"),
        ("notpastebin.example", "ok"),
        ("pastebin.example.other.example", "ok"),
    ] {
        assert_eq!(code(&policy, &format!("http://{host}/")), expected, "{host}");
    }
}

#[test]
fn entries_are_read_or_refused() {
    let compile = |entry: &str| {
        Policy::compile(&Options {
            ssrf_allow_hosts: vec![entry.to_owned()],
            ..Options::default()
        })
    };
    for entry in [
        "",
        "*",
        "10.0.0.0/8",
        "http://a.internal",
        "a.internal:",
        "a.internal:x",
        "a.internal:0",
        "a.internal:65536",
        "u@a.internal",
        "169.254.169.254",
        "metadata.google.internal",
        "0.0.0.0",
        "[::1",
        "a b",
        "*.internal",
    ] {
        assert!(compile(entry).is_err(), "{entry}");
    }
    for entry in [
        "a.internal",
        "10.0.0.1:80",
        "[::1]:80",
        "::1",
        "[::1]",
        "localhost",
    ] {
        assert!(compile(entry).is_ok(), "{entry}");
    }
}
