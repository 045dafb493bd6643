//! What the capability report tells of everything around the engine, and the switch for disposable containers.

use tidegate_core::port::{KeyStore, PageRequest};
use tidegate_engine::capabilities::{Audit, Network, Surroundings};
use tidegate_tools::Tools;

use super::{Error, Purpose};
use crate::config::{
    Settings,
    disposable::{Disposable, MARKER, VARIABLE},
};

/// The name of the key that the first start makes.
const FIRST_KEY_NAME: &str = "bootstrap";

/// Looks at what is in force. Tries the sandbox where the app is built to serve.
pub(super) async fn surroundings(settings: &Settings, tools: &Tools, purpose: Purpose) -> Surroundings {
    let gate = &settings.config.gate;
    let audit = &settings.config.audit;
    let sandbox = match purpose {
        Purpose::Serve => tools.sandbox().await,
        Purpose::Look => None,
    };
    match &sandbox {
        Some((Some(level), sentence)) => tracing::info!(level, "programs are isolated: {sentence}"),
        Some((None, sentence)) => tracing::warn!("no program is run: {sentence}"),
        None => {}
    }
    Surroundings {
        knowledge_bank: tools.knowledge_bank(),
        sandbox,
        network: Network {
            allowed_domains: gate.allowed_domains.clone(),
            blocked_domains: gate.blocked_domains.clone(),
            opened_hosts: gate.ssrf_allow_hosts.len(),
            private_addresses: gate.ssrf_allow_private,
        },
        audit: Audit {
            enabled: audit.enabled,
            required: audit.enabled && audit.required,
        },
        allow_commands: gate.allow_commands.len(),
        deny_commands: gate.deny_commands.len(),
        is_disposable: settings.disposable.is_on(),
    }
}

/// Says loudly how the switch for disposable containers stands, and does not start where it is on beside keys that
/// somebody uses: such a machine is not thrown away.
pub(super) async fn check_disposable(settings: &Settings, keys: &dyn KeyStore) -> Result<(), Error> {
    match settings.disposable {
        Disposable::Off => return Ok(()),
        Disposable::WithoutMarker => {
            tracing::warn!(
                "{VARIABLE} is set and not in force: it must be `1`, and {MARKER} must be a file of root's that \
                 only root can write; every floor holds"
            );
            return Ok(());
        }
        Disposable::On => {}
    }
    let two = PageRequest {
        after: None,
        limit: 2,
        newest_first: false,
    };
    let page = keys.list(&two).await?;
    if page.keys.iter().any(|key| key.policy.name != FIRST_KEY_NAME) || page.keys.len() > 1 {
        return Err(Error::Part(format!(
            "{VARIABLE} is set, but the data folder holds keys besides the first one, so this is no disposable \
             container; unset {VARIABLE}, or use an empty data folder"
        )));
    }
    tracing::error!(
        "DISPOSABLE CONTAINER: the floors on credential files, start-up files, destructive git and text piped into \
         a shell are OFF, because {VARIABLE}=1 and {MARKER} are set; never do this where real data is"
    );
    Ok(())
}

/// What would not do what the operator expects of it.
pub(super) fn warn_of_settings(settings: &Settings) {
    if settings.config.engine.max_turn_cost_usd > 0.0 && settings.config.models.prices.is_empty() {
        tracing::warn!(
            "engine.max_turn_cost_usd bounds nothing: no model has a price; set [models.prices.NAME] with \
             cost_per_1k_input_usd and cost_per_1k_output_usd"
        );
    }
}
