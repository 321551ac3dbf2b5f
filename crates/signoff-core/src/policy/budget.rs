//! Budgets of money, tokens and minutes: what may be launched, given what is spent and what is planned.
//!
//! Planned is the expected usage of an attempt and of the running ones, so that parallel launches cannot spend the same
//! money twice.

use serde::{Deserialize, Serialize};

use crate::review::Usage;

/// The caps of a task or a run. None means no cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Caps {
    pub max_cost_micro_usd: Option<u64>,
    pub max_tokens: Option<u64>,
    pub max_minutes: Option<u64>,
}

/// The expected usage of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ResourceAmounts {
    pub cost_micro_usd: u64,
    pub tokens: u64,
    pub duration_ms: u64,
}

/// The cap that is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetResource {
    Cost,
    Tokens,
    Minutes,
}

/// The cap that pauses a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindingCap {
    pub owner: CapOwner,
    /// The limited resource.
    pub kind: BudgetResource,
    /// In millionths of a dollar, tokens or milliseconds, like the cap.
    pub used: u64,
    pub limit: u64,
}

/// Whether a cap applies to a task or to the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapOwner {
    /// Each task.
    Task,
    /// The run as a whole.
    Run,
}

/// An amount and its cap.
#[derive(Debug, Clone, Copy)]
struct CapUsage {
    kind: BudgetResource,
    used: u64,
    cap: Option<u64>,
}

impl CapUsage {
    /// The remaining amount. Without a cap it is unlimited.
    fn left(self) -> u64 {
        self.cap.map_or(u64::MAX, |cap| cap.saturating_sub(self.used))
    }

    /// The remaining part of the cap, in millionths.
    fn remaining_millionths(self) -> Option<u64> {
        let cap = self.cap?;
        let part = u128::from(self.left()) * 1_000_000 / u128::from(cap.max(1));
        Some(u64::try_from(part).unwrap_or(u64::MAX))
    }
}

/// Finds the cap that pauses a loop: that of its task or that of the run. The log does not record it, so it is derived
/// from the usage: the resource with the smallest remaining part. Its cap is the task's if no less remains of the
/// run's.
pub fn binding_cap(task: Usage, task_caps: &Caps, run: Usage, run_caps: &Caps) -> Option<BindingCap> {
    let (task, run) = (ResourceAmounts::from(task).usages(task_caps), ResourceAmounts::from(run).usages(run_caps));
    let parts = task.into_iter().zip(run).filter_map(|(own, whole)| {
        let part = own.remaining_millionths().into_iter().chain(whole.remaining_millionths()).min()?;
        Some((part, own, whole))
    });
    let (_, own, whole) = parts.min_by_key(|(part, ..)| *part)?;
    let of_task = own.cap.is_some() && own.left() <= whole.left();
    let (owner, binding) = if of_task { (CapOwner::Task, own) } else { (CapOwner::Run, whole) };
    Some(BindingCap { owner, kind: binding.kind, used: binding.used, limit: binding.cap? })
}

impl ResourceAmounts {
    pub fn plus(self, other: Self) -> Self {
        Self {
            cost_micro_usd: self.cost_micro_usd.saturating_add(other.cost_micro_usd),
            tokens: self.tokens.saturating_add(other.tokens),
            duration_ms: self.duration_ms.saturating_add(other.duration_ms),
        }
    }

    fn usages(self, caps: &Caps) -> [CapUsage; 3] {
        let minutes = caps.max_minutes.map(|minutes| minutes.saturating_mul(60_000));
        [
            CapUsage { kind: BudgetResource::Cost, used: self.cost_micro_usd, cap: caps.max_cost_micro_usd },
            CapUsage { kind: BudgetResource::Tokens, used: self.tokens, cap: caps.max_tokens },
            CapUsage { kind: BudgetResource::Minutes, used: self.duration_ms, cap: minutes },
        ]
    }

    /// The first cap that an amount passes, as `passes(amount, cap)` says.
    fn first_cap(self, caps: &Caps, passes: fn(&u64, &u64) -> bool) -> Option<BudgetResource> {
        let passed = |usage: &CapUsage| usage.cap.is_some_and(|cap| passes(&usage.used, &cap));
        self.usages(caps).into_iter().find(passed).map(|usage| usage.kind)
    }
}

impl From<Usage> for ResourceAmounts {
    fn from(usage: Usage) -> Self {
        Self {
            cost_micro_usd: usage.cost_micro_usd,
            tokens: usage.input_tokens.saturating_add(usage.output_tokens),
            duration_ms: usage.duration_ms,
        }
    }
}

impl Caps {
    /// The cap that forbids an attempt if so much is spent and planned. A reached cap forbids even an attempt that
    /// expects to be free.
    pub fn refusal(&self, spent: ResourceAmounts, planned: ResourceAmounts) -> Option<BudgetResource> {
        spent.first_cap(self, u64::ge).or_else(|| spent.plus(planned).first_cap(self, u64::gt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const HALF_DOLLAR: Caps = Caps { max_cost_micro_usd: Some(500_000), max_tokens: None, max_minutes: None };

    fn money(cost_micro_usd: u64) -> ResourceAmounts {
        ResourceAmounts { cost_micro_usd, ..ResourceAmounts::default() }
    }

    #[test]
    fn two_attempts_cannot_reserve_the_same_money() {
        assert_eq!(HALF_DOLLAR.refusal(money(0), money(300_000)), None);
        assert_eq!(HALF_DOLLAR.refusal(money(0), money(600_000)), Some(BudgetResource::Cost));
        assert_eq!(HALF_DOLLAR.refusal(money(100_000), money(300_000)), None);
    }

    #[test]
    fn a_reached_cap_refuses_even_a_free_attempt() {
        assert_eq!(HALF_DOLLAR.refusal(money(499_999), money(0)), None);
        assert_eq!(HALF_DOLLAR.refusal(money(500_000), money(0)), Some(BudgetResource::Cost));
    }

    proptest! {
        /// Attempts within their reservations never exceed the cap, in any order of launches and ends.
        #[test]
        fn attempts_within_their_reservations_never_exceed_the_cap(amounts in prop::collection::vec((0u64..400_000, 0u8..101, any::<bool>()), 1..40)) {
            let mut spent = 0;
            let mut running: Vec<(u64, u64)> = Vec::new();
            for (amount, share, settle) in amounts {
                let reserved: u64 = running.iter().map(|(reserved, _)| reserved).sum();
                if HALF_DOLLAR.refusal(money(spent), money(reserved + amount)).is_none() {
                    running.push((amount, amount * u64::from(share) / 100));
                }
                if settle && let Some((_, cost)) = running.pop() {
                    spent += cost;
                }
                prop_assert!(spent <= 500_000);
            }
            spent += running.into_iter().map(|(_, cost)| cost).sum::<u64>();
            prop_assert!(spent <= 500_000);
        }
    }

    fn dollar_caps(dollars: Option<u64>, tokens: Option<u64>) -> Caps {
        let max_cost_micro_usd = dollars.map(|dollars| dollars * 1_000_000);
        Caps { max_cost_micro_usd, max_tokens: tokens, ..Caps::default() }
    }

    fn spent_cents(cents: u64) -> Usage {
        Usage { cost_micro_usd: cents * 10_000, ..Usage::default() }
    }

    #[test]
    fn the_cap_with_less_left_is_reported() {
        let of_task = |own: (u64, Caps), whole: (u64, Caps)| {
            let nearest = binding_cap(spent_cents(own.0), &own.1, spent_cents(whole.0), &whole.1);
            nearest.is_some_and(|cap| cap.owner == CapOwner::Task)
        };
        let (none, one, ten) = (Caps::default(), dollar_caps(Some(1), None), dollar_caps(Some(10), None));
        assert!(of_task((100, one), (100, none)), "only tasks have one");
        assert!(!of_task((100, none), (1000, ten)), "only the run has one");
        assert!(of_task((80, one), (700, ten)), "20 cents against three dollars");
        assert!(!of_task((10, one), (1000, ten)), "90 cents against nothing");
        assert!(of_task((100, one), (100, dollar_caps(Some(10), Some(9)))), "tokens are not the matter");
        assert!(!of_task((100, none), (100, none)), "unknown: once is enough");
    }
}
