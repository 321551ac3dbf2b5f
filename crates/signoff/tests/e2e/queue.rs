//! The queue: adding tasks, dependencies, parallel work, cancelling, disputing findings.

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::ScriptRule;

use crate::PROGRAM;
use crate::actors::{APPROVED, changes, developer};

fn project() -> TestProject {
    TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("task-{task}.txt", "done\n").say("Done.\n"))
            .rule(ScriptRule::role("review").say(APPROVED))
    })
}

fn status(project: &TestProject, task: &str) -> String {
    let row = project.run(&["show", task, "--json"]).json()["task"].clone();
    format!("{} {}", row["status"].as_str().unwrap_or_default(), row["outcome"])
}

#[test]
fn an_invalid_task_is_refused_and_not_stored() {
    let project = project();
    insta::assert_snapshot!(project.run(&["add", "  \n "]), @r#"
    exit 2
    --- stderr
    error: a task needs a text
    hint: signoff add "Add user authentication"
    "#);
    insta::assert_snapshot!(project.run(&["add", "Add it", "--depends-on", "7"]), @"
    exit 2
    --- stderr
    error: there is no task 7 to depend on
    hint: `signoff status` lists the tasks
    ");
    insta::assert_snapshot!(project.run(&["add", "Add it", "--plan", "missing.md"]), @"
    exit 2
    --- stderr
    error: cannot read missing.md: No such file or directory (os error 2)
      --> missing.md
    hint: check the path and its permissions
    ");
    insta::assert_snapshot!(project.run(&["add", "Add it", "--prompt-file", "missing.md"]), @"
    exit 2
    --- stderr
    error: cannot read missing.md: No such file or directory (os error 2)
      --> missing.md
    hint: check the path and its permissions
    ");
    insta::assert_snapshot!(project.run(&["add", "Add it", "--depends-on", "one"]), @"
    exit 2
    --- stderr
    error: invalid value 'one' for '--depends-on <ID>': `one` is not a task number

    For more information, try '--help'.
    ");
    for words in [
        &["add", "Add it", "--type", "fix"][..],
        &["add", "Add it", "--max-cycles", "0"],
        &["add", "Add it", "--effort", "huge"],
        &["add"],
    ] {
        assert_eq!(project.run(words).code, Some(2), "{words:?}");
    }
    assert_eq!(project.run(&["status", "--json"]).json()["tasks"], serde_json::json!([]));
}

#[test]
fn a_task_can_come_from_stdin() {
    let project = project();
    let added = project.env.run_with_input(&["add", "-"], "\nAdd logout\n\nEnd the session and tell the person.\n");
    insta::assert_snapshot!(added, @"
    exit 0
    --- stdout
    Added task #1: Add logout
    --- stderr
    `signoff work` starts it
    ");
    project.run(&["work"]);
    let prompt = &project.calls().all()[0].prompt.clone();
    assert!(prompt.contains("**Add logout**") && prompt.contains("tell the person"), "{prompt}");
    assert_eq!(project.env.run_with_input(&["add", "-"], "").code, Some(2));
    assert_eq!(project.env.run_with_input(&["add", "-"], b"caf\xe9").code, Some(2));
}

#[test]
fn a_custom_prompt_replaces_the_built_in_one() {
    let project = project();
    project.env.write("opening.md", "You are a gardener.\n");
    project.run(&["add", "Add it", "--prompt-file", "opening.md"]);
    project.env.write(".signoff/prompts/implement.md", "You are a carpenter.\n");
    project.run(&["add", "Add more"]);
    project.run(&["work", "-j", "1"]);
    let calls = project.calls();
    assert!(calls.all()[0].prompt.starts_with("You are a gardener."), "{}", calls.all()[0].prompt);
    assert!(calls.all()[1].prompt.starts_with("You are a carpenter."), "{}", calls.all()[1].prompt);
}

/// The agent is asked to change no file: its answer is the plan.
#[test]
fn the_answer_of_the_agent_is_the_plan() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script.rule(ScriptRule::role("plan").task("3")).rule(ScriptRule::role("plan").say("# The plan\n\n1. Do it.\n"))
    });
    project.run(&["add", "Plan the thing", "-t", "plan"]);
    let work = project.run(&["work"]);
    insta::assert_snapshot!(work.stdout, @"
    Running task #1: Plan the thing
      Planning...
      Plan complete
    ○ Task #1 completed (not reviewed)
    ");
    let show = project.run(&["show", "1", "--json"]).json();
    let kept = show["artifacts"][0].as_str().unwrap();
    assert_eq!(work.stderr, format!("the plan is in {kept}\n"));
    assert_eq!(project.read(kept), "# The plan\n\n1. Do it.\n");
    assert_eq!(project.run(&["add", "Do the thing", "--plan", kept]).code, Some(0));
    project.run(&["add", "Plan nothing", "-t", "plan"]);
    insta::assert_snapshot!(project.run(&["work", "3"]), @"
    exit 1
    --- stdout
    Running task #3: Plan nothing
      Planning...
      Plan failed: ended without changing anything
    ✗ Task #3 failed: the implementer failed (implementer_failed)
        Next: signoff show 3, then signoff retry 3
    ");
}

#[test]
fn a_task_waits_for_its_dependencies_and_starts_from_their_work() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").task("1").call(1).exit(1))
            .rule(ScriptRule::role("implement").write("task-{task}.txt", "done\n"))
    });
    project.run(&["add", "First"]);
    project.run(&["add", "Second", "--depends-on", "1"]);
    insta::assert_snapshot!(project.run(&["work", "2"]), @"
    exit 3
    --- stderr
    Nothing is ready: pending tasks wait for other tasks (`signoff status`)
    ");
    assert_eq!(project.run(&["work"]).code, Some(1));
    project.run(&["add", "Third", "--depends-on", "2"]);
    assert_eq!(status(&project, "2"), "blocked null", "what it depends on failed");
    assert_eq!(status(&project, "3"), "blocked null", "it depends on a blocked task");
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 1
    --- stderr
    error: task 2 waits for task 1, which did not pass (failed implementer_failed)
    hint: signoff show 1, then signoff retry 1
    ");
    insta::assert_snapshot!(project.run(&["work", "3"]), @"
    exit 1
    --- stderr
    error: task 3 waits for task 1, which did not pass (failed implementer_failed)
    hint: signoff show 1, then signoff retry 1
    ");
    let json = project.run(&["work", "--json"]);
    assert_eq!((json.code, json.json()["tasks"][0]["status"].as_str()), (Some(1), Some("blocked")));
    project.run(&["cancel", "3"]);
    assert_eq!(project.run(&["retry", "1"]).code, Some(0));
    assert_eq!(project.run(&["work"]).code, Some(0));
    insta::assert_snapshot!(project.git("ls-tree --name-only signoff/task-2-second"), @"
    README.md
    signoff.toml
    task-1.txt
    task-2.txt
    ");
    insta::assert_snapshot!(project.subjects("signoff/task-2-second"), @"
    First - initial implementation
    Second - initial implementation
    ");
    let row = project.run(&["show", "2", "--json"]).json()["task"].clone();
    assert_eq!(row["base"], project.git("rev-parse signoff/task-1-first").trim());
    assert_eq!(row["depends_on"], serde_json::json!([1]));
}

/// The dependency did not land, so it is on no branch of the run.
#[test]
fn slots_start_from_the_work_of_their_dependencies() {
    let project = project();
    project.run(&["add", "First"]);
    project.run(&["work"]);
    project.run(&["add", "Second", "--depends-on", "1"]);
    project.run(&["add", "Third", "--depends-on", "1", "--depends-on", "2"]);
    let output = project.run(&["run", "queue", "-j", "1"]);
    assert_eq!(output.code, Some(0), "{output}");
    insta::assert_snapshot!(output.stderr, @"");
    let base = |task: &str| project.run(&["show", task, "--json"]).json()["task"]["base"].clone();
    assert_eq!(base("2"), project.git("rev-parse signoff/task-1-first").trim());
    assert_eq!(base("3"), project.git("rev-parse signoff/run-2~1").trim(), "the run has all it depends on");
    insta::assert_snapshot!(project.git("ls-tree --name-only signoff/run-2"), @"
    README.md
    signoff.toml
    task-1.txt
    task-2.txt
    task-3.txt
    ");
}

/// No commit contains both dependencies: the task starts from the first one and prints a note.
#[test]
fn dependencies_without_a_common_commit() {
    let project = project();
    project.run(&["add", "One"]);
    project.run(&["add", "Other"]);
    project.run(&["work"]);
    project.run(&["add", "Both", "--depends-on", "1", "--depends-on", "2"]);
    let output = project.run(&["run", "queue"]);
    insta::assert_snapshot!(output.stderr, @"no commit contains everything that it depends on: it starts after task 1, without task 2");
    let base = project.run(&["show", "3", "--json"]).json()["task"]["base"].clone();
    assert_eq!(base, project.git("rev-parse signoff/task-1-one").trim());
}

#[test]
fn a_task_that_depends_on_a_cancelled_one_is_blocked() {
    let project = project();
    project.run(&["add", "First"]);
    project.run(&["add", "Second", "--depends-on", "1"]);
    project.run(&["cancel", "1"]);
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 1
    --- stderr
    error: task 2 waits for task 1, which did not pass (cancelled)
    hint: `signoff cancel 2`, then add it again without `--depends-on`
    ");
}

#[test]
fn failed_tasks_are_named_if_nothing_else_is_left() {
    let project = TestProject::with_agent(PROGRAM, |script| script.rule(ScriptRule::role("implement").exit(1)));
    project.run(&["add", "First"]);
    assert_eq!(project.run(&["work"]).code, Some(1));
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 1
    --- stderr
    Nothing to do: task 1 failed: signoff show 1, then signoff retry 1
    ");
    project.run(&["add", "Second"]);
    assert_eq!(project.run(&["work"]).code, Some(1));
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 1
    --- stderr
    Nothing to do: 2 tasks failed (`signoff status`); the first one: signoff show 1, then signoff retry 1
    ");
    insta::assert_snapshot!(project.run(&["work", "1"]), @"
    exit 1
    --- stderr
    Nothing to do: task 1 failed: signoff show 1, then signoff retry 1
    ");
}

#[test]
fn tasks_are_named_by_number_with_or_without_a_hash() {
    let project = project();
    for title in ["One", "Two", "Three"] {
        project.run(&["add", title]);
    }
    assert_eq!(project.run(&["work", "3", "#1", "-j", "1"]).code, Some(0));
    let worked: Vec<_> = project.calls().all().iter().map(|call| call.start.task.clone()).collect();
    assert_eq!(worked, ["3", "1"]);
    assert_eq!(status(&project, "2"), "pending null");
    insta::assert_snapshot!(project.run(&["work", "3"]), @"
    exit 0
    --- stderr
    Nothing to do: the named tasks have ended (`signoff status`)
    ");
}

#[test]
fn every_task_that_cannot_start_is_reported() {
    let project = project();
    for (title, place) in [("One", "task-1"), ("Two", "task-2")] {
        project.run(&["add", title]);
        project.env.write(&format!(".signoff/worktrees/{place}"), "mine\n");
    }
    let output = project.run(&["work", "-j", "2"]);
    assert_eq!(output.code, Some(1), "{output}");
    for place in ["worktrees/task-1", "worktrees/task-2"] {
        let lines = output.stderr.lines().filter(|line| line.starts_with("error: ") && line.contains(place));
        assert_eq!(lines.count(), 1, "{output}");
    }
    assert_eq!(project.calls().summary(), "");
}

#[test]
fn a_pending_task_can_be_cancelled() {
    let project = project();
    project.run(&["add", "One"]);
    insta::assert_snapshot!(project.run(&["cancel", "1"]), @"
    exit 0
    --- stdout
    Task #1 cancelled
    ");
    assert_eq!(status(&project, "1"), "cancelled \"cancelled\"");
    insta::assert_snapshot!(project.run(&["work"]), @r#"
    exit 0
    --- stderr
    Nothing to do: `signoff add "…"` adds a task
    "#);
    insta::assert_snapshot!(project.run(&["cancel", "1"]), @"
    exit 2
    --- stderr
    error: it has ended already
    hint: `signoff show ID` shows the state of the task
    ");
}

/// The agent starts and then waits forever.
#[test]
fn a_running_task_can_be_cancelled() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script.rule(ScriptRule::role("implement").write("half.txt", "half\n").hang())
    });
    project.run(&["add", "One"]);
    let work = project.start(&["work"]);
    let is_running = || project.env.work().join(".signoff/worktrees/task-1/half.txt").exists();
    assert!((0..2_000).any(|_| project.run(&["status"]).code == Some(0) && is_running()), "never began");
    let cancelled = project.run(&["cancel", "1", "--json"]);
    assert_eq!(cancelled.json()["task"]["status"], "cancelled", "{cancelled}");
    let worked = project.env.finish(work);
    insta::assert_snapshot!(worked, @"
    exit 0
    --- stdout
    Running task #1: One
      Implementing...
    - Task #1 cancelled
    ");
    assert!(project.env.work().join(".signoff/worktrees/task-1").exists(), "its worktree stays");
    assert_eq!(project.git("rev-parse --verify -q signoff/task-1-one").trim().len(), 40);
    insta::assert_snapshot!(project.run(&["cancel", "1"]), @"
    exit 2
    --- stderr
    error: it has ended already
    hint: `signoff show ID` shows the state of the task
    ");
}

#[test]
fn a_finding_is_disputed_by_the_start_of_its_id() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        developer(script).rule(ScriptRule::role("review").say(&changes("missing input validation")))
    });
    project.run(&["add", "One", "-a", "--max-cycles", "1"]);
    project.run(&["work"]);
    let ledger = project.run(&["show", "1", "--json"]).json()["ledger"].clone();
    let id = ledger[0]["id"].as_str().unwrap();
    let disputed = project.run(&["dispute", &id[..8], "--reason", "the caller validates"]);
    assert_eq!(disputed.stdout, format!("Finding {id} is refuted by a person\n"));
    assert_eq!(project.run(&["show", "1", "--json"]).json()["ledger"][0]["state"], "refuted");
    insta::assert_snapshot!(project.run(&["dispute", "f-unknown", "--reason", "no"]), @"
    exit 2
    --- stderr
    error: there is no finding f-unknown
    hint: `signoff show ID` lists the findings of a task
    ");
    assert_eq!(project.run(&["dispute", id]).code, Some(2), "a dispute needs a reason");
    insta::assert_snapshot!(project.run(&["dispute", id, "--reason", "really"]).to_string().replace(id, "[finding]"), @"
    exit 2
    --- stderr
    error: finding [finding] is refuted already: no review opens it again
    hint: `signoff show ID` shows the state of the task
    ");
}

#[test]
fn a_finding_of_several_tasks_is_disputed_in_the_intended_task() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        developer(script).rule(ScriptRule::role("review").say(&changes("missing input validation")))
    });
    let state = |task: &str| project.run(&["show", task, "--json"]).json()["ledger"][0]["state"].clone();
    project.run(&["add", "One", "-a", "--max-cycles", "1"]);
    project.run(&["work"]);
    project.run(&["review", "1"]);
    let id = project.run(&["show", "1", "--json"]).json()["ledger"][0]["id"].as_str().unwrap().to_owned();
    let dispute = |more: &[&str]| {
        let words = ["dispute", &id, "--reason", "the caller validates"];
        project.run(&[&words[..], more].concat())
    };
    // Both tasks share a branch: the later one is what the person sees.
    let json = dispute(&["--json"]).json();
    assert_eq!((&json["state"], &json["task_id"]), (&"refuted".into(), &2.into()));
    assert_eq!((state("1"), state("2")), ("open".into(), "refuted".into()));
    // Refuted findings are not candidates.
    assert_eq!(dispute(&["--json"]).json()["task_id"], 1);
    let settled = dispute(&["--task", "1"]);
    assert_eq!(settled.code, Some(2), "{settled}");
    assert!(settled.stderr.contains("is refuted already"), "{settled}");
    project.run(&["add", "Another", "-a", "--max-cycles", "1"]);
    project.run(&["work"]);
    let refused = dispute(&[]).to_string().replace(&id, "[finding]");
    insta::assert_snapshot!(refused, @"
    exit 2
    --- stderr
    error: several tasks have the finding [finding]
    hint: select one with --task 1 or --task 2 or --task 3
    ");
    assert_eq!(dispute(&["--task", "3", "--json"]).json()["task_id"], 3);
    insta::assert_snapshot!(dispute(&["--task", "9"]).to_string().replace(&id, "[finding]"), @"
    exit 2
    --- stderr
    error: task 9 has no finding [finding]
    hint: `signoff show 9` lists its findings
    ");
}

#[test]
fn in_parallel_every_line_names_its_task() {
    // The second task ends while the first runs; the first has started when the second starts.
    let project = TestProject::with_agent(PROGRAM, |script| {
        let waits = ScriptRule::role("implement").task("1").write("1.txt", "1\n").write("../../../../begun", "");
        script
            .rule(waits.wait_for("../../../../go"))
            .rule(ScriptRule::role("implement").wait_for("../../../../begun").write("2.txt", "2\n"))
    });
    project.run(&["add", "One"]);
    project.run(&["add", "Two"]);
    let program = project.start(&["work", "-j", "2"]);
    let second = || project.run(&["status"]).stdout.contains("○ 2.");
    signoff_testkit::processes::wait_until("the second is through", second);
    std::fs::write(project.env.root().join("go"), "").unwrap();
    let worked = project.env.finish(program);
    let mut lines: Vec<&str> = worked.stdout.lines().collect();
    insta::assert_snapshot!(lines[lines.len() - 3..].join("\n"), @"
      #1 Implementation complete
    ○ Task #1 completed (not reviewed)
    ○ Run 1 completed, not all approved: 2 tasks, 2 completed
    ");
    lines.sort_unstable();
    insta::assert_snapshot!(lines.join("\n"), @"
      #1 Implementation complete
      #1 Implementing...
      #2 Implementation complete
      #2 Implementing...
    Running task #1: One
    Running task #2: Two
    ○ Run 1 completed, not all approved: 2 tasks, 2 completed
    ○ Task #1 completed (not reviewed)
    ○ Task #2 completed (not reviewed)
    ");
}
