//! A reviewer without a model: what the project's own commands say, as a review.
//!
//! A command passes by exiting 0 and in no other way. What a failing one printed is read for findings, line by
//! line and once: each family of tools has a small reader that remembers what it needs of the lines before. What
//! none of them understands still fails, with the end of the output as the finding.

use std::cmp::Reverse;
use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::ids::ReviewerName;
use crate::review::{Confidence, Finding, Inconclusive, Note, Review, ReviewerKind, Severity, Verdict};
use crate::similarity::assign_ids;

mod base;
mod eslint;
mod go;
mod javascript;
mod libtest;
mod output;
mod place;
mod plain;
mod pytest;
mod remark;
mod rust;
mod sarif;
mod shell;
mod tap;
mod traceback;
mod typescript;

pub use base::{AgainstBase, against_base, review_against_base};
pub use plain::relative;
use remark::{Level, Remark};

/// The most findings, and the most notes, that one command gives; what is beyond them is counted.
pub const MOST: usize = 50;
/// What a finding of this reviewer is called: it has no opinion, only the command's.
const KIND: &str = "check";
/// How much of an output that names nothing is shown.
const TAIL_LINES: usize = 40;
const TAIL_CHARACTERS: usize = 4_000;

/// One command of the project and how it went.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Ran {
    pub name: String,
    pub command: String,
    /// None: ended by a signal or a limit.
    pub code: Option<i32>,
    /// Stdout and stderr as they came.
    pub output: String,
}

impl Ran {
    pub fn passed(&self) -> bool {
        self.code == Some(0)
    }

    /// `` `lint` (`make lint`) exited with 2 ``
    fn told(&self) -> String {
        let ended = match self.code {
            Some(code) => format!("exited with {code}"),
            None => "was ended by a signal or a limit".to_owned(),
        };
        format!("`{}` (`{}`) {ended}", self.name, self.command)
    }
}

/// What the commands say together: approved if all of them exited 0, and inconclusive if there were none.
pub fn review(reviewer: &ReviewerName, kind: ReviewerKind, ran: &[Ran]) -> Review {
    if ran.is_empty() {
        let why = Inconclusive::Missing("no check was run".to_owned());
        return Review::inconclusive(reviewer.clone(), kind, why);
    }
    let passed = ran.iter().all(Ran::passed);
    let verdict = if passed { Verdict::Approved } else { Verdict::ChangesRequested };
    let (findings, minor) = read(reviewer, ran);
    Review {
        confidence: Confidence::High,
        findings,
        minor,
        checked: ran.iter().map(Ran::told).collect(),
        summary: summary(ran),
        ..Review::of(reviewer.clone(), kind, verdict)
    }
}

/// The findings of the commands that failed. What two of them say alike is told once.
pub fn findings(source: &ReviewerName, ran: &[Ran]) -> Vec<Finding> {
    read(source, ran).0
}

fn summary(ran: &[Ran]) -> String {
    let failed: Vec<_> = ran.iter().filter(|ran| !ran.passed()).map(Ran::told).collect();
    let passed = ran.len() - failed.len();
    let checks = if ran.len() == 1 { "check" } else { "checks" };
    match failed.as_slice() {
        [] => format!("{passed} {checks} passed."),
        failed => format!("{passed} of {} {checks} passed; {}.", ran.len(), failed.join("; ")),
    }
}

/// Two commands that compile the same file say the same about it: it is told once.
fn read(source: &ReviewerName, ran: &[Ran]) -> (Vec<Finding>, Vec<Note>) {
    let (mut findings, mut notes, mut tails) = (Vec::new(), Vec::new(), Vec::new());
    let mut told = BTreeSet::new();
    for ran in ran {
        let plain = plain::plain(&ran.output);
        let mut sorted = Sorted::of(ran, output::remarks(&plain));
        if !ran.passed() && !sorted.explains(ran) {
            tails.push((findings.len(), tail(&plain)));
            findings.push(finding(
                source,
                ran,
                Severity::Critical,
                &Remark::of(Level::Error, None, &ran.told()),
            ));
        }
        sorted.keep(|remark| told.insert((remark.place.clone(), remark.message.clone())));
        findings.extend(sorted.findings(source, ran));
        notes.extend(sorted.notes(ran));
    }
    assign_ids(&mut findings);
    // Outputs tell times and temporary paths: a failure is the same one without them.
    for (index, tail) in tails {
        findings[index].description += &tail;
    }
    (findings, notes)
}

/// A command's remarks: what blocks, and what does not.
struct Sorted {
    blocking: Vec<(Severity, Remark)>,
    harmless: Vec<Remark>,
}

impl Sorted {
    fn of(ran: &Ran, remarks: Vec<Remark>) -> Self {
        let mut sorted = Self { blocking: Vec::new(), harmless: Vec::new() };
        for remark in remarks {
            match (ran.passed(), remark.level) {
                (false, Level::Error | Level::Unstated) => sorted.blocking.push((Severity::Critical, remark)),
                (false, Level::Warning) => sorted.blocking.push((Severity::Important, remark)),
                (false, Level::Note) | (true, Level::Error | Level::Warning) => sorted.harmless.push(remark),
                // A command that passed may print places for any reason.
                (true, Level::Unstated | Level::Note) => {}
            }
        }
        // The worst first: the bound must not hide an error behind warnings.
        sorted.blocking.sort_by_key(|(severity, _)| Reverse(*severity));
        sorted
    }

    /// Warnings alone do not say why a command failed, and nothing printed says why it was ended.
    fn explains(&self, ran: &Ran) -> bool {
        ran.code.is_some()
            && self.blocking.first().is_some_and(|(severity, _)| *severity == Severity::Critical)
    }

    fn keep(&mut self, mut is_kept: impl FnMut(&Remark) -> bool) {
        self.blocking.retain(|(_, remark)| is_kept(remark));
        self.harmless.retain(is_kept);
    }

    fn findings(&self, source: &ReviewerName, ran: &Ran) -> Vec<Finding> {
        let shown = self.blocking.iter().take(MOST);
        let mut findings: Vec<_> =
            shown.map(|(severity, remark)| finding(source, ran, *severity, remark)).collect();
        if let Some((severity, _)) = self.blocking.get(MOST) {
            let more = format!("`{}` reports {} more like these.", ran.name, self.blocking.len() - MOST);
            findings.push(finding(source, ran, *severity, &Remark::of(Level::Error, None, &more)));
        }
        findings
    }

    fn notes(&self, ran: &Ran) -> Vec<Note> {
        let mut notes: Vec<_> = self.harmless.iter().take(MOST).map(note).collect();
        if self.harmless.len() > MOST {
            let description = format!("`{}` has {} more notes.", ran.name, self.harmless.len() - MOST);
            notes.push(Note { file: None, line: None, description });
        }
        notes
    }
}

fn finding(source: &ReviewerName, ran: &Ran, severity: Severity, remark: &Remark) -> Finding {
    let (file, line) = remark.at();
    Finding {
        file,
        line,
        requirement: Some(format!("`{}` exits with 0", ran.command)),
        suggestion: remark.suggestion.clone(),
        ..Finding::of(source, KIND, severity, remark.message.clone())
    }
}

fn note(remark: &Remark) -> Note {
    let (file, line) = remark.at();
    Note { file, line, description: remark.message.clone() }
}

/// The end of an output that does not say where it went wrong.
fn tail(output: &str) -> String {
    let said = output.trim_end();
    if said.trim_start().is_empty() {
        return " and printed nothing.".to_owned();
    }
    let lines = said.rmatch_indices('\n').nth(TAIL_LINES - 1).map_or(0, |(at, _)| at + 1);
    let characters = said.char_indices().rev().nth(TAIL_CHARACTERS - 1).map_or(0, |(at, _)| at);
    format!(". The end of its output:\n{}", said[lines.max(characters)..].trim_matches('\n'))
}
