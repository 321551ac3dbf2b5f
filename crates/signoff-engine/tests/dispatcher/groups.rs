//! Specifications: tasks are planned, and worked and landed group by group.

use signoff_core::command::LoopCommand;
use signoff_core::ids::{LoopId, RunId};
use signoff_core::machine::{AttemptFailure, Event};
use signoff_core::policy::Effort;
use signoff_core::wire::{Fact, LoopFact, RecordedFact};
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::story::Story;

use crate::dispatcher::scripts::{approves, changes_requested, lines, wait_for_others};

/// Three tasks; the last depends on the first.
const TASKS: &str = r#"Here they are:
{"tasks": [
  {"id": "login", "title": "Log in", "description": "Write the login.", "depends_on": []},
  {"id": "logout", "title": "Log out", "description": "Write the logout.", "depends_on": []},
  {"id": "audit", "title": "Audit log", "description": "Note both.", "depends_on": ["login", "logout"]}
]}"#;

const GROUPS: &str = r#"{"groups": [["login", "logout"], ["audit"]]}"#;

/// Planners that answer correctly.
pub fn planners(script: AgentScript) -> AgentScript {
    script.rule(ScriptRule::role("enumerate").say(TASKS)).rule(ScriptRule::role("plan").say(GROUPS))
}

/// Each task writes its own file.
pub fn developers(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").write("task-{task}.txt", "work\n").say("Done.\nTASK_COMPLETE\n"))
        .rule(ScriptRule::role("fix").append("task-{task}.txt", "fixed {cycle}\n").say("Fixed.\n"))
}

/// A reviewer that never approves task 2.
fn never_approves_task_2(script: AgentScript) -> AgentScript {
    script.rule(ScriptRule::role("review").task("2").say(&changes_requested("still wrong")))
}

fn story(script: impl FnOnce(AgentScript) -> AgentScript) -> Story {
    Story::new(script)
}

#[test]
fn a_specification_is_planned_worked_and_landed_group_by_group() {
    let refused = ScriptRule::role("review").task("2").cycle(1).say(&changes_requested("the session stays open"));
    let story = story(|script| approves(developers(planners(script)).rule(refused)));
    story.run_spec(None, 1);
    assert_eq!(
        story.summary(),
        "1 completed approved APPROVED - 1\n2 completed approved APPROVED - 2\n3 completed approved APPROVED - 1"
    );
    assert_eq!(story.run_status(1), "completed");
    assert_eq!(
        story.repository(|repository| repository.subjects("signoff/run-1")),
        ["Merge task 1: Log in", "Merge task 2: Log out", "Merge task 3: Audit log"]
    );
    assert_eq!(story.file_names("signoff/run-1"), "task-1.txt task-2.txt task-3.txt");
    let left = story.repository(|repository| repository.worktrees().join(" "));
    assert_eq!(left, "/memory/run-1", "what has landed needs no worktree");
}

#[test]
fn the_loops_of_a_group_run_in_parallel() {
    // Each waits for the other: run one after the other they would never end.
    let waits = |task: &str, other: &str| {
        let rule = wait_for_others(ScriptRule::role("implement").task(task), task, &[other]);
        rule.write("task-{task}.txt", "work\n").say("TASK_COMPLETE\n")
    };
    let story = story(|script| approves(developers(planners(script).rule(waits("1", "2")).rule(waits("2", "1")))));
    story.run_spec(None, 4);
    assert_eq!((story.run_status(1).as_str(), story.tasks().len()), ("completed", 3));
}

/// Invalid answers of a planner, each with a word of the error message.
const BAD_TASKS: [(&str, &str); 5] = [
    ("I could not find any tasks.", "no JSON object with `tasks`"),
    (r#"{"tasks": []}"#, "`tasks` is empty"),
    (
        r#"{"tasks": [{"id": "a", "title": "A", "depends_on": ["b"]}, {"id": "b", "title": "B", "depends_on": ["a"]}]}"#,
        "dependency cycle",
    ),
    (r#"{"tasks": [{"id": "a", "title": "A", "depends_on": ["z"]}]}"#, "depends on z, which is not a task"),
    (r#"{"tasks": [{"id": "a", "title": "A"}"#, "not JSON"),
];

const BAD_GROUPS: [(&str, &str); 4] = [
    ("Do all at once!", "no JSON object with `groups`"),
    (r#"{"groups": [["login", "logout"], ["audit", "billing"]]}"#, "billing is not a task"),
    (r#"{"groups": [["login", "logout"]]}"#, "task audit is in no group"),
    (r#"{"groups": [["audit", "login"], ["logout"]]}"#, "which is not in an earlier group"),
];

/// Why the planner's answers were refused.
fn refusals(story: &Story) -> Vec<String> {
    let log = story.log(RunId(1));
    let refusal = |recorded: &RecordedFact| {
        let Fact::Loop(_, LoopFact::Transitioned(Event::AttemptFailed { failure, .. })) = &recorded.fact else {
            return None;
        };
        if let AttemptFailure::BadAnswer { message } = failure { Some(message.clone()) } else { None }
    };
    log.iter().filter_map(refusal).collect()
}

#[test]
fn an_invalid_plan_is_requested_once_more_with_the_reason() {
    let tables = [("enumerate", BAD_TASKS.as_slice()), ("plan", BAD_GROUPS.as_slice())];
    for (role, table) in tables {
        for (answer, reason) in table {
            let bad = ScriptRule::role(role).call(1).say(answer);
            let story = story(|script| approves(developers(planners(script.rule(bad)))));
            story.run_spec(None, 4);
            assert_eq!(story.run_status(1), "completed", "{answer}");
            let refusals = refusals(&story);
            assert!(refusals.len() == 1 && refusals[0].contains(reason), "{answer}: {refusals:?}");
            let asked = story.calls_as(role);
            assert_eq!(asked.len(), 2, "{answer}");
            assert!(asked[1].prompt.contains(reason), "{answer}: {}", asked[1].prompt);
        }
    }
}

#[test]
fn a_second_invalid_plan_ends_the_run() {
    let story = story(|script| approves(developers(script.rule(ScriptRule::role("enumerate").say("No idea.")))));
    story.run_spec(None, 4);
    insta::assert_snapshot!(lines(&story), @"
    Run 1: planning SPEC.md
      [enumerate] Listing the tasks...
      [enumerate] The planner's answer was refused: no JSON object with `tasks` (at byte 0)
      [enumerate] Listing the tasks again...
      [enumerate] The planner's answer was refused: no JSON object with `tasks` (at byte 0)
    ✗ Planning SPEC.md failed: the implementer failed (implementer_failed)
    ✗ Run 1 failed before its first task
    ");
    assert_eq!((story.run_status(1).as_str(), story.calls().len(), story.tasks().len()), ("failed", 2, 0));
    assert_eq!(story.repository(|repository| repository.worktrees().len()), 0);
}

#[test]
fn a_rejected_task_list_is_made_again_with_the_findings() {
    let refuses = ScriptRule::role("review")
        .phase("enumerate_review")
        .cycle(1)
        .say("- SPEC.md:3 nobody notes failed logins\n\n**Verdict: CHANGES_REQUESTED**\n");
    let story = story(|script| approves(developers(planners(script.rule(refuses)))));
    story.run_spec(None, 4);
    assert_eq!(story.run_status(1), "completed");
    let asked = story.calls_as("enumerate");
    assert_eq!(asked.len(), 2);
    assert!(asked[1].prompt.contains("nobody notes failed logins"), "{}", asked[1].prompt);
    assert!(asked[1].prompt.contains("\"Log out\""), "the answer that was refused is shown: {}", asked[1].prompt);
}

#[test]
fn a_plan_that_is_never_approved_ends_the_run() {
    let refuses = ScriptRule::role("review").phase("plan_review").say(&changes_requested("too coarse"));
    let story = story(|script| approves(developers(planners(script.rule(refuses)))));
    story.run_spec(Some(Effort::Low), 4);
    assert_eq!(story.run_status(1), "failed");
    assert_eq!(story.calls_as("plan").len(), 3, "one plan and two fixes");
    assert_eq!(story.calls_as("implement").len(), 0);
}

#[test]
fn a_stuck_loop_blocks_its_group_while_the_others_finish() {
    let story = story(|script| approves(never_approves_task_2(developers(planners(script)))));
    story.run_spec(Some(Effort::Low), 1);
    insta::assert_snapshot!(lines(&story), @"
    Run 1: planning SPEC.md
      [enumerate] Listing the tasks...
      [enumerate] Found 3 tasks
      [enumerate] Task list complete
      [enumerate_review 1/3] Running review...
      [enumerate_review 1/3] Review: APPROVED
      [plan] Planning...
      [plan] Arranged in 2 groups
      [plan] Plan complete
      [plan_review 1/3] Running review...
      [plan_review 1/3] Review: APPROVED
    ✓ Planning SPEC.md completed (APPROVED after 2 reviews)
    Planned 3 tasks in 2 groups
    Group 1/2: #1 Log in, #2 Log out
    Running task #1: Log in
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
      Signed off, lands with its group
    Running task #2: Log out
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - still wrong
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: CHANGES_REQUESTED - still wrong
      [3/3] Improving...
      [3/3] Running review...
      [3/3] Review: CHANGES_REQUESTED - still wrong
    Max fix attempts (2) reached without approval
    ! Task #2 is stuck: the review cycles are used up (cycles_exhausted)
        Next: signoff show 2, then signoff retry 2
    ▪ Run 1 is blocked by #2 (the review cycles are used up)
        signoff retry 2, signoff edit 2 --verdict APPROVED, or signoff cancel 2
        then: signoff run --resume 1
    ");
    assert_eq!(story.outcome(2), "2 stuck stuck CHANGES_REQUESTED cycles_exhausted 3");
    assert_eq!((story.run_status(1).as_str(), story.calls_as("fix").len()), ("blocked", 2));
    assert_eq!(story.file_names("signoff/run-1"), "", "nothing has landed");
    let calls = story.calls().len();
    story.resume();
    assert_eq!((story.run_status(1).as_str(), story.calls().len()), ("blocked", calls), "still blocked");
}

#[test]
fn a_blocked_group_continues_after_a_person_has_decided() {
    for (decision, fixes, landed) in [
        ("edit", 2, "task-1.txt task-2.txt task-3.txt"),
        ("retry", 3, "task-1.txt task-2.txt task-3.txt"),
        ("cancel", 2, "task-1.txt task-3.txt"),
    ] {
        let story = story(|script| approves(never_approves_task_2(developers(planners(script)))));
        story.run_spec(Some(Effort::Low), 4);
        assert_eq!(story.run_status(1), "blocked", "{decision}");
        // From now on the reviewer approves.
        story.set_agent(|script| approves(developers(planners(script))));
        match decision {
            "edit" => story.edit(2, "APPROVED"),
            "retry" => story.retry(2),
            _ => story.cancel(2),
        }
        story.resume();
        assert_eq!(story.run_status(1), "completed", "{decision}");
        assert_eq!(story.file_names("signoff/run-1"), landed, "{decision}");
        assert_eq!(story.calls_as("fix").len(), fixes, "{decision}");
    }
}

#[test]
fn an_agent_that_gives_up_makes_its_loop_stuck_at_once() {
    let gives_up = ScriptRule::role("implement").task("1").say("I tried.\nTASK_STUCK: no such API\n");
    let story = story(|script| approves(developers(planners(script).rule(gives_up))));
    story.run_spec(None, 4);
    assert_eq!(story.run_status(1), "blocked");
    assert_eq!(story.outcome(1), "1 stuck stuck - task_stuck 0");
}

#[test]
fn findings_of_the_final_review_are_fixed_on_the_runs_branch() {
    let refuses =
        ScriptRule::role("review").phase("final_review").cycle(1).say(&changes_requested("nothing ties them together"));
    let fixes = ScriptRule::role("fix").phase("final_review").write("glue.txt", "glue\n").say("Fixed.\n");
    let story = story(|script| approves(developers(planners(script).rule(refuses).rule(fixes))));
    story.run_spec(None, 4);
    assert_eq!(story.run_status(1), "completed");
    assert_eq!(story.files("signoff/run-1")["glue.txt"], "glue\n");
    let calls = story.calls_as("review");
    let whole = calls.iter().find(|call| call.phase == "final_review").expect("a final review");
    assert!(whole.prompt.contains("# Accounts"), "{}", whole.prompt);
}

#[test]
fn a_run_without_final_approval_fails() {
    let refuses = ScriptRule::role("review").phase("final_review").say(&changes_requested("it does not fit"));
    let story = story(|script| approves(developers(planners(script).rule(refuses))));
    story.run_spec(Some(Effort::Low), 4);
    assert_eq!(story.run_status(1), "failed");
    assert!(story.file_names("signoff/run-1").contains("task-3.txt"), "nothing is lost");
}

#[test]
fn loops_on_one_file_land_both_changes() {
    let same =
        |task: &str| ScriptRule::role("implement").task(task).write("shared.txt", "{task}\n").say("TASK_COMPLETE\n");
    // The fixer of the conflict sees both sides, and keeps both.
    let merges = ScriptRule::role("fix").write("shared.txt", "1\n2\n").say("Both.\n");
    let story = story(|script| approves(developers(planners(script).rule(same("1")).rule(same("2")).rule(merges))));
    story.run_spec(None, 4);
    assert_eq!(story.run_status(1), "completed");
    assert_eq!(story.files("signoff/run-1")["shared.txt"], "1\n2\n");
    assert_eq!(story.calls_as("fix").len(), 1);
    assert!(lines(&story).contains("SENT BACK"), "{}", lines(&story));
}

#[test]
fn a_run_lands_on_the_default_branch_as_requested() {
    let story = story(|script| approves(developers(planners(script))));
    story.run_spec_onto_default();
    assert_eq!(story.run_status(1), "completed");
    assert_eq!(story.file_names("main"), "task-1.txt task-2.txt task-3.txt");
}

/// A reviewer that asks for a discussion once, in its first review of a phase.
fn requests_discussion_once(phase: &str) -> ScriptRule {
    ScriptRule::role("review").phase(phase).cycle(1).say("Is this meant?\n\n**Verdict: NEEDS_DISCUSSION**\n")
}

#[test]
fn each_answer_about_a_part_reaches_its_run() {
    for (phase, choice, status, again) in [
        ("enumerate_review", "fix", "completed", 2),
        ("enumerate_review", "proceed", "completed", 1),
        ("enumerate_review", "stop", "failed", 1),
        ("final_review", "fix", "completed", 1),
        ("final_review", "proceed", "completed", 1),
        ("final_review", "stop", "failed", 1),
    ] {
        let story = story(|script| approves(developers(planners(script.rule(requests_discussion_once(phase))))));
        story.run_spec(None, 4);
        let questions = story.questions();
        assert_eq!((questions.len(), questions[0].task_id), (1, None), "{phase} {choice}");
        let part = if phase == "final_review" { LoopId::final_review() } else { LoopId::planning() };
        let command =
            LoopCommand::Answer { question: None, choice: choice.parse().expect("a choice"), by: "Ann".to_owned() };
        story.decide(RunId(1), &part, command);
        story.resume();
        assert_eq!(story.run_status(1), status, "{phase} {choice}");
        assert_eq!(story.calls_as("enumerate").len(), again, "{phase} {choice}");
        assert_eq!(story.questions().len(), 0, "{phase} {choice}");
    }
}

#[test]
fn a_manual_commit_is_reviewed_once() {
    let gives_up = ScriptRule::role("implement").task("1").say("TASK_STUCK: no such API\n");
    let story = story(|script| approves(developers(planners(script.rule(gives_up)))));
    story.run_spec(None, 1);
    assert_eq!(story.run_status(1), "blocked");
    story.set_agent(|script| approves(developers(planners(script))));
    story.repository(|repository| {
        let parent = repository.tip("signoff/task-2-log-out").expect("a branch");
        repository.worktree("/memory/task-2").insert("by-hand.txt".to_owned(), "mine\n".to_owned());
        let commit = repository.commit_worktree("/memory/task-2", &parent, "Mine");
        repository.move_branch("signoff/task-2-log-out", &commit, None);
    });
    story.retry(1);
    story.resume();
    assert_eq!(story.run_status(1), "completed");
    let is_start = |fact: &Fact| matches!(fact, Fact::Loop(loop_id, LoopFact::AttemptStarted { .. }) if *loop_id == LoopId::new("2"));
    let started = story.log(RunId(1)).iter().filter(|recorded| is_start(&recorded.fact)).count();
    assert_eq!(started, 4, "implemented, reviewed, reviewed again, landed");
    assert_eq!(story.calls_as("review").iter().filter(|call| call.task == "2").count(), 2);
}

#[test]
fn a_cancelled_task_can_be_approved_while_its_group_is_open() {
    let gives_up = ScriptRule::role("implement").task("1").say("TASK_STUCK: no such API\n");
    let story = story(|script| approves(never_approves_task_2(developers(planners(script.rule(gives_up))))));
    story.run_spec(Some(Effort::Low), 4);
    assert_eq!(story.run_status(1), "blocked");
    story.set_agent(|script| approves(developers(planners(script))));
    story.cancel(2);
    story.edit(2, "APPROVED");
    story.retry(1);
    story.resume();
    assert!(story.file_names("signoff/run-1").contains("task-2.txt"));
}

#[test]
fn a_complete_loop_without_changes_blocks_its_group() {
    let tasks = r#"{"tasks": [
        {"id": "a", "title": "A", "description": "Write a.", "depends_on": []},
        {"id": "b", "title": "B", "description": "Write b.", "depends_on": ["a"]}]}"#;
    let story = story(|script| {
        let script = script
            .rule(ScriptRule::role("enumerate").say(tasks))
            .rule(ScriptRule::role("plan").say(r#"{"groups": [["a"], ["b"]]}"#))
            .rule(ScriptRule::role("implement").task("1").call(1).say("Nothing to do.\nTASK_COMPLETE\n"))
            .rule(ScriptRule::role("implement").write("task-{task}.txt", "work\n").say("TASK_COMPLETE\n"));
        approves(script)
    });
    story.run_spec(None, 1);
    assert_eq!(story.run_status(1), "blocked");
    assert_eq!(story.outcome(1), "1 completed nothing_to_review - nothing_to_review 0");
    assert_eq!(story.outcome(2), "2 pending - - - 0");
    story.retry(1);
    story.resume();
    assert_eq!(
        (story.task(1).outcome.map(<&str>::from), story.run_status(1).as_str()),
        (Some("approved"), "completed")
    );
}
