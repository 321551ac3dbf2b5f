//! Markdown for the body of a pull request: the verdict first, findings in a table, the rest folded away.
//!
//! What needs somebody has the room: tasks that did not pass, then open findings, then the rest.

pub mod escape;
mod page;

use signoff_core::view::Status;

use self::escape::{cell, code, code_cell, fenced, line, ours, paragraphs};
pub use self::page::LIMIT;
use self::page::Page;
use super::{Account, Changes, Part, TaskAccount};
use crate::fit::{SENTENCE, count, span};
use crate::show::{Attempt, Cycle, LedgerLine, PersonsDecision, ReviewLine};

/// How much of one text of an agent is shown, in bytes.
const TEXT: usize = 4_000;

/// How many lines of `git diff --stat` are shown.
const STAT: usize = 60;

/// How many findings of a round that came to nothing are shown.
const UNLISTED: usize = 20;

/// The whole account, with one line break at its end.
pub fn markdown(account: &Account) -> String {
    let mut page = Page::before(costs(account));
    let mut all: Vec<&TaskAccount> = account.tasks.iter().collect();
    all.sort_by_key(|task| Need::of(task));
    page.put(&head(account));
    if account.about.kind == "run" {
        tasks(&mut page, &all);
        asked(&mut page, account);
    }
    findings(&mut page, account);
    let (passed, others): (Vec<_>, Vec<_>) =
        all.iter().copied().partition(|task: &&TaskAccount| task.standing.kind == "passed");
    let (through, stopped): (Vec<_>, Vec<_>) =
        account.parts.iter().partition(|part| matches!(part.outcome, Some("approved" | "accepted")));
    for (tasks, parts) in [(others, stopped), (passed, through)] {
        tasks.iter().for_each(|task| self::task(&mut page, account, task));
        parts.iter().for_each(|part| self::part(&mut page, part));
    }
    page.end(&account.about.command())
}

/// How much a task needs somebody, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Need {
    Broken,
    Asks,
    Unsigned,
    Unfinished,
    ToCome,
    None,
}

impl Need {
    fn of(task: &TaskAccount) -> Self {
        match (task.standing.kind, task.row().status) {
            ("broken", _) => Self::Broken,
            (_, Status::Waiting) => Self::Asks,
            ("open", _) => Self::Unsigned,
            ("passed", _) => Self::None,
            (_, Status::Pending) => Self::ToCome,
            (_, _) => Self::Unfinished,
        }
    }

    /// How far tasks of this kind may fill the page.
    fn room(self) -> usize {
        match self {
            Self::Broken | Self::Asks | Self::Unsigned | Self::Unfinished => LIMIT / 2,
            Self::ToCome | Self::None => LIMIT / 4,
        }
    }
}

/// `**Approved after 2 reviews** by code and spec. 1 fixed. $0.84, 12m 30s, 1 file changed.`
fn head(account: &Account) -> String {
    let (standing, totals) = (account.standing(), &account.totals);
    let mut reviewers: Vec<&str> = totals.reviewers.iter().map(|one| one.reviewer.as_str()).collect();
    reviewers.truncate(8);
    let by = if reviewers.is_empty() {
        String::new()
    } else {
        format!(", reviewed by {}", line(&reviewers.join(", "), 200))
    };
    let found = Some(totals.findings.words()).filter(|words| !words.is_empty());
    let found = found.map_or_else(|| "no findings".to_owned(), |words| format!("findings: {words}"));
    let time = totals.passed_ms.map(|passed| format!(", {}", span(passed))).unwrap_or_default();
    format!(
        "## {} {}\n\n**{}**{by}.\n\n{}, {found}. {}{time}. {}.\n\n",
        standing.mark,
        line(&account.title(), 200),
        ours(&standing.text, 400),
        count(totals.cycles, "review cycle"),
        totals.cost(),
        ours(&changed(account), 200),
    )
}

fn changed(account: &Account) -> String {
    let run = account.run.as_ref().filter(|_| account.about.kind == "run");
    match (run, account.tasks.as_slice()) {
        (Some(run), _) => match &run.changes {
            Some(changes) => changes.summary(),
            None => count(account.tasks.len() as u64, "task"),
        },
        (None, [task, ..]) => task.changes.summary(),
        (None, []) => String::new(),
    }
}

/// The tasks in a table, those that did not pass first.
fn tasks(page: &mut Page, all: &[&TaskAccount]) {
    let is_uncounted = |task: &&TaskAccount| task.changes.is_uncounted();
    let row = |task: &&TaskAccount| {
        let row = task.row();
        let changes = if is_uncounted(task) { String::new() } else { task.changes.summary() };
        let text = format!(
            "| {} | {} | {} {} | {} | ${:.2} | {} |\n",
            row.id,
            cell(&row.title, SENTENCE),
            task.standing.mark,
            ours(&task.standing.text, 400),
            row.review_cycle,
            row.cost_usd,
            ours(&changes, 100),
        );
        (Need::of(task).room(), text)
    };
    let head = "| Task | Title | Standing | Reviews | Cost | Changes |\n|--:|---|---|--:|--:|---|\n";
    page.list("tasks", (head, "\n"), all.iter().map(row));
    if all.iter().any(is_uncounted) {
        let note = Changes::uncounted().summary();
        page.put(&format!(
            "What tasks changed that were signed off is {note}: `signoff diff ID --stat`.\n\n"
        ));
    }
}

/// What the run as a whole is to bring about.
fn asked(page: &mut Page, account: &Account) {
    let text = account.run.as_ref().and_then(|run| run.asked.as_deref()).unwrap_or_default();
    let text = Some(paragraphs(text, TEXT, "")).filter(|text| !text.is_empty());
    page.folded("what was asked", "What was asked", text);
}

/// All findings in one table, open ones first.
fn findings(page: &mut Page, account: &Account) {
    let is_run = account.about.kind == "run";
    let of_tasks = account
        .tasks
        .iter()
        .flat_map(|task| task.report.ledger.iter().map(move |finding| (task.row().id.to_string(), finding)));
    let of_parts =
        account.parts.iter().flat_map(|part| part.ledger.iter().map(|finding| (part.name.clone(), finding)));
    let mut all: Vec<(String, &LedgerLine)> = of_tasks.chain(of_parts).collect();
    all.sort_by_key(|(_, finding)| (!finding.blocks, finding.state != "open"));
    let row = |(of, line): &(String, &LedgerLine)| {
        let of = if is_run { format!(" {} |", cell(of, 60)) } else { String::new() };
        let room = if line.state == "open" { LIMIT } else { LIMIT / 4 * 3 };
        (room, format!("|{of} {}\n", cells(line)))
    };
    let head = if is_run {
        "| Task | Finding | Severity | Where | By | State |\n|---|---|---|---|---|---|\n"
    } else {
        "| Finding | Severity | Where | By | State |\n|---|---|---|---|---|\n"
    };
    page.list("rows of the table of findings", (head, "\n"), all.iter().map(row));
}

fn cells(found: &LedgerLine) -> String {
    let finding = &found.finding;
    let state = if found.blocks { "**open**".to_owned() } else { found.state.replace('_', " ") };
    format!(
        "{} | {} | {} | {} | {state} |",
        cell(&finding.description, SENTENCE),
        finding.severity,
        place(found).map(|place| code_cell(&place)).unwrap_or_default(),
        cell(&finding.sources.join(", "), 60),
    )
}

fn place(found: &LedgerLine) -> Option<String> {
    let file = found.finding.file.as_ref()?;
    Some(found.finding.line.map_or_else(|| file.clone(), |line| format!("{file}:{line}")))
}

/// What is folded away about a task.
fn task(page: &mut Page, account: &Account, task: &TaskAccount) {
    let report = &task.report;
    let of = if account.about.kind == "run" { format!("Task {}: ", task.row().id) } else { String::new() };
    let asked = paragraphs(&task.asked, TEXT, "");
    page.folded(
        "what was asked",
        &format!("{of}What was asked"),
        Some(asked).filter(|text| !text.is_empty()),
    );
    page.folded(
        "findings in full",
        &format!("{of}Findings in full ({})", report.ledger.len()),
        report.ledger.iter().map(finding),
    );
    page.folded(
        "reviews",
        &format!("{of}Reviews ({})", report.cycles.len()),
        report.cycles.iter().map(cycle),
    );
    page.folded("decisions", &format!("{of}Decisions of people"), report.decisions.iter().map(decision));
    attempts(page, &of, &report.attempts);
    let stat = task.changes.stat.as_deref().filter(|stat| !stat.trim().is_empty()).map(shortened);
    // Of many tasks that is told once, below their table.
    let note = task
        .changes
        .note
        .as_deref()
        .filter(|_| !task.changes.is_uncounted())
        .map(|note| format!("{}\n\n", line(note, 400)));
    page.folded("changes", &format!("{of}Changes"), note.into_iter().chain(stat.map(|stat| fenced(&stat))));
}

fn part(page: &mut Page, part: &Part) {
    let outcome = part.outcome.unwrap_or("unfinished").replace('_', " ");
    let title = format!("{}: {outcome}", part.name);
    let why = part.reason.as_deref().map(|why| format!("{}\n\n", line(why, 200)));
    page.folded(
        "parts of the run",
        &title,
        why.into_iter().chain(part.cycles.iter().map(cycle)).chain(part.ledger.iter().map(finding)),
    );
    attempts(page, &format!("{}: ", part.name), &part.attempts);
}

fn finding(found: &LedgerLine) -> String {
    let finding = &found.finding;
    let place = place(found).map(|place| format!(" {}", code(&place))).unwrap_or_default();
    let mut out = format!(
        "- {} **{}**{place}, {}\n\n",
        code(&finding.id),
        finding.severity,
        found.state.replace('_', " ")
    );
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
        let word = claim.claim.replace('_', " ");
        out.push_str(&format!("\n  The fixer says {word}: {}\n", line(&claim.evidence, 400)));
    }
    for settled in &found.decisions {
        let (state, by) = (settled.state.replace('_', " "), line(&settled.by, 60));
        out.push_str(&format!("\n  Then {state} by {by}: {}\n", line(&settled.evidence, 400)));
    }
    out.push('\n');
    out
}

fn cycle(cycle: &Cycle) -> String {
    let scope = if cycle.scope == "scoped" { ", the fix only" } else { "" };
    let round = &cycle.convergence;
    let mut out = format!(
        "**{} {}**{scope}, pass {}, commit {}: {} ({} new, {} carried, {} back again, {} fixed)\n\n",
        line(&cycle.phase, 60),
        cycle.n,
        cycle.pass,
        code(cycle.commit.get(..12).unwrap_or(&cycle.commit)),
        cycle.verdict.replace('_', " "),
        round.new,
        round.carried,
        round.regressed,
        round.fixed,
    );
    cycle.reviews.iter().for_each(|one| out.push_str(&review(one)));
    // What was reported beside an answer that nobody could read is in no list of findings yet.
    let unlisted = cycle.merged.issues.iter().filter(|_| cycle.verdict == "INCONCLUSIVE");
    for issue in unlisted.take(UNLISTED) {
        let (severity, text) = (issue.finding.severity.word(), &issue.finding.description);
        out.push_str(&format!("  - {severity}: {}\n", line(text, SENTENCE)));
    }
    out.push('\n');
    out
}

fn review(review: &ReviewLine) -> String {
    let why = review.reason.as_deref().unwrap_or(&review.summary);
    let cost = format!("${:.2}", review.cost_usd);
    // Two dollar signs in one line are a formula.
    let cost = if why.contains('$') { code(&cost) } else { cost };
    let why = if why.trim().is_empty() { String::new() } else { format!(": {}", line(why, 400)) };
    format!(
        "- {} {}, {}, {cost}{why}\n",
        line(&review.reviewer, 60),
        review.verdict.replace('_', " "),
        span(review.duration_ms),
    )
}

fn decision(decision: &PersonsDecision) -> String {
    let choice = decision.choice.as_deref().map(|choice| format!(" {choice}")).unwrap_or_default();
    let reason = decision.reason.as_deref().map(|reason| format!(": {reason}")).unwrap_or_default();
    let text = format!("{} {}: {}{choice}{reason}", decision.at, decision.by, decision.what);
    format!("- {}\n", line(&text, 400))
}

fn attempts(page: &mut Page, of: &str, attempts: &[Attempt]) {
    let row = |one: &Attempt| {
        let who =
            one.reviewer.as_ref().map_or_else(|| one.role.clone(), |name| format!("{} by {name}", one.role));
        format!(
            "| {} | {} | {} | {} | ${:.2} | {} |\n",
            one.id,
            cell(&who, 60),
            cell(&format!("{} {}", one.agent, one.model.as_deref().unwrap_or_default()), 60),
            span(one.duration_ms),
            one.cost_usd,
            cell(&one.ending(), SENTENCE),
        )
    };
    let head = "| | Who | Agent | Time | Cost | End |\n|---|---|---|--:|--:|---|\n";
    let title = format!("{of}Attempts ({})", attempts.len());
    page.folded_table("attempts", &title, head, attempts.iter().map(row));
}

/// What it cost, as the end of a page.
fn costs(account: &Account) -> Page {
    let mut page = Page::default();
    let row = |role: &crate::stats::ByRole| {
        let (time, cost) = (span(role.duration_ms), role.cost_usd);
        let tokens = format!("{} | {}", role.input_tokens, role.output_tokens);
        format!("| {} | {} | {time} | ${cost:.2} | {tokens} |\n", cell(&role.role, 60), role.attempts)
    };
    let head = "| Role | Attempts | Time | Cost | Tokens in | out |\n|---|--:|--:|--:|--:|--:|\n";
    let title =
        format!("Cost and time: {}, {} of work", account.totals.cost(), span(account.totals.worked_ms));
    page.folded_table("costs", &title, head, account.totals.roles.iter().map(row));
    page
}

/// The first lines and the last one, which counts.
fn shortened(stat: &str) -> String {
    let lines: Vec<&str> = stat.trim_end().lines().collect();
    match lines.split_last() {
        Some((last, files)) if files.len() > STAT => {
            let more = files.len() - STAT;
            format!(
                "{}\n… {more} more files\n{last}",
                files.iter().take(STAT).copied().collect::<Vec<_>>().join("\n")
            )
        }
        Some(_) | None => lines.join("\n"),
    }
}
