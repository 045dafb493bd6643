//! The table of kinds under a scenario's policy: the shipped one, with what the policy says of every kind.

use anyhow::{Context as _, Result};
use toml::{Table, Value};

use super::form::Policy;

/// The table that comes with tidegate.
const SHIPPED: &str = include_str!("../../../memory-kinds.toml");

/// The operator's file.
pub(super) fn kinds(policy: &Policy) -> Result<String> {
    let mut table: Table = SHIPPED.parse().context("the shipped table of kinds")?;
    let kinds = table.get_mut("kind").and_then(Value::as_array_mut);
    for kind in kinds.into_iter().flatten().filter_map(Value::as_table_mut) {
        if let Some(days) = policy.days_to_stable {
            kind.insert("days_to_stable".to_owned(), Value::Integer(i64::from(days)));
        }
        if let Some(names) = &policy.explicit_only {
            let is_named = kind
                .get("name")
                .and_then(Value::as_str)
                .is_some_and(|name| names.iter().any(|named| named == name));
            kind.insert("explicit_only".to_owned(), Value::Boolean(is_named));
        }
    }
    Ok(toml::to_string(&table)?)
}

#[cfg(test)]
mod tests {
    use tidegate_memory::kinds::Kinds;

    use super::*;

    #[test]
    fn a_policy_applies_to_every_kind() {
        let policy: Policy =
            serde_json::from_str(r#"{"days_to_stable": 5, "explicit_only": ["role"]}"#).unwrap();
        let kinds = Kinds::parse(&kinds(&policy).unwrap()).unwrap();
        for kind in &kinds {
            assert_eq!(
                (kind.days_to_stable, kind.explicit_only),
                (5, kind.name == "role")
            );
        }
        let as_shipped = Kinds::parse(&super::kinds(&Policy::default()).unwrap()).unwrap();
        assert_eq!(as_shipped, Kinds::shipped().unwrap());
    }
}
