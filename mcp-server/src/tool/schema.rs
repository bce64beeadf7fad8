//! A tool's schema, made from its type and thinned out.
//!
//! Every token of it is sent with every request to the model, so what tells a
//! model nothing is left out: titles, number formats, `null` as a way to write
//! an argument that is left out.

use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value};

/// What a client is told about a tool.
#[derive(Debug, Clone)]
pub struct Described {
    /// What it does.
    pub description: String,
    /// JSON Schema of its arguments.
    pub schema: Map<String, Value>,
}

impl Described {
    /// Of the type that is the tool's arguments.
    pub fn of<T: JsonSchema>() -> Self {
        let settings = SchemaSettings::draft2020_12().with(|settings| {
            settings.meta_schema = None;
            settings.inline_subschemas = true;
        });
        let mut schema = settings.into_generator().into_root_schema_for::<T>();
        Thin.transform(&mut schema);
        let mut schema = match schema.to_value() {
            Value::Object(object) => object,
            _ => Map::new(),
        };
        let description = match schema.shift_remove("description") {
            Some(Value::String(text)) => unwrapped(&text),
            _ => String::new(),
        };
        // Some clients insist on it, also for a tool without arguments.
        schema.entry("properties").or_insert_with(|| Value::Object(Map::new()));
        Self { description, schema }
    }

    /// The arguments in words: `` `path` (required), `limit` ``.
    #[must_use]
    pub fn takes(&self) -> String {
        let required: Vec<&str> = self
            .schema
            .get("required")
            .and_then(Value::as_array)
            .map(|names| names.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default();
        let properties = self.schema.get("properties").and_then(Value::as_object);
        let names: Vec<String> = properties
            .into_iter()
            .flat_map(Map::keys)
            .map(|name| {
                let needed = if required.contains(&name.as_str()) { " (required)" } else { "" };
                format!("`{name}`{needed}")
            })
            .collect();
        if names.is_empty() { "no arguments".into() } else { names.join(", ") }
    }
}

struct Thin;

impl Transform for Thin {
    fn transform(&mut self, schema: &mut Schema) {
        transform_subschemas(self, schema);
        for noise in ["title", "format", "default"] {
            schema.remove(noise);
        }
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = unwrapped(text);
        }
        if let Some(Value::Array(types)) = schema.get_mut("type") {
            types.retain(|name| name != "null");
            if let [only] = types.as_slice() {
                let only = only.clone();
                schema.insert("type".into(), only);
            }
        }
    }
}

/// Doc comments are wrapped for us; a model needs no line breaks within a paragraph.
fn unwrapped(text: &str) -> String {
    let paragraphs: Vec<String> = text
        .split("\n\n")
        .map(|paragraph| paragraph.split('\n').map(str::trim).collect::<Vec<_>>().join(" "))
        .collect();
    paragraphs.join("\n\n")
}
