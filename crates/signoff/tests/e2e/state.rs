//! `signoff export` and `signoff import`: tasks in the formats of other programs.

use std::fs;

use serde_json::{Value, json};
use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::processes::wait_until;

use crate::PROGRAM;
use crate::actors::{changes, developer};

const BRANCH: &str = "signoff/task-1-add-user-authentication";

fn phase(status: &str) -> Value {
    json!({ "status": status })
}

fn reviewed(status: &str, retries: u32, issues: Value) -> Value {
    json!({ "status": status, "retryCount": retries, "lastIssues": issues })
}

/// The second iteration, while the findings of the code review are being fixed.
fn imported_iteration() -> Value {
    let plan = json!([{ "severity": "HIGH", "message": "nobody can leave", "location": "" }]);
    let code = json!([{ "severity": "MEDIUM", "message": "the login is not checked", "location": "auth.txt:1" }]);
    let first = json!({
        "1": phase("completed"), "2": phase("completed"), "3": reviewed("failed", 1, plan),
        "4": phase("pending"), "5": reviewed("pending", 0, json!([])),
        "6": { "status": "pending", "retryCount": 0 },
        "7": phase("pending"), "8": reviewed("pending", 0, json!([])),
    });
    let second = json!({
        "1": phase("completed"), "2": phase("completed"), "3": reviewed("completed", 1, json!([])),
        "4": phase("completed"), "5": reviewed("in_progress", 2, code),
        "6": { "status": "pending", "retryCount": 0 },
        "7": phase("pending"), "8": reviewed("pending", 0, json!([])),
    });
    json!({
        "version": 4,
        "task": "Add user authentication",
        "mode": "full",
        "maxIterations": 10,
        "currentIteration": 2,
        "currentPhase": 5,
        "startedAt": "2026-01-23T10:00:00Z",
        "iterations": [
            { "iteration": 1, "startedAt": "2026-01-23T10:00:00Z", "phases": first },
            { "iteration": 2, "startedAt": "2026-01-23T11:30:00Z", "phases": second },
        ],
        "phase9": phase("pending"),
    })
}

/// The code review finds something once more; then all reviews approve.
fn team(script: AgentScript) -> AgentScript {
    script
        .rule(
            ScriptRule::role("review")
                .reviewer("code")
                .cycle(3)
                .say("- [MEDIUM] auth.txt:1 the login is not checked\n"),
        )
        .rule(ScriptRule::role("fix").append("auth.txt", "checked\n").say("Fixed.\n"))
        .rule(
            ScriptRule::role("simplify")
                .write("../../../../begun", "")
                .wait_for("../../../../go")
                .write("simple.txt", "simple\n")
                .say("Simpler.\n"),
        )
        .rule(ScriptRule::role("review").say("NO ISSUES\n"))
}

/// A branch with the work so far, and the state file.
fn project() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, team);
    project.configure("[checks]\ntest = \"test -f auth.txt\"\n");
    project.git("checkout -q -b feature");
    project.env.write("auth.txt", "login\n");
    project.commit("Begun elsewhere");
    project.env.write("state.json", imported_iteration().to_string());
    project
}

fn release_agent(project: &TestProject) {
    fs::write(project.env.root().join("go"), "").expect("written");
}

fn state(project: &TestProject) -> Value {
    project.run(&["export", "1", "--format", "state-v4"]).json()
}

#[test]
fn an_iteration_continues_where_another_program_left_it() {
    let project = project();
    release_agent(&project);
    let before = project.checkout();
    insta::assert_snapshot!(project.run(&["import", "state.json"]), @"
    exit 0
    --- stdout
    Running task #1: Add user authentication
    Imported at code_review
    Iteration 2/10
      Phase 5/9: Code Review 3/11...
      Phase 5/9: Code Review 3/11: CHANGES_REQUESTED - the login is not checked
      Phase 5/9: Code Review 4/11: Improving...
      Phase 5/9: Code Review 4/11...
      Phase 5/9: Code Review 4/11: APPROVED
      Phase 6/9: Test...
      Phase 6/9: Test: PASSED
      Phase 7/9: Simplify...
      Phase 7/9: Simplify complete
      Phase 8/9: Final Review...
      Phase 8/9: Final Review: APPROVED
      Phase 9/9: Codex Final...
      Phase 9/9: Codex Final: APPROVED
    ✓ Task #1 completed (APPROVED after 4 reviews in 2 iterations)
    ");
    insta::assert_snapshot!(project.subjects(BRANCH), @"
    Begun elsewhere
    Address review feedback (cycle 3)
    Add user authentication - simplify
    ");
    assert_eq!(project.checkout(), before);
    let (left, now) = (imported_iteration(), state(&project));
    assert_eq!(now["iterations"][0], left["iterations"][0]);
    assert_eq!((&now["currentIteration"], &now["currentPhase"]), (&json!(2), &json!(9)));
    let phases = &now["iterations"][1]["phases"];
    assert_eq!(phases["5"]["retryCount"], 3);
    assert_eq!(phases["3"]["retryCount"], 1);
    for number in 1..=8 {
        assert_eq!(phases[number.to_string()]["status"], "completed", "{number}");
    }
    assert_eq!(now["phase9"], phase("completed"));
    insta::assert_snapshot!(project.env.run_with_input(&["import", "-"], now.to_string()), @r#"
    exit 2
    --- stderr
    error: this iteration is finished: every phase is completed or skipped
      --> stdin
    hint: there is nothing to continue; `signoff iterate "…"` starts a new one
    "#);
}

#[test]
fn reviewers_see_the_work_and_the_findings_so_far() {
    let project = project();
    release_agent(&project);
    project.run(&["import", "state.json"]);
    let prompts = project.run(&["logs", "1", "--prompts", "--attempt", "1"]).stdout;
    assert!(prompts.contains("+login"), "{prompts}");
    assert!(prompts.contains("the login is not checked"), "{prompts}");
    assert!(prompts.contains("after fix attempt 2"), "{prompts}");
    // The documents were not written here.
    assert!(!prompts.contains("docs/signoff/"), "{prompts}");
}

/// A state at an early phase, without the name of the plan.
fn state_at_phase(phase: u32) -> Value {
    let mut state = imported_iteration();
    state["currentPhase"] = json!(phase);
    for number in 1..=8 {
        let status = if number < phase { "completed" } else { "pending" };
        state["iterations"][1]["phases"][number.to_string()]["status"] = json!(status);
    }
    state
}

#[test]
fn without_a_known_plan_the_whole_task_is_one_item() {
    for phase in [3, 4] {
        let project = project();
        project.set_agent(|script| {
            let implements = ScriptRule::role("implement").append("auth.txt", "more\n").say("Done.\n");
            team(script.rule(implements))
        });
        release_agent(&project);
        let ended = project.env.run_with_input(&["import", "-"], state_at_phase(phase).to_string());
        assert_eq!(ended.code, Some(0), "{ended}");
        let calls = project.calls();
        assert_eq!(calls.with_role("implement").count(), 1, "{}", calls.summary());
        assert_eq!(calls.with_role("plan").count(), 0, "{}", calls.summary());
    }
}

const PLAN: &str = "docs/signoff/task-7-add-user-authentication-plan.md";

/// The same with a plan of two tasks in the work so far, and the plan of another task.
fn planned() -> TestProject {
    let project = project();
    project.set_agent(|script| {
        let implements = ScriptRule::role("implement").append("auth.txt", "more\n").say("Done.\n");
        team(script.rule(implements))
    });
    project.env.write(PLAN, "# Plan\n\n### Task 1: Log in\n\nAsk.\n\n### Task 2: Log out\n\nForget.\n");
    project.commit("Plan it");
    project.env.write("docs/signoff/task-8-another-plan.md", "# Plan\n\n### Task 1: Another\n");
    project.commit("Plan another");
    release_agent(&project);
    project
}

#[test]
fn the_plan_on_the_branch_is_reviewed_and_worked_whatever_its_number() {
    for phase in [3, 4] {
        let project = planned();
        let ended = project.env.run_with_input(&["import", "-"], state_at_phase(phase).to_string());
        assert_eq!(ended.code, Some(0), "{ended}");
        assert_eq!(ended.stdout.matches("Running task #1").count(), 1, "{ended}");
        assert!(!ended.stdout.contains("items planned"), "{ended}");
        let calls = project.calls();
        assert_eq!(calls.with_role("implement").count(), 2, "{}", calls.summary());
        let prompts = project.run(&["logs", "1", "--prompts"]).stdout;
        assert!(prompts.contains(PLAN) && prompts.contains("number 2 of 2"), "{prompts}");
        assert_eq!(prompts.contains("# PLAN REVIEW PHASE"), phase == 3, "{prompts}");
        assert_eq!(prompts.contains("may be done already"), phase == 4, "{prompts}");
        assert!(!prompts.contains("Plan: docs/signoff/task-8-another"), "{prompts}");
    }
}

#[test]
fn a_new_brainstorm_gets_the_findings_of_the_last_iteration() {
    let project = project();
    project.set_agent(|script| {
        let plans = ScriptRule::role("plan").say("# Plan\n\n### Task 1: Log in\n\nAsk.\n");
        let implements = ScriptRule::role("implement").append("auth.txt", "more\n").say("Done.\n");
        team(script.rule(plans).rule(implements))
    });
    release_agent(&project);
    let ended = project.env.run_with_input(&["import", "-"], state_at_phase(2).to_string());
    assert_eq!(ended.code, Some(0), "{ended}");
    let prompt = project.run(&["logs", "1", "--prompts", "--attempt", "1"]).stdout;
    assert!(prompt.contains("nobody can leave"), "{prompt}");
}

#[test]
fn a_phase_that_was_not_approved_elsewhere_is_not_approved_here() {
    let imported = |fixes: u32| {
        let project = project();
        release_agent(&project);
        let mut state = state_at_phase(7);
        state["iterations"][1]["phases"]["5"]["retryCount"] = json!(fixes);
        project.env.run_with_input(&["import", "-"], state.to_string())
    };
    // Without a fix, no commit could have been approved.
    let ended = imported(0);
    assert!(ended.stdout.contains("Task #1 completed with issues (CHANGES_REQUESTED"), "{ended}");
    let ended = imported(2);
    assert!(ended.stdout.contains("Task #1 completed (APPROVED"), "{ended}");
    assert!(ended.stderr.contains("warning: the file does not say whether phase 5 was approved"), "{ended}");
}

#[test]
fn the_plan_review_runs_even_if_the_plan_is_not_found() {
    let project = project();
    release_agent(&project);
    project.env.run_with_input(&["import", "-"], state_at_phase(3).to_string());
    let prompt = project.run(&["logs", "1", "--prompts", "--attempt", "1"]).stdout;
    assert!(prompt.contains("# PLAN REVIEW PHASE") && prompt.contains("Look for it among"), "{prompt}");
}

#[test]
fn an_existing_branch_of_the_same_task_is_not_overwritten() {
    let project = project();
    project.git(&format!("checkout -q -b {BRANCH}"));
    release_agent(&project);
    let ended = project.run(&["import", "state.json"]);
    assert_eq!(ended.code, Some(0), "{ended}");
    assert!(project.subjects(&format!("{BRANCH}-2")).contains("simplify"));
    assert_eq!(project.git(&format!("log -1 --format=%s {BRANCH}")).trim(), "Begun elsewhere");
}

#[test]
fn a_queued_task_is_exported_unchanged_and_worked_later() {
    let project = project();
    insta::assert_snapshot!(project.run(&["import", "state.json", "--queue"]), @"
    exit 0
    --- stdout
    Added task #1: Add user authentication
    --- stderr
    `signoff work` starts it
    ");
    assert_eq!(state(&project), imported_iteration());
    // The branch starts at the commit that was checked out at the import.
    project.git("checkout -q main");
    release_agent(&project);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    let log = project.git(&format!("log --format=%s {BRANCH}"));
    assert!(log.lines().any(|subject| subject == "Begun elsewhere"), "{log}");
    assert_eq!(state(&project)["phase9"], phase("completed"));
}

#[test]
fn an_iteration_is_exported_while_another_program_works_on_it() {
    let project = project();
    let program = project.start(&["import", "state.json"]);
    wait_until("an agent simplifies", || project.env.root().join("begun").exists());
    let now = state(&project);
    assert_eq!(now["currentPhase"], 7);
    insta::assert_snapshot!(now["iterations"][1]["phases"], @r#"{"1":{"status":"completed"},"2":{"status":"completed"},"3":{"status":"completed","retryCount":1,"lastIssues":[]},"4":{"status":"completed"},"5":{"status":"completed","retryCount":3,"lastIssues":[{"severity":"MEDIUM","message":"the login is not checked","location":"auth.txt:1"}]},"6":{"status":"completed","retryCount":0},"7":{"status":"in_progress"},"8":{"status":"pending","retryCount":0,"lastIssues":[]}}"#);
    release_agent(&project);
    project.env.finish(program);
}

#[test]
fn a_custom_workflow_can_be_exported_if_its_phases_have_numbers() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        developer(script)
            .rule(ScriptRule::role("review").cycle(1).say(&changes("missing input validation")))
            .rule(ScriptRule::role("review").say("**Verdict: APPROVED**\n"))
    });
    project.configure(OWN);
    project.run(&["add", "Add user authentication", "-a"]);
    project.run(&["work"]);
    let now = state(&project);
    assert_eq!((&now["mode"], &now["currentPhase"]), (&json!("full"), &json!(5)));
    insta::assert_snapshot!(now["iterations"][0]["phases"], @r#"{"1":{"status":"skipped"},"2":{"status":"skipped"},"3":{"status":"skipped","retryCount":0,"lastIssues":[]},"4":{"status":"completed"},"5":{"status":"completed","retryCount":1,"lastIssues":[{"severity":"HIGH","message":"missing input validation","location":"auth.txt:1"}]},"6":{"status":"skipped","retryCount":0},"7":{"status":"skipped"},"8":{"status":"skipped","retryCount":0,"lastIssues":[]}}"#);
}

/// Two of the nine phases.
const OWN: &str = r#"
preset = "short"
[workflows.short]
description = "implement and review"
[workflows.short.reviewers.general]
kind = "general"
contract = "markdown"
[[workflows.short.phases]]
name = "implement"
number = 4
kind = "agent"
[[workflows.short.phases]]
name = "review"
number = 5
kind = "gate"
reviewers = ["general"]
"#;

/// A task whose last review left an open finding.
fn task_with_open_finding() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| {
        developer(script).rule(ScriptRule::role("review").say(&changes("missing input validation")))
    });
    project.run(&["add", "Add user authentication", "-a", "--max-cycles", "2"]);
    project
}

#[test]
fn open_findings_are_exported_for_code_scanning() {
    let project = task_with_open_finding();
    insta::assert_snapshot!(project.run(&["export", "1", "--format", "sarif"]), @"
    exit 2
    --- stderr
    error: task 1 has not been started
    hint: `signoff work 1` starts it
    ");
    project.run(&["work"]);
    let sarif = project.run(&["export", "1", "--format", "sarif"]).json();
    let run = &sarif["runs"][0];
    assert_eq!(run["invocations"][0]["executionSuccessful"], true);
    let results = run["results"].as_array().unwrap();
    assert_eq!(results.len(), 1);
    assert_eq!(results[0]["message"]["text"], "missing input validation");
    project.run(&["edit", "1", "--verdict", "APPROVED", "--reason", "seen it"]);
}

#[test]
fn all_events_are_exported_line_by_line() {
    let project = task_with_open_finding();
    project.run(&["add", "Something else"]);
    let queued = project.run(&["export", "1", "--format", "jsonl"]).stdout;
    assert_eq!(queued.lines().count(), 1);
    let mut live = project.run(&["work", "1", "--json-events"]).stdout;
    live.insert_str(0, &queued);
    let exported = project.run(&["export", "1", "--format", "jsonl"]).stdout;
    let own = |line: &&str| line.contains("\"loop.") || line.contains("\"task.");
    assert_eq!(exported.lines().collect::<Vec<_>>(), live.lines().filter(own).collect::<Vec<_>>());
    assert!(exported.lines().all(|line| serde_json::from_str::<Value>(line).unwrap()["version"] == 1));
}

#[test]
fn a_task_that_cannot_be_exported_is_an_error() {
    let project = task_with_open_finding();
    let export = |words: &[&str]| project.run(&[&["export"], words].concat());
    insta::assert_snapshot!(export(&["7", "--format", "state-v4"]), @"
    exit 2
    --- stderr
    error: there is no task 7
    hint: `signoff status` lists the tasks
    ");
    insta::assert_snapshot!(export(&["1", "--format", "state-v4"]), @"
    exit 2
    --- stderr
    error: task 1 has not been started
    hint: `signoff work 1` starts it
    ");
    insta::assert_snapshot!(export(&["1", "--format", "state-v3"]), @"
    exit 2
    --- stderr
    error: invalid value 'state-v3' for '--format <FORMAT>'
      [possible values: state-v4, sarif, jsonl]

      tip: a similar value exists: 'state-v4'

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(export(&["1"]), @"
    exit 2
    --- stderr
    error: the following required arguments were not provided:
      --format <FORMAT>

    Usage: signoff export --format <FORMAT> <ID>

    For more information, try '--help'.
    ");
    project.run(&["work"]);
    insta::assert_snapshot!(export(&["1", "--format", "state-v4"]), @"
    exit 2
    --- stderr
    error: task 1 is not an iteration: its workflow `task` does not number its phases from 1 to 9
    hint: --format state-v4 is for tasks of `signoff iterate`; --format jsonl is for every task
    ");
    let nowhere = export(&["1", "--format", "jsonl", "--output", "README.md/place"]);
    assert_eq!((nowhere.code, nowhere.stdout.as_str()), (Some(1), ""), "{nowhere}");
}

#[test]
fn a_half_written_file_never_replaces_a_good_one() {
    let project = project();
    project.run(&["import", "state.json", "--queue"]);
    project.env.write("good.json", "good\n");
    let export = ["export", "1", "--format", "state-v4", "--output", "good.json"];
    let killed = project.env.run_with(&export, &[("SIGNOFF_FAILPOINT", "half_written:1")]);
    assert_eq!((killed.code, project.read("good.json").as_str()), (None, "good\n"));
    // The file size is limited to one block, so writing fails in the middle.
    let full = project
        .env
        .shell(&format!("trap '' XFSZ; ulimit -f 1; exec {PROGRAM} export 1 --format state-v4 --output good.json"));
    assert_eq!((full.code, project.read("good.json").as_str()), (Some(1), "good\n"), "{full}");
    let whole = project.run(&export);
    assert_eq!(whole.code, Some(0), "{whole}");
    let written: Value = serde_json::from_str(&project.read("good.json")).unwrap();
    assert_eq!(written, imported_iteration());
}

#[test]
fn an_invalid_file_creates_nothing() {
    let project = TestProject::new(PROGRAM);
    let mut old = imported_iteration();
    old["version"] = json!(3);
    project.env.write("old.json", serde_json::to_string_pretty(&old).unwrap());
    insta::assert_snapshot!(project.run(&["import", "old.json"]), @"
    exit 2
    --- stderr
    error: version: version 3 is too old: only version 4 can be imported
      --> old.json:2
    hint: fix the file: docs/schema/state-v4.schema.json describes its format
    ");
    let mut worse = imported_iteration();
    worse["iterations"][1]["phases"]["5"]["lastIssues"][0]["severity"] = json!("BAD");
    let worse = serde_json::to_string_pretty(&worse).unwrap();
    insta::assert_snapshot!(project.env.run_with_input(&["import", "-"], &worse), @r#"
    exit 2
    --- stderr
    error: iterations[1].phases.5.lastIssues[0].severity: expected one of HIGH, MEDIUM, LOW, not "BAD"
      --> stdin:76
    hint: fix the file: docs/schema/state-v4.schema.json describes its format
    "#);
    insta::assert_snapshot!(project.env.run_with_input(&["import", "-"], &worse[..700]), @"
    exit 2
    --- stderr
    error: the file: breaks off: EOF while parsing a string
      --> stdin:32
    hint: fix the file: docs/schema/state-v4.schema.json describes its format
    ");
    insta::assert_snapshot!(project.env.run_with_input(&["import", "-"], " ".repeat(2_000_000)), @"
    exit 2
    --- stderr
    error: the file: is longer than 1000000 bytes: it is not a state file
      --> stdin:1
    hint: fix the file: docs/schema/state-v4.schema.json describes its format
    ");
    insta::assert_snapshot!(project.run(&["import", "nowhere.json"]), @"
    exit 2
    --- stderr
    error: cannot read nowhere.json: No such file or directory (os error 2)
      --> nowhere.json
    hint: check the path and its permissions
    ");
    assert!(!project.env.work().join(".signoff").exists());
}

#[test]
fn a_state_without_remaining_phases_is_an_error() {
    let project = project();
    project.configure("[presets.phases.gates.codex_final]\nenabled = false\n");
    let mut last = imported_iteration();
    last["currentPhase"] = json!(9);
    for number in 5..=8 {
        last["iterations"][1]["phases"][number.to_string()]["status"] = json!("completed");
    }
    insta::assert_snapshot!(project.env.run_with_input(&["import", "-"], last.to_string()), @"
    exit 2
    --- stderr
    error: nothing is left to do: every phase from 9 on is switched off here
    hint: `signoff config` shows what switches them off
    ");
}

#[test]
fn a_killed_import_can_be_resumed() {
    for place in ["append:1", "branched:1", "registered:1", "workspace_created:1", "spawn:1", "exit:1", "append:6"] {
        let project = project();
        release_agent(&project);
        let killed = project.env.run_with(&["import", "state.json"], &[("SIGNOFF_FAILPOINT", place)]);
        assert_eq!(killed.code, None, "{place}: {killed}");
        if project.run(&["status"]).stdout.is_empty() {
            // Nothing was recorded, so nothing was started.
            assert_eq!(place, "append:1");
            continue;
        }
        let worked = project.run(&["work"]);
        assert_eq!(worked.code, Some(0), "{place}: {worked}");
        let (left, now) = (imported_iteration(), state(&project));
        assert_eq!(now["iterations"][0], left["iterations"][0], "{place}");
        assert_eq!(now["iterations"][1]["phases"]["5"]["retryCount"], 3, "{place}");
        assert_eq!(now["phase9"], phase("completed"), "{place}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(project.subjects(BRANCH), @"
            Begun elsewhere
            Address review feedback (cycle 3)
            Add user authentication - simplify
            ");
        }
    }
}
