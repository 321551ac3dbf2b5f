//! The five results of a loop, and how to continue from each.

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{ScriptRule, ScriptStep};

use crate::PROGRAM;
use crate::actors::{APPROVED, FEATURE, changes, developer};

fn verdict(project: &TestProject, task: &str) -> String {
    let shown = project.run(&["show", task, "--json"]).json();
    let task = &shown["task"];
    format!("{} {} {} {}", task["status"], task["final_verdict"], task["outcome"], task["reason"])
}

fn with_review(says: &str) -> TestProject {
    let project =
        TestProject::with_agent(PROGRAM, |script| developer(script).rule(ScriptRule::role("review").say(says)));
    project.run(&["add", "Add feature Y", "-a"]);
    project
}

#[test]
fn work_exits_with_3_if_the_cycles_are_used_up() {
    let project = with_review(&changes("still wrong"));
    assert_eq!(verdict(&project, "1"), r#""pending" null null null"#);
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 3
    --- stdout
    Running task #1: Add feature Y
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
    Max review cycles (3) reached without approval
    ! Task #1 completed (MAX_CYCLES_REACHED after 3 cycles)
        Next: signoff show 1, then signoff improve 1 --review or signoff edit 1 --verdict APPROVED
    ");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"  ! 1. implement Add feature Y    completed  MAX_CYCLES_REACHED (3 cycles)");
    insta::assert_snapshot!(verdict(&project, "1"), @r#""completed" "MAX_CYCLES_REACHED" "exhausted" "cycles_exhausted""#);
    project.run(&["add", "Add feature Z", "-a", "--max-cycles", "1"]);
    assert_eq!(project.run(&["work", "--strict"]).code, Some(3));
}

#[test]
fn a_fixer_that_fails_keeps_what_it_wrote() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write(FEATURE, "login\n"))
            .rule(ScriptRule::role("fix").call(1).append(FEATURE, "half\n").exit(1))
            .rule(ScriptRule::role("fix").append(FEATURE, "whole\n"))
            .rule(ScriptRule::role("review").cycle(1).say(&changes("more")))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.run(&["add", "Add feature Y", "-a"]);
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 1
    --- stdout
    Running task #1: Add feature Y
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - more
      [2/3] Improving...
      [2/3] Improvement failed: exit code 1
    ✗ Task #1 failed: the fixer failed (fixer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
    insta::assert_snapshot!(verdict(&project, "1"), @r#""failed" "CHANGES_REQUESTED" "failed" "fixer_failed""#);
    insta::assert_snapshot!(project.run(&["retry", "1"]), @"
    exit 0
    --- stdout
    Retrying task #1: Add feature Y
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    insta::assert_snapshot!(project.calls().summary(), @"
    implement task 1 cycle 0: exit 0
    review general task 1 cycle 1: exit 0
    fix task 1 cycle 1: exit 1
    fix task 1 cycle 1: exit 0
    review general task 1 cycle 2: exit 0
    ");
    insta::assert_snapshot!(project.git("show signoff/task-1-add-feature-y:auth.txt"), @"
    login
    half
    whole
    ");
    insta::assert_snapshot!(project.subjects("signoff/task-1-add-feature-y"), @"
    Add feature Y - initial implementation
    Add feature Y - work in progress
    Address review feedback (cycle 1)
    ");
}

/// A role that hangs in its first call.
fn hanging(role: &str) -> TestProject {
    let project = TestProject::new(PROGRAM);
    project.set_agent(|script| {
        script
            .rule(ScriptRule::role(role).call(1).step(half_done(role)).hang())
            .rule(ScriptRule::role("implement").write(FEATURE, "login\n"))
            .rule(ScriptRule::role("fix").append(FEATURE, "whole\n"))
            .rule(ScriptRule::role("review").cycle(1).say(&changes("more")))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project
}

/// Reviewers leave nothing behind, the others do.
fn half_done(role: &str) -> ScriptStep {
    if role == "review" {
        ScriptStep::Complain("thinking\n".to_owned())
    } else {
        ScriptStep::Write { path: "half.txt".to_owned(), text: "half\n".to_owned() }
    }
}

#[test]
fn an_implementation_that_times_out_is_stopped_and_resumed() {
    let project = hanging("implement");
    project.configure("[limits]\nattempt = \"5s\"\n");
    project.run(&["add", "Add feature Y", "-a"]);
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 1
    --- stdout
    Running task #1: Add feature Y
      [1/3] Implementing...
      [1/3] Implementation failed: timed out
        hint: `timeout_minutes` of the task's type, or without one `[agents.scripted] timeout`, sets the timeout; `signoff config` shows the settings in effect
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
    insta::assert_snapshot!(verdict(&project, "1"), @r#""failed" null "failed" "implementer_failed""#);
    assert_eq!(project.git("show signoff/task-1-add-feature-y:half.txt"), "half\n", "nothing is lost");
    project.configure("");
    insta::assert_snapshot!(project.run(&["retry", "1"]), @"
    exit 0
    --- stdout
    Retrying task #1: Add feature Y
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - more
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    insta::assert_snapshot!(project.calls().summary(), @"
    implement task 1 cycle 0: did not end
    implement task 1 cycle 0: exit 0
    review general task 1 cycle 1: exit 0
    fix task 1 cycle 1: exit 0
    review general task 1 cycle 2: exit 0
    ");
}

#[test]
fn a_review_that_times_out_is_stopped_and_resumed() {
    let project = hanging("review");
    project.configure("[reviewers.general]\ntimeout = \"5s\"\n");
    project.run(&["add", "Add feature Y", "-a"]);
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 1
    --- stdout
    Running task #1: Add feature Y
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: INCONCLUSIVE - general: timed out
        hint: `[reviewers.general] timeout` sets the timeout; `signoff config` shows the settings in effect
    ✗ Task #1 failed: a reviewer or check failed (reviewer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
    insta::assert_snapshot!(verdict(&project, "1"), @r#""failed" "CHANGES_REQUESTED" "failed" "reviewer_failed""#);
    project.configure("");
    insta::assert_snapshot!(project.run(&["retry", "1"]), @"
    exit 0
    --- stdout
    Retrying task #1: Add feature Y
      [1/3] Asking general again...
      [1/3] Review: CHANGES_REQUESTED - more
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    insta::assert_snapshot!(project.calls().summary(), @"
    implement task 1 cycle 0: exit 0
    review general task 1 cycle 1: did not end
    review general task 1 cycle 1: exit 0
    fix task 1 cycle 1: exit 0
    review general task 1 cycle 2: exit 0
    ");
}

#[test]
fn an_improvement_that_times_out_is_stopped_and_resumed() {
    let project = hanging("fix");
    project.configure("[gate]\nfix_timeout = \"5s\"\n");
    project.run(&["add", "Add feature Y", "-a"]);
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 1
    --- stdout
    Running task #1: Add feature Y
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - more
      [2/3] Improving...
      [2/3] Improvement failed: timed out
        hint: `fix_timeout` of the gate, or without one `[agents.scripted] timeout`, sets the timeout; `signoff config` shows the settings in effect
    ✗ Task #1 failed: the fixer failed (fixer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
    insta::assert_snapshot!(verdict(&project, "1"), @r#""failed" "CHANGES_REQUESTED" "failed" "fixer_failed""#);
    insta::assert_snapshot!(project.run(&["retry", "1"]), @"
    exit 0
    --- stdout
    Retrying task #1: Add feature Y
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    insta::assert_snapshot!(project.calls().summary(), @"
    implement task 1 cycle 0: exit 0
    review general task 1 cycle 1: exit 0
    fix task 1 cycle 1: did not end
    fix task 1 cycle 1: exit 0
    review general task 1 cycle 2: exit 0
    ");
    insta::assert_snapshot!(project.git("ls-tree --name-only signoff/task-1-add-feature-y"), @"
    README.md
    auth.txt
    half.txt
    signoff.toml
    ");
}

#[test]
fn the_limits_of_a_task_type_are_minutes() {
    let project = with_review(APPROVED);
    project.configure(
        "[task_types.implement]\ntimeout_minutes = 7\nreview_timeout_minutes = 2\nimprove_timeout_minutes = 3\n",
    );
    let shown = project.env.shell("signoff config --show | grep _minutes");
    insta::assert_snapshot!(shown.stdout, @"
    task_types.implement.timeout_minutes = 7                      # signoff.toml:4
    task_types.implement.review_timeout_minutes = 2               # signoff.toml:5
    task_types.implement.improve_timeout_minutes = 3              # signoff.toml:6
    ");
}

#[test]
fn a_person_can_approve_what_no_reviewer_approved() {
    let project = with_review(&changes("still wrong"));
    project.run(&["work"]);
    insta::assert_snapshot!(project.run(&["edit", "1", "--verdict", "APPROVED", "--reason", "it is generated code"]).stdout, @"Task #1 is APPROVED by a person");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"  ✓ 1. implement Add feature Y    completed  APPROVED (by a person), 1 open finding");
    insta::assert_snapshot!(verdict(&project, "1"), @r#""completed" "APPROVED" "accepted" "edited_by_person""#);
    assert_eq!(project.calls().with_role("review").count(), 3, "edit runs no review");
    assert_eq!(project.run(&["edit", "1", "--verdict", "approved"]).code, Some(2));
    insta::assert_snapshot!(project.run(&["edit", "1", "--verdict", "FINE"]), @"
    exit 2
    --- stderr
    error: unknown verdict `FINE`: choose one of APPROVED, CHANGES_REQUESTED, MAX_CYCLES_REACHED, NEEDS_DISCUSSION
    hint: `signoff show ID` shows the state of the task
    ");
    for word in ["CHANGES_REQUESTED", "MAX_CYCLES_REACHED", "NEEDS_DISCUSSION"] {
        assert_eq!(project.run(&["edit", "1", "--verdict", word, "--json"]).json()["task"]["final_verdict"], word);
    }
}

#[test]
fn retry_is_refused_if_there_is_nothing_to_retry() {
    let project = with_review(APPROVED);
    insta::assert_snapshot!(project.run(&["retry", "1"]), @"
    exit 2
    --- stderr
    error: task 1 has not been started
    hint: `signoff work 1` starts it
    ");
    project.run(&["work"]);
    insta::assert_snapshot!(project.run(&["retry", "1"]), @"
    exit 2
    --- stderr
    error: there is nothing to retry: it ended as approved
    hint: `signoff show ID` shows the state of the task
    ");
}

/// Review files are kept, even if the same review is repeated.
#[test]
fn no_review_file_is_overwritten() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("f.txt", "x\n"))
            .rule(ScriptRule::role("review").call(1).say("I do not know.\n"))
            .rule(ScriptRule::role("review").call(2).say("Which one?\n\n**Verdict: NEEDS_DISCUSSION**\n"))
            .rule(ScriptRule::role("review").say("Well done.\n\n**Verdict: APPROVED**\n"))
    });
    project.configure("[gate]\non_unclear = \"retry\"\n");
    project.run(&["add", "T", "-a"]);
    project.run(&["work"]);
    assert_eq!(project.run(&["retry", "1"]).code, Some(0));
    let reviews = project.list(".signoff/reviews");
    let read = |name: &String| format!("{}: {}", &name[9..], project.read(&format!(".signoff/reviews/{name}")));
    insta::assert_snapshot!(reviews.iter().map(read).collect::<Vec<_>>().join("---\n"), @"
    task-1-review-1.earlier-1.md: # Review

    **Verdict: NEEDS_DISCUSSION**

    - General Review: NEEDS_DISCUSSION

      Which one?

    Overall: NEEDS_DISCUSSION.
    ---
    task-1-review-1.general.2.txt: Which one?

    **Verdict: NEEDS_DISCUSSION**
    ---
    task-1-review-1.general.3.txt: Well done.

    **Verdict: APPROVED**
    ---
    task-1-review-1.general.txt: I do not know.
    ---
    task-1-review-1.md: # Review

    **Verdict: APPROVED**

    - General Review: APPROVED

      Well done.

    Overall: APPROVED. Action: Proceed.
    ");
    // The log points to the earlier answer.
    let rows = project.run(&["show", "1", "--json"]).json();
    let raw = |cycle: usize| rows["cycles"][cycle]["reviews"][0]["raw"].as_str().unwrap().to_owned();
    assert!(project.read(&raw(0)).starts_with("Which one?"), "{rows}");
    assert!(project.read(&raw(1)).starts_with("Well done."), "{rows}");
}

#[test]
fn a_run_has_the_result_of_its_retried_task() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        developer(script.rule(ScriptRule::role("implement").call(1).exit(7)))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.run(&["add", "Add feature Y", "-a"]);
    let worked = project.run(&["work", "--json"]).json();
    assert_eq!((&worked["outcome"], &worked["tasks"][0]["outcome"]), (&"failed".into(), &"failed".into()));
    let retried = project.run(&["retry", "1", "--json"]).json();
    assert_eq!(
        (&retried["outcome"], &retried["tasks"][0]["outcome"]),
        (&"approved".into(), &"approved".into()),
        "{retried}"
    );
}

#[test]
fn a_fixers_statement_about_a_finding_is_shown_as_a_claim() {
    let project = with_review(&changes("not checked"));
    project.run(&["add", "Learn the id", "-a", "--max-cycles", "1"]);
    project.run(&["work", "2"]);
    let finding = |task: &str| project.run(&["show", task, "--json"]).json()["ledger"][0].clone();
    let id = finding("2")["id"].as_str().unwrap_or_default().to_owned();
    let account = format!("I looked at it.\n\n- `{id}` refuted: line 1 is checked by the caller\n");
    project.set_agent(|script| {
        script
            .rule(ScriptRule::role("fix").append(FEATURE, "fixed\n").say(&account))
            .rule(ScriptRule::role("implement").write(FEATURE, "login\n").say("Done.\n"))
            .rule(ScriptRule::role("review").cycle(1).say(&changes("not checked")))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.run(&["work", "1"]);
    let claim = &finding("1")["claims"][0];
    assert_eq!(claim["claim"], "refuted");
    assert_eq!(claim["evidence"], "line 1 is checked by the caller");
    // Only the reviewer closed it.
    assert_eq!(finding("1")["decisions"][0]["by_kind"], "reviewer");
    let shown = project.run(&["show", "1"]).stdout;
    assert!(shown.contains("says refuted: line 1 is checked by the caller"), "{shown}");
    let calls = project.calls();
    let prompt = calls.with_role("review").last().map(|call| call.prompt.clone()).unwrap_or_default();
    let line = format!("- {id} refuted: line 1 is checked by the caller");
    assert!(prompt.contains("## What the Fixer Says") && prompt.contains(&line), "{prompt}");
}

/// Work that a person rejected is improved, not retried.
#[test]
fn no_hint_suggests_a_retry_of_work_that_a_person_rejected() {
    let project = TestProject::with_agent(PROGRAM, developer);
    project.run(&["add", "Add feature Y", "--no-review"]);
    project.run(&["work"]);
    project.run(&["edit", "1", "--verdict", "CHANGES_REQUESTED", "--reason", "it loses money"]);
    assert_eq!(project.run(&["retry", "1"]).code, Some(2));
    for words in [&["work"][..], &["work", "1"], &["merge", "1"], &["show", "1"], &["status"], &[]] {
        let output = project.run(words);
        assert!(!format!("{output}").contains("signoff retry"), "{words:?}: {output}");
    }
    assert!(project.run(&["merge", "1"]).stderr.contains("signoff improve 1 --review"));
}

/// The review says "approved" and repeats an open finding as a note: the gate stays closed, and the artifact says so.
#[test]
fn the_artifact_of_a_review_names_the_findings_that_keep_the_gate_closed() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        developer(script)
            .rule(ScriptRule::role("review").cycle(1).say(&changes("the total is negative")))
            .rule(ScriptRule::role("review").say("- auth.txt:1 the total is negative\n\n**Verdict: APPROVED**\n"))
    });
    project.run(&["add", "Add feature Y", "-a", "--max-cycles", "2"]);
    assert_eq!(project.run(&["work"]).code, Some(3));
    let reviews = project.list(".signoff/reviews");
    let second = reviews.iter().find(|name| name.ends_with("review-2.md")).expect("a second review");
    insta::assert_snapshot!(project.read(&format!(".signoff/reviews/{second}")), @"
    # Review

    **Verdict: CHANGES_REQUESTED**

    - General Review: APPROVED

          - auth.txt:1 the total is negative

    ## Still open from earlier reviews (1)

    - [Critical] `auth.txt:1` - the total is negative (f-9ac0e8364a)

    ## Minor Notes (1)

    - `auth.txt:1` - the total is negative (general)

    Overall: APPROVED. Action: Fix issues and re-run reviews.
    ");
}
