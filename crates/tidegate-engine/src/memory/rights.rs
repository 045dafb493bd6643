//! What a person may do with what is remembered of them: see it, put it right, take it back, forget it, erase all of it,
//! take it along, and turn it off.
//!
//! Every method takes whose it is and touches nobody else's rows; somebody else's fact is one that is not there. What a
//! person says here weighs more than anything said in passing, and is held to what may be kept all the same.

use tidegate_core::{
    clock::Timestamp,
    id::{FactId, KeyId, ObservationId, UserId},
    memory::{Basis, Fact, FactState, Observation, Stance, Voice},
    port::{Erased, Forgotten, Remembered, Switch, SwitchOwner, Switches},
};
use tidegate_memory::{
    boundary::{Reason, given_value, given_words},
    derive::{fact_id, stored_values},
    evidence::{View, views},
    export::{self, Binding, Document, Import, Imported},
    kinds::Kind,
};

use super::{Memory, MemoryError, Person};

/// Who finds what a person says by hand.
const EXTRACTOR: &str = "person";

/// How far behind the present time the clock may stand that an import is held against, in seconds: a correction is kept
/// after everything said before it, and so may be a moment ahead.
const AHEAD_S: i64 = 1;

/// Something a person says by hand that may be kept, and has not been yet.
#[derive(Debug, Clone)]
pub struct Given {
    user: UserId,
    fact: FactId,
    kind: String,
    value: String,
    quote: String,
    stance: Stance,
    /// The value that is taken back with it.
    instead_of: Option<String>,
}

impl Given {
    /// The fact that it is about.
    pub fn fact(&self) -> &FactId {
        &self.fact
    }
}

impl Memory {
    /// Every fact of a person with its evidence, in the order of the table of kinds, then of time.
    pub async fn views(&self, user: &UserId) -> Result<Vec<View>, MemoryError> {
        let person = self.person(user).await?;
        Ok(views(&self.kinds(), &person.facts, &person.ledger))
    }

    /// One fact with its evidence.
    pub async fn view(&self, user: &UserId, id: &FactId) -> Result<View, MemoryError> {
        let person = self.person(user).await?;
        let fact = find(&person, id)?;
        let other = fact.other.as_ref().and_then(|other| find(&person, other).ok());
        let both: Vec<Fact> = std::iter::once(fact).chain(other).cloned().collect();
        let shown = views(&self.kinds(), &both, &person.ledger).into_iter().next();
        shown.ok_or_else(|| MemoryError::NoFact(id.clone()))
    }

    /// What `value` would be as a fact of this kind. The words are the person's own; where there are none, the value as
    /// it was given stands for them.
    pub fn prepare_add(
        &self,
        user: &UserId,
        kind: &str,
        value: &str,
        quote: Option<&str>,
    ) -> Result<Given, MemoryError> {
        let kind = self.kind(kind)?;
        let redactor = &self.parts().redactor;
        let folded = given_value(&kind, value, redactor).map_err(|reason| refused("value", reason))?;
        let quote = quote.unwrap_or(value).trim();
        given_words(quote, &folded, redactor).map_err(|reason| refused("quote", reason))?;
        Ok(Given {
            user: user.clone(),
            fact: fact_id(user, &kind.name, &folded),
            kind: kind.name.clone(),
            value: folded,
            quote: quote.to_owned(),
            stance: Stance::Affirmed,
            instead_of: None,
        })
    }

    /// The same in the place of a fact that is there. What was believed becomes superseded where a person has one value
    /// of the kind at a time; else it is taken back.
    pub async fn prepare_correction(
        &self,
        user: &UserId,
        id: &FactId,
        value: &str,
        quote: Option<&str>,
    ) -> Result<Given, MemoryError> {
        let person = self.person(user).await?;
        let fact = find(&person, id)?;
        let mut given = self.prepare_add(user, &fact.kind, value, quote)?;
        let is_single = self.kind(&fact.kind)?.is_single;
        let goes_by_itself = match fact.state {
            FactState::Stable | FactState::Contested => is_single,
            FactState::Candidate => false,
            FactState::Superseded | FactState::Expired | FactState::Retracted => true,
        };
        given.instead_of = (!goes_by_itself && given.value != fact.value).then(|| fact.value.clone());
        Ok(given)
    }

    /// That a fact is not so, or no longer.
    pub async fn prepare_retraction(
        &self,
        user: &UserId,
        id: &FactId,
        quote: Option<&str>,
    ) -> Result<Given, MemoryError> {
        let person = self.person(user).await?;
        let fact = find(&person, id)?;
        let quote = quote.map_or_else(|| format!("not: {}", fact.value), |quote| quote.trim().to_owned());
        let words = given_words(&quote, &fact.value, &self.parts().redactor);
        words.map_err(|reason| refused("quote", reason))?;
        Ok(Given {
            user: user.clone(),
            fact: fact.id.clone(),
            kind: fact.kind.clone(),
            value: fact.value.clone(),
            quote,
            stance: Stance::Retracted,
            instead_of: None,
        })
    }

    /// Keeps what was prepared, and gives the fact as it is then. Said twice, it is kept once.
    pub async fn keep(&self, given: Given) -> Result<View, MemoryError> {
        let person = self.person(&given.user).await?;
        if given.instead_of.is_none() && is_kept(&person, &given) {
            return self.view(&given.user, &given.fact).await;
        }
        let mut at = self.next_moment(&person);
        let mut said = Vec::new();
        if let Some(old) = &given.instead_of {
            said.push(self.observation(&given, old, Stance::Retracted, at));
            at = just_after(at);
        }
        said.push(self.observation(&given, &given.value, given.stance, at));
        self.parts().store.append(&given.user, said).await?;
        self.follow(&given.user).await;
        self.view(&given.user, &given.fact).await
    }

    /// Forgets one fact as if it had never been said: under every spelling that it is stored in, with its words, and with
    /// the turns that wait to be learned from, since it may stand in any of them.
    pub async fn forget(&self, user: &UserId, id: &FactId) -> Result<Forgotten, MemoryError> {
        let person = self.person(user).await?;
        let fact = find(&person, id)?;
        let (kinds, mut all) = (self.kinds(), Forgotten::default());
        for value in stored_values(&kinds, fact, person.ledger.observations()) {
            let gone = self.parts().store.forget(user, &fact.kind, value).await?;
            all.observations += gone.observations;
            all.notes += gone.notes;
            all.captures += gone.captures;
        }
        self.follow(user).await;
        Ok(all)
    }

    /// Erases everything that is stored of what a person wrote, in every table: what is remembered, and the journals of
    /// runs, held turns and approvals besides.
    pub async fn erase(&self, user: &UserId) -> Result<Erased, MemoryError> {
        let erased = self.parts().store.erase(user).await?;
        self.people.forget(user);
        Ok(erased)
    }

    /// Everything that is remembered of a person, to take along.
    pub async fn export(&self, user: &UserId) -> Result<Document, MemoryError> {
        let person = self.person(user).await?;
        let now = self.parts().clock.now();
        Ok(export::document(
            &self.kinds(),
            user,
            now,
            &person.facts,
            &person.ledger,
        ))
    }

    /// Reads a document; nothing is kept yet.
    pub fn read_import(&self, user: &UserId, text: &str, binding: Binding) -> Result<Imported, MemoryError> {
        let now = self.parts().clock.now();
        Ok(export::read(
            text,
            &Import {
                kinds: &self.kinds(),
                redactor: &self.parts().redactor,
                user,
                binding,
                now: now
                    .checked_add(jiff::SignedDuration::from_secs(AHEAD_S))
                    .unwrap_or(now),
            },
        )?)
    }

    /// Keeps what was read from a document. Gives how many observations are new.
    pub async fn take_in(&self, user: &UserId, imported: Imported) -> Result<u64, MemoryError> {
        let added = self.parts().store.append(user, imported.observations).await?;
        self.follow(user).await;
        Ok(added)
    }

    /// The switches of a person and of the person's key; what either turns off is off.
    pub async fn switches(&self, user: &UserId) -> Result<(Switches, Switches), MemoryError> {
        Ok(self.parts().store.switches(user).await?)
    }

    /// Turns a switch. With learning, what waits to be learned from goes, too.
    pub async fn set_switch(
        &self,
        owner: &SwitchOwner,
        switch: Switch,
        is_on: bool,
    ) -> Result<(), MemoryError> {
        Ok(self.parts().store.set_switch(owner, switch, is_on).await?)
    }

    /// The people of a key of whom something is kept, in the order of their ids, after `after`, at most `limit`.
    pub async fn remembered(
        &self,
        key_id: &KeyId,
        after: Option<&UserId>,
        limit: usize,
    ) -> Result<Vec<Remembered>, MemoryError> {
        Ok(self.parts().store.users(key_id, after, limit).await?)
    }

    /// Brings what recall searches in line. The change itself stands already; what cannot follow now does so with the
    /// next change, and a fact that is gone is told to nobody meanwhile.
    async fn follow(&self, user: &UserId) {
        if let Err(error) = self.refresh(user).await {
            tracing::warn!(%error, "the notes on a person do not follow a change yet");
        }
    }

    fn kind(&self, name: &str) -> Result<Kind, MemoryError> {
        let kinds = self.kinds();
        kinds.get(name).cloned().ok_or_else(|| {
            let names: Vec<&str> = kinds.iter().map(|kind| kind.name.as_str()).collect();
            MemoryError::Invalid {
                param: "kind",
                message: format!("`kind` is one of {}", names.join(", ")),
            }
        })
    }

    /// Now, or just after everything that was said: a correction is the last word, also where the clock was set back.
    fn next_moment(&self, person: &Person) -> Timestamp {
        let said = person.ledger.observations().iter();
        let last = said.map(|observation| observation.at).max();
        let now = self.parts().clock.now();
        last.map_or(now, |last| now.max(just_after(last)))
    }

    fn observation(&self, given: &Given, value: &str, stance: Stance, at: Timestamp) -> Observation {
        let parts = self.parts();
        let mut turn = [0; 32];
        parts.entropy.fill(&mut turn);
        Observation {
            id: ObservationId::generate(&*parts.entropy),
            kind: given.kind.clone(),
            value: value.to_owned(),
            quote: given.quote.clone(),
            turn,
            conversation: String::new(),
            day: parts.clock.today(),
            at,
            voice: Voice::Corrected,
            stance,
            extractor: EXTRACTOR.to_owned(),
            is_explicit: true,
            is_first_person: true,
        }
    }
}

fn find<'p>(person: &'p Person, id: &FactId) -> Result<&'p Fact, MemoryError> {
    person.fact(id).ok_or_else(|| MemoryError::NoFact(id.clone()))
}

/// Whether that is what was said last already, so that a request which is sent again changes nothing.
fn is_kept(person: &Person, given: &Given) -> bool {
    let Ok(fact) = find(person, &given.fact) else {
        return false;
    };
    match given.stance {
        Stance::Retracted => fact.state == FactState::Retracted,
        Stance::Affirmed => {
            let last = person.ledger.of(fact).next_back();
            fact.state == FactState::Stable
                && fact.basis == Basis::Corrected
                && last.is_some_and(|last| last.voice == Voice::Corrected && last.quote == given.quote)
        }
    }
}

fn just_after(at: Timestamp) -> Timestamp {
    at.checked_add(jiff::SignedDuration::from_micros(1)).unwrap_or(at)
}

fn refused(param: &'static str, reason: Reason) -> MemoryError {
    let sentence = reason.sentence();
    let mut letters = sentence.trim_end_matches('.').chars();
    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
    let text: String = first.into_iter().chain(letters).collect();
    MemoryError::Invalid {
        param,
        message: format!("`{param}` cannot be kept: {text}"),
    }
}
