//! `signoff run SPEC.md`: a specification is split into tasks, which run group by group, each group in parallel.

use std::fs;

use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::processes::wait_until;
use signoff_testkit::{ProgramOutput, TestProject};

use crate::PROGRAM;
use crate::actors::{APPROVED, FOREIGN, changes, clean, sees};
use crate::tables::query;

/// Three tasks; the last depends on the first.
const TASKS: &str = r#"Here they are:
{"tasks": [
  {"id": "login", "title": "Log in", "description": "Write the login.", "depends_on": []},
  {"id": "logout", "title": "Log out", "description": "Write the logout.", "depends_on": []},
  {"id": "audit", "title": "Audit log", "description": "Note both.", "depends_on": ["login", "logout"]}
]}"#;

const GROUPS: &str = r#"{"groups": [["login", "logout"], ["audit"]]}"#;

/// Planners that answer correctly.
fn planners(script: AgentScript) -> AgentScript {
    script.rule(ScriptRule::role("enumerate").say(TASKS)).rule(ScriptRule::role("plan").say(GROUPS))
}

/// Each task writes its own file.
fn developers(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").write("task-{task}.txt", "work\n").say("Done.\nTASK_COMPLETE\n"))
        .rule(ScriptRule::role("fix").append("task-{task}.txt", "fixed {cycle}\n").say("Fixed.\n"))
}

fn approving_agent(script: AgentScript) -> AgentScript {
    script.rule(ScriptRule::role("review").say(APPROVED))
}

/// A project with a specification, whose agents follow this script.
fn project(script: impl FnOnce(AgentScript) -> AgentScript) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, script);
    project.env.write("SPEC.md", "# Accounts\n\nPeople log in and out, and both are noted.\n");
    project.commit("Specify");
    project
}

/// The output, with commit ids replaced.
fn printed(output: &ProgramOutput) -> String {
    let is_commit = |word: &str| word.len() == 40 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let line = |line: &str| {
        line.split(' ').map(|word| if is_commit(word) { "[COMMIT]" } else { word }).collect::<Vec<_>>().join(" ")
    };
    output.to_string().lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn a_run_prints_its_plan_its_groups_and_their_landings() {
    let refused = ScriptRule::role("review").task("2").cycle(1).say(&changes("the session stays open"));
    let project = project(|script| approving_agent(developers(planners(script)).rule(refused)));
    let before = project.checkout();
    insta::assert_snapshot!(printed(&project.run(&["run", "SPEC.md", "-j", "1"])), @"
    exit 0
    --- stdout
    Run 1: planning SPEC.md
      [enumerate] Listing the tasks...
      [enumerate] Found 3 tasks
      [enumerate] Task list complete
      [enumerate_review 1/4] Running review...
      [enumerate_review 1/4] Review: APPROVED
      [plan] Planning...
      [plan] Arranged in 2 groups
      [plan] Plan complete
      [plan_review 1/4] Running review...
      [plan_review 1/4] Review: APPROVED
    ✓ Planning SPEC.md completed (APPROVED after 2 reviews)
    Planned 3 tasks in 2 groups
    Group 1/2: #1 Log in, #2 Log out
    Running task #1: Log in
      [1/4] Implementing...
      [1/4] Implementation complete
      [1/4] Running review...
      [1/4] Review: APPROVED
      Signed off, lands with its group
    Running task #2: Log out
      [1/4] Implementing...
      [1/4] Implementation complete
      [1/4] Running review...
      [1/4] Review: CHANGES_REQUESTED - the session stays open
      [2/4] Improving...
      [2/4] Running review...
      [2/4] Review: APPROVED
      Signed off, lands with its group
      #1 Landing...
      #1 Landed on signoff/run-1 as [COMMIT]
    ✓ Task #1 completed (APPROVED after 1 cycle)
      Landing...
      Landed on signoff/run-1 as [COMMIT]
    ✓ Task #2 completed (APPROVED after 2 cycles)
    Group 2/2: #3 Audit log
    Running task #3: Audit log
      [1/4] Implementing...
      [1/4] Implementation complete
      [1/4] Running review...
      [1/4] Review: APPROVED
      Signed off, lands with its group
      Landing...
      Landed on signoff/run-1 as [COMMIT]
    ✓ Task #3 completed (APPROVED after 1 cycle)
    Run 1: final review of signoff/run-1
      [1/4] Running review...
      [1/4] Review: APPROVED
    ✓ Final review completed (APPROVED after 1 cycle)
    ✓ Run 1 completed, all approved: 3 tasks, 3 completed
        Its work is on signoff/run-1; `signoff land` lands it on the default branch
    ");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
    ✓ 1. implement Log in       completed  APPROVED (1 cycle)
    ✓ 2. implement Log out      completed  APPROVED (2 cycles)
    ✓ 3. implement Audit log    completed  APPROVED (1 cycle)
    ");
    insta::assert_snapshot!(project.git("log --first-parent --format=%s main..signoff/run-1"), @"
    Merge task 3: Audit log
    Merge task 2: Log out
    Merge task 1: Log in
    ");
    insta::assert_snapshot!(project.git("diff --stat main signoff/run-1"), @"
    task-1.txt | 1 +
    task-2.txt | 2 ++
    task-3.txt | 1 +
    3 files changed, 4 insertions(+)
    ");
    assert_eq!(project.checkout(), before);
    assert_eq!(project.list(".signoff/worktrees"), ["run-1"], "what has landed needs no worktree");
}

#[test]
fn the_second_group_starts_from_the_landed_first_group() {
    let sees =
        ScriptRule::role("implement").task("3").shell("cat task-1.txt task-2.txt > seen.txt").say("TASK_COMPLETE\n");
    let project = project(|script| approving_agent(developers(planners(script).rule(sees))));
    let output = project.run(&["run", "SPEC.md"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(project.git("show signoff/run-1:seen.txt"), "work\nwork\n");
}

#[test]
fn a_run_that_failed_in_planning_is_not_resumed() {
    let project =
        project(|script| approving_agent(developers(script.rule(ScriptRule::role("enumerate").say("No idea.")))));
    assert_eq!(project.run(&["run", "SPEC.md"]).code, Some(1));
    assert_eq!(project.run(&["run", "--resume"]).code, Some(0));
    insta::assert_snapshot!(project.run(&["run", "--resume", "1"]), @"
    exit 1
    --- stdout
    ✗ Planning SPEC.md failed: the implementer failed (implementer_failed)
    --- stderr
    error: run 1 is over: it failed in planning
    hint: `signoff run SPEC.md` plans it again
    ");
    assert_eq!(project.list(".signoff/worktrees").len(), 0);
}

#[test]
fn findings_of_a_plan_review_belong_to_no_loop() {
    let refuses = ScriptRule::role("review")
        .phase("enumerate_review")
        .cycle(1)
        .say("- SPEC.md:3 nobody notes failed logins\n\n**Verdict: CHANGES_REQUESTED**\n");
    let project = project(|script| approving_agent(developers(planners(script.rule(refuses)))));
    let output = project.run(&["run", "SPEC.md"]);
    assert_eq!(output.code, Some(0), "{output}");
    let issues = query(&project, "select loop_id is null, loop_review_id is null, description from review_issues");
    assert_eq!(issues, "1|1|nobody notes failed logins");
    assert_eq!(query(&project, "select count(*) from loop_reviews where task_id is null"), "0");
}

/// A reviewer that never approves task 2.
fn never_approving_task_2(script: AgentScript) -> AgentScript {
    script.rule(ScriptRule::role("review").task("2").say(&changes("still wrong")))
}

/// A run whose final review never approves, although its fixer adds a file to the run's branch each time.
pub fn refused_run() -> TestProject {
    let refuses = ScriptRule::role("review").phase("final_review").say(&changes("it does not fit"));
    let fixes = ScriptRule::role("fix").phase("final_review").append("glue.txt", "glue\n").say("Fixed.\n");
    let project = project(|script| approving_agent(developers(planners(script).rule(refuses).rule(fixes))));
    let output = project.run(&["run", "SPEC.md", "--effort", "low"]);
    assert_eq!(output.code, Some(1), "{output}");
    project
}

#[test]
fn a_task_that_was_cancelled_before_its_start_gets_no_verdict() {
    // Task 3 depends on task 1, which fails.
    let fails = ScriptRule::role("implement").task("1").exit(1);
    let project = project(|script| approving_agent(developers(planners(script).rule(fails))));
    assert_eq!(project.run(&["run", "SPEC.md", "--effort", "low"]).code, Some(1));
    assert_eq!(project.run(&["cancel", "3"]).code, Some(0));
    insta::assert_snapshot!(project.run(&["edit", "3", "--verdict", "APPROVED"]), @"
    exit 2
    --- stderr
    error: it has not started: there is nothing to judge
    hint: `signoff show ID` shows the state of the task
    ");
    project.set_agent(|script| approving_agent(developers(script)));
    project.run(&["retry", "1"]);
    assert_eq!(project.run(&["run", "--resume"]).code, Some(0));
    assert_eq!(project.run(&["land"]).code, Some(0));
    assert_eq!(project.git("show main:task-1.txt"), "work\n");
}

/// The one finding of the final review.
fn its_finding(project: &TestProject) -> String {
    query(project, "select id from findings where loop_id = 'final'")
}

const WHOLE: &str = "glue.txt task-1.txt task-2.txt task-3.txt";

#[test]
fn a_run_whose_final_review_failed_does_not_land() {
    let project = refused_run();
    let refused = "error: run 1 cannot land: its final review did not approve it (1 open finding)";
    let ways = format!(
        "hint: `signoff retry run-1` fixes and reviews it once more; `signoff dispute {} --reason TEXT` rejects a \
         finding, before the retry; `signoff edit run-1 --verdict APPROVED --reason TEXT` accepts the run in your name",
        its_finding(&project)
    );
    let commands: [&[&str]; 4] =
        [&["land"], &["land", "--dry-run"], &["merge", "2"], &["merge", "2", "--force", "--reason", "I want it"]];
    for command in commands {
        let output = project.run(command);
        assert_eq!((output.code, in_main(&project).as_str()), (Some(1), ""), "{command:?}: {output}");
        assert!(output.stderr.contains(refused) && output.stderr.contains(&ways), "{command:?}: {output}");
        assert!(!output.stdout.contains("would land"), "{command:?}: {output}");
    }
    let status = project.run(&["status"]);
    assert!(status.stdout.contains("signoff retry run-1, or signoff edit run-1"), "{status}");
    let disputed = project.run(&["dispute", &its_finding(&project), "--reason", "it does fit"]);
    assert_eq!(disputed.code, Some(0), "{disputed}");
    assert_eq!(project.run(&["land"]).code, Some(1), "a dispute alone is no approval");
}

#[test]
fn a_failed_final_review_is_shown_until_a_person_decides() {
    let project = refused_run();
    assert_eq!(query(&project, "select status from runs"), "failed");
    insta::assert_snapshot!(project.run(&["run", "--resume", "1"]), @"
    exit 1
    --- stdout
    Max fix attempts (2) reached without approval
    ✗ Final review failed: the review cycles are used up (cycles_exhausted)
    --- stderr
    error: run 1 is over: it failed in its final review
    hint: `signoff retry run-1` fixes and reviews it once more; `signoff dispute f-9ed98453aa --reason TEXT` rejects a finding, before the retry; `signoff edit run-1 --verdict APPROVED --reason TEXT` accepts the run in your name
    ");
    project.run(&["add", "Another thing", "-a"]);
    assert_eq!(project.run(&["work", "4"]).code, Some(0));
    let failed = "✗ run 1 SPEC.md: final review failed";
    let status = project.run(&["status"]);
    assert!(status.stdout.contains(failed), "{status}");
    let json = project.run(&["status", "--json"]).json();
    assert_eq!((&json["runs"][0]["id"], &json["runs"][0]["status"]), (&1.into(), &"failed".into()), "{json}");
    let overview = project.run(&[]);
    assert!(overview.stdout.contains("final review failed"), "{overview}");
    let work = project.run(&["work"]);
    assert_eq!(work.code, Some(1), "{work}");
    assert!(work.stderr.contains("The final review of run 1 failed"), "{work}");
    let resumed = project.run(&["run", "--resume"]);
    assert_eq!(resumed.code, Some(1), "{resumed}");
    assert!(resumed.stderr.contains("error: run 1 is over: it failed in its final review"), "{resumed}");
    assert!(resumed.stderr.contains("hint: `signoff retry run-1`"), "{resumed}");
    assert_eq!(project.run(&["edit", "run-1", "--verdict", "APPROVED", "--reason", "it fits"]).code, Some(0));
    assert!(!project.run(&["status"]).stdout.contains("final review failed"));
    assert_eq!(project.run(&["run", "--resume"]).code, Some(0));
}

#[test]
fn a_task_of_a_run_can_be_reviewed_once_more() {
    for (preset, file, text) in
        [("loops", "SPEC.md", "# A\n"), ("plan", "PLAN.md", "# Plan\n\n### Task 1: A\n\nDo it.\n")]
    {
        let project = TestProject::with_agent(PROGRAM, |script| {
            let script = match preset {
                "plan" => script.rule(sees("spec", &clean("spec"))).rule(sees("code", &clean("code"))),
                _ => script,
            };
            script
                .rule(ScriptRule::role("enumerate").say(r#"{"tasks": [{"id": "a", "title": "A"}]}"#))
                .rule(ScriptRule::role("plan").say(r#"{"groups": [["a"]]}"#))
                .rule(ScriptRule::role("implement").write("task-{task}.txt", "x\n").say("TASK_COMPLETE\n"))
                .rule(ScriptRule::role("review").say(APPROVED))
        });
        project.configure(&format!("preset = \"{preset}\"\n"));
        project.env.write(file, text);
        project.commit("Plan");
        let output = project.run(&["run", file]);
        assert_eq!(output.code, Some(0), "{preset}: {output}");
        let reviewed = project.run(&["review", "1"]);
        assert_eq!(reviewed.code, Some(0), "{preset}: {reviewed}");
        assert!(reviewed.stdout.contains("Action: Proceed"), "{preset}: {reviewed}");
        let rows = project.run(&["status", "--json"]).json()["tasks"].clone();
        assert_eq!([&rows[0]["final_verdict"], &rows[1]["final_verdict"]], ["APPROVED", "APPROVED"], "{rows}");
        assert_eq!(project.run(&["work"]).code, Some(0), "{preset}: nothing is left in the queue");
    }
}

/// The final review is accepted, but a task of the run is rejected: the run waits for the task.
#[test]
fn a_run_with_a_rejected_task_names_the_task() {
    let project = refused_run();
    project.run(&["edit", "1", "--verdict", "CHANGES_REQUESTED", "--reason", "it loses money"]);
    project.run(&["edit", "run-1", "--verdict", "APPROVED", "--reason", "it fits"]);
    let status = project.run(&["status"]);
    let line = "✗ run 1 SPEC.md: not approved: #1 (edited_by_person)\n      \
                signoff edit 1 --verdict APPROVED --reason TEXT, or signoff improve 1 --review\n";
    assert!(status.stdout.contains(line), "{status}");
}

#[test]
fn a_final_review_that_a_person_accepts_lets_the_whole_run_land() {
    let project = refused_run();
    let accepted = project.run(&["edit", "run-1", "--verdict", "approved", "--reason", "it fits"]);
    assert_eq!((accepted.code, accepted.stdout.as_str()), (Some(0), "Run 1 is APPROVED by a person\n"));
    assert_eq!(query(&project, "select status from runs"), "completed");
    let output = project.run(&["land"]);
    assert_eq!((output.code, in_main(&project).as_str()), (Some(0), WHOLE), "{output}");
    assert!(project.run(&["land"]).stderr.contains("Nothing to land"));
    // A landed run cannot be rejected: a fix on the run's branch would not land.
    insta::assert_snapshot!(project.run(&["edit", "run-1", "--verdict", "CHANGES_REQUESTED", "--reason", "no"]), @"
    exit 2
    --- stderr
    error: run 1 is already in the default branch
    hint: `signoff improve 3 --review` improves one of its tasks, `signoff add` adds a new one
    ");
}

/// The report of a run as JSON and as text.
fn reported(project: &TestProject) -> (serde_json::Value, String) {
    let json = project.run(&["report", "run-1", "--format", "json"]).json()["run"].clone();
    (json["outcome"].clone(), json["standing"]["text"].as_str().unwrap_or_default().to_owned())
}

#[test]
fn a_final_review_overruled_by_a_person_is_not_reported_as_approved_by_reviewers() {
    let text = "Completed with 3 tasks; the final review was approved by a person";
    let project = refused_run();
    assert_eq!(project.run(&["edit", "run-1", "--verdict", "APPROVED", "--reason", "it fits"]).code, Some(0));
    assert_eq!(reported(&project), ("accepted".into(), format!("{text}, 1 open finding")));
    assert_eq!(reported(&finished_run()), ("approved".into(), "Completed with 3 tasks".to_owned()));
}

#[test]
fn a_task_overruled_by_a_person_counts_as_decided_by_a_person() {
    let refuses = ScriptRule::role("review").task("2").say(&changes("it is wrong"));
    let project = project(|script| approving_agent(developers(planners(script.rule(refuses)))));
    assert_eq!(project.run(&["run", "SPEC.md", "--effort", "low"]).code, Some(1));
    let finding = query(&project, "select id from findings where loop_id = '2'");
    assert_eq!(project.run(&["dispute", &finding, "--reason", "it is right"]).code, Some(0));
    let retried = project.run(&["retry", "2"]);
    assert_eq!(retried.code, Some(0), "{retried}");
    assert!(retried.stdout.contains("completed, all approved, 1 by a person: 3 tasks"), "{retried}");
    let row = project.run(&["status", "--json"]).json()["tasks"][1].clone();
    assert_eq!((&row["state"], &row["outcome"]), (&"approved".into(), &"accepted".into()), "{row}");
}

#[test]
fn an_approved_task_that_waits_for_its_group_is_not_reported_as_blocked() {
    let project = project(|script| approving_agent(never_approving_task_2(developers(planners(script)))));
    assert_eq!(project.run(&["run", "SPEC.md", "--effort", "low"]).code, Some(1));
    assert_eq!(project.git("rev-parse signoff/run-1"), project.git("rev-parse main"), "nothing has landed");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
      ✓ 1. implement Log in       approved, waiting for its group
      ! 2. implement Log out      stuck      CHANGES_REQUESTED (3 cycles)  cycles_exhausted
      ▪ 3. implement Audit log    blocked     (implement)

    Runs:
      ▪ run 1 SPEC.md: group 1/2 is blocked by #2 (cycles_exhausted)
          signoff retry 2, signoff edit 2 --verdict APPROVED, or signoff cancel 2
          then signoff run --resume 1
    ");
    let overview = project.run(&[]);
    assert!(overview.stdout.contains("1 approved, waiting for their group"), "{overview}");
    let resumed = project.run(&["run", "--resume"]);
    assert_eq!(resumed.code, Some(1), "{resumed}");
    assert!(resumed.stderr.contains("Task #1 is approved and waits for its group"), "{resumed}");
    let land = project.run(&["land"]);
    assert!(land.stderr.contains("Nothing to land yet: #1 approved and waiting for the group"), "{land}");
    assert_eq!(project.run(&["edit", "2", "--verdict", "APPROVED", "--reason", "fine"]).code, Some(0));
    let status = project.run(&["status"]);
    assert!(status.stdout.contains("approved, 1 open finding, waiting for its group"), "{status}");
}

#[test]
fn the_suggested_commands_after_a_failed_final_review_work() {
    let project = refused_run();
    let show = project.run(&["show", "1"]);
    assert!(show.stdout.contains("signoff retry run-1, or signoff edit run-1 --verdict APPROVED"), "{show}");
    assert!(!show.stdout.contains("signoff merge 1"), "{show}");
    let project = finished_run();
    let refused = ["edit", "run-1", "--verdict", "CHANGES_REQUESTED", "--reason", "no"];
    assert_eq!(project.run(&refused).code, Some(0));
    assert!(project.run(&["status"]).stdout.contains("signoff retry run-1"));
    let reviews = project.calls().with_role("review").count();
    let retried = project.run(&["retry", "run-1"]);
    assert_eq!(retried.code, Some(0), "{retried}");
    assert_eq!(project.calls().with_role("review").count(), reviews + 1, "{retried}");
    let again = project.run(&["retry", "run-1"]);
    assert_eq!(again.code, Some(2), "{again}");
    assert_eq!(project.run(&["land"]).code, Some(0));
}

#[test]
fn a_task_after_a_cancelled_one_is_not_reported_as_workable() {
    let project = TestProject::with_agent(PROGRAM, |script| approving_agent(developers(script)));
    project.run(&["add", "First"]);
    project.run(&["add", "Second", "--depends-on", "1"]);
    project.run(&["cancel", "1"]);
    let retried = project.run(&["retry", "2"]);
    assert_eq!(retried.code, Some(2), "{retried}");
    assert!(retried.stderr.contains("hint: `signoff show 2` shows what it waits for"), "{retried}");
}

#[test]
fn a_run_without_a_final_review_offers_no_decision_about_one() {
    let project = TestProject::with_agent(PROGRAM, |script| approving_agent(developers(script)));
    project.run(&["add", "First"]);
    project.run(&["work"]);
    for (run, why) in [("run-1", "run 1 has had no final review"), ("run-7", "there is no run 7")] {
        for command in [&["retry", run][..], &["edit", run, "--verdict", "APPROVED"]] {
            let output = project.run(command);
            assert_eq!(output.code, Some(2), "{output}");
            assert!(output.stderr.contains(why), "{output}");
        }
    }
}

#[test]
fn with_land_the_run_ends_on_the_default_branch() {
    let project = project(|script| approving_agent(developers(planners(script))));
    let output = project.run(&["run", "SPEC.md", "--land"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(project.git("log -1 --format=%s main"), "Merge run 1\n");
    assert_eq!(project.read("task-3.txt"), "work\n", "the checkout was clean and went along");
    assert_eq!(project.git("status --porcelain"), "");
    assert_eq!(project.list(".signoff/worktrees"), [""; 0], "no worktree is left");
    insta::assert_snapshot!(project.run(&["run", "--resume", "1"]), @"
    exit 0
    --- stderr
    Run 1 is over: all of it is approved and on the default branch
    ");
}

#[test]
fn a_run_that_a_dirty_checkout_blocks_lands_once_it_is_clean() {
    let project = project(|script| approving_agent(developers(planners(script))));
    project.env.write("README.md", "# Mine\n");
    let output = project.run(&["run", "SPEC.md", "--land"]);
    assert_eq!(output.code, Some(1), "{output}");
    assert_eq!(project.read("README.md"), "# Mine\n");
    assert_eq!(project.git("log -1 --format=%s main"), "Specify\n");
    project.commit("Mine");
    let output = project.run(&["run", "--resume"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(project.git("log -1 --format=%s main"), "Merge run 1\n");
    assert_eq!((project.read("README.md"), project.read("task-1.txt")), ("# Mine\n".into(), "work\n".into()));
}

/// A completed run.
fn finished_run() -> TestProject {
    let project = project(|script| approving_agent(developers(planners(script))));
    let output = project.run(&["run", "SPEC.md"]);
    assert_eq!(output.code, Some(0), "{output}");
    project
}

fn in_main(project: &TestProject) -> String {
    let names = project.git("ls-tree --name-only main");
    names.lines().filter(|name| !["README.md", "SPEC.md", "signoff.toml"].contains(name)).collect::<Vec<_>>().join(" ")
}

#[test]
fn commits_added_to_the_runs_branch_after_its_approval_do_not_land() {
    let project = finished_run();
    let commit = "cd .signoff/worktrees/run-1 && echo evil > evil.txt && git add . && git commit -q -m Evil";
    assert_eq!(project.env.shell(commit).code, Some(0));
    let output = project.run(&["land"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(in_main(&project), "task-1.txt task-2.txt task-3.txt");
    assert!(output.stderr.contains("later commits do not land"), "{output}");
}

#[test]
fn work_based_on_a_foreign_commit_does_not_land() {
    let refuses = ScriptRule::role("review").phase("final_review").say(&changes("what is evil.txt?"));
    let evil = ScriptRule::role("implement").task("2").shell(FOREIGN);
    let evil = evil.write("task-2.txt", "work\n").say("Done.\nTASK_COMPLETE\n");
    let project = project(|script| approving_agent(developers(planners(script).rule(refuses).rule(evil))));
    let output = project.run(&["run", "SPEC.md", "--effort", "low", "-j", "1"]);
    assert_eq!(output.code, Some(1), "{output}");
    let reported = output.stderr.lines().filter(|line| line.contains("Evil")).count();
    assert_eq!(reported, 1, "it is reported at once: {output}");
    let landed = project.run(&["land"]);
    assert_eq!((landed.code, in_main(&project).as_str()), (Some(1), ""), "{landed}");
    assert!(landed.stderr.contains("run 1 cannot land: its final review did not approve it"), "{landed}");
}

#[test]
fn a_landed_runs_worktree_is_removed_unless_it_holds_work() {
    let project = finished_run();
    assert_eq!(project.run(&["land"]).code, Some(0));
    assert_eq!(project.list(".signoff/worktrees"), [""; 0]);
    let project = finished_run();
    project.env.write(".signoff/worktrees/run-1/mine.txt", "mine\n");
    assert_eq!(project.run(&["land"]).code, Some(0));
    assert_eq!(project.read(".signoff/worktrees/run-1/mine.txt"), "mine\n");
}

#[test]
fn a_run_does_not_land_if_a_person_rejected_one_of_its_tasks() {
    let project = finished_run();
    assert_eq!(project.run(&["edit", "2", "--verdict", "CHANGES_REQUESTED", "--reason", "no"]).code, Some(0));
    let commands: [&[&str]; 5] =
        [&["merge", "3"], &["land", "--dry-run"], &["land"], &["land", "3"], &["land", "run-1"]];
    for command in commands {
        let output = project.run(command);
        assert_eq!((output.code, in_main(&project).as_str()), (Some(1), ""), "{command:?}: {output}");
        assert!(output.stderr.contains("run 1 builds on task 2, which is not approved"), "{output}");
        assert!(output.stderr.contains("hint: signoff improve 2 --review; `signoff merge 2"), "{output}");
        assert!(!output.stdout.contains("would land"), "{command:?}: {output}");
    }
    assert_eq!(project.run(&["edit", "2", "--verdict", "APPROVED", "--reason", "yes"]).code, Some(0));
    let output = project.run(&["land", "run-1"]);
    assert_eq!((output.code, in_main(&project).as_str()), (Some(0), TASK_FILES), "{output}");
}

const TASK_FILES: &str = "task-1.txt task-2.txt task-3.txt";

/// An approved task lands with its run, including the fixes of the final review.
#[test]
fn a_run_lands_with_its_fixes_whichever_of_its_tasks_is_named() {
    for ids in [&["1"][..], &["2", "3"], &["run-1"], &["run-1", "1"]] {
        let refuses = ScriptRule::role("review").phase("final_review").cycle(1).say(&changes("no glue"));
        let fixes = ScriptRule::role("fix").phase("final_review").write("glue.txt", "glue\n").say("Fixed.\n");
        let project = project(|script| approving_agent(developers(planners(script).rule(refuses).rule(fixes))));
        assert_eq!(project.run(&["run", "SPEC.md"]).code, Some(0));
        let words: Vec<&str> = ["land"].iter().chain(ids).copied().collect();
        let output = project.run(&words);
        assert_eq!((output.code, in_main(&project).as_str()), (Some(0), WHOLE), "{ids:?}: {output}");
        let again = project.run(&words);
        assert_eq!(again.code, Some(0), "{again}");
        assert!(again.stdout.contains("✓ Task #1 is already in main"), "{again}");
    }
}

/// The program is killed before the final review: the first group is approved and on the run's branch.
fn run_before_final_review() -> TestProject {
    let waits = ScriptRule::role("implement").task("3").write("../../../../begun", "").wait_for("../../../../go");
    let project = project(|script| approving_agent(developers(planners(script.rule(waits)))));
    let mut program = project.start(&["run", "SPEC.md"]);
    wait_until("the second group is at work", || project.env.root().join("begun").exists());
    program.kill().expect("the program can be killed");
    program.wait().expect("the program ends");
    project
}

#[test]
fn no_command_lands_a_run_before_its_final_review() {
    let project = run_before_final_review();
    let refused = "error: run 1 cannot land: its final review has not begun\nhint: `signoff status` shows its progress; \
                   `signoff run --resume 1` continues it if it was stopped";
    let commands: [&[&str]; 5] =
        [&["land"], &["land", "--dry-run"], &["land", "1"], &["land", "run-1"], &["merge", "1"]];
    for command in commands {
        let output = project.run(command);
        assert_eq!((output.code, in_main(&project).as_str()), (Some(1), ""), "{command:?}: {output}");
        assert!(output.stderr.contains(refused), "{command:?}: {output}");
        assert!(!output.stdout.contains("would land"), "{command:?}: {output}");
    }
}

/// An improvement of a run's task contains the task's commits.
#[test]
fn an_improved_task_does_not_bypass_a_failed_final_review() {
    let project = refused_run();
    let improves = ScriptRule::role("fix").task("4").write("better.txt", "better\n").say("Better.\n");
    project.set_agent(|script| approving_agent(developers(planners(script.rule(improves)))));
    let improved = project.run(&["improve", "1", "--review"]);
    assert_eq!(improved.code, Some(0), "{improved}");
    let commands: [&[&str]; 4] = [&["land"], &["land", "4", "--dry-run"], &["land", "4"], &["merge", "4"]];
    for command in commands {
        let output = project.run(command);
        assert_eq!((output.code, in_main(&project).as_str()), (Some(1), ""), "{command:?}: {output}");
        let refused = "error: run 1 cannot land: its final review did not approve it (1 open finding)";
        assert!(output.stderr.contains(refused), "{command:?}: {output}");
        assert!(!output.stdout.contains("would land"), "{command:?}: {output}");
    }
    assert_eq!(project.run(&["edit", "run-1", "--verdict", "APPROVED", "--reason", "it fits"]).code, Some(0));
    let output = project.run(&["land"]);
    let with_it = format!("better.txt {WHOLE}");
    assert_eq!((output.code, in_main(&project)), (Some(0), with_it), "{output}");
}

#[test]
fn a_run_without_a_branch_of_its_own_lands_task_by_task() {
    let project = TestProject::with_agent(PROGRAM, |script| approving_agent(developers(script)));
    project.run(&["add", "First", "-a"]);
    project.run(&["add", "Second", "-a"]);
    assert_eq!(project.run(&["work", "-j", "1"]).code, Some(0));
    let output = project.run(&["land", "run-1", "2"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert!(in_main(&project).ends_with("task-1.txt task-2.txt"), "{output}");
    let unknown = project.run(&["land", "run-7"]);
    assert_eq!((unknown.code, unknown.stderr.contains("there is no run 7")), (Some(2), true), "{unknown}");
}

#[test]
fn fixes_of_the_final_review_land_too() {
    let refuses = ScriptRule::role("review").phase("final_review").cycle(1).say(&changes("nothing ties them together"));
    let fixes = ScriptRule::role("fix").phase("final_review").write("glue.txt", "glue\n").say("Fixed.\n");
    let gives_up = ScriptRule::role("implement").task("2").say("TASK_STUCK: no\n");
    let project =
        project(|script| approving_agent(developers(planners(script).rule(gives_up).rule(refuses).rule(fixes))));
    assert_eq!(project.run(&["run", "SPEC.md"]).code, Some(1));
    project.run(&["cancel", "2"]);
    let output = project.run(&["run", "--resume"]);
    assert_eq!(output.code, Some(0), "{output}");
    let calls = project.calls();
    let whole = calls.with_role("review").find(|call| call.start.phase == "final_review").unwrap();
    for part in ["task-1.txt", "task-3.txt", "People log in and out"] {
        assert!(whole.prompt.contains(part), "{}", whole.prompt);
    }
    // Whichever task is named, the whole run lands.
    let output = project.run(&["merge", "1"]);
    assert_eq!((output.code, in_main(&project).as_str()), (Some(0), "glue.txt task-1.txt task-3.txt"), "{output}");
    assert!(project.run(&["land"]).stderr.contains("Nothing to land"));
}

#[test]
fn a_runs_branch_that_an_agent_resets_loses_nothing() {
    let rewinds = ScriptRule::role("implement")
        .task("3")
        .shell("git update-ref refs/heads/signoff/run-1 $(git rev-parse main)")
        .write("task-3.txt", "work\n")
        .say("TASK_COMPLETE\n");
    let project = project(|script| approving_agent(developers(planners(script).rule(rewinds))));
    let output = project.run(&["run", "SPEC.md", "--land"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(in_main(&project), "task-1.txt task-2.txt task-3.txt", "{output}");
    assert!(output.to_string().contains("back into it"), "{output}");
}

#[test]
fn a_run_that_git_cannot_read_does_not_land_in_parts() {
    let project = finished_run();
    let before = project.git("rev-parse main");
    let tip = project.git("rev-parse signoff/run-1");
    let (directory, file) = tip.trim().split_at(2);
    let object = project.env.work().join(format!(".git/objects/{directory}/{file}"));
    fs::remove_file(&object).unwrap();
    fs::write(object, "damaged").unwrap();
    let output = project.run(&["land"]);
    assert_eq!(output.code, Some(1), "{output}");
    assert_eq!(project.git("rev-parse main"), before, "{output}");
    assert!(output.stderr.starts_with("error: `git rev-list "), "{output}");
}

#[test]
fn a_checkout_left_inconsistent_by_a_kill_is_repaired() {
    let project = finished_run();
    let killed = project.env.run_with(&["land"], &[("SIGNOFF_FAILPOINT", "target_moved:1")]);
    assert_eq!(killed.signal, Some(9), "{killed}");
    let output = project.run(&["land"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(project.git("status --porcelain"), "");
    assert_eq!(project.read("task-3.txt"), "work\n");
}

#[test]
fn unreviewed_work_does_not_land_on_the_default_branch() {
    let project = project(developers);
    project.run(&["add", "One"]);
    let output = project.run(&["run", "queue", "--land"]);
    assert_eq!(output.code, Some(1), "{output}");
    assert!(output.stderr.contains("did not land on the default branch"), "{output}");
    assert_eq!(in_main(&project), "");
}

#[test]
fn a_dry_run_prints_the_plan() {
    let project = project(|script| script);
    insta::assert_snapshot!(project.run(&["run", "SPEC.md", "--dry-run"]), @"
    exit 0
    --- stdout
    SPEC.md: a specification of 3 lines
    A planner lists its tasks, a second one groups them, and signoff runs group by group.
    To read it as a plan, use --as plan.
    ");
    assert!(!project.env.work().join(".signoff/signoff.db").exists());
}

#[test]
fn an_empty_specification_is_refused() {
    let project = project(|script| script);
    fs::write(project.env.work().join("SPEC.md"), " \n").unwrap();
    insta::assert_snapshot!(project.run(&["run", "SPEC.md"]), @"
    exit 2
    --- stderr
    error: SPEC.md is empty
      --> SPEC.md:1
    hint: describe what to build, or name another file
    ");
}

/// A reviewer that asks for a discussion once, in its first review of a phase.
fn asks_for_discussion(phase: &str) -> ScriptRule {
    ScriptRule::role("review").phase(phase).cycle(1).say("Is this meant?\n\n**Verdict: NEEDS_DISCUSSION**\n")
}

#[test]
fn a_question_about_the_run_is_answered_by_its_number() {
    let project =
        project(|script| approving_agent(developers(planners(script.rule(asks_for_discussion("final_review"))))));
    let output = project.run(&["run", "SPEC.md", "-j", "1"]);
    insta::assert_snapshot!(output.stderr, @"
    Run 1 waits for you: signoff answer q1 CHOICE (fix, proceed, stop)
      then: signoff run --resume 1
    ");
    insta::assert_snapshot!(project.run(&["answer", "q1", "fix"]), @"
    exit 0
    --- stdout
    q1 answered: fix
    --- stderr
    `signoff run --resume 1` continues
    ");
    insta::assert_snapshot!(printed(&project.run(&["run", "--resume"])), @"
    exit 0
    --- stdout
    Resuming run 1: final review of signoff/run-1
      [1/4] a person answers: fix
      [2/4] Improving...
      [2/4] Running review...
      [2/4] Review: APPROVED
    ✓ Final review completed (APPROVED after 2 cycles)
    ✓ Run 1 completed, all approved: 3 tasks, 3 completed
        Its work is on signoff/run-1; `signoff land` lands it on the default branch
    ");
}

#[test]
fn an_answer_about_a_part_decides_the_exit_code() {
    for (phase, choice, code) in [("enumerate_review", "stop", 1), ("final_review", "proceed", 3)] {
        let project = project(|script| approving_agent(developers(planners(script.rule(asks_for_discussion(phase))))));
        let waiting = project.run(&["run", "SPEC.md"]);
        assert_eq!(waiting.code, Some(3), "{phase} {choice}: {waiting}");
        let answered = project.run(&["answer", "q1", choice, "--json"]);
        assert_eq!(answered.code, Some(0), "{phase} {choice}: {answered}");
        assert!(answered.json()["task_id"].is_null(), "{answered}");
        let output = project.run(&["run", "--resume"]);
        assert_eq!(output.code, Some(code), "{phase} {choice}: {output}");
        assert_eq!(project.run(&["status", "--json"]).json()["questions"].as_array().unwrap().len(), 0);
    }
}

#[test]
fn a_cancelled_task_cannot_land_after_its_run_is_over() {
    let project = project(|script| approving_agent(never_approving_task_2(developers(planners(script)))));
    assert_eq!(project.run(&["run", "SPEC.md", "--effort", "low"]).code, Some(1));
    project.run(&["cancel", "2"]);
    let output = project.run(&["run", "--resume"]);
    assert_eq!(output.code, Some(0), "{output}");
    let facts = query(&project, "select count(*) from events");
    insta::assert_snapshot!(project.run(&["edit", "2", "--verdict", "APPROVED"]), @"
    exit 2
    --- stderr
    error: task 2 cannot land any more: its run 1 is over
    hint: `signoff add` adds a new task, or merge its branch by hand: git merge signoff/task-2-log-out
    ");
    let forced = project.run(&["merge", "2", "--force", "--reason", "it is fine"]);
    assert_eq!((forced.code, forced.stderr.contains("cannot land any more")), (Some(2), true), "{forced}");
    assert_eq!(query(&project, "select count(*) from events"), facts);
    assert_eq!(query(&project, "select status from tasks where id = 2"), "cancelled");
}

#[test]
fn a_force_merged_task_lands_with_its_group() {
    let project = project(|script| approving_agent(never_approving_task_2(developers(planners(script)))));
    assert_eq!(project.run(&["run", "SPEC.md", "--effort", "low"]).code, Some(1));
    insta::assert_snapshot!(project.run(&["merge", "2", "--force", "--reason", "it is fine"]), @"
    exit 0
    --- stdout
    ✓ Task #2 is APPROVED by a person, and lands with its group on signoff/run-1
    --- stderr
    `signoff run --resume 1` continues
    ");
    let output = project.run(&["run", "--resume"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert!(project.git("ls-tree --name-only signoff/run-1").contains("task-2.txt"));
}

#[test]
fn resuming_a_run_that_another_program_works_on_says_so() {
    let waits = ScriptRule::role("implement")
        .task("1")
        .write("../../../../begun", "")
        .wait_for("../../../../go")
        .write("task-1.txt", "work\n")
        .say("TASK_COMPLETE\n");
    let project = project(|script| approving_agent(developers(planners(script.rule(waits)))));
    let program = project.start(&["run", "SPEC.md"]);
    wait_until("the agent is at work", || project.env.root().join("begun").exists());
    insta::assert_snapshot!(project.run(&["run", "--resume"]), @"
    exit 3
    --- stderr
    No run to resume here: run 1 is in use by another signoff process
    ");
    fs::write(project.env.root().join("go"), "").unwrap();
    let output = project.env.finish(program);
    assert_eq!(output.code, Some(0), "{output}");
}
