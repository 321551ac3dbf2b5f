//! Before an attempt: the worktree is as it must be, the prompt is written, the command line is known.

use std::fs::{self, DirBuilder};
use std::os::unix::fs::DirBuilderExt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use signoff_core::config::{AgentKind, Assigned, AssignedReviewer, Place, ReviewWorkspace};
use signoff_core::contract::{Ask, Contract};
use signoff_core::grant::Grant;
use signoff_core::hex::hex;
use signoff_core::ids::{Commit, LoopId, Nonce, ReviewerName};
use signoff_core::machine::{JobKind, Scope};
use signoff_core::prompt::Depth;
use signoff_core::review::Bar;
use signoff_core::steering::files_with;
use signoff_core::workflow::Role;

use super::environment::Told;
use super::held::{Room, held};
use super::launch::launch;
use super::material::{
    author_output, documents, instructions, laid, last_review, opening, previous_message, restarted,
    reviewer_opening, unread, unreadable,
};
use super::planted::planted;
use super::{Unstarted, Workshop, checks, copied, directory, document, items, research};
use crate::agent::{self, Duty};
use crate::assignment::{Assignment, Part};
use crate::brief::{self, Material};
use crate::error::EngineError;
use crate::failpoint;
use crate::git::{Diff, GitError};
use crate::place::apart;
use crate::process::{AttemptDir, Launch};
use crate::reports::Access;

/// What concluding an attempt must know and cannot tell from anything else.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct Memo {
    pub nonce: Option<String>,
    pub diff_digest: Option<String>,
    /// The files of the work that agents would take for their settings, and those that hold a key.
    #[serde(default)]
    pub steering: Vec<String>,
    #[serde(default)]
    pub with_secrets: Vec<String>,
    /// It looks into a question, and writes nothing.
    #[serde(default)]
    pub reads: bool,
    /// What the document was before that it is to write.
    #[serde(default)]
    pub document: Option<String>,
    /// Where the worktree was before whoever writes that.
    #[serde(default)]
    pub began: Option<Commit>,
}

pub type Prepared = Result<(Launch, AttemptDir), Unstarted>;

/// Writes down all that the keeper needs. What a prompt file that has become unreadable keeps from starting has failed.
pub fn prepare(shop: &Workshop, task: &Assignment) -> Result<Prepared, EngineError> {
    match written(shop, task) {
        Err(EngineError::Prompt(error)) => Ok(Err(Unstarted::Failed(error.to_string()))),
        prepared => prepared,
    }
}

fn written(shop: &Workshop, task: &Assignment) -> Result<Prepared, EngineError> {
    let dir = directory(shop, task);
    make_directory(&dir)?;
    failpoint::pass("prepare");
    if apart::is_apart(task) {
        apart::make(shop, task)?;
    } else {
        shop.worktree_with_files(task)?;
    }
    let Some(place) = task.job_place() else {
        return Ok(Err(Unstarted::Failed("landing is not an agent's work".to_owned())));
    };
    match &task.job.kind {
        JobKind::Review { reviewer, scope, commit } => {
            let seat = (reviewer, *scope, commit);
            prepare_review(shop, task, place, seat, dir)
        }
        JobKind::Check => checks::of_phase(shop, task, dir),
        JobKind::Research { role, number } => research::prepare(shop, task, (place, *role, *number), dir),
        JobKind::Work { role, .. } | JobKind::Fix { role, .. } => {
            prepare_work(shop, task, (place, *role), dir)
        }
        JobKind::Combine { .. } | JobKind::Land => {
            Ok(Err(Unstarted::Failed("this is not an agent's work".to_owned())))
        }
    }
}

/// Prompts, answers and the words that bind them are nobody else's business.
pub fn make_directory(dir: &AttemptDir) -> Result<(), EngineError> {
    let private = DirBuilder::new().recursive(true).mode(0o700).create(dir.usage_directory());
    private.map_err(|error| EngineError::io("make", dir.path(), error))
}

fn prepare_work(
    shop: &Workshop,
    task: &Assignment,
    (place, role): (Place<'_>, Role),
    dir: AttemptDir,
) -> Result<Prepared, EngineError> {
    let Assigned { agent, model, timeout } = match shop.settings.writer_in_turn(role, place, task.turn()) {
        Ok(assigned) => assigned,
        Err(error) => return Ok(Err(Unstarted::Failed(error.to_string()))),
    };
    let own = matches!(role, Role::Implement).then(|| task.spec.prompt.clone()).flatten();
    let opening = match (laid(shop, task, role.word())?, own) {
        (Some(text), _) | (None, Some(text)) => Some(text),
        (None, None) => opening(shop, &[role.word()])?,
    };
    let (unread, last_review) = (unread(shop, task), last_review(shop, task));
    let previous_message = previous_message(shop, task);
    // A program that was killed left it to whoever worked there.
    match shop.take_back(task) {
        Err(EngineError::Git(GitError::Incomplete { .. })) => {}
        taken => drop(taken?),
    }
    let worktree = shop.worktree(task)?;
    let simplifies = matches!(&task.job.kind, JobKind::Work { role: Role::Simplify, .. });
    let diff = simplifies.then(|| worktree.diff_between(&task.place.base, &task.state.head.commit));
    let material = Material {
        opening,
        unread,
        last_review,
        previous_message,
        diff: diff.transpose()?.map(Arc::new),
        reports: research::reports(shop, task),
        instructions: instructions(worktree.path()),
        ..if task.document().is_some() { restarted(shop, task)? } else { Material::default() }
    };
    document::put_back(shop, task, &worktree)?;
    let began = task.document().map(|_| worktree.head()).transpose()?.map(|head| head.commit);
    let memo = Memo { document: document::stamp(task, &worktree), began, ..Memo::default() };
    write_prompt(shop, &dir, &brief::resumed(task, brief::writer(task, &material)), &memo)?;
    shop.readings.writing(&worktree);
    let told = Told { nonce: None, access: access(shop, planner_grant(task, role), &dir)? };
    match launch(shop, task, &dir, (&agent, model.as_deref(), Duty::Write), (timeout, &told)) {
        Ok(launch) => {
            let launch = held(shop, launch, (&dir, task.launch.hold), &Room::Worktree(&worktree))?;
            Ok(Ok((launch, dir)))
        }
        Err(unstarted) => Ok(Err(unstarted)),
    }
}

fn prepare_review(
    shop: &Workshop,
    task: &Assignment,
    place: Place<'_>,
    (name, scope, commit): (&ReviewerName, Scope, &Commit),
    dir: AttemptDir,
) -> Result<Prepared, EngineError> {
    let assigned = match shop.settings.reviewer_in_turn(name, place, task.turn()) {
        Ok(assigned) => assigned,
        Err(error) => return Ok(Err(Unstarted::Failed(error.to_string()))),
    };
    if let Some(message) = items::unreadable(shop, task, commit)? {
        return Ok(Err(Unstarted::Failed(message)));
    }
    let runs_checks = assigned.agent.kind == AgentKind::Checks;
    let opening = if runs_checks { None } else { reviewer_opening(shop, task, &assigned)? };
    let since = if scope == Scope::Scoped { task.reviewed() } else { None };
    let diff = shop.readings.begin(&shop.worktree(task)?, (commit, since.unwrap_or(task.base())), name)?;
    if runs_checks {
        return checks::of_reviewer(shop, task, (&assigned, commit), dir);
    }
    let nonce = fresh_nonce()?;
    let ask = ask(task, &assigned, commit, Some(nonce.clone()));
    let (steering, with_secrets) = whole_work(shop, task, (commit, since), &diff)?;
    if let Some(file) = steering.iter().find(|file| agent::runs(&assigned.agent, file)) {
        return Ok(Err(Unstarted::Failed(would_run(&assigned, &format!("`{file}` of the work")))));
    }
    // A copy is made of the commit alone.
    let workspace = assigned.workspace.unwrap_or_else(|| workspace_for(task));
    let shares = workspace == ReviewWorkspace::Shared;
    if let Some(file) = shares.then(|| planted(shop, task, &assigned.agent)).transpose()?.flatten() {
        let file = format!("`{file}`, which is new in the worktree");
        return Ok(Err(Unstarted::Failed(would_run(&assigned, &file))));
    }
    let digest = Some(diff.digest.clone());
    let memo =
        Memo { nonce: Some(nonce.clone()), diff_digest: digest, steering, with_secrets, ..Memo::default() };
    let material = Material {
        opening,
        author_output: author_output(shop, task),
        unreadable: unreadable(shop, task, name),
        can_run: !shares,
        diff: Some(diff),
        ..if task.judged_document().is_some() { documents(shop, task)? } else { Material::default() }
    };
    let copy = match workspace {
        ReviewWorkspace::Copy => Some(copied::make(shop, task, (name, commit))?),
        ReviewWorkspace::Shared => None,
    };
    let whole = task;
    let (task, room) = copy.as_ref().map_or((task, Room::None), |(task, copy)| (task, Room::Worktree(copy)));
    let prompt = brief::reviewer(task, &material, (assigned.contract, &ask));
    write_prompt(shop, &dir, &brief::resumed(task, prompt), &memo)?;
    // In a copy it may do what building and testing takes.
    let duty = if copy.is_some() { Duty::Write } else { Duty::Read };
    let who = (&assigned.agent, assigned.model.as_deref(), duty);
    let told =
        Told { nonce: Some(nonce), access: access(shop, reviewer_grant(assigned.contract, ask), &dir)? };
    match launch(shop, task, &dir, who, (assigned.timeout, &told)) {
        Ok(launch) => Ok(Ok((held(shop, launch, (&dir, task.launch.hold), &room)?, dir))),
        Err(unstarted) => {
            copied::discard(shop, whole, name);
            Ok(Err(unstarted))
        }
    }
}

/// Why a reviewer is not started that would run what it is to review.
fn would_run(AssignedReviewer { name, agent, .. }: &AssignedReviewer, what: &str) -> String {
    format!(
        "{} would run {what}: let another agent review it (`[reviewers.{name}] agent`), or take the file out",
        agent.name
    )
}

/// The files of all the work, not of the last fix alone, that agents would take for their settings, and those that hold
/// a key.
fn whole_work(
    shop: &Workshop,
    task: &Assignment,
    (commit, since): (&Commit, Option<&Commit>),
    diff: &Diff,
) -> Result<(Vec<String>, Vec<String>), EngineError> {
    let whole =
        since.map(|_| shop.worktree(task)?.diff_between(task.base(), commit).map_err(EngineError::from));
    let whole = whole.transpose()?;
    let diff = whole.as_ref().unwrap_or(diff);
    Ok((diff.steering.clone(), files_with(&diff.patch, &shop.secrets)))
}

/// A way to report, for those who may.
fn access(shop: &Workshop, grant: Option<Grant>, dir: &AttemptDir) -> Result<Option<Access>, EngineError> {
    let Some(grant) = grant else { return Ok(None) };
    shop.reports.issue(grant, dir).map_err(|error| EngineError::io("prepare", dir.path(), error))
}

/// A reviewer reports with a tool where its contract is one, or any.
fn reviewer_grant(contract: Contract, ask: Ask) -> Option<Grant> {
    match contract {
        Contract::Tool | Contract::Auto => Some(Grant::review(ask)),
        Contract::Markdown | Contract::Json | Contract::Xml | Contract::Prefix | Contract::Severity => None,
    }
}

/// The planners of a run report what they planned.
fn planner_grant(task: &Assignment, role: Role) -> Option<Grant> {
    match role {
        Role::Enumerate if task.loop_id == LoopId::planning() => Some(Grant::tasks()),
        Role::Plan if task.loop_id == LoopId::planning() => Some(Grant::groups(planned_ids(task))),
        Role::Implement | Role::Fix | Role::Enumerate | Role::Plan | Role::Brainstorm | Role::Simplify => {
            None
        }
    }
}

/// A copy if the prompt asks the reviewer to run tests, else the shared worktree. Reviewers of documents run no tests.
fn workspace_for(task: &Assignment) -> ReviewWorkspace {
    let planning = matches!(task.part, Some(Part::Planning { .. }));
    let runs = task.gate().is_some_and(|gate| gate.depth >= Depth::Standard);
    if runs && !planning && task.judged_document().is_none() {
        ReviewWorkspace::Copy
    } else {
        ReviewWorkspace::Shared
    }
}

/// The ids of the tasks that are to be grouped.
fn planned_ids(task: &Assignment) -> Vec<String> {
    let Some(Part::Planning { tasks, .. }) = &task.part else { return Vec::new() };
    tasks.iter().map(|task| task.id.clone()).collect()
}

/// What a reviewer is asked, as far as reading its answer depends on it.
pub fn ask(task: &Assignment, assigned: &AssignedReviewer, commit: &Commit, nonce: Option<String>) -> Ask {
    let JobKind::Review { reviewer, .. } = &task.job.kind else {
        return ask_of(task, assigned, (ReviewerName::new("checks"), commit, nonce));
    };
    ask_of(task, assigned, (reviewer.clone(), commit, nonce))
}

fn ask_of(
    task: &Assignment,
    assigned: &AssignedReviewer,
    (reviewer, commit, nonce): (ReviewerName, &Commit, Option<String>),
) -> Ask {
    let gate = task.gate();
    let (loop_id, about) = subject(task);
    Ask {
        reviewer,
        kind: assigned.kind,
        nonce: nonce.map(Nonce::new),
        require_nonce: assigned.require_nonce,
        fail_on: gate.map_or(Bar::Low, |gate| gate.fail_on),
        commit: Some(commit.clone()),
        loop_id,
        task: about,
    }
}

/// Which loop and task a review is about: a checkpoint's is about the loop it looks at, whose task is not done; one
/// without a task is about no loop.
fn subject(task: &Assignment) -> (Option<LoopId>, Option<String>) {
    match (task.loop_id.of_checkpoint(), task.task) {
        (Some((looked_at, _)), _) => (Some(looked_at), None),
        (None, Some(id)) => (Some(task.loop_id.clone()), Some(id.to_string())),
        (None, None) => (None, None),
    }
}

/// Writes the prompt, which tells nobody a secret that somebody wrote into a file.
pub(super) fn write_prompt(
    shop: &Workshop,
    dir: &AttemptDir,
    prompt: &str,
    memo: &Memo,
) -> Result<(), EngineError> {
    let prompt = shop.secrets.redact_text(prompt);
    let memo = serde_json::to_vec(memo).unwrap_or_default();
    for (path, bytes) in [(dir.path().join("memo.json"), memo.as_slice()), (dir.prompt(), prompt.as_bytes())]
    {
        fs::write(&path, bytes).map_err(|error| EngineError::io("write", &path, error))?;
    }
    Ok(())
}

/// A word nobody can have planted beforehand.
fn fresh_nonce() -> Result<String, EngineError> {
    let mut bytes = [0u8; 8];
    getrandom::fill(&mut bytes).map_err(|error| EngineError::Broken(error.to_string()))?;
    Ok(hex(&bytes))
}
