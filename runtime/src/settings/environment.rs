//! The environment: `OPENPACT_<SECTION>_<KEY>` over the file, `${VAR}` in it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::Arc;

use zeroize::Zeroizing;

use super::SECTIONS;
use super::error::{SettingsError, nearest};
use super::tree::{self, Key, Kind, Node, Origin, Scalar};

const PREFIX: &str = "OPENPACT_";

/// What the process was started with.
pub(super) struct Environment {
    /// `None`: its value isn't UTF-8.
    variables: BTreeMap<String, Option<Zeroizing<String>>>,
}

impl Environment {
    /// Refuses a variable whose name is a section's with a slip of the pen.
    /// Others that begin with `OPENPACT_` (`OPENPACT_LOG`) are no settings.
    pub(super) fn new<K, V>(
        variables: impl IntoIterator<Item = (K, V)>,
    ) -> Result<Self, SettingsError>
    where
        K: Into<OsString>,
        V: Into<OsString>,
    {
        let variables: BTreeMap<_, _> = variables
            .into_iter()
            .filter_map(|(name, value)| {
                let name = name.into().into_string().ok()?;
                Some((name, value.into().into_string().ok().map(Zeroizing::new)))
            })
            .collect();
        for name in variables.keys() {
            let Some(rest) = name.strip_prefix(PREFIX) else { continue };
            let Some((first, key)) = rest.split_once('_') else { continue };
            let meant = nearest(first, &SECTIONS).map(str::to_uppercase);
            if let Some(meant) = meant.filter(|meant| meant != first) {
                let message =
                    format!("there is no such section: did you mean `{PREFIX}{meant}_{key}`?");
                return Err(SettingsError::new(message).at(&origin(name)));
            }
        }
        Ok(Self { variables })
    }

    /// The value of `name`: `Err` says why there is none.
    pub(super) fn get(&self, name: &str) -> Result<&Zeroizing<String>, &'static str> {
        match self.variables.get(name) {
            Some(Some(value)) => Ok(value),
            Some(None) => Err("is not UTF-8"),
            None => Err("is not set"),
        }
    }

    /// Puts every `OPENPACT_<SECTION>_<KEY>` into its section; `__` leads to
    /// keys below keys.
    ///
    /// An empty variable counts as not set, as compose files leave them.
    pub(super) fn override_in(&self, root: &mut Node) -> Result<(), SettingsError> {
        for section in SECTIONS {
            let prefix = format!("{PREFIX}{}_", section.to_uppercase());
            for (name, value) in &self.variables {
                let Some(key) = name.strip_prefix(&prefix).map(str::to_lowercase) else { continue };
                let origin = origin(name);
                let value = value.as_ref();
                let value = value.ok_or_else(|| SettingsError::new("is not UTF-8").at(&origin))?;
                if !value.is_empty() {
                    let target = entry(root, section, &origin);
                    let target =
                        key.split("__").fold(target, |node, key| entry(node, key, &origin));
                    *target = value_of(value, &origin)?;
                }
            }
        }
        Ok(())
    }
}

fn origin(variable: &str) -> Origin {
    Origin::Variable(Arc::from(variable))
}

/// A variable's value: the text as it is, or YAML if it starts as a list, a map
/// or a quoted text does. A password needs no escaping that way.
fn value_of(text: &Zeroizing<String>, origin: &Origin) -> Result<Node, SettingsError> {
    if !text.starts_with(['[', '{', '"', '\'']) {
        let scalar = Scalar { text: text.clone(), plain: true, hidden: false };
        return Ok(Node { origin: origin.clone(), kind: Kind::Scalar(scalar) });
    }
    let mut node = tree::parse(text).map_err(|_| {
        let hint = "starts as a list, a map or a quoted text does, but is not valid YAML: \
                    put a plain text that starts so into single quotes";
        SettingsError::new(hint).at(origin)
    })?;
    move_to(&mut node, origin);
    Ok(node)
}

fn move_to(node: &mut Node, origin: &Origin) {
    node.origin = origin.clone();
    match &mut node.kind {
        Kind::Scalar(_) => {}
        Kind::List(items) => items.iter_mut().for_each(|node| move_to(node, origin)),
        Kind::Map(entries) => entries.iter_mut().for_each(|(key, node)| {
            key.origin = origin.clone();
            move_to(node, origin);
        }),
    }
}

/// The entry `key` of the map `node`; both are made if they aren't there.
fn entry<'a>(node: &'a mut Node, key: &str, origin: &Origin) -> &'a mut Node {
    if !matches!(node.kind, Kind::Map(_)) {
        *node = Node { origin: origin.clone(), kind: Kind::Map(Vec::new()) };
    }
    let Kind::Map(entries) = &mut node.kind else { unreachable!("it was made a map above") };
    let at = entries.iter().position(|(name, _)| name.text == key).unwrap_or_else(|| {
        let empty = Node { origin: origin.clone(), kind: Kind::Map(Vec::new()) };
        entries.push((Key { text: key.to_owned(), origin: origin.clone() }, empty));
        entries.len() - 1
    });
    &mut entries[at].1
}
