//! The git steps of the scripted agent, including attacks through git.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::{AgentFailure, STEP_FAILED, step_failed};
use crate::agent_script::GitTrap;

/// Client-side git hooks.
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

/// Runs git in the working directory and returns its trimmed stdout.
pub fn git(arguments: &[&str]) -> Result<String, AgentFailure> {
    run("git", arguments)
}

#[expect(clippy::disallowed_methods, reason = "the fake agent's one door to other programs")]
pub fn run(program: &str, arguments: &[&str]) -> Result<String, AgentFailure> {
    let output = Command::new(program).args(arguments).output().map_err(step_failed)?;
    if !output.status.success() {
        let stderr = String::from_utf8_lossy(&output.stderr);
        return Err((STEP_FAILED, format!("{program} {}: {}", arguments.join(" "), stderr.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

pub fn commit(message: &str) -> Result<(), AgentFailure> {
    git(&["add", "--all"])?;
    let name = ["-c", "user.name=Fake Agent", "-c", "user.email=fake@example.com", "-c", "commit.gpgSign=false"];
    git(&[&name[..], &["commit", "--quiet", "--message", message]].concat()).map(drop)
}

pub fn leave_index_lock() -> Result<(), AgentFailure> {
    let directory = git(&["rev-parse", "--git-dir"])?;
    fs::write(Path::new(&directory).join("index.lock"), "").map_err(step_failed)
}

/// Plants a program that creates `marker` when git runs it.
pub fn plant(trap: GitTrap, marker: &Path) -> Result<(), AgentFailure> {
    let marker = std::path::absolute(marker).map_err(step_failed)?;
    let common = PathBuf::from(git(&["rev-parse", "--path-format=absolute", "--git-common-dir"])?);
    let script = format!("#!/bin/sh\n: > '{}'\n", marker.display());
    match trap {
        GitTrap::HooksPath => {
            let hooks = common.join("planted-hooks");
            write_hooks(&hooks, &script)?;
            git(&["config", "core.hooksPath", &hooks.display().to_string()]).map(drop)
        }
        GitTrap::Hooks => write_hooks(&common.join("hooks"), &script),
        GitTrap::Fsmonitor => configure(&common, "core.fsmonitor", &script),
        GitTrap::Diff => configure(&common, "diff.external", &script),
        GitTrap::Filter => {
            let script = format!("{script}exec cat\n");
            configure(&common, "filter.planted.clean", &script)?;
            configure(&common, "filter.planted.smudge", &script)?;
            fs::create_dir_all(common.join("info")).map_err(step_failed)?;
            fs::write(common.join("info/attributes"), "* filter=planted\n").map_err(step_failed)
        }
    }
}

fn write_hooks(directory: &Path, script: &str) -> Result<(), AgentFailure> {
    fs::create_dir_all(directory).map_err(step_failed)?;
    HOOKS.iter().try_for_each(|hook| write_program(&directory.join(hook), script))
}

fn configure(common: &Path, key: &str, script: &str) -> Result<(), AgentFailure> {
    let program = common.join(format!("planted-{key}"));
    write_program(&program, script)?;
    git(&["config", key, &program.display().to_string()]).map(drop)
}

fn write_program(path: &Path, script: &str) -> Result<(), AgentFailure> {
    fs::write(path, script).map_err(step_failed)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).map_err(step_failed)
}
