//! Concurrency limits, rate limits, fallback agents and cost caps.

use serde_json::json;
use signoff_core::task::TaskSpec;
use signoff_core::wire::{Fact, LoopFact};
use signoff_core::{
    ids::{LoopId, RunId},
    machine::Event,
};
use signoff_engine::dispatcher::RunLoopOptions;
use signoff_term::show::{AttemptRow, RunHistory};
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::story::Story;

use crate::dispatcher::scripts::{approves, lines, wait_for_others};

/// Adds this many tasks without a review.
fn add(story: &Story, tasks: usize) {
    for number in 1..=tasks {
        story.add_task(TaskSpec::from_text(&format!("Task {number}")));
    }
}

fn work(story: &Story, jobs: usize) {
    story.work_with(jobs, RunLoopOptions::default());
}

/// The agents of these tasks wait for each other, and the others for none.
fn tasks_that_wait_for_each_other(tasks: &[&'static str]) -> impl FnOnce(AgentScript) -> AgentScript {
    move |script| {
        let done = |rule: ScriptRule| rule.write("{task}.txt", "done\n");
        let waits = |own: &&'static str| done(wait_for_others(ScriptRule::role("implement").task(own), own, tasks));
        tasks.iter().map(waits).fold(script, AgentScript::rule).rule(done(ScriptRule::role("implement")))
    }
}

#[test]
fn no_more_agents_of_a_provider_run_than_allowed() {
    let story = Story::configured("[limits]\nagents_per_provider = 2\n", tasks_that_wait_for_each_other(&["1", "2"]));
    add(&story, 5);
    work(&story, 5);
    assert!(story.tasks().iter().all(|row| row.status.into_str() == "completed"));
    assert_eq!((story.calls().len(), story.executor.max_concurrent()), (5, 2));
}

#[test]
fn without_a_limit_all_agents_run_at_once() {
    let story = Story::new(tasks_that_wait_for_each_other(&["1", "2", "3", "4", "5"]));
    add(&story, 5);
    work(&story, 5);
    assert_eq!(story.executor.max_concurrent(), 5);
}

#[test]
fn one_job_is_one_task_at_a_time() {
    let story = Story::new(|script| approves(script.rule(ScriptRule::role("implement").write("{task}.txt", "work\n"))));
    for title in ["One", "Two", "Three"] {
        story.add(title);
    }
    work(&story, 1);
    assert_eq!((story.calls().len(), story.executor.max_concurrent()), (6, 1));
}

/// One agent at a time: attempts start in the order in which they were requested.
#[test]
fn attempts_start_in_the_order_of_their_requests() {
    let story = Story::configured("[limits]\nagents_per_provider = 1\n", |script| {
        approves(script.rule(ScriptRule::role("implement").write("{task}.txt", "done\n")))
    });
    for title in ["One", "Two", "Three"] {
        story.add(title);
    }
    work(&story, 3);
    let (mut wanted, mut started) = (Vec::new(), Vec::new());
    for recorded in story.log(RunId(1)) {
        let Fact::Loop(loop_id, fact) = &recorded.fact else { continue };
        if let LoopFact::Transitioned(Event::Started { .. }) = fact {
            wanted.push((loop_id.clone(), "implement".to_owned()));
        } else if let LoopFact::Transitioned(Event::WorkEnded { .. }) = fact {
            wanted.push((loop_id.clone(), "review".to_owned()));
        } else if let LoopFact::AttemptStarted { launch, .. } = fact {
            started.push((loop_id.clone(), launch.role.clone()));
        }
    }
    assert_eq!((started.len(), &started), (6, &wanted));
    assert_eq!(story.executor.max_concurrent(), 1);
}

/// A task whose implementers are a chain of fallbacks. `calls` are the ends of their calls, in order.
fn run_with_fallbacks(agents: &[&str], calls: Vec<ScriptRule>) -> Story {
    run_with_backoff("backoff = \"0s\"", agents, calls)
}

/// Like `run_with_fallbacks`, with these keys of the backoff.
fn run_with_backoff(backoff: &str, agents: &[&str], calls: Vec<ScriptRule>) -> Story {
    let mut tables = "[roles]\nimplement = \"one\"\nreview = \"scripted\"\n".to_owned();
    for (number, name) in agents.iter().enumerate() {
        let fallback = agents.get(number + 1).map(|next| format!("fallback = \"{next}\"\n")).unwrap_or_default();
        tables.push_str(&format!("[agents.{name}]\nkind = \"command\"\ncommand = [\"{name}\"]\n{fallback}"));
    }
    let settings = format!("[limits]\n{backoff}\nmax_rate_limits = 5\n{tables}");
    let story = Story::configured(&settings, |script| {
        let numbered = (1..).zip(calls).map(|(number, rule)| rule.call(number));
        approves(numbered.fold(script, AgentScript::rule))
    });
    story.add("Try");
    story.work();
    story
}

/// The lines without times.
fn lines_without_times(story: &Story) -> String {
    let line = |line: &str| line.split(" until ").next().unwrap_or_default().to_owned();
    lines(story).lines().map(line).collect::<Vec<_>>().join("\n")
}

/// The attempts that `signoff show` lists, with their outcomes.
pub fn attempts(story: &Story) -> Vec<String> {
    let mut history = RunHistory::default();
    history.extend(story.log(RunId(1)));
    let line = |row: &AttemptRow| format!("{} {}", row.agent, row.outcome.map_or("", <&str>::from));
    history.attempts(&LoopId::new("1")).iter().map(line).collect()
}

/// The implementers in the order in which they were called.
fn implementers_called(story: &Story) -> String {
    story.calls_as("implement").iter().map(|call| call.agent.clone()).collect::<Vec<_>>().join(" ")
}

fn implement() -> ScriptRule {
    ScriptRule::role("implement")
}

fn succeeds() -> ScriptRule {
    implement().write("a.txt", "hi\n")
}

fn rate_limited() -> ScriptRule {
    implement().exit(75)
}

/// Reports a retry delay and exits as rate limited.
fn rate_limited_for(seconds: u32) -> ScriptRule {
    implement().usage(json!({ "retry_after_seconds": seconds })).exit(75)
}

#[test]
fn the_agent_that_is_available_first_is_waited_for() {
    for longest in [5 * 3600, 5 * 24 * 3600] {
        let story = run_with_fallbacks(&["one", "two"], vec![rate_limited(), rate_limited_for(longest), succeeds()]);
        assert_eq!(
            (implementers_called(&story).as_str(), story.task(1).status.into_str()),
            ("one two one", "completed")
        );
        let later = || vec![rate_limited(), rate_limited(), rate_limited(), succeeds()];
        let calls = [rate_limited_for(longest)].into_iter().chain(later()).collect();
        let story = run_with_fallbacks(&["one", "two"], calls);
        assert_eq!(
            (implementers_called(&story).as_str(), story.task(1).status.into_str()),
            ("one two two two two", "completed")
        );
    }
}

#[test]
fn fallbacks_are_tried_in_order_then_the_first_agent_again() {
    let calls = vec![
        rate_limited(),
        implement().complain("API Error: 529 overloaded_error\n").exit(1),
        implement().say("You have reached your usage limit.\n").exit(1),
        succeeds(),
    ];
    let story = run_with_fallbacks(&["one", "two", "three"], calls);
    assert_eq!(implementers_called(&story), "one two three one");
    assert_eq!(story.outcome(1), "1 completed approved APPROVED - 1");
    let expected = ["one rate_limited", "two rate_limited", "three rate_limited", "one complete", "scripted reviewed"];
    assert_eq!(attempts(&story), expected);
    insta::assert_snapshot!(lines_without_times(&story), @"
    Running task #1: Try
      [1/3] Implementing...
      [1/3] Rate limited: another agent takes over
      [1/3] Overloaded (API Error: 529 overloaded_error): another agent takes over
      [1/3] Rate limited (You have reached your usage limit.): waiting
      [1/3] Resuming: the wait is over
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
}

#[test]
fn a_fallback_starts_without_a_wait_and_nothing_has_failed() {
    let an_hour = "backoff = \"1h\"\nbackoff_max = \"1h\"";
    let story = run_with_backoff(an_hour, &["one", "two"], vec![rate_limited(), succeeds()]);
    assert_eq!(implementers_called(&story), "one two");
    assert_eq!(story.outcome(1), "1 completed approved APPROVED - 1");
    assert_eq!(story.task(1).wait, None);
    assert_eq!(attempts(&story), ["one rate_limited", "two complete", "scripted reviewed"]);
}

#[test]
fn too_many_rate_limits_fail_the_attempt() {
    let story = run_with_fallbacks(&["one"], (0..7).map(|_| rate_limited()).collect());
    assert_eq!(implementers_called(&story), "one one one one one one");
    assert_eq!(story.outcome(1), "1 failed failed - implementer_failed 0");
    assert_eq!(attempts(&story)[5], "one rate_limited");
    insta::assert_snapshot!(lines_without_times(&story), @"
    Running task #1: Try
      [1/3] Implementing...
      [1/3] Rate limited: waiting
      [1/3] Resuming: the wait is over
      [1/3] Rate limited: waiting
      [1/3] Resuming: the wait is over
      [1/3] Rate limited: waiting
      [1/3] Resuming: the wait is over
      [1/3] Rate limited: waiting
      [1/3] Resuming: the wait is over
      [1/3] Rate limited: waiting
      [1/3] Resuming: the wait is over
      [1/3] Implementation failed: its provider rate-limited it 6 times in a row (rate limit)
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
}

#[test]
fn a_delay_of_more_than_a_day_fails_the_attempt() {
    let story =
        run_with_fallbacks(&["one"], vec![implement().say("429 Too Many Requests: retry after 200000 s\n").exit(1)]);
    assert_eq!((implementers_called(&story).as_str(), story.task(1).status.into_str()), ("one", "failed"));
    insta::assert_snapshot!(lines_without_times(&story), @"
    Running task #1: Try
      [1/3] Implementing...
      [1/3] Implementation failed: its provider asks for a delay of more than a day (rate limited: 429 Too Many Requests: retry after 200000 s)
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
}

#[test]
fn a_failure_without_a_rate_limit_uses_no_fallback() {
    let story = run_with_fallbacks(
        &["one", "two"],
        vec![implement().say("I could not add rate limiting\n").exit(1), succeeds()],
    );
    assert_eq!((implementers_called(&story).as_str(), story.task(1).status.into_str()), ("one", "failed"));
}

/// Four tasks at once; each attempt costs 40 cents.
fn run_four_costly_tasks(cap: &str) -> Story {
    let story = Story::configured(&format!("[limits]\n{cap}\n"), |script| {
        script.rule(ScriptRule::role("implement").usage(json!({"cost_usd": 0.4})).write("{task}.txt", "done\n"))
    });
    add(&story, 4);
    work(&story, 4);
    story
}

/// Status and reason of every task, and the total cost.
fn task_states_and_cost(story: &Story) -> (Vec<String>, f64) {
    let word = |row: &signoff_core::view::TaskRow| row.reason.map_or("null", <&str>::from);
    let tasks = story.tasks();
    let mut states: Vec<_> = tasks.iter().map(|row| format!("{} {}", row.status.into_str(), word(row))).collect();
    states.sort();
    (states, tasks.iter().map(|row| row.cost_usd).sum())
}

#[test]
fn a_cap_on_the_run_applies_to_tasks_that_start_at_once() {
    let story = run_four_costly_tasks("[limits.run]\nmax_cost_usd = 1.0");
    let (states, cost) = task_states_and_cost(&story);
    assert_eq!(states, ["completed null", "completed null", "paused budget", "paused budget"]);
    assert!((cost - 0.8).abs() < 1e-9, "{cost}");
    work(&story, 4);
    assert_eq!(story.calls().len(), 2, "the cap still holds");
}

#[test]
fn a_reservation_lets_the_first_tasks_start_together() {
    let story = run_four_costly_tasks("reserve_usd = 0.5\n[limits.run]\nmax_cost_usd = 1.0");
    let (states, _) = task_states_and_cost(&story);
    assert_eq!(states, ["completed null", "completed null", "paused budget", "paused budget"]);
}

#[test]
fn a_paused_task_goes_on_once_its_cap_is_raised() {
    let mut story = run_four_costly_tasks("[limits.run]\nmax_cost_usd = 1.0");
    story.configure("[limits.run]\nmax_cost_usd = 10.0\n");
    story.resume();
    assert_eq!(task_states_and_cost(&story).0, ["completed null"; 4]);
}

/// All four agents report their usage while they run, and never end.
#[test]
fn at_the_cap_agents_are_stopped_while_they_work() {
    let settings = "[limits]\nreserve_usd = 0.1\n[limits.run]\nmax_cost_usd = 1.0\n";
    let story = Story::configured(settings, |script| {
        let first = ScriptRule::role("implement").call(1).usage(json!({"cost_usd": 0.6}));
        script.rule(first.write("{task}.txt", "begun\n").hang())
    });
    add(&story, 4);
    work(&story, 4);
    let (states, cost) = task_states_and_cost(&story);
    assert_eq!(states, ["paused budget"; 4]);
    assert!((cost - 2.4).abs() < 1e-9, "{cost}");
    assert_eq!(story.calls().len(), 4);
}
