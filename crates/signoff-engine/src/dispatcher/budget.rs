//! The money for a launch is promised before it starts: what several attempts expect to use is never promised twice.

use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::policy::{Budget, Caps, Refusal, Reservation};
use signoff_core::review::Usage;

use super::{Dispatcher, Driven};
use crate::board::Worked;

impl Dispatcher<'_> {
    /// Which cap forbids one more launch, of the task or of the run, in words.
    pub(super) fn over_budget(&self, run: RunId, loop_id: &LoopId) -> Option<String> {
        let driven = self.runs.get(&run)?;
        let worked = driven.board.loops.get(loop_id)?;
        let limits = self.shop.settings.limits();
        let refused = |mut budget: Budget, caps: &Caps| {
            let gone = budget.used();
            let refusal = budget.reserve(AttemptId(u64::MAX), expected(worked), caps).err()?;
            Some(in_words(refusal, gone, caps))
        };
        refused(account([(loop_id, worked)], driven), &limits.task).or_else(|| {
            let why = refused(account(&driven.board.loops, driven), &limits.run)?;
            Some(format!("in the whole run {why}"))
        })
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

/// What these loops have used, and what is promised to those of their attempts that are at work.
fn account<'a>(loops: impl IntoIterator<Item = (&'a LoopId, &'a Worked)>, driven: &Driven) -> Budget {
    let mut budget = Budget::default();
    let mut number = 0;
    let mut next = || {
        number += 1;
        AttemptId(number)
    };
    for (loop_id, worked) in loops {
        worked.usage.values().for_each(|usage| budget.settle(next(), *usage));
        let at_work = driven.at_work.keys().filter(|(other, _)| other == loop_id).count();
        for _ in 0..at_work {
            // Without caps nothing is refused: this only notes the promise.
            budget.reserve(next(), expected(worked), &Default::default()).ok();
        }
    }
    budget
}

/// What one more attempt is expected to use: as much as the dearest so far.
fn expected(worked: &Worked) -> Reservation {
    let dearest = worked.usage.values().copied().max_by_key(|usage| usage.cost_micro_usd);
    // How long it takes is bounded by its own limit.
    Usage { duration_ms: 0, ..dearest.unwrap_or_default() }.into()
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
