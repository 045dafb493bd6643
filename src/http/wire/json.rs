//! Bounded, strict building blocks of the wire types.
//!
//! A derived struct also accepts an array of its fields, a derived `Vec` any number of members, and a JSON value
//! of two bytes takes dozens in memory. Each is closed here, once.

use std::{cell::Cell, fmt, marker::PhantomData};

use serde::{
    Deserialize, Deserializer,
    de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Number, Value};

/// Values that one free-form part of a request may hold: a schema, a file part, arguments.
pub(in crate::http) const VALUES_MAX: usize = 50_000;
/// Values that the fields outside the contract may hold together.
const EXTRA_VALUES_MAX: usize = 4096;
/// Fields outside the contract that are kept; the rest are ignored like any other unknown field.
const EXTRA_FIELDS_MAX: usize = 64;

/// A struct that is written as an object, and as nothing else.
#[derive(Debug, Clone)]
pub(in crate::http) struct Object<T>(pub(in crate::http) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for ObjectVisitor<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(ObjectVisitor(PhantomData))
    }
}

/// An array of at most `MAX` members.
#[derive(Debug, Clone)]
pub(in crate::http) struct List<T, const MAX: usize>(pub(in crate::http) Vec<T>);

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ListVisitor<T, const MAX: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for ListVisitor<T, MAX> {
            type Value = List<T, MAX>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an array")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = seq.next_element()? {
                    if members.len() == MAX {
                        return Err(A::Error::custom(format_args!("more than {MAX} members")));
                    }
                    members.push(member);
                }
                Ok(List(members))
            }
        }
        deserializer.deserialize_seq(ListVisitor(PhantomData))
    }
}

/// Any JSON, of at most [`VALUES_MAX`] values.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::http) struct Free(pub(in crate::http) Value);

impl<'de> Deserialize<'de> for Free {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let left = Cell::new(VALUES_MAX);
        Counted(&left).deserialize(deserializer).map(Self)
    }
}

/// The top-level fields that are not in `known`, for the model's server to take or leave. `None` where they are
/// too large to be handed on; then they are ignored like any other unknown field.
pub(in crate::http) fn extra_fields(
    body: &[u8],
    known: &'static [&'static str],
) -> Option<Map<String, Value>> {
    struct Extra(&'static [&'static str]);
    impl<'de> Visitor<'de> for Extra {
        type Value = Map<String, Value>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an object")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let left = Cell::new(EXTRA_VALUES_MAX);
            let mut extra = Map::new();
            while let Some(key) = map.next_key::<std::borrow::Cow<'de, str>>()? {
                if self.0.contains(&key.as_ref()) || extra.len() == EXTRA_FIELDS_MAX {
                    map.next_value::<serde::de::IgnoredAny>()?;
                } else {
                    let value = map.next_value_seed(Counted(&left))?;
                    extra.insert(key.into_owned(), value);
                }
            }
            Ok(extra)
        }
    }
    serde_json::Deserializer::from_slice(body)
        .deserialize_map(Extra(known))
        .ok()
}

/// Builds a value and counts down for each member of it.
#[derive(Clone, Copy)]
struct Counted<'a>(&'a Cell<usize>);

impl Counted<'_> {
    fn count<E: serde::de::Error>(self) -> Result<(), E> {
        let left = self.0.get().checked_sub(1);
        self.0
            .set(left.ok_or_else(|| E::custom("holds too many values"))?);
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for Counted<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        self.count()?;
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Counted<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = seq.next_element_seed(self)? {
            members.push(member);
        }
        Ok(Value::Array(members))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            let member = map.next_value_seed(self)?;
            members.insert(key, member);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, Deserialize)]
    struct Pair {
        a: u8,
        b: u8,
    }

    #[test]
    fn an_object_is_no_array() {
        let pair = serde_json::from_str::<Object<Pair>>(r#"{"a":1,"b":2}"#)
            .unwrap()
            .0;
        assert_eq!((pair.a, pair.b), (1, 2));
        assert!(serde_json::from_str::<Object<Pair>>("[1,2]").is_err());
    }

    #[test]
    fn a_list_ends_at_its_bound() {
        assert_eq!(serde_json::from_str::<List<u8, 2>>("[1,2]").unwrap().0, [1, 2]);
        assert!(serde_json::from_str::<List<u8, 2>>("[1,2,3]").is_err());
    }

    #[test]
    fn free_json_is_kept_as_it_is_up_to_a_bound() {
        let text = r#"{"a":[1,-2,2.5,true,null,"x"],"b":{}}"#;
        let free: Free = serde_json::from_str(text).unwrap();
        assert_eq!(free.0.to_string(), text);
        assert!(serde_json::from_str::<Free>(&format!("[{}0]", "0,".repeat(VALUES_MAX))).is_err());
    }

    #[test]
    fn only_unknown_fields_are_extra_and_only_a_few() {
        let extra = extra_fields(br#"{"model":"m","top_k":4,"options":{"num_ctx":1}}"#, &["model"]).unwrap();
        assert_eq!(
            Value::Object(extra).to_string(),
            r#"{"top_k":4,"options":{"num_ctx":1}}"#
        );
        let many: Vec<String> = (0..1000).map(|n| format!("\"k{n}\":1")).collect();
        let extra = extra_fields(format!("{{{}}}", many.join(",")).as_bytes(), &[]).unwrap();
        assert_eq!(extra.len(), EXTRA_FIELDS_MAX);
        let large = format!("{{\"x\":[{}0]}}", "0,".repeat(EXTRA_VALUES_MAX));
        assert!(extra_fields(large.as_bytes(), &[]).is_none());
    }
}
