//! What stays of the home that an agent was given, when its attempt has ended.
//!
//! A home holds copies of logins, caches and databases. Nobody needs them any more but for two things: the files of its
//! session, with which a later attempt can go on, and those that its own account is read from. These stay, without the
//! secrets that the agent wrote into them, until the loop is done.

use std::fs;
use std::path::{Path, PathBuf};

use signoff_core::redact::Secrets;

use super::Workshop;
use crate::agent::{self, Agent};
use crate::clear;
use crate::draft::{self, Care};
use crate::process::AttemptDir;

/// A longer file is no session that anybody goes on with.
const LONGEST: u64 = 64 * 1024 * 1024;

/// So deep does no agent put its sessions; and it could have made directories without end.
const DEEPEST: usize = 10;

/// Leaves of the home of an attempt what `agent` may need once more. Doing it twice gives the same.
pub fn tidy(shop: &Workshop, agent: &str, dir: &AttemptDir) {
    let adapter = shop.settings.agent(agent).and_then(|agent| agent::of(agent.kind));
    let places = adapter.as_deref().map(places).unwrap_or_default();
    let secrets = shop.secrets_of(dir);
    clear(&dir.home(), &places, &secrets, DEEPEST);
    // A keeper that was killed has not done it.
    dir.tidy_usage(&secrets);
}

fn places(adapter: &dyn Agent) -> Vec<PathBuf> {
    adapter.keeps().iter().chain(adapter.accounts()).map(PathBuf::from).collect()
}

/// Takes away all but what lies at these places below a directory.
fn clear(directory: &Path, places: &[PathBuf], secrets: &Secrets, deep: usize) {
    for (path, is_directory) in inside(directory) {
        let name = path.file_name().unwrap_or_default();
        let below: Vec<PathBuf> =
            places.iter().filter_map(|place| Some(place.strip_prefix(name).ok()?.to_owned())).collect();
        if below.iter().any(|rest| rest.as_os_str().is_empty()) {
            keep(&path, is_directory, secrets, deep);
        } else if is_directory && !below.is_empty() && deep > 0 {
            clear(&path, &below, secrets, deep - 1);
        } else {
            remove(&path);
        }
    }
    // Only what holds nothing any more.
    fs::remove_dir(directory).ok();
}

/// What is kept is kept without secrets.
fn keep(path: &Path, is_directory: bool, secrets: &Secrets, deep: usize) {
    if is_directory && deep > 0 {
        for (path, is_directory) in inside(path) {
            keep(&path, is_directory, secrets, deep - 1);
        }
    } else if is_directory || !redact(path, secrets) {
        remove(path);
    }
}

/// Takes the secrets out of a text; false where that cannot be done. Lines of JSON stay such: a secret stands within a
/// string, and so does what is put in its place.
fn redact(path: &Path, secrets: &Secrets) -> bool {
    let known = path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() <= LONGEST);
    // A link could lead anywhere.
    let Some(text) = known.then(|| fs::read(path).ok()).flatten() else { return false };
    if !secrets.are_in(&text) {
        return true;
    }
    // A database would not be one any more.
    let is_text = !text.contains(&0);
    is_text && draft::write(path, &secrets.redact(&text), Care::Private).is_ok()
}

fn inside(directory: &Path) -> Vec<(PathBuf, bool)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| (entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()))).collect()
}

/// What cannot be removed is no reason to fail. Links are removed, not what they lead to.
fn remove(path: &Path) {
    clear::remove(path).ok();
}

/// Takes away the homes of all attempts of a loop: nobody goes on with a session of it.
pub fn forget(attempts: &Path) {
    for (attempt, _) in inside(attempts).into_iter().filter(|(_, is_directory)| *is_directory) {
        let home = AttemptDir::new(attempt).home();
        if home.is_dir() {
            remove(&home);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::clear::tests::{dig, quick_place};

    const KEY: &str = "sk-canary\"0f9e8d7c6b5a";

    /// All files below a directory, from there.
    fn files(directory: &Path, root: &Path) -> Vec<String> {
        let mut all: Vec<String> = inside(directory)
            .into_iter()
            .flat_map(|(path, is_directory)| {
                if is_directory {
                    files(&path, root)
                } else {
                    vec![path.strip_prefix(root).unwrap().display().to_string()]
                }
            })
            .collect();
        all.sort();
        all
    }

    fn home(names: &[(&str, &[u8])]) -> tempfile::TempDir {
        let home = tempfile::tempdir().unwrap();
        for (name, text) in names {
            let path = home.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        home
    }

    #[test]
    fn a_login_goes_and_a_session_stays_without_its_keys() {
        let line = serde_json::json!({ "type": "user", "text": format!("my key is {KEY}, keep it") });
        let session = format!("{line}\n{{\"type\":\"other\"}}\n");
        let home = home(&[
            (".gemini/oauth_creds.json", b"{\"access_token\":\"ya29.x\"}"),
            (".gemini/settings.json", b"{}"),
            (".gemini/tmp/work/chats/session.jsonl", session.as_bytes()),
            (".gemini/tmp/work/logs.json", b"[]"),
            (".gemini/tmp/state.db", format!("db\0{KEY}").as_bytes()),
            (".gemini/tmp/other.db", b"db\0"),
            (".gemini/projects.json", b"{}"),
            (".gemini-old/x", b"x"),
            ("usage.json", b"{}"),
            (".cache/big", b"x"),
        ]);
        let persons = tempfile::tempdir().unwrap();
        fs::write(persons.path().join("auth.json"), KEY).unwrap();
        for name in ["auth.json", ".gemini/tmp/link.json"] {
            symlink(persons.path().join("auth.json"), home.path().join(name)).unwrap();
        }
        symlink(persons.path(), home.path().join(".gemini/tmp/all")).unwrap();
        let places = [".gemini/tmp", ".gemini/projects.json", "usage.json"].map(PathBuf::from);
        let secrets = Secrets::of_values([KEY]);
        for _ in 0..2 {
            clear(home.path(), &places, &secrets, DEEPEST);
            let kept = [
                ".gemini/projects.json",
                ".gemini/tmp/other.db",
                ".gemini/tmp/work/chats/session.jsonl",
                ".gemini/tmp/work/logs.json",
                "usage.json",
            ];
            assert_eq!(files(home.path(), home.path()), kept);
        }
        let kept = fs::read_to_string(home.path().join(".gemini/tmp/work/chats/session.jsonl")).unwrap();
        assert!(!kept.contains("canary"), "{kept}");
        for line in kept.lines() {
            serde_json::from_str::<serde_json::Value>(line).unwrap();
        }
        assert!(kept.contains("my key is [redacted], keep it"), "{kept}");
        // What links led to is the person's.
        assert_eq!(fs::read_to_string(persons.path().join("auth.json")).unwrap(), KEY);
    }

    #[test]
    fn where_nothing_is_kept_nothing_stays() {
        let home = home(&[("a/b", b"x"), ("c", b"x")]);
        clear(home.path(), &[], &Secrets::default(), DEEPEST);
        assert!(!home.path().exists());
        clear(home.path(), &[], &Secrets::default(), DEEPEST);
    }

    #[test]
    fn no_home_and_no_temporary_directory_is_too_deep_to_go() {
        let attempts = quick_place();
        let dir = AttemptDir::new(attempts.path().join("1"));
        for directory in [dir.home(), dir.temporary()] {
            fs::create_dir_all(&directory).unwrap();
            dig(&directory, 20_000);
        }
        super::super::held::sweep(&dir);
        assert!(!dir.temporary().exists());
        clear(&dir.home(), &[PathBuf::from("d/d")], &Secrets::default(), DEEPEST);
        assert!(dir.home().join("d/d/d").is_dir(), "what is kept is kept as far as anybody goes");
        forget(attempts.path());
        assert!(!dir.home().exists());
    }
}
