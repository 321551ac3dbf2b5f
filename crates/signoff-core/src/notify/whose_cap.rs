//! Whose cap it is that stops a loop: its task's or the run's. The log does not say so, what was used does.

use crate::policy::{Caps, Refusal, Reservation};
use crate::review::Usage;

/// The cap that stops a loop.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cap {
    pub whose: Whose,
    /// What there is too little of.
    pub what: Refusal,
    /// In millionths of a dollar, tokens or milliseconds, as the cap.
    pub used: u64,
    pub most: u64,
}

/// Who has a cap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Each task.
    Task,
    /// The run as a whole.
    Run,
}

/// What is left of a cap; none where there is none.
#[derive(Debug, Clone, Copy)]
struct Rest {
    cap: Option<u64>,
    used: u64,
}

impl Rest {
    /// Without a cap there is always enough.
    fn left(self) -> u64 {
        self.cap.map_or(u64::MAX, |cap| cap.saturating_sub(self.used))
    }

    fn of(self, whose: Whose, what: Refusal) -> Option<Cap> {
        Some(Cap { whose, what, used: self.used, most: self.cap? })
    }

    /// The part of the cap that is left, in millionths.
    fn part(self) -> Option<u64> {
        let cap = self.cap?;
        let part = u128::from(self.left()) * 1_000_000 / u128::from(cap.max(1));
        Some(u64::try_from(part).unwrap_or(u64::MAX))
    }
}

/// Money, tokens and milliseconds.
fn rests((used, caps): (Usage, &Caps)) -> [Rest; 3] {
    let used = Reservation::from(used);
    let minutes = caps.max_minutes.map(|minutes| minutes.saturating_mul(60_000));
    [
        Rest { cap: caps.max_cost_micro_usd, used: used.cost_micro_usd },
        Rest { cap: caps.max_tokens, used: used.tokens },
        Rest { cap: minutes, used: used.duration_ms },
    ]
}

/// Of the three the one that is nearest to its end decides; there it is the task's cap if no less is left of the run's.
pub fn nearest(task: (Usage, &Caps), run: (Usage, &Caps)) -> Option<Cap> {
    let what = [Refusal::Cost, Refusal::Tokens, Refusal::Minutes];
    let pairs = what.into_iter().zip(rests(task).into_iter().zip(rests(run)));
    let parts = pairs.filter_map(|(what, (own, whole))| {
        let part = own.part().into_iter().chain(whole.part()).min()?;
        Some((part, what, own, whole))
    });
    let (_, what, own, whole) = parts.min_by_key(|(part, ..)| *part)?;
    let of_task = own.cap.is_some() && own.left() <= whole.left();
    if of_task { own.of(Whose::Task, what) } else { whole.of(Whose::Run, what) }
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
    fn it_is_the_cap_of_which_less_is_left() {
        let of_task = |own: (u64, Caps), whole: (u64, Caps)| {
            let nearest = nearest((spent(own.0), &own.1), (spent(whole.0), &whole.1));
            nearest.is_some_and(|cap| cap.whose == Whose::Task)
        };
        let (none, one, ten) = (Caps::default(), caps(Some(1), None), caps(Some(10), None));
        assert!(of_task((100, one), (100, none)), "only tasks have one");
        assert!(!of_task((100, none), (1000, ten)), "only the run has one");
        assert!(of_task((80, one), (700, ten)), "20 cents against three dollars");
        assert!(!of_task((10, one), (1000, ten)), "90 cents against nothing");
        assert!(of_task((100, one), (100, caps(Some(10), Some(9)))), "tokens are not the matter");
        assert!(!of_task((100, none), (100, none)), "nobody knows: once is enough");
    }
}
