//! The command that starts the engine.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use openpact_runtime::file;
use openpact_runtime::layout::Layout;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::json;

use super::config::{KEY_VARIABLE, TOKEN_VARIABLE, config};
use super::install::pin;
use super::model::Model;
use super::sandbox::Sandbox;
use super::settings::EngineSettings;
use crate::{child, environment};

/// Our plugin, which stamps tool calls with their session.
const PLUGIN: &str = include_str!("../../../engine/openpact.js");

/// Variables of the operator's that say how to get out of this network.
const PROXIES: [&str; 6] =
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"];

/// Variables of the operator's that name files with more certificates to trust.
const CERTIFICATES: [&str; 2] = ["NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"];

/// Folders in `<workspace>/engine` that are the engine's to write to. We never
/// write into them: what it made there could lead us elsewhere.
const WRITABLE: [&str; 5] = ["home", "data", "state", "cache", "tmp"];

/// Folders beside them that are ours, for it to read.
const READABLE: [&str; 3] = ["config", "plugin", "project"];

/// All that is needed to start the engine, again and again.
#[derive(Debug, Clone)]
pub struct Launch {
    /// This program, which turns itself into the engine.
    pub openpact: PathBuf,
    /// The engine's program.
    pub binary: PathBuf,
    /// Whose engine it is.
    pub layout: Layout,
    /// What the operator said about it.
    pub settings: EngineSettings,
    /// What answers.
    pub model: Model,
    /// Where it shall listen.
    pub address: SocketAddr,
    /// Where our MCP server listens.
    pub tools: SocketAddr,
    /// The password of its interface.
    pub password: SecretString,
    /// What it shows the MCP server.
    pub token: SecretString,
}

impl Launch {
    /// Makes the engine's folders and puts our plugin there. Call it before each start.
    pub fn prepare(&self) -> io::Result<()> {
        // Every start leaves a library of 5 MB in there.
        match fs::remove_dir_all(self.folder("tmp")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        for name in WRITABLE.iter().chain(&READABLE) {
            file::create_dir(&self.folder(name), 0o700)?;
        }
        file::write_atomic(&self.plugin(), PLUGIN.as_bytes(), 0o600)?;
        self.keep_from_npm()
    }

    /// Tells the engine that what it would fetch for its plugins is there.
    ///
    /// Where a plugin is configured, it has npm put `@opencode-ai/plugin` into
    /// its folder of settings first and waits for that, minutes without a
    /// network. Ours imports nothing. It looks for the folder `node_modules` and
    /// the name in the lock file, no further; the list of what git shall ignore
    /// it would write itself.
    fn keep_from_npm(&self) -> io::Result<()> {
        let folder = self.folder("config").join("opencode");
        file::create_dir(&folder.join("node_modules"), 0o700)?;
        let wants = json!({ "dependencies": { "@opencode-ai/plugin": pin::version() } });
        let lock = json!({ "lockfileVersion": 3, "packages": { "": wants } });
        for (name, content) in [
            (".gitignore", "*\n".to_owned()),
            ("package.json", wants.to_string()),
            ("package-lock.json", lock.to_string()),
        ] {
            file::write_atomic(&folder.join(name), content.as_bytes(), 0o600)?;
        }
        Ok(())
    }

    /// The command. Its environment is built from nothing.
    #[must_use]
    pub fn command(&self) -> Command {
        let sandbox = self.sandbox();
        let mut command =
            child::confined(&self.openpact, self.settings.sandbox, &sandbox, &self.binary);
        command
            .args(["serve", "--hostname", &self.address.ip().to_string()])
            .args(["--port", &self.address.port().to_string()])
            .current_dir(self.folder("project"))
            .env_clear()
            .envs(self.environment());
        command
    }

    /// What the engine may do. It has no path to `secure/`, `ai-data/` or anyone's home.
    #[must_use]
    pub fn sandbox(&self) -> Sandbox {
        let proxies = PROXIES.iter().filter_map(|name| {
            reqwest::Url::parse(&environment::variable(name)?).ok()?.port_or_known_default()
        });
        let certificates = CERTIFICATES.iter().filter_map(|name| environment::variable(name));
        let mut connect = vec![self.model.port(), self.tools.port()];
        connect.extend(self.settings.extra_ports.iter().copied().chain(proxies));
        // Names that don't fit into a datagram are asked for over TCP.
        connect.push(53);
        connect.sort_unstable();
        connect.dedup();
        let mut sandbox = Sandbox::of_program(&self.binary);
        sandbox.read.extend(certificates.map(PathBuf::from));
        sandbox.read.extend(READABLE.iter().map(|name| self.folder(name)));
        sandbox.write.extend(WRITABLE.iter().map(|name| self.folder(name)));
        Sandbox { connect, bind: vec![self.address.port()], ..sandbox }
    }

    fn environment(&self) -> Vec<(OsString, OsString)> {
        let config = config(
            &self.model,
            &self.settings,
            &format!("http://{}/mcp", self.tools),
            &self.plugin(),
        );
        let folder = |name| self.folder(name).into_os_string();
        let mut environment: Vec<(OsString, OsString)> = [
            ("PATH", "/usr/bin:/bin".into()),
            ("LANG", "C.UTF-8".into()),
            ("HOME", folder("home")),
            ("XDG_CONFIG_HOME", folder("config")),
            ("XDG_DATA_HOME", folder("data")),
            ("XDG_STATE_HOME", folder("state")),
            ("XDG_CACHE_HOME", folder("cache")),
            ("TMPDIR", folder("tmp")),
            ("OPENCODE_CONFIG_CONTENT", config.to_string().into()),
            ("OPENCODE_SERVER_PASSWORD", self.password.expose_secret().into()),
            (TOKEN_VARIABLE, self.token.expose_secret().into()),
            // It goes nowhere but to its model and its tools. Not set on purpose:
            // OPENCODE_PURE (switches our plugin off) and
            // OPENCODE_DISABLE_EMBEDDED_WEB_UI (unknown paths would go to its maker's site).
            ("OPENCODE_DISABLE_MODELS_FETCH", "1".into()),
            ("OPENCODE_DISABLE_AUTOUPDATE", "1".into()),
            ("OPENCODE_DISABLE_SHARE", "1".into()),
            ("OPENCODE_DISABLE_LSP_DOWNLOAD", "1".into()),
            ("OPENCODE_DISABLE_DEFAULT_PLUGINS", "1".into()),
            ("OPENCODE_DISABLE_CLAUDE_CODE", "1".into()),
            ("OPENCODE_DISABLE_EXTERNAL_SKILLS", "1".into()),
            ("OPENCODE_DISABLE_PROJECT_CONFIG", "1".into()),
        ]
        .map(|(name, value): (&str, OsString)| (name.into(), value))
        .into();
        if let Some(key) = self.model.key() {
            environment.push((KEY_VARIABLE.into(), key.expose_secret().into()));
        }
        for name in PROXIES.iter().chain(&CERTIFICATES) {
            if let Some(value) = environment::variable(name) {
                environment.push((name.into(), value.into()));
            }
        }
        environment.push(("NO_PROXY".into(), no_proxy().into()));
        environment
    }

    fn plugin(&self) -> PathBuf {
        self.folder("plugin").join("openpact.js")
    }

    fn folder(&self, name: impl AsRef<Path>) -> PathBuf {
        self.layout.engine().join(name)
    }
}

/// Hosts to which there's a straight way: the operator's, and our own MCP server.
fn no_proxy() -> String {
    let named = ["NO_PROXY", "no_proxy"].iter().find_map(|name| environment::variable(name));
    named.into_iter().chain(["127.0.0.1,localhost,::1".to_owned()]).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launch(root: &Path) -> Launch {
        let settings = EngineSettings {
            url: "http://127.0.0.1:11434/v1".into(),
            model: "m".into(),
            key: Some(SecretString::from("sk-model")),
            extra_ports: vec![8443],
            ..EngineSettings::default()
        };
        Launch {
            openpact: "/usr/bin/openpact".into(),
            binary: "/opt/opencode".into(),
            layout: Layout::new(root).unwrap(),
            model: Model::from_settings(&settings).unwrap().unwrap(),
            settings,
            address: SocketAddr::from(([127, 0, 0, 1], 4096)),
            tools: SocketAddr::from(([127, 0, 0, 1], 7411)),
            password: SecretString::from("the password"),
            token: SecretString::from("the token"),
        }
    }

    #[test]
    fn secrets_go_by_the_environment_and_the_operators_own_stays_out() {
        let folder = tempfile::tempdir().unwrap();
        let command = launch(folder.path()).command();
        let args: Vec<_> = command.get_args().map(|arg| arg.to_string_lossy()).collect();
        for secret in ["sk-model", "the password", "the token"] {
            assert!(!args.join(" ").contains(secret), "{args:?}");
        }
        assert_eq!(args[args.len() - 5..], ["serve", "--hostname", "127.0.0.1", "--port", "4096"]);
        let value = |name: &str| {
            let (_, value) = command.get_envs().find(|(variable, _)| *variable == name)?;
            value.map(|value| value.to_string_lossy().into_owned())
        };
        assert_eq!(value("OPENCODE_SERVER_PASSWORD").unwrap(), "the password");
        assert_eq!(value(TOKEN_VARIABLE).unwrap(), "the token");
        assert_eq!(value(KEY_VARIABLE).unwrap(), "sk-model");
        assert_eq!(value("HOME").unwrap(), folder.path().join("engine/home").to_string_lossy());
        assert!(value("NO_PROXY").unwrap().ends_with("127.0.0.1,localhost,::1"));
        // With it, our plugin would be off; with the other, paths would go to its maker.
        assert_eq!(value("OPENCODE_PURE"), None);
        assert_eq!(value("OPENCODE_DISABLE_EMBEDDED_WEB_UI"), None);
        // Whoever runs this test has it, and the engine gets none of that.
        assert_eq!(value("CARGO_MANIFEST_DIR"), None);
    }

    #[test]
    fn it_may_write_in_its_folder_and_reach_its_model_and_tools() {
        let folder = tempfile::tempdir().unwrap();
        let launch = launch(folder.path());
        let sandbox = launch.sandbox();
        for port in [53, 7411, 8443, 11434] {
            assert!(sandbox.connect.contains(&port), "{port}: {:?}", sandbox.connect);
        }
        assert_eq!(sandbox.bind, [4096]);
        let secure = launch.layout.secure();
        let open = sandbox.read.iter().chain(&sandbox.write).chain(&sandbox.start);
        for path in open {
            assert!(
                !secure.starts_with(path) && !launch.layout.ai_data().starts_with(path),
                "{path:?}"
            );
            assert!(!Path::new("/root/.ssh").starts_with(path), "{path:?}");
        }
        let engine = launch.layout.engine();
        let writes = sandbox.write.iter().filter(|path| *path != Path::new("/dev/null"));
        assert!(writes.into_iter().all(|path| path.starts_with(&engine) && *path != engine));
    }

    #[test]
    fn its_folders_are_made_and_npm_has_nothing_to_do() {
        let folder = tempfile::tempdir().unwrap();
        let launch = launch(folder.path());
        launch.prepare().unwrap();
        let engine = launch.layout.engine();
        // As after a restart.
        fs::write(engine.join("tmp/library.so"), "x").unwrap();
        launch.prepare().unwrap();
        assert_eq!(fs::read_dir(engine.join("tmp")).unwrap().count(), 0);
        assert_eq!(fs::read_to_string(engine.join("plugin/openpact.js")).unwrap(), PLUGIN);
        let lock = fs::read_to_string(engine.join("config/opencode/package-lock.json")).unwrap();
        assert!(lock.contains("@opencode-ai/plugin"), "{lock}");
        assert!(engine.join("config/opencode/node_modules").is_dir());
    }
}
