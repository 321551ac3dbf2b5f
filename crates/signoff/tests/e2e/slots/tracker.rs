//! The tracker: beads are listed, claimed, worked, landed and closed.

use std::fs;

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::ScriptRule;

use super::{BD, DRIFT, PASS, bead, beads, install, passing_agent, tracked, tracker_calls, without_commit_ids, works};
use crate::PROGRAM;

/// Runs the program without a tracker program on the PATH.
fn without_a_program(project: &TestProject, arguments: &str) -> signoff_testkit::ProgramOutput {
    project.env.shell(&format!(
        "mkdir -p ../bare && ln -sf \"$(command -v git)\" \"$(command -v sh)\" ../bare/ && \
         signoff=$(command -v signoff) && PATH=\"$(cd ../bare && pwd)\" \"$signoff\" {arguments}"
    ))
}

#[test]
fn a_bead_is_claimed_worked_landed_and_closed() {
    let project = tracked(&["Add a greeting", "Add a farewell"], passing_agent);
    let checkout = project.checkout();
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads", "-j", "1", "--review"])), @"
    exit 0
    --- stdout
    Running task #1 (b-1): Add a greeting
      #1 b-1 [1/6] Implementing...
      #1 b-1 [1/6] Implementation complete
      #1 b-1 [1/6] Running review...
      #1 b-1 [1/6] Review: pass
      #1 b-1 Landing...
      #1 b-1 Landed on signoff/run-1 as [COMMIT]
    ✓ Task #1 (b-1) completed (APPROVED after 1 cycle)
    Running task #2 (b-2): Add a farewell
      #2 b-2 [1/6] Implementing...
      #2 b-2 [1/6] Implementation complete
      #2 b-2 [1/6] Running review...
      #2 b-2 [1/6] Review: pass
      #2 b-2 Landing...
      #2 b-2 Landed on signoff/run-1 as [COMMIT]
    ✓ Task #2 (b-2) completed (APPROVED after 1 cycle)
    ✓ Run 1 completed, all approved: 2 tasks, 2 completed
        Its work is on signoff/run-1; `signoff land` lands it on the default branch
    ");
    // Closing a bead does not block the next one, so only the order of the calls for one bead is fixed.
    let calls_about =
        |id: &str| tracker_calls(&project).lines().filter(|line| line.contains(id)).collect::<Vec<_>>().join("\n");
    insta::assert_snapshot!(calls_about("b-1"), @"
    update b-1 --claim --json
    show b-1 --json
    close b-1 --reason done by signoff: task 1 of run 1, on the branch signoff/run-1
    ");
    insta::assert_snapshot!(calls_about("b-2"), @"
    update b-2 --claim --json
    show b-2 --json
    close b-2 --reason done by signoff: task 2 of run 1, on the branch signoff/run-1
    ");
    assert_eq!(beads(&project, "closed"), ["b-1", "b-2"]);
    let files = project.git("ls-tree --name-only signoff/run-1");
    assert!(files.contains("1.txt") && files.contains("2.txt"), "{files}");
    assert_eq!(project.checkout(), checkout);
    assert_eq!(project.run(&["doctor"]).code, Some(0));
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads"])), @"
    exit 0
    --- stderr
    Nothing is ready in bd
    ");
}

#[test]
fn without_the_review_flag_no_reviewer_is_called() {
    let project = tracked(&["Add a greeting"], passing_agent);
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads"])), @"
    exit 0
    --- stdout
    Running task #1 (b-1): Add a greeting
      #1 b-1 Implementing...
      #1 b-1 Implementation complete
      #1 b-1 Landing...
      #1 b-1 Landed on signoff/run-1 as [COMMIT]
    ○ Task #1 (b-1) completed (not reviewed)
    ");
    insta::assert_snapshot!(project.calls().summary(), @"implement task 1 cycle 0: exit 0");
    assert_eq!(beads(&project, "closed"), ["b-1"]);
}

#[test]
fn all_slots_start_in_parallel() {
    let waits = |number: &str| format!("../../../../begun-{number}");
    let project = tracked(&["One", "Two", "Three"], |script| {
        let begins = works().write(&waits("{task}"), "");
        // Each waits for all others: run one after the other they would never end.
        script.rule((1..=3).fold(begins, |rule, number| rule.wait_for(&waits(&number.to_string()))))
    });
    let output = project.run(&["run", "beads", "-j", "3"]);
    assert_eq!(output.code, Some(0), "{output}");
    let calls = tracker_calls(&project);
    let (before, _) = calls.rsplit_once("update").unwrap();
    assert_eq!(before.matches("ready").count(), 1, "once for all slots: {calls}");
}

#[test]
fn work_with_drift_is_fixed_and_reviewed_again() {
    let project = tracked(&["Add a greeting"], |script| {
        script
            .rule(works())
            .rule(ScriptRule::role("review").cycle(1).say(DRIFT))
            .rule(ScriptRule::role("review").say(PASS))
            .rule(ScriptRule::role("fix").append("{task}.txt", "check\n").say("Fixed.\n"))
    });
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads", "--review"])), @"
    exit 0
    --- stdout
    Running task #1 (b-1): Add a greeting
      #1 b-1 [1/6] Implementing...
      #1 b-1 [1/6] Implementation complete
      #1 b-1 [1/6] Running review...
      #1 b-1 [1/6] Review: drift - work.txt lacks a check
      #1 b-1 [fix 1/5] Fixing...
      #1 b-1 [2/6] Running review...
      #1 b-1 [2/6] Review: pass
      #1 b-1 Landing...
      #1 b-1 Landed on signoff/run-1 as [COMMIT]
    ✓ Task #1 (b-1) completed (APPROVED after 2 cycles)
    ");
    let calls = project.calls();
    let again = &calls.with_role("review").nth(1).unwrap().prompt;
    for words in [
        "- Task id: b-1",
        "Add a greeting",
        "- Status: in_progress",
        "- Priority: 2",
        "Fixed.",
        "+work",
        "work.txt lacks a check",
        "followUpPrompt",
    ] {
        assert!(again.contains(words), "`{words}` is not in\n{again}");
    }
    let fix = &calls.with_role("fix").next().unwrap().prompt;
    assert!(fix.contains("work.txt lacks a check") && fix.contains("no_beads_available"), "{fix}");
}

#[test]
fn a_tracker_file_is_only_read() {
    let project = TestProject::with_agent(PROGRAM, passing_agent);
    let blocked = r#"{"id":"b-3","title":"Third","status":"open","priority":0,"dependencies":[{"issue_id":"b-3","depends_on_id":"b-1","type":"blocks"}]}"#;
    let text = [
        bead("b-1", "First", 1).as_str(),
        &bead("b-2", "Second", 0),
        blocked,
        r#"{"id":"b-4","title":"A gate","status":"open","issue_type":"gate"}"#,
        r#"{"id":"b-5","tit"#,
    ]
    .join("\n");
    project.env.write(".beads/issues.jsonl", &text);
    project.commit("Track");
    insta::assert_snapshot!(without_commit_ids(&without_a_program(&project, "run beads --dry-run")), @"
    exit 0
    --- stdout
    .beads/issues.jsonl: 2 tasks ready, not reviewed
      b-2  P0  Second
      b-1  P1  First

    Left out
      b-3  Third: blocked, after b-1
      b-4  A gate: not a work item

    Warnings
      .beads/issues.jsonl:5: the last line is cut off and was left out
    ");
    insta::assert_snapshot!(without_commit_ids(&without_a_program(&project, "run beads -j 1")), @"
    exit 0
    --- stdout
    Running task #1 (b-2): Second
      #1 b-2 Implementing...
      #1 b-2 Implementation complete
      #1 b-2 Landing...
      #1 b-2 Landed on signoff/run-1 as [COMMIT]
    ○ Task #1 (b-2) completed (not reviewed)
    Running task #2 (b-1): First
      #2 b-1 Implementing...
      #2 b-1 Implementation complete
      #2 b-1 Landing...
      #2 b-1 Landed on signoff/run-1 as [COMMIT]
    ○ Task #2 (b-1) completed (not reviewed)
    Running task #3 (b-3): Third
      #3 b-3 Implementing...
      #3 b-3 Implementation complete
      #3 b-3 Landing...
      #3 b-3 Landed on signoff/run-1 as [COMMIT]
    ○ Task #3 (b-3) completed (not reviewed)
    ○ Run 1 completed, not all approved: 3 tasks, 3 completed
        Its work is on signoff/run-1; `signoff land` lands the approved work on the default branch
    --- stderr
    warning: .beads/issues.jsonl:5: the last line is cut off and was left out
    ");
    assert_eq!(project.read(".beads/issues.jsonl"), text);
    insta::assert_snapshot!(without_commit_ids(&without_a_program(&project, "run .beads/issues.jsonl")), @"
    exit 0
    --- stderr
    warning: .beads/issues.jsonl:5: the last line is cut off and was left out
    b-1, b-2, b-3: done by signoff, open in .beads/issues.jsonl. signoff cannot see that a task was reopened in a file: `signoff add` adds a new task
    Nothing is ready in .beads/issues.jsonl
    ");
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "--as", "beads", ".beads/issues.jsonl", "--dry-run"])), @"
    exit 0
    --- stdout
    .beads/issues.jsonl: 0 tasks ready

    Left out
      b-4  A gate: not a work item

    Warnings
      .beads/issues.jsonl:5: the last line is cut off and was left out
    ");
}

/// A bead that depended on another one, as the tracker prints it.
pub(super) fn blocked(id: &str, title: &str, by: &str) -> String {
    let dependency = format!(r#"{{"issue_id":"{id}","depends_on_id":"{by}","type":"blocks"}}"#);
    format!(r#"{{"id":"{id}","title":"{title}","status":"open","dependencies":[{dependency}]}}"#) + "\n"
}

#[test]
fn a_bead_starts_from_the_work_of_its_dependency() {
    for review in ["--review", "--no-review"] {
        let project = tracked(&["First"], passing_agent);
        assert_eq!(project.run(&["run", "beads", review]).code, Some(0));
        fs::write(project.env.root().join("beads/open/b-2"), blocked("b-2", "Second", "b-1")).unwrap();
        assert_eq!(project.run(&["run", "beads", review]).code, Some(0));
        let files = project.git("ls-tree --name-only signoff/run-2");
        assert!(files.contains("1.txt") && files.contains("2.txt"), "{review}: {files}");
        assert_eq!(project.run(&["show", "2", "--json"]).json()["task"]["depends_on"], serde_json::json!([1]));
    }
}

/// Trackers may omit dependencies in the list of ready beads and print them only for a single bead.
#[test]
fn dependencies_can_be_read_when_a_bead_is_claimed() {
    let project = tracked(&["First"], passing_agent);
    assert_eq!(project.run(&["run", "beads"]).code, Some(0));
    let second = bead("b-2", "Second", 2);
    fs::write(project.env.root().join("beads/open/b-2"), format!("{second}\n")).unwrap();
    let needs = r#"[{"id":"b-1","title":"First","dependency_type":"blocks"}]"#;
    let shown = format!(r#"{},"dependencies":{needs}}}"#, second.trim_end_matches('}'));
    install(&project, &BD.replace("show)\n", &format!("show)\necho '{shown}'; exit\n")));
    assert_eq!(project.run(&["run", "beads"]).code, Some(0));
    let files = project.git("ls-tree --name-only signoff/run-2");
    assert!(files.contains("1.txt") && files.contains("2.txt"), "{files}");
}

#[test]
fn a_reopened_bead_becomes_a_new_task() {
    let project = tracked(&["Add a greeting"], passing_agent);
    assert_eq!(project.run(&["run", "beads"]).code, Some(0));
    let directory = project.env.root().join("beads");
    fs::rename(directory.join("closed/b-1"), directory.join("open/b-1")).unwrap();
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads"])), @"
    exit 0
    --- stdout
    Running task #2 (b-1): Add a greeting
      #2 b-1 Implementing...
      #2 b-1 Implementation complete
      #2 b-1 Landing...
      #2 b-1 Landed on signoff/run-2 as [COMMIT]
    ○ Task #2 (b-1) completed (not reviewed)
    ");
    assert_eq!(beads(&project, "closed"), ["b-1"]);
    assert_eq!(project.run(&["doctor"]).code, Some(0));
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads"])), @"
    exit 0
    --- stderr
    Nothing is ready in bd
    ");
}

/// A bead that could not be closed is open in the tracker, but its task is complete.
#[test]
fn a_bead_that_was_not_closed_is_not_worked_again() {
    let project = tracked(&["Add a greeting"], passing_agent);
    install(&project, &BD.replace("close) ", "close) mv begun/$2 open/$2; exit 1; "));
    assert_eq!(project.run(&["run", "beads"]).code, Some(1));
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads"])), @"
    exit 0
    --- stderr
    Skipped b-1: claimed by task 1 (completed): `signoff run --resume` closes b-1 if it is still open, `signoff add` adds a new task
    Run 1 is unfinished: `signoff run --resume 1` continues it
    Nothing is ready in bd
    ");
    install(&project, &BD.replace("mv \"begun/$2\" \"closed", "mv \"open/$2\" \"closed"));
    assert_eq!(project.run(&["run", "--resume"]).code, Some(0));
    assert_eq!(beads(&project, "closed"), ["b-1"]);
}

#[test]
fn a_tracker_that_reopens_closed_beads_does_not_cause_an_endless_run() {
    let project = tracked(&["Add a greeting"], passing_agent);
    install(&project, &BD.replace("close) ", "close) mv begun/$2 open/$2; exit; "));
    assert_eq!(project.run(&["run", "beads"]).code, Some(0));
    assert_eq!(project.calls().with_role("implement").count(), 1);
}

/// The first bead is closed only once the second one is worked.
#[test]
fn a_slow_close_does_not_block_a_slot() {
    let project = tracked(&["One", "Two", "Three"], |script| {
        script.rule(works().task("2").write("../../../../beads/go", "")).rule(works())
    });
    // Closing the first bead makes the last one ready.
    let beads_of = |name: &str| project.env.root().join("beads").join(name);
    fs::rename(beads_of("open/b-3"), beads_of("b-3")).unwrap();
    let waits = "close) while [ $2 = b-1 ] && [ ! -e go ]; do sleep 0.05; done; [ $2 = b-1 ] && mv b-3 open; ";
    install(&project, &BD.replace("close) ", waits));
    let output = project.run(&["run", "beads", "-j", "1"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(beads(&project, "closed"), ["b-1", "b-2", "b-3"]);
    assert_eq!(project.calls().with_role("implement").count(), 3);
    let claims = tracker_calls(&project).lines().filter(|line| line.starts_with("update")).count();
    assert_eq!(claims, 3, "each is offered once");
}

#[test]
fn a_dry_run_starts_nothing() {
    let project = tracked(&["Add a greeting", "Add a farewell"], passing_agent);
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads", "--dry-run"])), @"
    exit 0
    --- stdout
    bd: 2 tasks ready, not reviewed
      b-1  P2  Add a greeting
      b-2  P2  Add a farewell
    ");
    insta::assert_snapshot!(project.run(&["run", "beads", "--review", "--dry-run", "--json"]).stdout, @r#"
    {
      "version": 1,
      "source": "bd",
      "ready": [
        {
          "id": "b-1",
          "title": "Add a greeting",
          "priority": 2,
          "auto_review": true
        },
        {
          "id": "b-2",
          "title": "Add a farewell",
          "priority": 2,
          "auto_review": true
        }
      ],
      "left_out": [],
      "warnings": []
    }
    "#);
    project.run(&["add", "First", "-a"]);
    project.run(&["add", "Second", "--depends-on", "1"]);
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "queue", "--dry-run"])), @"
    exit 0
    --- stdout
    queue: 1 task ready, each reviewed
      1  First

    Left out
      2  Second: waits for task 1
    ");
    assert_eq!(project.calls().all().len(), 0);
    assert_eq!(beads(&project, "open"), ["b-1", "b-2"]);
}

#[test]
fn the_queue_fills_slots_too() {
    let project = TestProject::with_agent(PROGRAM, passing_agent);
    project.run(&["add", "Reviewed", "-a"]);
    project.run(&["add", "Not reviewed"]);
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "queue", "-j", "1"])), @"
    exit 0
    --- stdout
    Running task #1: Reviewed
      [1/6] Implementing...
      [1/6] Implementation complete
      [1/6] Running review...
      [1/6] Review: pass
      Landing...
      Landed on signoff/run-1 as [COMMIT]
    ✓ Task #1 completed (APPROVED after 1 cycle)
    Running task #2: Not reviewed
      Implementing...
      Implementation complete
      Landing...
      Landed on signoff/run-1 as [COMMIT]
    ○ Task #2 completed (not reviewed)
    ○ Run 1 completed, not all approved: 2 tasks, 2 completed
        Its work is on signoff/run-1; `signoff land` lands the approved work on the default branch
    ");
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "queue", "--no-review"])), @r#"
    exit 0
    --- stderr
    Nothing to do: `signoff add "…"` adds a task
    "#);
    let files = project.git("ls-tree --name-only signoff/run-1");
    assert!(files.contains("1.txt") && files.contains("2.txt"), "{files}");
}

#[test]
fn a_linked_worktree_has_the_tracker_of_the_main_checkout() {
    let project = TestProject::with_agent(PROGRAM, passing_agent);
    project.git("worktree add -q ../linked -b linked");
    project.env.write(".beads/issues.jsonl", bead("b-1", "First", 1));
    insta::assert_snapshot!(without_a_program(&project, "--version >/dev/null; cd ../linked && PATH=\"$(cd ../bare && pwd)\" \"$signoff\" run beads --dry-run"), @"
    exit 0
    --- stdout
    .beads/issues.jsonl: 1 task ready, not reviewed
      b-1  P1  First
    ");
}

#[test]
fn custom_prompts() {
    let project = tracked(&["Add a greeting"], |script| {
        script
            .rule(works())
            .rule(ScriptRule::role("review").cycle(1).say(DRIFT))
            .rule(ScriptRule::role("review").say(PASS))
            .rule(ScriptRule::role("fix").append("{task}.txt", "check\n"))
    });
    project.env.write("prompts/developer.md", "You are our developer.\n");
    project.env.write("prompts/reviewer.md", "You are our reviewer.\n");
    project.configure(
        "reviewEnabled = true\nreviewMaxFixAttempts = 1\ndeveloperPromptPath = \"prompts/developer.md\"\n\
         reviewerPromptPath = \"prompts/missing.md\"\n",
    );
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads"])), @"
    exit 2
    --- stderr
    error: there is no prompt prompts/missing.md
      --> signoff.toml:6
    hint: create it, or name another file
    ");
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads", "--developer-prompt", "nowhere.md"])), @"
    exit 2
    --- stderr
    error: there is no prompt nowhere.md
      --> --developer-prompt
    hint: create it, or name another file
    ");
    assert_eq!(tracker_calls(&project), "", "the tracker was not called");
    let output = project.run(&["run", "beads", "--reviewer-prompt", "prompts/reviewer.md"]);
    assert_eq!(output.code, Some(0), "{output}");
    let calls = project.calls();
    let begin = |role| calls.with_role(role).map(|call| call.prompt.lines().next().unwrap().to_owned());
    assert!(begin("implement").chain(begin("fix")).all(|line| line == "You are our developer."));
    assert!(begin("review").all(|line| line == "You are our reviewer."));
    insta::assert_snapshot!(project.calls().summary(), @"
    implement task 1 cycle 0: exit 0
    review general task 1 cycle 1: exit 0
    fix task 1 cycle 1: exit 0
    review general task 1 cycle 2: exit 0
    ");
}

#[test]
fn a_missing_tracker() {
    let project = TestProject::with_agent(PROGRAM, passing_agent);
    insta::assert_snapshot!(without_commit_ids(&without_a_program(&project, "run beads")), @"
    exit 2
    --- stderr
    error: there is no tracker: neither bd nor br is on the PATH, and there is no .beads/issues.jsonl
    hint: install beads and run `bd init`, or name its file: signoff run --as beads FILE
    ");
    insta::assert_snapshot!(without_commit_ids(&without_a_program(&project, "run --as beads nowhere.jsonl")), @"
    exit 2
    --- stderr
    error: cannot read nowhere.jsonl: No such file or directory (os error 2)
      --> nowhere.jsonl
    hint: name a plan file, a specification, `beads`, or `queue`
    ");
    project.env.write("plan.md", "### Task 1: One\n\nDo it.\n");
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "plan.md", "--review"])), @"
    exit 2
    --- stderr
    error: --review is for the slots of `beads` and `queue`
      --> plan.md
    hint: leave it out, or set the same in [gate] of signoff.toml
    ");
}

#[test]
fn a_broken_tracker_is_an_error() {
    let project = TestProject::with_agent(PROGRAM, passing_agent);
    let mut all = String::new();
    for program in [
        "echo 'no database' >&2; exit 3",
        "echo 'Ready work (2):'",
        "echo '[{\"id\": \"b-1\", \"title'",
        "true",
        "echo '{\"error\": \"locked\"}'",
        "kill -9 $$",
    ] {
        install(&project, &format!("#!/bin/sh\n{program}\n"));
        all += &format!("{}\n", project.run(&["run", "beads"]));
    }
    insta::assert_snapshot!(all, @r#"
    exit 1
    --- stderr
    error: `bd ready --json` failed (exit 3): no database
    hint: run `bd ready --json` in the root of the main checkout; once it works, run the command again, or `signoff run --resume` if a run was started

    exit 1
    --- stderr
    error: could not parse the output of `bd ready --json`: expected value at line 1 column 1: Ready work (2):
    hint: run `bd ready --json` in the root of the main checkout; once it works, run the command again, or `signoff run --resume` if a run was started

    exit 1
    --- stderr
    error: could not parse the output of `bd ready --json`: control character (\u0000-\u001F) found while parsing a string at line 2 column 0: [{"id": "b-1", "title
    hint: run `bd ready --json` in the root of the main checkout; once it works, run the command again, or `signoff run --resume` if a run was started

    exit 1
    --- stderr
    error: could not parse the output of `bd ready --json`: EOF while parsing a value at line 1 column 0; it printed nothing
    hint: run `bd ready --json` in the root of the main checkout; once it works, run the command again, or `signoff run --resume` if a run was started

    exit 1
    --- stderr
    error: could not parse the output of `bd ready --json`: expected a list of issues: {"error": "locked"}
    hint: run `bd ready --json` in the root of the main checkout; once it works, run the command again, or `signoff run --resume` if a run was started

    exit 1
    --- stderr
    error: `bd ready --json` failed (killed by a signal); it printed nothing
    hint: run `bd ready --json` in the root of the main checkout; once it works, run the command again, or `signoff run --resume` if a run was started
    "#);
    install(&project, "#!/bin/sh\nexec sleep 1000\n");
    let hangs = project.env.run_with(&["run", "beads"], &[("SIGNOFF_TEST_TRACKER_MS", "200")]);
    insta::assert_snapshot!(without_commit_ids(&hangs), @"
    exit 1
    --- stderr
    error: `bd ready --json` could not be run: it did not end within 0.2 s and was killed
    hint: run `bd ready --json` in the root of the main checkout; once it works, run the command again, or `signoff run --resume` if a run was started
    ");
    assert_eq!(project.calls().all().len(), 0);
}

#[test]
fn a_tracker_that_fails_during_the_run_loses_nothing() {
    let project = tracked(&["Add a greeting"], passing_agent);
    install(&project, &BD.replace("close) ", "close) echo 'the disk is full' >&2; exit 1; "));
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads"])), @"
    exit 1
    --- stdout
    Running task #1 (b-1): Add a greeting
      #1 b-1 Implementing...
      #1 b-1 Implementation complete
      #1 b-1 Landing...
      #1 b-1 Landed on signoff/run-1 as [COMMIT]
    ○ Task #1 (b-1) completed (not reviewed)
    --- stderr
    error: `bd close b-1` failed (exit 1): the disk is full
    hint: run `bd close b-1` in the root of the main checkout; once it works, run `signoff run --resume`
    ");
    assert_eq!(beads(&project, "begun"), ["b-1"]);
    install(&project, BD);
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "--resume"])), @"exit 0");
    assert_eq!(beads(&project, "closed"), ["b-1"]);
    assert_eq!(project.calls().with_role("implement").count(), 1);
    fs::remove_file(project.env.root().join("bin/bd")).unwrap();
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "--resume"])), @"
    exit 0
    --- stderr
    No run to resume
    ");
}
