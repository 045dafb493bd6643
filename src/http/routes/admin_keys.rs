//! Key administration. Changes are made one after the other: they read, decide and write. What the command line
//! changes in between is not undone: a policy is replaced only if it is still the one that was read.

use axum::{Json, extract::State};
use jiff::civil::Date;
use tidegate_core::{
    caller::Scope,
    clock::Timestamp,
    id::KeyId,
    key::{KeyPolicy, KeyRecord},
    port::{PageRequest, PolicyChange},
};
use tracing::info;

use crate::{
    http::{
        AppState,
        auth::Identity,
        error::{ApiError, Envelope},
        extract::{ApiJson, ApiJsonOrNothing, ApiQuery, PathText},
        wire::keys::{
            AdminKey, CreateKey, DeletedKey, KeyList, ListKeys, NoFields, RotateKey, UpdateKey, UsageDay,
            UsageList, UsageQuery, after,
        },
    },
    keys,
};

/// Keys that are looked at at once when the last administrator is looked for.
const PAGE: u32 = 100;
/// Attempts at a change that others keep overtaking.
const ATTEMPTS_MAX: u32 = 8;
/// Days of usage in one answer.
const DAYS_MAX: i32 = 366;
/// Days of usage where the request names none.
const DAYS_DEFAULT: i32 = 30;

/// Create a key
///
/// The answer is the only one that ever holds the key itself.
#[utoipa::path(post, path = "/v1/admin/keys", tag = "admin", request_body = CreateKey,
    responses((status = 200, body = AdminKey), (status = "default", description = "an error", body = Envelope)))]
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
    responses((status = 200, body = KeyList), (status = "default", description = "an error", body = Envelope)))]
pub(in crate::http) async fn list(
    State(app): State<AppState>,
    _identity: Identity,
    ApiQuery(query): ApiQuery<ListKeys>,
) -> Result<Json<KeyList>, ApiError> {
    let page = PageRequest {
        limit: query.limit()?,
        newest_first: query.newest_first()?,
        after: query.after.map(KeyId::new),
    };
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
    responses((status = 200, body = AdminKey), (status = "default", description = "an error", body = Envelope)))]
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
    responses((status = 200, body = AdminKey), (status = "default", description = "an error", body = Envelope)))]
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
    responses((status = 200, body = AdminKey), (status = "default", description = "an error", body = Envelope)))]
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
    responses((status = 200, body = AdminKey), (status = "default", description = "an error", body = Envelope)))]
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
    responses((status = 200, body = AdminKey), (status = "default", description = "an error", body = Envelope)))]
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
    responses((status = 200, body = AdminKey), (status = "default", description = "an error", body = Envelope)))]
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
#[utoipa::path(delete, path = "/v1/admin/keys/{id}", tag = "admin", params(("id" = String, Path, description = "the key's public id")),
    responses((status = 200, body = DeletedKey), (status = "default", description = "an error", body = Envelope)))]
pub(in crate::http) async fn delete(
    State(app): State<AppState>,
    identity: Identity,
    PathText(id): PathText,
) -> Result<Json<DeletedKey>, ApiError> {
    let _turn = app.admin.lock().await;
    let record = find(&app, &id).await?;
    keep_an_administrator(&app, &record, None).await?;
    if !app.parts.keys.delete(&record.id).await? {
        return Err(no_such_key());
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
    responses((status = 200, body = UsageList), (status = "default", description = "an error", body = Envelope)))]
pub(in crate::http) async fn usage(
    State(app): State<AppState>,
    _identity: Identity,
    PathText(id): PathText,
    ApiQuery(query): ApiQuery<UsageQuery>,
) -> Result<Json<UsageList>, ApiError> {
    let record = find(&app, &id).await?;
    let (first, last) = days(&query, app.parts.clock.today())?;
    let days = app.parts.ledger.usage(&record.id, first, last).await?;
    Ok(Json(UsageList {
        object: "list",
        data: days.into_iter().map(UsageDay::from).collect(),
        has_more: false,
    }))
}

fn days(query: &UsageQuery, today: Date) -> Result<(Date, Date), ApiError> {
    let day = |param: &str, text: &Option<String>| {
        let parsed = text.as_deref().map(str::parse::<Date>).transpose();
        parsed.map_err(|_| {
            ApiError::invalid_value(param, format!("`{param}` must be a day such as 2026-01-31"))
        })
    };
    let back = |from: Date, days: i32| from.saturating_sub(jiff::Span::new().days(days));
    let last = day("to", &query.to)?.unwrap_or(today);
    let first = day("from", &query.from)?.unwrap_or_else(|| back(last, DAYS_DEFAULT - 1));
    if first > last {
        return Err(ApiError::invalid_value("from", "`from` must not be after `to`"));
    }
    if first <= back(last, DAYS_MAX) {
        return Err(ApiError::invalid_value(
            "from",
            format!("one answer covers at most {DAYS_MAX} days"),
        ));
    }
    Ok((first, last))
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
        keep_an_administrator(app, &record, Some(&policy)).await?;
        let keys = &app.parts.keys;
        match keys.set_policy(&record.id, &record.policy, &policy).await? {
            PolicyChange::Changed(stored) => {
                let enabled = stored.policy.enabled;
                info!(key = %record.id, by = %by.caller.key_id, enabled, "a key was changed");
                return Ok(Json(AdminKey::of(stored, None)));
            }
            PolicyChange::Conflict(newer) => record = newer,
            PolicyChange::Missing => return Err(no_such_key()),
        }
    }
    let detail = format!("a change of key {id} was overtaken {ATTEMPTS_MAX} times");
    Err(ApiError::internal(detail).explained("the key kept changing while it was being changed; try again"))
}

async fn find(app: &AppState, id: &str) -> Result<KeyRecord, ApiError> {
    let well_formed = id.len() == keys::ID_CHARS && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !well_formed {
        return Err(no_such_key());
    }
    app.parts
        .keys
        .find(&KeyId::new(id))
        .await?
        .ok_or_else(no_such_key)
}

fn no_such_key() -> ApiError {
    ApiError::not_found("key")
}

/// Refuses a change (`None`: the deletion) that would leave nobody who can administer keys over the API.
async fn keep_an_administrator(
    app: &AppState,
    record: &KeyRecord,
    changed: Option<&KeyPolicy>,
) -> Result<(), ApiError> {
    let now = app.parts.clock.now();
    if !administers(&record.policy, now) || changed.is_some_and(|policy| administers(policy, now)) {
        return Ok(());
    }
    let mut page = PageRequest {
        after: None,
        limit: PAGE,
        newest_first: false,
    };
    loop {
        let found = app.parts.keys.list(&page).await?;
        if found
            .keys
            .iter()
            .any(|other| other.id != record.id && administers(&other.policy, now))
        {
            return Ok(());
        }
        page.after = found.keys.last().map(|last| last.id.clone());
        if !found.has_more || page.after.is_none() {
            return Err(ApiError::invalid_value(
                "id",
                "this is the last enabled key with the scope `admin`; create another one first",
            ));
        }
    }
}

fn administers(policy: &KeyPolicy, now: Timestamp) -> bool {
    policy.enabled && policy.scopes.contains(&Scope::Admin) && policy.expires_at.is_none_or(|end| now < end)
}

#[cfg(test)]
mod tests {
    use jiff::civil::date;

    use super::*;

    #[test]
    fn days_have_an_order_and_a_bound() {
        let today = date(2026, 3, 1);
        let query = |from: Option<&str>, to: Option<&str>| UsageQuery {
            from: from.map(str::to_owned),
            to: to.map(str::to_owned),
        };
        assert_eq!(
            days(&query(None, None), today).unwrap(),
            (date(2026, 1, 31), today)
        );
        assert_eq!(
            days(&query(Some("2026-02-28"), Some("2026-02-28")), today)
                .unwrap()
                .0,
            date(2026, 2, 28)
        );
        for (from, to) in [
            ("2026-03-02", "2026-03-01"),
            ("2020-01-01", "2026-01-01"),
            ("soon", "2026-01-01"),
        ] {
            assert!(days(&query(Some(from), Some(to)), today).is_err(), "{from} {to}");
        }
    }
}
