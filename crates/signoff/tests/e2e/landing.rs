//! `signoff merge` and `signoff land`: approved work joins the default branch; conflicts and failed checks are fixed.

use std::fmt::Display;
use std::fs;

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::processes::{self, wait_until};

use crate::PROGRAM;
use crate::actors::{APPROVED, changes};

/// Agents that change the one line of `greeting.txt`, each differently.
fn two_on_one_file(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").task("1").write("greeting.txt", "hello one\n").say("Done.\n"))
        .rule(ScriptRule::role("implement").task("2").write("greeting.txt", "hello two\n").say("Done.\n"))
        .rule(ScriptRule::role("review").say(APPROVED))
}

/// The same, with a fixer that combines both changes.
fn resolved(script: AgentScript) -> AgentScript {
    let both = ScriptRule::role("fix").write("greeting.txt", "hello one and two\n").say("Resolved.\n");
    two_on_one_file(script).rule(both)
}

/// The second task starts beside the first and completes after the first has landed, so the order is fixed.
fn second_after_the_first(script: AgentScript) -> AgentScript {
    let landed = "until git log --format=%s signoff/run-1 | grep -q 'Merge task 1'; do sleep 0.01; done";
    let second = ScriptRule::role("implement").task("2").shell(landed);
    script.rule(second.write("greeting.txt", "hello two\n").say("Done.\n"))
}

/// Agents that each add their own file.
fn separate_files(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").write("part-{task}.txt", "part {task}\n").say("Done.\n"))
        .rule(ScriptRule::role("review").say(APPROVED))
}

fn queued(script: impl FnOnce(AgentScript) -> AgentScript, more: &str) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, script);
    project.env.write("greeting.txt", "hello\n");
    project.configure(more);
    for title in ["Greet one", "Greet two"] {
        project.run(&["add", title, "-a"]);
    }
    project
}

/// A project with two approved tasks, each on its branch and in its own run.
fn approved(script: impl FnOnce(AgentScript) -> AgentScript, more: &str) -> TestProject {
    let project = queued(script, more);
    for task in ["1", "2"] {
        let worked = project.run(&["work", task]);
        assert_eq!(worked.code, Some(0), "{worked}");
    }
    project
}

/// The output, with commit ids replaced.
fn printed(output: impl Display) -> String {
    let text = output.to_string();
    let word = |word: &str| {
        let hex = |part: &str| part.bytes().all(|byte| byte.is_ascii_hexdigit()) && part.len() >= 7;
        let inner = word.trim_matches(|sign: char| !sign.is_ascii_alphanumeric());
        if hex(inner) { word.replace(inner, "ID") } else { word.to_owned() }
    };
    text.split(' ')
        .map(|words| words.split('\n').map(word).collect::<Vec<_>>().join("\n"))
        .collect::<Vec<_>>()
        .join(" ")
}

fn graph(project: &TestProject, branch: &str) -> String {
    project.git(&format!("log --topo-order --format=%s {branch}"))
}

#[test]
fn a_conflict_is_resolved_by_the_task_s_own_fixer_and_reviewed_again() {
    let project = approved(resolved, "");
    insta::assert_snapshot!(printed(project.run(&["merge", "1"])), @"
    exit 0
    --- stdout
    Resuming task #1: Greet one
      Landing...
      Landed as ID
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ✓ Task #1 is in main (ID)
    ");
    insta::assert_snapshot!(printed(project.run(&["merge", "2"])), @"
    exit 0
    --- stdout
    Resuming task #2: Greet two
      Landing...
      Landing: SENT BACK - conflict in greeting.txt
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #2 completed (APPROVED after 2 cycles)
    Resuming task #2: Greet two
      Landing...
      Landed as ID
    ✓ Task #2 completed (APPROVED after 2 cycles)
    ✓ Task #2 is in main (ID)
    ");
    assert_eq!(project.read("greeting.txt"), "hello one and two\n");
    assert_eq!(project.git("status --porcelain"), "");
    insta::assert_snapshot!(graph(&project, "main"), @"
    Merge task 2: Greet two
    Address review feedback (cycle 1)
    Merge task 2: Greet two
    Merge task 1: Greet one
    Greet one - initial implementation
    Greet two - initial implementation
    Configure
    Configure
    Start
    ");
    insta::assert_snapshot!(project.calls().summary(), @"
    implement task 1 cycle 0: exit 0
    review general task 1 cycle 1: exit 0
    implement task 2 cycle 0: exit 0
    review general task 2 cycle 1: exit 0
    fix task 2 cycle 1: exit 0
    review general task 2 cycle 2: exit 0
    ");
    assert_eq!(project.list(".signoff/worktrees"), [""; 0]);
    assert_eq!(project.run(&["doctor"]).code, Some(0));
}

#[test]
fn the_fixer_gets_the_file_the_line_and_both_sides() {
    let project = approved(resolved, "");
    project.run(&["merge", "1"]);
    project.run(&["merge", "2"]);
    let calls = project.calls();
    let prompt = calls.with_role("fix").next().unwrap().prompt.clone();
    let finding = prompt.lines().find(|line| line.contains("cannot be merged")).unwrap_or_default();
    insta::assert_snapshot!(printed(finding), @"   it cannot be merged with what landed on main before (ID): (content): Merge conflict in greeting.txt. Between the markers stands first this task's side (<<<<<<< ID), then what landed (>>>>>>> ID). Edit the file so that it does what both are for, and leave no marker");
    let shown = project.run(&["show", "2", "--json"]).json();
    let finding = &shown["ledger"][0];
    insta::assert_snapshot!(format!("{} {} {}", finding["file"], finding["line"], finding["state"]), @r#""greeting.txt" 1 "fixed""#);
    // The reviewer is shown only what the task adds to the landed work.
    let review = calls.with_role("review").last().unwrap().prompt.clone();
    assert!(review.contains("-hello one\n+hello one and two\n"), "{review}");
}

#[test]
fn conflict_markers_never_land() {
    let project = approved(|script| two_on_one_file(script).rule(ScriptRule::role("fix").say("Looks fine.\n")), "");
    project.run(&["merge", "1"]);
    insta::assert_snapshot!(printed(project.run(&["merge", "2"])), @"
    exit 1
    --- stdout
    Resuming task #2: Greet two
      Landing...
      Landing: SENT BACK - conflict in greeting.txt
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #2 completed (APPROVED after 2 cycles)
    Resuming task #2: Greet two
      Landing...
      Landing: SENT BACK - conflict in greeting.txt
      [3/3] Improving...
      [3/3] Running review...
      [3/3] Review: APPROVED
    ✓ Task #2 completed (APPROVED after 3 cycles)
    Resuming task #2: Greet two
      Landing...
      Landing: SENT BACK - conflict in greeting.txt
      [4/4] Improving...
      [4/4] Running review...
      [4/4] Review: APPROVED
    ✓ Task #2 completed (APPROVED after 4 cycles)
    Resuming task #2: Greet two
      Landing...
      Landing: SENT BACK - conflict in greeting.txt
    ! Task #2 is stuck: the conflict could not be resolved (conflict_unresolved)
        Next: signoff show 2, then signoff retry 2
    --- stderr
    error: task 2 is not approved (stuck CHANGES_REQUESTED (4 cycles) conflict_unresolved)
    hint: signoff show 2, then signoff retry 2; `signoff merge 2 --force --reason TEXT` approves it in your name
    ");
    assert_eq!(project.read("greeting.txt"), "hello one\n");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
    ✓ 1. implement Greet one    completed  APPROVED (1 cycle)
    ! 2. implement Greet two    stuck      CHANGES_REQUESTED (4 cycles)  conflict_unresolved
    ");
    insta::assert_snapshot!(project.run(&["land"]), @"
    exit 0
    --- stderr
    Nothing to land: all approved work is in main
    ");
}

/// Agents that change the one line of a file whose name is not UTF-8.
fn two_on_one_strange_file(script: AgentScript) -> AgentScript {
    let write = |text: &str| format!("printf 'hello {text}\\n' > \"$(printf 'caf\\351.txt')\"");
    script
        .rule(ScriptRule::role("implement").task("1").shell(&write("one")).say("Done.\n"))
        .rule(ScriptRule::role("implement").task("2").shell(&write("two")).say("Done.\n"))
        .rule(ScriptRule::role("fix").call(1).say("Looks fine.\n"))
        .rule(ScriptRule::role("fix").shell(&write("one and two")).say("Resolved.\n"))
        .rule(ScriptRule::role("review").say(APPROVED))
}

#[test]
fn a_conflict_in_a_file_whose_name_is_not_utf8_is_resolved_too() {
    let project = approved(two_on_one_strange_file, "");
    assert_eq!(project.run(&["merge", "1"]).code, Some(0));
    let killed = project.env.run_with(&["merge", "2"], &[("SIGNOFF_FAILPOINT", "rejected_branch_moved:1")]);
    assert_eq!(killed.signal, Some(9), "{killed}");
    let merged = project.run(&["merge", "2"]);
    assert_eq!(merged.code, Some(0), "{merged}");
    // Once because both changed it, once because the markers remained.
    assert_eq!(merged.stdout.matches("SENT BACK - conflict in").count(), 2, "{merged}");
    assert_eq!(project.git("cat-file -p \"main:$(printf 'caf\\351.txt')\""), "hello one and two\n");
}

/// A check that fails if both parts exist and `together.txt` does not.
const TOGETHER: &str = "[gate]\nreviewers = [\"general\"]\n[checks]\ntest = \"test ! -f part-1.txt || test ! -f part-2.txt || test -f together.txt\"\n";

#[test]
fn a_check_that_fails_on_the_task_alone_is_reported_as_a_plain_failure() {
    let fixes = ScriptRule::role("fix").write("tested.txt", "so\n").say("Fixed.\n");
    let checks = "[gate]\nreviewers = [\"general\"]\n[checks]\ntest = \"test ! -f part-1.txt || test -f tested.txt\"\n";
    let project = queued(|script| separate_files(script).rule(fixes), "");
    project.configure(checks);
    project.commit("Check");
    let worked = project.run(&["work", "1"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    let merged = project.run(&["merge", "1"]);
    assert_eq!(merged.code, Some(0), "{merged}");
    assert!(merged.stdout.contains("Landing: SENT BACK - the checks fail: `test`"), "{merged}");
}

#[test]
fn checks_that_print_only_zeros_and_fail_have_failed() {
    let project = approved(|script| separate_files(script).rule(ScriptRule::role("fix").exit(3)), "");
    let zeros = "test ! -f part-1.txt || { head -c 262144 /dev/zero; exit 1; }";
    let check = |number| format!("zeros-{number} = \"{zeros}\"\n");
    project
        .configure(&format!("[gate]\nreviewers = [\"general\"]\n[checks]\n{}", (1..=8).map(check).collect::<String>()));
    let merged = project.run(&["merge", "1"]);
    assert_eq!(merged.code, Some(1), "{merged}");
    assert!(merged.stdout.contains("checks fail: `zeros-1`"), "{merged}");
    assert_eq!(graph(&project, "main").lines().filter(|line| line.starts_with("Merge")).count(), 0);
}

/// Checks that log where they run. The one that fails on the base prints its finding, and another one with part-1.txt.
const RED_BASE: &str = r#"[checks]
test = """pwd >> $(git rev-parse --git-common-dir)/../ran; echo 'greeting.txt:1: error: no name'
  test ! -f bad.txt || echo 'bad.txt:1: error: bad'
  exit 1"""
"#;

#[test]
fn checks_that_fail_on_the_target_too_do_not_send_work_back() {
    let project = approved(separate_files, "");
    project.configure(RED_BASE);
    for task in ["1", "2"] {
        let merged = project.run(&["merge", task]);
        assert_eq!(merged.code, Some(0), "{merged}");
        assert!(!merged.stdout.contains("SENT BACK"), "{merged}");
        assert!(merged.stderr.contains("1 failure of the checks is on the base ("), "{merged}");
        assert!(merged.stderr.contains(" too, and does not count: no name"), "{merged}");
    }
    assert_eq!(project.calls().with_role("fix").count(), 0);
    assert_eq!(project.list(".signoff/worktrees"), ["landing"]);
    // Once for each commit of the target, once for each merge.
    assert_eq!(project.read("ran").lines().count(), 4);
}

#[test]
fn only_new_failures_of_a_check_that_fails_on_the_target_are_sent_back() {
    let bad = ScriptRule::role("implement").write("bad.txt", "bad\n").say("Done.\n");
    let fixes = ScriptRule::role("fix").delete("bad.txt").write("good.txt", "good\n").say("Fixed.\n");
    let project = TestProject::with_agent(PROGRAM, |script| separate_files(script.rule(bad).rule(fixes)));
    project.env.write("greeting.txt", "hello\n");
    project.run(&["add", "Greet", "-a"]);
    assert_eq!(project.run(&["work"]).code, Some(0));
    project.configure(RED_BASE);
    let merged = project.run(&["merge", "1"]);
    assert_eq!(merged.code, Some(0), "{merged}");
    assert_eq!(merged.stdout.matches("SENT BACK").count(), 1, "{merged}");
    let calls = project.calls();
    let fix = calls.with_role("fix").next().expect("a fix");
    assert!(fix.prompt.contains("checks fail: bad\n") && fix.prompt.contains("1 in all"), "{}", fix.prompt);
}

#[test]
fn a_reviewer_of_kind_checks_does_not_blame_the_base_on_the_task() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        separate_files(script.rule(ScriptRule::role("implement").task("2").write("bad.txt", "bad\n").say("Done.\n")))
    });
    let checks = "[agents.checks]\nkind = \"checks\"\n[reviewers.tests]\nkind = \"tests\"\nagent = \"checks\"\n\
                  [gate]\nreviewers = [\"tests\"]\nmax_cycles = 1\n";
    project.env.write("greeting.txt", "hello\n");
    project.configure(&format!("{checks}{RED_BASE}"));
    for title in ["Greet", "Greet badly"] {
        project.run(&["add", title, "-a"]);
    }
    let worked = project.run(&["work", "1"]);
    assert!(worked.stdout.contains("Review: APPROVED"), "{worked}");
    assert!(worked.to_string().contains("is on the base ("), "{worked}");
    let shown = project.run(&["show", "1", "--json"]).json().to_string();
    assert!(shown.contains("fails on the base too: no name"), "{shown}");
    let worked = project.run(&["work", "2"]);
    assert!(worked.stdout.contains("Review: CHANGES_REQUESTED - bad"), "{worked}");
    // The base is the same for both tasks and was checked once.
    assert_eq!(project.read("ran").lines().count(), 3, "{worked}");
}

#[test]
fn work_that_fails_only_together_is_sent_back() {
    let project = approved(
        |script| separate_files(script).rule(ScriptRule::role("fix").write("together.txt", "so\n").say("Fixed.\n")),
        TOGETHER,
    );
    assert_eq!(project.run(&["merge", "1"]).code, Some(0));
    insta::assert_snapshot!(printed(project.run(&["merge", "2"])), @"
    exit 0
    --- stdout
    Resuming task #2: Greet two
      Landing...
      Landing: SENT BACK - together with what landed before it (ID), checks fail: `test` (`test ! -f part-1.txt || t…
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #2 completed (APPROVED after 2 cycles)
    Resuming task #2: Greet two
      Landing...
      Landed as ID
    ✓ Task #2 completed (APPROVED after 2 cycles)
    ✓ Task #2 is in main (ID)
    ");
    assert_eq!(
        project.read("part-1.txt") + &project.read("part-2.txt") + &project.read("together.txt"),
        "part 1\npart 2\nso\n"
    );
    assert_eq!(project.list(".signoff/worktrees"), ["landing"]);
}

#[test]
fn only_approved_work_lands() {
    let project = queued(
        |script| {
            script
                .rule(ScriptRule::role("implement").write("part-{task}.txt", "part {task}\n").say("Done.\n"))
                .rule(ScriptRule::role("review").task("1").say(&changes("no")))
                .rule(ScriptRule::role("review").say(APPROVED))
                .rule(ScriptRule::role("fix").append("part-{task}.txt", "fix\n").say("Fixed.\n"))
        },
        "",
    );
    insta::assert_snapshot!(project.run(&["merge", "1"]), @"
    exit 2
    --- stderr
    error: task 1 has not been started
    hint: `signoff work 1` starts it
    ");
    project.run(&["work", "-j", "1"]);
    insta::assert_snapshot!(project.run(&["merge", "1"]), @"
    exit 1
    --- stderr
    error: task 1 is not approved (completed MAX_CYCLES_REACHED (3 cycles))
    hint: signoff show 1, then signoff improve 1 --review or signoff edit 1 --verdict APPROVED; `signoff merge 1 --force --reason TEXT` approves it in your name
    ");
    insta::assert_snapshot!(project.run(&["merge", "9"]), @"
    exit 2
    --- stderr
    error: there is no task 9
    hint: `signoff status` lists the tasks
    ");
    // The commit after the approval was not approved.
    project.git("checkout -q --detach signoff/task-2-greet-two && git commit -q --allow-empty -m foreign && git branch -f moved && git checkout -q main && git update-ref refs/heads/signoff/task-2-greet-two moved");
    insta::assert_snapshot!(project.run(&["merge", "2"]), @"
    exit 1
    --- stderr
    error: task 2 is not approved (completed not approved changed_after_review)
    hint: signoff diff 2, then signoff review 2; `signoff merge 2 --force --reason TEXT` approves it in your name
    ");
    assert_eq!(graph(&project, "main").lines().count(), 3);
    insta::assert_snapshot!(project.run(&["merge", "1", "--force"]).stderr.lines().next().unwrap_or_default(), @"error: the following required arguments were not provided:");
    insta::assert_snapshot!(printed(project.run(&["merge", "1", "--force", "--reason", "good enough"])), @"
    exit 0
    --- stdout
    Resuming task #1: Greet one
      Landing...
      Landed as ID
    ✓ Task #1 completed (APPROVED by a person, not by a review, 1 open finding)
    ✓ Task #1 is in main (ID)
    ");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
    ✓ 1. implement Greet one    completed  APPROVED (by a person), 1 open finding
    ! 2. implement Greet two    completed  not approved  changed_after_review
    ");
    assert_eq!(project.read("part-1.txt"), "part 1\nfix\nfix\n");
}

#[test]
fn land_lands_all_tasks_in_order_and_continues_after_a_refusal() {
    let project = approved(|script| two_on_one_file(script).rule(ScriptRule::role("fix").exit(3)), "");
    project.run(&["add", "Apart", "-a"]);
    project.set_agent(|script| separate_files(script).rule(ScriptRule::role("fix").exit(3)));
    project.run(&["work"]);
    insta::assert_snapshot!(project.run(&["land", "--dry-run"]), @"
    exit 0
    --- stdout
    Task #1 would land on main: Greet one
    Task #2 would land on main: Greet two
    Task #3 would land on main: Apart
    ");
    insta::assert_snapshot!(printed(project.run(&["land"])), @"
    exit 1
    --- stdout
    Resuming task #1: Greet one
      Landing...
      Landed as ID
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ✓ Task #1 is in main (ID)
    Resuming task #2: Greet two
      Landing...
      Landing: SENT BACK - conflict in greeting.txt
      [2/3] Improving...
      [2/3] Improvement failed: exit code 3
    ✗ Task #2 failed: the fixer failed (fixer_failed)
        Next: signoff show 2, then signoff retry 2
    Resuming task #3: Apart
      Landing...
      Landed as ID
    ✓ Task #3 completed (APPROVED after 1 cycle)
    ✓ Task #3 is in main (ID)
    --- stderr
    error: task 2 is not approved (failed CHANGES_REQUESTED (1 cycle) fixer_failed)
    hint: signoff show 2, then signoff retry 2; `signoff merge 2 --force --reason TEXT` approves it in your name
    ");
    insta::assert_snapshot!(graph(&project, "main"), @"
    Merge task 3: Apart
    Apart - initial implementation
    Merge task 1: Greet one
    Greet one - initial implementation
    Configure
    Configure
    Start
    ");
    let report = project.run(&["land", "--json"]).json();
    assert_eq!(report, serde_json::json!({"version": 1, "target": "main", "tasks": []}));
    let report = project.run(&["merge", "3", "--json"]).json();
    assert_eq!((&report["tasks"][0]["status"], &report["tasks"][0]["task_id"]), (&"already".into(), &3.into()));
}

#[test]
fn a_checkout_with_changes_is_left_alone() {
    let project = approved(separate_files, "");
    project.env.write("greeting.txt", "mine\n");
    let before = (project.checkout(), project.read("greeting.txt"));
    insta::assert_snapshot!(project.run(&["merge", "1"]), @"
    exit 1
    --- stderr
    error: [ROOT]/work has changes that are not committed: greeting.txt
    hint: nothing was changed; commit or stash the changes, or check out another branch, then run the command again
    ");
    assert_eq!((project.checkout(), project.read("greeting.txt")), before);
    project.git("stash -q");
    assert_eq!(project.run(&["merge", "1"]).code, Some(0));
    project.git("stash pop -q");
    assert_eq!(project.read("greeting.txt"), "mine\n");
    assert_eq!(project.read("part-1.txt"), "part 1\n");
}

#[test]
fn with_rebase_the_changes_are_applied_on_top() {
    let project = approved(resolved, "landing = \"rebase\"\n");
    assert_eq!(project.run(&["merge", "1"]).code, Some(0));
    insta::assert_snapshot!(printed(project.run(&["merge", "2"])), @"
    exit 0
    --- stdout
    Resuming task #2: Greet two
      Landing...
      Landing: SENT BACK - conflict in greeting.txt
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #2 completed (APPROVED after 2 cycles)
    Resuming task #2: Greet two
      Landing...
      Landed as ID
    ✓ Task #2 completed (APPROVED after 2 cycles)
    ✓ Task #2 is in main (ID)
    ");
    insta::assert_snapshot!(graph(&project, "main"), @"
    Greet two - initial implementation
    Greet one - initial implementation
    Configure
    Configure
    Start
    ");
    assert_eq!(project.read("greeting.txt"), "hello one and two\n");
    insta::assert_snapshot!(project.run(&["land"]), @"
    exit 0
    --- stderr
    Nothing to land: all approved work is in main
    ");
    insta::assert_snapshot!(project.run(&["merge", "2"]), @"
    exit 0
    --- stdout
    ✓ Task #2 is already in main
    ");
}

/// Work that lands on the run's branch automatically.
const EACH: &str = "[presets.task]\nlanding = \"each\"\n";

#[test]
fn landing_on_the_runs_branch_leaves_the_checkout_alone() {
    let project = queued(|script| resolved(second_after_the_first(script)), EACH);
    let before = project.checkout();
    let worked = project.run(&["work", "-j", "2"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(project.checkout(), before);
    assert_eq!(project.git("show signoff/run-1:greeting.txt"), "hello one and two\n");
    assert_eq!(project.list(".signoff/worktrees"), [""; 0]);
    insta::assert_snapshot!(printed(project.run(&["land"])), @"
    exit 0
    --- stdout
    ✓ Task #1 is in main (ID)
    ✓ Task #2 is in main (ID)
    ");
    assert_eq!(project.read("greeting.txt"), "hello one and two\n");
    insta::assert_snapshot!(project.run(&["land"]), @"
    exit 0
    --- stderr
    Nothing to land: all approved work is in main
    ");
}

#[test]
fn foreign_work_is_reviewed_before_it_lands() {
    let project = queued(separate_files, EACH);
    let killed = project.env.run_with(&["work", "1"], &[("SIGNOFF_FAILPOINT", "merged:1")]);
    assert_eq!(killed.signal, Some(9));
    // A person commits to the branch and leaves an uncommitted file.
    project.git("-C .signoff/worktrees/task-1 commit -q --allow-empty -m foreign");
    project.env.write(".signoff/worktrees/task-1/mine.txt", "mine\n");
    let worked = project.run(&["work", "1"]);
    insta::assert_snapshot!(printed(worked), @"
    exit 0
    --- stdout
    Resuming task #1: Greet one
      New commit on the branch: ID
      [2/3] Running review...
      [2/3] Review: APPROVED
      Landing...
      Landed as ID
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    assert_eq!(project.calls().with_role("review").count(), 2, "the foreign commit was reviewed");
    let landed = project.git("log --format=%s main..signoff/run-1");
    insta::assert_snapshot!(landed, @"
    Merge task 1: Greet one
    Changes by hand
    foreign
    Greet one - initial implementation
    ");
    assert_eq!(project.git("show signoff/run-1:mine.txt"), "mine\n");
}

#[test]
fn a_plan_s_tasks_are_merged_by_their_approved_commits() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").write("part-{task}.txt", "part {task}\n").say("Done.\n"))
            .rule(ScriptRule::role("review").reviewer("spec").say(&crate::actors::clean("spec")))
            .rule(ScriptRule::role("review").reviewer("code").say(&crate::actors::clean("code")))
    });
    project.env.write("plan.md", "# Plan\n\n### Task 1: First\n\n- [ ] do it\n\n### Task 2: Second\n\n- [ ] do it\n");
    project.commit("Plan");
    let worked = project.run(&["run", "plan.md"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    insta::assert_snapshot!(printed(project.run(&["merge", "1"])), @"
    exit 0
    --- stdout
    ✓ Task #1 is in main (ID)
    ");
    assert_eq!(project.list("."), [".git", ".signoff", "README.md", "part-1.txt", "plan.md", "signoff.toml"]);
    insta::assert_snapshot!(printed(project.run(&["land"])), @"
    exit 0
    --- stdout
    ✓ Task #2 is in main (ID)
    ");
    insta::assert_snapshot!(graph(&project, "main"), @"
    Merge task 2: Second
    Second - initial implementation
    Merge task 1: First
    First - initial implementation
    Plan
    Configure
    Start
    ");
    assert_eq!(project.git("diff main signoff/run-1"), "", "the ticks came with the last one");
    project.env.write("part-1.txt", "other\n");
    assert_eq!(project.git("status --porcelain"), " M part-1.txt\n");
}

#[test]
fn two_programs_that_land_at_once_take_turns() {
    let project =
        queued(|script| separate_files(script).rule(ScriptRule::role("fix").exit(3)), "[checks]\ntest = \"true\"\n");
    project.run(&["add", "Greet three", "-a"]);
    for task in ["1", "2", "3"] {
        project.run(&["work", task]);
    }
    let programs = ["1", "2", "3"].map(|task| project.start(&["merge", task]));
    for program in programs {
        let output = project.env.finish(program);
        assert_eq!(output.code, Some(0), "{output}");
    }
    for task in 1..=3 {
        assert_eq!(project.read(&format!("part-{task}.txt")), format!("part {task}\n"));
    }
    assert_eq!(project.git("status --porcelain"), "");
    assert_eq!(project.git("log --merges --format=%s main").lines().count(), 3);
}

/// Only one program at a time works on the run of a task.
#[test]
fn two_concurrent_land_commands_take_turns() {
    let project = approved(separate_files, "");
    let (begun, go) = (project.env.root().join("begun"), project.env.root().join("go"));
    let check = format!("touch {}; until [ -e {} ]; do sleep 0.02; done", begun.display(), go.display());
    project.configure(&format!("[checks]\ntest = \"{check}\"\n"));
    let first = project.start(&["land"]);
    wait_until("the first one lands", || begun.exists());
    let second = project.start(&["land"]);
    fs::write(go, "").unwrap();
    for program in [first, second] {
        let output = project.env.finish(program);
        assert_eq!(output.code, Some(0), "{output}");
    }
    assert_eq!(project.git("log --merges --format=%s main").lines().count(), 2);
}

#[test]
fn a_program_that_waits_for_the_landing_lock_can_be_stopped() {
    let project = queued(separate_files, EACH);
    let lock = project.env.work().join(".git/signoff/landing.lock");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    let held = fs::File::create(lock).unwrap();
    held.lock().unwrap();
    let program = project.env.start_group(&["work", "1"]);
    let lands = || {
        let shown = project.run(&["show", "1", "--json"]);
        let attempts = serde_json::from_str::<serde_json::Value>(&shown.stdout).unwrap_or_default();
        attempts["attempts"].as_array().is_some_and(|all| all.iter().any(|attempt| attempt["role"] == "land"))
    };
    wait_until("the landing agent runs", lands);
    processes::signal_group(program.id(), 15);
    assert_eq!(project.env.finish(program).code, Some(130));
    drop(held);
    assert_eq!(project.run(&["work", "1"]).code, Some(0));
    assert_eq!(project.git("show signoff/run-1:part-1.txt"), "part 1\n");
}

#[test]
fn killed_at_any_failpoint_it_lands_once() {
    let places =
        ["append:1", "merged:1", "target_moved:1", "landed:1", "rejection_recorded:1", "rejected_branch_moved:1"];
    for place in places {
        let project = approved(resolved, "");
        assert_eq!(project.run(&["merge", "1"]).code, Some(0));
        let killed = project.env.run_with(&["merge", "2"], &[("SIGNOFF_FAILPOINT", place)]);
        assert_eq!(killed.signal, Some(9), "{place}: {killed}");
        let again = project.run(&["merge", "2"]);
        assert_eq!(again.code, Some(0), "{place}: {again}");
        assert_eq!(project.read("greeting.txt"), "hello one and two\n", "{place}");
        assert_eq!(project.git("status --porcelain"), "", "{place}");
        let merges = graph(&project, "main").lines().filter(|line| *line == "Merge task 2: Greet two").count();
        assert_eq!(merges, 2, "{place}: the conflict and the landing");
        assert_eq!(project.calls().with_role("fix").count(), 1, "{place}");
        assert!(!project.env.work().join(".git/signoff/forward.json").exists(), "{place}");
    }
}

/// Failpoints that are passed while a checkout is updated, with the lock of the index held.
const FOLLOWING: [&str; 4] = ["index_locked:1", "target_moved:1", "files_followed:1", "index_followed:1"];

#[test]
fn a_checkout_update_that_was_killed_loses_nothing_and_any_command_repairs_it() {
    for place in FOLLOWING {
        let project = approved(separate_files, "");
        project.env.write("notes.txt", "mine\n");
        let killed = project.env.run_with(&["merge", "1"], &[("SIGNOFF_FAILPOINT", place)]);
        assert_eq!(killed.signal, Some(9), "{place}: {killed}");
        // A commit of the person's would revert the landed work: git refuses it because of the lock.
        let commit = "git add notes.txt && git commit -qm mine";
        let refused = project.env.shell(commit);
        assert!(refused.stderr.contains("index.lock': File exists"), "{place}: {refused}");
        let shown = project.run(&["status"]);
        assert_eq!(shown.code, Some(0), "{place}: {shown}");
        assert!(!project.env.work().join(".git/index.lock").exists(), "{place}");
        assert!(!project.env.work().join(".git/signoff-index-lock").exists(), "{place}");
        let committed = project.env.shell(commit);
        assert_eq!(committed.code, Some(0), "{place}: {committed}");
        let merged = project.run(&["merge", "1"]);
        assert_eq!(merged.code, Some(0), "{place}: {merged}");
        assert_eq!(project.git("show main:part-1.txt"), "part 1\n", "{place}");
        assert_eq!(project.git("show main:notes.txt"), "mine\n", "{place}");
        assert_eq!(project.read("part-1.txt"), "part 1\n", "{place}");
        assert_eq!(project.git("status --porcelain"), "", "{place}");
    }
}

#[test]
fn a_file_changed_after_a_kill_is_kept_and_a_hint_is_printed() {
    let project = approved(two_on_one_file, "");
    let killed = project.env.run_with(&["merge", "1"], &[("SIGNOFF_FAILPOINT", "target_moved:1")]);
    assert_eq!(killed.signal, Some(9), "{killed}");
    project.env.write("greeting.txt", "hello mi\n");
    // A read-only command does not report it and does not mark it as reported.
    assert_eq!(project.run(&["status"]).code, Some(0));
    project.env.write("greeting.txt", "hello mine\n");
    insta::assert_snapshot!(printed(project.run(&["merge", "1"])), @"
    exit 1
    --- stderr
    error: [ROOT]/work followed its branch, except for files that changed at the same time: greeting.txt
    hint: the branch is up to date, but these files still have the old contents, and committing them would revert the landing; update them with `git diff ID ID -- greeting.txt | git apply`, or if that fails by hand (`git show HEAD:FILE`); then run the command again
    ");
    assert_eq!(project.read("greeting.txt"), "hello mine\n");
    project.env.write("greeting.txt", "hello one and mine\n");
    assert_eq!(project.run(&["status"]).code, Some(0));
    assert_eq!(project.read("greeting.txt"), "hello one and mine\n");
    assert!(!project.env.work().join(".git/signoff/forward.json").exists());
    assert_eq!(project.git("status --porcelain"), " M greeting.txt\n");
}

#[test]
fn a_merge_killed_during_its_checks_is_checked_again() {
    for place in ["land_checks:1", "target_moved:1", "landed:1"] {
        let project = approved(separate_files, TOGETHER);
        let killed = project.env.run_with(&["merge", "1"], &[("SIGNOFF_FAILPOINT", place)]);
        assert_eq!(killed.signal, Some(9), "{place}: {killed}");
        let again = project.run(&["merge", "1"]);
        assert_eq!(again.code, Some(0), "{place}: {again}");
        assert_eq!(project.read("part-1.txt"), "part 1\n", "{place}");
        assert_eq!(project.git("log --merges --format=%s main"), "Merge task 1: Greet one\n", "{place}");
    }
}

#[test]
fn a_worktree_with_uncommitted_files_is_kept() {
    let project = approved(separate_files, "");
    project.env.write(".signoff/worktrees/task-1/mine.txt", "mine\n");
    insta::assert_snapshot!(printed(project.run(&["merge", "1"])), @"
    exit 0
    --- stdout
    Resuming task #1: Greet one
      Landing...
      Landed as ID
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ✓ Task #1 is in main (ID)
    --- stderr
    [ROOT]/work/.signoff/worktrees/task-1 has uncommitted changes; it did not land, and stays there
    ");
    assert_eq!(project.read(".signoff/worktrees/task-1/mine.txt"), "mine\n");
    assert!(!fs::exists(project.env.work().join("mine.txt")).unwrap());
}

/// Reviewers of the second task see only what it adds to the first one, which is not approved.
#[test]
fn work_based_on_unreviewed_work_does_not_land() {
    let proceed = "[gate]\non_exhausted = \"proceed\"\n";
    let reviewed = (&["add", "One", "-a"][..], proceed, "signoff show 1, then signoff improve 1 --review");
    let unreviewed = (&["add", "One"][..], "", "signoff review 1");
    for (first, more, next_step) in [reviewed, unreviewed] {
        let project = TestProject::with_agent(PROGRAM, |script| {
            let refuses = ScriptRule::role("review").task("1").say(&changes("a back door"));
            separate_files(script.rule(refuses))
                .rule(ScriptRule::role("fix").append("part-1.txt", "fix\n").say("Fixed.\n"))
        });
        project.configure(more);
        project.run(first);
        project.run(&["add", "Two", "-a", "--depends-on", "1"]);
        project.run(&["work", "-j", "1"]);
        let before = project.run(&["status"]).stdout;
        for command in [&["land"][..], &["merge", "2"]] {
            let output = project.run(command).to_string().replace(next_step, "NEXT STEP");
            insta::allow_duplicates! {
                insta::assert_snapshot!(output, @"
                exit 1
                --- stderr
                error: task 2 builds on task 1, which is not approved
                hint: NEXT STEP; `signoff merge 1 --force --reason TEXT` approves it in your name
                ");
            }
        }
        assert_eq!(project.run(&["status"]).stdout, before, "nothing was changed");
        assert_eq!(project.git("ls-tree --name-only main"), "README.md\nsignoff.toml\n");
        let accepted = project.run(&["merge", "1", "--force", "--reason", "I looked at it"]);
        assert_eq!(accepted.code, Some(0), "{accepted}");
        let landed = project.run(&["land"]);
        assert_eq!(landed.code, Some(0), "{landed}");
        assert_eq!(project.read("part-2.txt"), "part 2\n");
    }
}

/// A resolved conflict lands as one commit, which differs from the approved ones.
#[test]
fn work_rebased_onto_the_runs_branch_is_recognized_as_approved() {
    let first = "until git log --format=%s signoff/run-1 | grep -q 'Greet one'; do sleep 0.01; done";
    let second = ScriptRule::role("implement").task("2").shell(first).write("greeting.txt", "hello two\n");
    let project =
        queued(|script| resolved(script.rule(second.say("Done.\n"))), &format!("landing = \"rebase\"\n{EACH}"));
    let worked = project.run(&["work", "-j", "2"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    let landed = project.run(&["land"]);
    assert_eq!((landed.code, landed.stderr.as_str()), (Some(0), ""), "{landed}");
    assert_eq!(project.read("greeting.txt"), "hello one and two\n");
}

#[test]
fn an_interrupted_landing_lands_with_the_others() {
    let blocked_path_message = |project: &TestProject| {
        project.env.write("part-1.txt", "mine\n");
        let refused = project.run(&["land"]);
        assert_eq!(refused.code, Some(1), "{refused}");
        fs::remove_file(project.env.work().join("part-1.txt")).unwrap();
    };
    let killed = |project: &TestProject| {
        let killed = project.env.run_with(&["land"], &[("SIGNOFF_FAILPOINT", "merged:1")]);
        assert_eq!(killed.signal, Some(9), "{killed}");
    };
    for cut_off in [blocked_path_message as fn(&TestProject), killed] {
        let project = queued(separate_files, "");
        project.run(&["work", "1"]);
        cut_off(&project);
        let dry_run = project.run(&["land", "--dry-run"]);
        assert_eq!(dry_run.stdout, "Task #1 would land on main: Greet one\n", "{dry_run}");
        let landed = project.run(&["land"]);
        assert_eq!((landed.code, landed.stderr.as_str()), (Some(0), ""), "{landed}");
        assert_eq!(project.read("part-1.txt"), "part 1\n");
        let again = project.run(&["land"]);
        assert_eq!(again.stderr, "Nothing to land: all approved work is in main\n");
    }
}

/// The person commits to main while the first task runs.
const MEANWHILE: &str = "echo work > part-1.txt; git add -A; git commit -q -m Work; \
    (cd ../../.. && echo mended > greeting.txt && git commit -q -a -m Mend)";

/// A project whose agent reacts to that commit.
fn meanwhile(then: &str) -> TestProject {
    let agent = ScriptRule::role("implement").shell(MEANWHILE).shell(then).say("Done.\n");
    let project = queued(|script| script.rule(agent).rule(ScriptRule::role("review").say(APPROVED)), "");
    let worked = project.run(&["work", "1"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    project
}

/// A diff against the start of the task does not show that it reverts the person's commit.
#[test]
fn work_that_reverts_newer_commits_is_reviewed_again_before_it_lands() {
    let project = meanwhile("git reset -q --soft main && git commit -q -m Squashed");
    assert!(!project.calls().with_role("review").last().unwrap().prompt.contains("-mended"));
    let merged = project.run(&["merge", "1"]);
    assert_eq!(merged.code, Some(0), "{merged}");
    let calls = project.calls();
    assert_eq!(calls.with_role("review").count(), 2, "{merged}");
    assert!(calls.with_role("review").last().unwrap().prompt.contains("-mended\n+hello\n"));
}

#[test]
fn work_that_merges_newer_commits_lands_as_reviewed() {
    let project = meanwhile("git merge -q --no-edit main");
    let merged = project.run(&["merge", "1"]);
    assert_eq!(merged.code, Some(0), "{merged}");
    assert_eq!(project.calls().with_role("review").count(), 1, "{merged}");
    assert_eq!((project.read("greeting.txt"), project.read("part-1.txt")), ("mended\n".into(), "work\n".into()));
}

/// The improvement removes the back door; a task based on the earlier work still contains it.
#[test]
fn work_based_on_the_first_part_of_an_approved_improvement_does_not_land() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        let improves = ScriptRule::role("fix").delete("part-1.txt").write("mended.txt", "mended\n").say("Fixed.\n");
        separate_files(script.rule(ScriptRule::role("review").task("2").say(&changes("a back door")))).rule(improves)
    });
    project.run(&["add", "One"]);
    project.run(&["work"]);
    assert_eq!(project.run(&["review", "1"]).code, Some(1));
    project.run(&["add", "Two", "-a", "--depends-on", "1"]);
    project.run(&["work"]);
    let improved = project.run(&["improve", "1", "--review"]);
    assert_eq!(improved.code, Some(0), "{improved}");
    let before = project.git("rev-parse main");
    let merged = project.run(&["merge", "3"]);
    assert_eq!((merged.code, project.git("rev-parse main")), (Some(1), before), "{merged}");
    // Once the improvement has landed, the other task can land.
    assert_eq!(project.run(&["merge", "4"]).code, Some(0));
    let landed = project.run(&["land"]);
    assert_eq!(landed.code, Some(0), "{landed}");
    let files = project.git("ls-tree --name-only main");
    assert!(files.contains("mended.txt") && files.contains("part-3.txt") && !files.contains("part-1.txt"), "{files}");
}

#[test]
fn an_obstacle_of_another_task_does_not_block_this_one() {
    let project = queued(separate_files, "");
    assert_eq!(project.run(&["work", "-j", "1"]).code, Some(0));
    project.env.write("part-1.txt", "mine\n");
    assert_eq!(project.run(&["merge", "1"]).code, Some(1));
    let merged = project.run(&["merge", "2"]);
    assert_eq!(merged.code, Some(0), "{merged}");
    assert!(merged.stdout.contains("✓ Task #2 is in main"), "{merged}");
    assert!(merged.stderr.contains("part-1.txt"), "{merged}");
}

#[test]
fn a_rewritten_target_branch_is_reported_with_a_hint() {
    let project = queued(separate_files, "");
    project.env.write("README.md", "# Mine\n");
    project.commit("Mine");
    assert_eq!(project.run(&["work", "1"]).code, Some(0));
    let base = project.git("rev-parse --short=12 main");
    project.git("commit -q --amend -m Ours");
    insta::assert_snapshot!(printed(project.run(&["land"])), @r#"
    exit 1
    --- stderr
    error: task 1 did not land: it started from commit ID ("Mine"), which main does not have
    hint: if main was rewritten: `git rebase --onto main ID` in the worktree of task 1, have that reviewed with `signoff review`, then `signoff land`
    "#);
    project.git(&format!("-C .signoff/worktrees/task-1 rebase -q --onto main {}", base.trim()));
    assert_eq!(project.run(&["review", "1"]).code, Some(0));
    let landed = project.run(&["land"]);
    assert_eq!((landed.code, project.read("part-1.txt").as_str()), (Some(0), "part 1\n"), "{landed}");
}

#[test]
fn an_approved_commit_that_git_removed_is_not_reported_as_landed() {
    let project = approved(separate_files, "");
    let row = || project.run(&["status", "--json"]).json()["tasks"][0].clone();
    let commit = row()["approved_commit"].as_str().unwrap().to_owned();
    project.git("worktree remove --force .signoff/worktrees/task-1");
    let branch = row()["branch"].as_str().unwrap().to_owned();
    project.git(&format!("branch -D {branch}"));
    project.git("reflog expire --expire=now --all");
    project.git("gc -q --prune=now");
    assert_eq!((&row()["state"], &row()["landed_commit"]), (&"approved".into(), &serde_json::Value::Null));
    let error = format!("error: task 1 cannot land: its approved commit {commit} no longer exists");
    for command in [&["merge", "1"][..], &["land", "1"], &["land", "1", "--dry-run"]] {
        let output = project.run(command);
        assert_eq!(output.code, Some(1), "{command:?}: {output}");
        assert!(output.stderr.contains(&error), "{command:?}: {output}");
    }
    let output = project.run(&["land"]);
    assert_eq!(output.code, Some(1), "{output}");
    assert!(output.stderr.contains(&error), "{output}");
    assert!(output.stdout.contains("✓ Task #2 is in main"), "the other one lands: {output}");
}
