//! The text of `signoff stats`.

use super::{ByPhase, ByReviewer, ByRole, StatsReport};
use crate::fit::{count, cut, dollars, span, table};

/// Maximum number of rows per table; the JSON has all.
const SHOWN: usize = 20;

/// One table per topic, without empty ones.
pub fn text(report: &StatsReport) -> String {
    if report.runs == 0 {
        return no_runs(report);
    }
    let mut parts = vec![head(report)];
    parts.extend(cycles(report));
    parts.extend(stops(report));
    parts.extend(reviewers(&report.reviewers));
    parts.extend(phases(&report.phases));
    parts.extend(roles(&report.roles));
    parts.extend(failures(report));
    parts.join("\n")
}

fn no_runs(report: &StatsReport) -> String {
    let preset = report.preset.as_ref().map(|preset| format!(" of {}", cut(preset, 40))).unwrap_or_default();
    let since = report.since.as_ref().map(|since| format!(" since {since}")).unwrap_or_default();
    format!("No runs{preset}{since}.\n  signoff work    works the tasks\n")
}

fn head(report: &StatsReport) -> String {
    let (tasks, cost) = (&report.tasks, &report.cost);
    let ended = [
        (tasks.approved, "approved"),
        (tasks.accepted, "accepted by a person"),
        (tasks.not_approved, "not approved"),
        (tasks.unfinished, "unfinished"),
    ];
    let ended: Vec<_> = ended.iter().filter(|(n, _)| *n > 0).map(|(n, word)| format!("{n} {word}")).collect();
    let preset = report.preset.as_ref().map(|preset| format!(" of {}", cut(preset, 40))).unwrap_or_default();
    let since = report.since.as_ref().map(|since| format!(" since {since}")).unwrap_or_default();
    let money = |usd: f64| dollars(usd, cost.is_estimated);
    let each = cost.per_approved_usd.zip(cost.all_in_per_approved_usd).map(|(own, all)| {
        format!("  an approved task cost {}, {} with all else that was spent\n", money(own), money(all))
    });
    format!(
        "{} in {}{preset}{since}: {}\n  {} in all, {} tokens in, {} out\n{}",
        count(tasks.all, "task"),
        count(report.runs, "run"),
        if ended.is_empty() { "none".to_owned() } else { ended.join(", ") },
        money(cost.total_usd),
        cost.input_tokens,
        cost.output_tokens,
        each.unwrap_or_default(),
    )
}

fn cycles(report: &StatsReport) -> Option<String> {
    let cycles = &report.cycles_to_approval;
    let title = format!("Reviews until approval (median {}, mean {}):", cycles.median?, cycles.mean?);
    let row = |one: &super::CycleCount| vec![count(one.cycles, "review"), count(one.tasks, "task")];
    section(&title, &[], cycles.distribution.iter().map(row).collect())
}

fn stops(report: &StatsReport) -> Option<String> {
    let row = |stop: &super::StopReason| {
        vec![stop.outcome.clone(), stop.reason.clone().unwrap_or_default(), count(stop.tasks, "task")]
    };
    section("Why tasks ended:", &[], report.stop_reasons.iter().map(row).collect())
}

fn reviewers(reviewers: &[ByReviewer]) -> Option<String> {
    let row = |one: &ByReviewer| {
        vec![
            cut(&one.reviewer, 40),
            one.raised.to_string(),
            one.upheld.to_string(),
            one.refuted.to_string(),
            one.out_of_scope.to_string(),
            one.open.to_string(),
            one.precision.map_or_else(|| "-".to_owned(), |share| format!("{:.0}%", share * 100.0)),
            dollars(one.cost_usd, one.cost_is_estimated),
            span(one.duration_ms),
        ]
    };
    let head = ["reviewer", "raised", "upheld", "refuted", "out of scope", "open", "precision", "cost", "time"];
    section("Reviewers:", &head, reviewers.iter().map(row).collect())
}

fn phases(phases: &[ByPhase]) -> Option<String> {
    let row = |one: &ByPhase| {
        let (phase, visits) = (cut(&one.phase, 40), one.visits.to_string());
        vec![phase, visits, span(one.median_ms), span(one.p90_ms), span(one.max_ms)]
    };
    section("Slowest phases:", &["phase", "visits", "median", "p90", "longest"], phases.iter().map(row).collect())
}

fn roles(roles: &[ByRole]) -> Option<String> {
    let row = |one: &ByRole| {
        let cost = dollars(one.cost_usd, one.cost_is_estimated);
        let tokens = [one.input_tokens, one.output_tokens].map(|tokens| tokens.to_string());
        let [input, output] = tokens;
        vec![cut(&one.role, 40), one.attempts.to_string(), span(one.duration_ms), cost, input, output]
    };
    let head = ["role", "attempts", "time", "cost", "tokens in", "out"];
    section("Roles:", &head, roles.iter().map(row).collect())
}

fn failures(report: &StatsReport) -> Option<String> {
    let row =
        |one: &super::AgentFailures| vec![cut(&one.agent, 40), one.outcome.replace('_', " "), count(one.times, "time")];
    section("Attempts that came to nothing:", &[], report.failures.iter().map(row).collect())
}

/// A titled table. With a heading, all columns but the first are right-aligned.
fn section(title: &str, head: &[&str], mut rows: Vec<Vec<String>>) -> Option<String> {
    let more = rows.len().saturating_sub(SHOWN);
    rows.truncate(SHOWN);
    if rows.is_empty() {
        return None;
    }
    if !head.is_empty() {
        rows.insert(0, head.iter().map(|word| (*word).to_owned()).collect());
    }
    let lines = table(&rows, |column| !head.is_empty() && column > 0);
    let mut out = format!("{title}\n");
    out.extend(lines.iter().map(|line| format!("  {line}\n")));
    if more > 0 {
        out.push_str(&format!("  and {more} more: `signoff stats --json` has all\n"));
    }
    Some(out)
}
