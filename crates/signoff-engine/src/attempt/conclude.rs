//! After an attempt: what it left is committed or read, and becomes an event.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use signoff_core::contract::MAX_BYTES;
use signoff_core::ids::ReviewerName;
use signoff_core::ledger::read_claims;
use signoff_core::machine::{Event, Failure, Head, JobKind, WorkReport};
use signoff_core::prompt::{commit_message, marker};
use signoff_core::review::Usage;
use signoff_core::task::TaskType;
use signoff_core::wire::LoopFact;
use signoff_core::workflow::{Completion, Role};

use super::check_results::{check, found_checks};
use super::document::Kind;
use super::hear::{Closed, closed, hear, heard, hung, message, tried};
use super::prepare::Memo;
use super::pushes;
use super::reviewed::{Reading, review, undo};
use super::usage::{unpriced, usage};
use super::{End, Workshop, copied, document, held, items, planner, research};
use crate::artifact;
use crate::assignment::Assignment;
use crate::error::EngineError;
use crate::failpoint;
use crate::git::{GitError, Worktree};
use crate::place::apart;
use crate::process::{AttemptDir, Ended, Exit};

/// An attempt's end with what it used and what people should be told.
pub struct Concluded {
    pub end: End,
    pub usage: Usage,
    pub notes: Vec<String>,
    /// The agent says that there are no more tasks.
    pub stops_picking: bool,
    /// What is to be put on record with it.
    pub facts: Vec<LoopFact>,
}

/// Makes an event of an attempt's end. Doing it twice gives the same.
pub fn conclude(
    shop: &Workshop,
    task: &Assignment,
    dir: &AttemptDir,
    ended: &Ended,
) -> Result<Concluded, EngineError> {
    if let Exit::Unkept { message } = &ended.exit {
        return Err(EngineError::io(
            "keep what the agent says in",
            dir.path(),
            io::Error::other(message.clone()),
        ));
    }
    // Read the pushes before `home::tidy` cleans the usage directory.
    let who = task.launch.reviewer.as_ref().map_or(task.launch.role.as_str(), |name| name.as_str());
    let pushed = pushes::tried(dir, who);
    hear(shop, task, dir, ended)?;
    let mut notes: Vec<String> = shop.damage(task).map(str::to_owned).into_iter().collect();
    let taken = if writes(task) { shop.take_back(task) } else { Ok(Vec::new()) };
    let taken = taken.map(|odd| notes.extend(odd));
    notes.extend(held::refused(&task.launch, dir));
    notes.extend(pushed);
    notes.extend(hung(task, dir, ended));
    notes.extend(unknown_prices(shop, task, dir));
    if task.is_planning() {
        // Whatever it did to its worktree, which nobody goes on from.
        shop.worktree(task).and_then(|worktree| Ok(worktree.follow()?)).ok();
        let (end, mut facts) = planner::conclude(shop, task, (dir, ended), &mut notes)?;
        facts.extend(session(task, dir));
        return Ok(Concluded {
            end,
            usage: usage(shop.priced(task), dir, ended),
            notes,
            facts,
            stops_picking: false,
        });
    }
    let end = match taken.and_then(|()| end(shop, task, (dir, ended), &mut notes)) {
        // Whatever it did to its worktree, other tasks are none the worse for it.
        Err(EngineError::Git(error)) if error.may_be_an_agents_doing() => {
            if apart::is_apart(task) {
                apart::discard(shop, task)?;
            }
            unusable(task, ended, &error)
        }
        end => end?,
    };
    notes.extend(kept_plan(shop, task));
    notes.extend(document::remarks(shop, task, dir, &end)?);
    let (end, mut facts) = items::planned(shop, task, end, &mut notes)?;
    facts.extend(session(task, dir));
    facts.extend(claimed(task, dir, &end));
    facts.extend(document::as_base(shop, task, &end)?);
    Ok(Concluded {
        end,
        usage: usage(shop.priced(task), dir, ended),
        notes,
        facts,
        stops_picking: stops_picking(task, dir),
    })
}

/// Whether its worktree was lent to it, to commit to.
fn writes(task: &Assignment) -> bool {
    match task.job.kind {
        JobKind::Work { .. } | JobKind::Fix { .. } => true,
        JobKind::Research { .. }
        | JobKind::Review { .. }
        | JobKind::Check
        | JobKind::Combine { .. }
        | JobKind::Land => false,
    }
}

/// The models that nobody knows the price of, each told once.
fn unknown_prices(shop: &Workshop, task: &Assignment, dir: &AttemptDir) -> Vec<String> {
    let agent = &task.launch.agent;
    let said = |model: &Option<String>| match model {
        Some(model) => {
            format!("what {model} costs is not known, so it counts as nothing: [prices.{model:?}] can say it")
        }
        None => format!(
            "{agent} does not say which model it used, so that counts as nothing: [agents.{agent}] model can name it"
        ),
    };
    let notes = unpriced(shop.priced(task), dir);
    notes.iter().map(said).filter(|note| shop.once.is_new(note)).collect()
}

/// Under which name its agent can go on.
fn session(task: &Assignment, dir: &AttemptDir) -> Option<LoopFact> {
    let session = heard(dir)?.session?;
    Some(LoopFact::Session { attempt: task.job.attempt, session })
}

/// What a fixer says about the findings of its loop.
fn claimed(task: &Assignment, dir: &AttemptDir, end: &End) -> Option<LoopFact> {
    let End::Event(event) = end else { return None };
    let (Event::WorkEnded { attempt, report }, JobKind::Fix { .. } | JobKind::Work { role: Role::Fix, .. }) =
        (&**event, &task.job.kind)
    else {
        return None;
    };
    let head = report.head();
    let known = task.state.ledger.entries().iter().map(|entry| &entry.finding.id);
    let claims = read_claims(&String::from_utf8_lossy(&message(dir)), known);
    let (attempt, commit) = (*attempt, head.commit.clone());
    (!claims.is_empty()).then_some(LoopFact::Moved(Event::FindingsClaimed { attempt, commit, claims }))
}

/// Whether whoever wrote says that there are no more tasks. What reviewers quote says nothing.
fn stops_picking(task: &Assignment, dir: &AttemptDir) -> bool {
    match task.job.kind {
        JobKind::Work { .. } | JobKind::Fix { .. } => {
            task.stop_marker && marker::stops_picking(&String::from_utf8_lossy(&message(dir)))
        }
        JobKind::Research { .. }
        | JobKind::Review { .. }
        | JobKind::Check
        | JobKind::Combine { .. }
        | JobKind::Land => false,
    }
}

fn end(
    shop: &Workshop,
    task: &Assignment,
    (dir, ended): (&AttemptDir, &Ended),
    notes: &mut Vec<String>,
) -> Result<End, EngineError> {
    let worktree = shop.worktree(task)?;
    match &task.job.kind {
        JobKind::Review { reviewer, commit, .. } => {
            copied::discard(shop, task, reviewer);
            let undone =
                undo(shop, &worktree, (commit, Reading::Review, task.launch.hold), (reviewer, notes))?;
            notes.extend(tried(dir, reviewer.as_str()));
            review(shop, task, (dir, ended), (reviewer, commit), (undone, notes))
        }
        JobKind::Check => {
            let checks = ReviewerName::new("checks");
            undo(shop, &worktree, (&task.state.head.commit, Reading::Review, None), (&checks, notes))?;
            notes.extend(found_checks(shop, task));
            Ok(check(shop, task, (dir, ended), notes))
        }
        JobKind::Research { number, .. } => research::conclude(shop, task, (dir, ended), (*number, notes)),
        JobKind::Work { .. } | JobKind::Fix { .. } | JobKind::Combine { .. } | JobKind::Land => {
            work(shop, task, &shop.worktree_with_files(task)?, (dir, ended), notes)
        }
    }
}

/// An attempt whose worktree nobody can go on from.
fn unusable(task: &Assignment, ended: &Ended, error: &GitError) -> End {
    if is_stopped(&ended.exit) {
        return End::Stopped;
    }
    failed(task, Failure::Unusable { message: error.to_string() })
}

pub(super) fn failed(task: &Assignment, failure: Failure) -> End {
    End::Event(Box::new(Event::AttemptFailed { attempt: task.job.attempt, failure }))
}

/// How a process ended badly; none if it ended well or was stopped by us.
pub(crate) fn failure(exit: &Exit) -> Option<Failure> {
    match exit {
        Exit::Code(0) | Exit::Stopped | Exit::Orphaned | Exit::Unkept { .. } => None,
        Exit::Code(code) => Some(Failure::Exit { code: *code }),
        Exit::Signal(number) => Some(Failure::Signal { number: *number }),
        Exit::TimedOut => Some(Failure::TimedOut),
        Exit::Silent => Some(Failure::Silent),
        Exit::NotStarted { message, .. } => Some(Failure::NotStarted { message: message.clone() }),
    }
}

pub(super) fn is_stopped(exit: &Exit) -> bool {
    match exit {
        Exit::Stopped | Exit::Orphaned => true,
        Exit::Code(_)
        | Exit::Signal(_)
        | Exit::TimedOut
        | Exit::Silent
        | Exit::Unkept { .. }
        | Exit::NotStarted { .. } => false,
    }
}

/// A writer's end: its work is committed however it ended, so that nothing is lost.
fn work(
    shop: &Workshop,
    task: &Assignment,
    worktree: &Worktree,
    (dir, ended): (&AttemptDir, &Ended),
    notes: &mut Vec<String>,
) -> Result<End, EngineError> {
    // Whoever was held to its worktree worked off its branch.
    worktree.follow()?;
    let ended_badly = match closed(shop, task, dir, ended) {
        Closed::Stopped => return Ok(End::Stopped),
        closed @ (Closed::Well | Closed::SessionGone | Closed::Limited(_) | Closed::Failed(_)) => {
            closed.end(task)
        }
    };
    failpoint::pass("commit");
    let refused = if ended_badly.is_some() { None } else { document::settle(task, worktree, dir)? };
    let well = ended_badly.is_none() && refused.is_none();
    let message = if well { finished(task) } else { unfinished(task) };
    // Whoever ignores the documents' directory wants them on the branch all the same.
    let wanted = task.owed_document().filter(|_| well).map(PathBuf::from);
    let committed = match worktree.commit_all_and(&message, wanted.as_deref()) {
        Err(GitError::BranchGone(_)) => {
            shop.revive_branch(task)?;
            worktree.commit_all_and(&message, wanted.as_deref())?
        }
        committed => committed?,
    };
    shop.readings.committed(worktree, &committed)?;
    let head = committed.head;
    failpoint::pass("committed");
    notes.extend(left(shop, task, &head)?);
    if apart::is_apart(task) && !apart::keep(shop, task, &head)? {
        apart::discard(shop, task)?;
        let message = format!("what it left does not go on from {}", task.place.base);
        return Ok(failed(task, Failure::Unusable { message }));
    }
    if let Some(end) = ended_badly {
        return Ok(end);
    }
    if let Some(failure) =
        refused.map_or_else(|| document::left_out(shop, task, &head), |one| Ok(Some(one)))?
    {
        return Ok(failed(task, failure));
    }
    let nothing = if is_plan(task) { !keep_plan(shop, task, dir)? } else { nothing_done(shop, task, &head)? };
    if nothing && stops_picking(task, dir) {
        let report = WorkReport::NoWorkLeft { head };
        return Ok(End::Event(Box::new(Event::WorkEnded { attempt: task.job.attempt, report })));
    }
    if nothing {
        return Ok(failed(task, Failure::NothingDone));
    }
    Ok(End::Event(Box::new(Event::WorkEnded { attempt: task.job.attempt, report: report(task, dir, head) })))
}

/// Keeps the work of others that a writer took off the branch, and tells where it is. Whoever amends or rebases means
/// well; who resets may not know what is lost.
pub fn left(shop: &Workshop, task: &Assignment, head: &Head) -> Result<Option<String>, EngineError> {
    let (repository, before) = (&shop.repository, &task.state.head.commit);
    let has_work = *before != head.commit && *before != task.place.base && !apart::is_apart(task);
    // What git does not have any more cannot be kept.
    if !has_work || repository.resolve(before.as_str()).is_err() {
        return Ok(None);
    }
    if repository.is_ancestor(before.as_str(), head.commit.as_str())? {
        return Ok(None);
    }
    let name = format!("{}/{}/{}", task.run, task.loop_id, task.job.attempt);
    let kept = repository.keep_left(&name, before)?;
    let branch = &task.branch;
    Ok(Some(format!(
        "commits that were there before are not on the branch any more; kept as {kept}: \
         `git log {branch}..{kept}` shows them, `git cherry-pick {branch}..{kept}` brings them back"
    )))
}

/// Whether the work is a document, and no file of the repository.
fn is_plan(task: &Assignment) -> bool {
    task.spec.kind == TaskType::Plan && matches!(task.job.kind, JobKind::Work { role: Role::Plan, .. })
}

/// Where the plan of a plan task is, in words.
fn kept_plan(shop: &Workshop, task: &Assignment) -> Option<String> {
    let plan = artifact::of_task(&shop.layout.plans(), task.task.filter(|_| is_plan(task))?).pop()?;
    let shown = plan.strip_prefix(shop.repository.root()).unwrap_or(&plan).display();
    Some(format!("the plan is in {shown}"))
}

/// Keeps the plan, which is the agent's final message; whether there is one.
fn keep_plan(shop: &Workshop, task: &Assignment, dir: &AttemptDir) -> Result<bool, EngineError> {
    let text = String::from_utf8_lossy(&message(dir)).into_owned();
    let Some(id) = task.task.filter(|_| !text.trim().is_empty()) else { return Ok(false) };
    let plans = shop.layout.plans();
    artifact::write_plan(&plans, id, task.started, &text)
        .map_err(|error| EngineError::io("write", &plans, error))?;
    Ok(true)
}

/// An agent that says it is done and changed nothing has not done the task, unless an earlier attempt had. A fix
/// that changes nothing is the gate's to judge, and where work goes on in attempts the marker tells.
///
/// A plan may have an item that is done already: only when the last one is behind it must there be something.
fn nothing_done(shop: &Workshop, task: &Assignment, head: &Head) -> Result<bool, EngineError> {
    let by_exit = task.policy.workflow.completion == Completion::Exit;
    let writes = matches!(&task.job.kind, JobKind::Work { role: Role::Implement, .. });
    let last = task.item().is_none_or(|(index, _)| index + 1 >= task.items.len());
    let same = by_exit && writes && last && head.tree == task.state.head.tree;
    Ok(same && document::other_changes(shop, task, (&task.place.base, &head.commit))?.is_empty())
}

fn report(task: &Assignment, dir: &AttemptDir, head: Head) -> WorkReport {
    let marked = task.policy.workflow.completion == Completion::Marker
        && matches!(task.job.kind, JobKind::Work { .. });
    if !marked {
        return WorkReport::Complete { head };
    }
    match marker::read(&String::from_utf8_lossy(&message(dir))) {
        marker::Marker::Complete => WorkReport::Complete { head },
        marker::Marker::Stuck(reason) => WorkReport::Stuck { head, reason },
        marker::Marker::IterationDone | marker::Marker::None => WorkReport::Incomplete { head },
    }
}

fn finished(task: &Assignment) -> String {
    match &task.job.kind {
        JobKind::Fix { .. } | JobKind::Work { role: Role::Fix, .. } => commit_message::feedback(task.cycle()),
        JobKind::Work { role: Role::Simplify, .. } => commit_message::simplify(&task.spec.title),
        JobKind::Work { .. } if task.document().is_some() => document_message(task),
        JobKind::Work { .. } if task.item().is_some() => item_message(task),
        JobKind::Work { .. }
        | JobKind::Research { .. }
        | JobKind::Review { .. }
        | JobKind::Check
        | JobKind::Combine { .. }
        | JobKind::Land => commit_message::initial(&task.spec.title),
    }
}

fn document_message(task: &Assignment) -> String {
    match task.document() {
        Some(Kind::Design) => commit_message::design(&task.spec.title),
        Some(Kind::Plan) | None => commit_message::plan(&task.spec.title),
    }
}

fn item_message(task: &Assignment) -> String {
    let small = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let Some((index, item)) = task.item() else { return commit_message::initial(&task.spec.title) };
    commit_message::item(&task.spec.title, (small(index + 1), small(task.items.len())), &item.title)
}

fn unfinished(task: &Assignment) -> String {
    commit_message::unfinished(&task.spec.title)
}

/// What the agent wrote to stdout; one byte more than any answer may have tells that there was more.
pub(super) fn stdout(dir: &AttemptDir) -> Vec<u8> {
    start_of(&dir.stdout(), MAX_BYTES as u64 + 1)
}

/// The start of a file that an agent may have put anything in the place of: a pipe would be waited for in vain.
pub(crate) fn start_of(path: &Path, most: u64) -> Vec<u8> {
    let mut text = Vec::new();
    if path.metadata().is_ok_and(|file| file.is_file())
        && let Ok(file) = File::open(path)
    {
        file.take(most).read_to_end(&mut text).ok();
    }
    text
}

/// The final message of an attempt that changed the worktree.
pub fn writers_message(dir: &AttemptDir) -> Option<String> {
    // Readers were given a nonce, writers were not.
    let Memo { nonce, reads, .. } = memo(dir);
    if nonce.is_some() || reads || !dir.result().exists() {
        return None;
    }
    Some(String::from_utf8_lossy(&message(dir)).into_owned())
}

pub(super) fn memo(dir: &AttemptDir) -> Memo {
    let bytes = fs::read(dir.path().join("memo.json")).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}
