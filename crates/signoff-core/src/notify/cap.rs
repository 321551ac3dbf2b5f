//! Finds the cap that pauses a loop: that of its task or that of the run. The log does not record it, so it is
//! derived from the usage.

use crate::policy::{CapReached, Caps, Reservation};
use crate::review::Usage;

/// The cap that pauses a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BindingCap {
    pub owner: CapOwner,
    /// The limited resource.
    pub kind: CapReached,
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

/// A cap and its usage.
#[derive(Debug, Clone, Copy)]
struct CapUsage {
    cap: Option<u64>,
    used: u64,
}

impl CapUsage {
    /// The remaining amount. Without a cap it is unlimited.
    fn left(self) -> u64 {
        self.cap.map_or(u64::MAX, |cap| cap.saturating_sub(self.used))
    }

    fn into_cap(self, whose: CapOwner, what: CapReached) -> Option<BindingCap> {
        Some(BindingCap { owner: whose, kind: what, used: self.used, limit: self.cap? })
    }

    /// The remaining part of the cap, in millionths.
    fn remaining_millionths(self) -> Option<u64> {
        let cap = self.cap?;
        let part = u128::from(self.left()) * 1_000_000 / u128::from(cap.max(1));
        Some(u64::try_from(part).unwrap_or(u64::MAX))
    }
}

/// The caps on cost, tokens and milliseconds.
fn cap_usage(used: Usage, caps: &Caps) -> [CapUsage; 3] {
    let used = Reservation::from(used);
    let minutes = caps.max_minutes.map(|minutes| minutes.saturating_mul(60_000));
    [
        CapUsage { cap: caps.max_cost_micro_usd, used: used.cost_micro_usd },
        CapUsage { cap: caps.max_tokens, used: used.tokens },
        CapUsage { cap: minutes, used: used.duration_ms },
    ]
}

/// Picks the resource with the smallest remaining part. Its cap is the task's if no less remains of the run's.
pub fn nearest(task: Usage, task_caps: &Caps, run: Usage, run_caps: &Caps) -> Option<BindingCap> {
    let what = [CapReached::Cost, CapReached::Tokens, CapReached::Minutes];
    let pairs = what.into_iter().zip(cap_usage(task, task_caps).into_iter().zip(cap_usage(run, run_caps)));
    let parts = pairs.filter_map(|(what, (own, whole))| {
        let part = own.remaining_millionths().into_iter().chain(whole.remaining_millionths()).min()?;
        Some((part, what, own, whole))
    });
    let (_, what, own, whole) = parts.min_by_key(|(part, ..)| *part)?;
    let of_task = own.cap.is_some() && own.left() <= whole.left();
    if of_task { own.into_cap(CapOwner::Task, what) } else { whole.into_cap(CapOwner::Run, what) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caps(dollars: Option<u64>, tokens: Option<u64>) -> Caps {
        let max_cost_micro_usd = dollars.map(|dollars| dollars * 1_000_000);
        Caps { max_cost_micro_usd, max_tokens: tokens, ..Caps::default() }
    }

    fn spent(cents: u64) -> Usage {
        Usage { cost_micro_usd: cents * 10_000, ..Usage::default() }
    }

    #[test]
    fn the_cap_with_less_left_is_reported() {
        let of_task = |own: (u64, Caps), whole: (u64, Caps)| {
            let nearest = nearest(spent(own.0), &own.1, spent(whole.0), &whole.1);
            nearest.is_some_and(|cap| cap.owner == CapOwner::Task)
        };
        let (none, one, ten) = (Caps::default(), caps(Some(1), None), caps(Some(10), None));
        assert!(of_task((100, one), (100, none)), "only tasks have one");
        assert!(!of_task((100, none), (1000, ten)), "only the run has one");
        assert!(of_task((80, one), (700, ten)), "20 cents against three dollars");
        assert!(!of_task((10, one), (1000, ten)), "90 cents against nothing");
        assert!(of_task((100, one), (100, caps(Some(10), Some(9)))), "tokens are not the matter");
        assert!(!of_task((100, none), (100, none)), "unknown: once is enough");
    }
}
