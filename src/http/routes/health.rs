//! Public routes: nothing here may name a path, a host or an id.

use axum::{
    Json,
    extract::State,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse as _, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::http::AppState;

/// That the process answers.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Health {
    /// `ok`.
    status: &'static str,
}

/// What is in place and what is not.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http) struct Readiness {
    /// `ready` or `not_ready`.
    status: &'static str,
    checks: Vec<Check>,
}

/// One thing that must be in place.
#[derive(Debug, Serialize, ToSchema)]
struct Check {
    name: &'static str,
    ok: bool,
    /// What is missing and what to type; empty where nothing is.
    message: String,
}

/// Is it there
#[utoipa::path(get, path = "/health", tag = "health", security(()), responses((status = 200, body = Health)))]
pub(in crate::http) async fn health() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Is it alive
#[utoipa::path(get, path = "/health/live", tag = "health", security(()), responses((status = 200, body = Health)))]
pub(in crate::http) async fn live() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Can it answer
///
/// 503 with what is missing, as sentences, until it can.
#[utoipa::path(get, path = "/health/ready", tag = "health", security(()),
    responses((status = 200, body = Readiness), (status = 503, body = Readiness)))]
pub(in crate::http) async fn ready(State(app): State<AppState>) -> Response {
    let mut checks: Vec<Check> = app
        .parts
        .readiness
        .readiness()
        .await
        .into_iter()
        .map(|item| Check {
            name: item.name,
            ok: item.ok,
            message: item.message,
        })
        .collect();
    if app.parts.shutdown.is_cancelled() {
        checks.push(Check {
            name: "running",
            ok: false,
            message: "the server is stopping".to_owned(),
        });
    }
    if checks.iter().all(|check| check.ok) {
        return Json(Readiness {
            status: "ready",
            checks,
        })
        .into_response();
    }
    let retry_after = [(header::RETRY_AFTER, HeaderValue::from_static("5"))];
    let body = Json(Readiness {
        status: "not_ready",
        checks,
    });
    (StatusCode::SERVICE_UNAVAILABLE, retry_after, body).into_response()
}
