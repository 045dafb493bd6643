//! What is remembered of a person, for that person: to see it with its evidence, put it right, take it back, forget it,
//! erase all of it, take it along, and turn it off.
//!
//! **Whose.** A request is about its own user, who is told as in chat completions: by the header that the operator has
//! named for it (`server.user_header`), or else the key itself. The query parameter `user` names another user of the same
//! key, and needs the scope `admin`. The header needs no scope here for the same reason as there: it is heeded only where
//! the operator says that the key is with a front end that is right about its users. A user of another key can be named
//! by nothing.
//!
//! **Recorded.** Each change is a line of the audit trail before it is made, with the fact's id and never a word of it.

use std::sync::Arc;

use axum::{Json, extract::State};
use tidegate_core::{
    caller::{Origin, Scope},
    id::{FactId, KeyId, RequestId, UserId},
    port::{Switch, SwitchOwner, Switches},
};
use tidegate_engine::Memory;
use tidegate_memory::export::Binding;
use tracing::info;

use crate::{
    audit::{self, MemoryAct},
    http::{
        AppState,
        auth::Identity,
        error::ApiError,
        extract::{
            ApiJson, JsonText,
            query::{ApiQuery, PathText},
        },
        stamp::Stamp,
        wire::memory::{
            AddFact, Change, ChangeFact, ErasedMemory, ForgottenFact, MemoryFact, MemoryFindings, MemoryList,
            MemoryPeople, MemoryPerson,
            carried::{MemoryExport, MemoryImport},
            query::{
                FactPage, ListFacts, ListPeople, PeoplePage, Question, SearchMemory, Whose, WhoseMemory,
            },
            switches::{KeyMemory, MemorySettings, TurnSwitches},
        },
    },
};

/// Show what is remembered, and why
///
/// Facts with their evidence, in the order of the table of kinds. `pending` counts finished turns that are not learned
/// from yet.
#[utoipa::path(get, path = "/v1/memory", tag = "memory", params(ListFacts),
    responses((status = 200, body = MemoryList)))]
pub(in crate::http) async fn list(
    State(app): State<AppState>,
    identity: Identity,
    ApiQuery(page): ApiQuery<FactPage>,
) -> Result<Json<MemoryList>, ApiError> {
    let memory = memory(&app)?;
    let user = person(&identity, page.user.as_deref())?;
    let kinds = memory.kinds();
    if let Some(kind) = page.kind.as_deref().filter(|kind| kinds.get(kind).is_none()) {
        let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
        let rule = format!("there is no kind `{kind}`; `kind` is one of {}", names.join(", "));
        return Err(ApiError::invalid_value("kind", rule));
    }
    // First: a turn that is learned from in between is then in the facts, and where none waits they are complete.
    let pending = memory.pending(&user).await?;
    let mut views = memory.views(&user).await?;
    views.retain(|view| {
        page.kind.as_ref().is_none_or(|kind| view.kind == *kind)
            && page.state.is_none_or(|state| view.state == state)
    });
    let total = views.len();
    let from = match &page.after {
        None => 0,
        // After one that is gone, or was never there, comes nothing.
        Some(after) => views
            .iter()
            .position(|view| view.id == *after)
            .map_or(total, |at| at + 1),
    };
    let data: Vec<MemoryFact> = views
        .into_iter()
        .skip(from)
        .take(page.limit)
        .map(Into::into)
        .collect();
    let (own, key) = memory.switches(&user).await?;
    let Switches { learning, recall } = own.and(key);
    let id = |fact: Option<&MemoryFact>| fact.map(|fact| fact.id.to_string());
    Ok(Json(MemoryList {
        object: "list",
        pending,
        user,
        first_id: id(data.first()),
        last_id: id(data.last()),
        has_more: from + data.len() < total,
        total,
        learning,
        recall,
        data,
    }))
}

/// Show one fact with the words and days it rests on
#[utoipa::path(get, path = "/v1/memory/facts/{id}", tag = "memory",
    params(("id" = String, Path, description = "the fact's id"), WhoseMemory),
    responses((status = 200, body = MemoryFact)))]
pub(in crate::http) async fn show(
    State(app): State<AppState>,
    identity: Identity,
    PathText(id): PathText,
    ApiQuery(Whose(user)): ApiQuery<Whose>,
) -> Result<Json<MemoryFact>, ApiError> {
    let memory = memory(&app)?;
    let user = person(&identity, user.as_deref())?;
    Ok(Json(memory.view(&user, &FactId::new(id)).await?.into()))
}

/// Tell a fact
///
/// It is believed at once. Where a person has one value of the kind at a time, it takes the place of the one before.
#[utoipa::path(post, path = "/v1/memory/facts", tag = "memory", params(WhoseMemory), request_body = AddFact,
    responses((status = 200, body = MemoryFact)))]
pub(in crate::http) async fn add(
    State(app): State<AppState>,
    identity: Identity,
    Stamp(request_id): Stamp,
    ApiQuery(Whose(user)): ApiQuery<Whose>,
    ApiJson(body): ApiJson<AddFact>,
) -> Result<Json<MemoryFact>, ApiError> {
    let memory = memory(&app)?;
    let user = person(&identity, user.as_deref())?;
    let given = memory.prepare_add(&user, &body.kind, &body.value, body.quote.as_deref())?;
    let by = By(&identity, request_id);
    by.record(&app, MemoryAct::Add, &user, given.fact().as_str())
        .await?;
    Ok(Json(memory.keep(given).await?.into()))
}

/// Put a fact right, or take it back
///
/// With `value` that value takes its place and is believed at once; with `retracted` it is not so, or no longer.
#[utoipa::path(patch, path = "/v1/memory/facts/{id}", tag = "memory",
    params(("id" = String, Path, description = "the fact's id"), WhoseMemory), request_body = ChangeFact,
    responses((status = 200, body = MemoryFact)))]
pub(in crate::http) async fn change(
    State(app): State<AppState>,
    identity: Identity,
    Stamp(request_id): Stamp,
    PathText(id): PathText,
    ApiQuery(Whose(user)): ApiQuery<Whose>,
    ApiJson(body): ApiJson<ChangeFact>,
) -> Result<Json<MemoryFact>, ApiError> {
    changed(&app, By(&identity, request_id), &id, user.as_deref(), &body).await
}

/// Put a fact right, for clients without PATCH
#[utoipa::path(post, path = "/v1/memory/facts/{id}", tag = "memory",
    params(("id" = String, Path, description = "the fact's id"), WhoseMemory), request_body = ChangeFact,
    responses((status = 200, body = MemoryFact)))]
pub(in crate::http) async fn change_by_post(
    State(app): State<AppState>,
    identity: Identity,
    Stamp(request_id): Stamp,
    PathText(id): PathText,
    ApiQuery(Whose(user)): ApiQuery<Whose>,
    ApiJson(body): ApiJson<ChangeFact>,
) -> Result<Json<MemoryFact>, ApiError> {
    changed(&app, By(&identity, request_id), &id, user.as_deref(), &body).await
}

async fn changed(
    app: &AppState,
    by: By<'_>,
    id: &str,
    user: Option<&str>,
    body: &ChangeFact,
) -> Result<Json<MemoryFact>, ApiError> {
    let memory = memory(app)?;
    let user = person(by.0, user)?;
    let id = FactId::new(id);
    let quote = body.quote.as_deref();
    let (act, given) = match body.change()? {
        Change::Value(value) => (
            MemoryAct::Correct,
            memory.prepare_correction(&user, &id, &value, quote).await?,
        ),
        Change::Retracted => (
            MemoryAct::Retract,
            memory.prepare_retraction(&user, &id, quote).await?,
        ),
    };
    by.record(app, act, &user, id.as_str()).await?;
    Ok(Json(memory.keep(given).await?.into()))
}

/// Forget a fact
///
/// As if it had never been said: its words go, too, and so do the turns that wait to be learned from.
#[utoipa::path(delete, path = "/v1/memory/facts/{id}", tag = "memory",
    params(("id" = String, Path, description = "the fact's id"), WhoseMemory),
    responses((status = 200, body = ForgottenFact)))]
pub(in crate::http) async fn forget(
    State(app): State<AppState>,
    identity: Identity,
    Stamp(request_id): Stamp,
    PathText(id): PathText,
    ApiQuery(Whose(user)): ApiQuery<Whose>,
) -> Result<Json<ForgottenFact>, ApiError> {
    let memory = memory(&app)?;
    let user = person(&identity, user.as_deref())?;
    // Only what is there can be forgotten, and its id is one by then.
    let id = memory.view(&user, &FactId::new(id)).await?.id;
    let by = By(&identity, request_id);
    by.record(&app, MemoryAct::Forget, &user, id.as_str()).await?;
    let forgotten = memory.forget(&user, &id).await?;
    Ok(Json(ForgottenFact::of(&id, forgotten)))
}

/// Erase a person
///
/// Everything that is stored of what the person wrote: what is remembered, and besides it the journals of runs, held turns
/// and approvals. Switches that are off stay off. It can be done also where memory is switched off.
#[utoipa::path(delete, path = "/v1/memory", tag = "memory", params(WhoseMemory),
    responses((status = 200, body = ErasedMemory)))]
pub(in crate::http) async fn erase(
    State(app): State<AppState>,
    identity: Identity,
    Stamp(request_id): Stamp,
    ApiQuery(Whose(user)): ApiQuery<Whose>,
) -> Result<Json<ErasedMemory>, ApiError> {
    let user = person(&identity, user.as_deref())?;
    let by = By(&identity, request_id);
    by.record(&app, MemoryAct::Erase, &user, "").await?;
    let erased = match app.parts.engine.memory() {
        Some(memory) => memory.erase(&user).await?,
        // Nothing is at hand of anybody then, and what is stored goes all the same.
        None => app.parts.people.erase(&user).await?,
    };
    info!(by = %identity.caller.key_id, "a person was erased");
    Ok(Json(ErasedMemory::of(&user, erased)))
}

/// Export what is remembered
#[utoipa::path(get, path = "/v1/memory/export", tag = "memory", params(WhoseMemory),
    responses((status = 200, body = MemoryExport)))]
pub(in crate::http) async fn export(
    State(app): State<AppState>,
    identity: Identity,
    ApiQuery(Whose(user)): ApiQuery<Whose>,
) -> Result<Json<MemoryExport>, ApiError> {
    let memory = memory(&app)?;
    let user = person(&identity, user.as_deref())?;
    Ok(Json(memory.export(&user).await?.into()))
}

/// Import an export
///
/// Of the same user; with the scope `admin` of any user. What is there already stays once. What was said in passing counts
/// for the days on which it was said, and no more; what is broken or may not be kept is passed over.
#[utoipa::path(post, path = "/v1/memory/import", tag = "memory", params(WhoseMemory), request_body = Object,
    responses((status = 200, body = MemoryImport)))]
pub(in crate::http) async fn import(
    State(app): State<AppState>,
    identity: Identity,
    Stamp(request_id): Stamp,
    ApiQuery(Whose(user)): ApiQuery<Whose>,
    JsonText(body): JsonText,
) -> Result<Json<MemoryImport>, ApiError> {
    let memory = memory(&app)?;
    let user = person(&identity, user.as_deref())?;
    let text = std::str::from_utf8(&body).map_err(|_| ApiError::invalid_json("the body is not UTF-8"))?;
    let binding = if identity.caller.has(Scope::Admin) {
        Binding::AnyPerson
    } else {
        Binding::SamePerson
    };
    let mut imported = memory.read_import(&user, text, binding)?;
    let read = u64::try_from(imported.observations.len()).unwrap_or(u64::MAX);
    let by = By(&identity, request_id);
    by.record(&app, MemoryAct::Import, &user, &format!("{read} observations"))
        .await?;
    let passed_over = std::mem::take(&mut imported.passed_over);
    let added = memory.take_in(&user, imported).await?;
    Ok(Json(MemoryImport::of(read, added, passed_over)))
}

/// Search what is remembered
///
/// What bears on the question, best first, with the ranks by words and by meaning.
#[utoipa::path(get, path = "/v1/memory/search", tag = "memory", params(SearchMemory),
    responses((status = 200, body = MemoryFindings)))]
pub(in crate::http) async fn search(
    State(app): State<AppState>,
    identity: Identity,
    ApiQuery(question): ApiQuery<Question>,
) -> Result<Json<MemoryFindings>, ApiError> {
    let memory = memory(&app)?;
    let user = person(&identity, question.user.as_deref())?;
    let found = memory.search(&user, &question.text, question.limit).await?;
    Ok(Json(MemoryFindings {
        object: "list",
        data: found.into_iter().map(Into::into).collect(),
    }))
}

/// Show the switches
#[utoipa::path(get, path = "/v1/memory/settings", tag = "memory", params(WhoseMemory),
    responses((status = 200, body = MemorySettings)))]
pub(in crate::http) async fn settings(
    State(app): State<AppState>,
    identity: Identity,
    ApiQuery(Whose(user)): ApiQuery<Whose>,
) -> Result<Json<MemorySettings>, ApiError> {
    let memory = memory(&app)?;
    let user = person(&identity, user.as_deref())?;
    let (own, key) = memory.switches(&user).await?;
    Ok(Json(MemorySettings::of(&user, own, key)))
}

/// Turn the switches
///
/// Without `learning` nothing new is learned, and what waits to be learned from goes; without `recall` the agent is told
/// nothing. What is remembered stays until it is forgotten.
#[utoipa::path(put, path = "/v1/memory/settings", tag = "memory", params(WhoseMemory), request_body = TurnSwitches,
    responses((status = 200, body = MemorySettings)))]
pub(in crate::http) async fn turn(
    State(app): State<AppState>,
    identity: Identity,
    Stamp(request_id): Stamp,
    ApiQuery(Whose(user)): ApiQuery<Whose>,
    ApiJson(body): ApiJson<TurnSwitches>,
) -> Result<Json<MemorySettings>, ApiError> {
    let memory = memory(&app)?;
    let user = person(&identity, user.as_deref())?;
    let by = By(&identity, request_id);
    for (switch, is_on) in body.wanted()? {
        by.record(&app, act(switch, is_on), &user, "").await?;
        memory
            .set_switch(&SwitchOwner::User(user.clone()), switch, is_on)
            .await?;
    }
    let (own, key) = memory.switches(&user).await?;
    Ok(Json(MemorySettings::of(&user, own, key)))
}

/// List the people of this key
///
/// Those of whom something is remembered. Each key has people of its own.
#[utoipa::path(get, path = "/v1/admin/memory/users", tag = "memory", params(ListPeople),
    responses((status = 200, body = MemoryPeople)))]
pub(in crate::http) async fn people(
    State(app): State<AppState>,
    identity: Identity,
    ApiQuery(page): ApiQuery<PeoplePage>,
) -> Result<Json<MemoryPeople>, ApiError> {
    let memory = memory(&app)?;
    let key_id = &identity.caller.key_id;
    let mut found = memory
        .remembered(key_id, page.after.as_ref(), page.limit + 1)
        .await?;
    let has_more = found.len() > page.limit;
    found.truncate(page.limit);
    let data: Vec<MemoryPerson> = found.into_iter().map(Into::into).collect();
    let id = |person: Option<&MemoryPerson>| person.map(|person| person.id.to_string());
    Ok(Json(MemoryPeople {
        object: "list",
        first_id: id(data.first()),
        last_id: id(data.last()),
        has_more,
        data,
    }))
}

/// Show a key's switches
#[utoipa::path(get, path = "/v1/admin/keys/{id}/memory", tag = "memory",
    params(("id" = String, Path, description = "the key's public id")),
    responses((status = 200, body = KeyMemory)))]
pub(in crate::http) async fn key_settings(
    State(app): State<AppState>,
    _identity: Identity,
    PathText(id): PathText,
) -> Result<Json<KeyMemory>, ApiError> {
    let memory = memory(&app)?;
    let everybody = everybody(&app, &id).await?;
    Ok(Json(KeyMemory::of(&id, memory.switches(&everybody).await?.1)))
}

/// Turn a key's switches
///
/// They hold for all of its people: what the key or the person turns off is off.
#[utoipa::path(put, path = "/v1/admin/keys/{id}/memory", tag = "memory",
    params(("id" = String, Path, description = "the key's public id")), request_body = TurnSwitches,
    responses((status = 200, body = KeyMemory)))]
pub(in crate::http) async fn turn_key(
    State(app): State<AppState>,
    identity: Identity,
    Stamp(request_id): Stamp,
    PathText(id): PathText,
    ApiJson(body): ApiJson<TurnSwitches>,
) -> Result<Json<KeyMemory>, ApiError> {
    let memory = memory(&app)?;
    let everybody = everybody(&app, &id).await?;
    let by = By(&identity, request_id);
    for (switch, is_on) in body.wanted()? {
        by.record(&app, act(switch, is_on), &everybody, "all users of the key")
            .await?;
        memory
            .set_switch(&SwitchOwner::Key(everybody.key_id()), switch, is_on)
            .await?;
    }
    Ok(Json(KeyMemory::of(&id, memory.switches(&everybody).await?.1)))
}

fn memory(app: &AppState) -> Result<&Arc<Memory>, ApiError> {
    app.parts.engine.memory().ok_or_else(ApiError::memory_off)
}

/// Whom the request is about.
fn person(identity: &Identity, named: Option<&str>) -> Result<UserId, ApiError> {
    let caller = &identity.caller;
    let Some(name) = named.filter(|name| !name.trim().is_empty()) else {
        return Ok(caller.user.clone());
    };
    let user = UserId::of(&caller.key_id, Some(name))
        .map_err(|fault| ApiError::invalid_value("user", fault.to_string()))?;
    if user == caller.user || caller.has(Scope::Admin) {
        Ok(user)
    } else {
        Err(ApiError::scope_missing("`admin`"))
    }
}

/// The one who stands for all people of a key that is there.
async fn everybody(app: &AppState, id: &str) -> Result<UserId, ApiError> {
    let found = app.parts.keys.find(&KeyId::new(id)).await?;
    let key = found.ok_or_else(|| ApiError::not_found("key"))?;
    UserId::of(&key.id, None).map_err(|fault| ApiError::internal(fault.to_string()))
}

fn act(switch: Switch, is_on: bool) -> MemoryAct {
    match switch {
        Switch::Learning => MemoryAct::Learning(is_on),
        Switch::Recall => MemoryAct::Recall(is_on),
    }
}

/// Who asks, by which request.
struct By<'r>(&'r Identity, RequestId);

impl By<'_> {
    /// Records what is about to be done.
    async fn record(
        &self,
        app: &AppState,
        act: MemoryAct,
        user: &UserId,
        detail: &str,
    ) -> Result<(), ApiError> {
        let caller = &self.0.caller;
        let layer = if *user == caller.user { "own" } else { "admin" };
        let mut entry = audit::memory_entry(act, user, layer, detail, app.parts.clock.now());
        entry.request_id = Some(self.1.clone());
        entry.key_id = caller.key_id.clone();
        entry.origin = Some(Origin::Http);
        let recorded = app.parts.audit.record(&entry).await;
        recorded.map_err(|fault| ApiError::internal(fault.to_string()))
    }
}
