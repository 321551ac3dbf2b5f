//! `signoff run PLAN`: the tasks of a plan in order, each reviewed by two reviewers in parallel.

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};

use crate::PROGRAM;
use crate::actors::{FEATURE, approving_agent};

const PLAN: &str = "\
# Login Implementation Plan

**Goal:** People can log in and out.

### Task 1: Session store

- [ ] **Step 1: Keep sessions in memory**

### Task 2: Logout

- [ ] **Step 1: End the session**
";

/// Writes a separate file for each task.
fn developer(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").write("task-{task}.txt", "one\n").write(FEATURE, "{task}\n"))
        .rule(ScriptRule::role("fix").append(FEATURE, "fixed {cycle}\n"))
}

fn project(script: impl FnOnce(AgentScript) -> AgentScript) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, script);
    project.env.write("plan.md", PLAN);
    project.commit("Plan");
    project
}

#[test]
fn the_tasks_follow_each_other_on_one_branch() {
    let project = project(|script| approving_agent(developer(script)));
    let before = project.checkout();
    insta::assert_snapshot!(project.run(&["run", "plan.md"]), @"
    exit 0
    --- stdout
    Running task #1: Session store
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
        Review Results:
          Spec Review: APPROVED (high confidence)
          Code Review: APPROVED (high confidence)

        Action: Proceed
    ✓ Task #1 completed (APPROVED after 1 cycle)
    Running task #2: Logout
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
        Review Results:
          Spec Review: APPROVED (high confidence)
          Code Review: APPROVED (high confidence)

        Action: Proceed
    ✓ Task #2 completed (APPROVED after 1 cycle)
    ✓ Run 1 completed, all approved: 2 tasks, 2 completed
    ");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
    ✓ 1. implement Session store    completed  APPROVED (1 cycle)
    ✓ 2. implement Logout           completed  APPROVED (1 cycle)
    ");
    insta::assert_snapshot!(project.subjects("signoff/run-1"), @"
    Session store - initial implementation
    Tick 1 in plan.md
    Logout - initial implementation
    Tick 2 in plan.md
    ");
    insta::assert_snapshot!(project.git("ls-tree --name-only signoff/run-1"), @"
    README.md
    auth.txt
    plan.md
    signoff.toml
    task-1.txt
    task-2.txt
    ");
    assert_eq!(project.checkout(), before);
    let shown = |task: &str| project.run(&["show", task, "--json"]).json()["task"].clone();
    let first = project.git("rev-parse signoff/run-1~2");
    assert_eq!(shown("2")["base"], first.trim(), "the second begins where the first was approved and ticked");
    insta::assert_snapshot!(project.git("diff --stat signoff/run-1~3 signoff/run-1~2"), @"
    plan.md | 2 +-
    1 file changed, 1 insertion(+), 1 deletion(-)
    ");
    let calls = project.calls();
    let second: Vec<_> = calls.with_role("review").filter(|call| call.start.task == "2").collect();
    assert!(second.iter().all(|call| !call.prompt.contains("task-1.txt")), "only its own changes are reviewed");
}

#[test]
fn a_short_diff_is_in_the_prompt_and_a_long_one_only_as_statistics() {
    let lines = |count: usize| "line\n".repeat(count);
    let project = project(|script| {
        approving_agent(
            script
                .rule(ScriptRule::role("implement").task("1").write("short.txt", &lines(480)))
                .rule(ScriptRule::role("implement").write("long.txt", &lines(600))),
        )
    });
    assert_eq!(project.run(&["run", "plan.md"]).code, Some(0));
    for call in project.calls().with_role("review") {
        let (inline, stat) = (call.prompt.contains("\n+line\n"), call.prompt.contains("long.txt | 600 ++"));
        match call.start.task.as_str() {
            "1" => assert!(inline, "{}", call.prompt),
            _ => {
                assert!(!inline && stat, "{}", call.prompt);
                assert!(call.prompt.contains("Diff is 606 lines. Fetch specific files as needed."), "{}", call.prompt);
            }
        }
        assert!(call.prompt.contains("<verdict>"), "the answer's form is not asked for");
    }
}

#[test]
fn completed_tasks_are_skipped() {
    let project = project(|script| approving_agent(developer(script)));
    project.env.write("plan.md", PLAN.replacen("- [ ]", "- [x]", 1));
    insta::assert_snapshot!(project.run(&["run", "plan.md", "--dry-run"]), @"
    exit 0
    --- stdout
    plan markdown: Login Implementation Plan
    Goal: People can log in and out.
    2 tasks: 1 to do in 1 group, 1 done

    Group 1
      [ ] 2  Logout (0/1 step)

    Not scheduled
      [x] 1  Session store (1/1 step)
    ");
    assert_eq!(project.run(&["run", "plan.md"]).code, Some(0));
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"  ✓ 1. implement Logout    completed  APPROVED (1 cycle)");
    project.env.write("plan.md", PLAN.replace("- [ ]", "- [x]"));
    insta::assert_snapshot!(project.run(&["run", "plan.md"]), @"
    exit 0
    --- stderr
    Every task of the plan is done
    ");
}

#[test]
fn a_dry_run_does_nothing() {
    let project = project(|script| script);
    let ran = project.run(&["run", "plan.md", "--dry-run"]);
    insta::assert_snapshot!(ran, @"
    exit 0
    --- stdout
    plan markdown: Login Implementation Plan
    Goal: People can log in and out.
    2 tasks: 2 to do in 2 groups, 0 done

    Group 1
      [ ] 1  Session store (0/1 step)

    Group 2
      [ ] 2  Logout (0/1 step)
    ");
    assert_eq!(project.run(&["run", "plan.md", "--dry-run", "--json"]).json()["tasks"][1]["title"], "Logout");
    assert!(!project.env.work().join(".signoff").exists());
}

#[test]
fn a_plan_without_tasks_is_wrong_usage() {
    let project = project(|script| script);
    project.env.write("empty.md", "# A Plan\n\nNothing yet.\n");
    insta::assert_snapshot!(project.run(&["run", "empty.md"]), @"
    exit 2
    --- stderr
    error: empty.md looks like a plan but has no tasks
      --> empty.md:1
    hint: write them as `### Task 1: …`, or let a planner derive them with --as spec
    ");
    insta::assert_snapshot!(project.run(&["run", "missing.md"]), @"
    exit 2
    --- stderr
    error: cannot read missing.md: No such file or directory (os error 2)
      --> missing.md
    hint: name a plan file, a specification, `beads`, or `queue`
    ");
    assert_eq!(project.run(&["run", "empty.md", "--dry-run"]).code, Some(2));
    assert_eq!(project.run(&["run"]).code, Some(2));
}

#[test]
fn with_land_a_plan_ends_on_the_default_branch() {
    let project =
        project(|script| approving_agent(script.rule(ScriptRule::role("implement").write("task-{task}.txt", "one\n"))));
    let output = project.run(&["run", "plan.md", "--land"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!(project.git("log -1 --format=%s main"), "Merge run 1\n");
    assert_eq!(project.read("task-1.txt"), "one\n");
    assert_eq!(project.git("status --porcelain"), "");
    // The last tick lands, too; otherwise the last task would be worked again.
    assert_eq!(project.read("plan.md").matches("- [x]").count(), 2, "{}", project.read("plan.md"));
}

#[test]
fn a_plan_is_not_ticked_through_a_link() {
    for (script, more) in [
        ("rm -f plan.md; ln -s ../../../plan.md plan.md", None),
        ("rm -rf plans; ln -s ../../../plans plans", Some("plans/plan.md")),
    ] {
        let project = project(|rules| {
            approving_agent(rules.rule(ScriptRule::role("implement").write("task-{task}.txt", "one\n").shell(script)))
        });
        let plan = more.unwrap_or("plan.md");
        if more.is_some() {
            project.git("rm -q --cached plan.md; mkdir plans; mv plan.md plans; git add -A; git commit -qm Move");
        }
        let before = project.read(plan);
        let output = project.run(&["run", plan]);
        assert_eq!(output.code, Some(0), "{output}");
        assert_eq!(project.read(plan), before, "{output}");
        let note = "the file is a link now, and nothing is written through links";
        assert!(output.stdout.contains(note) || output.stderr.contains(note), "{output}");
        assert_eq!(project.git("status --porcelain"), "");
    }
}

#[test]
fn the_tasks_of_a_plan_land_one_by_one_with_their_ticks() {
    for landing in ["merge", "rebase"] {
        let project = project(|script| {
            approving_agent(script.rule(ScriptRule::role("implement").write("task-{task}.txt", "one\n")))
        });
        project.configure(&format!("landing = \"{landing}\"\n"));
        assert_eq!(project.run(&["run", "plan.md"]).code, Some(0));
        for task in ["1", "2"] {
            let merged = project.run(&["merge", task]);
            assert_eq!(merged.code, Some(0), "{landing}: {merged}");
        }
        assert_eq!(project.read("task-2.txt"), "one\n");
        assert_eq!(project.read("plan.md").matches("- [x]").count(), 2, "{landing}");
    }
}

#[test]
fn only_an_unfinished_run_is_resumed() {
    let project = project(|script| approving_agent(developer(script)));
    assert_eq!(project.run(&["run", "plan.md"]).code, Some(0));
    insta::assert_snapshot!(project.run(&["run", "--resume"]), @"
    exit 0
    --- stderr
    No run to resume
    ");
    insta::assert_snapshot!(project.run(&["run", "--resume", "9"]), @"
    exit 2
    --- stderr
    error: there is no run 9
    hint: `signoff status` lists tasks and runs
    ");
}

/// The work of a cancelled task is not approved: it is kept on a branch, and later tasks do not build on it.
#[test]
fn the_work_of_a_cancelled_task_is_set_aside() {
    let project = project(|script| {
        let fails = ScriptRule::role("implement").task("1").write("junk.txt", "junk\n").exit(1);
        approving_agent(developer(script.rule(fails)))
    });
    assert_eq!(project.run(&["run", "plan.md", "--no-ask"]).code, Some(1));
    project.env.write(".signoff/worktrees/run-1/more.txt", "more junk\n");
    project.run(&["cancel", "1"]);
    let resumed = project.run(&["run", "--resume"]);
    assert_eq!(resumed.code, Some(0), "{resumed}");
    insta::assert_snapshot!(resumed.stderr, @"the work of task 1 is on the branch signoff/run-1-cancelled-1");
    insta::assert_snapshot!(project.subjects("signoff/run-1"), @"
    Logout - initial implementation
    Tick 2 in plan.md
    ");
    insta::assert_snapshot!(project.git("ls-tree --name-only signoff/run-1"), @"
    README.md
    auth.txt
    plan.md
    signoff.toml
    task-2.txt
    ");
    insta::assert_snapshot!(project.subjects("signoff/run-1-cancelled-1"), @"
    Session store - work in progress
    Task 1 - work in progress
    ");
    insta::assert_snapshot!(project.git("ls-tree --name-only signoff/run-1-cancelled-1"), @"
    README.md
    junk.txt
    more.txt
    plan.md
    signoff.toml
    ");
}

#[test]
fn the_work_of_several_cancelled_tasks_is_kept_separately() {
    let fails = |task: &str| ScriptRule::role("implement").task(task).write("junk-{task}.txt", "junk\n").exit(1);
    let project =
        TestProject::with_agent(PROGRAM, |script| approving_agent(developer(script.rule(fails("1")).rule(fails("2")))));
    let third = "\n### Task 3: Forget\n\n- [ ] **Step 1: Forget the session**\n";
    project.env.write("plan.md", format!("{PLAN}{third}"));
    project.commit("Plan");
    project.run(&["run", "plan.md", "--no-ask"]);
    project.run(&["cancel", "1"]);
    project.run(&["run", "--resume", "--no-ask"]);
    project.run(&["cancel", "2"]);
    assert_eq!(project.run(&["run", "--resume"]).code, Some(0));
    let files = |branch: &str| project.git(&format!("ls-tree --name-only {branch}"));
    assert!(files("signoff/run-1-cancelled-1").contains("junk-1.txt"));
    assert!(files("signoff/run-1-cancelled-2").contains("junk-2.txt"));
    assert!(!files("signoff/run-1").contains("junk"), "{}", files("signoff/run-1"));
}

#[test]
fn options_that_do_not_apply_are_refused() {
    let project = project(approving_agent);
    project.env.write("SPEC.md", "People log in.\n");
    let mut printed = String::new();
    for words in [
        "--resume --dry-run",
        "--resume --land",
        "--resume 1 --effort high",
        "--resume --as plan",
        "--resume --no-review",
        "SPEC.md --tick",
        "queue --tick",
    ] {
        let output = project.run(&[&["run"], words.split(' ').collect::<Vec<_>>().as_slice()].concat());
        assert_eq!(output.code, Some(2), "{words}: {output}");
        printed += &format!("run {words}\n{}", output.stderr);
    }
    insta::assert_snapshot!(printed, @"
    run --resume --dry-run
    error: --dry-run cannot be combined with --resume
    hint: `signoff status` shows what is unfinished
    run --resume --land
    error: --land cannot be combined with --resume
    hint: leave it out; `signoff land` lands approved work when the run has ended
    run --resume 1 --effort high
    error: --effort cannot be combined with --resume
    hint: leave it out: a resumed run keeps its original settings
    run --resume --as plan
    error: --as cannot be combined with --resume
    hint: leave it out: a resumed run keeps its original settings
    run --resume --no-review
    error: --no-review cannot be combined with --resume
    hint: leave it out: a resumed run keeps its original settings
    run SPEC.md --tick
    error: --tick is for a plan file: only plan files have check boxes
      --> SPEC.md
    hint: leave it out
    run queue --tick
    error: --tick is for a plan file: only plan files have check boxes
      --> queue
    hint: leave it out
    ");
    assert_eq!(project.calls().summary(), "");
}

/// `-j` is accepted with a note, so one command line works for every source.
#[test]
fn a_plan_runs_sequentially_whatever_the_jobs() {
    let project = project(|script| approving_agent(developer(script)));
    let output = project.run(&["run", "plan.md", "-j", "4"]);
    assert_eq!(output.code, Some(0), "{output}");
    insta::assert_snapshot!(output.stderr, @"The tasks of a plan run one after the other; -j is ignored");
    assert_eq!(project.calls().with_role("implement").count(), 2);
}

#[test]
fn a_plan_can_have_the_name_of_a_source() {
    let project = project(approving_agent);
    project.env.write("queue", "### Task 1: One\n\nDo it.\n");
    insta::assert_snapshot!(project.run(&["run", "queue", "--as", "plan", "--dry-run"]), @"
    exit 0
    --- stdout
    plan markdown
    1 task: 1 to do in 1 group, 0 done

    Group 1
      [ ] 1  One
    ");
}
