//! Which addresses are somewhere on the public Internet.
//!
//! The tables are IANA's special-purpose registries (RFC 6890 and its successors) read strictly: what is not
//! globally routable unicast is refused. Addresses that carry an IPv4 address inside are judged by that one.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Why an address is none of the public Internet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AddressFault {
    /// This very machine.
    Loopback,
    /// A private network: RFC 1918, or unique local addresses (RFC 4193).
    Private,
    /// Shared address space of carriers and overlay networks (RFC 6598).
    Shared,
    /// Set aside for benchmarks (RFC 2544); some proxies number their names here.
    Benchmarking,
    /// Set aside for documentation.
    Documentation,
    /// The link this machine stands on. Clouds serve credentials here.
    LinkLocal,
    /// A cloud's own service for its machines.
    Metadata,
    /// No address at all.
    Unspecified,
    /// Many machines, or all of them.
    Multicast,
    /// Held back, or for protocols alone.
    Reserved,
    /// It carries an address that is none of the public Internet, or one that cannot be seen.
    Tunnel,
}

impl AddressFault {
    /// What `ssrf_allow_private` opens.
    pub(super) fn is_private(self) -> bool {
        match self {
            Self::Loopback | Self::Private | Self::Shared => true,
            Self::Benchmarking
            | Self::Documentation
            | Self::LinkLocal
            | Self::Metadata
            | Self::Unspecified
            | Self::Multicast
            | Self::Reserved
            | Self::Tunnel => false,
        }
    }

    /// What a host on the operator's list may have.
    pub(super) fn can_be_opened(self) -> bool {
        match self {
            Self::Loopback | Self::Private | Self::Shared | Self::Benchmarking | Self::Documentation => true,
            Self::LinkLocal
            | Self::Metadata
            | Self::Unspecified
            | Self::Multicast
            | Self::Reserved
            | Self::Tunnel => false,
        }
    }

    /// In words, after "is".
    pub fn in_words(self) -> &'static str {
        match self {
            Self::Loopback => "this machine itself",
            Self::Private => "in a private network",
            Self::Shared => "in a carrier's or overlay network",
            Self::Benchmarking => "set aside for benchmarks",
            Self::Documentation => "set aside for documentation",
            Self::LinkLocal => "on the local link",
            Self::Metadata => "a cloud's own service",
            Self::Unspecified => "no address of a machine",
            Self::Multicast => "a group of machines",
            Self::Reserved => "reserved",
            Self::Tunnel => "one with another address inside",
        }
    }
}

/// Services of clouds for their own machines that do not stand on the local link.
const METADATA_V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(192, 0, 0, 192),
];

/// The same in IPv6: networks as (first bits, how many).
const METADATA_V6: [(Ipv6Addr, u32); 3] = [
    (Ipv6Addr::new(0xfd00, 0x0ec2, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0xfd20, 0x00ce, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0xfd00, 0x0042, 0, 0, 0, 0, 0, 0), 32),
];

const V4: [(Ipv4Addr, u32, AddressFault); 17] = {
    use AddressFault::{
        Benchmarking, Documentation, LinkLocal, Loopback, Multicast, Private, Reserved, Shared, Unspecified,
    };
    [
        (Ipv4Addr::UNSPECIFIED, 8, Unspecified),
        (Ipv4Addr::new(10, 0, 0, 0), 8, Private),
        (Ipv4Addr::new(100, 64, 0, 0), 10, Shared),
        (Ipv4Addr::new(127, 0, 0, 0), 8, Loopback),
        (Ipv4Addr::new(169, 254, 0, 0), 16, LinkLocal),
        (Ipv4Addr::new(172, 16, 0, 0), 12, Private),
        (Ipv4Addr::new(192, 0, 0, 0), 24, Reserved),
        (Ipv4Addr::new(192, 0, 2, 0), 24, Documentation),
        // Anycast of the 6to4 relays, withdrawn (RFC 7526).
        (Ipv4Addr::new(192, 88, 99, 0), 24, Reserved),
        (Ipv4Addr::new(192, 168, 0, 0), 16, Private),
        (Ipv4Addr::new(198, 18, 0, 0), 15, Benchmarking),
        (Ipv4Addr::new(198, 51, 100, 0), 24, Documentation),
        (Ipv4Addr::new(203, 0, 113, 0), 24, Documentation),
        (Ipv4Addr::new(233, 252, 0, 0), 24, Documentation),
        (Ipv4Addr::new(224, 0, 0, 0), 4, Multicast),
        (Ipv4Addr::BROADCAST, 32, Multicast),
        (Ipv4Addr::new(240, 0, 0, 0), 4, Reserved),
    ]
};

const V6: [(Ipv6Addr, u32, AddressFault); 13] = {
    use AddressFault::{Documentation, LinkLocal, Multicast, Private, Reserved, Tunnel};
    [
        // NAT64 with a prefix of the operator's own (RFC 8215): where the IPv4 address stands is not known.
        (Ipv6Addr::new(0x64, 0xff9b, 1, 0, 0, 0, 0, 0), 48, Tunnel),
        // Discard only, and its dummy twin (RFC 6666, RFC 9780).
        (Ipv6Addr::new(0x100, 0, 0, 0, 0, 0, 0, 0), 32, Reserved),
        // Teredo (RFC 4380).
        (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 32, Tunnel),
        // The IETF's own protocols, benchmarks and overlay identifiers among them (RFC 2928).
        (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23, Reserved),
        (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32, Documentation),
        (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20, Documentation),
        // The first IPv6 network, given back (RFC 3701).
        (Ipv6Addr::new(0x3ffe, 0, 0, 0, 0, 0, 0, 0), 16, Reserved),
        // Segment routing (RFC 9602).
        (Ipv6Addr::new(0x5f00, 0, 0, 0, 0, 0, 0, 0), 16, Reserved),
        (Ipv6Addr::new(0xfc00, 0, 0, 0, 0, 0, 0, 0), 7, Private),
        (Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0), 10, LinkLocal),
        // Site-local, withdrawn (RFC 3879).
        (Ipv6Addr::new(0xfec0, 0, 0, 0, 0, 0, 0, 0), 10, Reserved),
        (Ipv6Addr::new(0xff00, 0, 0, 0, 0, 0, 0, 0), 8, Multicast),
        // SIIT's translated form (RFC 2765), withdrawn.
        (Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, 0, 0), 96, Tunnel),
    ]
};

/// Whether the address is globally routable unicast.
pub fn classify(address: IpAddr) -> Result<(), AddressFault> {
    match address {
        IpAddr::V4(address) => v4(address),
        IpAddr::V6(address) => v6(address),
    }
}

/// An IPv4 address that was written as an IPv6 one (`::ffff:a.b.c.d`), as IPv4.
pub(super) fn unwrapped(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

fn v4(address: Ipv4Addr) -> Result<(), AddressFault> {
    if METADATA_V4.contains(&address) {
        return Err(AddressFault::Metadata);
    }
    let bits = address.to_bits();
    for (network, length, fault) in V4 {
        if (bits ^ network.to_bits()) >> (32 - length) == 0 {
            return Err(fault);
        }
    }
    Ok(())
}

fn v6(address: Ipv6Addr) -> Result<(), AddressFault> {
    if address.is_unspecified() {
        return Err(AddressFault::Unspecified);
    }
    if address.is_loopback() {
        return Err(AddressFault::Loopback);
    }
    let [first, second, third, fourth, fifth, sixth, seventh, eighth] = address.segments();
    let low = u32::from(seventh) << 16 | u32::from(eighth);
    let embedded = match (first, second, third, fourth, fifth, sixth) {
        // Mapped (RFC 4291 §2.5.5.2), and NAT64's well-known prefix (RFC 6052 §2.1).
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => Some(low),
        // Compatible (RFC 4291 §2.5.5.1), withdrawn: no such address is routed.
        (0, 0, 0, 0, 0, 0) => return Err(AddressFault::Tunnel),
        // 6to4 (RFC 3056).
        (0x2002, ..) => Some(u32::from(second) << 16 | u32::from(third)),
        _ => None,
    };
    // ISATAP (RFC 5214 §6.1): the interface identifier is an IPv4 address, in any network.
    if matches!(fifth, 0 | 0x200 | 0x100 | 0x300) && sixth == 0x5efe {
        return Err(AddressFault::Tunnel);
    }
    if let Some(inside) = embedded {
        return v4(Ipv4Addr::from_bits(inside)).map_err(|_inside| AddressFault::Tunnel);
    }
    let bits = address.to_bits();
    let is_in = |network: Ipv6Addr, length: u32| (bits ^ network.to_bits()) >> (128 - length) == 0;
    if METADATA_V6
        .iter()
        .any(|(network, length)| is_in(*network, *length))
    {
        return Err(AddressFault::Metadata);
    }
    for (network, length, fault) in V6 {
        if is_in(network, length) {
            return Err(fault);
        }
    }
    // Global unicast as it is given out so far (RFC 4291 §2.4).
    if first >> 13 == 1 {
        Ok(())
    } else {
        Err(AddressFault::Reserved)
    }
}
