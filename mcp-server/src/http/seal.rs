//! Session ids that any process with the key understands.
//!
//! An id holds, encrypted and authenticated, what its client said when it came
//! and until when it's good. So a server that was killed and started again
//! knows its clients, without having kept anything.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use rmcp::model::{ClientCapabilities, Implementation, InitializeRequestParams, ProtocolVersion};
use secrecy::{ExposeSecret as _, SecretString};
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// How long an id is good for.
const GOOD_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The longest id that is given: it comes back in a header of every request.
const LONGEST: usize = 2048;
/// What the key is used for, so that nothing else sealed with it passes for an id.
const PURPOSE: &[u8] = b"openpact mcp session 1";
const NONCE: usize = 24;

/// Seals and opens session ids.
pub(super) struct Seal(XChaCha20Poly1305);

/// What is in an id.
#[derive(Debug, Serialize, Deserialize)]
struct Sealed {
    version: ProtocolVersion,
    capabilities: ClientCapabilities,
    name: String,
    client_version: String,
    /// Seconds since 1970.
    until: u64,
}

impl std::fmt::Debug for Seal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Seal")
    }
}

impl Seal {
    pub(super) fn new(key: &SecretString) -> Self {
        let key = Sha256::digest(key.expose_secret());
        Self(XChaCha20Poly1305::new_from_slice(&key).expect("a SHA-256 is a key's length"))
    }

    /// A new id for a client that said `opening`; none was given twice.
    pub(super) fn seal(&self, opening: &InitializeRequestParams) -> std::io::Result<String> {
        let sealed = self.seal_until(opening, now() + GOOD_FOR.as_secs())?;
        if sealed.len() <= LONGEST {
            return Ok(sealed);
        }
        // A client with very much to say is known by less of it after a restart.
        let mut less = InitializeRequestParams::default();
        less.protocol_version = opening.protocol_version.clone();
        self.seal_until(&less, now() + GOOD_FOR.as_secs())
    }

    fn seal_until(&self, opening: &InitializeRequestParams, until: u64) -> std::io::Result<String> {
        let sealed = Sealed {
            version: opening.protocol_version.clone(),
            capabilities: opening.capabilities.clone(),
            name: opening.client_info.name.clone(),
            client_version: opening.client_info.version.clone(),
            until,
        };
        let text = serde_json::to_vec(&sealed)?;
        let mut id = vec![0; NONCE];
        getrandom::fill(&mut id).map_err(std::io::Error::other)?;
        let nonce = XNonce::try_from(id.as_slice()).expect("the nonce has its length");
        let payload = Payload { msg: &text, aad: PURPOSE };
        let cipher = self.0.encrypt(&nonce, payload).map_err(std::io::Error::other)?;
        id.extend_from_slice(&cipher);
        Ok(BASE64.encode(id))
    }

    /// What the client said that was given this id, if it was and is still good.
    pub(super) fn open(&self, id: &str) -> Option<InitializeRequestParams> {
        if id.len() > LONGEST {
            return None;
        }
        let bytes = BASE64.decode(id).ok()?;
        let (nonce, cipher) = bytes.split_at_checked(NONCE)?;
        let payload = Payload { msg: cipher, aad: PURPOSE };
        let text = self.0.decrypt(&XNonce::try_from(nonce).ok()?, payload).ok()?;
        let sealed: Sealed = serde_json::from_slice(&text).ok()?;
        if sealed.until < now() {
            return None;
        }
        let client = Implementation::new(sealed.name, sealed.client_version);
        let mut opening = InitializeRequestParams::new(sealed.capabilities, client);
        opening.protocol_version = sealed.version;
        Some(opening)
    }
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn opening() -> InitializeRequestParams {
        let client = Implementation::new("opencode", "1.18.33");
        let mut opening = InitializeRequestParams::new(ClientCapabilities::default(), client);
        opening.protocol_version = ProtocolVersion::V_2025_06_18;
        opening
    }

    #[test]
    fn an_id_is_understood_by_whoever_has_the_key_and_nobody_else() {
        let seal = Seal::new(&"a key of some length".into());
        let id = seal.seal(&opening()).unwrap();
        let again = Seal::new(&"a key of some length".into()).open(&id).unwrap();
        assert_eq!(again.client_info.name, "opencode");
        assert_eq!(again.protocol_version, ProtocolVersion::V_2025_06_18);
        assert_ne!(seal.seal(&opening()).unwrap(), id);

        let other = Seal::new(&"another key altogether".into());
        assert!(other.open(&id).is_none());
        let mut forged = id.into_bytes();
        forged[40] = if forged[40] == b'A' { b'B' } else { b'A' };
        assert!(seal.open(&String::from_utf8(forged).unwrap()).is_none());
        for made_up in ["", "nope", "41ebb619-e3a9-4242-8b8b-f87bd17bd180", &"A".repeat(5000)] {
            assert!(seal.open(made_up).is_none(), "{made_up}");
        }
    }

    #[test]
    fn an_id_expires() {
        let seal = Seal::new(&"a key of some length".into());
        assert!(seal.open(&seal.seal_until(&opening(), now() - 1).unwrap()).is_none());
        assert!(seal.open(&seal.seal_until(&opening(), now() + 60).unwrap()).is_some());
    }

    #[test]
    fn an_id_is_never_too_long_for_a_header() {
        let seal = Seal::new(&"a key of some length".into());
        let mut talkative = opening();
        talkative.client_info.name = "x".repeat(10_000);
        let id = seal.seal(&talkative).unwrap();
        assert!(id.len() <= LONGEST);
        assert_eq!(seal.open(&id).unwrap().protocol_version, ProtocolVersion::V_2025_06_18);
    }
}
