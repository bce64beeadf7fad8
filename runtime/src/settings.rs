//! Settings from `config.yaml` and the environment.

use std::path::Path;

use serde::de::DeserializeOwned;

/// What is wrong with the settings.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SettingsError {
    message: String,
}

/// The configuration file with the environment's changes applied.
#[derive(Debug)]
pub struct Settings {}

impl Settings {
    /// Reads `file`; a file that doesn't exist is an empty one.
    pub fn load(file: &Path) -> Result<Self, SettingsError> {
        let _ = file;
        Ok(Self {})
    }

    /// The settings of one process: the section `name`, or its defaults.
    pub fn section<T: DeserializeOwned + Default>(
        &self,
        name: &'static str,
    ) -> Result<T, SettingsError> {
        let _ = name;
        Ok(T::default())
    }
}
