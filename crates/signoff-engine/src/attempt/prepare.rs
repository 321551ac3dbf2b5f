//! Before an attempt: the worktree is as it must be, the prompt is written, the command line is known.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt, symlink};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use signoff_core::config::{Agent, AgentKind, Assigned, AssignedReviewer, Place, ReviewWorkspace};
use signoff_core::contract::{Ask, Contract};
use signoff_core::grant::Grant;
use signoff_core::hex::hex;
use signoff_core::ids::{Commit, LoopId, Nonce, ReviewerName};
use signoff_core::machine::{JobKind, Scope};
use signoff_core::policy::Span;
use signoff_core::review::Bar;
use signoff_core::steering::files_with;
use signoff_core::workflow::{Completion, Role};

use super::document::{self, Kind};
use super::environment::{self, Told};
use super::held::{Room, held};
use super::inherited::inherited;
use super::planted::planted;
use super::proxy::past_proxies;
use super::{Unstarted, Workshop, carried, checks, copied, directory, items, research};
use crate::agent::{self, CommandLine, Duty, Hold, Laid, Order, Reporting};
use crate::artifact;
use crate::assignment::Assignment;
use crate::brief::{self, Material};
use crate::draft::{Care, Draft};
use crate::error::EngineError;
use crate::failpoint;
use crate::git::{Diff, GitError};
use crate::opening::{self, PromptFile};
use crate::place::apart;
use crate::process::{AttemptDir, Launch, Limits};
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

/// In which projects say how they are worked on. Agents are kept from reading them by themselves.
const INSTRUCTIONS: [&str; 4] = ["AGENTS.md", "CLAUDE.md", "GEMINI.md", "CONTRIBUTING.md"];

/// Those that lie at the root of a worktree.
fn instructions(worktree: &Path) -> Vec<&'static str> {
    INSTRUCTIONS.into_iter().filter(|name| worktree.join(name).is_file()).collect()
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
        return checks::of_reviewer(shop, task, dir);
    }
    let nonce = fresh_nonce()?;
    let ask = ask(task, &assigned, commit, Some(nonce.clone()));
    let (steering, with_secrets) = whole_work(shop, task, (commit, since), &diff)?;
    if let Some(file) = steering.iter().find(|file| agent::runs(&assigned.agent, file)) {
        return Ok(Err(Unstarted::Failed(would_run(&assigned, &format!("`{file}` of the work")))));
    }
    // A copy is made of the commit alone.
    let shares = assigned.workspace == ReviewWorkspace::Shared;
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
        diff: Some(diff),
        ..if task.judged_document().is_some() { documents(shop, task)? } else { Material::default() }
    };
    let copy = match assigned.workspace {
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
        Role::Plan if task.loop_id == LoopId::planning() => Some(Grant::groups()),
        Role::Implement | Role::Fix | Role::Enumerate | Role::Plan | Role::Brainstorm | Role::Simplify => {
            None
        }
    }
}

/// The documents that a task has, for those who must know them.
fn documents(shop: &Workshop, task: &Assignment) -> Result<Material, EngineError> {
    let text = |kind| document::text(shop, task, kind);
    Ok(Material { design: text(Kind::Design)?, plan: text(Kind::Plan)?, ..Material::default() })
}

/// The same with what ended the last pass: the next one must not begin without knowing it.
pub(super) fn restarted(shop: &Workshop, task: &Assignment) -> Result<Material, EngineError> {
    let ended_last = task.last_round.as_ref().is_some_and(|round| round.pass + 1 == task.job.pass);
    let name = task.last_artifact().filter(|_| ended_last);
    let last_pass = name.and_then(|name| artifact::read_merged(&shop.layout.reviews(), &name));
    Ok(Material { last_pass, ..documents(shop, task)? })
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
        require_nonce: assigned.require_nonce || gate.is_some_and(|gate| gate.require_nonce),
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

pub(super) fn launch(
    shop: &Workshop,
    task: &Assignment,
    dir: &AttemptDir,
    (agent, model, duty): (&Agent, Option<&str>, Duty),
    (timeout, told): (Span, &Told),
) -> Result<Launch, Unstarted> {
    let Some(adapter) = agent::of(agent.kind) else {
        return Err(Unstarted::Failed(format!(
            "agent {} is of a kind that cannot be driven here",
            agent.name
        )));
    };
    let program = shop.program.display().to_string();
    let (home, person) = (dir.home(), shop.person.as_path());
    let reporting = told.access.as_ref();
    let reporting = reporting.map(|access| Reporting { url: &access.url, variable: "SIGNOFF_MCP_TOKEN" });
    let mut line = adapter.command_line(&Order {
        agent,
        model,
        program: &program,
        duty,
        worktree: Path::new(&task.place.worktree),
        repository: shop.repository.root(),
        home: &home,
        person,
        inherits: &inherited(agent, &shop.variables),
        reporting,
        resumes: task.launch.resumes.as_ref().map(|resumed| resumed.session.as_str()),
        hold: task.launch.hold.unwrap_or(Hold::Nobody),
        root: rustix::process::geteuid().is_root(),
    });
    if let Some(resumed) = &task.launch.resumes {
        let earlier = AttemptDir::new(shop.layout.attempt(task.run, &task.loop_id, resumed.attempt));
        carried::carry(adapter.keeps(), &earlier.home(), &home);
    }
    lay(&line.files)
        .map_err(|error| Unstarted::Failed(format!("its files could not be written: {error}")))?;
    line.environment.splice(0..0, environment::withheld(agent));
    line.environment.extend(agent.env.iter().map(|(key, value)| (key.clone(), Some(value.clone()))));
    line.environment.extend(environment::of(task, dir, told));
    past_proxies(&mut line.environment);
    Ok(assemble(shop, Path::new(&task.place.worktree), line, timeout))
}

/// Puts the files where the agent looks for them, for nobody else to read.
pub(crate) fn lay(files: &[Laid]) -> io::Result<()> {
    for file in files {
        let (Laid::Text { path, .. } | Laid::Copy { path, .. } | Laid::Link { path, .. }) = file;
        let directory = path.parent().unwrap_or(Path::new("."));
        DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
        match file {
            Laid::Text { path, text } => Draft::write(path, text.as_bytes(), Care::Private)?.put()?,
            Laid::Copy { path, of } if of.is_file() => drop(fs::copy(of, path)?),
            Laid::Link { path, of } if of.exists() => link(path, of)?,
            Laid::Copy { .. } | Laid::Link { .. } => {}
        }
    }
    Ok(())
}

/// An attempt that is prepared again finds what it laid before.
fn link(path: &Path, of: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        Ok(()) | Err(_) => symlink(of, path),
    }
}

pub(super) fn assemble(shop: &Workshop, directory: &Path, line: CommandLine, timeout: Span) -> Launch {
    let CommandLine { program, arguments, environment, files: _ } = line;
    let limits = shop.settings.limits();
    Launch {
        program: found(&program, shop.repository.checkout()),
        arguments,
        directory: directory.to_owned(),
        environment,
        held: None,
        limits: Limits {
            time: Some(duration(timeout)),
            silence: Some(duration(limits.silence)),
            grace: duration(limits.grace),
        },
    }
}

/// A program that is named by a path is the checkout's, also while the work is done elsewhere.
fn found(program: &str, checkout: &Path) -> String {
    let named_by_path = program.contains('/') && !program.starts_with('/');
    if named_by_path { checkout.join(program).display().to_string() } else { program.to_owned() }
}

fn duration(span: Span) -> Duration {
    Duration::from_secs(span.seconds)
}

/// The prompt that the workflow has for a role.
fn laid(shop: &Workshop, task: &Assignment, role: &str) -> Result<Option<String>, EngineError> {
    let path = task.policy.workflow.prompts.get(role);
    path.map(|path| prompt_file(shop, path)).transpose()
}

/// A person's own words in place of the built-in opening: configured, or in `.signoff/prompts`.
pub(super) fn opening(shop: &Workshop, names: &[&str]) -> Result<Option<String>, EngineError> {
    for name in names {
        if let Some((file, _)) = opening::find(&shop.settings, shop.repository.root(), name) {
            return Ok(Some(file.read()?));
        }
    }
    Ok(None)
}

/// The words that a reviewer begins with: the workflow's, its own, or those of its name or role.
fn reviewer_opening(
    shop: &Workshop,
    task: &Assignment,
    assigned: &AssignedReviewer,
) -> Result<Option<String>, EngineError> {
    match (laid(shop, task, "review")?, &assigned.prompt) {
        (Some(text), _) => Ok(Some(text)),
        (None, Some(path)) => prompt_file(shop, path).map(Some),
        (None, None) => opening(shop, &[assigned.name.as_str(), "review"]),
    }
}

/// A prompt that is named by a path must be there.
fn prompt_file(shop: &Workshop, path: &str) -> Result<String, EngineError> {
    Ok(PromptFile::at(shop.repository.root(), path).read()?)
}

/// The answers nobody could read, for the fixer to make sense of.
fn unread(shop: &Workshop, task: &Assignment) -> Option<String> {
    let JobKind::Fix { unread, .. } = &task.job.kind else { return None };
    let (reviews, name) = (shop.layout.reviews(), task.artifact());
    let texts: Vec<String> =
        unread.iter().filter_map(|reviewer| artifact::read_raw(&reviews, &name, reviewer)).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// The review that an improvement answers; and for a fix the review of this cycle, where reviewers answer in prose:
/// what they say beside their findings is part of what they ask for.
fn last_review(shop: &Workshop, task: &Assignment) -> Option<String> {
    let reviews = shop.layout.reviews();
    match &task.job.kind {
        JobKind::Work { role: Role::Fix, .. } => artifact::read(&reviews, task.spec.answers.as_ref()?),
        JobKind::Fix { .. } if task.shares_fixes() => None,
        JobKind::Fix { .. } => {
            let known = &task.policy.workflow.reviewers;
            let in_prose = |name| known.get(name).is_some_and(|one| one.contract == Contract::Markdown);
            task.gate()?
                .reviewers
                .iter()
                .any(in_prose)
                .then(|| artifact::read_merged(&reviews, &task.artifact()))?
        }
        JobKind::Work { .. }
        | JobKind::Research { .. }
        | JobKind::Review { .. }
        | JobKind::Check
        | JobKind::Combine { .. }
        | JobKind::Land => None,
    }
}

/// The last message of whoever wrote the work, where the gate shows it to reviewers.
fn author_output(shop: &Workshop, task: &Assignment) -> Option<String> {
    if !task.gate().is_some_and(|gate| gate.author_output) {
        return None;
    }
    last_message(shop, task)
}

/// What the attempt before said, for one that goes on with its work.
fn previous_message(shop: &Workshop, task: &Assignment) -> Option<String> {
    let goes_on = matches!(task.job.kind, JobKind::Work { role: Role::Implement, .. });
    let marked = task.policy.workflow.completion == Completion::Marker;
    if goes_on && marked && task.state.tally.iteration > 1 { last_message(shop, task) } else { None }
}

fn last_message(shop: &Workshop, task: &Assignment) -> Option<String> {
    let attempts = shop.layout.attempts(task.run, &task.loop_id);
    let before = (1..task.job.attempt.0).rev().map(|number| attempts.join(format!("a{number}")));
    before.map(AttemptDir::new).find_map(|dir| super::conclude::writers_message(&dir))
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
