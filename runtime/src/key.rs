//! Keys by which OpenPact's processes know each other.
//!
//! A key is a file of one line with the permissions 0600 in
//! `secure/data/keys/`. Whoever needs it first makes it; deleting it and
//! restarting is how it's rotated.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use secrecy::SecretString;

/// What the terminal and the operator's commands show the orchestrator.
pub const OPERATOR: &str = "operator.token";
/// What chat frontends show the orchestrator.
pub const FRONTEND: &str = "frontend.token";
/// What the MCP server shows the orchestrator.
pub const TOOLS: &str = "tools.token";
/// What the engine shows the MCP server; calls that carry it may be stamped.
pub const ENGINE_TO_MCP: &str = "mcp-engine.token";
/// What any other MCP client shows the MCP server.
pub const MCP_CLIENT: &str = "mcp.token";
/// What the MCP server seals its HTTP sessions with; nobody else needs it.
pub const MCP_SESSION: &str = "mcp-session.key";
/// The password of the engine's HTTP interface.
pub const ENGINE_PASSWORD: &str = "engine.password";

/// The longest key that is read.
const LONGEST: u64 = 4096;

/// Why a key can't be used.
#[derive(Debug, thiserror::Error)]
pub enum KeyError {
    /// The file can't be read or written.
    #[error("could not {doing} the key file `{}`", path.display())]
    File {
        /// `read`, `write`
        doing: &'static str,
        /// The key's file.
        path: PathBuf,
        #[source]
        /// What the system said.
        source: io::Error,
    },
    /// Others than its owner can read it.
    #[error("the key file `{}` can be read by others: run `chmod 600 {0}`", path.display())]
    Open {
        /// The key's file.
        path: PathBuf,
    },
    /// It holds nothing, or more than a key.
    #[error(
        "the key file `{}` does not hold one line of 16 to 4096 characters: \
         delete it and restart to get a new key",
        path.display()
    )]
    Content {
        /// The key's file.
        path: PathBuf,
    },
}

/// Reads the key `name` in the folder `keys`; makes it if there is none.
///
/// Two processes that do this at the same time get the same key.
pub fn read_or_create(keys: &Path, name: &str) -> Result<SecretString, KeyError> {
    let path = keys.join(name);
    match read(&path) {
        Err(KeyError::File { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
        other => return other,
    }
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(|error| KeyError::File {
        doing: "make",
        path: path.clone(),
        source: io::Error::other(error),
    })?;
    match write_once(&path, &BASE64_URL_SAFE_NO_PAD.encode(bytes)) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(source) => return Err(KeyError::File { doing: "write", path, source }),
    }
    read(&path)
}

/// Reads a key that must be there.
pub fn read(path: &Path) -> Result<SecretString, KeyError> {
    let failed = |source| KeyError::File { doing: "read", path: path.to_owned(), source };
    let about = fs::metadata(path).map_err(failed)?;
    // Docker and systemd hand secrets over as files of root that are 0444 in a
    // folder nobody else can enter, so only files of our own are held to this.
    let ours = path.parent().is_some_and(|parent| parent.ends_with("secure/data/keys"));
    if ours && about.permissions().mode() & 0o077 != 0 {
        return Err(KeyError::Open { path: path.to_owned() });
    }
    // A named pipe would keep the reader waiting for ever.
    if !about.is_file() || about.len() > LONGEST {
        return Err(KeyError::Content { path: path.to_owned() });
    }
    let text = fs::read_to_string(path).map_err(failed)?;
    let key = text.trim_end_matches(['\r', '\n']);
    if key.len() < 16 || key.contains(['\r', '\n', '\0']) {
        return Err(KeyError::Content { path: path.to_owned() });
    }
    Ok(SecretString::from(key.to_owned()))
}

/// Writes the whole file under another name first and then links it to its own,
/// so that nobody reads half a key and the first of two writers wins.
fn write_once(path: &Path, key: &str) -> io::Result<()> {
    let beside = path.with_file_name(format!(".key.{}", crate::id::fresh()));
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    let linked = file
        .write_all(format!("{key}\n").as_bytes())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&beside, path));
    fs::remove_file(&beside)?;
    linked
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;

    fn keys() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let keys = folder.path().join("secure/data/keys");
        fs::create_dir_all(&keys).unwrap();
        (folder, keys)
    }

    #[test]
    fn the_first_reader_makes_the_key_and_all_get_the_same() {
        let (_folder, keys) = keys();
        let made: Vec<_> = std::thread::scope(|scope| {
            let makers: Vec<_> =
                (0..8).map(|_| scope.spawn(|| read_or_create(&keys, OPERATOR).unwrap())).collect();
            makers.into_iter().map(|maker| maker.join().unwrap()).collect()
        });
        for key in &made {
            assert_eq!(key.expose_secret(), made[0].expose_secret());
            assert_eq!(key.expose_secret().len(), 43);
        }
        assert_eq!(fs::read_dir(&keys).unwrap().count(), 1);
    }

    #[test]
    fn a_key_that_others_can_read_or_that_is_none_is_refused() {
        let (_folder, keys) = keys();
        let path = keys.join(OPERATOR);
        for (content, mode) in [
            ("0123456789abcdef\n", 0o644),
            ("", 0o600),
            ("short", 0o600),
            ("two\nlines of text", 0o600),
        ] {
            fs::write(&path, content).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            assert!(read_or_create(&keys, OPERATOR).is_err(), "{content:?} {mode:o}");
        }
    }
}
