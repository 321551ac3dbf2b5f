//! One attempt, from the wish for it to the report of its end.
//!
//! An attempt is prepared, run under a keeper, and concluded. Concluding needs nothing but what is on disk, so
//! that a program that was killed in between does it after the restart.

pub(crate) mod base_checks;
mod carried;
mod check_results;
mod checks;
mod conclude;
pub(crate) mod copied;
mod document;
mod environment;
mod found;
mod hear;
mod held;
pub(crate) mod home;
mod inherited;
mod items;
mod launch;
mod limited;
mod material;
mod once;
mod planner;
mod planted;
mod prepare;
mod proxy;
mod pushes;
mod reading;
mod research;
mod reviewed;
mod usage;

pub(crate) use check_results::{Checks, checked};
pub(crate) use checks::checks_launch;
pub(crate) use conclude::{failure, left, start_of};
pub(crate) use document::Kind as DocumentKind;
pub(crate) use environment::{
    around as environment_around, bare as bare_environment, of_landing as environment,
    of_trial as trial_environment,
};
pub use environment::{channel_secrets, secrets};
pub use found::{Found, found};
pub(crate) use hear::{hear_lost, listen};
pub(crate) use inherited::{inherited, inherits};
pub(crate) use items::{Lies, found_changed, is_first};
pub(crate) use launch::lay;
pub use once::Once;
pub(crate) use prepare::make_directory;
pub use reading::Readings;
pub use usage::{Priced, told_usage};

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use signoff_core::config::Settings;
use signoff_core::group::Supply;
use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::limited::Refused;
use signoff_core::machine::{CheckReport, Event, Failure};
use signoff_core::redact::Secrets;
use signoff_core::review::Usage;
use signoff_core::task::TaskSpec;
use signoff_core::wire::LoopFact;
use signoff_store::Store;
use tokio::sync::mpsc::UnboundedSender;

use crate::agent::credentials::{at_home, renewed};
use crate::agent::{self, Listener};
use crate::assignment::Assignment;
use crate::confine::Power;
use crate::dispatcher::Input;
use crate::error::EngineError;
use crate::failpoint;
use crate::git::{CheckoutState, GitError, NewWorktree, Repository, Worktree};
use crate::landing::LatestLandings;
use crate::layout::Layout;
use crate::process::{AttemptDir, Ended, Keeper};
use crate::reports::Reports;
use crate::tracker::{Manners, Tracker};

/// What all attempts share.
pub struct Workshop {
    pub repository: Repository,
    pub layout: Layout,
    pub settings: Settings,
    /// Where approvals are looked up.
    pub store: Arc<dyn Store>,
    pub keeper: Keeper,
    /// signoff itself, for the agents that are part of it.
    pub program: PathBuf,
    /// The person's home, where agents are logged in.
    pub person: PathBuf,
    /// The names of the variables that are set here.
    pub variables: BTreeSet<String>,
    /// Loops at once.
    pub jobs: usize,
    /// What a loop without a task is about, and what its changes are counted from.
    pub subject: Option<TaskSpec>,
    pub base: Option<String>,
    /// How trackers are asked.
    pub manners: Manners,
    pub readings: Readings,
    /// What people were told already.
    pub once: Once,
    pub reports: Arc<Reports>,
    /// What this system can do about agents that write where they should not.
    pub power: Power,
    /// What must be in nothing that is kept or shown.
    pub secrets: Secrets,
    /// Held while a worktree that somebody deleted is made again.
    pub mending: Mutex<()>,
    pub latest_landings: LatestLandings,
}

/// How an attempt ended, for the dispatcher.
#[derive(Debug)]
pub struct Report {
    pub run: RunId,
    pub loop_id: LoopId,
    pub attempt: AttemptId,
    pub end: End,
    pub usage: Usage,
    /// What people should be told.
    pub notes: Vec<String>,
    /// The agent says that there are no more tasks.
    pub stops_picking: bool,
    /// What is to be put on record with it.
    pub facts: Vec<LoopFact>,
}

#[derive(Debug)]
pub enum End {
    Event(Box<Event>),
    /// We stopped it.
    Stopped,
    /// It does not know the session that it was to go on with.
    SessionGone,
    /// Its provider refused it for now.
    Limited(Refused),
    /// Something of ours went wrong; the attempt is to be made again.
    Trouble(EngineError),
}

impl Workshop {
    /// How the cost of an attempt is known.
    fn priced<'a>(&'a self, task: &'a Assignment) -> Priced<'a> {
        Priced { settings: &self.settings, model: task.launch.model.as_deref() }
    }

    /// What must be in nothing that an attempt leaves: its token is its own, and a login may have been renewed.
    fn secrets_of(&self, dir: &AttemptDir) -> Secrets {
        let logins = at_home(&self.person).and(&renewed(&dir.home()));
        self.secrets.and(&self.reports.tokens_of(dir)).and(&logins)
    }

    /// The tracker that a run takes its tasks from.
    pub fn tracker(&self, supply: &Supply) -> Tracker {
        let (repository, manners) = (self.repository.clone(), self.manners.clone());
        Tracker { supply: supply.clone(), repository, manners }
    }

    /// The worktree of an assignment.
    fn worktree(&self, task: &Assignment) -> Result<Worktree, EngineError> {
        match self.repository.worktree(Path::new(&task.place.worktree)) {
            Err(GitError::WorktreeGone(_) | GitError::NotOurs(_)) => self.worktree_with_files(task),
            found => Ok(found?),
        }
    }

    /// Takes the worktree of an assignment back from a writer that has ended; what was odd about it, in words.
    pub(crate) fn take_back(&self, task: &Assignment) -> Result<Vec<String>, EngineError> {
        // One that git knows no more is mended where it is needed.
        let found = self.repository.worktree(Path::new(&task.place.worktree));
        Ok(found.map_or_else(|_| Ok(Vec::new()), |worktree| worktree.take_back())?)
    }

    /// What became of a worktree that git knows no more, or that is none any more; in words.
    fn damage(&self, task: &Assignment) -> Option<&'static str> {
        let path = Path::new(&task.place.worktree);
        let found = path.symlink_metadata().ok().filter(|_| !task.branch.is_empty())?;
        if !found.is_dir() {
            return Some("something else was put in place of the worktree; it is made again from its branch");
        }
        let lost = matches!(self.repository.worktree(path), Err(GitError::WorktreeGone(_)));
        lost.then_some("the git directory of the worktree was deleted; made again")
    }

    /// The same with its files: whoever deleted them lost only what was not committed.
    pub(crate) fn worktree_with_files(&self, task: &Assignment) -> Result<Worktree, EngineError> {
        // The readers of one worktree begin at the same time.
        let _turn = self.mending.lock().unwrap_or_else(PoisonError::into_inner);
        let path = Path::new(&task.place.worktree);
        match self.repository.worktree(path) {
            Ok(found) if found.is_there() => return Ok(found),
            found if task.branch.is_empty() => return Ok(found?),
            Ok(_) | Err(GitError::WorktreeGone(_) | GitError::NotOurs(_)) => {}
            Err(error) => return Err(error.into()),
        }
        self.revive_branch(task)?;
        let new = NewWorktree { path, branch: &task.branch, start: &task.place.base };
        let worktree = self.repository.mend_worktree(&new)?;
        worktree.remember_copied(self.settings.copied_into_worktrees())?;
        worktree.copy_files(self.settings.copied_into_worktrees())?;
        Ok(worktree)
    }

    /// A branch that somebody deleted goes on at the last commit that is on record.
    pub(crate) fn revive_branch(&self, task: &Assignment) -> Result<(), GitError> {
        self.repository.revive_branch(&task.branch, &task.state.head.commit, &task.place.base)
    }
}

/// Prepares, runs and concludes an attempt.
pub async fn carry_out(shop: Arc<Workshop>, task: Arc<Assignment>, tell: UnboundedSender<Input>) {
    let preparing = (shop.clone(), task.clone());
    let prepared = blocking(move || prepare::prepare(&preparing.0, &preparing.1)).await;
    let (launch, dir) = match prepared {
        Ok(Ok(prepared)) => prepared,
        Ok(Err(unstarted)) => {
            let notes = unstarted.notes();
            return report(&task, unstarted.into_end(&task), notes, &tell);
        }
        Err(error) => return report(&task, End::Trouble(error), Vec::new(), &tell),
    };
    let before = look(&shop).await;
    failpoint::pass("spawn");
    let ended = match shop.keeper.start(&launch, &dir).await {
        Ok(running) => watch(running, (&task, listener(&shop, &task)), &tell).await,
        Err(error) => {
            shop.reports.retire(&dir);
            let error = EngineError::io("start an agent in", dir.path(), error);
            return report(&task, End::Trouble(error), Vec::new(), &tell);
        }
    };
    // What was reported until now counts; nobody reports for one that has ended.
    shop.reports.retire(&dir);
    failpoint::pass("exit");
    let notes = strayed(&task, before, look(&shop).await).into_iter().collect();
    conclude(shop, task, (ended, notes), tell).await;
}

/// The person's checkout. One that cannot be looked at now is nobody's fault and holds nobody up.
async fn look(shop: &Arc<Workshop>) -> Option<CheckoutState> {
    let looking = shop.clone();
    blocking(move || Ok(looking.repository.checkout_state()?)).await.ok()
}

/// Agents are to stay in their worktree. Nothing is undone in the checkout: the person may have been at work there.
fn strayed(task: &Assignment, before: Option<CheckoutState>, after: Option<CheckoutState>) -> Option<String> {
    let changes = after?.changes_since(&before?);
    let who = task.launch.reviewer.as_ref().map_or(task.launch.role.clone(), ToString::to_string);
    let named: Vec<&str> = changes.iter().take(NAMED).map(String::as_str).collect();
    let more = changes.len() - named.len();
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = named.join(", ");
    (!changes.is_empty())
        .then(|| format!("your checkout changed while {who} was at work, and is left so: {named}{more}"))
}

/// So many changes are named.
const NAMED: usize = 5;

/// So many lines of one agent may wait to be shown.
const MOST_LINES: usize = 16;

/// The end of a longer line is not shown.
const LONGEST_LINE: usize = 400;

/// Who makes words for people of what an agent writes.
fn listener(shop: &Workshop, task: &Assignment) -> Box<dyn Listener> {
    let kind = shop.settings.agent(&task.launch.agent).map(|agent| agent.kind);
    kind.and_then(agent::of).map_or_else(agent::verbatim, |agent| agent.listener())
}

/// Passes on what the agent says until it ends.
async fn watch(
    mut running: crate::process::Running,
    (task, mut listener): (&Assignment, Box<dyn Listener>),
    tell: &UnboundedSender<Input>,
) -> Ended {
    let (run, loop_id, attempt) = (task.run, task.loop_id.clone(), task.job.attempt);
    let stopper = running.stopper();
    tell.send(Input::Running { run, loop_id: loop_id.clone(), attempt, stopper }).ok();
    let mut lines = running.lines();
    let door = tell.clone();
    tokio::spawn(async move {
        let heard = Arc::new(());
        while let Some(line) = lines.next().await {
            for said in listener.line(line.as_bytes()) {
                // Nobody reads lines that come faster than they can be shown.
                if Arc::strong_count(&heard) <= MOST_LINES {
                    let line = said.shown().chars().take(LONGEST_LINE).collect();
                    let unheard = heard.clone();
                    door.send(Input::Said { run, loop_id: loop_id.clone(), attempt, line, unheard }).ok();
                }
            }
        }
    });
    running.wait().await
}

/// Makes an event of how an attempt ended, with what was noticed meanwhile.
pub async fn conclude(
    shop: Arc<Workshop>,
    task: Arc<Assignment>,
    (ended, mut notes): (Ended, Vec<String>),
    tell: UnboundedSender<Input>,
) {
    let dir = directory(&shop, &task);
    match base_checks::before_conclusion(&shop, &task, (&dir, &ended), &tell).await {
        Ok(true) => {}
        Ok(false) => return report(&task, End::Stopped, notes, &tell),
        Err(error) => return report(&task, End::Trouble(error), notes, &tell),
    }
    let concluding = (shop.clone(), task.clone());
    let concluded = blocking(move || {
        let concluded = conclude::conclude(&concluding.0, &concluding.1, &dir, &ended);
        concluding.0.reports.forget(&dir);
        held::sweep(&dir);
        home::tidy(&concluding.0, &concluding.1.launch.agent, &dir);
        concluded
    })
    .await;
    match concluded {
        Ok(conclude::Concluded { end, usage, notes: more, facts, stops_picking }) => {
            notes.extend(more);
            let notes = notes.iter().map(|note| shop.secrets.redact_text(note)).collect();
            let (run, loop_id, attempt) = (task.run, task.loop_id.clone(), task.job.attempt);
            let report = Report { run, loop_id, attempt, end, usage, notes, facts, stops_picking };
            tell.send(Input::Reported(Box::new(report))).ok();
        }
        Err(error) => report(&task, End::Trouble(error), notes, &tell),
    }
}

/// Where the attempt's files are.
pub(crate) fn directory(shop: &Workshop, task: &Assignment) -> AttemptDir {
    AttemptDir::new(shop.layout.attempt(task.run, &task.loop_id, task.job.attempt))
}

/// Git and files are waited for away from the dispatcher.
pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, EngineError> + Send + 'static,
) -> Result<T, EngineError> {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => Err(EngineError::Broken(error.to_string())),
    }
}

fn report(task: &Assignment, end: End, notes: Vec<String>, tell: &UnboundedSender<Input>) {
    let (run, loop_id, attempt) = (task.run, task.loop_id.clone(), task.job.attempt);
    let (usage, facts, stops_picking) = (Usage::default(), Vec::new(), false);
    let report = Report { run, loop_id, attempt, end, usage, notes, facts, stops_picking };
    tell.send(Input::Reported(Box::new(report))).ok();
}

/// Why an attempt was not even begun.
#[derive(Debug)]
pub enum Unstarted {
    Failed(String),
    /// There is nobody to start: the project has no checks.
    NothingToCheck {
        /// What could not be run, in words.
        missing: Vec<String>,
    },
}

/// What is noted where a check has nothing to run; the line of the phase tells the same.
pub(crate) const NOTHING_TO_CHECK: &str =
    "nothing to check: no [checks] are configured and none were found (Makefile, cargo, npm, pytest, go)";

impl Unstarted {
    fn notes(&self) -> Vec<String> {
        match self {
            Self::Failed(_) => Vec::new(),
            Self::NothingToCheck { missing } if missing.is_empty() => vec![NOTHING_TO_CHECK.to_owned()],
            Self::NothingToCheck { missing } => {
                vec![format!("nothing to check: no [checks] are configured, and {}", missing.join("; "))]
            }
        }
    }

    fn into_end(self, task: &Assignment) -> End {
        let attempt = task.job.attempt;
        End::Event(Box::new(match self {
            Self::Failed(message) => {
                Event::AttemptFailed { attempt, failure: Failure::NotStarted { message } }
            }
            Self::NothingToCheck { .. } => Event::CheckEnded { attempt, report: CheckReport::NothingToCheck },
        }))
    }
}
