//! Budgets of money, tokens and minutes: reserved before a launch and counted while they are used.
//!
//! A cap that is only checked at the end does not work: a $0.50 limit once cost $5.11 that way. So an attempt
//! reserves its expected usage, and parallel launches cannot reserve the same money twice.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::ids::AttemptId;
use crate::review::Usage;

/// The caps of a task or a run. None means no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Caps {
    pub max_cost_micro_usd: Option<u64>,
    pub max_tokens: Option<u64>,
    pub max_minutes: Option<u64>,
}

/// The expected usage of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Reservation {
    pub cost_micro_usd: u64,
    pub tokens: u64,
    pub duration_ms: u64,
}

/// The cap that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, thiserror::Error)]
#[serde(rename_all = "snake_case")]
pub enum CapReached {
    #[error("the cost cap is reached")]
    Cost,
    #[error("the token cap is reached")]
    Tokens,
    #[error("the time cap is reached")]
    Minutes,
}

/// Used and reserved amounts.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Budget {
    spent: Reservation,
    open: BTreeMap<AttemptId, AttemptAccount>,
}

/// A running attempt: its reservation and its usage so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
struct AttemptAccount {
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

    fn fieldwise_max(self, other: Self) -> Self {
        Self {
            cost_micro_usd: self.cost_micro_usd.max(other.cost_micro_usd),
            tokens: self.tokens.max(other.tokens),
            duration_ms: self.duration_ms.max(other.duration_ms),
        }
    }

    /// The first cap that an amount passes, as `passes(amount, cap)` says.
    fn first_cap(self, caps: &Caps, passes: fn(&u64, &u64) -> bool) -> Option<CapReached> {
        let minutes = caps.max_minutes.map(|minutes| minutes.saturating_mul(60_000));
        let amounts = [
            (self.cost_micro_usd, caps.max_cost_micro_usd, CapReached::Cost),
            (self.tokens, caps.max_tokens, CapReached::Tokens),
            (self.duration_ms, minutes, CapReached::Minutes),
        ];
        let passed = |(amount, cap, _): &(u64, Option<u64>, CapReached)| cap.is_some_and(|cap| passes(amount, &cap));
        amounts.into_iter().find(passed).map(|(_, _, reached)| reached)
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
    /// Reserves the expected usage of an attempt, or returns the cap that forbids the launch. A reached cap refuses
    /// even an attempt that expects to be free.
    pub fn reserve(&mut self, attempt: AttemptId, expected: Reservation, caps: &Caps) -> Result<(), CapReached> {
        self.at_cap(caps).map_or(Ok(()), Err)?;
        self.promised().plus(expected).first_cap(caps, u64::gt).map_or(Ok(()), Err)?;
        self.open.insert(attempt, AttemptAccount { reserved: expected, used: Reservation::default() });
        Ok(())
    }

    /// Updates a running attempt's usage. Returns the cap that is now reached, if any.
    pub fn count(&mut self, attempt: AttemptId, usage: Usage, caps: &Caps) -> Option<CapReached> {
        self.open.entry(attempt).or_default().used = usage.into();
        self.at_cap(caps)
    }

    /// Closes an attempt with its actual usage and frees the rest of its reservation.
    pub fn settle(&mut self, attempt: AttemptId, usage: Usage) {
        let seen = self.open.remove(&attempt).map(|account| account.used).unwrap_or_default();
        // An agent that dies without a final report has still used what it streamed.
        self.spent = self.spent.plus(Reservation::from(usage).fieldwise_max(seen));
    }

    /// The usage of closed attempts and of the running ones so far.
    pub fn used(&self) -> Reservation {
        self.open.values().fold(self.spent, |sum, account| sum.plus(account.used))
    }

    fn promised(&self) -> Reservation {
        let promise = |account: &AttemptAccount| account.reserved.fieldwise_max(account.used);
        self.open.values().fold(self.spent, |sum, account| sum.plus(promise(account)))
    }

    fn at_cap(&self, caps: &Caps) -> Option<CapReached> {
        self.used().first_cap(caps, u64::ge)
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
    fn two_attempts_cannot_reserve_the_same_money() {
        let mut budget = Budget::default();
        assert_eq!(budget.reserve(AttemptId(1), money(300_000), &HALF_DOLLAR), Ok(()));
        assert_eq!(budget.reserve(AttemptId(2), money(300_000), &HALF_DOLLAR), Err(CapReached::Cost));
        budget.settle(AttemptId(1), used(100_000));
        assert_eq!(budget.reserve(AttemptId(2), money(300_000), &HALF_DOLLAR), Ok(()));
    }

    #[test]
    fn the_cap_is_detected_during_an_attempt() {
        let mut budget = Budget::default();
        budget.reserve(AttemptId(1), money(100_000), &HALF_DOLLAR).unwrap();
        assert_eq!(budget.count(AttemptId(1), used(499_999), &HALF_DOLLAR), None);
        assert_eq!(budget.count(AttemptId(1), used(500_000), &HALF_DOLLAR), Some(CapReached::Cost));
        assert_eq!(budget.reserve(AttemptId(2), money(0), &HALF_DOLLAR), Err(CapReached::Cost));
    }

    #[test]
    fn an_attempt_without_a_final_report_costs_what_it_streamed() {
        let mut budget = Budget::default();
        budget.count(AttemptId(1), used(200_000), &HALF_DOLLAR);
        budget.settle(AttemptId(1), Usage::default());
        assert_eq!(budget.used(), money(200_000));
    }

    proptest! {
        /// Attempts within their reservations never exceed the cap, in any order of launches and ends.
        #[test]
        fn attempts_within_their_reservations_never_exceed_the_cap(amounts in prop::collection::vec((0u64..400_000, 0u8..101, any::<bool>()), 1..40)) {
            let mut budget = Budget::default();
            let mut running = Vec::new();
            for (number, (amount, share, settle)) in amounts.into_iter().enumerate() {
                let attempt = AttemptId(number as u64);
                if budget.reserve(attempt, money(amount), &HALF_DOLLAR).is_ok() {
                    running.push((attempt, amount * u64::from(share) / 100));
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
