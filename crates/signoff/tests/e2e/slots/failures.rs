//! Slots that fail, and the tasks that start after them.

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};

use crate::PROGRAM;

use super::{PASS, beads, tracked, without_commit_ids, works};

/// The second of four tasks fails.
fn second_fails(script: AgentScript) -> AgentScript {
    script.rule(ScriptRule::role("implement").task("2").exit(1)).rule(works())
}

#[test]
fn after_a_failure_no_new_task_starts() {
    let project = tracked(&["One", "Two", "Three", "Four"], second_fails);
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads", "-j", "1"])), @"
    exit 1
    --- stdout
    Running task #1 (b-1): One
      #1 b-1 Implementing...
      #1 b-1 Implementation complete
      #1 b-1 Landing...
      #1 b-1 Landed on signoff/run-1 as [COMMIT]
    ○ Task #1 (b-1) completed (not reviewed)
    Running task #2 (b-2): Two
      #2 b-2 Implementing...
      #2 b-2 Implementation failed: exit code 1
    ✗ Task #2 (b-2) failed: the implementer failed (implementer_failed)
        Next: signoff show 2, then signoff retry 2
    ✗ Run 1 failed: 2 tasks, 1 completed, 1 failed
        The landed work is on signoff/run-1
    --- stderr
    2 tasks not started after a failure: --keep-going starts them anyway
    ");
    assert_eq!(beads(&project, "open"), ["b-3", "b-4"]);
}

#[test]
fn an_agent_can_report_that_no_tasks_are_left() {
    let project = tracked(&["One", "Two"], |script| {
        script.rule(works().say("no_beads_available\n")).rule(ScriptRule::role("review").say(PASS))
    });
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads", "-j", "1", "--review"])), @"
    exit 0
    --- stdout
    Running task #1 (b-1): One
      #1 b-1 [1/6] Implementing...
      #1 b-1 [1/6] Implementation complete
      #1 b-1 [1/6] Running review...
      #1 b-1 [1/6] Review: pass
      #1 b-1 Landing...
      #1 b-1 Landed on signoff/run-1 as [COMMIT]
    ✓ Task #1 (b-1) completed (APPROVED after 1 cycle)
    --- stderr
    an agent reports that no tasks are left; no new task is started
    ");
    assert_eq!(beads(&project, "closed"), ["b-1"]);
    assert_eq!(beads(&project, "open"), ["b-2"]);
}

#[test]
fn an_agent_that_finds_no_work_and_changes_nothing_ends_normally() {
    let project = tracked(&["One", "Two"], |script| {
        script
            .rule(ScriptRule::role("implement").say("no_beads_available\n"))
            .rule(ScriptRule::role("review").say(PASS))
    });
    let output = project.run(&["run", "beads", "-j", "1", "--review"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert!(output.stdout.contains("reports no work left"), "{output}");
    assert_eq!(project.calls().with_role("review").count(), 0);
    assert_eq!(beads(&project, "open"), ["b-1", "b-2"]);
    let task = &project.run(&["show", "1", "--json"]).json()["task"];
    assert_eq!((task["status"].as_str(), task["reason"].as_str()), (Some("cancelled"), Some("no_work_left")));
}

#[test]
fn a_run_that_is_approved_after_a_retry_lands_as_requested() {
    let passes = |script: AgentScript| script.rule(works()).rule(ScriptRule::role("review").say(PASS));
    let project =
        TestProject::with_agent(PROGRAM, |script| passes(script.rule(ScriptRule::role("implement").task("2").exit(3))));
    project.run(&["add", "One"]);
    project.run(&["add", "Two"]);
    let output = project.run(&["run", "queue", "-j", "1", "--land", "--keep-going", "--review", "--no-ask"]);
    insta::assert_snapshot!(without_commit_ids(&output), @"
    exit 1
    --- stdout
    Running task #1: One
      [1/6] Implementing...
      [1/6] Implementation complete
      [1/6] Running review...
      [1/6] Review: pass
      Landing...
      Landed on signoff/run-1 as [COMMIT]
    ✓ Task #1 completed (APPROVED after 1 cycle)
    Running task #2: Two
      [1/6] Implementing...
      [1/6] Implementation failed: exit code 3
    ✗ Task #2 failed: the implementer failed (implementer_failed)
        Next: signoff show 2, then signoff retry 2
    ✗ Run 1 failed: 2 tasks, 1 completed, 1 failed
        The landed work is on signoff/run-1
    --- stderr
    error: run 1 did not land on the default branch: not all of it is approved
    hint: `signoff retry ID` continues what failed, and the run lands once all is approved; `signoff land` lands what is approved now
    ");
    assert_eq!(project.git("log -1 --format=%s main"), "Configure\n");
    project.set_agent(passes);
    insta::assert_snapshot!(without_commit_ids(&project.run(&["retry", "2"])), @"
    exit 0
    --- stdout
    Retrying task #2: Two
      [1/6] Implementing...
      [1/6] Implementation complete
      [1/6] Running review...
      [1/6] Review: pass
      Landing...
      Landed on signoff/run-1 as [COMMIT]
    ✓ Task #2 completed (APPROVED after 1 cycle)
    Landing on the default branch
    ✓ Run 1 completed, all approved: 2 tasks, 2 completed
        Its work is on signoff/run-1 and on the default branch
    ");
    assert_eq!(project.git("log -1 --format=%s main"), "Merge run 1\n");
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "--resume", "1"])), @"
    exit 0
    --- stderr
    Run 1 is over: all of it is approved and on the default branch
    ");
}
