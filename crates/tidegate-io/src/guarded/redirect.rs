//! What of a request goes on to the target of a redirect (RFC 9110 §15.4).

use tidegate_gate::guards::address::Destination;

use super::{Error, Hop, Method};

/// Headers that say nothing about who asks. Only these go to another origin: any other may be a credential.
const HARMLESS_HEADERS: [&str; 4] = ["accept", "accept-language", "content-type", "user-agent"];

/// The request for the next hop.
pub(super) fn next(mut hop: Hop, status: u16, from: &Destination, to: &Destination) -> Result<Hop, Error> {
    let keeps_method = match status {
        301 | 302 => hop.method == Method::Get,
        303 => false,
        307 | 308 => true,
        // 300 offers a choice and 305 a proxy; neither is ours to take.
        _ => return Err(Error::Redirect("in a way that is not followed")),
    };
    let is_same_origin = from.is_same_origin(to);
    if !keeps_method {
        hop.method = Method::Get;
        hop.body = None;
        hop.headers
            .retain(|(name, _)| !name.to_ascii_lowercase().starts_with("content-"));
    } else if hop.body.is_some() && !is_same_origin && !is_upgrade(from, to) {
        // Whoever let the body go let it go to one host.
        return Err(Error::Redirect("a request with a body to another host"));
    }
    if !is_same_origin {
        hop.headers
            .retain(|(name, _)| HARMLESS_HEADERS.contains(&name.to_ascii_lowercase().as_str()));
    }
    Ok(hop)
}

/// From `http` to `https` on the schemes' own ports of one host.
fn is_upgrade(from: &Destination, to: &Destination) -> bool {
    from.is_same_host(to) && from.port() == 80 && to.port() == 443 && to.is_https()
}
