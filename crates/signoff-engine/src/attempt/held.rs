//! Who holds an attempt, and where it may write all the same.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use signoff_core::config::{AgentKind, Network, Sandbox, Writable};
use signoff_core::hold::Hold;
use signoff_core::machine::JobKind;
use signoff_core::wire;

use super::{Workshop, limited};
use crate::clear;
use crate::confine::Held;
use crate::detect::is_installed;
use crate::error::EngineError;
use crate::git::Worktree;
use crate::process::{AttemptDir, Launch};

/// What build tools keep below a person's home and cannot do without. None of it is on anybody's path, is read by a shell
/// or holds a login: `~/.cargo` as a whole would be all three.
const CACHES: [&str; 20] = [
    ".cache",
    ".cargo/registry",
    ".cargo/git",
    ".cargo/.package-cache",
    ".cargo/.package-cache-mutate",
    ".cargo/.global-cache",
    ".rustup/tmp",
    ".npm/_cacache",
    ".npm/_logs",
    ".local/share/pnpm/store",
    ".yarn/berry/cache",
    ".bun/install/cache",
    "go/pkg",
    ".gradle/caches",
    ".gradle/daemon",
    ".gradle/native",
    ".gradle/wrapper",
    ".gradle/.tmp",
    ".m2/repository",
    ".nuget/packages",
];

/// The program whose cache it is, where that makes a directory itself when it first runs; none for those that any program
/// uses, or that are files.
fn whose(cache: &str) -> Option<&'static str> {
    const OWNERS: [(&str, &str); 11] = [
        (".cargo/registry", "cargo"),
        (".cargo/git", "cargo"),
        (".rustup/", "rustup"),
        (".npm/", "npm"),
        (".local/share/pnpm/", "pnpm"),
        (".yarn/", "yarn"),
        (".bun/", "bun"),
        ("go/", "go"),
        (".gradle/", "gradle"),
        (".m2/", "mvn"),
        (".nuget/", "dotnet"),
    ];
    OWNERS.iter().find(|(start, _)| cache.starts_with(start)).map(|(_, program)| *program)
}

/// Makes the caches that a tool of this machine would make at its first use: what is not there, nobody who is held can make.
fn make_caches(person: &Path, is_there: impl Fn(&str) -> bool) {
    let wanted = |cache: &&str| *cache == ".cache" || whose(cache).is_some_and(&is_there);
    for cache in CACHES.into_iter().filter(wanted) {
        // A home that cannot be written to stays as it is, and so does what lies there already.
        DirBuilder::new().recursive(true).mode(0o700).create(person.join(cache)).ok();
    }
    if is_there("cargo") {
        for lock in CACHES.iter().filter(|cache| cache.starts_with(".cargo/.")) {
            fs::OpenOptions::new().create(true).append(true).open(person.join(lock)).ok();
        }
    }
}

/// Memory that looks like files. Tests and browsers share it between their processes.
const SHARED_MEMORY: &str = "/dev/shm";

/// What somebody is given to work in.
pub enum Room<'a> {
    /// Nothing: it only looks.
    None,
    /// A worktree: a throw-away copy to build and test in, or one to commit to.
    Worktree(&'a Worktree),
}

impl Workshop {
    /// Who holds an agent that is started for a job; none where no agent is.
    pub(crate) fn hold(&self, kind: &JobKind, agent: &str) -> Option<Hold> {
        let runs_checks = || self.settings.agent(agent).is_some_and(|agent| agent.kind == AgentKind::Checks);
        let is_held = match kind {
            JobKind::Combine { .. } | JobKind::Land => return None,
            // Building and testing writes files, wherever the project's own commands write them.
            JobKind::Check => false,
            JobKind::Review { .. } => self.settings.sandbox() != Sandbox::Off && !runs_checks(),
            JobKind::Research { .. } => self.settings.sandbox() != Sandbox::Off,
            JobKind::Work { .. } | JobKind::Fix { .. } => self.settings.holds_writers(),
        };
        Some(if is_held { self.power.by } else { Hold::Nobody })
    }

    /// Where the configuration lets writers write.
    fn allowed(&self) -> Vec<PathBuf> {
        let mut allowed = vec![PathBuf::from(SHARED_MEMORY)];
        for said in self.settings.sandbox_write() {
            match said.strip_prefix("~/") {
                Some(below) => allowed.push(self.person.join(below)),
                None if said == Writable::CACHES => {
                    make_caches(&self.person, is_installed);
                    allowed.extend(CACHES.map(|cache| self.person.join(cache)));
                }
                None => allowed.push(PathBuf::from(said)),
            }
        }
        allowed
    }
}

/// Holds a launch to a directory for temporary files, a home, the place of its usage, and what it works in.
pub fn held(
    shop: &Workshop,
    launch: Launch,
    (dir, hold): (&AttemptDir, Option<Hold>),
    room: &Room<'_>,
) -> Result<Launch, EngineError> {
    let Some(by @ (Hold::Landlock | Hold::Bubblewrap)) = hold else { return Ok(launch) };
    let own = [dir.temporary(), dir.home(), dir.usage_directory()];
    for directory in &own {
        let private = DirBuilder::new().recursive(true).mode(0o700).create(directory);
        private.map_err(|error| EngineError::io("make", directory, error))?;
    }
    let temporary = ("TMPDIR".to_owned(), Some(own[0].display().to_string()));
    let mut writable: Vec<PathBuf> = own.into();
    match room {
        Room::None => {}
        Room::Worktree(worktree) => {
            worktree.lend()?;
            writable.extend([worktree.path().to_owned(), worktree.lent()]);
            writable.extend(shop.allowed());
        }
    }
    let ports = ports(shop, &launch);
    let environment = launch.environment.into_iter().chain([temporary]).collect();
    Ok(Launch { environment, held: Some(Held { by, writable, ports }), ..launch })
}

/// The only ports that it may connect to, with that of the server it reports to.
fn ports(shop: &Workshop, launch: &Launch) -> Option<Vec<u16>> {
    let Network::Ports(allowed) = shop.settings.sandbox_network() else { return None };
    let url = launch.environment.iter().rev().find(|(name, _)| name == "SIGNOFF_MCP_URL");
    let reports = url.and_then(|(_, url)| port(url.as_deref()?));
    Some(allowed.iter().copied().chain(reports).collect())
}

/// `http://127.0.0.1:4000/mcp`.
fn port(url: &str) -> Option<u16> {
    let host = url.split_once("://")?.1.split('/').next()?;
    host.rsplit_once(':')?.1.parse().ok()
}

/// What is left of an attempt that nobody needs any more.
pub fn sweep(dir: &AttemptDir) {
    // Files that cannot be removed are no reason to fail.
    clear::remove(&dir.temporary()).ok();
}

/// How programs say that they could not write.
const REFUSALS: [&str; 4] = ["Permission denied", "Read-only file system", "EACCES", "EROFS"];

/// So much of what it wrote to stderr is looked at.
const LOOKED_AT: u64 = 64 * 1024;

/// So many refusals are told.
const TOLD: usize = 3;

/// The longest that one refusal may be.
const LONGEST: usize = 160;

/// Whether a line says that something could not be written. `spawn PROGRAM EACCES`, Node's words for a program that is not
/// executable, does not.
fn is_refusal(line: &str) -> bool {
    REFUSALS.iter().any(|refusal| line.contains(refusal)) && !line.contains("spawn ")
}

/// What the system kept it from, as far as it was said on stderr. Tools that its own program refused are told elsewhere.
pub fn refused(launch: &wire::Launch, dir: &AttemptDir) -> Option<String> {
    if !matches!(launch.hold, Some(Hold::Landlock | Hold::Bubblewrap)) {
        return None;
    }
    let stderr = limited::end_of(&dir.stderr(), LOOKED_AT);
    let stderr = String::from_utf8_lossy(&stderr);
    let is_refusal = |line: &&str| is_refusal(line);
    let tried: Vec<&str> = stderr.lines().filter(is_refusal).map(str::trim).collect();
    let short = |said: &&str| said.chars().take(LONGEST).collect::<String>();
    let told: Vec<String> = tried.iter().take(TOLD).map(short).collect();
    let more = if tried.len() > TOLD { format!(" and {} more", tried.len() - TOLD) } else { String::new() };
    let who = launch.reviewer.as_ref().map_or(launch.role.clone(), ToString::to_string);
    (!told.is_empty()).then(|| format!("{who} was kept from what it may not do: {}{more}", told.join("; ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_made_for_the_tools_that_are_here_and_for_no_others() {
        let home = tempfile::tempdir().unwrap();
        let there = |cache: &str| home.path().join(cache).exists();
        make_caches(home.path(), |program| program == "cargo");
        let made: Vec<&str> = CACHES.into_iter().filter(|cache| there(cache)).collect();
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
    fn a_program_that_is_not_executable_is_no_refusal() {
        assert!(is_refusal("touch: cannot touch 'a': Permission denied"));
        assert!(is_refusal("Error: EACCES: permission denied, open '/work/repo/a.txt'"));
        assert!(!is_refusal(
            "Ripgrep not available: spawn /opt/qwen/vendor/rg EACCES. Falling back to built-in grep."
        ));
    }
}
