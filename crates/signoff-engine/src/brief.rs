//! What an agent is told: the core's prompts, filled from an assignment.

use std::sync::Arc;

use signoff_core::contract::{Ask, Contract};
use signoff_core::ids::FindingId;
use signoff_core::ledger::{Entry, Round, State};
use signoff_core::machine::{JobKind, Scope, round};
use signoff_core::merge::{Action, merge, render};
use signoff_core::prompt::{
    self, AnswerBy, DiffContext, Document, DocumentKind, EarlierCycle, EnumerateContext, Extent, FixContext,
    ImplementContext, LeftOut, OtherLoop, PlanContext, Rereview, ReviewContext, SecondTry, Subject,
    TaskBrief, UnreadableAnswer, Work,
};
use signoff_core::review::{Bar, Finding, Review};
use signoff_core::source::planner::Planned;
use signoff_core::workflow::{Completion, Role};

use crate::assignment::{Assignment, Neighbour, Part};
use crate::attempt::DocumentKind as Written;
use crate::git::Diff;
use crate::place;

mod thinking;

pub use thinking::researcher;
use thinking::{beside, design, item, of_last_pass, plan, simplify};

/// What is read from files for a prompt.
#[derive(Debug, Clone, Default)]
pub struct Material {
    /// A person's own opening.
    pub opening: Option<String>,
    pub diff: Option<Arc<Diff>>,
    /// Answers nobody could read, for the fixer to make sense of.
    pub unread: Option<String>,
    /// The reviewer's last answer, where it could not be read.
    pub unreadable: Option<String>,
    /// Whether the reviewer has a copy to run tests in.
    pub can_run: bool,
    /// The review that an improvement answers.
    pub last_review: Option<String>,
    /// The final message of the attempt before.
    pub previous_message: Option<String>,
    pub author_output: Option<String>,
    /// The files at the root of the worktree in which the project says how it is worked on.
    pub instructions: Vec<&'static str>,
    /// The design and the plan on the branch, where they are written.
    pub design: Option<String>,
    pub plan: Option<String>,
    /// What the helpers of the phase found out.
    pub reports: Vec<String>,
    /// The review that ended the last pass.
    pub last_pass: Option<String>,
}

/// A prompt for whoever goes on in a session. All of it is there again: nobody knows how much of it was taken in, and
/// what answers are bound by changes.
pub fn resumed(task: &Assignment, prompt: String) -> String {
    if task.launch.resumes.is_some() { prompt::going_on(&prompt) } else { prompt }
}

/// The prompt of an agent that changes the worktree.
pub fn writer(task: &Assignment, material: &Material) -> String {
    if let Some(prompt) = planner(task, material) {
        return prompt;
    }
    match &task.job.kind {
        JobKind::Fix { findings, notes, .. } => {
            let mut wanted = entries(task, findings);
            wanted.extend(notes);
            fix(task, material, &wanted)
        }
        JobKind::Work { role: Role::Fix, .. } => fix(task, material, &open(task)),
        JobKind::Work { role: Role::Plan, .. } => plan(task, material),
        JobKind::Work { role: Role::Brainstorm, .. } => design(task, material),
        JobKind::Work { role: Role::Simplify, .. } => simplify(task, material),
        JobKind::Work { notes, .. } => {
            let mut findings: Vec<&Finding> = notes.iter().collect();
            findings.extend(of_last_pass(task));
            implement(task, material, &findings)
        }
        JobKind::Research { .. }
        | JobKind::Review { .. }
        | JobKind::Check
        | JobKind::Combine { .. }
        | JobKind::Land => implement(task, material, &[]),
    }
}

/// The prompt of a planner; none for anybody else.
fn planner(task: &Assignment, material: &Material) -> Option<String> {
    let Some(Part::Planning { tasks, groups, refused }) = &task.part else { return None };
    let (role, wanted) = match &task.job.kind {
        JobKind::Work { role, .. } | JobKind::Research { role, .. } => (*role, Vec::new()),
        JobKind::Fix { role, findings, .. } => (*role, entries(task, findings)),
        JobKind::Review { .. } | JobKind::Check | JobKind::Combine { .. } | JobKind::Land => return None,
    };
    let enumerates = role == Role::Enumerate;
    let answer = if enumerates { Planned::Tasks(tasks.clone()) } else { Planned::Groups(groups.clone()) };
    let answer = answer.shown();
    let second_try = match refused {
        Some(reason) => SecondTry::Refused { reason },
        None if wanted.is_empty() => SecondTry::No,
        None => SecondTry::Reviewed { answer: &answer, findings: &wanted },
    };
    let (opening, answer_by) = (material.opening.as_deref(), AnswerBy::Json);
    if enumerates {
        let (name, specification) = (task.spec.title.as_str(), task.spec.description.as_str());
        let context = EnumerateContext { opening, name, specification, second_try, answer_by };
        return Some(prompt::enumerate(&context));
    }
    let needs: Vec<Vec<&str>> =
        tasks.iter().map(|task| task.depends_on.iter().map(String::as_str).collect()).collect();
    let tasks: Vec<prompt::PlannedTask<'_>> = tasks
        .iter()
        .zip(&needs)
        .map(|(task, depends_on)| prompt::PlannedTask {
            id: &task.id,
            title: &task.title,
            description: &task.description,
            depends_on,
        })
        .collect();
    Some(prompt::plan(&PlanContext { opening, tasks: &tasks, second_try, answer_by }))
}

fn entries<'a>(task: &'a Assignment, findings: &[FindingId]) -> Vec<&'a Finding> {
    findings.iter().filter_map(|id| task.state.ledger.get(id)).map(|entry| &entry.finding).collect()
}

fn brief<'a>(task: &'a Assignment, called: &'a Called) -> TaskBrief<'a> {
    TaskBrief {
        id: &called.id,
        title: &task.spec.title,
        description: &task.spec.description,
        status: "in_progress",
        priority: &called.priority,
        plan: task.spec.plan.as_ref().map(|plan| plan.text.as_str()),
        design_file: &called.design,
        plan_file: &called.plan,
    }
}

/// What a task is called: by its tracker, where it comes from one.
struct Called {
    id: String,
    priority: String,
    /// Where its documents are.
    design: String,
    plan: String,
}

fn called(task: &Assignment) -> Called {
    let number = || task.task.map(|task| task.to_string()).unwrap_or_default();
    let tracked = task.spec.tracked.as_ref();
    let priority = tracked.and_then(|tracked| tracked.priority);
    let document = |kind| task.written_document(kind).unwrap_or_default();
    Called {
        design: document(Written::Design),
        plan: document(Written::Plan),
        id: tracked.map_or_else(number, |tracked| tracked.id.clone()),
        priority: priority.map(|priority| format!("{priority} (0 is highest)")).unwrap_or_default(),
    }
}

fn others(task: &Assignment) -> Vec<OtherLoop<'_>> {
    task.others.iter().map(other_loop).collect()
}

fn other_loop(one: &Neighbour) -> OtherLoop<'_> {
    OtherLoop { name: &one.name, status: one.status, title: &one.title, iteration: one.iteration }
}

fn implement(task: &Assignment, material: &Material, findings: &[&Finding]) -> String {
    let called = called(task);
    let (done, later) = beside(task);
    prompt::implement(&ImplementContext {
        opening: material.opening.as_deref(),
        task: brief(task, &called),
        worktree: &task.place.worktree,
        instructions: &material.instructions,
        other_loops: &others(task),
        agents_at_once: task.at_once,
        attempt: task.state.tally.iteration.max(1),
        previous_message: material.previous_message.as_deref(),
        findings,
        item: item(task, (&done, &later)),
        ends_with_marker: task.policy.workflow.completion == Completion::Marker,
        may_stop_picking: task.stop_marker,
    })
}

fn fix(task: &Assignment, material: &Material, findings: &[&Finding]) -> String {
    let called = called(task);
    let merged = task.last_round.as_ref().map(|round| merge(&round.reviews, Bar::Low));
    // Who fixes a part of them is told of its own findings alone.
    let shared = task.shares_fixes();
    let is_own = |finding: &Finding| findings.iter().any(|own| own.id == finding.id);
    let issue = |index: usize| merged.as_ref().and_then(|merged| merged.issues.get(index));
    let conflicts: Vec<(&Finding, &Finding)> = merged
        .iter()
        .flat_map(|merged| &merged.conflicts)
        .filter_map(|conflict| Some((&issue(conflict.a)?.finding, &issue(conflict.b)?.finding)))
        .filter(|(one, other)| !shared || is_own(one) || is_own(other))
        .collect();
    let only_files = if place::apart::is_apart(task) { files(findings) } else { Vec::new() };
    let left_out = material.diff.as_deref().map(left_out).unwrap_or_default();
    let is_first = matches!(task.job.kind, JobKind::Fix { part: 0, .. });
    let rest = if shared && is_first { rest(task) } else { None };
    let results = results(task, findings).filter(|_| !shared);
    prompt::fix(&FixContext {
        opening: material.opening.as_deref(),
        task: brief(task, &called),
        worktree: &task.place.worktree,
        instructions: &material.instructions,
        findings,
        results: results.as_deref(),
        conflicts: &conflicts,
        follow_up: follow_up(task).filter(|_| !shared),
        unread_review: material.unread.as_deref(),
        last_review: material.last_review.as_deref(),
        rest: rest.as_deref(),
        guidance: task.spec.guidance.as_deref(),
        refused: task.refused.as_deref(),
        earlier: &earlier(task),
        settled: &settled(task),
        only_files: &only_files,
        diff: material.diff.as_deref().map(|diff| context(task, diff, &left_out)),
        may_stop_picking: task.stop_marker,
    })
}

/// What the reviewers of the last round say together, where there were several and the findings are theirs.
fn results(task: &Assignment, findings: &[&Finding]) -> Option<String> {
    let round = task.last_round.as_ref().filter(|round| round.reviews.len() > 1)?;
    let bar = task.gate()?.fail_on;
    let merged = merge(&round.reviews, bar);
    let theirs = |finding: &&Finding| merged.issues.iter().any(|issue| issue.finding.id == finding.id);
    let action = Some(Action::FixAndRereview);
    findings.iter().any(theirs).then(|| render::block(&merged, bar, action))
}

/// The files that findings are about, each once.
fn files<'a>(findings: &[&'a Finding]) -> Vec<&'a str> {
    let mut files: Vec<&str> = findings.iter().filter_map(|finding| finding.file.as_deref()).collect();
    files.dedup();
    files
}

/// What the last review asked for in its own words, where its format has a place for that.
fn follow_up(task: &Assignment) -> Option<&str> {
    task.last_round.as_ref()?.reviews.iter().find_map(|review| review.follow_up_prompt.as_deref())
}

/// What the last review asked for beside its findings: follow-ups, and what reviewers say who answer in prose.
fn rest(task: &Assignment) -> Option<String> {
    let known = &task.policy.workflow.reviewers;
    let in_prose = |review: &&Review| {
        let contract = known.get(&review.reviewer).map(|one| one.contract);
        contract == Some(Contract::Markdown) && !review.verdict.approves()
    };
    let reviews = &task.last_round.as_ref()?.reviews;
    let follow_ups = reviews.iter().filter_map(|review| review.follow_up_prompt.clone());
    let prose = reviews.iter().filter(in_prose).filter_map(Review::beside_findings);
    let texts: Vec<String> = follow_ups.chain(prose).collect();
    (!texts.is_empty()).then(|| texts.join("\n\n"))
}

/// The cycles behind us, told from the ledger: earlier prose is summed up, not pasted.
fn earlier(task: &Assignment) -> Vec<EarlierCycle> {
    let entries = task.state.ledger.entries();
    (task.cycles_elsewhere() + 1..task.job.cycle)
        .map(|cycle| {
            let of_cycle = |entry: &&Entry| {
                let reviewed = |round: &&Round| round.checkpoint.is_none();
                let mut rounds = entry.seen.iter().filter(reviewed);
                rounds.any(|round| round.cycle == cycle && round.phase == task.job.phase)
            };
            let reported: Vec<&Entry> = entries.iter().filter(of_cycle).collect();
            let count = |state: State| reported.iter().filter(|entry| entry.state == state).count();
            let again = |entry: &&&Entry| {
                entry.decisions.iter().any(|one| one.state == State::Fixed) && entry.state == State::Open
            };
            EarlierCycle {
                cycle,
                reported: reported.len(),
                fixed: count(State::Fixed),
                refuted: count(State::Refuted),
                regressed: reported.iter().filter(again).count(),
            }
        })
        .collect()
}

fn settled(task: &Assignment) -> Vec<&Entry> {
    let is_settled = |entry: &&Entry| match entry.state {
        State::Refuted | State::Deferred | State::OutOfScope => true,
        State::Open | State::Fixed => false,
    };
    task.state.ledger.entries().iter().filter(is_settled).collect()
}

fn left_out(diff: &Diff) -> Vec<LeftOut<'_>> {
    diff.left_out()
}

fn context<'a>(task: &'a Assignment, diff: &'a Diff, left_out: &'a [LeftOut<'a>]) -> DiffContext<'a> {
    DiffContext { base: Some(task.base().as_str()), stat: &diff.stat, diff: &diff.patch, left_out }
}

/// The prompt of a reviewer.
pub fn reviewer(task: &Assignment, material: &Material, (contract, ask): (Contract, &Ask)) -> String {
    let (called, others) = (called(task), others(task));
    let (done, later) = beside(task);
    let empty = Diff::default();
    let diff = material.diff.as_deref().unwrap_or(&empty);
    let left_out = left_out(diff);
    let work = Work {
        task: brief(task, &called),
        worktree: &task.place.worktree,
        other_loops: &others,
        agents_at_once: task.in_same_tree,
        diff: context(task, diff, &left_out),
        author_output: material.author_output.as_deref(),
        item: item(task, (&done, &later)),
    };
    let (open, noted, settled) = (to_judge(task), noted(task), settled(task));
    let claimed: Vec<&Entry> = open.iter().filter_map(|finding| task.state.ledger.get(&finding.id)).collect();
    let answer = material.unreadable.as_deref().unwrap_or_default();
    let shown = documents(task);
    let again = Rereview {
        attempt: task.job.cycle.saturating_sub(1).max(task.state.tally.fixes),
        extent: extent(task),
        open: &open,
        claimed: &claimed,
        settled: &settled,
        previous_follow_up: follow_up(task),
    };
    prompt::review(&ReviewContext {
        opening: material.opening.as_deref(),
        contract,
        ask,
        depth: task.gate().map_or(prompt::Depth::Standard, |gate| gate.depth),
        can_run: material.can_run,
        subject: written(task, material, work).unwrap_or_else(|| subject(task, work, &shown)),
        noted: if is_again(task) { &[] } else { &noted },
        rereview: is_again(task).then_some(again),
        unreadable: task.unreadable.as_ref().map(|why| UnreadableAnswer { text: answer, why }),
    })
}

/// Whether it is not the first review. Those of all items of a plan are numbered together.
fn is_again(task: &Assignment) -> bool {
    let of_item = task.phase().is_some_and(|phase| phase.per_item);
    let again = task.job.cycle > 1 && (!of_item || task.state.tally.fixes > 0);
    again || was_begun_elsewhere(task)
}

/// Whether the gate was at work in another program before.
fn was_begun_elsewhere(task: &Assignment) -> bool {
    let here = (task.job.pass, task.job.phase, 0);
    let found = |round: &Round| round.checkpoint.is_none() && (round.pass, round.phase, round.cycle) == here;
    task.state.ledger.entries().iter().any(|entry| entry.seen.iter().any(found))
}

/// The design or the plan, where that is what a reviewer judges.
fn written<'a>(task: &'a Assignment, material: &'a Material, work: Work<'a>) -> Option<Subject<'a>> {
    let (kind, text, design) = match task.judged_document()? {
        Written::Design => (DocumentKind::Design { task: work.task }, &material.design, None),
        Written::Plan => (DocumentKind::Plan { task: work.task }, &material.plan, material.design.as_deref()),
    };
    let (text, diff) = (text.as_deref(), Some(work.diff));
    if text.is_none() && task.spec.taken_over.is_none() {
        return None;
    }
    Some(Subject::Document(Document { kind, text, worktree: work.worktree, design, diff }))
}

/// What a reviewer judges.
fn subject<'a>(task: &'a Assignment, work: Work<'a>, (made, from): &'a (String, String)) -> Subject<'a> {
    let kind = match &task.part {
        None => return Subject::Task(work),
        Some(Part::Checkpoint { .. }) => return Subject::Checkpoint(work),
        Some(Part::Whole) => return Subject::Run(work),
        Some(Part::Planning { groups, .. }) if groups.is_empty() => {
            DocumentKind::TaskList { specification: from }
        }
        Some(Part::Planning { .. }) => DocumentKind::Groups { tasks: from },
    };
    Subject::Document(Document { kind, text: Some(made), worktree: work.worktree, design: None, diff: None })
}

/// What planners made, and from what.
fn documents(task: &Assignment) -> (String, String) {
    let Some(Part::Planning { tasks, groups, .. }) = &task.part else { return Default::default() };
    let listed = Planned::Tasks(tasks.clone()).shown();
    if groups.is_empty() {
        return (listed, task.spec.description.clone());
    }
    (Planned::Groups(groups.clone()).shown(), listed)
}

fn open(task: &Assignment) -> Vec<&Finding> {
    task.state.ledger.open(Bar::Low).map(|entry| &entry.finding).collect()
}

/// Of these, what the reviewers of this round judge again.
fn to_judge(task: &Assignment) -> Vec<&Finding> {
    let round = round(&task.state, &task.policy);
    let open = task.state.ledger.open(Bar::Low).filter(|entry| round.concerns(entry));
    open.map(|entry| &entry.finding).collect()
}

/// Those of [`to_judge`] that this reviewer reported itself, because its approval closes them. Every reviewer of the gate
/// also gets the findings of checkpoint reviews.
fn noted(task: &Assignment) -> Vec<&Finding> {
    let JobKind::Review { reviewer, .. } = &task.job.kind else { return Vec::new() };
    let of_checkpoint = |finding: &Finding| {
        let entry = task.state.ledger.get(&finding.id);
        entry.is_some_and(|entry| entry.seen.iter().any(|round| round.checkpoint.is_some()))
    };
    let wanted = |finding: &&Finding| finding.sources.contains(reviewer) || of_checkpoint(finding);
    to_judge(task).into_iter().filter(wanted).collect()
}

fn extent(task: &Assignment) -> Extent {
    match task.job.kind {
        JobKind::Review { scope: Scope::Scoped, .. } => Extent::Scoped,
        JobKind::Review { .. }
        | JobKind::Work { .. }
        | JobKind::Research { .. }
        | JobKind::Check
        | JobKind::Fix { .. }
        | JobKind::Combine { .. }
        | JobKind::Land => Extent::Full,
    }
}
