//! Key administration. Changes are made one after the other: they read, decide and write. What the command line
//! changes in between is not undone: a policy is replaced only if it is still the one that was read.

use axum::{Json, extract::State};
use tidegate_core::{
    clock::after,
    key::KeyRecord,
    port::{KeyRemoval, LastAdmin, PolicyChange},
};
use tracing::info;

use crate::{
    http::{
        AppState,
        auth::Identity,
        error::ApiError,
        extract::{
            ApiJson, ApiJsonOrNothing,
            query::{ApiQuery, PathText},
        },
        wire::keys::{
            AdminKey, CreateKey, DeletedKey, KeyList, NoFields, RotateKey, UpdateKey, UsageDay, UsageList,
            query::{Days, ListKeys, Page, UsageQuery, key_id},
        },
    },
    keys,
};

/// Attempts at a change that others keep overtaking.
const ATTEMPTS_MAX: u32 = 8;

/// Create a key
///
/// The answer is the only one that ever holds the key itself.
#[utoipa::path(post, path = "/v1/admin/keys", tag = "admin", request_body = CreateKey,
    responses((status = 200, body = AdminKey)))]
pub(in crate::http) async fn create(
    State(app): State<AppState>,
    identity: Identity,
    ApiJson(body): ApiJson<CreateKey>,
) -> Result<Json<AdminKey>, ApiError> {
    let now = app.parts.clock.now();
    let policy = body.into_policy(now)?;
    let (id, plain) = keys::generate(app.parts.entropy.as_ref());
    let record = KeyRecord {
        id,
        hash: keys::hash(&plain),
        previous: None,
        created_at: now,
        last_used_at: None,
        policy,
    };
    app.parts.keys.insert(&record).await?;
    info!(key = %record.id, by = %identity.caller.key_id, "a key was created");
    Ok(Json(AdminKey::of(record, Some(&plain))))
}

/// List keys
#[utoipa::path(get, path = "/v1/admin/keys", tag = "admin", params(ListKeys),
    responses((status = 200, body = KeyList)))]
pub(in crate::http) async fn list(
    State(app): State<AppState>,
    _identity: Identity,
    ApiQuery(Page(page)): ApiQuery<Page>,
) -> Result<Json<KeyList>, ApiError> {
    let found = app.parts.keys.list(&page).await?;
    let id = |record: Option<&KeyRecord>| record.map(|record| record.id.to_string());
    Ok(Json(KeyList {
        object: "list",
        first_id: id(found.keys.first()),
        last_id: id(found.keys.last()),
        has_more: found.has_more,
        data: found
            .keys
            .into_iter()
            .map(|record| AdminKey::of(record, None))
            .collect(),
    }))
}

/// Show a key
#[utoipa::path(get, path = "/v1/admin/keys/{id}", tag = "admin", params(("id" = String, Path, description = "the key's public id")),
    responses((status = 200, body = AdminKey)))]
pub(in crate::http) async fn show(
    State(app): State<AppState>,
    _identity: Identity,
    PathText(id): PathText,
) -> Result<Json<AdminKey>, ApiError> {
    Ok(Json(AdminKey::of(find(&app, &id).await?, None)))
}

/// Change a key
///
/// Absent fields stay; null takes a limit away.
#[utoipa::path(patch, path = "/v1/admin/keys/{id}", tag = "admin", params(("id" = String, Path, description = "the key's public id")),
    request_body = UpdateKey,
    responses((status = 200, body = AdminKey)))]
pub(in crate::http) async fn update(
    State(app): State<AppState>,
    identity: Identity,
    PathText(id): PathText,
    ApiJson(body): ApiJson<UpdateKey>,
) -> Result<Json<AdminKey>, ApiError> {
    change(&app, &identity, &id, body).await
}

/// Change a key, for clients without PATCH
#[utoipa::path(post, path = "/v1/admin/keys/{id}", tag = "admin", params(("id" = String, Path, description = "the key's public id")),
    request_body = UpdateKey,
    responses((status = 200, body = AdminKey)))]
pub(in crate::http) async fn update_by_post(
    State(app): State<AppState>,
    identity: Identity,
    PathText(id): PathText,
    ApiJson(body): ApiJson<UpdateKey>,
) -> Result<Json<AdminKey>, ApiError> {
    change(&app, &identity, &id, body).await
}

/// Disable a key
///
/// It opens nothing from the next request on.
#[utoipa::path(post, path = "/v1/admin/keys/{id}/disable", tag = "admin", params(("id" = String, Path, description = "the key's public id")),
    responses((status = 200, body = AdminKey)))]
pub(in crate::http) async fn disable(
    State(app): State<AppState>,
    identity: Identity,
    PathText(id): PathText,
    ApiJsonOrNothing(NoFields {}): ApiJsonOrNothing<NoFields>,
) -> Result<Json<AdminKey>, ApiError> {
    change(&app, &identity, &id, UpdateKey::enabling(false)).await
}

/// Enable a key
#[utoipa::path(post, path = "/v1/admin/keys/{id}/enable", tag = "admin", params(("id" = String, Path, description = "the key's public id")),
    responses((status = 200, body = AdminKey)))]
pub(in crate::http) async fn enable(
    State(app): State<AppState>,
    identity: Identity,
    PathText(id): PathText,
    ApiJsonOrNothing(NoFields {}): ApiJsonOrNothing<NoFields>,
) -> Result<Json<AdminKey>, ApiError> {
    change(&app, &identity, &id, UpdateKey::enabling(true)).await
}

/// Rotate a key
///
/// The public id stays; the old secret opens until the end of its grace period.
#[utoipa::path(post, path = "/v1/admin/keys/{id}/rotate", tag = "admin", params(("id" = String, Path, description = "the key's public id")),
    request_body = RotateKey,
    responses((status = 200, body = AdminKey)))]
pub(in crate::http) async fn rotate(
    State(app): State<AppState>,
    identity: Identity,
    PathText(id): PathText,
    ApiJsonOrNothing(body): ApiJsonOrNothing<RotateKey>,
) -> Result<Json<AdminKey>, ApiError> {
    let grace_s = body.grace_s(app.parts.options.rotation_grace_s)?;
    let _turn = app.admin.lock().await;
    let record = find(&app, &id).await?;
    let plain = keys::generate_for(&record.id, app.parts.entropy.as_ref());
    let valid_until = after(app.parts.clock.now(), grace_s);
    let rotated = app
        .parts
        .keys
        .rotate(&record.id, keys::hash(&plain), valid_until)
        .await?;
    let record = rotated.ok_or_else(no_such_key)?;
    info!(key = %record.id, by = %identity.caller.key_id, grace_s, "a key was rotated");
    Ok(Json(AdminKey::of(record, Some(&plain))))
}

/// Delete a key
///
/// It opens nothing any more, and what its users wrote is erased: what is remembered of them, journals of runs, held turns
/// and approvals. What it has spent stays in the books.
#[utoipa::path(delete, path = "/v1/admin/keys/{id}", tag = "admin", params(("id" = String, Path, description = "the key's public id")),
    responses((status = 200, body = DeletedKey)))]
pub(in crate::http) async fn delete(
    State(app): State<AppState>,
    identity: Identity,
    PathText(id): PathText,
) -> Result<Json<DeletedKey>, ApiError> {
    let _turn = app.admin.lock().await;
    let record = find(&app, &id).await?;
    match app.parts.keys.delete(&record.id, an_admin_stays(&app)).await? {
        KeyRemoval::Removed => {}
        KeyRemoval::Missing => return Err(no_such_key()),
        KeyRemoval::LastAdmin => return Err(last_admin()),
    }
    info!(key = %record.id, by = %identity.caller.key_id, "a key was deleted");
    Ok(Json(DeletedKey {
        id,
        object: "organization.admin_api_key.deleted",
        deleted: true,
    }))
}

/// Show what a key has spent
///
/// By day, oldest first.
#[utoipa::path(get, path = "/v1/admin/keys/{id}/usage", tag = "admin",
    params(("id" = String, Path, description = "the key's public id"), UsageQuery),
    responses((status = 200, body = UsageList)))]
pub(in crate::http) async fn usage(
    State(app): State<AppState>,
    _identity: Identity,
    PathText(id): PathText,
    ApiQuery(days): ApiQuery<Days>,
) -> Result<Json<UsageList>, ApiError> {
    let record = find(&app, &id).await?;
    let (first, last) = days.bounds(app.parts.clock.today())?;
    let days = app.parts.ledger.usage(&record.id, first, last).await?;
    Ok(Json(UsageList {
        object: "list",
        data: days.into_iter().map(UsageDay::from).collect(),
        has_more: false,
    }))
}

/// Reads, changes and writes a policy, anew where another process was faster; answers with what was stored.
async fn change(
    app: &AppState,
    by: &Identity,
    id: &str,
    update: UpdateKey,
) -> Result<Json<AdminKey>, ApiError> {
    let _turn = app.admin.lock().await;
    let mut record = find(app, id).await?;
    for _ in 0..ATTEMPTS_MAX {
        let mut policy = record.policy.clone();
        update.clone().apply(&mut policy, app.parts.clock.now())?;
        let keys = &app.parts.keys;
        let set = keys.set_policy(&record.id, &record.policy, &policy, an_admin_stays(app));
        match set.await? {
            PolicyChange::Changed(stored) => {
                let enabled = stored.policy.enabled;
                info!(key = %record.id, by = %by.caller.key_id, enabled, "a key was changed");
                return Ok(Json(AdminKey::of(stored, None)));
            }
            PolicyChange::Conflict(newer) => record = newer,
            PolicyChange::Missing => return Err(no_such_key()),
            PolicyChange::LastAdmin => return Err(last_admin()),
        }
    }
    let detail = format!("a change of key {id} was overtaken {ATTEMPTS_MAX} times");
    Err(ApiError::internal(detail).explained("the key kept changing while it was being changed; try again"))
}

async fn find(app: &AppState, id: &str) -> Result<KeyRecord, ApiError> {
    let id = key_id("id", id)?;
    app.parts.keys.find(&id).await?.ok_or_else(no_such_key)
}

fn no_such_key() -> ApiError {
    ApiError::not_found("key")
}

/// No change over the API leaves nobody who can administer keys over the API.
fn an_admin_stays(app: &AppState) -> LastAdmin {
    LastAdmin::Stays {
        now: app.parts.clock.now(),
    }
}

fn last_admin() -> ApiError {
    ApiError::invalid_value(
        "id",
        "this is the last enabled key with the scope `admin`; create another one first",
    )
}
