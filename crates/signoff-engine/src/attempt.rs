//! One attempt of an agent: prepare it, run it under the supervisor, and turn its result into an event.
//!
//! Finishing an attempt reads only files on disk, so a restarted process can finish an attempt that an earlier process
//! started.

mod checks;
mod document;
mod environment;
pub mod final_message;
mod finish;
mod finish_review;
pub(crate) mod home;
mod launch;
mod parse_output;
mod plan_items;
mod prepare;
mod prompt_sources;
mod read_only_guard;
mod research;
pub(crate) mod reviewer_worktree;
mod sandbox;
mod untrusted_files;
mod usage;

pub(crate) use checks::{
    BaseCheckRequest, CheckOptions, CheckRunResult, configured_checks_launch, read_check_results, run_on_base,
};
pub(crate) use document::TaskDocument;
pub(crate) use environment::{
    agent_check_environment, agent_environment, check_environment, inherited, inherits, run_environment,
};
pub use environment::{channel_secrets, secrets};
pub use finish::{exit_failure, failed_end};
pub(crate) use finish::{keep_dropped_commits, read_start};
pub(crate) use launch::write_files;
pub(crate) use parse_output::{parse_lost_output, parse_transcript};
pub use plan_items::{ExistingDocuments, PlanLocation, find_documents};
pub(crate) use plan_items::{reread_plan, starts_plan};
pub(crate) use prepare::make_directory;
pub use prepare::review_request;
pub use read_only_guard::ReadOnlyGuards;
pub use usage::{UsagePricing, reported_usage};

use std::collections::BTreeSet;
use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use signoff_core::group::TaskSource;
use signoff_core::machine::{AttemptFailure, CheckReport, Event, WorkReport};
use signoff_core::rate_limit::RateLimited;
use signoff_core::redact::Secrets;
use signoff_core::settings::Settings;
use signoff_core::task::TaskSpec;
use signoff_store::Store;

use crate::agent::credentials::{renewed_login_secrets, user_secrets};
use crate::agent::{self, OutputParser};
use crate::attempt_spec::AttemptSpec;
use crate::error::EngineError;
use crate::executor::{AttemptResult, AttemptSink};
use crate::failpoint;
use crate::git::{CheckoutState, GitError, NewWorktree, Repository, Worktree, list_first};
use crate::landing::LatestLandings;
use crate::layout::Layout;
use crate::process::{AttemptDir, ProcessLaunch, ProcessResult, SupervisorLauncher};
use crate::reports::ReportRegistry;
use crate::sandbox::SandboxSupport;
use crate::tracker::{Tracker, TrackerOptions};
use finish::EndedAttempt;
use prepare::StartingAttempt;

/// Everything that attempts share: repository, settings, store and caches.
pub struct EngineContext {
    pub repository: Repository,
    pub layout: Layout,
    pub settings: Settings,
    /// Used to look up approvals.
    pub store: Arc<dyn Store>,
    pub launcher: SupervisorLauncher,
    /// Path of the signoff executable, for built-in agents.
    pub program: PathBuf,
    /// The user's home directory, where agents are logged in.
    pub user_home: PathBuf,
    /// Names of the environment variables of this process.
    pub variables: BTreeSet<String>,
    /// Maximum number of loops in parallel.
    pub jobs: usize,
    /// The subject of a loop without a task, and the base of its diff.
    pub subject: Option<TaskSpec>,
    pub base: Option<String>,
    /// Options for calls to trackers.
    pub tracker_options: TrackerOptions,
    pub read_guards: ReadOnlyGuards,
    /// Notes that this process has shown already.
    pub seen_notes: SeenNotes,
    pub reports: Arc<ReportRegistry>,
    /// The sandbox backends that this system supports.
    pub sandbox_support: SandboxSupport,
    /// Values that must be redacted from everything that is stored or shown.
    pub secrets: Secrets,
    /// Locked while a deleted worktree is recreated.
    pub worktree_repair: Mutex<()>,
    pub latest_landings: LatestLandings,
}

/// The notes that this process has shown, so that each is shown once.
#[derive(Debug, Default)]
pub struct SeenNotes(Mutex<BTreeSet<String>>);

impl SeenNotes {
    /// Whether the note was not shown before. Remembers it.
    pub fn is_new(&self, note: &str) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(note.to_owned())
    }
}

/// How an attempt ended.
#[derive(Debug)]
pub enum AttemptEnd {
    Event(Box<Event>),
    /// signoff stopped the agent.
    Stopped,
    /// The agent's session no longer exists.
    SessionGone,
    /// The provider rate-limited the agent.
    RateLimited(RateLimited),
    /// An error of the engine; the attempt must be repeated.
    Error(EngineError),
}

impl AttemptEnd {
    pub(crate) fn event(event: Event) -> Self {
        Self::Event(Box::new(event))
    }

    /// The end of work with this report.
    fn work(spec: &AttemptSpec, report: WorkReport) -> Self {
        Self::event(Event::WorkEnded { attempt: spec.job.attempt, report })
    }
}

impl EngineContext {
    /// The price settings for an attempt.
    fn pricing<'a>(&'a self, spec: &'a AttemptSpec) -> UsagePricing<'a> {
        UsagePricing { settings: &self.settings, model: spec.launch.model.as_deref() }
    }

    /// Values to redact from the files of an attempt: the shared secrets, its report token, and logins it may have
    /// renewed.
    fn secrets_of(&self, dir: &AttemptDir) -> Secrets {
        let logins = user_secrets(&self.user_home).union(&renewed_login_secrets(&dir.home()));
        self.secrets.union(&self.reports.tokens_of(dir)).union(&logins)
    }

    /// The tracker that supplies the tasks of a run.
    pub fn tracker(&self, source: &TaskSource) -> Tracker {
        let (repository, options) = (self.repository.clone(), self.tracker_options.clone());
        Tracker { source: source.clone(), repository, options }
    }

    /// The worktree of an attempt; recreated if it is missing.
    fn worktree(&self, spec: &AttemptSpec) -> Result<Worktree, EngineError> {
        match self.repository.worktree(Path::new(&spec.workspace.worktree)) {
            Err(GitError::WorktreeGone(_) | GitError::NotOurs(_)) => self.worktree_with_files(spec),
            found => Ok(found?),
        }
    }

    /// Imports the commits of a writer that has ended. Returns notes about problems in the worktree.
    pub(crate) fn import_work(&self, spec: &AttemptSpec) -> Result<Vec<String>, EngineError> {
        // If the worktree is not registered in git any more, it is recreated where it is needed.
        let found = self.repository.worktree(Path::new(&spec.workspace.worktree));
        Ok(found.map_or_else(|_| Ok(Vec::new()), |worktree| worktree.import_from_sandbox())?)
    }

    /// A note if the worktree is not registered in git any more, or if its path is no directory.
    fn worktree_damage(&self, spec: &AttemptSpec) -> Option<&'static str> {
        let path = Path::new(&spec.workspace.worktree);
        let found = path.symlink_metadata().ok().filter(|_| !spec.branch.is_empty())?;
        if !found.is_dir() {
            return Some("the worktree was replaced by something else; recreated from its branch");
        }
        let is_deleted = matches!(self.repository.worktree(path), Err(GitError::WorktreeGone(_)));
        is_deleted.then_some("the git directory of the worktree was deleted; recreated")
    }

    /// Like `worktree`, and restores the files if they were deleted. Only uncommitted changes are lost then.
    pub(crate) fn worktree_with_files(&self, spec: &AttemptSpec) -> Result<Worktree, EngineError> {
        // All reviewers of a worktree start at the same time.
        let _lock = self.worktree_repair.lock().unwrap_or_else(PoisonError::into_inner);
        let path = Path::new(&spec.workspace.worktree);
        match self.repository.worktree(path) {
            Ok(found) if found.exists() => return Ok(found),
            found if spec.branch.is_empty() => return Ok(found?),
            Ok(_) | Err(GitError::WorktreeGone(_) | GitError::NotOurs(_)) => {}
            Err(error) => return Err(error.into()),
        }
        self.revive_branch(spec)?;
        let new = NewWorktree { path, branch: &spec.branch, start: &spec.workspace.base };
        let worktree = self.repository.repair_worktree(&new)?;
        worktree.restore_copied_list(self.settings.copied_into_worktrees())?;
        worktree.copy_files(self.settings.copied_into_worktrees())?;
        Ok(worktree)
    }

    /// Recreates a deleted branch at the last recorded commit.
    pub(crate) fn revive_branch(&self, spec: &AttemptSpec) -> Result<(), GitError> {
        self.repository.restore_branch(&spec.branch, &spec.machine.head.commit, &spec.workspace.base)
    }
}

/// Writes the files of an attempt. Fails with the result of an attempt that cannot start.
pub fn prepare_attempt(ctx: &EngineContext, spec: &AttemptSpec) -> Result<ProcessLaunch, Box<AttemptResult>> {
    let dir = &directory(ctx, spec);
    prepare::prepare(StartingAttempt { ctx, spec, dir }).map_err(|failure| {
        let notes = failure.notes();
        Box::new(AttemptResult { notes, ..AttemptResult::new(failure.into_end(spec)) })
    })
}

/// Prepares, runs and finishes an attempt.
pub async fn run_attempt(ctx: Arc<EngineContext>, spec: Arc<AttemptSpec>, sink: AttemptSink) {
    let (dir, preparing) = (directory(&ctx, &spec), (ctx.clone(), spec.clone()));
    let prepared = blocking(move || Ok(prepare_attempt(&preparing.0, &preparing.1))).await;
    let failed = |error| Err(Box::new(AttemptResult::new(AttemptEnd::Error(error))));
    let launch = match prepared.unwrap_or_else(failed) {
        Ok(launch) => launch,
        Err(result) => return sink.ended(*result),
    };
    let before = checkout_state(&ctx).await;
    failpoint::pass("spawn");
    let ended = match ctx.launcher.start(&launch, &dir).await {
        Ok(running) => watch(running, output_parser(&ctx, &spec), &sink).await,
        Err(error) => {
            ctx.reports.expire(&dir);
            let error = EngineError::io("start an agent in", dir.path(), error);
            return sink.ended(AttemptResult::new(AttemptEnd::Error(error)));
        }
    };
    // Reports are accepted until the agent has exited.
    ctx.reports.expire(&dir);
    failpoint::pass("exit");
    let notes = checkout_note(&spec, before, checkout_state(&ctx).await).into_iter().collect();
    finish(ctx, spec, ended, notes, sink).await;
}

/// The state of the user's checkout. Errors are ignored: the attempt does not depend on it.
async fn checkout_state(ctx: &Arc<EngineContext>) -> Option<CheckoutState> {
    let ctx = ctx.clone();
    blocking(move || Ok(ctx.repository.checkout_state()?)).await.ok()
}

/// A note if the user's checkout changed during an attempt. Nothing is undone there: the user may have made the change.
fn checkout_note(spec: &AttemptSpec, before: Option<CheckoutState>, after: Option<CheckoutState>) -> Option<String> {
    let changes = after?.changes_since(&before?);
    let agent_label = spec.launch.reviewer.as_ref().map_or(spec.launch.role.clone(), ToString::to_string);
    let named = list_first(&changes, MAX_LISTED_CHANGES);
    (!changes.is_empty()).then(|| format!("your checkout changed while {agent_label} was running; not undone: {named}"))
}

/// Maximum number of changes in a note.
const MAX_LISTED_CHANGES: usize = 5;

/// Maximum number of unrendered output lines per agent.
const MAX_PENDING_LINES: usize = 16;

/// Maximum length of a displayed line, in characters.
const MAX_LINE_CHARS: usize = 400;

/// The parser for the output of the attempt's agent.
fn output_parser(ctx: &EngineContext, spec: &AttemptSpec) -> Box<dyn OutputParser> {
    let kind = ctx.settings.agent(&spec.launch.agent).map(|agent| agent.kind);
    agent::output_parser(kind)
}

/// Forwards the agent's output to the dispatcher until the agent exits.
async fn watch(
    mut running: crate::process::RunningAttempt,
    mut parser: Box<dyn OutputParser>,
    sink: &AttemptSink,
) -> ProcessResult {
    sink.stoppable(running.stopper());
    let mut lines = running.lines();
    let sink = sink.clone();
    tokio::spawn(async move {
        let pending = Arc::new(());
        while let Some(line) = lines.next().await {
            for output in parser.parse_line(line.as_bytes()) {
                // Drop lines that arrive faster than they are rendered.
                if Arc::strong_count(&pending) <= MAX_PENDING_LINES {
                    let line = output.display_line().chars().take(MAX_LINE_CHARS).collect();
                    sink.line(line, pending.clone());
                }
            }
        }
    });
    running.wait().await
}

/// Turns the result of an attempt into an event. `notes` were collected while it ran.
pub async fn finish(
    ctx: Arc<EngineContext>,
    spec: Arc<AttemptSpec>,
    ended: ProcessResult,
    notes: Vec<String>,
    sink: AttemptSink,
) {
    let secrets = ctx.secrets.clone();
    let result = finish_checked(ctx, spec, ended, &sink).await;
    let result = result.unwrap_or_else(|error| AttemptResult::new(AttemptEnd::Error(error)));
    let notes = notes.iter().chain(&result.notes).map(|note| secrets.redact_text(note)).collect();
    sink.ended(AttemptResult { notes, ..result });
}

/// Finishes an attempt after its checks ran on the base too, if it needs that.
async fn finish_checked(
    ctx: Arc<EngineContext>,
    spec: Arc<AttemptSpec>,
    ended: ProcessResult,
    sink: &AttemptSink,
) -> Result<AttemptResult, EngineError> {
    let dir = directory(&ctx, &spec);
    if !checks::ensure_base_checks(&ctx, &spec, &dir, &ended, sink).await? {
        return Ok(AttemptResult::new(AttemptEnd::Stopped));
    }
    blocking(move || {
        let (ctx, spec) = (&*ctx, &*spec);
        let finished = finish::finish(EndedAttempt { ctx, spec, dir: &dir, ended: &ended });
        ctx.reports.forget(&dir);
        sandbox::remove_temporary_files(&dir);
        home::clean_up_home(ctx, &spec.launch.agent, &dir);
        finished
    })
    .await
}

/// The directory with the attempt's files.
pub fn directory(ctx: &EngineContext, spec: &AttemptSpec) -> AttemptDir {
    AttemptDir::new(ctx.layout.attempt(spec.run, &spec.loop_id, spec.job.attempt))
}

/// Runs git and file operations on a blocking thread.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
) -> Result<T, EngineError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(EngineError::Internal(error.to_string())),
    }
}

/// Why an attempt was not started.
#[derive(Debug)]
pub enum StartFailure {
    /// It cannot be started, for this reason.
    Failed(String),
    /// The project has no checks to run. `missing` lists those that could not be run.
    NothingToCheck { missing: Vec<String> },
    /// An error of the engine; the attempt must be repeated.
    Engine(EngineError),
}

impl From<EngineError> for StartFailure {
    /// An unreadable prompt file fails the attempt, not the run.
    fn from(error: EngineError) -> Self {
        if let EngineError::Prompt(prompt) = &error { Self::new(prompt) } else { Self::Engine(error) }
    }
}

impl From<GitError> for StartFailure {
    fn from(error: GitError) -> Self {
        Self::Engine(error.into())
    }
}

/// The note for a check phase without checks. The phase's progress line says the same.
pub(crate) const NOTHING_TO_CHECK: &str =
    "nothing to check: no [checks] are configured and none were found (Makefile, cargo, npm, pytest, go)";

impl StartFailure {
    fn new(reason: impl Display) -> Self {
        Self::Failed(reason.to_string())
    }

    fn notes(&self) -> Vec<String> {
        match self {
            Self::Failed(_) | Self::Engine(_) => Vec::new(),
            Self::NothingToCheck { missing } if missing.is_empty() => vec![NOTHING_TO_CHECK.to_owned()],
            Self::NothingToCheck { missing } => {
                vec![format!("nothing to check: no [checks] are configured, and {}", missing.join("; "))]
            }
        }
    }

    fn into_end(self, spec: &AttemptSpec) -> AttemptEnd {
        let attempt = spec.job.attempt;
        match self {
            Self::Failed(message) => failed_end(spec, AttemptFailure::NotStarted { message }),
            Self::NothingToCheck { .. } => {
                AttemptEnd::event(Event::CheckEnded { attempt, report: CheckReport::NothingToCheck })
            }
            Self::Engine(error) => AttemptEnd::Error(error),
        }
    }
}
