//! Fallback agents under rate limits: which agent is tried, when, and how often.

use std::time::Duration;

use jiff::Timestamp;
use proptest::prelude::*;
use signoff_core::ids::AttemptId;
use signoff_core::machine::{AttemptFailure, Event, FallbackChain, LimitPlan, PauseReason, rate_limit_event, step};
use signoff_core::policy::TimeSpan;
use signoff_core::rate_limit::{Backoff, MAX_WAIT, RateLimited};

use crate::machine::builders::reviewed;
use crate::machine::story::Story;

const MOST: u32 = 4;
const BACKOFF: Backoff = Backoff { first: TimeSpan { seconds: 1 }, max: TimeSpan { seconds: 2 } };
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// A job for which every agent is rate limited on every try, each with its own stated delay.
struct RateLimitedJob {
    story: Story,
    now: Timestamp,
    delays: Vec<Option<u64>>,
    /// The earliest time of the next try of each agent. `None` if its delay is too long.
    free: Vec<Option<Timestamp>>,
    tried: Vec<usize>,
    /// The last attempt of each agent.
    last: Vec<Option<AttemptId>>,
}

enum Next {
    Tried,
    Waited(Duration),
    Failed(AttemptFailure),
}

impl RateLimitedJob {
    fn new(delays: &[Option<u64>]) -> Self {
        let mut story = Story::new(reviewed("task"));
        story.policy.workflow.limits.max_rate_limits = MOST;
        let now = Timestamp::UNIX_EPOCH;
        let (free, last) = (vec![Some(now); delays.len()], vec![None; delays.len()]);
        Self { story, now, delays: delays.to_vec(), free, tried: Vec::new(), last }
    }

    fn apply(&mut self, event: Event) {
        self.story.state = step(self.story.state.clone(), event, &self.story.policy).0;
    }

    /// Starts the next attempt, which takes `takes` seconds and is rate limited.
    fn ask(&mut self, (takes, chance): (u64, u32)) -> Next {
        let attempt: AttemptId = self.story.writer();
        let turn = self.story.state.agent_index(attempt);
        assert!(self.free[turn].is_some_and(|free| free <= self.now), "{turn} is tried too soon");
        self.tried.push(turn);
        self.last[turn] = Some(attempt);
        self.now += Duration::from_secs(takes);
        let retry_after = self.delays[turn].map(Duration::from_secs);
        let within = retry_after.is_none_or(|delay| delay <= MAX_WAIT);
        self.free[turn] = within.then(|| self.now + retry_after.unwrap_or_default());
        let chain = FallbackChain { fallbacks: self.delays.len() - 1, now: self.now, backoff: BACKOFF, jitter: chance };
        let why = RateLimited { retry_after, error: None };
        let event = rate_limit_event(&self.story.state, attempt, why, &chain, &self.story.policy);
        if let Event::AttemptFailed { failure, .. } = event {
            return Next::Failed(failure);
        }
        let Event::RateLimited { plan, .. } = event else { panic!("{event:?}") };
        self.apply(event);
        match plan {
            LimitPlan::FallBack => Next::Tried,
            LimitPlan::WaitUntil(until) => self.wait(until),
        }
    }

    fn wait(&mut self, until: Timestamp) -> Next {
        let waits = self.story.state.pending_rate_limits();
        let waited: Vec<_> = waits[0].refused.iter().map(|refusal| refusal.attempt).collect();
        let wait = until.duration_since(self.now).unsigned_abs();
        self.now = until;
        self.apply(Event::Resumed { reason: PauseReason::RateLimit { until } });
        let next = self.story.state.agent_index(self.story.writer());
        assert_eq!(waited.first().copied(), self.last[next], "the agent that is waited for comes first");
        assert_eq!(waited.len(), self.delays.len(), "all others were refused too");
        Next::Waited(wait)
    }

    /// Runs until the job fails. Returns all waits in seconds, and the failure.
    fn run_to_failure(&mut self, pace: (u64, u32)) -> (Vec<u64>, AttemptFailure) {
        let mut waits = Vec::new();
        loop {
            match self.ask(pace) {
                Next::Tried => {}
                Next::Waited(wait) => waits.push(wait.as_secs()),
                Next::Failed(failure) => return (waits, failure),
            }
        }
    }
}

fn too_long(failure: &AttemptFailure) -> bool {
    matches!(failure, AttemptFailure::RateLimited { too_long: true, .. })
}

#[test]
fn the_wait_ends_when_the_first_agent_is_available() {
    let mut job = RateLimitedJob::new(&[Some(1), Some(5 * HOUR)]);
    let (waits, _) = job.run_to_failure((0, 0));
    assert_eq!(job.tried, [0, 1, 0, 0, 0, 0, 1, 1, 1, 1]);
    assert_eq!(waits, [1, 1, 1, 1, 5 * HOUR - 4, 5 * HOUR, 5 * HOUR, 5 * HOUR]);
}

#[test]
fn an_agent_is_not_tried_before_its_stated_delay_ends() {
    let mut job = RateLimitedJob::new(&[Some(5 * HOUR), Some(1)]);
    let (waits, _) = job.run_to_failure((0, 0));
    assert_eq!(job.tried, [0, 1, 1, 1, 1, 1, 0, 0, 0, 0]);
    assert_eq!(waits.iter().sum::<u64>(), 4 * 5 * HOUR);
}

#[test]
fn the_delay_is_too_long_only_if_it_is_for_all_agents() {
    let mut job = RateLimitedJob::new(&[Some(1), Some(5 * DAY)]);
    let (_, failure) = job.run_to_failure((0, 0));
    assert_eq!(job.tried, [0, 1, 0, 0, 0, 0]);
    assert!(!too_long(&failure), "{failure:?}");
    let mut job = RateLimitedJob::new(&[Some(2 * DAY), Some(5 * DAY)]);
    let (waits, failure) = job.run_to_failure((0, 0));
    assert_eq!((job.tried, waits), (vec![0, 1], vec![]));
    assert!(too_long(&failure), "{failure:?}");
}

fn delay() -> impl Strategy<Value = Option<u64>> {
    prop_oneof![Just(None), (0..5u64).prop_map(Some), (1..DAY).prop_map(Some), Just(Some(5 * DAY))]
}

proptest! {
    /// For any delays: no agent is tried too early, a wait ends when the first agent is available, and the job ends.
    #[test]
    fn waits_end_with_the_first_available_agent_and_are_bounded(
        delays in prop::collection::vec(delay(), 1..=3),
        takes in 0..10u64,
        chance: u32,
    ) {
        let mut job = RateLimitedJob::new(&delays);
        loop {
            let before = job.story.state.clone();
            match job.ask((takes, chance)) {
                Next::Tried => {}
                Next::Waited(wait) => {
                    let since = job.now - wait;
                    let tried = |turn: &usize| job.tried.iter().filter(|one| *one == turn).count();
                    let left = (0..delays.len()).filter(|turn| tried(turn) <= MOST as usize);
                    let first = left.filter_map(|turn| job.free[turn]).min().expect("an agent is waited for");
                    // Jitter and backoff add at most the longest backoff.
                    let slack = Duration::from_secs(BACKOFF.max.seconds);
                    prop_assert!(job.now <= first.max(since) + slack, "{wait:?}");
                }
                Next::Failed(failure) => {
                    let all = delays.iter().all(|delay| delay.is_some_and(|delay| delay > DAY));
                    prop_assert_eq!(too_long(&failure), all);
                    break;
                }
            }
            prop_assert_ne!(before, job.story.state.clone());
            prop_assert!(job.tried.len() <= delays.len() * (MOST as usize + 1));
        }
        prop_assert!((0..delays.len()).all(|turn| job.tried.contains(&turn)), "every agent was tried");
    }
}
