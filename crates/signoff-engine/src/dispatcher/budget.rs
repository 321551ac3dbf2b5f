//! The money for a launch is promised before it starts, and counted while it is spent: what several attempts expect to
//! use is never promised twice.

use jiff::Timestamp;
use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::machine::Event;
use signoff_core::policy::{Budget, Caps, Refusal, Reservation};
use signoff_core::review::Usage;
use signoff_core::wire::{Fact, LoopFact};

use super::queueing::Room;
use super::{Dispatcher, Driven};
use crate::attempt::{self, Priced};
use crate::board::Worked;
use crate::clock;
use crate::error::EngineError;
use crate::process::AttemptDir;

/// Usage is looked at once in so many ticks, about every second.
const TICKS: u32 = 5;

/// The roles that cost nothing.
const FREE: [&str; 3] = ["check", "combine", "land"];

impl Dispatcher<'_> {
    /// Whether anything is capped.
    pub(super) fn is_capped(&self) -> bool {
        let limits = self.shop.settings.limits();
        limits.task != Caps::default() || limits.run != Caps::default()
    }

    /// Which cap forbids one more launch, of the task or of the run, in words.
    pub(super) fn over_budget(&self, run: RunId, loop_id: &LoopId) -> Option<String> {
        match self.money_for(run, loop_id, "") {
            Room::Refused(why) => Some(why),
            Room::Free | Room::Later => None,
        }
    }

    /// Whether there is money for one more attempt in this role.
    pub(super) fn money_for(&self, run: RunId, loop_id: &LoopId, role: &str) -> Room {
        let Some(driven) = self.runs.get(&run).filter(|_| self.is_capped()) else { return Room::Free };
        if !driven.board.loops.contains_key(loop_id) {
            return Room::Free;
        }
        let limits = self.shop.settings.limits();
        let reserve = limits.reserve_micro_usd;
        let own = Scope { driven, loops: loops_of_task(driven, loop_id), caps: &limits.task, reserve };
        let whole = Scope { driven, loops: driven.board.loops.iter().collect(), caps: &limits.run, reserve };
        match (own.room(role), whole.room(role)) {
            (Room::Refused(why), _) => Room::Refused(why),
            (_, Room::Refused(why)) => Room::Refused(format!("in the whole run {why}")),
            (Room::Free, Room::Free) => Room::Free,
            (Room::Free | Room::Later, Room::Free | Room::Later) => Room::Later,
        }
    }

    /// Counts what the agents at work have used so far, and stops those of a task or a run that reached its cap.
    pub(super) fn count_usage(&mut self) -> Result<(), EngineError> {
        self.ticks = self.ticks.wrapping_add(1);
        if !self.ticks.is_multiple_of(TICKS) || !self.is_capped() {
            return Ok(());
        }
        let runs: Vec<RunId> = self.runs.keys().copied().collect();
        for run in runs {
            let used = self.newly_used(run);
            if !used.is_empty() {
                self.append(run, used)?;
            }
            for (loop_id, why) in self.at_cap(run) {
                self.note_paused(run, &loop_id, &why);
                self.loop_event(run, &loop_id, Event::BudgetReached, Vec::new())?;
            }
        }
        Ok(())
    }

    /// What agents at work say they used, where it is more than is on record.
    fn newly_used(&self, run: RunId) -> Vec<Fact> {
        let Some(driven) = self.runs.get(&run) else { return Vec::new() };
        let mut facts = Vec::new();
        for (loop_id, attempt) in driven.at_work.keys() {
            let known = self.known_usage(run, loop_id, *attempt);
            let usage = self.told_usage(run, loop_id, *attempt);
            if usage != known {
                facts.push(Fact::Loop(loop_id.clone(), LoopFact::Used { attempt: *attempt, usage }));
            }
        }
        facts
    }

    /// What is on record of an attempt's usage. Whatever its agent says later, it is not less.
    pub(super) fn known_usage(&self, run: RunId, loop_id: &LoopId, attempt: AttemptId) -> Usage {
        let worked = self.runs.get(&run).and_then(|driven| driven.board.loops.get(loop_id));
        worked.and_then(|worked| worked.usage.get(&attempt)).copied().unwrap_or_default()
    }

    /// The same with what its agent says by now.
    pub(super) fn told_usage(&self, run: RunId, loop_id: &LoopId, attempt: AttemptId) -> Usage {
        let worked = self.runs.get(&run).and_then(|driven| driven.board.loops.get(loop_id));
        let launched = worked.and_then(|worked| worked.launched.get(&attempt));
        let model = launched.and_then(|launched| launched.launch.model.as_deref());
        let dir = AttemptDir::new(self.shop.layout.attempt(run, loop_id, attempt));
        let priced = Priced { settings: &self.shop.settings, model };
        attempt::told_usage(priced, &dir).at_least(self.known_usage(run, loop_id, attempt))
    }

    /// The loops whose agents work although a cap is reached. Those that were told to stop may take their time.
    fn at_cap(&self, run: RunId) -> Vec<(LoopId, String)> {
        let Some(driven) = self.runs.get(&run) else { return Vec::new() };
        let (limits, now) = (self.shop.settings.limits(), clock::now());
        let reserve = limits.reserve_micro_usd;
        let whole = Scope { driven, loops: driven.board.loops.iter().collect(), caps: &limits.run, reserve };
        let whole = whole.reached(now).map(|why| format!("in the whole run {why}"));
        let mut reached = Vec::new();
        for (loop_id, worked) in &driven.board.loops {
            let alone = Scope { driven, loops: vec![(loop_id, worked)], caps: &limits.task, reserve };
            if !alone.agents().into_iter().any(|(worked, attempt)| worked.state.runs(attempt)) {
                continue;
            }
            let own = Scope { loops: loops_of_task(driven, loop_id), ..alone };
            reached.extend(own.reached(now).or_else(|| whole.clone()).map(|why| (loop_id.clone(), why)));
        }
        reached
    }

    /// An attempt that was given up has used what it used.
    pub(super) fn settle_usage(
        &mut self,
        run: RunId,
        loop_id: &LoopId,
        (attempt, usage): (AttemptId, Usage),
    ) -> Result<(), EngineError> {
        let worked = self.runs.get(&run).and_then(|driven| driven.board.loops.get(loop_id));
        let Some(worked) = worked.filter(|worked| !worked.state.runs(attempt)) else { return Ok(()) };
        if usage == Usage::default() || worked.usage.get(&attempt) == Some(&usage) {
            return Ok(());
        }
        self.append(run, vec![Fact::Loop(loop_id.clone(), LoopFact::Used { attempt, usage })])
    }
}

/// The loop of a task with the checkpoint reviews of it: they share the caps of the task.
fn loops_of_task<'a>(driven: &'a Driven, loop_id: &LoopId) -> Vec<(&'a LoopId, &'a Worked)> {
    let task = loop_id.paid_by();
    driven.board.loops.iter().filter(|(other, _)| other.paid_by() == task).collect()
}

/// The loops that share caps.
struct Scope<'a> {
    driven: &'a Driven,
    loops: Vec<(&'a LoopId, &'a Worked)>,
    caps: &'a Caps,
    /// What an attempt is expected to cost as long as nothing is known.
    reserve: u64,
}

impl Scope<'_> {
    fn room(&self, role: &str) -> Room {
        let expected = self.expected(role);
        let (mut spent, mut promised) = (self.spent(None), self.promised());
        let gone = spent.used();
        let wish = expected.unwrap_or_default();
        if let Err(refusal) = spent.reserve(AttemptId(u64::MAX), wish, self.caps) {
            return Room::Refused(in_words(refusal, gone, self.caps));
        }
        // Nobody knows what an attempt costs: the first one tells. Until then a cap is overshot by that one at most.
        let unknown = expected.is_none() && !self.agents().is_empty();
        let taken = promised.reserve(AttemptId(u64::MAX), wish, self.caps).is_err();
        if unknown || taken { Room::Later } else { Room::Free }
    }

    /// The cap that is reached, in words.
    fn reached(&self, now: Timestamp) -> Option<String> {
        let mut spent = self.spent(Some(now));
        let gone = spent.used();
        let refusal = spent.reserve(AttemptId(u64::MAX), Reservation::default(), self.caps).err()?;
        Some(in_words(refusal, gone, self.caps))
    }

    /// The agents of these loops that are at work.
    fn agents(&self) -> Vec<(&Worked, AttemptId)> {
        let mut agents = Vec::new();
        for (loop_id, worked) in &self.loops {
            let own = self.driven.at_work.keys().filter(|(other, _)| other == *loop_id);
            let costs = |attempt: &AttemptId| !FREE.contains(&role_of(worked, *attempt));
            agents.extend(own.map(|(_, attempt)| *attempt).filter(costs).map(|attempt| (*worked, attempt)));
        }
        agents
    }

    /// What is gone; the time that agents have been at work counts where the present is given.
    fn spent(&self, now: Option<Timestamp>) -> Budget {
        let mut budget = Budget::default();
        let all = self.loops.iter().flat_map(|(_, worked)| worked.usage.values().copied());
        let running =
            now.map(|now| self.agents().into_iter().map(move |(worked, one)| elapsed(worked, one, now)));
        for (number, usage) in all.chain(running.into_iter().flatten()).enumerate() {
            budget.settle(AttemptId(number as u64), usage);
        }
        budget
    }

    /// What is gone, and what is promised to those at work and not used yet.
    fn promised(&self) -> Budget {
        let mut budget = self.spent(None);
        for (number, (worked, attempt)) in self.agents().into_iter().enumerate() {
            let wish = self.expected(role_of(worked, attempt)).unwrap_or_default();
            let used = worked.usage.get(&attempt).copied().map(Reservation::from).unwrap_or_default();
            let left = Reservation {
                cost_micro_usd: wish.cost_micro_usd.saturating_sub(used.cost_micro_usd),
                tokens: wish.tokens.saturating_sub(used.tokens),
                duration_ms: 0,
            };
            // Without caps nothing is refused: this only notes the promise.
            budget.reserve(AttemptId(number as u64), left, &Caps::default()).ok();
        }
        budget
    }

    /// What one more attempt is expected to use: as much as the dearest of the same role in the run, else of any role.
    /// None if nobody knows, and a cap depends on it.
    fn expected(&self, role: &str) -> Option<Reservation> {
        let known = self.known();
        let same = known.iter().filter(|(other, _)| *other == role).map(|(_, usage)| *usage);
        let any = || known.iter().map(|(_, usage)| *usage).reduce(dearer);
        let dearest = same.reduce(dearer).or_else(any);
        let reserved = Reservation { cost_micro_usd: self.reserve, ..Reservation::default() };
        let told = self.reserve > 0 && self.caps.max_tokens.is_none();
        let capped = self.caps.max_cost_micro_usd.is_some() || self.caps.max_tokens.is_some();
        dearest.or_else(|| (told || !capped).then_some(reserved))
    }

    /// What the attempts of the run used that are over, with their roles. One that ended badly and used nothing tells
    /// nothing.
    fn known(&self) -> Vec<(&str, Reservation)> {
        let mut known = Vec::new();
        for (loop_id, worked) in &self.driven.board.loops {
            for (attempt, usage) in &worked.usage {
                let at_work = self.driven.at_work.contains_key(&(loop_id.clone(), *attempt));
                let role = role_of(worked, *attempt);
                let told = usage.cost_micro_usd > 0 || worked.answered.contains(attempt);
                if told && !at_work && !FREE.contains(&role) {
                    known.push((role, Usage { duration_ms: 0, ..*usage }.into()));
                }
            }
        }
        known
    }
}

fn role_of(worked: &Worked, attempt: AttemptId) -> &str {
    worked.launched.get(&attempt).map_or("", |one| one.launch.role.as_str())
}

/// The time an agent has been at work.
fn elapsed(worked: &Worked, attempt: AttemptId, now: Timestamp) -> Usage {
    let since = worked.launched.get(&attempt).map_or(now, |one| one.at);
    let duration_ms = u64::try_from(now.duration_since(since).as_millis()).unwrap_or_default();
    Usage { duration_ms, ..Usage::default() }
}

/// The most of both, each kind by itself. How long it takes is bounded by its own limit.
fn dearer(one: Reservation, other: Reservation) -> Reservation {
    Reservation {
        cost_micro_usd: one.cost_micro_usd.max(other.cost_micro_usd),
        tokens: one.tokens.max(other.tokens),
        duration_ms: 0,
    }
}

/// `$0.51 of $1.00 is spent, and the next attempt may cost more than is left`.
fn in_words(refusal: Refusal, gone: Reservation, caps: &Caps) -> String {
    let dollars = |micro: u64| format!("${:.2}", micro as f64 / 1_000_000.0);
    let (gone, cap, words, more) = match refusal {
        Refusal::Cost => {
            let (gone, cap) = (gone.cost_micro_usd, caps.max_cost_micro_usd.unwrap_or_default());
            let words = format!("{} of {} is spent", dollars(gone), dollars(cap));
            (gone, cap, words, "the next attempt may cost more than is left")
        }
        Refusal::Tokens => {
            let (gone, cap) = (gone.tokens, caps.max_tokens.unwrap_or_default());
            let words = format!("{gone} of {cap} tokens are used");
            (gone, cap, words, "the next attempt may use more than are left")
        }
        Refusal::Minutes => {
            let (gone, cap) = (gone.duration_ms / 60_000, caps.max_minutes.unwrap_or_default());
            let words = format!("{gone} of {cap} minutes are used");
            (gone, cap, words, "the next attempt may take longer than is left")
        }
    };
    if gone < cap { format!("{words}, and {more}") } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_is_gone_and_whether_anything_is_left() {
        let caps =
            Caps { max_cost_micro_usd: Some(1_000_000), max_tokens: Some(9_000), max_minutes: Some(10) };
        let gone = Reservation { cost_micro_usd: 510_000, tokens: 9_000, duration_ms: 720_000 };
        let words = [Refusal::Cost, Refusal::Tokens, Refusal::Minutes].map(|one| in_words(one, gone, &caps));
        assert_eq!(
            words,
            [
                "$0.51 of $1.00 is spent, and the next attempt may cost more than is left",
                "9000 of 9000 tokens are used",
                "12 of 10 minutes are used",
            ]
        );
    }
}
