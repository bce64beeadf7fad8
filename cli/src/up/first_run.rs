//! What the first `up` in a workspace leaves there: a configuration that explains itself, and keys.

use std::fs;
use std::path::Path;

use anyhow::Context as _;
use openpact_runtime::layout::Layout;
use openpact_runtime::{file, key};

/// The configuration that a new workspace gets.
pub const TEMPLATE: &str = include_str!("first_run/config.yaml");

/// Where the template says which model answers.
const NO_MODEL: &str = "\
#engine:
#  url: http://127.0.0.1:11434/v1
#  model: qwen3:8b
#  key: ${LLM_KEY}
";

/// The model that was named on the command line.
#[derive(Debug, Clone, Copy)]
pub(super) struct Named<'a> {
    /// `--llm-provider`
    pub(super) provider: Option<&'a str>,
    /// `--llm-url`
    pub(super) url: Option<&'a str>,
    /// `--model`
    pub(super) model: &'a str,
    /// `--llm-key-env`
    pub(super) key_variable: Option<&'a str>,
}

/// What became of the model that was named on the command line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    /// It's in the configuration file, for the next time as well.
    Stored,
    /// It holds for this run.
    ThisRun,
}

/// Makes what is missing in the workspace: folders, configuration, keys.
pub(super) fn prepare(layout: &Layout) -> anyhow::Result<()> {
    layout.create().with_context(|| format!("make `{}`", layout.root().display()))?;
    let path = layout.config_file();
    if !path.try_exists().with_context(|| format!("look for `{}`", path.display()))? {
        write(&path, TEMPLATE)?;
    }
    for name in [
        key::OPERATOR,
        key::FRONTEND,
        key::TOOLS,
        key::ENGINE_TO_MCP,
        key::MCP_CLIENT,
        key::ENGINE_PASSWORD,
    ] {
        key::read_or_create(&layout.keys(), name)?;
    }
    Ok(())
}

/// Stores a model that was named on the command line, if the configuration is
/// still as we wrote it. What a person has edited isn't touched.
pub(super) fn keep(layout: &Layout, named: Named<'_>) -> anyhow::Result<Kept> {
    let path = layout.config_file();
    let present =
        fs::read_to_string(&path).with_context(|| format!("read `{}`", path.display()))?;
    if present != TEMPLATE {
        return Ok(if present == with_model(named) { Kept::Stored } else { Kept::ThisRun });
    }
    write(&path, &with_model(named))?;
    Ok(Kept::Stored)
}

fn write(path: &Path, text: &str) -> anyhow::Result<()> {
    file::write_atomic(path, text.as_bytes(), 0o600)
        .with_context(|| format!("write `{}`", path.display()))
}

/// The template with the model filled in.
fn with_model(named: Named<'_>) -> String {
    // A JSON string is a YAML string; `$` would begin a reference.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut section = String::from("engine:\n");
    let values = [("provider", named.provider), ("url", named.url), ("model", Some(named.model))];
    for (key, value) in values {
        if let Some(value) = value {
            section += &format!("  {key}: {}\n", quoted(value));
        }
    }
    if let Some(variable) = named.key_variable {
        section += &format!("  key: ${{{variable}}}\n");
    }
    TEMPLATE.replace(NO_MODEL, &section)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use openpact_runtime::settings::Settings;
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::engine::settings::EngineSettings;

    const NAMED: Named<'static> =
        Named { provider: None, url: Some(URL), model: "m: \"x\"", key_variable: None };
    const URL: &str = "http://127.0.0.1:9/v1";

    fn workspace() -> (tempfile::TempDir, Layout) {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(&folder.path().join("new")).unwrap();
        (folder, layout)
    }

    fn engine(layout: &Layout) -> EngineSettings {
        Settings::load(&layout.config_file()).unwrap().section("engine").unwrap()
    }

    #[test]
    fn a_new_workspace_gets_a_configuration_that_loads_and_keys_that_only_its_owner_reads() {
        let (_folder, layout) = workspace();
        prepare(&layout).unwrap();
        assert!(engine(&layout).model.is_empty());
        let config = fs::metadata(layout.config_file()).unwrap();
        assert_eq!(config.permissions().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(layout.secure()).unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(fs::read_dir(layout.keys()).unwrap().count(), 6);
    }

    #[test]
    fn every_line_of_the_template_is_a_setting_once_it_is_uncommented() {
        let (_folder, layout) = workspace();
        layout.create().unwrap();
        let uncommented: String = TEMPLATE
            .lines()
            .filter(|line| line.starts_with("#  ") || !line.starts_with("# ") && *line != "#")
            .map(|line| format!("{}\n", line.strip_prefix('#').unwrap_or(line)))
            .map(|line| line.replace("${LLM_KEY}", "0123456789abcdef"))
            .collect();
        fs::write(layout.config_file(), uncommented).unwrap();
        let engine = engine(&layout);
        assert_eq!(engine.model, "qwen3:8b");
        assert_eq!(engine.key.unwrap().expose_secret(), "0123456789abcdef");
    }

    #[test]
    fn a_named_model_is_stored_where_nobody_has_edited() {
        let (_folder, layout) = workspace();
        prepare(&layout).unwrap();
        for _ in 0..2 {
            assert_eq!(keep(&layout, NAMED).unwrap(), Kept::Stored);
            let engine = engine(&layout);
            assert_eq!((engine.url.as_str(), engine.model.as_str()), (URL, NAMED.model));
        }
        // From now on the file says which model; another one holds for a run.
        let other = Named { model: "other", ..NAMED };
        prepare(&layout).unwrap();
        assert_eq!(keep(&layout, other).unwrap(), Kept::ThisRun);
        assert_eq!(engine(&layout).model, NAMED.model);
    }
}
