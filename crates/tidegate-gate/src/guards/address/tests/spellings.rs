//! No spelling of an address inside passes.

use super::*;

/// The spellings of an IPv4 address that resolvers and libraries take.
fn spellings(address: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = address.octets();
    let bits = address.to_bits();
    let low24 = bits & 0x00ff_ffff;
    let low16 = bits & 0xffff;
    let mapped = address.to_ipv6_mapped();
    let [high, low] = [bits >> 16, low16];
    vec![
        address.to_string(),
        format!("{address}."),
        bits.to_string(),
        format!("{bits:#x}"),
        format!("{bits:#X}").replace("0X", "0x"),
        format!("0{bits:o}"),
        format!("{a}.{low24}"),
        format!("{a}.{b}.{low16}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("{a:#x}.0{b:o}.{low16}"),
        format!("0000{a:o}.{b}.{c}.{d:#06x}"),
        format!("{a}%2e{b}%2E{c}。{d}"),
        format!("[{mapped}]"),
        format!("[::ffff:{high:x}:{low:x}]"),
        format!("[0:0:0:0:0:FFFF:{high:04X}:{low:04X}]"),
        format!("[64:ff9b::{high:x}:{low:x}]"),
        format!("[2002:{high:x}:{low:x}::1]"),
    ]
}

fn inside() -> impl Strategy<Value = Ipv4Addr> {
    prop_oneof![
        (0x7f00_0000_u32..=0x7fff_ffff),
        (0x0a00_0000_u32..=0x0aff_ffff),
        (0xac10_0000_u32..=0xac1f_ffff),
        (0xc0a8_0000_u32..=0xc0a8_ffff),
        (0xa9fe_0000_u32..=0xa9fe_ffff),
        (0x6440_0000_u32..=0x647f_ffff),
        (0xc612_0000_u32..=0xc613_ffff),
        (0xe000_0000_u32..=0xffff_ffff),
        (0x0000_0000_u32..=0x00ff_ffff),
    ]
    .prop_map(Ipv4Addr::from_bits)
}

proptest! {
    #[test]
    fn no_spelling_of_an_address_inside_passes(address in inside(), allow_private in any::<bool>()) {
        let policy = policy(|options| {
            options.ssrf_allow_private = allow_private;
            options.ssrf_allow_hosts = strings(&["other.internal"]);
        });
        let is_openable = classify(address.into()).err().is_some_and(AddressFault::is_private);
        for host in spellings(address) {
            let passes = policy.check(&format!("http://{host}/")).is_ok();
            prop_assert!(!passes || allow_private && is_openable && !host.starts_with('['), "{}", host);
        }
        let named = policy.check("http://a.example/").unwrap();
        for answer in [IpAddr::V4(address), IpAddr::V6(address.to_ipv6_mapped())] {
            prop_assert!(policy.reach(named.clone(), &[answer]).is_err() || allow_private && is_openable);
        }
    }

    #[test]
    fn only_global_unicast_passes_in_version_six(bits in any::<u128>()) {
        let address = Ipv6Addr::from_bits(bits);
        if classify(address.into()).is_ok() {
            prop_assert!(address.segments()[0] >> 13 == 1 || address.to_ipv4_mapped().is_some()
                || address.segments()[..2] == [0x64, 0xff9b]);
        }
    }

    #[test]
    fn any_text_is_judged_and_what_passes_is_normal(text in ".{0,80}", host in "[a-zA-Z0-9.%@:\\[\\]-]{0,30}") {
        let policy = Policy::default();
        for url in [text.clone(), format!("http://{text}/"), format!("https://{host}/{text}")] {
            if let Ok(destination) = policy.check(&url) {
                let again = policy.check(destination.as_str()).unwrap();
                prop_assert_eq!(again.as_str(), destination.as_str());
                prop_assert!(!destination.host_text().ends_with('.'));
                prop_assert!(!destination.as_str().contains('@') || !destination.authority().contains('@'));
            }
        }
        let _remote = policy.check_remote(&text).is_ok();
    }
}
