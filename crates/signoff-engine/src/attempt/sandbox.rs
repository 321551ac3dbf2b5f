//! Runs attempts in a sandbox, and selects the paths and ports that they may use.

use std::fs;
use std::path::{Path, PathBuf};

use signoff_core::machine::JobKind;
use signoff_core::sandbox::SandboxBackend;
use signoff_core::settings::{AgentKind, Network, Sandbox, WritablePaths};
use signoff_core::wire;

use super::EngineContext;
use super::parse_output::read_end;
use super::prepare::StartingAttempt;
use crate::detect::is_installed;
use crate::error::EngineError;
use crate::git::Worktree;
use crate::process::{AttemptDir, ProcessLaunch, create_private_dir};
use crate::remove_tree;
use crate::sandbox::SandboxPolicy;

/// Caches of build tools below the user's home, by program. None of them is on the `PATH`, is read by a shell or contains a login,
/// as `~/.cargo` as a whole would be. Each program creates its own on first use.
const CACHES: [(&str, &[&str]); 10] = [
    ("cargo", &[".cargo/registry", ".cargo/git"]),
    ("rustup", &[".rustup/tmp"]),
    ("npm", &[".npm/_cacache", ".npm/_logs"]),
    ("pnpm", &[".local/share/pnpm/store"]),
    ("yarn", &[".yarn/berry/cache"]),
    ("bun", &[".bun/install/cache"]),
    ("go", &["go/pkg"]),
    ("gradle", &[".gradle/caches", ".gradle/daemon", ".gradle/native", ".gradle/wrapper", ".gradle/.tmp"]),
    ("mvn", &[".m2/repository"]),
    ("dotnet", &[".nuget/packages"]),
];

/// The cache directory of any program.
const COMMON_CACHE: &str = ".cache";

/// Lock files of cargo's caches.
const CARGO_LOCKS: [&str; 3] = [".cargo/.package-cache", ".cargo/.package-cache-mutate", ".cargo/.global-cache"];

/// All caches and lock files.
fn caches() -> impl Iterator<Item = &'static str> {
    [COMMON_CACHE].into_iter().chain(CACHES.into_iter().flat_map(|(_, paths)| paths).copied()).chain(CARGO_LOCKS)
}

/// Creates the caches that an installed tool would create on first use: a sandboxed agent could not create them.
fn make_caches(user_home: &Path, is_there: impl Fn(&str) -> bool) {
    let installed = CACHES.into_iter().filter(|(program, _)| is_there(program)).flat_map(|(_, paths)| paths);
    for cache in [&COMMON_CACHE].into_iter().chain(installed) {
        // Errors are ignored: the home may be read-only, and the cache may exist.
        create_private_dir(&user_home.join(cache)).ok();
    }
    if is_there("cargo") {
        for lock in CARGO_LOCKS {
            fs::OpenOptions::new().create(true).append(true).open(user_home.join(lock)).ok();
        }
    }
}

/// Shared memory, which tests and browsers use between processes.
const SHARED_MEMORY: &str = "/dev/shm";

impl EngineContext {
    /// The sandbox backend for a job; `None` for combining and landing, which start no process that it could restrict.
    pub(crate) fn sandbox_backend(&self, kind: &JobKind, agent: &str) -> Option<SandboxBackend> {
        let runs_checks = || self.settings.agent(agent).is_some_and(|agent| agent.kind == AgentKind::Checks);
        let is_sandboxed = match kind {
            JobKind::Combine { .. } | JobKind::Land => return None,
            // Builds and tests write files anywhere.
            JobKind::Check => false,
            JobKind::Review { .. } => self.settings.sandbox() != Sandbox::Off && !runs_checks(),
            JobKind::Research { .. } => self.settings.sandbox() != Sandbox::Off,
            JobKind::Work { .. } | JobKind::Fix { .. } => self.settings.sandboxes_writers(),
        };
        Some(if is_sandboxed { self.sandbox_support.backend } else { SandboxBackend::None })
    }

    /// The configured writable paths.
    fn writable_paths(&self) -> Vec<PathBuf> {
        let mut allowed = vec![PathBuf::from(SHARED_MEMORY)];
        for entry in self.settings.sandbox_write() {
            match entry.strip_prefix("~/") {
                Some(below) => allowed.push(self.user_home.join(below)),
                None if entry == WritablePaths::CACHES => {
                    make_caches(&self.user_home, is_installed);
                    allowed.extend(caches().map(|cache| self.user_home.join(cache)));
                }
                None => allowed.push(PathBuf::from(entry)),
            }
        }
        allowed
    }
}

/// Restricts a launch to its temporary directory, its home, its usage directory and its workspace: a copy to build and
/// test in, or a worktree to commit to.
pub fn sandboxed(
    StartingAttempt { ctx, spec, dir }: StartingAttempt<'_>,
    launch: ProcessLaunch,
    workspace: Option<&Worktree>,
) -> Result<ProcessLaunch, EngineError> {
    let Some(by @ (SandboxBackend::Landlock | SandboxBackend::Bubblewrap)) = spec.launch.sandbox else {
        return Ok(launch);
    };
    let own = [dir.temporary(), dir.home(), dir.usage_directory()];
    for directory in &own {
        create_private_dir(directory).map_err(|error| EngineError::io("make", directory, error))?;
    }
    let temporary = ("TMPDIR".to_owned(), Some(own[0].display().to_string()));
    let mut writable: Vec<PathBuf> = own.into();
    if let Some(worktree) = workspace {
        worktree.enter_sandbox_dir()?;
        writable.extend([worktree.path().to_owned(), worktree.sandbox_dir()]);
        writable.extend(ctx.writable_paths());
    }
    let ports = ports(ctx, &launch);
    let environment = launch.environment.into_iter().chain([temporary]).collect();
    Ok(ProcessLaunch { environment, sandbox: Some(SandboxPolicy { backend: by, writable, ports }), ..launch })
}

/// The allowed ports, including the port of the report server.
fn ports(ctx: &EngineContext, launch: &ProcessLaunch) -> Option<Vec<u16>> {
    let Network::Ports(allowed) = ctx.settings.sandbox_network() else { return None };
    let url = launch.environment.iter().rev().find(|(name, _)| name == "SIGNOFF_MCP_URL");
    let reports = url.and_then(|(_, url)| port(url.as_deref()?));
    Some(allowed.iter().copied().chain(reports).collect())
}

/// `http://127.0.0.1:4000/mcp`.
fn port(url: &str) -> Option<u16> {
    let host = url.split_once("://")?.1.split('/').next()?;
    host.rsplit_once(':')?.1.parse().ok()
}

/// Removes the temporary files of an attempt.
pub fn remove_temporary_files(dir: &AttemptDir) {
    // Files that cannot be removed are ignored.
    remove_tree::remove(&dir.temporary()).ok();
}

/// Error messages of programs that could not write.
const REFUSALS: [&str; 4] = ["Permission denied", "Read-only file system", "EACCES", "EROFS"];

/// How much of stderr is searched, in bytes.
const MAX_STDERR: u64 = 64 * 1024;

/// Maximum number of errors in a note.
const MAX_LISTED_ERRORS: usize = 3;

/// Maximum length of one error, in characters.
const MAX_ERROR_CHARS: usize = 160;

/// Whether a line reports a failed write. Node's `spawn PROGRAM EACCES`, for a program that is not executable, does
/// not.
fn is_refusal(line: &str) -> bool {
    REFUSALS.iter().any(|refusal| line.contains(refusal)) && !line.contains("spawn ")
}

/// A note about writes that the sandbox blocked, as far as stderr shows them. Denied tools are noted elsewhere.
pub fn sandbox_note(launch: &wire::Launch, dir: &AttemptDir) -> Option<String> {
    if !matches!(launch.sandbox, Some(SandboxBackend::Landlock | SandboxBackend::Bubblewrap)) {
        return None;
    }
    let stderr = read_end(&dir.stderr(), MAX_STDERR);
    let stderr = String::from_utf8_lossy(&stderr);
    let tried: Vec<&str> = stderr.lines().filter(|line| is_refusal(line)).map(str::trim).collect();
    let short = |entry: &&str| entry.chars().take(MAX_ERROR_CHARS).collect::<String>();
    let errors: Vec<String> = tried.iter().take(MAX_LISTED_ERRORS).map(short).collect();
    let more = if tried.len() > MAX_LISTED_ERRORS {
        format!(" and {} more", tried.len() - MAX_LISTED_ERRORS)
    } else {
        String::new()
    };
    let agent_label = launch.reviewer.as_ref().map_or(launch.role.clone(), ToString::to_string);
    (!errors.is_empty()).then(|| format!("the sandbox blocked {agent_label}: {}{more}", errors.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_created_for_installed_tools_only() {
        let home = tempfile::tempdir().unwrap();
        let there = |cache: &str| home.path().join(cache).exists();
        make_caches(home.path(), |program| program == "cargo");
        let made: Vec<&str> = caches().filter(|cache| there(cache)).collect();
        assert_eq!(
            made,
            [
                ".cache",
                ".cargo/registry",
                ".cargo/git",
                ".cargo/.package-cache",
                ".cargo/.package-cache-mutate",
                ".cargo/.global-cache"
            ]
        );
        make_caches(home.path(), |program| program == "npm");
        assert!(there(".npm/_cacache") && there(".npm/_logs") && !there("go"));
    }

    #[test]
    fn a_program_that_is_not_executable_is_not_a_sandbox_refusal() {
        assert!(is_refusal("touch: cannot touch 'a': Permission denied"));
        assert!(is_refusal("Error: EACCES: permission denied, open '/work/repo/a.txt'"));
        assert!(!is_refusal("Ripgrep not available: spawn /opt/qwen/vendor/rg EACCES. Falling back to built-in grep."));
    }
}
