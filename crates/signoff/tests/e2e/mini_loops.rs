//! Parallel fixes: independent findings are fixed in parallel worktrees and merged.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, GitTrap, ScriptRule};
use signoff_testkit::calls::AgentCall;
use signoff_testkit::processes::{self, wait_until};

use crate::PROGRAM;
use crate::actors::APPROVED;

const BRANCH: &str = "signoff/task-1-three-files";

/// All independent findings are fixed in parallel.
const AT_ONCE: &str = "[gate]\nparallel_fixes = true\n";

const TERM: i32 = 15;

/// A directory that all agents of a test share.
const YARD: &str = "../../../../yard";

/// A review with a finding in each of these files.
fn review_with_findings(files: &[&str]) -> String {
    let lines = files.iter().map(|file| format!("- {file} lacks the word of {}\n", &file[..1]));
    format!("{}\n**Verdict: CHANGES_REQUESTED**\n", lines.collect::<String>())
}

/// Three files, and a reviewer that requests a change of each before it approves.
fn three_files(script: AgentScript) -> AgentScript {
    rejecting_once(script, &["a.txt:1", "b.txt:1", "c.txt:1"])
}

fn rejecting_once(script: AgentScript, files: &[&str]) -> AgentScript {
    let implement = ["a.txt", "b.txt", "c.txt"]
        .into_iter()
        .fold(ScriptRule::role("implement"), |rule, file| rule.write(file, "one\n"));
    script
        .rule(implement.say("Done.\n"))
        .rule(ScriptRule::role("review").cycle(1).say(&review_with_findings(files)))
        .rule(ScriptRule::role("review").say(APPROVED))
}

/// Adds a line to a file; idempotent.
fn adds(file: &str, line: &str) -> String {
    format!("grep -qx '{line}' {file} || echo '{line}' >> {file}")
}

/// The fixer of a file, which waits until all others have started.
fn fixer(own: &str, others: &[&str]) -> ScriptRule {
    let begun = |name: &str| format!("{YARD}/{name}.begun");
    let rule = ScriptRule::role("fix").prompt_contains(&format!("the word of {own}")).write(&begun(own), "");
    let rule = others.iter().fold(rule, |rule, other| rule.wait_for(&begun(other)));
    rule.shell(&adds(&format!("{own}.txt"), &format!("word of {own}")))
}

fn three_fixers(script: AgentScript) -> AgentScript {
    let script = script.rule(fixer("a", &["b", "c"]).say("Fixed a.\n"));
    let script = script.rule(fixer("b", &["a", "c"]).say("Fixed b.\n"));
    script.rule(fixer("c", &["a", "b"]).say("Fixed c.\n"))
}

/// A project with one task.
fn project(agent: impl Fn(AgentScript) -> AgentScript) -> TestProject {
    configured(AT_ONCE, agent)
}

fn configured(settings: &str, agent: impl Fn(AgentScript) -> AgentScript) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, agent);
    project.configure(settings);
    fs::create_dir_all(project.env.root().join("yard")).unwrap();
    project.run(&["add", "Three files", "--auto-review"]);
    project
}

/// The files of the branch with their lines.
fn files(project: &TestProject) -> String {
    let file = |name: &str| {
        let text = project.git(&format!("show {BRANCH}:{name}"));
        format!("{name}: {}\n", text.trim_end().replace('\n', ", "))
    };
    ["a.txt", "b.txt", "c.txt"].map(file).concat()
}

/// Nothing remains of the fixers' worktrees and refs.
fn assert_no_fix_worktrees(project: &TestProject) {
    assert_eq!(project.list(".signoff/worktrees"), ["task-1"]);
    assert_eq!(project.git("for-each-ref refs/signoff/apart"), "");
    assert_eq!(project.git("worktree list --porcelain").matches("worktree ").count(), 2);
    let status = project.git("-C .signoff/worktrees/task-1 status --porcelain");
    assert_eq!(status, "");
}

fn fixers(project: &TestProject) -> Vec<AgentCall> {
    project.calls().with_role("fix").cloned().collect()
}

#[test]
fn three_fixes_at_once_are_three_commits_on_the_branch() {
    let project = project(|script| three_fixers(three_files(script)));
    let before = project.checkout();
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 0
    --- stdout
    Running task #1: Three files
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - lacks the word of a
      [2/3] Improving (3 fixes at once)...
      [2/3] Combining the fixes...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    insta::assert_snapshot!(project.subjects(BRANCH), @"
    Three files - initial implementation
    Address review feedback (cycle 1)
    Address review feedback (cycle 1)
    Address review feedback (cycle 1)
    ");
    insta::assert_snapshot!(files(&project), @"
    a.txt: one, word of a
    b.txt: one, word of b
    c.txt: one, word of c
    ");
    assert_eq!(project.calls().max_concurrent(), 3);
    assert_eq!(fixers(&project).len(), 3);
    assert_eq!(project.checkout(), before);
    assert_no_fix_worktrees(&project);
}

#[test]
fn a_repeated_fix_is_a_commit_after_those_that_were_kept() {
    let project = project(overlapping);
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 0
    --- stdout
    Running task #1: Three files
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - lacks the word of a
      [2/3] Improving (3 fixes at once)...
      [2/3] Combining the fixes...
      [2/3] The fixes overlap: 2 of 3 kept, the others are repeated
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    insta::assert_snapshot!(files(&project), @"
    a.txt: one, word of a, and of b
    b.txt: one, word of b
    c.txt: one, word of c
    ");
    insta::assert_snapshot!(project.git(&format!("log --reverse --format=%s --name-only main..{BRANCH}")), @"
    Three files - initial implementation

    a.txt
    b.txt
    c.txt
    Address review feedback (cycle 1)

    a.txt
    Address review feedback (cycle 1)

    c.txt
    Address review feedback (cycle 1)

    a.txt
    b.txt
    ");
    let words = |call: &AgentCall| call.prompt.contains("Others fix other findings").to_string();
    assert_eq!(fixers(&project).iter().map(words).collect::<Vec<_>>(), ["true", "true", "true", "false"]);
    assert_no_fix_worktrees(&project);
}

#[test]
fn a_renamed_file_counts_under_both_names() {
    let project = project(|script| {
        let moves = fixer("a", &["b"]).shell("git mv b.txt d.txt").say("Fixed a.\n");
        let again = "test -f b.txt && echo 'word of b' >> b.txt || echo 'word of b' >> d.txt";
        let begun = fixer("b", &["a"]);
        let begun = ScriptRule { steps: begun.steps[..2].to_vec(), ..begun };
        rejecting_once(script, &["a.txt:1", "b.txt:1"]).rule(moves).rule(begun.shell(again).say("Fixed b.\n"))
    });
    let worked = project.run(&["work"]);
    assert!(worked.stdout.contains("The fixes overlap: 1 of 2 kept, the others are repeated"), "{worked}");
    insta::assert_snapshot!(project.git(&format!("show {BRANCH}:d.txt")), @"
    one
    word of b
    ");
    assert_no_fix_worktrees(&project);
}

#[test]
fn a_fix_that_conflicts_is_repeated_alone() {
    let project = project(|script| {
        let file = fixer("a", &["b"]).write("d", "a file\n").say("Fixed a.\n");
        let directory = fixer("b", &["a"]).shell("rm -rf d; mkdir d; echo word > d/b.txt");
        rejecting_once(script, &["a.txt:1", "b.txt:1"]).rule(file).rule(directory.say("Fixed b.\n"))
    });
    let worked = project.run(&["work"]);
    assert!(worked.stdout.contains("The fixes overlap: 1 of 2 kept, the others are repeated"), "{worked}");
    insta::assert_snapshot!(project.git(&format!("ls-tree -r --name-only {BRANCH}")), @"
    README.md
    a.txt
    b.txt
    c.txt
    d/b.txt
    signoff.toml
    ");
    assert_eq!(fixers(&project).len(), 3);
    assert_no_fix_worktrees(&project);
}

#[test]
fn a_fixer_that_changes_nothing_does_not_block_the_others() {
    let project = project(|script| {
        let idle = fixer("b", &["a", "c"]);
        let idle = ScriptRule { steps: idle.steps[..3].to_vec(), ..idle }.say("It is there already.\n");
        let script = three_files(script).rule(fixer("a", &["b", "c"]).say("Fixed a.\n")).rule(idle);
        script.rule(fixer("c", &["a", "b"]).say("Fixed c.\n"))
    });
    let worked = project.run(&["work"]);
    assert!(worked.stdout.contains("APPROVED after 2 cycles"), "{worked}");
    assert!(!worked.stdout.contains("overlap"), "{worked}");
    insta::assert_snapshot!(files(&project), @"
    a.txt: one, word of a
    b.txt: one
    c.txt: one, word of c
    ");
    assert_eq!(project.subjects(BRANCH).lines().count(), 3);
    assert_no_fix_worktrees(&project);
}

#[test]
fn one_of_three_fails_and_a_person_is_asked() {
    let project = configured(&format!("{AT_ONCE}on_fixer_failure = [\"retry\", \"ask\"]\n"), |script| {
        let fails = fixer("c", &["a", "b"]).say("I cannot.\n").exit(1);
        let script = three_files(script).rule(fixer("a", &["b", "c"]).say("Fixed a.\n"));
        script.rule(fixer("b", &["a", "c"]).say("Fixed b.\n")).rule(fails)
    });
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 3
    --- stdout
    Running task #1: Three files
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - lacks the word of a
      [2/3] Improving (3 fixes at once)...
      [2/3] Improvement failed: exit code 1
      [2/3] Improving again...
      [2/3] Improvement failed: exit code 1
      [2/3] Question: The fixer failed. Retry or stop?
        signoff answer 1 CHOICE (retry, stop, restart)
    ");
    assert_eq!(fixers(&project).len(), 4);
    insta::assert_snapshot!(project.list(".signoff/worktrees").join("\n"), @"
    task-1
    task-1-fix-1.1.1.0
    task-1-fix-1.1.1.1
    task-1-fix-1.1.1.2
    ");
    project.set_agent(|script| three_fixers(three_files(script)));
    assert_eq!(project.run(&["answer", "1", "retry"]).code, Some(0));
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 0
    --- stdout
    Resuming task #1: Three files
      [2/3] a person answers: retry
      [2/3] Improving...
      [2/3] Combining the fixes...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    assert_eq!(fixers(&project).len(), 5);
    insta::assert_snapshot!(files(&project), @"
    a.txt: one, word of a
    b.txt: one, word of b
    c.txt: one, word of c
    ");
    assert_no_fix_worktrees(&project);
}

#[test]
fn successful_fixes_are_not_repeated_after_a_failure() {
    let project = project(|script| {
        let fails = fixer("c", &["a", "b"]).say("I cannot go on.\n").exit(1);
        let script = three_files(script).rule(fixer("a", &["b", "c"]).say("Fixed a.\n"));
        script.rule(fixer("b", &["a", "c"]).say("Fixed b.\n")).rule(fails)
    });
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(1), "{worked}");
    assert_eq!(project.list(".signoff/worktrees"), ["task-1"]);
    project.git("gc -q --prune=now");
    // The retry starts from the unfinished work.
    project.set_agent(|script| {
        let rest = ScriptRule::role("fix").shell("grep -qx 'word of c' c.txt").say("It was done.\n");
        three_files(script).rule(rest)
    });
    assert_eq!(project.run(&["retry", "1"]).code, Some(0));
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(fixers(&project).len(), 4);
    insta::assert_snapshot!(files(&project), @"
    a.txt: one, word of a
    b.txt: one, word of b
    c.txt: one, word of c
    ");
    insta::assert_snapshot!(project.subjects(BRANCH), @"
    Three files - initial implementation
    Address review feedback (cycle 1)
    Address review feedback (cycle 1)
    Three files - work in progress
    ");
    assert_no_fix_worktrees(&project);
}

#[test]
fn a_cancelled_task_leaves_no_worktrees_of_fixers() {
    let project = configured(&format!("{AT_ONCE}on_fixer_failure = \"ask\"\n"), |script| {
        let fails = fixer("c", &["a", "b"]).exit(1);
        let script = three_files(script).rule(fixer("a", &["b", "c"])).rule(fixer("b", &["a", "c"]));
        script.rule(fails)
    });
    project.run(&["work"]);
    assert_eq!(project.list(".signoff/worktrees").len(), 4);
    assert_eq!(project.run(&["cancel", "1"]).code, Some(0));
    assert_no_fix_worktrees(&project);
}

#[test]
fn a_task_cancelled_while_fixers_run_leaves_no_worktrees_either() {
    let project = project(|script| {
        let hangs = |own: &str, others: &[&str]| {
            let rule = fixer(own, others);
            ScriptRule { steps: rule.steps[..3].to_vec(), ..rule }.write(&format!("{YARD}/{own}.ready"), "").hang()
        };
        let script = three_files(script).rule(hangs("a", &["b", "c"]));
        script.rule(hangs("b", &["a", "c"])).rule(hangs("c", &["a", "b"]))
    });
    let mut work = project.start(&["work"]);
    let ready = |name: &str| project.env.root().join(format!("yard/{name}.ready")).exists();
    wait_until("all are at work", || ["a", "b", "c"].into_iter().all(ready));
    assert_eq!(project.run(&["cancel", "1"]).code, Some(0));
    work.wait().unwrap();
    wait_until("nothing of ours runs", || processes::with_root(project.env.root()).is_empty());
    assert_no_fix_worktrees(&project);
}

/// The number of fixers whose end is recorded.
fn ended(project: &TestProject) -> usize {
    let shown = project.run(&["show", "1", "--json"]).json();
    let attempts = shown["attempts"].as_array().cloned().unwrap_or_default();
    attempts.iter().filter(|attempt| attempt["role"] == "fix" && attempt["outcome"] == "complete").count()
}

#[test]
fn after_an_interrupt_only_unfinished_fixers_resume() {
    let project = project(|script| {
        let waits = fixer("c", &["a", "b"]);
        let waits = ScriptRule { steps: waits.steps[..3].to_vec(), ..waits }.write(&format!("{YARD}/ready"), "").hang();
        let script = three_files(script).rule(fixer("a", &["b", "c"]).say("Fixed a.\n"));
        script.rule(fixer("b", &["a", "c"]).say("Fixed b.\n")).rule(waits)
    });
    let work = project.env.start_group(&["work"]);
    wait_until("two have ended", || ended(&project) == 2 && project.env.root().join("yard/ready").exists());
    processes::signal_group(work.id(), TERM);
    let output = project.env.finish(work);
    assert!(output.stderr.contains("Interrupted: `signoff work` continues"), "{output}");
    project.set_agent(three_at_once);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(fixers(&project).len(), 4);
    insta::assert_snapshot!(files(&project), @"
    a.txt: one, word of a
    b.txt: one, word of b
    c.txt: one, word of c
    ");
    assert_no_fix_worktrees(&project);
}

#[test]
fn changes_made_on_the_branch_in_the_meantime_are_kept() {
    let project = project(|script| {
        let foreign = "cd ../task-1 && echo by hand >> b.txt && git add b.txt && git commit -qm 'By hand' && \
                       echo more > more.txt";
        let script = rejecting_once(script, &["a.txt:1", "c.txt:1"]);
        script.rule(fixer("a", &["c"]).shell(foreign).say("Fixed a.\n")).rule(fixer("c", &["a"]).say("Fixed c.\n"))
    });
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    insta::assert_snapshot!(files(&project), @"
    a.txt: one, word of a
    b.txt: one, by hand
    c.txt: one, word of c
    ");
    insta::assert_snapshot!(project.subjects(BRANCH), @"
    Three files - initial implementation
    By hand
    Changes by hand
    Address review feedback (cycle 1)
    Address review feedback (cycle 1)
    ");
    assert_no_fix_worktrees(&project);
}

#[test]
fn a_fixer_that_commits_to_the_branch_of_the_task_keeps_its_fix() {
    let ways = [
        format!("git checkout -q --ignore-other-worktrees {BRANCH} && git add -A && git commit -qm mine"),
        format!("git add -A && git commit -qm mine && git update-ref refs/heads/{BRANCH} HEAD"),
    ];
    for way in ways {
        let project = project(|script| {
            let script = three_files(script).rule(fixer("a", &["b", "c"]).say("Fixed a.\n"));
            let script = script.rule(fixer("b", &["a", "c"]).shell(&way).say("Fixed b.\n"));
            script.rule(fixer("c", &["a", "b"]).say("Fixed c.\n"))
        });
        let worked = project.run(&["work"]);
        assert_eq!(worked.code, Some(0), "{worked}");
        let note = format!("{BRANCH} got other commits during parallel fixes");
        assert!(worked.to_string().contains(&note), "{worked}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(files(&project), @"
            a.txt: one, word of a
            b.txt: one, word of b
            c.txt: one, word of c
            ");
            insta::assert_snapshot!(project.subjects(BRANCH), @"
            Three files - initial implementation
            mine
            Address review feedback (cycle 1)
            Address review feedback (cycle 1)
            ");
        }
        assert_no_fix_worktrees(&project);
    }
}

#[test]
fn a_lock_on_the_branch_is_waited_for_and_then_named() {
    let lock = ".git/refs/heads/signoff/task-1-three-files.lock";
    let project = project(|script| {
        let locks = fixer("a", &["c"]).write(&format!("../../../{lock}"), "").say("Fixed a.\n");
        rejecting_once(script, &["a.txt:1", "c.txt:1"]).rule(locks).rule(fixer("c", &["a"]).say("Fixed c.\n"))
    });
    let worked = project.env.run_with(&["work"], &[("SIGNOFF_TEST_LOCK_TIMEOUT_MS", "200")]);
    assert_eq!(worked.code, Some(1), "{worked}");
    assert!(worked.stderr.contains(&format!("{lock} is held by another program")), "{worked}");
    fs::remove_file(project.env.work().join(lock)).unwrap();
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(fixers(&project).len(), 2);
    insta::assert_snapshot!(files(&project), @"
    a.txt: one, word of a
    b.txt: one
    c.txt: one, word of c
    ");
    assert_no_fix_worktrees(&project);
}

#[test]
fn a_worktree_deleted_in_the_meantime_is_created_again() {
    let project = project(|script| {
        let script = rejecting_once(script, &["a.txt:1", "c.txt:1"]);
        let own = fixer("a", &["c"]).shell("rm -rf ../task-1").say("Fixed a.\n");
        script.rule(own).rule(fixer("c", &["a"]).say("Fixed c.\n"))
    });
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    insta::assert_snapshot!(files(&project), @"
    a.txt: one, word of a
    b.txt: one
    c.txt: one, word of c
    ");
    assert_no_fix_worktrees(&project);
}

#[test]
fn copied_files_are_in_the_worktrees_and_are_not_committed() {
    let project = configured(&format!("{AT_ONCE}[worktree]\ncopy = [\".env\"]\n"), |script| {
        let reads = |own: &str, other: &str| fixer(own, &[other]).shell("grep -q secret .env").say("Fixed.\n");
        rejecting_once(script, &["a.txt:1", "b.txt:1"]).rule(reads("a", "b")).rule(reads("b", "a"))
    });
    project.env.write(".env", "secret\n");
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(project.git(&format!("ls-tree -r --name-only {BRANCH} -- .env")), "");
    assert_eq!(fixers(&project).len(), 2);
}

#[test]
fn hooks_planted_by_a_fixer_do_not_run() {
    let marker = "../../../../yard/sprung";
    let project = project(|script| {
        let traps = [GitTrap::HooksPath, GitTrap::Hooks, GitTrap::Fsmonitor, GitTrap::Filter, GitTrap::Diff];
        let planted = traps.into_iter().fold(fixer("a", &["b"]), |rule, trap| rule.plant(trap, marker));
        let script = rejecting_once(script, &["a.txt:1", "b.txt:1"]).rule(planted.say("Fixed a.\n"));
        script.rule(fixer("b", &["a"]).say("Fixed b.\n"))
    });
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert!(!project.env.root().join("yard/sprung").exists());
}

#[test]
fn a_fixer_that_leaves_its_history_has_failed() {
    let project = project(|script| {
        let strays = fixer("a", &["b"]).shell("git checkout -q --orphan other && git commit -qm Other");
        let script = rejecting_once(script, &["a.txt:1", "b.txt:1"]).rule(strays.say("Fixed a.\n"));
        script.rule(fixer("b", &["a"]).say("Fixed b.\n"))
    });
    let worked = project.run(&["work"]);
    assert!(worked.stdout.contains("Improvement failed"), "{worked}");
    assert_eq!(worked.code, Some(1), "{worked}");
}

#[test]
fn every_attempt_is_shown() {
    let project = project(|script| three_fixers(three_files(script)));
    project.run(&["work"]);
    let shown = project.run(&["show", "1", "--json"]).json();
    let attempts = shown["attempts"].as_array().expect("attempts").iter();
    let lines = attempts
        .map(|attempt| format!("{} {} {}", attempt["id"], attempt["role"], attempt["outcome"]).replace('"', ""));
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"), @"
    a1 implement complete
    a2 review reviewed
    a3 fix complete
    a4 fix complete
    a5 fix complete
    a6 combine combined
    a7 review reviewed
    ");
}

/// The result without kills, and how often each failpoint is passed.
fn undisturbed(agent: fn(AgentScript) -> AgentScript) -> (BTreeMap<String, u64>, String) {
    let project = project(agent);
    let log = project.env.root().join("passed");
    let output = project.env.run_with(&["work"], &[("SIGNOFF_FAILPOINTS", log.to_str().unwrap())]);
    assert_eq!(output.code, Some(0), "{output}");
    let mut passed = BTreeMap::new();
    for name in fs::read_to_string(&log).unwrap().lines() {
        *passed.entry(name.to_owned()).or_default() += 1;
    }
    (passed, ending(&project))
}

/// Everything that must be equal however often the program was killed.
fn ending(project: &TestProject) -> String {
    let log = project.git(&format!("log --reverse --format=%s --name-only main..{BRANCH}"));
    format!("{}{}{log}", project.run(&["status"]).stdout, files(project))
}

fn killed_at(agent: fn(AgentScript) -> AgentScript, places: &[&str], numbers: fn(u64) -> BTreeSet<u64>) {
    let (passed, undisturbed) = undisturbed(agent);
    for place in places {
        let count = passed.get(*place).copied().unwrap_or_else(|| panic!("{place} is not passed: {passed:?}"));
        for number in numbers(count) {
            let project = project(agent);
            let trap = format!("{place}:{number}");
            let output = project.env.run_with(&["work"], &[("SIGNOFF_FAILPOINT", trap.as_str())]);
            assert_eq!(output.signal, Some(9), "killed at {trap}: {output}");
            let output = project.run(&["work"]);
            assert_eq!(output.code, Some(0), "after a kill at {trap}: {output}");
            assert_eq!(ending(&project), undisturbed, "after a kill at {trap}");
            assert_eq!(finished_twice(&project), Vec::<String>::new(), "after a kill at {trap}");
            assert_no_fix_worktrees(&project);
            wait_until("nothing of ours runs", || processes::with_root(project.env.root()).is_empty());
        }
    }
}

/// Fixers that an agent completed more than once, by the file they fix.
fn finished_twice(project: &TestProject) -> Vec<String> {
    let mut finished = BTreeMap::<String, u32>::new();
    for call in fixers(project) {
        let result = format!(".signoff/runs/1/1/a{}/result.json", call.start.attempt);
        let by_itself = fs::read_to_string(project.env.work().join(result)).is_ok_and(|text| text.contains("\"code\""));
        if call.end.is_some() && by_itself && call.prompt.contains("Others fix other findings") {
            let own = ["a", "b", "c"].into_iter().find(|own| call.prompt.contains(&format!("the word of {own}")));
            *finished.entry(own.unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    finished.into_iter().filter(|(_, count)| *count > 1).map(|(own, _)| own).collect()
}

fn all_passes(count: u64) -> BTreeSet<u64> {
    (1..=count).collect()
}

fn three_at_once(script: AgentScript) -> AgentScript {
    three_fixers(three_files(script))
}

#[test]
fn killed_before_fixers_start() {
    killed_at(three_at_once, &["prepare", "spawn"], all_passes);
}

#[test]
fn killed_when_fixers_end() {
    killed_at(three_at_once, &["exit", "commit", "committed"], all_passes);
}

#[test]
fn killed_while_worktrees_are_created() {
    killed_at(three_at_once, &["registered", "owned"], all_passes);
}

#[test]
fn killed_while_fixes_are_merged() {
    killed_at(three_at_once, &["combine", "fixes_combined", "moved", "combined"], all_passes);
}

#[test]
fn killed_while_events_of_fixes_are_recorded() {
    killed_at(three_at_once, &["append", "appended"], |count| (2..=count).step_by(4).collect());
}

/// The second fixer changes the file of the first.
fn overlapping(script: AgentScript) -> AgentScript {
    let script = three_files(script).rule(fixer("a", &["b", "c"]).say("Fixed a.\n"));
    let both = fixer("b", &["a", "c"]).shell(&adds("a.txt", "and of b"));
    script.rule(both.say("Fixed b.\n")).rule(fixer("c", &["a", "b"]).say("Fixed c.\n"))
}

#[test]
fn killed_while_overlapping_fixes_are_merged() {
    killed_at(overlapping, &["combine", "fixes_combined", "moved", "combined"], all_passes);
}

#[test]
fn different_spellings_of_a_path_are_one_file() {
    let project = project(|script| {
        let found = "echo \"- $PWD/a.txt:1 lacks the word of a\"; echo '- ./a.txt:3 names nobody at all'\n\
                     echo \"- b/../b.txt:1 lacks the word of b\"; echo; echo '**Verdict: CHANGES_REQUESTED**'";
        let script = script.rule(ScriptRule::role("review").cycle(1).shell(found));
        let script = rejecting_once(script, &[]).rule(fixer("a", &["b"]).say("Fixed.\n"));
        script.rule(fixer("b", &["a"]).say("Fixed.\n"))
    });
    let worked = project.run(&["work"]);
    assert!(worked.stdout.contains("Improving (2 fixes at once)..."), "{worked}");
    let only = |call: &AgentCall| {
        let files = call.prompt.split("Change only these files").nth(1).unwrap_or_default();
        files.lines().filter(|line| line.contains(".txt")).collect::<Vec<_>>().join(" ")
    };
    let mut changed: Vec<String> = fixers(&project).iter().map(only).collect();
    changed.sort();
    assert_eq!(changed, ["a.txt", "b.txt"]);
    insta::assert_snapshot!(files(&project), @"
    a.txt: one, word of a
    b.txt: one, word of b
    c.txt: one
    ");
    assert!(!project.subjects(BRANCH).contains("by hand"));
    assert_no_fix_worktrees(&project);
}

#[test]
fn requests_outside_of_findings_go_to_the_first_fixer() {
    let project = project(|script| {
        let more = format!("The manual must name all of them.\n\n{}", review_with_findings(&["a.txt:1", "b.txt:1"]));
        let script = script.rule(ScriptRule::role("review").cycle(1).say(&more));
        let script = rejecting_once(script, &[]).rule(fixer("a", &["b"]).say("Fixed.\n"));
        script.rule(fixer("b", &["a"]).say("Fixed.\n"))
    });
    let worked = project.run(&["work"]);
    assert!(worked.stdout.contains("Improving (2 fixes at once)..."), "{worked}");
    for call in fixers(&project) {
        let is_first = call.prompt.contains("the word of a");
        assert_eq!(call.prompt.contains("The manual must name all of them."), is_first, "{}", call.prompt);
        assert_ne!(call.prompt.contains("the word of b"), is_first, "{}", call.prompt);
    }
}

#[test]
fn a_fixer_that_left_an_unusable_worktree_restarts_in_a_new_one() {
    let name = "git -c user.name=A -c user.email=a@example.org";
    let rebase = format!(
        "{name} commit -qam Mine && GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' {name} rebase -q -i HEAD~1 2>/dev/null"
    );
    for leaves in ["git checkout -q --orphan other", &rebase] {
        let retried = format!("{AT_ONCE}on_fixer_failure = [\"retry\", \"fail\"]\n");
        let once = format!("test -e {YARD}/once || {{ touch {YARD}/once; {leaves}; }}");
        let project = configured(&retried, |script| {
            let strays = fixer("a", &["b"]).shell(&once);
            let script = rejecting_once(script, &["a.txt:1", "b.txt:1"]).rule(strays.say("Fixed a.\n"));
            script.rule(fixer("b", &["a"]).say("Fixed b.\n"))
        });
        let worked = project.run(&["work"]);
        assert_eq!(worked.code, Some(0), "{leaves}: {worked}");
        assert!(worked.stdout.contains("Improving again..."), "{leaves}: {worked}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(files(&project), @"
            a.txt: one, word of a
            b.txt: one, word of b
            c.txt: one
            ");
        }
        assert_no_fix_worktrees(&project);
    }
}

/// A task that failed while its fixers ran: their commits are kept.
fn failed() -> TestProject {
    let project = project(|script| {
        let kept = "../../../.git/refs/signoff/apart/1/1/1.1.1.0";
        let fails = fixer("b", &["a"]).wait_for(kept).shell("rm -rf ../task-1-fix-1.1.1.0").exit(1);
        rejecting_once(script, &["a.txt:1", "b.txt:1"]).rule(fixer("a", &["b"]).say("Fixed a.\n")).rule(fails)
    });
    assert_eq!(project.run(&["work"]).code, Some(1));
    assert_ne!(project.git("for-each-ref refs/signoff/apart"), "");
    project
}

/// The refs of abandoned fixes, with the files they change.
fn abandoned_fixes(project: &TestProject) -> String {
    let names = project.git("for-each-ref --format='%(refname)' refs/signoff/left");
    let changes = |name: &str| format!("{name}: {}", project.git(&format!("diff --name-only {BRANCH}...{name}")));
    names.lines().map(changes).collect()
}

#[test]
fn fixes_of_a_cancelled_or_approved_task_are_kept_as_refs_and_reported() {
    for decision in [&["cancel", "1"] as &[&str], &["edit", "1", "--verdict", "APPROVED"]] {
        let project = failed();
        let output = project.run(decision);
        assert_eq!(output.code, Some(0), "{output}");
        assert!(output.stderr.contains("kept as refs/signoff/left/1/1/fix-1.1.1.0"), "{output}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(abandoned_fixes(&project), @"
            refs/signoff/left/1/1/fix-1.1.1.0: a.txt
            refs/signoff/left/1/1/fix-1.1.1.1: b.txt
            ");
        }
        assert_no_fix_worktrees(&project);
    }
}

#[test]
fn finished_fixes_are_kept_as_refs_when_a_person_restarts() {
    let asking = format!("{AT_ONCE}on_fixer_failure = \"ask\"\n");
    let project = configured(&asking, |script| {
        let fails = fixer("b", &["a", "c"]).exit(1);
        let script = three_files(script).rule(fixer("a", &["b", "c"]).say("Fixed a.\n"));
        script.rule(fixer("c", &["a", "b"]).say("Fixed c.\n")).rule(fails)
    });
    project.run(&["work"]);
    insta::assert_snapshot!(project.run(&["answer", "1", "restart"]), @"
    exit 0
    --- stdout
    q1 answered: restart
    --- stderr
    fixes that were made side by side are not on the branch; kept as refs/signoff/left/1/1/fix-1.1.1.0, refs/signoff/left/1/1/fix-1.1.1.1, refs/signoff/left/1/1/fix-1.1.1.2: `git log signoff/task-1-three-files..refs/signoff/left/1/1/fix-1.1.1.0` shows what is in one, `git cherry-pick signoff/task-1-three-files..refs/signoff/left/1/1/fix-1.1.1.0` brings it back
    `signoff work` continues
    ");
    insta::assert_snapshot!(abandoned_fixes(&project), @"
    refs/signoff/left/1/1/fix-1.1.1.0: a.txt
    refs/signoff/left/1/1/fix-1.1.1.1: b.txt
    refs/signoff/left/1/1/fix-1.1.1.2: c.txt
    ");
    let shown = project.run(&["show", "1"]);
    assert!(shown.stdout.contains("kept as refs/signoff/left/1/1/fix-1.1.1.0"), "{shown}");
    assert_no_fix_worktrees(&project);
    let brought = format!("-C .signoff/worktrees/task-1 cherry-pick {BRANCH}..refs/signoff/left/1/1/fix-1.1.1.0");
    project.git(&brought);
    assert_eq!(project.git(&format!("show {BRANCH}:a.txt")), "one\nword of a\n");
}

#[test]
fn finished_fixes_are_kept_as_refs_when_a_task_is_cancelled_while_others_run() {
    let project = project(|script| {
        let rule = fixer("b", &["a"]);
        let hangs = ScriptRule { steps: rule.steps[..2].to_vec(), ..rule }.write(&format!("{YARD}/ready"), "").hang();
        rejecting_once(script, &["a.txt:1", "b.txt:1"]).rule(fixer("a", &["b"]).say("Fixed a.\n")).rule(hangs)
    });
    let work = project.env.start_group(&["work"]);
    wait_until("one has ended", || ended(&project) == 1 && project.env.root().join("yard/ready").exists());
    assert_eq!(project.run(&["cancel", "1"]).code, Some(0));
    let output = project.env.finish(work);
    assert!(output.to_string().contains("kept as refs/signoff/left/1/1/fix-1.1.1.0"), "{output}");
    assert_eq!(abandoned_fixes(&project), "refs/signoff/left/1/1/fix-1.1.1.0: a.txt\n");
    assert_no_fix_worktrees(&project);
}
