//! `tidegate keys`: straight on the database, also while the daemon runs; it sees every change on the next
//! request.

use std::{collections::BTreeMap, time::Duration};

use serde_json::{Value, json};
use tidegate_core::{
    caller::{Mode, Scope, Scopes},
    clock::{Clock, Entropy, Timestamp},
    error::StoreError,
    id::KeyId,
    key::{KeyPolicy, KeyRecord},
    port::{KeyRemoval, KeyStore, LastAdmin, PageRequest, PolicyChange},
    secret::PlainKey,
};

use super::{
    args::{Create, Keys, ModeName, OneKey, Output, Rotate, ScopeName, TakeAway},
    error::Error,
    output::{self, Out},
    when,
};
use crate::keys::{self, bounds};

/// Keys that are fetched at a time.
const PAGE_KEYS: u32 = 100;

/// Attempts at a change that others keep overtaking.
const ATTEMPTS_MAX: u32 = 8;

/// What the commands work with.
#[derive(Debug, Clone, Copy)]
pub struct Desk<'d> {
    /// The keys.
    pub store: &'d dyn KeyStore,
    /// The wall clock.
    pub clock: &'d dyn Clock,
    /// Chance.
    pub entropy: &'d dyn Entropy,
    /// How long a rotated key's old secret opens where no time is named.
    pub rotation_grace: Duration,
}

impl Desk<'_> {
    /// Does what was asked.
    pub async fn run(&self, command: &Keys, out: Out<'_>) -> Result<(), Error> {
        match command {
            Keys::Create(create) => self.create(create, out).await,
            Keys::List(output) => self.list(*output, out).await,
            Keys::Show(one) => self.show(one, out).await,
            Keys::Revoke(one) => self.revoke(one, out).await,
            Keys::Rotate(rotate) => self.rotate(rotate, out).await,
            Keys::Enable(one) => {
                self.switch(&one.id, true, LastAdmin::MayGo, one.output, out)
                    .await
            }
            Keys::Disable(one) => {
                let last_admin = self.last_admin(one.force);
                self.switch(&one.id, false, last_admin, one.output, out).await
            }
            Keys::Generate => generate(self.entropy, out),
        }
    }

    async fn create(&self, create: &Create, out: Out<'_>) -> Result<(), Error> {
        let now = self.clock.now();
        let policy = policy(create, self.clock).map_err(Error::Usage)?;
        let (id, plain) = keys::generate(self.entropy);
        let record = KeyRecord {
            id,
            hash: keys::hash(&plain),
            previous: None,
            created_at: now,
            last_used_at: None,
            policy,
        };
        self.store.insert(&record).await?;
        print_new(&record, &plain, create.output, out)
    }

    async fn list(&self, output: Output, out: Out<'_>) -> Result<(), Error> {
        let mut keys = Vec::new();
        let mut after = None;
        loop {
            let page = PageRequest {
                after,
                limit: PAGE_KEYS,
                newest_first: false,
            };
            let page = self.store.list(&page).await?;
            after = page.keys.last().map(|key| key.id.clone());
            keys.extend(page.keys);
            if !page.has_more || after.is_none() {
                break;
            }
        }
        if output.json {
            let views: Vec<Value> = keys.iter().map(view).collect();
            return Ok(output::json(out, &views)?);
        }
        if keys.is_empty() {
            return Ok(writeln!(
                out,
                "There are no keys; make one with `tidegate keys create --name NAME`."
            )?);
        }
        let now = self.clock.now();
        let rows: Vec<_> = keys.iter().map(|key| row(key, now)).collect();
        let head = ["ID", "NAME", "STATE", "SCOPES", "MODE", "EXPIRES", "LAST USED"];
        Ok(output::columns(out, &head, &rows)?)
    }

    async fn show(&self, one: &OneKey, out: Out<'_>) -> Result<(), Error> {
        let key = self.find(&one.id).await?;
        print_one(&key, one.output, out)
    }

    async fn revoke(&self, one: &TakeAway, out: Out<'_>) -> Result<(), Error> {
        let id = id_of(&one.id);
        match self.store.delete(&id, self.last_admin(one.force)).await? {
            KeyRemoval::Removed => {}
            KeyRemoval::Missing => return Err(unknown(&id)),
            KeyRemoval::LastAdmin => return Err(last_admin(&id)),
        }
        if one.output.json {
            return Ok(output::json(out, &json!({"id": id.as_str(), "deleted": true}))?);
        }
        Ok(writeln!(
            out,
            "Key {id} is gone, with what its users wrote; its next request is refused."
        )?)
    }

    async fn rotate(&self, rotate: &Rotate, out: Out<'_>) -> Result<(), Error> {
        let id = id_of(&rotate.id);
        let grace = match &rotate.grace {
            Some(text) => when::span(text).map_err(Error::Usage)?,
            None => self.rotation_grace,
        };
        let until = self
            .clock
            .now()
            .checked_add(jiff::SignedDuration::try_from(grace).unwrap_or(jiff::SignedDuration::MAX))
            .map_err(|_| Error::Usage("the grace time is out of range".into()))?;
        let plain = keys::generate_for(&id, self.entropy);
        let record = self
            .store
            .rotate(&id, keys::hash(&plain), until)
            .await?
            .ok_or_else(|| unknown(&id))?;
        print_new(&record, &plain, rotate.output, &mut *out)?;
        if !rotate.output.json {
            writeln!(out, "The old secret opens until {until}.")?;
        }
        Ok(())
    }

    fn last_admin(&self, force: bool) -> LastAdmin {
        if force {
            return LastAdmin::MayGo;
        }
        LastAdmin::Stays {
            now: self.clock.now(),
        }
    }

    async fn switch(
        &self,
        id: &str,
        enabled: bool,
        rule: LastAdmin,
        output: Output,
        out: Out<'_>,
    ) -> Result<(), Error> {
        let mut key = self.find(id).await?;
        for _ in 0..ATTEMPTS_MAX {
            let policy = KeyPolicy {
                enabled,
                ..key.policy.clone()
            };
            // The daemon may change the key at the same time; what it changed stays.
            let set = self.store.set_policy(&key.id, &key.policy, &policy, rule);
            match set.await? {
                PolicyChange::Changed(key) => return print_one(&key, output, out),
                PolicyChange::Conflict(newer) => key = newer,
                PolicyChange::Missing => return Err(unknown(&key.id)),
                PolicyChange::LastAdmin => return Err(last_admin(&key.id)),
            }
        }
        Err(Error::Store(StoreError::Internal(format!(
            "the key was changed by another process {ATTEMPTS_MAX} times while it was being changed here; try again"
        ))))
    }

    async fn find(&self, text: &str) -> Result<KeyRecord, Error> {
        let id = id_of(text);
        self.store.find(&id).await?.ok_or_else(|| unknown(&id))
    }
}

/// `keys generate`: needs no database.
pub fn generate(entropy: &dyn Entropy, out: Out<'_>) -> Result<(), Error> {
    let (_, plain) = keys::generate(entropy);
    Ok(writeln!(out, "{}", plain.expose())?)
}

/// The public id in what was typed: the id itself, or `tg_ID…`. A secret that was pasted goes no further.
pub(super) fn id_of(text: &str) -> KeyId {
    let text = text.strip_prefix(keys::PREFIX).unwrap_or(text);
    KeyId::new(text.split_once('_').map_or(text, |(id, _)| id))
}

fn unknown(id: &KeyId) -> Error {
    Error::NotFound(format!(
        "there is no key `{}`; `tidegate keys list` shows them",
        output::plain(id.as_str())
    ))
}

fn last_admin(id: &KeyId) -> Error {
    Error::Refused(format!(
        "`{}` is the last enabled key with the scope `admin`: without it nobody can manage keys over the API; make \
         another one first (`tidegate keys create --name NAME --scope admin`), or say --force",
        output::plain(id.as_str())
    ))
}

fn policy(create: &Create, clock: &dyn Clock) -> Result<KeyPolicy, String> {
    let named = |flag: &str, rule: String| format!("{flag} {rule}");
    bounds::check_text(&create.name, bounds::NAME_CHARS_MAX).map_err(|rule| named("--name", rule))?;
    for (flag, names) in [("--model", &create.models), ("--tool", &create.tools)] {
        bounds::check_list(names).map_err(|rule| named(flag, rule))?;
        for name in names {
            bounds::check_text(name, bounds::LISTED_CHARS_MAX).map_err(|rule| named(flag, rule))?;
        }
    }
    let now = clock.now();
    let expires_at = create
        .expires
        .as_deref()
        .map(|text| when::moment(text, now, &clock.time_zone()))
        .transpose()?;
    if expires_at.is_some_and(|time| time <= now) {
        return Err("--expires is in the past".into());
    }
    let mut metadata = BTreeMap::new();
    for pair in &create.metadata {
        let (name, value) = pair
            .split_once('=')
            .ok_or_else(|| format!("--metadata `{}` has no `=`; write KEY=VALUE", output::plain(pair)))?;
        metadata.insert(name.to_owned(), value.to_owned());
    }
    bounds::check_metadata(&metadata).map_err(|rule| named("--metadata", rule))?;
    let scopes: Scopes = if create.scopes.is_empty() {
        [Scope::Chat, Scope::Tools].into()
    } else {
        create.scopes.iter().map(|scope| scope_of(*scope)).collect()
    };
    let listed = |items: &[String]| (!items.is_empty()).then(|| items.to_vec());
    Ok(KeyPolicy {
        scopes,
        expires_at,
        requests_per_minute: create.rpm,
        tokens_per_day: create.tokens_per_day,
        models: listed(&create.models),
        tools: listed(&create.tools),
        mode_ceiling: mode_of(create.mode),
        metadata,
        ..KeyPolicy::new(create.name.trim())
    })
}

fn scope_of(name: ScopeName) -> Scope {
    match name {
        ScopeName::Chat => Scope::Chat,
        ScopeName::Tools => Scope::Tools,
        ScopeName::Admin => Scope::Admin,
        ScopeName::ApprovalsRead => Scope::ApprovalsRead,
        ScopeName::ApprovalsDecideOwn => Scope::ApprovalsDecideOwn,
        ScopeName::ApprovalsDecideAny => Scope::ApprovalsDecideAny,
    }
}

fn mode_of(name: ModeName) -> Mode {
    match name {
        ModeName::PlanOnly => Mode::PlanOnly,
        ModeName::Readonly => Mode::ReadOnly,
        ModeName::FullAuto => Mode::FullAuto,
    }
}

/// A key as JSON. The secret is not in the record, so it cannot be here.
fn view(key: &KeyRecord) -> Value {
    let time = |time: Option<Timestamp>| time.map(|time| time.to_string());
    let policy = &key.policy;
    json!({
        "id": key.id.as_str(),
        "name": policy.name,
        "enabled": policy.enabled,
        "scopes": policy.scopes.iter().map(|scope| scope.name()).collect::<Vec<_>>(),
        "mode_ceiling": policy.mode_ceiling.name(),
        "created_at": key.created_at.to_string(),
        "last_used_at": time(key.last_used_at),
        "expires_at": time(policy.expires_at),
        "requests_per_minute": policy.requests_per_minute,
        "tokens_per_day": policy.tokens_per_day,
        "models": policy.models,
        "tools": policy.tools,
        "on_disconnect": policy.on_disconnect,
        "metadata": policy.metadata,
        "previous_valid_until": time(key.previous.map(|previous| previous.valid_until)),
    })
}

fn print_new(key: &KeyRecord, plain: &PlainKey, output: Output, out: Out<'_>) -> Result<(), Error> {
    if output.json {
        let mut value = view(key);
        if let Some(map) = value.as_object_mut() {
            map.insert("key".into(), plain.expose().into());
        }
        return Ok(output::json(out, &value)?);
    }
    writeln!(out, "{}", plain.expose())?;
    Ok(writeln!(
        out,
        "\nThis is key {} (\"{}\"), shown this once; keep it.",
        key.id,
        output::plain(&key.policy.name)
    )?)
}

fn print_one(key: &KeyRecord, output: Output, out: Out<'_>) -> Result<(), Error> {
    let value = view(key);
    if output.json {
        return Ok(output::json(out, &value)?);
    }
    if let Some(map) = value.as_object() {
        let rows: Vec<_> = map
            .iter()
            .map(|(name, value)| {
                let shown = match value {
                    Value::String(text) => output::plain(text),
                    Value::Null => "-".to_owned(),
                    Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                        value.to_string()
                    }
                };
                vec![name.clone(), shown]
            })
            .collect();
        output::columns(out, &["SETTING", "VALUE"], &rows)?;
    }
    Ok(())
}

fn row(key: &KeyRecord, now: Timestamp) -> Vec<String> {
    let policy = &key.policy;
    let time = |time: Option<Timestamp>| time.map_or_else(|| "-".to_owned(), |time| format!("{time:.0}"));
    let state = if !policy.enabled {
        "disabled"
    } else if policy.expires_at.is_some_and(|time| time <= now) {
        "expired"
    } else {
        "enabled"
    };
    let scopes: Vec<_> = policy.scopes.iter().map(|scope| scope.name()).collect();
    vec![
        key.id.to_string(),
        output::plain(&policy.name),
        state.to_owned(),
        scopes.join(","),
        policy.mode_ceiling.name().to_owned(),
        time(policy.expires_at),
        time(key.last_used_at),
    ]
}

#[cfg(test)]
mod tests;
