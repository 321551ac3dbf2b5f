//! What agents do with git, and to it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{Failure, STEP_FAILED, failed};
use crate::script::Trap;

/// Hooks that git runs on the side of whoever calls it.
const HOOKS: [&str; 12] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-checkout",
    "post-commit",
    "post-merge",
    "post-rewrite",
    "pre-commit",
    "pre-merge-commit",
    "pre-rebase",
    "prepare-commit-msg",
    "reference-transaction",
];

/// Runs git in the working directory; its first words.
pub fn git(arguments: &[&str]) -> Result<String, Failure> {
    run("git", arguments)
}

#[expect(clippy::disallowed_methods, reason = "the fake agent's one door to other programs")]
pub fn run(program: &str, arguments: &[&str]) -> Result<String, Failure> {
    let output = Command::new(program).args(arguments).output().map_err(failed)?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err((STEP_FAILED, format!("{program} {}: {}", arguments.join(" "), said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

pub fn commit(message: &str) -> Result<(), Failure> {
    git(&["add", "--all"])?;
    let name =
        ["-c", "user.name=Fake Agent", "-c", "user.email=fake@example.com", "-c", "commit.gpgSign=false"];
    git(&[&name[..], &["commit", "--quiet", "--message", message]].concat()).map(drop)
}

pub fn leave_index_lock() -> Result<(), Failure> {
    let directory = git(&["rev-parse", "--git-dir"])?;
    fs::write(Path::new(&directory).join("index.lock"), "").map_err(failed)
}

/// Sets a trap that touches `marker` when git runs it.
pub fn plant(trap: Trap, marker: &Path) -> Result<(), Failure> {
    let marker = std::path::absolute(marker).map_err(failed)?;
    let common = PathBuf::from(git(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?);
    let script = format!("#!/bin/sh\n: > '{}'\n", marker.display());
    match trap {
        Trap::HooksPath => {
            let hooks = common.join("planted-hooks");
            write_hooks(&hooks, &script)?;
            git(&["config", "core.hooksPath", &hooks.display().to_string()]).map(drop)
        }
        Trap::Hooks => write_hooks(&common.join("hooks"), &script),
        Trap::Fsmonitor => configure(&common, "core.fsmonitor", &script),
        Trap::Diff => configure(&common, "diff.external", &script),
        Trap::Filter => {
            let script = format!("{script}exec cat\n");
            configure(&common, "filter.planted.clean", &script)?;
            configure(&common, "filter.planted.smudge", &script)?;
            fs::create_dir_all(common.join("info")).map_err(failed)?;
            fs::write(common.join("info/attributes"), "* filter=planted\n").map_err(failed)
        }
    }
}

fn write_hooks(directory: &Path, script: &str) -> Result<(), Failure> {
    fs::create_dir_all(directory).map_err(failed)?;
    HOOKS.iter().try_for_each(|hook| write_program(&directory.join(hook), script))
}

fn configure(common: &Path, key: &str, script: &str) -> Result<(), Failure> {
    let program = common.join(format!("planted-{key}"));
    write_program(&program, script)?;
    git(&["config", key, &program.display().to_string()]).map(drop)
}

fn write_program(path: &Path, script: &str) -> Result<(), Failure> {
    fs::write(path, script).map_err(failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(failed)
}
