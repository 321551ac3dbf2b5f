//! From the words of a workflow to the workflow itself, or to what is wrong with it.

use std::collections::{BTreeSet, HashSet};

use super::problem::{WorkflowError, either, nearest};
use super::table::{Checked, Table};
use super::words::{
    AgentWords, GateWords, KindWord, OF_REVIEWERS, PhaseWords, RestartWords, ReviewerWords, Reviewers,
    TABLES, WhoWords, WorkflowWords,
};
use super::{Phase, PhaseKind, Restarting, Reviewer, Role, Workflow};
use crate::contract::Contract;
use crate::ids::ReviewerName;
use crate::policy::{
    Bound, Count, ExhaustedAs, Gate, Ladder, Limits, OnExhausted, OnFailure, Rereview, Rung,
};
use crate::prompt::Depth;
use crate::review::Bar;

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
        require_nonce: None,
        review_timeout: None,
        fix_timeout: None,
        rereview: Rereview::Full,
        depth: Depth::Standard,
        max_same_finding: Some(3),
        max_noop_fixes: Some(1),
    }
}

/// Builds and checks a workflow. `shared` are the reviewers it may name besides its own.
pub fn workflow(table: &Table<'_>, name: &str, shared: &Reviewers) -> Checked<Workflow> {
    table.only("a workflow", &[WorkflowWords::KEYS, &TABLES].concat())?;
    let words = WorkflowWords::read(table)?;
    let mut known = shared.clone();
    if let Some(own) = table.table("reviewers")? {
        own.children()?.iter().try_for_each(|(_, own)| own.only("a reviewer", ReviewerWords::KEYS))?;
        known.extend(reviewers(&own)?);
    }
    let limits = limits(table, &words)?;
    let modes = modes(table, words.modes)?;
    check_mode(table, "tools_in", words.tools_in.as_deref(), &modes)?;
    let phases = |key| list(table, key, &known, &modes);
    let (before, phases, after) = (phases("before")?, phases("phases")?, phases("after")?);
    if phases.is_empty() {
        return Err(table.error("phases", "no phases: write at least one [[phases]] table"));
    }
    Ok(Workflow {
        name: name.to_owned(),
        description: words.description.unwrap_or_default(),
        completion: words.completion.unwrap_or_default(),
        landing: words.landing.unwrap_or_default(),
        arrangement: words.arrangement.unwrap_or_default(),
        checkpoint_interval: words.checkpoint_interval.filter(|interval| *interval > 0),
        limits,
        attempts_exhausted_as: words.attempts_exhausted_as.unwrap_or(ExhaustedAs::Failed),
        reviewers: named(known, [&before, &phases, &after], shared),
        prompts: std::collections::BTreeMap::new(),
        modes,
        tools_in: words.tools_in,
        before,
        phases,
        after,
    })
}

/// Of the reviewers a file shares, a workflow has those that its gates name.
fn named(mut known: Reviewers, phases: [&[Phase]; 3], shared: &Reviewers) -> Reviewers {
    let judges = phases.into_iter().flatten().filter_map(Phase::judge);
    let called: BTreeSet<_> = judges.flat_map(|judge| &judge.gate.reviewers).collect();
    known.retain(|name, _| called.contains(name) || !shared.contains_key(name));
    known
}

/// The reviewers of a table, by name. Who plays them is not looked at here.
pub fn reviewers(table: &Table<'_>) -> Checked<Reviewers> {
    let one = |(name, table): (&str, Table<'_>)| {
        let words = ReviewerWords::read(&table)?;
        let kind = words.kind.ok_or_else(|| {
            let kinds: Vec<_> = crate::review::ReviewerKind::ALL.iter().map(|kind| kind.word()).collect();
            table.error("kind", format!("reviewer `{name}` has no `kind`: expected {}", either(&kinds)))
        })?;
        Ok((name.into(), Reviewer { kind, contract: words.contract.unwrap_or(Contract::Auto) }))
    };
    table.children()?.into_iter().map(one).collect()
}

fn limits(table: &Table<'_>, words: &WorkflowWords) -> Checked<Limits> {
    let known = Limits::default();
    let max_attempts = match words.max_attempts {
        None => known.max_attempts,
        Some(Count::Of(attempts)) if attempts > 0 => attempts,
        Some(Count::Of(_) | Count::Unlimited) => {
            let message = "unbounded loop: expected a number for `max_attempts`, at least 1, for it alone ends \
                           a gate whose own bound is \"unlimited\"";
            return Err(table.error("max_attempts", message));
        }
    };
    if words.max_passes == Some(0) {
        return Err(table.error("max_passes", "`max_passes` is 0: expected at least 1"));
    }
    Ok(Limits {
        max_attempts,
        max_passes: words.max_passes.unwrap_or(known.max_passes),
        max_recoveries: words.max_recoveries.unwrap_or(known.max_recoveries),
        max_conflicts: words.max_conflicts.unwrap_or(known.max_conflicts),
        max_rate_limits: known.max_rate_limits,
        bounds_restarts: known.bounds_restarts,
    })
}

fn modes(table: &Table<'_>, written: Option<Vec<String>>) -> Checked<Vec<String>> {
    let modes = written.unwrap_or_default();
    let mut seen = HashSet::new();
    match modes.iter().find(|mode| !seen.insert(*mode)) {
        Some(mode) => Err(table.error("modes", format!("mode `{mode}` is listed twice: write it once"))),
        None => Ok(modes),
    }
}

/// A mode that is named must be one of the workflow's.
fn check_mode(table: &Table<'_>, key: &str, written: Option<&str>, modes: &[String]) -> Checked<()> {
    let Some(mode) = written.filter(|mode| !modes.iter().any(|known| known == mode)) else {
        return Ok(());
    };
    let expected = if modes.is_empty() {
        format!("write `modes = [\"{mode}\"]` in the workflow")
    } else {
        format!("expected one of the workflow's `modes`, {}", modes.join(", "))
    };
    Err(table.error(key, format!("unknown mode `{mode}`: {expected}")))
}

fn list(workflow: &Table<'_>, key: &str, reviewers: &Reviewers, modes: &[String]) -> Checked<Vec<Phase>> {
    let tables = workflow.tables(key)?;
    if let Some(table) = tables.get(MOST_PHASES) {
        let message = format!("`{key}` has {} phases: expected at most {MOST_PHASES}", tables.len());
        return Err(table.error("name", message));
    }
    let names: HashSet<&str> = tables.iter().filter_map(|table| table.text("name")).collect();
    let mut taken = HashSet::new();
    let mut phases = Vec::new();
    for table in &tables {
        let table = *table;
        let phase = Context { table, reviewers, modes, names: &names, earlier: &phases }.phase()?;
        if !taken.insert(phase.name.clone()) {
            let message = format!("two phases are called `{}`: write another name", phase.name);
            return Err(table.error("name", message));
        }
        phases.push(phase);
    }
    let too_early = gate_before_work(&phases).filter(|_| key == "phases");
    if let Some((table, phase)) = too_early.and_then(|index| Some((tables.get(index)?, phases.get(index)?))) {
        let message =
            format!("gate `{}` has nothing to judge yet: write an agent phase before it", phase.name);
        return Err(table.error("name", message));
    }
    Ok(phases)
}

/// A gate that comes before the first work. A workflow that only judges has its work from elsewhere.
fn gate_before_work(phases: &[Phase]) -> Option<usize> {
    let work = phases.iter().position(Phase::works)?;
    phases.iter().take(work).position(Phase::is_gate)
}

/// One phase being read.
struct Context<'a> {
    table: Table<'a>,
    reviewers: &'a Reviewers,
    modes: &'a [String],
    /// Of all phases of the list.
    names: &'a HashSet<&'a str>,
    earlier: &'a [Phase],
}

/// More phases than anyone writes by hand; each may look at all before it.
pub const MOST_PHASES: usize = 1000;

/// More helpers than this are a mistake of the keyboard.
pub const MOST_RESEARCHERS: u32 = 32;

impl Context<'_> {
    fn error(&self, key: &str, message: impl Into<String>) -> WorkflowError {
        self.table.error(key, message)
    }

    fn phase(&self) -> Checked<Phase> {
        let words = PhaseWords::read(&self.table)?;
        let name = self.name(words.name)?;
        let kind = words.kind.ok_or_else(|| {
            self.error("kind", format!("phase `{name}` has no `kind`: expected agent, gate or check"))
        })?;
        self.only(kind)?;
        let who = WhoWords::read(&self.table)?;
        check_mode(&self.table, "mode", words.mode.as_deref(), self.modes)?;
        Ok(Phase {
            kind: match kind {
                KindWord::Agent => self.agent()?,
                KindWord::Gate => PhaseKind::Gate(self.gate(&name, words.mode.as_deref())?),
                KindWord::Check => PhaseKind::Check(self.check(&name, words.mode.as_deref())?),
            },
            name,
            per_item: words.per_item.unwrap_or(false),
            once: words.once.unwrap_or(false),
            mode: words.mode,
            number: words.number,
            called: words.called,
            agent: who.agent,
            tool: who.tool,
            model: who.model,
            prefers: who.prefers,
            parallel_model: self.table.get("parallel_model")?,
        })
    }

    fn name(&self, written: Option<String>) -> Checked<String> {
        let name = written.filter(|name| !name.trim().is_empty());
        let name = name.ok_or_else(|| self.error("name", "a phase needs a name: write `name = \"…\"`"))?;
        Ok(name)
    }

    /// Refuses what is no key, and what is one of another kind of phase.
    fn only(&self, kind: KindWord) -> Checked<()> {
        let of_gates = [GateWords::KEYS, RestartWords::KEYS].concat();
        let (what, mut known, elsewhere) = match kind {
            KindWord::Agent => ("an agent phase", [AgentWords::KEYS, WhoWords::KEYS].concat(), of_gates),
            KindWord::Gate => ("a gate", [&of_gates, WhoWords::KEYS].concat(), AgentWords::KEYS.to_vec()),
            KindWord::Check => {
                let known = of_gates.into_iter().filter(|key| !OF_REVIEWERS.contains(key)).collect();
                ("a check", known, [AgentWords::KEYS, WhoWords::KEYS, &OF_REVIEWERS].concat())
            }
        };
        known.extend(PhaseWords::KEYS);
        match self.table.stranger(&known) {
            Some(key) if elsewhere.contains(&key) => Err(self.error(key, misplaced(kind, what, key))),
            Some(_) | None => self.table.only(what, &known),
        }
    }

    fn agent(&self) -> Checked<PhaseKind> {
        let words = AgentWords::read(&self.table)?;
        let researchers = words.researchers.unwrap_or(0);
        if researchers > MOST_RESEARCHERS {
            let message = format!("`researchers` is {researchers}: expected at most {MOST_RESEARCHERS}");
            return Err(self.error("researchers", message));
        }
        Ok(PhaseKind::Agent { role: words.role.unwrap_or_default(), timeout: words.timeout, researchers })
    }

    fn gate(&self, name: &str, mode: Option<&str>) -> Checked<Restarting> {
        let policy = self.judge(name, mode)?;
        self.check_reviewers(name, &policy.gate)?;
        Ok(policy)
    }

    /// A check has no bar: whatever a failing command reports is to be fixed.
    fn check(&self, name: &str, mode: Option<&str>) -> Checked<Restarting> {
        let mut policy = self.judge(name, mode)?;
        policy.gate.fail_on = Bar::Low;
        Ok(policy)
    }

    fn judge(&self, name: &str, mode: Option<&str>) -> Checked<Restarting> {
        let words = GateWords::read(&self.table)?;
        let mut gate = default_gate();
        words.lay_over(&mut gate);
        check_bound(&self.table, &words)?;
        let restart = RestartWords::read(&self.table)?;
        let restart_to = self.restart_to(name, mode, restart.restart_to.as_deref())?;
        self.check_restart(name, &gate)?;
        Ok(Restarting { gate, restart_to, fixer: restart.fixer.unwrap_or(Role::Fix) })
    }

    fn restart_to(&self, name: &str, mode: Option<&str>, written: Option<&str>) -> Checked<usize> {
        let Some(target) = written else { return Ok(0) };
        let stays = |phase: &Phase| phase.mode.is_none() || phase.mode.as_deref() == mode;
        let Some(index) = self.earlier.iter().position(|phase| phase.name == target) else {
            return Err(self.error("restart_to", self.no_target(name, target)));
        };
        if self.earlier.get(index).is_some_and(stays) {
            return Ok(index);
        }
        let message = format!("restart target: `{target}` is left out in a mode in which `{name}` is not");
        Err(self.error("restart_to", message))
    }

    fn no_target(&self, name: &str, target: &str) -> String {
        let wrong = if target == name {
            format!("`{target}` is this phase itself")
        } else if self.names.contains(target) {
            format!("`{target}` comes after `{name}`")
        } else {
            format!("unknown phase `{target}`")
        };
        let earlier: Vec<_> = self.earlier.iter().map(|phase| phase.name.as_str()).collect();
        let expected = if earlier.is_empty() { "but there is none".to_owned() } else { either(&earlier) };
        format!("restart target: {wrong}, expected a phase before `{name}`: {expected}")
    }

    /// A restart that does no work in between would only burn the passes.
    fn check_restart(&self, name: &str, gate: &Gate) -> Checked<()> {
        let key = if !self.earlier.is_empty() {
            return Ok(());
        } else if gate.on_failure == OnFailure::Restart {
            "on_failure"
        } else if gate.on_exhausted == OnExhausted::Restart {
            "on_exhausted"
        } else {
            return Ok(());
        };
        Err(self.error(key, nothing_to_restart(key, name)))
    }

    fn check_reviewers(&self, name: &str, gate: &Gate) -> Checked<()> {
        if gate.reviewers.is_empty() {
            let expected = self.known_reviewers();
            let message = format!("gate without reviewers: `{name}` needs `reviewers = [\"…\"]`; {expected}");
            return Err(self.error("reviewers", message));
        }
        let mut seen = BTreeSet::new();
        for reviewer in &gate.reviewers {
            if !self.reviewers.contains_key(reviewer) {
                let known: Vec<_> = self.reviewers.keys().map(|name| name.as_str()).collect();
                let expected = match nearest(reviewer.as_str(), &known) {
                    Some(meant) => format!("did you mean `{meant}`?"),
                    None => self.known_reviewers(),
                };
                let message = format!("unknown reviewer `{reviewer}`: {expected}");
                return Err(self.error("reviewers", message));
            }
            if !seen.insert(reviewer) {
                return Err(self.error("reviewers", twice(reviewer)));
            }
        }
        Ok(())
    }

    fn known_reviewers(&self) -> String {
        let known: Vec<_> = self.reviewers.keys().map(|name| name.as_str()).collect();
        if known.is_empty() {
            "write a [reviewers.NAME] table for each one".to_owned()
        } else {
            format!("expected some of {}, or write a [reviewers.NAME] table for another", known.join(", "))
        }
    }
}

/// What to say of a restart where nothing comes before.
pub fn nothing_to_restart(key: &str, phase: &str) -> String {
    format!(
        "restart target: `{key}` is \"restart\", but there is no phase before `{phase}`: write another word, or a \
         phase before it"
    )
}

/// What to say of a reviewer that a gate names twice.
pub fn twice(reviewer: &ReviewerName) -> String {
    format!("reviewer `{reviewer}` is named twice: write each name once")
}

/// The one of two keys that comes later in the file.
fn later<'k>(table: &Table<'_>, one: &'k str, other: &'k str) -> &'k str {
    if table.offset(one) > table.offset(other) { one } else { other }
}

/// A gate has one bound, and at least one review.
pub fn check_bound(table: &Table<'_>, words: &GateWords) -> Checked<()> {
    if words.max_cycles.is_some() && words.max_fixes.is_some() {
        let message = "a gate has one bound: write `max_cycles` or `max_fixes`, not both";
        return Err(table.error(later(table, "max_cycles", "max_fixes"), message));
    }
    if words.max_cycles == Some(Count::Of(0)) {
        let message = "`max_cycles` is 0: expected at least 1, for the one review";
        return Err(table.error("max_cycles", message));
    }
    Ok(())
}

fn misplaced(kind: KindWord, what: &str, key: &str) -> String {
    let owner = match kind {
        KindWord::Agent => "gates and checks",
        KindWord::Gate => "agent phases",
        KindWord::Check if AgentWords::KEYS.contains(&key) => "agent phases",
        KindWord::Check if WhoWords::KEYS.contains(&key) => {
            "agent phases and gates: the project's commands need no agent"
        }
        KindWord::Check => "gates: the project's commands judge a check, not reviewers",
    };
    format!("{what} has no `{key}`: expected it only in {owner}")
}
