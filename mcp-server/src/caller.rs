//! Who is calling.

use serde::Deserialize;
use serde_json::{Map, Value};

/// The key under which our engine plugin stamps a call.
const STAMP: &str = "_caller";
/// The longest name or id that is kept, in bytes.
const LONGEST: usize = 128;

/// How a client came in, which is all that's known for sure about it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Door {
    /// Started us and speaks over our standard input.
    Stdio,
    /// Showed the token that any client may have.
    Token,
    /// Showed the engine's own token.
    Engine,
}

/// Who is calling, as far as it's known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Caller {
    /// How it came in.
    pub door: Door,
    /// What it calls itself. Anybody can call himself anything.
    pub name: Option<String>,
    /// The engine's session, only if the engine itself said so.
    pub session: Option<String>,
    /// The engine's id of the call, likewise.
    pub call: Option<String>,
}

/// What our engine plugin adds to the arguments of each call.
#[derive(Debug, Deserialize)]
struct Stamp {
    session: String,
    call: String,
}

impl Caller {
    /// Takes the stamp out of `arguments`, and believes it if it came through
    /// the engine's door. Elsewhere it's a guess by a model or an attempt.
    pub fn identify(door: Door, name: Option<String>, arguments: &mut Map<String, Value>) -> Self {
        let stamp = arguments
            .shift_remove(STAMP)
            .filter(|_| door == Door::Engine)
            .and_then(|stamp| serde_json::from_value::<Stamp>(stamp).ok())
            .filter(|stamp| stamp.session.len() <= LONGEST && stamp.call.len() <= LONGEST);
        let (session, call) = match stamp {
            Some(Stamp { session, call }) => (Some(session), Some(call)),
            None => (None, None),
        };
        Self { door, name: name.map(|name| shortened(&name)), session, call }
    }

    /// For the audit log: `engine: opencode`.
    #[must_use]
    pub fn label(&self) -> String {
        let door = match self.door {
            Door::Stdio => "stdio",
            Door::Token => "token",
            Door::Engine => "engine",
        };
        match &self.name {
            Some(name) => format!("{door}: {name}"),
            None => door.to_owned(),
        }
    }
}

fn shortened(name: &str) -> String {
    name.chars().filter(|c| !c.is_control()).take(LONGEST / 2).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_stamp_is_always_taken_out_and_only_the_engine_is_believed() {
        let good = json!({"session": "ses_1", "call": "call_1"});
        let long = json!({"session": "s".repeat(129), "call": "c"});
        #[rustfmt::skip]
        let cases: [(Door, Value, Option<&str>); 7] = [
            // door          stamp                          session
            (Door::Engine,   good.clone(),                  Some("ses_1")),
            (Door::Token,    good.clone(),                  None),
            (Door::Stdio,    good,                          None),
            (Door::Engine,   json!({"session": "ses_1"}),   None),
            (Door::Engine,   json!("ses_1"),                None),
            (Door::Engine,   Value::Null,                   None),
            (Door::Engine,   long,                          None),
        ];
        for (door, stamp, session) in cases {
            let mut arguments = Map::from_iter([
                (STAMP.to_owned(), stamp.clone()),
                ("path".to_owned(), json!("a")),
            ]);
            let caller = Caller::identify(door, Some("opencode".into()), &mut arguments);
            assert_eq!(caller.session.as_deref(), session, "{door:?} {stamp}");
            assert_eq!(Value::from(arguments), json!({"path": "a"}));
        }
    }
}
