//! Turns the output of the project's check commands into a review, without a model.
//!
//! A command passes only by exiting with 0. The output of a failing command is read for findings, line by line in
//! one pass: each family of tools has a small parser that keeps the state it needs. If no parser understands the
//! output, the finding is the end of the output.

mod diagnostic;
mod go;
mod javascript;
mod output;
mod python;
mod rust;

use std::cmp::Reverse;
use std::collections::BTreeSet;

use diagnostic::{Diagnostic, DiagnosticLevel};
use serde::{Deserialize, Serialize};

pub use output::relative_paths;

use crate::ids::ReviewerName;
use crate::review::{Confidence, Finding, Inconclusive, Note, Review, ReviewerKind, Severity, Verdict};
use crate::similarity::assign_ids;

/// Maximum findings, and maximum notes, per command. Further ones are only counted.
pub const MAX_PER_COMMAND: usize = 50;
/// The kind of every finding of this reviewer.
const KIND: &str = "check";
/// Maximum length of the output shown if it names no location.
const TAIL_LINES: usize = 40;
const TAIL_CHARACTERS: usize = 4_000;

/// A check command and its result.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct CheckRun {
    pub name: String,
    pub command: String,
    /// `None` if a signal or a limit ended the command.
    pub code: Option<i32>,
    /// Combined stdout and stderr.
    pub output: String,
}

impl CheckRun {
    pub fn passed(&self) -> bool {
        self.code == Some(0)
    }

    /// Describes the result: `` `lint` (`make lint`) exited with 2 ``
    fn describe(&self) -> String {
        let ended = match self.code {
            Some(code) => format!("exited with {code}"),
            None => "was ended by a signal or a limit".to_owned(),
        };
        format!("`{}` (`{}`) {ended}", self.name, self.command)
    }
}

/// Reviews the results: approved if all commands exited with 0, inconclusive if there are none.
pub fn review(reviewer: &ReviewerName, kind: ReviewerKind, runs: &[CheckRun]) -> Review {
    if runs.is_empty() {
        let why = Inconclusive::Missing("no check was run".to_owned());
        return Review::inconclusive(reviewer.clone(), kind, why);
    }
    let passed = runs.iter().all(CheckRun::passed);
    let verdict = if passed { Verdict::Approved } else { Verdict::ChangesRequested };
    let (findings, minor) = read(reviewer, runs);
    Review {
        confidence: Confidence::High,
        findings,
        minor,
        checked: runs.iter().map(CheckRun::describe).collect(),
        summary: summary(runs),
        ..Review::new(reviewer.clone(), kind, verdict)
    }
}

/// The findings of the failed commands, without duplicates.
pub fn findings(source: &ReviewerName, runs: &[CheckRun]) -> Vec<Finding> {
    read(source, runs).0
}

fn summary(runs: &[CheckRun]) -> String {
    let failed: Vec<_> = runs.iter().filter(|run| !run.passed()).map(CheckRun::describe).collect();
    let passed = runs.len() - failed.len();
    let checks = if runs.len() == 1 { "check" } else { "checks" };
    match failed.as_slice() {
        [] => format!("{passed} {checks} passed."),
        failed => format!("{passed} of {} {checks} passed; {}.", runs.len(), failed.join("; ")),
    }
}

/// Reads the outputs of all commands. Two commands that compile the same file report the same errors, so duplicates
/// are dropped.
fn read(source: &ReviewerName, runs: &[CheckRun]) -> (Vec<Finding>, Vec<Note>) {
    let (mut findings, mut notes, mut tails) = (Vec::new(), Vec::new(), Vec::new());
    let mut reported = BTreeSet::new();
    for run in runs {
        let plain = output::plain(&run.output);
        let mut sorted = SortedDiagnostics::new(run, output::diagnostics(&plain));
        if !run.passed() && !sorted.explains(run) {
            tails.push((findings.len(), tail(&plain)));
            findings.push(finding(source, run, Severity::Critical, &Diagnostic::without_location(&run.describe())));
        }
        let mut is_new =
            |diagnostic: &Diagnostic| reported.insert((diagnostic.location.clone(), diagnostic.message.clone()));
        sorted.blocking.retain(|(_, diagnostic)| is_new(diagnostic));
        sorted.harmless.retain(is_new);
        findings.extend(sorted.findings(source, run));
        notes.extend(sorted.notes(run));
    }
    assign_ids(&mut findings);
    // The output contains times and temporary paths. It is added after the ids are assigned, so that they stay
    // stable.
    for (index, tail) in tails {
        findings[index].description += &tail;
    }
    (findings, notes)
}

/// The diagnostics of a command, split into blocking and harmless ones.
struct SortedDiagnostics {
    blocking: Vec<(Severity, Diagnostic)>,
    harmless: Vec<Diagnostic>,
}

impl SortedDiagnostics {
    fn new(run: &CheckRun, diagnostics: Vec<Diagnostic>) -> Self {
        let mut sorted = Self { blocking: Vec::new(), harmless: Vec::new() };
        for diagnostic in diagnostics {
            let severity = match (run.passed(), diagnostic.level) {
                (false, DiagnosticLevel::Error | DiagnosticLevel::Unstated) => Some(Severity::Critical),
                (false, DiagnosticLevel::Warning) => Some(Severity::Important),
                (false, DiagnosticLevel::Note) | (true, DiagnosticLevel::Error | DiagnosticLevel::Warning) => None,
                // A command that passed may print locations for any reason.
                (true, DiagnosticLevel::Unstated | DiagnosticLevel::Note) => continue,
            };
            match severity {
                Some(severity) => sorted.blocking.push((severity, diagnostic)),
                None => sorted.harmless.push(diagnostic),
            }
        }
        // Worst first, so that the limit does not drop errors in favour of warnings.
        sorted.blocking.sort_by_key(|(severity, _)| Reverse(*severity));
        sorted
    }

    /// Whether the diagnostics explain the failure. Warnings alone do not, and no output explains a killed command.
    fn explains(&self, run: &CheckRun) -> bool {
        run.code.is_some() && self.blocking.first().is_some_and(|(severity, _)| *severity == Severity::Critical)
    }

    fn findings(&self, source: &ReviewerName, run: &CheckRun) -> Vec<Finding> {
        let shown = self.blocking.iter().take(MAX_PER_COMMAND);
        let mut findings: Vec<_> =
            shown.map(|(severity, diagnostic)| finding(source, run, *severity, diagnostic)).collect();
        if let Some((severity, _)) = self.blocking.get(MAX_PER_COMMAND) {
            let more = format!("`{}` reports {} more like these.", run.name, self.blocking.len() - MAX_PER_COMMAND);
            findings.push(finding(source, run, *severity, &Diagnostic::without_location(&more)));
        }
        findings
    }

    fn notes(&self, run: &CheckRun) -> Vec<Note> {
        let mut notes: Vec<_> = self.harmless.iter().take(MAX_PER_COMMAND).map(note).collect();
        if self.harmless.len() > MAX_PER_COMMAND {
            let description = format!("`{}` has {} more notes.", run.name, self.harmless.len() - MAX_PER_COMMAND);
            notes.push(Note { file: None, line: None, description });
        }
        notes
    }
}

fn finding(source: &ReviewerName, run: &CheckRun, severity: Severity, diagnostic: &Diagnostic) -> Finding {
    let (file, line) = diagnostic.file_and_line();
    Finding {
        file,
        line,
        requirement: Some(format!("`{}` exits with 0", run.command)),
        suggestion: diagnostic.suggestion.clone(),
        ..Finding::new(source, KIND, severity, diagnostic.message.clone())
    }
}

fn note(diagnostic: &Diagnostic) -> Note {
    let (file, line) = diagnostic.file_and_line();
    Note { file, line, description: diagnostic.message.clone() }
}

/// The end of an output that names no location.
fn tail(output: &str) -> String {
    let text = output.trim_end();
    if text.trim_start().is_empty() {
        return " and printed nothing.".to_owned();
    }
    let lines = text.rmatch_indices('\n').nth(TAIL_LINES - 1).map_or(0, |(at, _)| at + 1);
    let characters = text.char_indices().rev().nth(TAIL_CHARACTERS - 1).map_or(0, |(at, _)| at);
    format!(". The end of its output:\n{}", text[lines.max(characters)..].trim_matches('\n'))
}

/// The findings of checks on a commit, compared with those of the same checks on its base.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BaseComparison {
    /// Findings that the base does not have.
    pub new: Vec<Finding>,
    /// Findings that the base has too.
    pub on_base: Vec<Finding>,
}

impl BaseComparison {
    /// `2 failures of the checks are on the base (0123456789ab) too, and do not count: …`; none if there is none.
    pub fn note(&self, base: &str) -> Option<String> {
        let first = self.on_base.first()?.description.lines().next().unwrap_or_default();
        let base = base.get(..12).unwrap_or(base);
        Some(match self.on_base.len() {
            1 => format!("1 failure of the checks is on the base ({base}) too, and does not count: {first}"),
            count => {
                format!("{count} failures of the checks are on the base ({base}) too, and do not count: {first}, …")
            }
        })
    }
}

/// Splits the findings of a commit. Without a result for the base, all of them are new.
pub fn compare_with_base(source: &ReviewerName, runs: &[CheckRun], base: &[CheckRun]) -> BaseComparison {
    compare_findings(findings(source, runs), &findings(source, base))
}

/// Pairs each finding of the base with at most one of the commit. Of two equal findings, one is new if the base has
/// one.
fn compare_findings(found: Vec<Finding>, base: &[Finding]) -> BaseComparison {
    let mut left: Vec<&Finding> = base.iter().collect();
    let mut take = |is_it: &dyn Fn(&Finding) -> bool| {
        let found = left.iter().position(|other| is_it(other));
        found.map(|index| left.swap_remove(index)).is_some()
    };
    let (mut on_base, others): (Vec<_>, Vec<_>) =
        found.into_iter().partition(|finding| take(&|other| is_same(finding, other)));
    let (moved, new) = others.into_iter().partition(|finding| take(&|other| differs_only_in_line(finding, other)));
    on_base.extend::<Vec<_>>(moved);
    BaseComparison { new, on_base }
}

/// Whether two findings of the same command are the same failure. Findings without a location are compared by their
/// whole output, because their fingerprint only covers the exit code.
fn is_same(finding: &Finding, other: &Finding) -> bool {
    let same = finding.id == other.id && finding.requirement == other.requirement;
    same && (finding.file.is_some() || stable(&finding.description) == stable(&other.description))
}

/// Whether two findings differ only in their lines.
fn differs_only_in_line(finding: &Finding, other: &Finding) -> bool {
    let same_file = finding.file.is_some() && finding.file == other.file;
    same_file && finding.requirement == other.requirement && finding.description == other.description
}

/// The text without numbers and temporary paths, which differ between runs.
fn stable(text: &str) -> String {
    let words = text.split_whitespace().filter(|word| !word.contains("/tmp/"));
    let words = words.map(|word| word.replace(|char: char| char.is_ascii_digit(), ""));
    words.collect::<Vec<_>>().join(" ")
}

/// Reviews the checks of a commit against those of its base. Failures that the base has too become notes and do not
/// block.
pub fn review_against_base(
    reviewer: &ReviewerName,
    kind: ReviewerKind,
    runs: &[CheckRun],
    base: &[CheckRun],
) -> (Review, BaseComparison) {
    let review = review(reviewer, kind, runs);
    let sorted = compare_findings(review.findings.clone(), &findings(reviewer, base));
    if sorted.on_base.is_empty() {
        return (review, sorted);
    }
    let verdict = if sorted.new.is_empty() { Verdict::ApprovedWithMinor } else { review.verdict };
    let note = |finding: &Finding| {
        let description = format!("fails on the base too: {}", finding.description);
        Note { file: finding.file.clone(), line: finding.line, description }
    };
    let minor = sorted.on_base.iter().map(note).chain(review.minor).collect();
    let findings = sorted.new.clone();
    (Review { verdict, findings, minor, ..review }, sorted)
}
