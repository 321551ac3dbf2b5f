//! Money, tokens and minutes: reserved before a launch, counted as they stream, never overdrawn by design.
//!
//! A cap that is only checked at the end is no cap: a $0.50 limit once cost $5.11 that way. So an attempt
//! reserves what it is expected to use; several launched at once cannot promise the same money twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::AttemptId;
use crate::review::Usage;

/// The caps of a task or a run. None = no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Caps {
    pub max_cost_micro_usd: Option<u64>,
    pub max_tokens: Option<u64>,
    pub max_minutes: Option<u64>,
}

/// What an attempt is expected to use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Reservation {
    pub cost_micro_usd: u64,
    pub tokens: u64,
    pub duration_ms: u64,
}

/// Which cap stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum Refusal {
    #[error("the cost cap is reached")]
    Cost,
    #[error("the token cap is reached")]
    Tokens,
    #[error("the time cap is reached")]
    Minutes,
}

/// What was used and what is promised.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budget {
    spent: Reservation,
    open: BTreeMap<AttemptId, Account>,
}

/// One running attempt: what it was promised and what it has used so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Account {
    reserved: Reservation,
    used: Reservation,
}

impl Reservation {
    fn plus(self, other: Self) -> Self {
        Self {
            cost_micro_usd: self.cost_micro_usd.saturating_add(other.cost_micro_usd),
            tokens: self.tokens.saturating_add(other.tokens),
            duration_ms: self.duration_ms.saturating_add(other.duration_ms),
        }
    }

    fn at_least(self, other: Self) -> Self {
        Self {
            cost_micro_usd: self.cost_micro_usd.max(other.cost_micro_usd),
            tokens: self.tokens.max(other.tokens),
            duration_ms: self.duration_ms.max(other.duration_ms),
        }
    }

    fn exceeds(self, caps: &Caps) -> Option<Refusal> {
        let over = |cap: Option<u64>, value: u64| cap.is_some_and(|cap| value > cap);
        let minutes = caps.max_minutes.map(|minutes| minutes.saturating_mul(60_000));
        if over(caps.max_cost_micro_usd, self.cost_micro_usd) {
            Some(Refusal::Cost)
        } else if over(caps.max_tokens, self.tokens) {
            Some(Refusal::Tokens)
        } else if over(minutes, self.duration_ms) {
            Some(Refusal::Minutes)
        } else {
            None
        }
    }
}

impl From<Usage> for Reservation {
    fn from(usage: Usage) -> Self {
        Self {
            cost_micro_usd: usage.cost_micro_usd,
            tokens: usage.input_tokens.saturating_add(usage.output_tokens),
            duration_ms: usage.duration_ms,
        }
    }
}

impl Budget {
    /// Promises an attempt what it is expected to use, or says which cap forbids the launch. A spent cap
    /// refuses even an attempt that expects to be free.
    pub fn reserve(&mut self, attempt: AttemptId, wish: Reservation, caps: &Caps) -> Result<(), Refusal> {
        self.at_cap(caps).map_or(Ok(()), Err)?;
        self.promised().plus(wish).exceeds(caps).map_or(Ok(()), Err)?;
        self.open.insert(attempt, Account { reserved: wish, used: Reservation::default() });
        Ok(())
    }

    /// Takes a running attempt's usage so far. Says which cap the loop has now reached, if any.
    pub fn count(&mut self, attempt: AttemptId, usage: Usage, caps: &Caps) -> Option<Refusal> {
        self.open.entry(attempt).or_default().used = usage.into();
        self.at_cap(caps)
    }

    /// Closes an attempt with what it really used; what it did not use is free again.
    pub fn settle(&mut self, attempt: AttemptId, usage: Usage) {
        let seen = self.open.remove(&attempt).map(|account| account.used).unwrap_or_default();
        // An agent that dies without a final report has still used what it streamed.
        self.spent = self.spent.plus(Reservation::from(usage).at_least(seen));
    }

    /// What is gone: settled attempts and what the running ones have used so far.
    pub fn used(&self) -> Reservation {
        self.open.values().fold(self.spent, |sum, account| sum.plus(account.used))
    }

    fn promised(&self) -> Reservation {
        let promise = |account: &Account| account.reserved.at_least(account.used);
        self.open.values().fold(self.spent, |sum, account| sum.plus(promise(account)))
    }

    fn at_cap(&self, caps: &Caps) -> Option<Refusal> {
        let used = self.used();
        let spent = |cap: Option<u64>, value: u64| cap.is_some_and(|cap| value >= cap);
        let minutes = caps.max_minutes.map(|minutes| minutes.saturating_mul(60_000));
        if spent(caps.max_cost_micro_usd, used.cost_micro_usd) {
            Some(Refusal::Cost)
        } else if spent(caps.max_tokens, used.tokens) {
            Some(Refusal::Tokens)
        } else if spent(minutes, used.duration_ms) {
            Some(Refusal::Minutes)
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HALF_DOLLAR: Caps = Caps { max_cost_micro_usd: Some(500_000), max_tokens: None, max_minutes: None };

    fn money(cost_micro_usd: u64) -> Reservation {
        Reservation { cost_micro_usd, ..Reservation::default() }
    }

    fn used(cost_micro_usd: u64) -> Usage {
        Usage { cost_micro_usd, ..Usage::default() }
    }

    #[test]
    fn two_attempts_cannot_be_promised_the_same_money() {
        let mut budget = Budget::default();
        assert_eq!(budget.reserve(AttemptId(1), money(300_000), &HALF_DOLLAR), Ok(()));
        assert_eq!(budget.reserve(AttemptId(2), money(300_000), &HALF_DOLLAR), Err(Refusal::Cost));
        budget.settle(AttemptId(1), used(100_000));
        assert_eq!(budget.reserve(AttemptId(2), money(300_000), &HALF_DOLLAR), Ok(()));
    }

    #[test]
    fn the_cap_is_noticed_while_money_streams() {
        let mut budget = Budget::default();
        budget.reserve(AttemptId(1), money(100_000), &HALF_DOLLAR).unwrap();
        assert_eq!(budget.count(AttemptId(1), used(499_999), &HALF_DOLLAR), None);
        assert_eq!(budget.count(AttemptId(1), used(500_000), &HALF_DOLLAR), Some(Refusal::Cost));
        assert_eq!(budget.reserve(AttemptId(2), money(0), &HALF_DOLLAR), Err(Refusal::Cost));
    }

    #[test]
    fn an_attempt_that_dies_silently_still_costs_what_it_streamed() {
        let mut budget = Budget::default();
        budget.count(AttemptId(1), used(200_000), &HALF_DOLLAR);
        budget.settle(AttemptId(1), Usage::default());
        assert_eq!(budget.used(), money(200_000));
    }

    proptest! {
        /// However launches and ends are ordered: attempts that keep to their promise never exceed the cap.
        #[test]
        fn promises_kept_never_exceed_the_cap(wishes in prop::collection::vec((0u64..400_000, 0u8..101, any::<bool>()), 1..40)) {
            let mut budget = Budget::default();
            let mut running = Vec::new();
            for (number, (wish, share, settle)) in wishes.into_iter().enumerate() {
                let attempt = AttemptId(number as u64);
                if budget.reserve(attempt, money(wish), &HALF_DOLLAR).is_ok() {
                    running.push((attempt, wish * u64::from(share) / 100));
                }
                if settle && let Some((attempt, cost)) = running.pop() {
                    budget.settle(attempt, used(cost));
                }
                prop_assert!(budget.used().cost_micro_usd <= 500_000);
            }
            for (attempt, cost) in running {
                budget.settle(attempt, used(cost));
            }
            prop_assert!(budget.used().cost_micro_usd <= 500_000);
        }
    }
}
