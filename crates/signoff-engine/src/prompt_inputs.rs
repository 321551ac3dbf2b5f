//! Builds prompts: fills the core's prompt templates from an attempt's spec and inputs.

use std::sync::Arc;

use signoff_core::contract::{Contract, ReviewRequest};
use signoff_core::ids::FindingId;
use signoff_core::ledger::{FindingState, LedgerEntry, Round};
use signoff_core::machine::{JobKind, ReviewScope, round};
use signoff_core::merge::{MergeAction, merge, render};
use signoff_core::prompt::{
    self, DiffContext, DocumentContext, DocumentKind, EarlierCycle, EnumerateContext, FixContext, ImplementContext,
    OmittedFileContext, OtherLoop, PlanContext, RereviewContext, RetryContext, ReviewContext, SubjectContext,
    TaskPromptContext, UnreadableAnswer, Work,
};
use signoff_core::review::{FailThreshold, Finding, Review};
use signoff_core::source::planner::PlannerAnswer;
use signoff_core::workflow::{Completion, Role};

use crate::attempt::TaskDocument;
use crate::attempt_spec::{AttemptSpec, RunPart};
use crate::git::GitDiff;
use crate::workspace;

mod documents;

pub use documents::researcher;
use documents::{design, item, open_after_restart, other_items, plan, simplify};

/// Inputs of a prompt that are read from files.
#[derive(Debug, Clone, Default)]
pub struct PromptInputs {
    /// Replaces the built-in opening of the prompt.
    pub custom_prompt: Option<String>,
    pub diff: Option<Arc<GitDiff>>,
    /// Answers that could not be parsed, for the fixer to read.
    pub unparsed_answers: Option<String>,
    /// The reviewer's last answer, if it could not be parsed.
    pub last_unparsed_answer: Option<String>,
    /// Whether the reviewer has a copy of the worktree to run tests in.
    pub can_run: bool,
    /// The review that the agent answers.
    pub last_review: Option<String>,
    /// The final message of the previous attempt.
    pub previous_message: Option<String>,
    pub author_output: Option<String>,
    /// The project's instruction files at the root of the worktree.
    pub instructions: Vec<&'static str>,
    /// The design and the plan on the branch, if they exist.
    pub design: Option<String>,
    pub plan: Option<String>,
    /// The reports of the phase's researchers.
    pub reports: Vec<String>,
    /// The review that ended the last pass.
    pub last_pass: Option<String>,
}

/// The prompt of an agent that resumes a session. The full prompt is repeated: the agent may not have processed all of
/// it, and parts such as the nonce change.
pub fn resumed(spec: &AttemptSpec, prompt: String) -> String {
    if spec.launch.resumes.is_some() { prompt::continue_session(&prompt) } else { prompt }
}

/// The prompt of an agent that changes the worktree.
pub fn writer(spec: &AttemptSpec, inputs: &PromptInputs) -> String {
    if let Some(prompt) = planner(spec, inputs) {
        return prompt;
    }
    match &spec.job.kind {
        JobKind::Fix { findings, notes, .. } => {
            let mut all = entries(spec, findings);
            all.extend(notes);
            fix(spec, inputs, &all)
        }
        JobKind::Work { role: Role::Fix, .. } => fix(spec, inputs, &open(spec)),
        JobKind::Work { role: Role::Plan, .. } => plan(spec, inputs),
        JobKind::Work { role: Role::Brainstorm, .. } => design(spec, inputs),
        JobKind::Work { role: Role::Simplify, .. } => simplify(spec, inputs),
        JobKind::Work { notes, .. } => {
            let mut findings: Vec<&Finding> = notes.iter().collect();
            findings.extend(open_after_restart(spec));
            implement(spec, inputs, &findings)
        }
        JobKind::Research { .. }
        | JobKind::Review { .. }
        | JobKind::Check
        | JobKind::Combine { .. }
        | JobKind::Land => implement(spec, inputs, &[]),
    }
}

/// The prompt of a planner; `None` for other agents.
fn planner(spec: &AttemptSpec, inputs: &PromptInputs) -> Option<String> {
    let Some(RunPart::Planning { tasks, groups, rejection }) = &spec.part else { return None };
    let (role, wanted) = match &spec.job.kind {
        JobKind::Work { role, .. } | JobKind::Research { role, .. } => (*role, Vec::new()),
        JobKind::Fix { role, findings, .. } => (*role, entries(spec, findings)),
        JobKind::Review { .. } | JobKind::Check | JobKind::Combine { .. } | JobKind::Land => return None,
    };
    let enumerates = role == Role::Enumerate;
    let answer = if enumerates { PlannerAnswer::Tasks(tasks.clone()) } else { PlannerAnswer::Groups(groups.clone()) };
    let answer = answer.to_review_text();
    let retry = match rejection {
        Some(reason) => RetryContext::Refused { reason },
        None if wanted.is_empty() => RetryContext::No,
        None => RetryContext::Reviewed { answer: &answer, findings: &wanted },
    };
    let opening = inputs.custom_prompt.as_deref();
    if enumerates {
        let (name, specification) = (spec.task_spec.title.as_str(), spec.task_spec.description.as_str());
        let context = EnumerateContext { opening, name, specification, retry };
        return Some(prompt::enumerate(&context));
    }
    let needs: Vec<Vec<&str>> = tasks.iter().map(|task| task.depends_on.iter().map(String::as_str).collect()).collect();
    let tasks: Vec<prompt::PromptTask<'_>> = tasks
        .iter()
        .zip(&needs)
        .map(|(task, depends_on)| prompt::PromptTask {
            id: &task.id,
            title: &task.title,
            description: &task.description,
            depends_on,
        })
        .collect();
    Some(prompt::plan(&PlanContext { opening, tasks: &tasks, retry }))
}

fn entries<'a>(spec: &'a AttemptSpec, findings: &[FindingId]) -> Vec<&'a Finding> {
    findings.iter().filter_map(|id| spec.machine.ledger.get(id)).map(|entry| &entry.finding).collect()
}

fn task_prompt_context<'a>(spec: &'a AttemptSpec, names: &'a TaskNames) -> TaskPromptContext<'a> {
    TaskPromptContext {
        id: &names.id,
        title: &spec.task_spec.title,
        description: &spec.task_spec.description,
        status: "in_progress",
        priority: &names.priority,
        plan: spec.task_spec.plan.as_ref().map(|plan| plan.text.as_str()),
        design_file: &names.design,
        plan_file: &names.plan,
    }
}

/// How a task is named in prompts: by its tracker, if it comes from one.
struct TaskNames {
    id: String,
    priority: String,
    /// The paths of its documents.
    design: String,
    plan: String,
}

fn task_names(spec: &AttemptSpec) -> TaskNames {
    let number = || spec.task_id.map(|task| task.to_string()).unwrap_or_default();
    let tracked = spec.task_spec.tracker.as_ref();
    let priority = tracked.and_then(|tracked| tracked.priority);
    let document = |kind| spec.written_document(kind).unwrap_or_default();
    TaskNames {
        design: document(TaskDocument::Design),
        plan: document(TaskDocument::Plan),
        id: tracked.map_or_else(number, |tracked| tracked.id.clone()),
        priority: priority.map(|priority| format!("{priority} (0 is highest)")).unwrap_or_default(),
    }
}

fn others(spec: &AttemptSpec) -> Vec<OtherLoop<'_>> {
    let others = spec.siblings.iter();
    others
        .map(|one| OtherLoop { name: &one.name, status: one.status, title: &one.title, iteration: one.iteration })
        .collect()
}

fn implement(spec: &AttemptSpec, inputs: &PromptInputs, findings: &[&Finding]) -> String {
    let names = task_names(spec);
    let (done, later) = other_items(spec);
    prompt::implement(&ImplementContext {
        opening: inputs.custom_prompt.as_deref(),
        task: task_prompt_context(spec, &names),
        worktree: &spec.workspace.worktree,
        instructions: &inputs.instructions,
        other_loops: &others(spec),
        agents_at_once: spec.agents_at_work,
        attempt: spec.machine.counters.attempts.max(1),
        previous_message: inputs.previous_message.as_deref(),
        findings,
        item: item(spec, &done, &later),
        ends_with_marker: spec.policy.workflow.completion == Completion::Marker,
        may_stop_picking: spec.stop_marker,
    })
}

fn fix(spec: &AttemptSpec, inputs: &PromptInputs, findings: &[&Finding]) -> String {
    let names = task_names(spec);
    let merged = spec.last_round.as_ref().map(|round| merge(&round.reviews, FailThreshold::Low));
    // A fixer of some of the findings gets only its own ones.
    let shared = spec.shares_fixes();
    let is_own = |finding: &Finding| findings.iter().any(|own| own.id == finding.id);
    let issue = |index: usize| merged.as_ref().and_then(|merged| merged.issues.get(index));
    let conflicts: Vec<(&Finding, &Finding)> = merged
        .iter()
        .flat_map(|merged| &merged.conflicts)
        .filter_map(|conflict| Some((&issue(conflict.a)?.finding, &issue(conflict.b)?.finding)))
        .filter(|(one, other)| !shared || is_own(one) || is_own(other))
        .collect();
    let only_files = if workspace::parallel_fixes::is_parallel(spec) { files(findings) } else { Vec::new() };
    let left_out = inputs.diff.as_deref().map(GitDiff::omitted).unwrap_or_default();
    let is_first = matches!(spec.job.kind, JobKind::Fix { part: 0, .. });
    let rest = if shared && is_first { rest(spec) } else { None };
    let results = results(spec, findings).filter(|_| !shared);
    prompt::fix(&FixContext {
        opening: inputs.custom_prompt.as_deref(),
        task: task_prompt_context(spec, &names),
        worktree: &spec.workspace.worktree,
        instructions: &inputs.instructions,
        findings,
        results: results.as_deref(),
        conflicts: &conflicts,
        follow_up: follow_up(spec).filter(|_| !shared),
        unread_review: inputs.unparsed_answers.as_deref(),
        last_review: inputs.last_review.as_deref(),
        rest: rest.as_deref(),
        guidance: spec.task_spec.guidance.as_deref(),
        refused: spec.rejected_answer.as_deref(),
        earlier: &earlier_cycles(spec),
        settled: &settled(spec),
        only_files: &only_files,
        diff: inputs.diff.as_deref().map(|diff| context(spec, diff, &left_out)),
        may_stop_picking: spec.stop_marker,
    })
}

/// The merged results of the last cycle, if it had several reviewers and reported these findings.
fn results(spec: &AttemptSpec, findings: &[&Finding]) -> Option<String> {
    let round = spec.last_round.as_ref().filter(|round| round.reviews.len() > 1)?;
    let bar = spec.gate()?.fail_on;
    let merged = merge(&round.reviews, bar);
    let theirs = |finding: &&Finding| merged.issues.iter().any(|issue| issue.finding.id == finding.id);
    let action = Some(MergeAction::FixAndRereview);
    findings.iter().any(theirs).then(|| render::render_text(&merged, bar, action))
}

/// The files that findings are about, without repetitions.
fn files<'a>(findings: &[&'a Finding]) -> Vec<&'a str> {
    let mut files: Vec<&str> = findings.iter().filter_map(|finding| finding.file.as_deref()).collect();
    files.dedup();
    files
}

/// The follow-up prompt of the last review, if its format has one.
fn follow_up(spec: &AttemptSpec) -> Option<&str> {
    spec.last_round.as_ref()?.reviews.iter().find_map(|review| review.follow_up_prompt.as_deref())
}

/// The requests of the last review besides its findings: follow-up prompts, and the prose of reviewers.
fn rest(spec: &AttemptSpec) -> Option<String> {
    let known = &spec.policy.workflow.reviewers;
    let in_prose = |review: &&Review| {
        let contract = known.get(&review.reviewer).map(|one| one.contract);
        contract == Some(Contract::Markdown) && !review.verdict.approves()
    };
    let reviews = &spec.last_round.as_ref()?.reviews;
    let follow_ups = reviews.iter().filter_map(|review| review.follow_up_prompt.clone());
    let prose = reviews.iter().filter(in_prose).filter_map(Review::summary_without_findings);
    let texts: Vec<String> = follow_ups.chain(prose).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// Summaries of the earlier cycles, from the ledger. Their prose is not repeated.
fn earlier_cycles(spec: &AttemptSpec) -> Vec<EarlierCycle> {
    let entries = spec.machine.ledger.entries();
    (spec.cycles_elsewhere() + 1..spec.job.cycle)
        .map(|cycle| {
            let of_cycle = |entry: &&LedgerEntry| {
                let reviewed = |round: &&Round| round.checkpoint.is_none();
                let mut rounds = entry.seen.iter().filter(reviewed);
                rounds.any(|round| round.cycle == cycle && round.phase == spec.job.phase)
            };
            let reported: Vec<&LedgerEntry> = entries.iter().filter(of_cycle).collect();
            let count = |state: FindingState| reported.iter().filter(|entry| entry.state == state).count();
            let again = |entry: &&&LedgerEntry| {
                entry.decisions.iter().any(|one| one.state == FindingState::Fixed) && entry.state == FindingState::Open
            };
            EarlierCycle {
                cycle,
                reported: reported.len(),
                fixed: count(FindingState::Fixed),
                refuted: count(FindingState::Refuted),
                regressed: reported.iter().filter(again).count(),
            }
        })
        .collect()
}

fn settled(spec: &AttemptSpec) -> Vec<&LedgerEntry> {
    let states = [FindingState::Refuted, FindingState::Deferred, FindingState::OutOfScope];
    let is_settled = |entry: &&LedgerEntry| states.contains(&entry.state);
    spec.machine.ledger.entries().iter().filter(is_settled).collect()
}

fn context<'a>(spec: &'a AttemptSpec, diff: &'a GitDiff, left_out: &'a [OmittedFileContext<'a>]) -> DiffContext<'a> {
    DiffContext { base: Some(spec.base().as_str()), stat: &diff.stat, diff: &diff.patch, left_out }
}

/// The prompt of a reviewer.
pub fn reviewer(spec: &AttemptSpec, inputs: &PromptInputs, contract: Contract, request: &ReviewRequest) -> String {
    let (names, others) = (task_names(spec), others(spec));
    let (done, later) = other_items(spec);
    let empty = GitDiff::default();
    let diff = inputs.diff.as_deref().unwrap_or(&empty);
    let left_out = diff.omitted();
    let work = Work {
        task: task_prompt_context(spec, &names),
        worktree: &spec.workspace.worktree,
        other_loops: &others,
        agents_at_once: spec.loops_in_worktree,
        diff: context(spec, diff, &left_out),
        author_output: inputs.author_output.as_deref(),
        item: item(spec, &done, &later),
    };
    let (open, noted, settled) = (to_judge(spec), noted(spec), settled(spec));
    let claimed: Vec<&LedgerEntry> = open.iter().filter_map(|finding| spec.machine.ledger.get(&finding.id)).collect();
    let answer = inputs.last_unparsed_answer.as_deref().unwrap_or_default();
    let shown = documents(spec);
    let again = RereviewContext {
        attempt: spec.job.cycle.saturating_sub(1).max(spec.machine.counters.fixes),
        scope: review_scope(spec),
        open: &open,
        claimed: &claimed,
        settled: &settled,
        previous_follow_up: follow_up(spec),
    };
    prompt::review(&ReviewContext {
        opening: inputs.custom_prompt.as_deref(),
        contract,
        request,
        depth: spec.gate().map_or(prompt::Depth::Standard, |gate| gate.depth),
        can_run: inputs.can_run,
        subject: document_subject(spec, inputs, work).unwrap_or_else(|| subject(spec, work, &shown.0, &shown.1)),
        noted: if is_rereview(spec) { &[] } else { &noted },
        rereview: is_rereview(spec).then_some(again),
        unreadable: spec.unreadable.as_ref().map(|why| UnreadableAnswer { text: answer, why }),
    })
}

/// Whether this is a re-review. The reviews of all plan items are numbered together.
fn is_rereview(spec: &AttemptSpec) -> bool {
    let of_item = spec.phase().is_some_and(|phase| phase.per_item);
    let again = spec.job.cycle > 1 && (!of_item || spec.machine.counters.fixes > 0);
    again || was_started_elsewhere(spec)
}

/// Whether another program ran this gate before.
fn was_started_elsewhere(spec: &AttemptSpec) -> bool {
    let here = (spec.job.pass, spec.job.phase, 0);
    let found = |round: &Round| round.checkpoint.is_none() && (round.pass, round.phase, round.cycle) == here;
    spec.machine.ledger.entries().iter().any(|entry| entry.seen.iter().any(found))
}

/// The design or the plan, if the gate reviews it.
fn document_subject<'a>(spec: &'a AttemptSpec, inputs: &'a PromptInputs, work: Work<'a>) -> Option<SubjectContext<'a>> {
    let (kind, text, design) = match spec.reviewed_document()? {
        TaskDocument::Design => (DocumentKind::Design { task: work.task }, &inputs.design, None),
        TaskDocument::Plan => (DocumentKind::Plan { task: work.task }, &inputs.plan, inputs.design.as_deref()),
    };
    let (text, diff) = (text.as_deref(), Some(work.diff));
    if text.is_none() && spec.task_spec.imported.is_none() {
        return None;
    }
    Some(SubjectContext::Document(DocumentContext { kind, text, worktree: work.worktree, design, diff }))
}

/// The subject of a review.
fn subject<'a>(spec: &'a AttemptSpec, work: Work<'a>, made: &'a str, from: &'a str) -> SubjectContext<'a> {
    let kind = match &spec.part {
        None => return SubjectContext::Task(work),
        Some(RunPart::Checkpoint { .. }) => return SubjectContext::Checkpoint(work),
        Some(RunPart::FinalReview) => return SubjectContext::Run(work),
        Some(RunPart::Planning { groups, .. }) if groups.is_empty() => DocumentKind::TaskList { specification: from },
        Some(RunPart::Planning { .. }) => DocumentKind::Groups { tasks: from },
    };
    SubjectContext::Document(DocumentContext {
        kind,
        text: Some(made),
        worktree: work.worktree,
        design: None,
        diff: None,
    })
}

/// The planners' answer under review, and what it was made from.
fn documents(spec: &AttemptSpec) -> (String, String) {
    let Some(RunPart::Planning { tasks, groups, .. }) = &spec.part else { return Default::default() };
    let listed = PlannerAnswer::Tasks(tasks.clone()).to_review_text();
    if groups.is_empty() {
        return (listed, spec.task_spec.description.clone());
    }
    (PlannerAnswer::Groups(groups.clone()).to_review_text(), listed)
}

fn open(spec: &AttemptSpec) -> Vec<&Finding> {
    spec.machine.ledger.open(FailThreshold::Low).map(|entry| &entry.finding).collect()
}

/// The open findings that the reviewers of this cycle judge again.
fn to_judge(spec: &AttemptSpec) -> Vec<&Finding> {
    let round = round(&spec.machine, &spec.policy);
    let open = spec.machine.ledger.open(FailThreshold::Low).filter(|entry| round.covers(entry));
    open.map(|entry| &entry.finding).collect()
}

/// Those of [`to_judge`] that this reviewer reported itself, because its approval closes them. Every reviewer of the
/// gate also gets the findings of checkpoint reviews.
fn noted(spec: &AttemptSpec) -> Vec<&Finding> {
    let JobKind::Review { reviewer, .. } = &spec.job.kind else { return Vec::new() };
    let of_checkpoint = |finding: &Finding| {
        let entry = spec.machine.ledger.get(&finding.id);
        entry.is_some_and(|entry| entry.seen.iter().any(|round| round.checkpoint.is_some()))
    };
    let is_relevant = |finding: &&Finding| finding.sources.contains(reviewer) || of_checkpoint(finding);
    to_judge(spec).into_iter().filter(is_relevant).collect()
}

fn review_scope(spec: &AttemptSpec) -> ReviewScope {
    if let JobKind::Review { scope, .. } = spec.job.kind { scope } else { ReviewScope::Full }
}
