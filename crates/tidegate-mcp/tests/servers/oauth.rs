//! Logging in, at a server that is its own authorization server.

use serde_json::json;
use tidegate_mcp::State;

use crate::{
    desk::{Desk, options, text},
    http::{Mode, Peer, Request},
};

/// What the authorization part of the server says; `None` where the request is for the other part.
pub(crate) fn answer(request: &Request) -> Option<(&'static str, String)> {
    let origin = format!("http://{}", request.headers.get("host")?);
    let body = match request.path.split('?').next()? {
        "/mcp" => {
            let token = request.headers.get("authorization").map(String::as_str);
            return match token {
                Some("Bearer second") => None,
                Some(_) | None => Some(("401 Unauthorized", String::new())),
            };
        }
        "/.well-known/oauth-protected-resource/mcp" => {
            json!({"resource": format!("{origin}/mcp"), "authorization_servers": [origin]})
        }
        "/.well-known/oauth-authorization-server" => json!({
            "issuer": origin,
            "authorization_endpoint": format!("{origin}/authorize"),
            "token_endpoint": format!("{origin}/token"),
            "registration_endpoint": format!("{origin}/register"),
            "response_types_supported": ["code"],
            "code_challenge_methods_supported": ["S256"],
        }),
        "/register" => {
            json!({"client_id": "client-1", "redirect_uris": request.body["redirect_uris"]})
        }
        // The first token is due at once, so that it must be renewed.
        "/token"
            if request.text.contains("grant_type=authorization_code")
                && request.text.contains("code_verifier=") =>
        {
            json!({"access_token": "first", "token_type": "Bearer", "expires_in": 1, "refresh_token": "r1"})
        }
        "/token" if request.text.contains("refresh_token=r1") => {
            json!({"access_token": "second", "token_type": "Bearer", "expires_in": 3600, "refresh_token": "r2"})
        }
        _ => return Some(("404 Not Found", String::new())),
    };
    Some(("200 OK", body.to_string()))
}

fn parameter(url: &str, name: &str) -> String {
    let url = url::Url::parse(url).unwrap();
    let value = url.query_pairs().find(|(key, _)| key == name);
    value.unwrap().1.into_owned()
}

#[tokio::test]
async fn a_person_logs_in_once_and_the_token_is_renewed_once() {
    let peer = Peer::start(Mode::Login).await;
    let desk = Desk::with(
        json!({"web": {"url": peer.url("/mcp"), "oauth": true, "type": "http"}}),
        options(),
    )
    .await;
    let status = desk
        .until("web", |status| matches!(status.state, State::Down { .. }))
        .await;
    let State::Down { reason, .. } = status.state else {
        panic!();
    };
    assert_eq!(reason, "nobody is logged in there; run `tidegate mcp login web`");
    let back = "http://127.0.0.1:9/callback";
    let wrong = desk.hub.login("web", back).await.unwrap();
    let error = wrong
        .finish(&format!("{back}?code=abc&state=another"))
        .await
        .unwrap_err();
    assert!(
        error.to_string().starts_with("the login at `web` fails"),
        "{error}"
    );
    let login = desk.hub.login("web", back).await.unwrap();
    assert_eq!(parameter(login.url(), "code_challenge_method"), "S256");
    assert_eq!(parameter(login.url(), "client_id"), "client-1");
    let state = parameter(login.url(), "state");
    login
        .finish(&format!("{back}?code=abc&state={state}"))
        .await
        .unwrap();
    desk.hub.restart("web").await.unwrap();
    desk.ready("web").await;
    let calls = (0..8).map(|_| desk.call("mcp__web__echo", json!({"text": "in"})));
    for result in futures_util::future::join_all(calls).await {
        assert_eq!(text(&result), "in");
    }
    assert_eq!(
        peer.count(|request| request.text.contains("grant_type=refresh_token")),
        1
    );
    // What was got is kept: another connection needs no person and no renewal.
    desk.hub.restart("web").await.unwrap();
    desk.ready("web").await;
    assert_eq!(peer.count(|request| request.path == "/token"), 2);
    assert_eq!(desk.hub.logout("web").await, Ok(true));
    desk.hub.restart("web").await.unwrap();
    desk.until("web", |status| matches!(status.state, State::Down { .. }))
        .await;
    desk.stop().await;
}
