//! Values that stand elsewhere: `${VAR}` and `file:/path`.

use std::path::Path;

use zeroize::Zeroizing;

use super::environment::Environment;
use super::error::SettingsError;
use super::read_text;
use super::tree::{Kind, Node, Scalar};

/// The longest file that a value may stand in: 64 KiB.
const LONGEST: u64 = 64 * 1024;

/// `node` with every `${VAR}` replaced by the variable's value and every
/// `file:path` by the file's content, without the line break at its end.
///
/// `$${` stands for `${`. What comes from a variable or a file is taken as it
/// is and not searched again. A relative path starts at `folder`.
pub(super) fn follow(
    node: &Node,
    environment: &Environment,
    folder: &Path,
) -> Result<Node, SettingsError> {
    let kind = match &node.kind {
        Kind::Scalar(scalar) => Kind::Scalar(
            value(scalar, environment, folder).map_err(|error| error.at(&node.origin))?,
        ),
        Kind::List(items) => Kind::List(
            items.iter().map(|item| follow(item, environment, folder)).collect::<Result<_, _>>()?,
        ),
        Kind::Map(entries) => Kind::Map(
            entries
                .iter()
                .map(|(key, node)| {
                    let node = follow(node, environment, folder);
                    Ok((key.clone(), node.map_err(|error| error.within(&key.text))?))
                })
                .collect::<Result<_, _>>()?,
        ),
    };
    Ok(Node { origin: node.origin.clone(), kind })
}

fn value(
    scalar: &Scalar,
    environment: &Environment,
    folder: &Path,
) -> Result<Scalar, SettingsError> {
    let expanded = expand(&scalar.text, environment)?;
    // Looked for in what was written: a variable's value can't name a file.
    if scalar.text.starts_with("file:") {
        let path = folder.join(&expanded.as_ref().unwrap_or(&scalar.text)["file:".len()..]);
        let mut text = read_text(&path, LONGEST).map_err(|source| {
            SettingsError::new(format!("could not read the value from `{}`", path.display()))
                .caused_by(source)
        })?;
        let end = text.trim_end_matches(['\r', '\n']).len();
        text.truncate(end);
        return Ok(Scalar { text, plain: true, hidden: true });
    }
    Ok(match expanded {
        Some(text) => Scalar { text, plain: true, hidden: true },
        None => scalar.clone(),
    })
}

/// `None` if there is nothing to replace.
fn expand(
    text: &str,
    environment: &Environment,
) -> Result<Option<Zeroizing<String>>, SettingsError> {
    if !text.contains("${") {
        return Ok(None);
    }
    let mut whole = Zeroizing::new(String::with_capacity(text.len()));
    let mut rest = text;
    while let Some(at) = rest.find("${") {
        let (before, from) = rest.split_at(at);
        if let Some(before) = before.strip_suffix('$') {
            whole.push_str(before);
            whole.push_str("${");
            rest = &from[2..];
            continue;
        }
        whole.push_str(before);
        let name = from[2..].split('}').next().unwrap_or_default();
        if !from.contains('}') || !is_name(name) {
            return Err(SettingsError::new(
                "`${` starts a variable's name and `}` ends it: write `$${` for the characters themselves",
            ));
        }
        let value = environment.get(name).map_err(|why| {
            SettingsError::new(format!("the environment variable `{name}` {why}"))
        })?;
        whole.push_str(value);
        rest = &from[name.len() + 3..];
    }
    whole.push_str(rest);
    Ok(Some(whole))
}

fn is_name(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
