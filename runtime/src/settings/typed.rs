//! A tree of settings as typed values, by way of serde.
//!
//! The deserializer asks for a type and the text is read as that type; an error
//! carries the line of the value, or of the key, that caused it.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, EnumAccess, Expected, IntoDeserializer as _,
    MapAccess, SeqAccess, Unexpected, VariantAccess, Visitor,
};

use super::error::{SettingsError, instead};
use super::tree::{Key, Kind, Node, Scalar};

/// The value of `node` as a `T`.
pub(super) fn read<T: DeserializeOwned>(node: &Node) -> Result<T, SettingsError> {
    T::deserialize(Value(node)).map_err(|error| error.found(node))
}

impl de::Error for SettingsError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::new(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}, found {found}"))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::new(format!("expected {expected}, found {found}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        Self::new(format!("`{variant}` is none of its values: {}", instead(variant, expected)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        Self::unknown("key", field, expected)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::new(format!("the key `{field}` is missing"))
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::new(format!("the key `{field}` is there twice"))
    }
}

struct Value<'a>(&'a Node);

impl<'a> Value<'a> {
    fn expected(&self, what: impl fmt::Display) -> SettingsError {
        SettingsError::new(format!("expected {what}, found {}", self.0.found())).at(&self.0.origin)
    }

    fn scalar(&self, what: &str) -> Result<&'a Scalar, SettingsError> {
        match &self.0.kind {
            Kind::Scalar(scalar) if !scalar.is_null() => Ok(scalar),
            _ => Err(self.expected(what)),
        }
    }

    fn text(&self) -> Result<&'a str, SettingsError> {
        self.scalar("a text").map(|scalar| scalar.text.as_str())
    }
}

macro_rules! whole_numbers {
    ($($method:ident $visit:ident $type:ty),*) => {$(
        fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
            let what = format!("a whole number from {} to {}", <$type>::MIN, <$type>::MAX);
            let scalar = self.scalar(&what)?;
            let number = scalar.plain.then(|| whole(&scalar.text)).flatten();
            let number = number.and_then(|number| <$type>::try_from(number).ok());
            visitor.$visit(number.ok_or_else(|| self.expected(what))?)
        }
    )*};
}

impl<'de> de::Deserializer<'de> for Value<'_> {
    type Error = SettingsError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        let scalar = match &self.0.kind {
            Kind::List(_) => return self.deserialize_seq(visitor),
            Kind::Map(_) => return self.deserialize_map(visitor),
            Kind::Scalar(scalar) => scalar,
        };
        if scalar.is_null() {
            visitor.visit_unit()
        } else if !scalar.plain {
            visitor.visit_str(&scalar.text)
        } else if let Some(truth) = truth(&scalar.text) {
            visitor.visit_bool(truth)
        } else if let Some(number) = whole(&scalar.text) {
            match (u64::try_from(number), i64::try_from(number)) {
                (Ok(number), _) => visitor.visit_u64(number),
                (_, Ok(number)) => visitor.visit_i64(number),
                _ => visitor.visit_str(&scalar.text),
            }
        } else if let Some(number) = real(&scalar.text) {
            visitor.visit_f64(number)
        } else {
            visitor.visit_str(&scalar.text)
        }
    }

    fn deserialize_bool<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        let scalar = self.scalar("`true` or `false`")?;
        let value = scalar.plain.then(|| truth(&scalar.text)).flatten();
        visitor.visit_bool(value.ok_or_else(|| self.expected("`true` or `false`"))?)
    }

    whole_numbers! {
        deserialize_i8 visit_i8 i8, deserialize_i16 visit_i16 i16, deserialize_i32 visit_i32 i32,
        deserialize_i64 visit_i64 i64, deserialize_u8 visit_u8 u8, deserialize_u16 visit_u16 u16,
        deserialize_u32 visit_u32 u32, deserialize_u64 visit_u64 u64
    }

    fn deserialize_f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        self.deserialize_f64(visitor)
    }

    fn deserialize_f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        let scalar = self.scalar("a number")?;
        let number = scalar.plain.then(|| real(&scalar.text)).flatten();
        visitor.visit_f64(number.ok_or_else(|| self.expected("a number"))?)
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        visitor.visit_str(self.text()?)
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        if self.0.is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        visitor: V,
    ) -> Result<V::Value, SettingsError> {
        visitor.visit_newtype_struct(self)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        match &self.0.kind {
            Kind::List(items) => visitor.visit_seq(Items { items: items.iter().enumerate() }),
            _ => Err(self.expected("a list such as `[a, b]`")),
        }
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        match &self.0.kind {
            Kind::Map(entries) => {
                visitor.visit_map(Entries { entries: entries.iter(), value: None })
            }
            _ => Err(self.expected("keys and values")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SettingsError> {
        self.deserialize_map(visitor)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _name: &'static str,
        _variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SettingsError> {
        match &self.0.kind {
            Kind::Map(entries) if entries.len() == 1 => {
                let (key, node) = &entries[0];
                visitor.visit_enum(Variant { name: &key.text, node: Some(node) })
            }
            Kind::Map(_) => Err(self.expected("one of its values")),
            _ => {
                let name = self.text()?;
                visitor.visit_enum(Variant { name, node: None })
            }
        }
    }

    fn deserialize_ignored_any<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, SettingsError> {
        visitor.visit_unit()
    }

    fn deserialize_unit<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        if self.0.is_null() { visitor.visit_unit() } else { Err(self.expected("nothing")) }
    }

    fn deserialize_tuple<V: Visitor<'de>>(
        self,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, SettingsError> {
        self.deserialize_seq(visitor)
    }

    fn deserialize_identifier<V: Visitor<'de>>(
        self,
        visitor: V,
    ) -> Result<V::Value, SettingsError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        self.deserialize_str(visitor)
    }

    fn deserialize_char<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, SettingsError> {
        self.deserialize_str(visitor)
    }

    serde::forward_to_deserialize_any! {
        i128 u128 bytes byte_buf unit_struct tuple_struct
    }
}

struct Items<'a> {
    items: std::iter::Enumerate<std::slice::Iter<'a, Node>>,
}

impl<'de> SeqAccess<'de> for Items<'_> {
    type Error = SettingsError;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, SettingsError> {
        let Some((index, node)) = self.items.next() else { return Ok(None) };
        let result = seed.deserialize(Value(node));
        result.map(Some).map_err(|error| error.found(node).within(&index.to_string()))
    }
}

struct Entries<'a> {
    entries: std::slice::Iter<'a, (Key, Node)>,
    value: Option<(&'a str, &'a Node)>,
}

impl<'de> MapAccess<'de> for Entries<'_> {
    type Error = SettingsError;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, SettingsError> {
        let Some((key, node)) = self.entries.next() else { return Ok(None) };
        self.value = Some((&key.text, node));
        let text: StrDeserializer<'_, SettingsError> = key.text.as_str().into_deserializer();
        seed.deserialize(text).map(Some).map_err(|error| error.at(&key.origin))
    }

    fn next_value_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<T::Value, SettingsError> {
        let (key, node) = self.value.take().expect("serde asks for the key first");
        seed.deserialize(Value(node)).map_err(|error| error.found(node).within(key))
    }
}

struct Variant<'a> {
    name: &'a str,
    node: Option<&'a Node>,
}

impl<'de, 'a> EnumAccess<'de> for Variant<'a> {
    type Error = SettingsError;
    type Variant = Content<'a>;

    fn variant_seed<V: DeserializeSeed<'de>>(
        self,
        seed: V,
    ) -> Result<(V::Value, Content<'a>), SettingsError> {
        let name: StrDeserializer<'_, SettingsError> = self.name.into_deserializer();
        Ok((seed.deserialize(name)?, Content { name: self.name, node: self.node }))
    }
}

struct Content<'a> {
    name: &'a str,
    node: Option<&'a Node>,
}

impl<'a> Content<'a> {
    fn value(self) -> Result<Value<'a>, SettingsError> {
        let missing = || SettingsError::new(format!("`{}` needs a value of its own", self.name));
        self.node.map(Value).ok_or_else(missing)
    }
}

impl<'de> VariantAccess<'de> for Content<'_> {
    type Error = SettingsError;

    fn unit_variant(self) -> Result<(), SettingsError> {
        match self.node {
            Some(node) if !node.is_null() => {
                Err(SettingsError::new(format!("`{}` takes no value", self.name)).at(&node.origin))
            }
            _ => Ok(()),
        }
    }

    fn newtype_variant_seed<T: DeserializeSeed<'de>>(
        self,
        seed: T,
    ) -> Result<T::Value, SettingsError> {
        let value = self.value()?;
        let node = value.0;
        seed.deserialize(value).map_err(|error| error.found(node))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        _length: usize,
        visitor: V,
    ) -> Result<V::Value, SettingsError> {
        de::Deserializer::deserialize_seq(self.value()?, visitor)
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        _fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, SettingsError> {
        de::Deserializer::deserialize_map(self.value()?, visitor)
    }
}

fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" => Some(true),
        "false" | "False" | "FALSE" => Some(false),
        _ => None,
    }
}

fn whole(text: &str) -> Option<i128> {
    let (digits, radix) = match text.as_bytes() {
        [b'0', b'x', ..] => (&text[2..], 16),
        [b'0', b'o', ..] => (&text[2..], 8),
        _ => (text, 10),
    };
    i128::from_str_radix(digits, radix)
        .ok()
        .filter(|_| radix == 10 || !digits.starts_with(['+', '-']))
}

fn real(text: &str) -> Option<f64> {
    // Rust reads `inf` and `nan` too; YAML doesn't.
    let written = text.bytes().any(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|number: &f64| written && number.is_finite())
}
