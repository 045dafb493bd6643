//! What each setting allows by itself and the whole does not: texts with a form, and settings that contradict
//! each other.

mod documents;

use axum::http::{HeaderName, Uri};

use tidegate_engine::memory::DEFAULT_MODEL;

use super::{Config, settings::Problems, tree::join};

/// One body may take an eighth of the memory of all: half of it, counted four times.
const BODY_SHARE: usize = 8;

/// Looks at texts that must have a form, and for contradictions.
pub(super) fn check(config: &Config, problems: &mut Problems<'_>) {
    forms(config, problems);
    documents::check(config, problems);
    contradictions(config, problems);
}

fn forms(config: &Config, problems: &mut Problems<'_>) {
    let server = &config.server;
    for (index, host) in server.allowed_hosts.iter().enumerate() {
        if host.trim().is_empty() || host.contains(['/', '*', ' ', '@']) {
            problems.add(
                &format!("server.allowed_hosts[{index}]"),
                format!("`{host}` is no host name; write the name alone, such as `agent.example.org`"),
            );
        }
    }
    for (index, origin) in server.cors_origins.iter().enumerate() {
        if !is_origin(origin) {
            problems.add(
                &format!("server.cors_origins[{index}]"),
                format!("`{origin}` is no web origin; write scheme, host and perhaps a port, such as `https://chat.example.org`"),
            );
        }
    }
    if let Some(name) = &server.user_header
        && HeaderName::try_from(name).is_err()
    {
        problems.add(
            "server.user_header",
            format!("`{name}` is no header name; write one such as `x-user-id`"),
        );
    }
    for (name, provider) in &config.models.providers {
        let headers = join(&join("models.providers", name), "headers");
        for header in provider.headers.keys() {
            if HeaderName::try_from(header).is_err() {
                problems.add(
                    &join(&headers, header),
                    format!("`{header}` is no header name; write one such as `x-team`"),
                );
            }
        }
    }
    if config.discovery.ollama && !is_url(&config.discovery.ollama_url) {
        problems.add(
            "discovery.ollama_url",
            format!(
                "`{}` is no address; write one such as `http://127.0.0.1:11434`",
                config.discovery.ollama_url
            ),
        );
    }
}

/// Settings that work, though not as whoever set them will expect.
fn contradictions(config: &Config, problems: &mut Problems<'_>) {
    let (server, engine, models) = (&config.server, &config.engine, &config.models);
    if server.body_bytes_max > server.bodies_bytes_max / BODY_SHARE {
        problems.warn(
            "server.body_bytes_max",
            format!(
                "no body of {} bytes is ever taken, because one may take only an eighth of `server.bodies_bytes_max`; set \
                 that to {} or more, or lower `server.body_bytes_max`",
                server.body_bytes_max,
                server.body_bytes_max.saturating_mul(BODY_SHARE)
            ),
        );
    }
    if engine.calls_per_round_max > engine.calls_per_turn_max {
        problems.warn(
            "engine.calls_per_round_max",
            "one reply may have more calls than a whole turn; raise `engine.calls_per_turn_max` or lower \
             `engine.calls_per_round_max`"
                .into(),
        );
    }
    for (key, part_ms) in [
        ("models.connect_timeout_ms", models.connect_timeout_ms),
        ("models.first_byte_timeout_ms", models.first_byte_timeout_ms),
        ("models.idle_timeout_ms", models.idle_timeout_ms),
    ] {
        if part_ms > models.total_timeout_ms {
            problems.warn(
                key,
                format!("a part of a question may take longer than all of it; raise `models.total_timeout_ms` or lower `{key}`"),
            );
        }
    }
    if models.retry_initial_delay_ms > models.retry_delay_max_ms {
        problems.warn(
            "models.retry_initial_delay_ms",
            "the first wait is longer than the longest; raise `models.retry_delay_max_ms` or lower \
             `models.retry_initial_delay_ms`"
                .into(),
        );
    }
    memory(config, problems);
    if config.routing.embedding_threshold.is_some() && config.routing.embedding_threshold_model.is_none() {
        problems.warn(
            "routing.embedding_threshold",
            "a threshold belongs to one embedding model and does not count without it; set \
             `routing.embedding_threshold_model`"
                .into(),
        );
    }
}

fn memory(config: &Config, problems: &mut Problems<'_>) {
    let memory = &config.memory;
    if memory.model.trim().is_empty() {
        problems.add(
            "memory.model",
            format!("no model has an empty name; write one that `GET /v1/models` gives, or `{DEFAULT_MODEL}` for the default"),
        );
    } else if memory.model != DEFAULT_MODEL && !memory.extractor.asks_model() {
        problems.warn(
            "memory.model",
            "this model is never asked, because rules alone look for facts; set `memory.extractor` to `both` or `model`"
                .into(),
        );
    }
    if memory.retry_initial_delay_ms > memory.retry_delay_max_ms {
        problems.warn(
            "memory.retry_initial_delay_ms",
            "the first wait is longer than the longest; raise `memory.retry_delay_max_ms` or lower \
             `memory.retry_initial_delay_ms`"
                .into(),
        );
    }
}

fn is_origin(text: &str) -> bool {
    let rest = text
        .strip_prefix("http://")
        .or_else(|| text.strip_prefix("https://"));
    let authority = rest.map(|rest| rest.trim_end_matches('/'));
    authority.is_some_and(|authority| !authority.contains(['/', '*', '?', '#', '@']) && is_url(text))
}

/// Whether a text is an address with a scheme that is spoken here, and a host.
pub(super) fn is_url(text: &str) -> bool {
    text.trim().parse::<Uri>().is_ok_and(|uri| {
        uri.host().is_some_and(|host| !host.is_empty()) && matches!(uri.scheme_str(), Some("http" | "https"))
    })
}
