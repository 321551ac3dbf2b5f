//! Agents that fall in for each other: who is asked, when, and how long that goes on.

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use signoff_core::ids::AttemptId;
use signoff_core::limited::{Backoff, LONGEST_WAIT, Refused};
use signoff_core::machine::{Chain, Event, Failure, Hold, LimitPlan, refused, step};
use signoff_core::policy::Span;

use crate::say::reviewed;
use crate::story::Story;

const MOST: u32 = 4;
const BACKOFF: Backoff = Backoff { first: Span { seconds: 1 }, most: Span { seconds: 2 } };
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// What happens to one job that every agent is refused at, with the time that each is told, for ever.
struct Day {
    story: Story,
    now: Timestamp,
    told: Vec<Option<u64>>,
    /// When each can be asked again at the soonest; never, if it is too far.
    free: Vec<Option<Timestamp>>,
    asked: Vec<usize>,
    /// The last attempt of each.
    last: Vec<Option<AttemptId>>,
}

enum Next {
    Asked,
    Waited(Duration),
    Failed(Failure),
}

impl Day {
    fn of(told: &[Option<u64>]) -> Self {
        let mut story = Story::of(reviewed("task"));
        story.policy.workflow.limits.max_rate_limits = MOST;
        let now = Timestamp::UNIX_EPOCH;
        let (free, last) = (vec![Some(now); told.len()], vec![None; told.len()]);
        Self { story, now, told: told.to_vec(), free, asked: Vec::new(), last }
    }

    fn take(&mut self, event: Event) {
        self.story.state = step(self.story.state.clone(), event, &self.story.policy).0;
    }

    /// Somebody is asked, which takes a while, and is refused.
    fn ask(&mut self, (takes, chance): (u64, u32)) -> Next {
        let attempt: AttemptId = self.story.writer();
        let turn = self.story.state.turn(attempt);
        assert!(self.free[turn].is_some_and(|free| free <= self.now), "{turn} is asked too soon");
        self.asked.push(turn);
        self.last[turn] = Some(attempt);
        self.now += Duration::from_secs(takes);
        let told = self.told[turn].map(Duration::from_secs);
        let within = told.is_none_or(|told| told <= LONGEST_WAIT);
        self.free[turn] = within.then(|| self.now + told.unwrap_or_default());
        let chain = Chain { stand_ins: self.told.len() - 1, now: self.now, backoff: BACKOFF, chance };
        let why = Refused { told, why: None };
        let event = refused(&self.story.state, attempt, why, &chain, &self.story.policy);
        if let Event::AttemptFailed { failure, .. } = event {
            return Next::Failed(failure);
        }
        let Event::RateLimited { plan, .. } = event else { panic!("{event:?}") };
        self.take(event);
        match plan {
            LimitPlan::FallBack => Next::Asked,
            LimitPlan::WaitUntil(until) => self.wait(until),
        }
    }

    fn wait(&mut self, until: Timestamp) -> Next {
        let waits = self.story.state.waits();
        let waited: Vec<_> = waits[0].refused.iter().map(|refusal| refusal.attempt).collect();
        let wait = until.duration_since(self.now).unsigned_abs();
        self.now = until;
        self.take(Event::Resumed { hold: Hold::RateLimit { until } });
        let next = self.story.state.turn(self.story.writer());
        assert_eq!(waited.first().copied(), self.last[next], "who is waited for is told first");
        assert_eq!(waited.len(), self.told.len(), "all others were refused too");
        Next::Waited(wait)
    }

    /// Until it fails; all the waits.
    fn whole(&mut self, pace: (u64, u32)) -> (Vec<u64>, Failure) {
        let mut waits = Vec::new();
        loop {
            match self.ask(pace) {
                Next::Asked => {}
                Next::Waited(wait) => waits.push(wait.as_secs()),
                Next::Failed(failure) => return (waits, failure),
            }
        }
    }
}

fn too_long(failure: &Failure) -> bool {
    matches!(failure, Failure::RateLimited { too_long: true, .. })
}

#[test]
fn the_one_that_is_free_first_is_waited_for() {
    let mut day = Day::of(&[Some(1), Some(5 * HOUR)]);
    let (waits, _) = day.whole((0, 0));
    assert_eq!(day.asked, [0, 1, 0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(waits, [1, 1, 1, 1, 5 * HOUR - 4, 5 * HOUR, 5 * HOUR, 5 * HOUR]);
}

#[test]
fn who_is_not_free_by_its_own_word_is_not_asked() {
    let mut day = Day::of(&[Some(5 * HOUR), Some(1)]);
    let (waits, _) = day.whole((0, 0));
    assert_eq!(day.asked, [0, 1, 1, 1, 1, 1, 0, 0, 0, 0]);
    assert_eq!(waits.iter().sum::<u64>(), 4 * 5 * HOUR);
}

#[test]
fn too_long_is_only_what_all_say() {
    let mut day = Day::of(&[Some(1), Some(5 * DAY)]);
    let (_, failure) = day.whole((0, 0));
    assert_eq!(day.asked, [0, 1, 0, 0, 0, 0]);
    assert!(!too_long(&failure), "{failure:?}");
    let mut day = Day::of(&[Some(2 * DAY), Some(5 * DAY)]);
    let (waits, failure) = day.whole((0, 0));
    assert_eq!((day.asked, waits), (vec![0, 1], vec![]));
    assert!(too_long(&failure), "{failure:?}");
}

fn delay() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (0..5u64).prop_map(Some), (1..DAY).prop_map(Some), Just(Some(5 * DAY))]
}

proptest! {
    /// Whatever is told: nobody is asked too soon, nobody waits longer than for the first one, and it ends.
    #[test]
    fn waits_are_for_the_first_one_and_come_to_an_end(
        told in prop::collection::vec(delay(), 1..=3),
        takes in 0..10u64,
        chance: u32,
    ) {
        let mut day = Day::of(&told);
        loop {
            let before = day.story.state.clone();
            match day.ask((takes, chance)) {
                Next::Asked => {}
                Next::Waited(wait) => {
                    let since = day.now - wait;
                    let asked = |turn: &usize| day.asked.iter().filter(|one| *one == turn).count();
                    let left = (0..told.len()).filter(|turn| asked(turn) <= MOST as usize);
                    let first = left.filter_map(|turn| day.free[turn]).min().expect("somebody is waited for");
                    // What is told is spread, and what is guessed grows: both by no more than the longest guess.
                    let slack = Duration::from_secs(BACKOFF.most.seconds);
                    prop_assert!(day.now <= first.max(since) + slack, "{wait:?}");
                }
                Next::Failed(failure) => {
                    let all = told.iter().all(|told| told.is_some_and(|told| told > DAY));
                    prop_assert_eq!(too_long(&failure), all);
                    break;
                }
            }
            prop_assert_ne!(before, day.story.state.clone());
            prop_assert!(day.asked.len() <= told.len() * (MOST as usize + 1));
        }
        prop_assert!((0..told.len()).all(|turn| day.asked.contains(&turn)), "everybody was asked");
    }
}
