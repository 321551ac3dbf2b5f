//! From the words of a workflow to the workflow itself, or to what is wrong with it.

use std::collections::BTreeSet;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::problem::{Place, WorkflowError};
use super::words::{Count, GateWords, KindWord, PhaseWords, WorkflowWords};
use super::{Phase, PhaseKind, Restarting, Role, Workflow};
use crate::policy::{Bound, ExhaustedAs, Gate, Ladder, Limits, OnExhausted, OnFailure, Rereview, Rung};
use crate::prompt::Depth;
use crate::review::Bar;

type Checked<T> = Result<T, WorkflowError>;

/// What a gate says that is silent about everything.
pub fn default_gate() -> Gate {
    Gate {
        enabled: true,
        reviewers: Vec::new(),
        fail_on: Bar::Medium,
        on_failure: OnFailure::MiniLoop,
        bound: Bound::MaxCycles(3),
        on_exhausted: OnExhausted::Stop,
        exhausted_as: ExhaustedAs::Failed,
        on_unclear: Ladder::of(&[Rung::Retry, Rung::Ask]),
        on_reviewer_failure: Ladder::of(&[Rung::Retry, Rung::Ask]),
        on_fixer_failure: Ladder::of(&[Rung::Retry, Rung::Ask]),
        on_implementer_failure: Ladder::of(&[Rung::Fail]),
        on_discussion: Ladder::of(&[Rung::Ask]),
        author_output: false,
        parallel_fixes: false,
        require_nonce: false,
        review_timeout: None,
        fix_timeout: None,
        rereview: Rereview::Full,
        depth: Depth::Standard,
        max_same_finding: Some(3),
        max_noop_fixes: Some(1),
    }
}

/// Builds and checks a workflow.
pub fn workflow(place: &Place<'_>, name: &str, words: WorkflowWords) -> Checked<Workflow> {
    if words.phases.is_empty() {
        return Err(
            place.at(0, format!("workflow `{name}` has no phases: write at least one [[phases]] table"))
        );
    }
    let limits = limits(place, &words)?;
    let phases = |tables: &[Spanned<toml::Table>]| list(place, &words, tables);
    let built = Workflow {
        name: name.to_owned(),
        before: phases(&words.before)?,
        phases: phases(&words.phases)?,
        after: phases(&words.after)?,
        description: words.description.unwrap_or_default(),
        completion: words.completion,
        landing: words.landing,
        arrangement: words.arrangement,
        checkpoint_interval: words.checkpoint_interval.filter(|interval| *interval > 0),
        limits,
        attempts_exhausted_as: words.attempts_exhausted_as.unwrap_or(ExhaustedAs::Failed),
        modes: words.modes,
        reviewers: words.reviewers,
    };
    Ok(built)
}

fn limits(place: &Place<'_>, words: &WorkflowWords) -> Checked<Limits> {
    let known = Limits::default();
    let whole = 0..place.text.len();
    let max_attempts = match words.max_attempts {
        None => known.max_attempts,
        Some(Count::Of(number)) if number > 0 => number,
        Some(Count::Of(_) | Count::Unlimited) => {
            let message = "unbounded loop: `max_attempts` must be a whole number of at least 1; it is what \
                           ends a gate whose own bound is \"unlimited\"";
            return Err(place.at_key(&whole, "max_attempts", message));
        }
    };
    if words.max_passes == Some(0) {
        return Err(place.at_key(&whole, "max_passes", "`max_passes` must be at least 1"));
    }
    Ok(Limits {
        max_attempts,
        max_passes: words.max_passes.unwrap_or(known.max_passes),
        max_recoveries: words.max_recoveries.unwrap_or(known.max_recoveries),
        max_conflicts: words.max_conflicts.unwrap_or(known.max_conflicts),
    })
}

fn list(place: &Place<'_>, workflow: &WorkflowWords, tables: &[Spanned<toml::Table>]) -> Checked<Vec<Phase>> {
    let mut names = Vec::new();
    let mut phases = Vec::new();
    for table in tables {
        let context = Context { place, workflow, span: table.span(), earlier: &names };
        let words = context.read(table.get_ref())?;
        let phase = context.phase(words)?;
        names.push(phase.name.clone());
        phases.push(phase);
    }
    Ok(phases)
}

/// One phase being read.
struct Context<'a> {
    place: &'a Place<'a>,
    workflow: &'a WorkflowWords,
    span: Range<usize>,
    earlier: &'a [String],
}

const OF_PHASES: &str = "name, kind, per_item, once, mode";
const OF_AGENTS: [&str; 3] = ["role", "timeout", "researchers"];
const OF_GATES: &str = "reviewers, fail_on, on_failure, max_cycles, max_fixes, on_exhausted, exhausted_as, \
                        on_unclear, on_reviewer_failure, on_fixer_failure, on_implementer_failure, \
                        on_discussion, author_output, parallel_fixes, require_nonce, review_timeout, \
                        fix_timeout, rereview, depth, max_same_finding, max_noop_fixes, enabled, \
                        restart_to, fixer";

impl Context<'_> {
    fn error(&self, key: &str, message: impl Into<String>) -> WorkflowError {
        self.place.at_key(&self.span, key, message)
    }

    /// Reads a table key by key, so that a bad value is reported at its own line.
    fn read(&self, table: &toml::Table) -> Checked<PhaseWords> {
        PhaseWords::deserialize(table.clone()).map_err(|error| {
            let message = error.message().trim().to_owned();
            let key = table.keys().find(|key| self.is_to_blame(table, key));
            self.error(key.map_or("name", |key| key.as_str()), message)
        })
    }

    /// Whether the table reads well without this key's value.
    fn is_to_blame(&self, table: &toml::Table, key: &str) -> bool {
        let mut without = table.clone();
        without.remove(key);
        without.entry("name").or_insert_with(|| "x".into());
        without.entry("kind").or_insert_with(|| "agent".into());
        PhaseWords::deserialize(without).is_ok()
    }

    fn phase(&self, words: PhaseWords) -> Checked<Phase> {
        if self.earlier.contains(&words.name) {
            return Err(self.error("name", format!("two phases are called `{}`", words.name)));
        }
        self.check_mode(&words)?;
        Ok(Phase {
            kind: self.kind(&words)?,
            name: words.name,
            per_item: words.per_item.unwrap_or(false),
            once: words.once.unwrap_or(false),
            mode: words.mode,
        })
    }

    fn check_mode(&self, words: &PhaseWords) -> Checked<()> {
        match &words.mode {
            Some(mode) if !self.workflow.modes.contains(mode) => Err(self.error(
                "mode",
                format!("unknown mode `{mode}`: `modes` of the workflow lists {:?}", self.workflow.modes),
            )),
            Some(_) | None => Ok(()),
        }
    }

    fn kind(&self, words: &PhaseWords) -> Checked<PhaseKind> {
        match words.kind {
            KindWord::Agent => self.agent(words),
            KindWord::Gate => self.judge(words).and_then(|policy| self.gate(policy)),
            KindWord::Check => self.judge(words).and_then(|policy| self.check(policy)),
        }
    }

    fn agent(&self, words: &PhaseWords) -> Checked<PhaseKind> {
        let strange = words.gate.keys().next().map(String::as_str);
        let of_gate = words.restart_to.as_ref().map(|_| "restart_to").or(words.fixer.map(|_| "fixer"));
        if let Some(key) = strange.or(of_gate) {
            let agents = OF_AGENTS.join(", ");
            let message =
                format!("unknown key `{key}` of an agent phase, expected one of {OF_PHASES}, {agents}");
            return Err(self.error(key, message));
        }
        Ok(PhaseKind::Agent {
            role: words.role.unwrap_or_default(),
            timeout: words.timeout,
            researchers: words.researchers.unwrap_or(0),
        })
    }

    fn judge(&self, words: &PhaseWords) -> Checked<Restarting> {
        let written = [
            words.role.map(|_| "role"),
            words.timeout.map(|_| "timeout"),
            words.researchers.map(|_| "researchers"),
        ];
        if let Some(key) = written.into_iter().flatten().next() {
            let message = format!("`{key}` belongs to agent phases; a gate has {OF_GATES}");
            return Err(self.error(key, message));
        }
        let gate_words = self.gate_words(&words.gate)?;
        let mut gate = default_gate();
        gate_words.lay_over(&mut gate);
        self.check_bound(&gate_words, &gate)?;
        self.check_ladders(&gate)?;
        Ok(Restarting { gate, restart_to: self.restart_to(words)?, fixer: words.fixer.unwrap_or(Role::Fix) })
    }

    fn gate_words(&self, table: &toml::Table) -> Checked<GateWords> {
        let read = |table: &toml::Table| GateWords::deserialize(table.clone());
        read(table).map_err(|error| {
            let blamed = table.iter().find(|(key, value)| {
                let alone = toml::Table::from_iter([((*key).clone(), (*value).clone())]);
                read(&alone).is_err()
            });
            let key = blamed.map_or("name", |(key, _)| key.as_str());
            self.error(key, format!("`{key}`: {}", error.message().trim()))
        })
    }

    fn check_bound(&self, words: &GateWords, gate: &Gate) -> Checked<()> {
        if words.max_cycles.is_some() && words.max_fixes.is_some() {
            return Err(self.error("max_fixes", "a gate sets `max_cycles` or `max_fixes`, not both"));
        }
        if gate.bound == Bound::MaxCycles(0) {
            return Err(self.error("max_cycles", "`max_cycles` must be at least 1: a gate needs one review"));
        }
        Ok(())
    }

    /// A word that means nothing where it stands is an error, not a surprise at night.
    fn check_ladders(&self, gate: &Gate) -> Checked<()> {
        let of_reviews =
            [Rung::Retry, Rung::RequestChanges, Rung::NotPassed, Rung::Ask, Rung::Stop, Rung::Fail];
        let of_failures = [Rung::Retry, Rung::NotPassed, Rung::Ask, Rung::Stop, Rung::Fail];
        let of_writers = [Rung::Retry, Rung::NextAttempt, Rung::Ask, Rung::Stop, Rung::Fail];
        self.check_ladder("on_unclear", &gate.on_unclear, &of_reviews)?;
        self.check_ladder("on_discussion", &gate.on_discussion, &of_reviews)?;
        self.check_ladder("on_reviewer_failure", &gate.on_reviewer_failure, &of_failures)?;
        self.check_ladder("on_fixer_failure", &gate.on_fixer_failure, &of_writers)?;
        self.check_ladder("on_implementer_failure", &gate.on_implementer_failure, &of_writers)
    }

    fn check_ladder(&self, key: &str, ladder: &Ladder, allowed: &[Rung]) -> Checked<()> {
        match ladder.rungs().iter().find(|rung| !allowed.contains(rung)) {
            None => Ok(()),
            Some(rung) => {
                let words: Vec<_> = allowed.iter().map(|rung| rung.word()).collect();
                let message = format!(
                    "`{}` means nothing for `{key}`, expected one of {}",
                    rung.word(),
                    words.join(", ")
                );
                Err(self.error(key, message))
            }
        }
    }

    fn restart_to(&self, words: &PhaseWords) -> Checked<usize> {
        let Some(target) = &words.restart_to else { return Ok(0) };
        self.earlier.iter().position(|name| name == target).ok_or_else(|| {
            let message = format!(
                "restart target: unknown phase `{target}`, expected a phase before `{}`: {}",
                words.name,
                if self.earlier.is_empty() { "there is none".to_owned() } else { self.earlier.join(", ") }
            );
            self.error("restart_to", message)
        })
    }

    fn gate(&self, policy: Restarting) -> Checked<PhaseKind> {
        let reviewers = &policy.gate.reviewers;
        if reviewers.is_empty() {
            let known: Vec<_> = self.workflow.reviewers.keys().map(|name| name.as_str()).collect();
            let message = format!("gate without reviewers: set `reviewers` to some of {known:?}");
            return Err(self.error("reviewers", message));
        }
        if reviewers.iter().collect::<BTreeSet<_>>().len() != reviewers.len() {
            return Err(self.error("reviewers", "a reviewer is named twice"));
        }
        match reviewers.iter().find(|name| !self.workflow.reviewers.contains_key(*name)) {
            None => Ok(PhaseKind::Gate(policy)),
            Some(name) => {
                let message = format!("unknown reviewer `{name}`: write a [reviewers.{name}] table");
                Err(self.error("reviewers", message))
            }
        }
    }

    fn check(&self, policy: Restarting) -> Checked<PhaseKind> {
        if policy.gate.reviewers.is_empty() {
            return Ok(PhaseKind::Check(policy));
        }
        Err(self.error("reviewers", "a check phase has no reviewers: the project's commands judge it"))
    }
}
