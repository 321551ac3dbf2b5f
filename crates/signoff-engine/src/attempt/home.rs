//! An agent's home directory: session files are copied into it before an attempt, and it is cleaned up afterwards.
//!
//! A home contains copies of logins, caches and databases. Two kinds of files are kept until the loop is done, with
//! secrets redacted: the session files that a later attempt can resume, and the files that usage is read from.

use std::path::{Path, PathBuf};
use std::{fs, io};

use signoff_core::redact::Secrets;

use super::EngineContext;
use crate::agent;
use crate::atomic_file::{self, WriteMode};
use crate::process::AttemptDir;
use crate::remove_tree;

/// Maximum size of a session file, in bytes.
const MAX_SESSION_FILE: u64 = 64 * 1024 * 1024;

/// Maximum depth of session files. It also bounds the recursion if an agent creates very deep directories.
const MAX_SESSION_DEPTH: usize = 10;

/// Removes everything from an attempt's home that `agent` does not need again. Safe to repeat.
pub fn clean_up_home(ctx: &EngineContext, agent: &str, dir: &AttemptDir) {
    let adapter = ctx.settings.agent(agent).and_then(|agent| agent::adapter_for(agent.kind));
    let paths = adapter.map(|one| [one.session_paths, one.usage_paths].concat()).unwrap_or_default();
    let paths: Vec<PathBuf> = paths.iter().map(PathBuf::from).collect();
    let secrets = ctx.secrets_of(dir);
    remove_except(&dir.home(), &paths, &secrets, MAX_SESSION_DEPTH);
    // The supervisor does this too, unless it was killed.
    dir.redact_usage(&secrets);
}

/// Removes everything from a directory except these paths.
fn remove_except(directory: &Path, paths: &[PathBuf], secrets: &Secrets, depth: usize) {
    for (path, is_directory) in entries(directory) {
        let name = path.file_name().unwrap_or_default();
        let below: Vec<PathBuf> =
            paths.iter().filter_map(|path| Some(path.strip_prefix(name).ok()?.to_owned())).collect();
        if below.iter().any(|rest| rest.as_os_str().is_empty()) {
            keep_redacted(&path, is_directory, secrets, depth);
        } else if is_directory && !below.is_empty() && depth > 0 {
            remove_except(&path, &below, secrets, depth - 1);
        } else {
            remove(&path);
        }
    }
    // Succeeds only if the directory is empty.
    fs::remove_dir(directory).ok();
}

/// Keeps a file or directory, with secrets redacted.
fn keep_redacted(path: &Path, is_directory: bool, secrets: &Secrets, depth: usize) {
    if is_directory && depth > 0 {
        for (path, is_directory) in entries(path) {
            keep_redacted(&path, is_directory, secrets, depth - 1);
        }
    } else if is_directory || !redact(path, secrets) {
        remove(path);
    }
}

/// Redacts the secrets in a text file. Returns false if that fails. JSON lines stay valid, because secrets and their
/// replacement are inside strings.
fn redact(path: &Path, secrets: &Secrets) -> bool {
    let known = path.symlink_metadata().is_ok_and(|found| found.is_file() && found.len() <= MAX_SESSION_FILE);
    // Links are not followed.
    let Some(text) = known.then(|| fs::read(path).ok()).flatten() else { return false };
    if !secrets.occur_in(&text) {
        return true;
    }
    // Redacting would corrupt a database.
    let is_text = !text.contains(&0);
    is_text && atomic_file::write(path, &secrets.redact(&text), WriteMode::Private).is_ok()
}

fn entries(directory: &Path) -> Vec<(PathBuf, bool)> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| (entry.path(), entry.file_type().is_ok_and(|kind| kind.is_dir()))).collect()
}

/// Removes a path and ignores errors. Links are not followed.
fn remove(path: &Path) {
    remove_tree::remove(path).ok();
}

/// Removes the homes of all attempts of a loop whose sessions will not be resumed.
pub fn remove_homes(attempts: &Path) {
    for (attempt, _) in entries(attempts).into_iter().filter(|(_, is_directory)| *is_directory) {
        let home = AttemptDir::new(attempt).home();
        if home.is_dir() {
            remove(&home);
        }
    }
}

/// Copies these paths from one home to another. Errors are ignored: an agent without its session reports that, and
/// starts a new one.
pub fn copy_session_files(paths: &[&str], from: &Path, to: &Path) {
    for path in paths {
        copy_tree(&from.join(path), &to.join(path), MAX_SESSION_DEPTH).ok();
    }
}

/// Copies files and directories, and skips links.
fn copy_tree(from: &Path, to: &Path, depth: usize) -> io::Result<()> {
    let kind = fs::symlink_metadata(from)?.file_type();
    if kind.is_dir() && depth > 0 {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)?.flatten() {
            copy_tree(&entry.path(), &to.join(entry.file_name()), depth - 1).ok();
        }
    } else if kind.is_file() {
        fs::create_dir_all(to.parent().unwrap_or(to))?;
        fs::copy(from, to)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::remove_tree::tests::{create_nested, memory_tempdir};

    const KEY: &str = "sk-canary\"0f9e8d7c6b5a";

    /// All files below a directory, with paths relative to `root`.
    fn files(directory: &Path, root: &Path) -> Vec<String> {
        let mut all: Vec<String> = entries(directory)
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
    fn logins_are_removed_and_sessions_are_redacted() {
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
        let user_home = tempfile::tempdir().unwrap();
        fs::write(user_home.path().join("auth.json"), KEY).unwrap();
        for name in ["auth.json", ".gemini/tmp/link.json"] {
            symlink(user_home.path().join("auth.json"), home.path().join(name)).unwrap();
        }
        symlink(user_home.path(), home.path().join(".gemini/tmp/all")).unwrap();
        let paths = [".gemini/tmp", ".gemini/projects.json", "usage.json"].map(PathBuf::from);
        let secrets = Secrets::from_values([KEY]);
        for _ in 0..2 {
            remove_except(home.path(), &paths, &secrets, MAX_SESSION_DEPTH);
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
        // The targets of links belong to the user.
        assert_eq!(fs::read_to_string(user_home.path().join("auth.json")).unwrap(), KEY);
    }

    #[test]
    fn an_agent_without_kept_files_leaves_nothing() {
        let home = home(&[("a/b", b"x"), ("c", b"x")]);
        remove_except(home.path(), &[], &Secrets::default(), MAX_SESSION_DEPTH);
        assert!(!home.path().exists());
        remove_except(home.path(), &[], &Secrets::default(), MAX_SESSION_DEPTH);
    }

    #[test]
    fn very_deep_directories_are_removed() {
        let attempts = memory_tempdir();
        let dir = AttemptDir::new(attempts.path().join("1"));
        for directory in [dir.home(), dir.temporary()] {
            fs::create_dir_all(&directory).unwrap();
            create_nested(&directory, 20_000);
        }
        super::super::sandbox::remove_temporary_files(&dir);
        assert!(!dir.temporary().exists());
        remove_except(&dir.home(), &[PathBuf::from("d/d")], &Secrets::default(), MAX_SESSION_DEPTH);
        assert!(dir.home().join("d/d/d").is_dir(), "kept directories are kept up to the maximum depth");
        remove_homes(attempts.path());
        assert!(!dir.home().exists());
    }
}
