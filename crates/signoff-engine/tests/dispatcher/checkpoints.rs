//! Checkpoint reviews of loops that take many attempts.

use std::collections::BTreeMap;

use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::Event;
use signoff_core::policy::Effort;
use signoff_core::review::Verdict;
use signoff_core::view::RunState;
use signoff_core::wire::{Fact, LoopFact, RecordedFact};
use signoff_term::show::RunHistory;
use signoff_term::stats::{Filter, StatsCollector};
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::story::Story;

use crate::dispatcher::scripts::{APPROVED, approves, lines};

/// Two independent tasks.
fn planners(script: AgentScript) -> AgentScript {
    let tasks = r#"{"tasks": [{"id": "a", "title": "A"}, {"id": "b", "title": "B"}]}"#;
    let (tasks, groups) =
        (ScriptRule::role("enumerate").say(tasks), ScriptRule::role("plan").say(r#"{"groups": [["a", "b"]]}"#));
    script.rule(tasks).rule(groups)
}

/// A developer that needs this many attempts for a task.
fn needs_attempts(script: AgentScript, task: &str, attempts: u32) -> AgentScript {
    let works = |rule: ScriptRule| rule.append("task-{task}.txt", "step {call}\n");
    let last = works(ScriptRule::role("implement").task(task).call(attempts)).say("All of it.\nTASK_COMPLETE\n");
    script.rule(last).rule(works(ScriptRule::role("implement").task(task)).say("Some of it.\nITERATION_DONE\n"))
}

/// The second task is complete at once.
fn completes_at_once() -> ScriptRule {
    ScriptRule::role("implement").task("2").write("b.txt", "b\n").say("TASK_COMPLETE\n")
}

/// A reviewer that finds something at every checkpoint.
fn reviewers(script: AgentScript) -> AgentScript {
    let looks = at_checkpoint()
        .say("- task-{task}.txt:1 [LOW] task {task} is off the plan\n\n**Verdict: CHANGES_REQUESTED**\n");
    approves(script.rule(looks))
}

/// The rule of every reviewer at a checkpoint.
pub fn at_checkpoint() -> ScriptRule {
    ScriptRule::role("review").prompt_contains("at a checkpoint")
}

/// The checkpoints in the log, as `loop:iteration`.
fn checkpoint_iterations(story: &Story) -> String {
    let (mut seen, mut iterations) = (BTreeMap::<String, u64>::new(), Vec::new());
    for recorded in story.log(RunId(1)) {
        let Fact::Loop(loop_id, fact) = &recorded.fact else { continue };
        let count = seen.entry(loop_id.to_string()).or_default();
        if let LoopFact::AttemptStarted { launch, .. } = fact {
            *count += u64::from(launch.role == "implement");
        } else if let LoopFact::Transitioned(Event::CheckpointEnded { .. }) = fact {
            iterations.push(format!("{loop_id}:{count}"));
        }
    }
    iterations.sort();
    iterations.join(" ")
}

#[test]
fn each_effort_has_its_interval() {
    // One loop needs eleven attempts; the other is complete before the first checkpoint.
    for (effort, expected) in [
        (Effort::Low, ""),
        (Effort::Medium, "1:10 1:5"),
        (Effort::High, "1:3 1:6 1:9"),
        (Effort::Max, "1:1 1:10 1:2 1:3 1:4 1:5 1:6 1:7 1:8 1:9"),
    ] {
        let story = Story::new(|script| reviewers(needs_attempts(planners(script), "1", 11).rule(completes_at_once())));
        story.run_spec(Some(effort), 1);
        assert_eq!(story.run_status(1), "completed", "{effort:?}");
        assert_eq!(checkpoint_iterations(&story), expected, "{effort:?}");
        assert_eq!(story.task(1).review_cycle, 1, "{effort:?}: checkpoints are no cycles");
    }
}

#[test]
fn a_failed_checkpoint_review_does_not_stop_the_loop() {
    for blind in [at_checkpoint().exit(1), at_checkpoint().say("Mumble.\n")] {
        let story = Story::new(|script| {
            approves(needs_attempts(planners(script), "1", 3).rule(completes_at_once()).rule(blind))
        });
        story.run_spec(Some(Effort::Max), 1);
        assert_eq!(story.run_status(1), "completed");
        assert_eq!(checkpoint_iterations(&story), "1:1 1:2");
        let log = story.log(RunId(1));
        let verdicts: Vec<&Verdict> = log.iter().filter_map(checkpoint_verdict).collect();
        assert!(matches!(verdicts[..], [Verdict::Inconclusive { .. }, Verdict::Inconclusive { .. }]), "{verdicts:?}");
    }
}

fn checkpoint_verdict(recorded: &RecordedFact) -> Option<&Verdict> {
    let Fact::Loop(_, LoopFact::CheckpointReviewed { review }) = &recorded.fact else { return None };
    Some(&review.verdict)
}

#[test]
fn a_checkpoint_discussion_is_passed_to_the_next_attempt() {
    let asks = at_checkpoint().say("Is a table really what is meant here?\n\n**Verdict: NEEDS_DISCUSSION**\n");
    let story =
        Story::new(|script| approves(needs_attempts(planners(script), "1", 2).rule(completes_at_once()).rule(asks)));
    story.run_spec(Some(Effort::Max), 1);
    assert_eq!(story.run_status(1), "completed");
    let calls = story.calls_as("implement");
    let second = calls.iter().find(|call| call.task == "1" && call.call == 2).expect("a second attempt");
    assert!(second.prompt.contains("Is a table really what is meant here?"), "{}", second.prompt);
    assert!(lines(&story).contains("Checkpoint review of #1: 1 finding"), "{}", lines(&story));
}

#[test]
fn the_cap_of_a_task_includes_its_checkpoint_reviews() {
    let costs = |rule: ScriptRule, usd: f64| rule.usage(serde_json::json!({"cost_usd": usd}));
    let works = |rule: ScriptRule| costs(rule.append("task-{task}.txt", "step {call}\n"), 0.1);
    let story = Story::configured("[limits]\nmax_cost_usd = 0.4\n", |script| {
        let last = works(ScriptRule::role("implement").task("1").call(2)).say("TASK_COMPLETE\n");
        let first = works(ScriptRule::role("implement").task("1")).say("ITERATION_DONE\n");
        let complete = works(ScriptRule::role("implement").task("2")).say("TASK_COMPLETE\n");
        let looks = costs(at_checkpoint(), 0.25).say(APPROVED);
        approves(planners(script).rule(last).rule(first).rule(complete).rule(looks))
    });
    story.run_spec(Some(Effort::Max), 1);
    let row = story.task(1);
    assert_eq!((row.status.into_str(), format!("{:.2}", row.cost_usd).as_str()), ("paused", "0.35"));
    let notes = story.notes();
    assert!(notes.iter().any(|note| note.contains("$0.35 of $0.40 is spent")), "{notes:?}");
}

#[test]
fn a_checkpoint_reviews_all_active_loops() {
    // The second loop is in its first attempt until both loops were reviewed. Its own review may still end after that
    // attempt, so it has no findings.
    let waits = ScriptRule::role("implement")
        .task("2")
        .write("half.txt", "half\n")
        .write("/met/half", "")
        .wait_for("/met/again")
        .write("b.txt", "b\n")
        .say("TASK_COMPLETE\n");
    let continues =
        |call: u32| ScriptRule::role("implement").task("1").call(call).wait_for("/met/half").append("a.txt", "a\n");
    let (story, project) = Story::with_files("", |script| {
        let script = (1..=3)
            .fold(planners(script).rule(waits), |script, call| script.rule(continues(call).say("ITERATION_DONE\n")));
        let last = continues(4).wait_for("/met/reviewed").write("/met/again", "").say("TASK_COMPLETE\n");
        reviewers(script.rule(last).rule(at_checkpoint().task("2").write("/met/reviewed", "").say(APPROVED)))
    });
    story.run_spec(Some(Effort::High), 4);
    assert_eq!(story.run_status(1), "completed");
    assert_eq!(checkpoint_iterations(&story), "1:3 2:1");
    let loops = RunState::from_log(&story.log(RunId(1))).loops;
    let counters = ["1", "2"].map(|name| loops[&LoopId::new(name)].machine.counters.clone());
    assert_eq!(counters.map(|counted| (counted.last_checkpoint, counted.attempts)), [(3, 4), (1, 1)]);
    let reviews = story.calls_as("review");
    assert!(reviews.iter().any(|call| call.prompt.contains("half.txt")), "uncommitted work is reviewed too");
    let calls = story.calls_as("implement");
    let fourth = calls.iter().find(|call| call.task == "1" && call.call == 4).expect("a fourth attempt");
    assert!(fourth.prompt.contains("task 1 is off the plan"), "{}", fourth.prompt);
    let names = story.reviews();
    assert!(names.iter().any(|name| name.ends_with("-task-2-checkpoint-1.md")), "{names:?}");
    assert!(!project.git(&["worktree", "list"]).contains("checkpoint"), "the snapshot is removed");
    assert_eq!(project.file_names("signoff/run-1"), "a.txt b.txt half.txt");
}

#[test]
fn the_cost_of_a_checkpoint_review_counts_for_its_task() {
    let looks = at_checkpoint().usage(serde_json::json!({"cost_usd": 0.25})).say(APPROVED);
    let story =
        Story::new(|script| approves(needs_attempts(planners(script), "1", 2).rule(completes_at_once()).rule(looks)));
    story.run_spec(Some(Effort::Max), 1);
    assert_eq!(checkpoint_iterations(&story), "1:1");
    assert_eq!((story.task(1).cost_usd, story.task(2).cost_usd), (0.25, 0.0));
    let (mut history, mut stats) = (RunHistory::default(), StatsCollector::new(Filter::default()));
    history.extend_attempts(&story.log(RunId(1)));
    stats.add_run(&history);
    assert_eq!(stats.report().cost.per_approved_usd, Some(0.125));
}
