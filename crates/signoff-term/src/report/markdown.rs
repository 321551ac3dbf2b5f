//! Markdown for the body of a pull request: the verdict first, findings in a table, the rest in collapsed sections.
//!
//! If the page is full, tasks that did not pass have priority, then open findings, then the rest.

pub mod page;

use signoff_core::ledger::FindingState;
use signoff_core::machine::{OutcomeKind, ReviewScope};
use signoff_core::merge::render::markdown_text::fenced;
use signoff_core::merge::render::plain_text::location;
use signoff_core::view::TaskStatus;

pub use self::page::LIMIT;
use self::page::{MarkdownPage, cell, code, code_cell, line, own_line, paragraphs};
use super::{Changes, PartSection, ReportDocument, ReportResultKind, TaskSection};
use crate::fit::{MAX_SENTENCE_WIDTH, count, format_duration};
use crate::review_round::RoundVerdict;
use crate::show::{AttemptRow, Cycle, LedgerLine, ReviewReport};

/// Maximum length of one text of an agent, in bytes.
const TEXT: usize = 4_000;

/// Maximum number of lines of `git diff --stat`.
const STAT: usize = 60;

/// Maximum number of findings of an inconclusive round.
const UNLISTED: usize = 20;

/// The whole report, with a final line break.
pub fn markdown(document: &ReportDocument) -> String {
    let mut page = MarkdownPage::with_ending(costs(document));
    let mut all: Vec<&TaskSection> = document.tasks.iter().collect();
    all.sort_by_key(|task| TaskUrgency::for_task(task));
    page.push(&head(document));
    if document.subject.is_run() {
        tasks(&mut page, &all);
        request(&mut page, document);
    }
    findings(&mut page, document);
    let (passed, others): (Vec<_>, Vec<_>) =
        all.iter().copied().partition(|task: &&TaskSection| task.result.kind == ReportResultKind::Passed);
    let (approved, stopped): (Vec<_>, Vec<_>) =
        document.parts.iter().partition(|part| part.outcome.is_some_and(OutcomeKind::is_approval));
    for (tasks, parts) in [(others, stopped), (passed, approved)] {
        tasks.iter().for_each(|task| self::task(&mut page, document, task));
        parts.iter().for_each(|part| self::part(&mut page, part));
    }
    page.finish(&document.subject.command())
}

/// The sort order of tasks: the ones that need attention most come first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum TaskUrgency {
    Broken,
    Waiting,
    NotApproved,
    Unfinished,
    Pending,
    None,
}

impl TaskUrgency {
    fn for_task(task: &TaskSection) -> Self {
        match (task.result.kind, task.row().status) {
            (ReportResultKind::Broken, _) => Self::Broken,
            (_, TaskStatus::Waiting) => Self::Waiting,
            (ReportResultKind::Open, _) => Self::NotApproved,
            (ReportResultKind::Passed, _) => Self::None,
            (_, TaskStatus::Pending) => Self::Pending,
            (ReportResultKind::Unfinished | ReportResultKind::Left, _) => Self::Unfinished,
        }
    }

    /// The page size up to which rows of this kind are added.
    fn page_limit(self) -> usize {
        match self {
            Self::Broken | Self::Waiting | Self::NotApproved | Self::Unfinished => LIMIT / 2,
            Self::Pending | Self::None => LIMIT / 4,
        }
    }
}

/// `**Approved after 2 reviews** by code and spec. 1 fixed. $0.84, 12m 30s, 1 file changed.`
fn head(document: &ReportDocument) -> String {
    let (result, totals) = (document.result(), &document.totals);
    let mut reviewers: Vec<&str> = totals.reviewers.iter().map(|stats| stats.reviewer.as_str()).collect();
    reviewers.truncate(8);
    let names = line(&reviewers.join(", "), 200);
    let by = if reviewers.is_empty() { String::new() } else { format!(", reviewed by {names}") };
    let found = totals.findings.text();
    let found = if found.is_empty() { "no findings".to_owned() } else { format!("findings: {found}") };
    let time = totals.passed_ms.map(|passed| format!(", {}", format_duration(passed))).unwrap_or_default();
    format!(
        "## {} {}\n\n**{}**{by}.\n\n{}, {found}. {}{time}. {}.\n\n",
        result.mark,
        line(&document.title(), 200),
        own_line(&result.text, 400),
        count(totals.cycles, "review cycle"),
        totals.cost(),
        own_line(&changed(document), 200),
    )
}

fn changed(document: &ReportDocument) -> String {
    let run = document.run.as_ref().filter(|_| document.subject.is_run());
    match (run, document.tasks.as_slice()) {
        (Some(run), _) => match &run.changes {
            Some(changes) => changes.summary(),
            None => count(document.tasks.len() as u64, "task"),
        },
        (None, [task, ..]) => task.changes.summary(),
        (None, []) => String::new(),
    }
}

/// The tasks in a table, those that did not pass first.
fn tasks(page: &mut MarkdownPage, all: &[&TaskSection]) {
    let is_uncounted = |task: &&TaskSection| task.changes.is_uncounted();
    let row = |task: &&TaskSection| {
        let row = task.row();
        let changes = if is_uncounted(task) { String::new() } else { task.changes.summary() };
        let text = format!(
            "| {} | {} | {} {} | {} | ${:.2} | {} |\n",
            row.id,
            cell(&row.title, MAX_SENTENCE_WIDTH),
            task.result.mark,
            own_line(&task.result.text, 400),
            row.review_cycle,
            row.cost_usd,
            own_line(&changes, 100),
        );
        (TaskUrgency::for_task(task).page_limit(), text)
    };
    let head = "| Task | Title | Standing | Reviews | Cost | Changes |\n|--:|---|---|--:|--:|---|\n";
    page.list("tasks", head, "\n", all.iter().map(row));
    if all.iter().any(is_uncounted) {
        let note = Changes::uncounted().summary();
        page.push(&format!("The changes of approved tasks are {note}: `signoff diff ID --stat`.\n\n"));
    }
}

/// The specification of the run.
fn request(page: &mut MarkdownPage, document: &ReportDocument) {
    let text = document.run.as_ref().and_then(|run| run.asked.as_deref()).unwrap_or_default();
    let text = Some(paragraphs(text, TEXT, "")).filter(|text| !text.is_empty());
    page.collapsed("what was asked", "What was asked", text);
}

/// All findings in one table, open ones first.
fn findings(page: &mut MarkdownPage, document: &ReportDocument) {
    let is_run = document.subject.is_run();
    let of_tasks = document
        .tasks
        .iter()
        .flat_map(|task| task.report.ledger.iter().map(move |finding| (task.row().id.to_string(), finding)));
    let of_parts =
        document.parts.iter().flat_map(|part| part.ledger.iter().map(|finding| (part.name.clone(), finding)));
    let mut all: Vec<(String, &LedgerLine)> = of_tasks.chain(of_parts).collect();
    all.sort_by_key(|(_, finding)| (!finding.blocks, finding.state != FindingState::Open));
    let row = |(subject, line): &(String, &LedgerLine)| {
        let subject = if is_run { format!(" {} |", cell(subject, 60)) } else { String::new() };
        let room = if line.state == FindingState::Open { LIMIT } else { LIMIT / 4 * 3 };
        (room, format!("|{subject} {}\n", cells(line)))
    };
    let head = if is_run {
        "| Task | Finding | Severity | Where | By | State |\n|---|---|---|---|---|---|\n"
    } else {
        "| Finding | Severity | Where | By | State |\n|---|---|---|---|---|\n"
    };
    page.list("rows of the table of findings", head, "\n", all.iter().map(row));
}

fn cells(found: &LedgerLine) -> String {
    let finding = &found.finding;
    let state = if found.blocks { "**open**".to_owned() } else { found.state.label() };
    format!(
        "{} | {} | {} | {} | {state} |",
        cell(&finding.description, MAX_SENTENCE_WIDTH),
        finding.severity,
        source_location(found).map(|source_location| code_cell(&source_location)).unwrap_or_default(),
        cell(&finding.sources.join(", "), 60),
    )
}

fn source_location(found: &LedgerLine) -> Option<String> {
    Some(location(found.finding.file.as_ref()?, found.finding.line))
}

/// The collapsed sections of a task.
fn task(page: &mut MarkdownPage, document: &ReportDocument, task: &TaskSection) {
    let report = &task.report;
    let task_prefix = if document.subject.is_run() { format!("Task {}: ", task.row().id) } else { String::new() };
    let asked = paragraphs(&task.asked, TEXT, "");
    page.collapsed(
        "what was asked",
        &format!("{task_prefix}What was asked"),
        Some(asked).filter(|text| !text.is_empty()),
    );
    page.collapsed(
        "findings in full",
        &format!("{task_prefix}Findings in full ({})", report.ledger.len()),
        report.ledger.iter().map(finding),
    );
    page.collapsed(
        "reviews",
        &format!("{task_prefix}Reviews ({})", report.cycles.len()),
        report.cycles.iter().map(cycle),
    );
    let decisions = report.decisions.iter().map(|decision| format!("- {}\n", line(&decision.text(": "), 400)));
    page.collapsed("decisions", &format!("{task_prefix}Decisions of people"), decisions);
    attempts(page, &task_prefix, &report.attempts);
    let stat = task.changes.stat.as_deref().filter(|stat| !stat.trim().is_empty()).map(shorten_stat);
    // In large runs this note is below the table of tasks.
    let note = task
        .changes
        .note
        .as_deref()
        .filter(|_| !task.changes.is_uncounted())
        .map(|note| format!("{}\n\n", line(note, 400)));
    page.collapsed("changes", &format!("{task_prefix}Changes"), note.into_iter().chain(stat.map(|stat| fenced(&stat))));
}

fn part(page: &mut MarkdownPage, part: &PartSection) {
    let outcome = part.outcome.map_or("unfinished", <&str>::from).replace('_', " ");
    let title = format!("{}: {outcome}", part.name);
    let why = part.reason.as_deref().map(|why| format!("{}\n\n", line(why, 200)));
    page.collapsed(
        "parts of the run",
        &title,
        why.into_iter().chain(part.cycles.iter().map(cycle)).chain(part.ledger.iter().map(finding)),
    );
    attempts(page, &format!("{}: ", part.name), &part.attempts);
}

fn finding(found: &LedgerLine) -> String {
    let finding = &found.finding;
    let source_location =
        source_location(found).map(|source_location| format!(" {}", code(&source_location))).unwrap_or_default();
    let mut out =
        format!("- {} **{}**{source_location}, {}\n\n", code(&finding.id), finding.severity, found.state.label());
    let mut add = |name: &str, text: &str| {
        let text = paragraphs(text, TEXT, "  ");
        if !text.is_empty() {
            let name = if name.is_empty() { String::new() } else { format!("  {name}:\n\n") };
            out.push_str(&format!("{name}{text}\n"));
        }
    };
    add("", &finding.description);
    finding.requirement.iter().for_each(|text| add("Requirement", text));
    finding.suggestion.iter().for_each(|text| add("Suggestion", text));
    let seen: Vec<_> = found.seen.iter().map(|seen| format!("{} {}", seen.phase, seen.cycle)).collect();
    let by = line(&finding.sources.join(", "), 100);
    out.push_str(&format!("  Reported by {by} in {}\n", line(&seen.join(", "), 200)));
    for claim in &found.claims {
        let word = claim.claim.into_str();
        out.push_str(&format!("\n  The fixer says {word}: {}\n", line(&claim.evidence, 400)));
    }
    for settled in &found.decisions {
        let (state, by) = (settled.state.label(), line(&settled.by, 60));
        out.push_str(&format!("\n  Then {state} by {by}: {}\n", line(&settled.evidence, 400)));
    }
    out.push('\n');
    out
}

fn cycle(cycle: &Cycle) -> String {
    let scope = if cycle.scope == ReviewScope::Scoped { ", the fix only" } else { "" };
    let round = &cycle.convergence;
    let mut out = format!(
        "**{} {}**{scope}, pass {}, commit {}: {} ({} new, {} carried, {} back again, {} fixed)\n\n",
        line(&cycle.phase, 60),
        cycle.n,
        cycle.pass,
        code(cycle.commit.get(..12).unwrap_or(&cycle.commit)),
        cycle.verdict.into_str().replace('_', " "),
        round.new,
        round.carried,
        round.regressed,
        round.fixed,
    );
    cycle.reviews.iter().for_each(|report| out.push_str(&review(report)));
    // The findings of an inconclusive round are not in the ledger yet.
    let unlisted = cycle.merged.issues.iter().filter(|_| cycle.verdict == RoundVerdict::Inconclusive);
    for issue in unlisted.take(UNLISTED) {
        let (severity, text) = (issue.finding.severity.into_str(), &issue.finding.description);
        out.push_str(&format!("  - {severity}: {}\n", line(text, MAX_SENTENCE_WIDTH)));
    }
    out.push('\n');
    out
}

fn review(review: &ReviewReport) -> String {
    let why = review.reason.as_deref().unwrap_or(&review.summary);
    let cost = format!("${:.2}", review.cost_usd);
    // GitHub renders text between two dollar signs as a formula.
    let cost = if why.contains('$') { code(&cost) } else { cost };
    let why = if why.trim().is_empty() { String::new() } else { format!(": {}", line(why, 400)) };
    format!(
        "- {} {}, {}, {cost}{why}\n",
        line(&review.reviewer, 60),
        review.verdict.into_str().replace('_', " "),
        format_duration(review.duration_ms),
    )
}

fn attempts(page: &mut MarkdownPage, task_prefix: &str, attempts: &[AttemptRow]) {
    let row = |attempt: &AttemptRow| {
        format!(
            "| {} | {} | {} | {} | ${:.2} | {} |\n",
            attempt.id,
            cell(&attempt.role_and_reviewer(), 60),
            cell(&attempt.agent_and_model(), 60),
            format_duration(attempt.duration_ms),
            attempt.cost_usd,
            cell(&attempt.ending(), MAX_SENTENCE_WIDTH),
        )
    };
    let head = "| | Who | Agent | Time | Cost | End |\n|---|---|---|--:|--:|---|\n";
    let title = format!("{task_prefix}Attempts ({})", attempts.len());
    page.collapsed_table("attempts", &title, head, attempts.iter().map(row));
}

/// The costs, as the end of a page.
fn costs(document: &ReportDocument) -> MarkdownPage {
    let mut page = MarkdownPage::default();
    let row = |role: &crate::stats::RoleStats| {
        let (time, cost) = (format_duration(role.duration_ms), role.cost_usd);
        let tokens = format!("{} | {}", role.input_tokens, role.output_tokens);
        format!("| {} | {} | {time} | ${cost:.2} | {tokens} |\n", cell(&role.role, 60), role.attempts)
    };
    let head = "| Role | Attempts | Time | Cost | Tokens in | out |\n|---|--:|--:|--:|--:|--:|\n";
    let title =
        format!("Cost and time: {}, {} of work", document.totals.cost(), format_duration(document.totals.worked_ms));
    page.collapsed_table("costs", &title, head, document.totals.roles.iter().map(row));
    page
}

/// The first lines, and the last one with the totals.
fn shorten_stat(stat: &str) -> String {
    let lines: Vec<&str> = stat.trim_end().lines().collect();
    match lines.split_last() {
        Some((last, files)) if files.len() > STAT => {
            let more = files.len() - STAT;
            format!("{}\n… {more} more files\n{last}", files.iter().take(STAT).copied().collect::<Vec<_>>().join("\n"))
        }
        Some(_) | None => lines.join("\n"),
    }
}
