//! The tokens that open the HTTP door, and the key that sessions are sealed with.

use openpact_runtime::key::{self, KeyError};
use openpact_runtime::layout::Layout;
use secrecy::{ExposeSecret as _, SecretString};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use crate::caller::Door;
use crate::config::Config;

/// The tokens that are accepted.
#[derive(Debug, Clone)]
pub struct Tokens {
    client: SecretString,
    engine: SecretString,
    session_key: SecretString,
}

impl Tokens {
    /// Reads the key files, making those that are missing. The setting
    /// `mcp.token` takes the place of the clients' file.
    pub fn read(layout: &Layout, config: &Config) -> Result<Self, KeyError> {
        let keys = layout.keys();
        let client = match &config.token {
            Some(token) => token.clone(),
            None => key::read_or_create(&keys, key::MCP_CLIENT)?,
        };
        let engine = key::read_or_create(&keys, key::ENGINE_TO_MCP)?;
        let session_key = key::read_or_create(&keys, key::MCP_SESSION)?;
        Ok(Self { client, engine, session_key })
    }

    /// Which door `token` opens.
    ///
    /// Takes as long for a wrong token as for a right one, whatever its length.
    #[must_use]
    pub fn door(&self, token: &str) -> Option<Door> {
        let shown = Sha256::digest(token);
        let is = |secret: &SecretString| shown.ct_eq(&Sha256::digest(secret.expose_secret()));
        let (engine, client) = (is(&self.engine), is(&self.client));
        if engine.into() { Some(Door::Engine) } else { bool::from(client).then_some(Door::Token) }
    }

    /// What session ids are sealed with.
    #[must_use]
    pub fn session_key(&self) -> &SecretString {
        &self.session_key
    }

    /// The tokens with their names, for the redactor.
    #[must_use]
    pub fn named(&self) -> [(String, SecretString); 3] {
        [
            ("MCP_TOKEN".to_owned(), self.client.clone()),
            ("MCP_ENGINE_TOKEN".to_owned(), self.engine.clone()),
            ("MCP_SESSION_KEY".to_owned(), self.session_key.clone()),
        ]
    }
}
