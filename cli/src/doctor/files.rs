//! The workspace's files: who may read them, keys, settings, what was left behind.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use openpact_runtime::key;
use openpact_runtime::layout::Layout;

use super::finding::Finding;
use crate::config;
use crate::up::stale;

/// Looks at the workspace.
pub(super) fn look(layout: &Layout) -> Vec<Finding> {
    let root = layout.root().display();
    if !layout.secure().is_dir() {
        let text = format!("there is none at {root}");
        return vec![Finding::failed(
            "workspace",
            text,
            "run `openpact up`, or name it with `--workspace DIR`",
        )];
    }
    let mut found = vec![Finding::fine("workspace", root.to_string())];
    found.push(secure(&layout.secure()));
    found.push(keys(layout));
    found.extend(left_behind(layout));
    found
}

/// What is in `secure/` is its owner's alone, and the owner is who runs this.
fn secure(folder: &Path) -> Finding {
    let check = "permissions";
    let about = match fs::metadata(folder) {
        Ok(about) => about,
        Err(error) => {
            let text = format!("`{}` can't be looked at: {error}", folder.display());
            return Finding::failed(check, text, "run this as the workspace's owner");
        }
    };
    let mode = about.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        let text = format!("others can look into `{}` (mode {mode:o})", folder.display());
        return Finding::failed(check, text, format!("run `chmod 700 {}`", folder.display()));
    }
    if about.uid() != rustix::process::geteuid().as_raw() {
        let text = format!("`{}` belongs to another user ({})", folder.display(), about.uid());
        return Finding::failed(
            check,
            text,
            "run OpenPact as that user, or give the workspace to this one",
        );
    }
    Finding::fine(check, "secure/ is for you alone")
}

fn keys(layout: &Layout) -> Finding {
    let names = [
        key::OPERATOR,
        key::FRONTEND,
        key::TOOLS,
        key::ENGINE_TO_MCP,
        key::MCP_CLIENT,
        key::ENGINE_PASSWORD,
    ];
    let mut missing = 0;
    for name in names {
        let path = layout.keys().join(name);
        if !path.exists() {
            missing += 1;
        } else if let Err(error) = key::read(&path) {
            // It says itself what to do.
            return Finding::failed("keys", openpact_runtime::chain(&error), "");
        }
    }
    match missing {
        0 => Finding::fine("keys", format!("{} are there", names.len())),
        missing => {
            Finding::note("keys", format!("{missing} are not there; the next start makes them"))
        }
    }
}

fn left_behind(layout: &Layout) -> Option<Finding> {
    let stale = stale::find(layout);
    if stale.is_empty() {
        return None;
    }
    let text = format!("{} left an address and does not listen there", stale.join(", "));
    Some(Finding::warning("left behind", text, "run `openpact up`: it cleans up before it starts"))
}

/// What the configuration says to each process that reads it.
pub(super) async fn configuration(layout: &Layout) -> Vec<Finding> {
    let check = "configuration";
    if !layout.config_file().exists() {
        return vec![Finding::note(check, "there is none; `openpact up` writes one")];
    }
    let checked = match config::check(layout).await {
        Ok(checked) => checked,
        Err(error) => {
            return vec![Finding::failed(check, openpact_runtime::chain(error.as_ref()), "")];
        }
    };
    let advice = format!("edit {}", layout.config_file().display());
    let wrong = checked.iter().filter_map(|(_, problem)| problem.as_ref());
    let wrong: Vec<_> = wrong.map(|text| Finding::failed(check, text, &advice)).collect();
    if wrong.is_empty() {
        return vec![Finding::fine(check, layout.config_file().display().to_string())];
    }
    wrong
}

#[cfg(test)]
mod tests {
    use super::super::finding::Verdict;
    use super::*;

    #[test]
    fn what_others_can_read_and_what_the_dead_left_is_found() {
        let folder = tempfile::tempdir().unwrap();
        let layout = Layout::new(folder.path()).unwrap();
        assert_eq!(look(&layout)[0].verdict, Verdict::Failed);

        layout.create().unwrap();
        key::read_or_create(&layout.keys(), key::OPERATOR).unwrap();
        let verdicts =
            |layout| look(layout).iter().map(|f| (f.check, f.verdict)).collect::<Vec<_>>();
        let mut expected = vec![
            ("workspace", Verdict::Fine),
            ("permissions", Verdict::Fine),
            ("keys", Verdict::Note),
        ];
        assert_eq!(verdicts(&layout), expected);

        let open =
            |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        open(&layout.secure());
        open(&layout.keys().join(key::OPERATOR));
        fs::write(layout.address_file("engine"), "nowhere").unwrap();
        expected[1].1 = Verdict::Failed;
        expected[2].1 = Verdict::Failed;
        expected.push(("left behind", Verdict::Warning));
        assert_eq!(verdicts(&layout), expected);
    }
}
