//! Findings that have nothing to do with each other are fixed side by side, and put together.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use signoff_testkit::Project;
use signoff_testkit::calls::Call;
use signoff_testkit::processes::{self, until};
use signoff_testkit::script::{Rule, Script, Trap};

use crate::PROGRAM;
use crate::actors::APPROVED;

const BRANCH: &str = "signoff/task-1-three-files";

/// Everywhere all that are independent at once.
const AT_ONCE: &str = "[gate]\nparallel_fixes = true\n";

const TERM: i32 = 15;

/// What all agents of a test can see.
const YARD: &str = "../../../../yard";

/// Wants something of each of these files.
fn wants(files: &[&str]) -> String {
    let lines = files.iter().map(|file| format!("- {file} lacks the word of {}\n", &file[..1]));
    format!("{}\n**Verdict: CHANGES_REQUESTED**\n", lines.collect::<String>())
}

/// Three files, and a reviewer who wants something of each before it approves.
fn three_files(script: Script) -> Script {
    wanting(script, &["a.txt:1", "b.txt:1", "c.txt:1"])
}

fn wanting(script: Script, files: &[&str]) -> Script {
    let implement = ["a.txt", "b.txt", "c.txt"]
        .into_iter()
        .fold(Rule::role("implement"), |rule, file| rule.write(file, "one\n"));
    script
        .rule(implement.say("Done.\n"))
        .rule(Rule::role("review").cycle(1).say(&wants(files)))
        .rule(Rule::role("review").say(APPROVED))
}

/// Adds a line to a file. Done twice it is as if it had been done once.
fn adds(file: &str, line: &str) -> String {
    format!("grep -qx '{line}' {file} || echo '{line}' >> {file}")
}

/// The fixer of a file, which is not done before all others have begun.
fn fixer(own: &str, others: &[&str]) -> Rule {
    let begun = |name: &str| format!("{YARD}/{name}.begun");
    let rule = Rule::role("fix").asked_for(&format!("the word of {own}")).write(&begun(own), "");
    let rule = others.iter().fold(rule, |rule, other| rule.wait_for(&begun(other)));
    rule.shell(&adds(&format!("{own}.txt"), &format!("word of {own}")))
}

fn three_fixers(script: Script) -> Script {
    let script = script.rule(fixer("a", &["b", "c"]).say("Fixed a.\n"));
    let script = script.rule(fixer("b", &["a", "c"]).say("Fixed b.\n"));
    script.rule(fixer("c", &["a", "b"]).say("Fixed c.\n"))
}

/// A project with one task.
fn project(agent: impl Fn(Script) -> Script) -> Project {
    configured(AT_ONCE, agent)
}

fn configured(settings: &str, agent: impl Fn(Script) -> Script) -> Project {
    let project = Project::with_agent(PROGRAM, agent);
    project.configure(settings);
    fs::create_dir_all(project.env.root().join("yard")).unwrap();
    project.run(&["add", "Three files", "--auto-review"]);
    project
}

/// The files of the branch, as they are there.
fn files(project: &Project) -> String {
    let file = |name: &str| {
        let text = project.git(&format!("show {BRANCH}:{name}"));
        format!("{name}: {}\n", text.trim_end().replace('\n', ", "))
    };
    ["a.txt", "b.txt", "c.txt"].map(file).concat()
}

/// Nothing is left of what was made for fixers.
fn tidy(project: &Project) {
    assert_eq!(project.list(".signoff/worktrees"), ["task-1"]);
    assert_eq!(project.git("for-each-ref refs/signoff/apart"), "");
    assert_eq!(project.git("worktree list --porcelain").matches("worktree ").count(), 2);
    let status = project.git("-C .signoff/worktrees/task-1 status --porcelain");
    assert_eq!(status, "");
}

fn fixers(project: &Project) -> Vec<Call> {
    project.calls().of_role("fix").cloned().collect()
}

#[test]
fn three_findings_in_three_files_are_fixed_by_three_at_once() {
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
      [2/3] Putting the fixes together...
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
    assert_eq!(project.calls().most_at_once(), 3);
    assert_eq!(fixers(&project).len(), 3);
    assert_eq!(project.checkout(), before);
    tidy(&project);
}

#[test]
fn each_fixer_is_told_of_its_own_findings_and_of_the_others() {
    let project = project(|script| three_fixers(three_files(script)));
    project.run(&["work"]);
    for call in fixers(&project) {
        let own = ["a", "b", "c"].map(|name| call.prompt.contains(&format!("the word of {name}")));
        assert_eq!(own.into_iter().filter(|own| *own).count(), 1, "{}", call.prompt);
        assert!(call.prompt.contains("Others fix other findings at the same time"), "{}", call.prompt);
        assert!(call.prompt.contains("write a plan for every finding"), "{}", call.prompt);
    }
}

#[test]
fn two_findings_in_one_file_go_to_one_fixer() {
    let project = project(|script| {
        let twice = "- a.txt:1 lacks the word of a\n- a.txt:3 names nobody at all\n- b.txt:1 lacks the word of b\n\n\
                     **Verdict: CHANGES_REQUESTED**\n";
        let script = script.rule(Rule::role("review").cycle(1).say(twice));
        let script = wanting(script, &[]);
        let script = script.rule(fixer("a", &["b"]).say("Fixed.\n"));
        script.rule(fixer("b", &["a"]).say("Fixed.\n"))
    });
    let worked = project.run(&["work"]);
    assert!(worked.stdout.contains("Improving (2 fixes at once)..."), "{worked}");
    let calls = fixers(&project);
    assert_eq!(calls.len(), 2);
    let told: Vec<bool> = calls.iter().map(|call| call.prompt.contains("names nobody at all")).collect();
    let own: Vec<bool> = calls.iter().map(|call| call.prompt.contains("the word of a")).collect();
    assert_eq!(told, own);
    assert_eq!(project.calls().most_at_once(), 2);
    tidy(&project);
}

#[test]
fn who_touched_a_file_of_another_does_it_again_in_turn() {
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
      [2/3] Putting the fixes together...
      [2/3] The fixes overlap: 2 of 3 kept, the others are made again
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
    let words = |call: &Call| call.prompt.contains("Others fix other findings").to_string();
    assert_eq!(fixers(&project).iter().map(words).collect::<Vec<_>>(), ["true", "true", "true", "false"]);
    tidy(&project);
}

#[test]
fn a_renamed_file_was_touched_under_both_names() {
    let project = project(|script| {
        let moves = fixer("a", &["b"]).shell("git mv b.txt d.txt").say("Fixed a.\n");
        let again = "test -f b.txt && echo 'word of b' >> b.txt || echo 'word of b' >> d.txt";
        let begun = fixer("b", &["a"]);
        let begun = Rule { steps: begun.steps[..2].to_vec(), ..begun };
        wanting(script, &["a.txt:1", "b.txt:1"]).rule(moves).rule(begun.shell(again).say("Fixed b.\n"))
    });
    let worked = project.run(&["work"]);
    assert!(worked.stdout.contains("The fixes overlap: 1 of 2 kept, the others are made again"), "{worked}");
    insta::assert_snapshot!(project.git(&format!("show {BRANCH}:d.txt")), @"
    one
    word of b
    ");
    tidy(&project);
}

#[test]
fn what_does_not_fit_together_is_done_again_in_turn() {
    let project = project(|script| {
        let file = fixer("a", &["b"]).write("d", "a file\n").say("Fixed a.\n");
        let directory = fixer("b", &["a"]).shell("rm -rf d; mkdir d; echo word > d/b.txt");
        wanting(script, &["a.txt:1", "b.txt:1"]).rule(file).rule(directory.say("Fixed b.\n"))
    });
    let worked = project.run(&["work"]);
    assert!(worked.stdout.contains("The fixes overlap: 1 of 2 kept, the others are made again"), "{worked}");
    insta::assert_snapshot!(project.git(&format!("ls-tree -r --name-only {BRANCH}")), @"
    README.md
    a.txt
    b.txt
    c.txt
    d/b.txt
    signoff.toml
    ");
    assert_eq!(fixers(&project).len(), 3);
    tidy(&project);
}

#[test]
fn who_changes_nothing_holds_nobody_up() {
    let project = project(|script| {
        let idle = fixer("b", &["a", "c"]);
        let idle = Rule { steps: idle.steps[..3].to_vec(), ..idle }.say("It is there already.\n");
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
    tidy(&project);
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
        signoff answer 1 CHOICE    (retry, stop, restart)
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
      [2/3] Putting the fixes together...
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
    tidy(&project);
}

#[test]
fn what_others_got_done_is_not_done_again_after_a_failure() {
    let project = project(|script| {
        let fails = fixer("c", &["a", "b"]).say("I cannot go on.\n").exit(1);
        let script = three_files(script).rule(fixer("a", &["b", "c"]).say("Fixed a.\n"));
        script.rule(fixer("b", &["a", "c"]).say("Fixed b.\n")).rule(fails)
    });
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(1), "{worked}");
    assert_eq!(project.list(".signoff/worktrees"), ["task-1"]);
    project.git("gc -q --prune=now");
    // It begins where it got to.
    project.set_agent(|script| {
        let rest = Rule::role("fix").shell("grep -qx 'word of c' c.txt").say("It was done.\n");
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
    tidy(&project);
}

#[test]
fn where_only_one_agent_may_run_they_come_one_after_the_other() {
    let one = "[limits]\nagents_per_provider = 1\n";
    let project = configured(&format!("{AT_ONCE}{one}"), |script| {
        let fixes = |own: &str| {
            let rule = Rule::role("fix").asked_for(&format!("the word of {own}"));
            rule.shell(&adds(&format!("{own}.txt"), &format!("word of {own}"))).say("Fixed.\n")
        };
        three_files(script).rule(fixes("a")).rule(fixes("b")).rule(fixes("c"))
    });
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!((fixers(&project).len(), project.calls().most_at_once()), (3, 1));
    insta::assert_snapshot!(files(&project), @"
    a.txt: one, word of a
    b.txt: one, word of b
    c.txt: one, word of c
    ");
    tidy(&project);
}

#[test]
fn a_task_that_is_called_off_leaves_nothing_beside_its_worktree() {
    let project = configured(&format!("{AT_ONCE}on_fixer_failure = \"ask\"\n"), |script| {
        let fails = fixer("c", &["a", "b"]).exit(1);
        let script = three_files(script).rule(fixer("a", &["b", "c"])).rule(fixer("b", &["a", "c"]));
        script.rule(fails)
    });
    project.run(&["work"]);
    assert_eq!(project.list(".signoff/worktrees").len(), 4);
    assert_eq!(project.run(&["cancel", "1"]).code, Some(0));
    tidy(&project);
}

#[test]
fn a_task_that_is_called_off_while_fixers_work_leaves_nothing_either() {
    let project = project(|script| {
        let hangs = |own: &str, others: &[&str]| {
            let rule = fixer(own, others);
            Rule { steps: rule.steps[..3].to_vec(), ..rule }.write(&format!("{YARD}/{own}.ready"), "").hang()
        };
        let script = three_files(script).rule(hangs("a", &["b", "c"]));
        script.rule(hangs("b", &["a", "c"])).rule(hangs("c", &["a", "b"]))
    });
    let mut work = project.start(&["work"]);
    let ready = |name: &str| project.env.root().join(format!("yard/{name}.ready")).exists();
    until("all are at work", || ["a", "b", "c"].into_iter().all(ready));
    assert_eq!(project.run(&["cancel", "1"]).code, Some(0));
    work.wait().unwrap();
    until("nothing of ours runs", || processes::of(project.env.root()).is_empty());
    tidy(&project);
}

/// How many fixers have ended, as far as it is on record.
fn ended(project: &Project) -> usize {
    let shown = project.run(&["show", "1", "--json"]).json();
    let attempts = shown["attempts"].as_array().cloned().unwrap_or_default();
    attempts.iter().filter(|one| one["role"] == "fix" && one["outcome"] == "complete").count()
}

#[test]
fn after_an_interrupt_only_those_go_on_who_had_not_ended() {
    let project = project(|script| {
        let waits = fixer("c", &["a", "b"]);
        let waits =
            Rule { steps: waits.steps[..3].to_vec(), ..waits }.write(&format!("{YARD}/ready"), "").hang();
        let script = three_files(script).rule(fixer("a", &["b", "c"]).say("Fixed a.\n"));
        script.rule(fixer("b", &["a", "c"]).say("Fixed b.\n")).rule(waits)
    });
    let work = project.env.start_group(&["work"]);
    until("two have ended", || ended(&project) == 2 && project.env.root().join("yard/ready").exists());
    processes::signal_group(work.id(), TERM);
    let output = project.env.finish(work);
    assert!(output.stderr.contains("Interrupted: `signoff work` goes on where it was"), "{output}");
    project.set_agent(three_at_once);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(fixers(&project).len(), 4);
    insta::assert_snapshot!(files(&project), @"
    a.txt: one, word of a
    b.txt: one, word of b
    c.txt: one, word of c
    ");
    tidy(&project);
}

#[test]
fn what_somebody_did_on_the_branch_meanwhile_stays() {
    let project = project(|script| {
        let foreign = "cd ../task-1 && echo by hand >> b.txt && git add b.txt && git commit -qm 'By hand' && \
                       echo more > more.txt";
        let script = wanting(script, &["a.txt:1", "c.txt:1"]);
        script
            .rule(fixer("a", &["c"]).shell(foreign).say("Fixed a.\n"))
            .rule(fixer("c", &["a"]).say("Fixed c.\n"))
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
    tidy(&project);
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
        let told = format!("somebody committed to {BRANCH} while fixes were made beside it");
        assert!(worked.to_string().contains(&told), "{worked}");
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
        tidy(&project);
    }
}

#[test]
fn a_lock_on_the_branch_is_waited_for_and_then_named() {
    let lock = ".git/refs/heads/signoff/task-1-three-files.lock";
    let project = project(|script| {
        let locks = fixer("a", &["c"]).write(&format!("../../../{lock}"), "").say("Fixed a.\n");
        wanting(script, &["a.txt:1", "c.txt:1"]).rule(locks).rule(fixer("c", &["a"]).say("Fixed c.\n"))
    });
    let worked = project.env.run_with(&["work"], &[("SIGNOFF_TEST_PATIENCE_MS", "200")]);
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
    tidy(&project);
}

#[test]
fn a_worktree_that_is_deleted_meanwhile_is_made_again() {
    let project = project(|script| {
        let script = wanting(script, &["a.txt:1", "c.txt:1"]);
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
    tidy(&project);
}

#[test]
fn what_is_copied_into_worktrees_is_there_and_is_not_committed() {
    let project = configured(&format!("{AT_ONCE}[worktree]\ncopy = [\".env\"]\n"), |script| {
        let reads =
            |own: &str, other: &str| fixer(own, &[other]).shell("grep -q secret .env").say("Fixed.\n");
        wanting(script, &["a.txt:1", "b.txt:1"]).rule(reads("a", "b")).rule(reads("b", "a"))
    });
    project.env.write(".env", "secret\n");
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(project.git(&format!("ls-tree -r --name-only {BRANCH} -- .env")), "");
    assert_eq!(fixers(&project).len(), 2);
}

#[test]
fn nothing_that_a_fixer_planted_is_run() {
    let marker = "../../../../yard/sprung";
    let project = project(|script| {
        let traps = [Trap::HooksPath, Trap::Hooks, Trap::Fsmonitor, Trap::Filter, Trap::Diff];
        let planted = traps.into_iter().fold(fixer("a", &["b"]), |rule, trap| rule.plant(trap, marker));
        let script = wanting(script, &["a.txt:1", "b.txt:1"]).rule(planted.say("Fixed a.\n"));
        script.rule(fixer("b", &["a"]).say("Fixed b.\n"))
    });
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert!(!project.env.root().join("yard/sprung").exists());
}

#[test]
fn a_fixer_that_left_its_line_of_work_has_failed() {
    let project = project(|script| {
        let strays = fixer("a", &["b"]).shell("git checkout -q --orphan other && git commit -qm Other");
        let script = wanting(script, &["a.txt:1", "b.txt:1"]).rule(strays.say("Fixed a.\n"));
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
    let told =
        attempts.map(|one| format!("{} {} {}", one["id"], one["role"], one["outcome"]).replace('"', ""));
    insta::assert_snapshot!(told.collect::<Vec<_>>().join("\n"), @"
    a1 implement complete
    a2 review reviewed
    a3 fix complete
    a4 fix complete
    a5 fix complete
    a6 combine combined
    a7 review reviewed
    ");
}

/// How the work is when nobody is killed, and how often each place is passed.
fn undisturbed(agent: fn(Script) -> Script) -> (BTreeMap<String, u64>, String) {
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

/// What must be the same however often the program was killed.
fn ending(project: &Project) -> String {
    let log = project.git(&format!("log --reverse --format=%s --name-only main..{BRANCH}"));
    format!("{}{}{log}", project.run(&["status"]).stdout, files(project))
}

fn killed_at(agent: fn(Script) -> Script, places: &[&str], numbers: fn(u64) -> BTreeSet<u64>) {
    let (passed, undisturbed) = undisturbed(agent);
    for place in places {
        let count =
            passed.get(*place).copied().unwrap_or_else(|| panic!("{place} is not passed: {passed:?}"));
        for number in numbers(count) {
            let project = project(agent);
            let trap = format!("{place}:{number}");
            let output = project.env.run_with(&["work"], &[("SIGNOFF_FAILPOINT", trap.as_str())]);
            assert_eq!(output.signal, Some(9), "killed at {trap}: {output}");
            let output = project.run(&["work"]);
            assert_eq!(output.code, Some(0), "after a kill at {trap}: {output}");
            assert_eq!(ending(&project), undisturbed, "after a kill at {trap}");
            assert_eq!(finished_twice(&project), Vec::<String>::new(), "after a kill at {trap}");
            tidy(&project);
            until("nothing of ours runs", || processes::of(project.env.root()).is_empty());
        }
    }
}

/// Fixers that an agent brought to their own end more than once, by the file they fix.
fn finished_twice(project: &Project) -> Vec<String> {
    let mut finished = BTreeMap::<String, u32>::new();
    for call in fixers(project) {
        let result = format!(".signoff/runs/1/1/a{}/result.json", call.start.attempt);
        let by_itself =
            fs::read_to_string(project.env.work().join(result)).is_ok_and(|text| text.contains("\"code\""));
        if call.end.is_some() && by_itself && call.prompt.contains("Others fix other findings") {
            let own =
                ["a", "b", "c"].into_iter().find(|own| call.prompt.contains(&format!("the word of {own}")));
            *finished.entry(own.unwrap_or_default().to_owned()).or_default() += 1;
        }
    }
    finished.into_iter().filter(|(_, count)| *count > 1).map(|(own, _)| own).collect()
}

fn every(count: u64) -> BTreeSet<u64> {
    (1..=count).collect()
}

fn three_at_once(script: Script) -> Script {
    three_fixers(three_files(script))
}

#[test]
fn killed_before_fixers_begin() {
    killed_at(three_at_once, &["prepare", "spawn"], every);
}

#[test]
fn killed_when_fixers_end() {
    killed_at(three_at_once, &["exit", "commit", "committed"], every);
}

#[test]
fn killed_while_worktrees_are_made() {
    killed_at(three_at_once, &["registered", "owned"], every);
}

#[test]
fn killed_while_fixes_are_put_together() {
    killed_at(three_at_once, &["combine", "put_together", "moved", "combined"], every);
}

#[test]
fn killed_while_facts_about_fixes_are_recorded() {
    killed_at(three_at_once, &["append", "appended"], |count| (2..=count).step_by(4).collect());
}

/// The second touches the file of the first.
fn overlapping(script: Script) -> Script {
    let script = three_files(script).rule(fixer("a", &["b", "c"]).say("Fixed a.\n"));
    let both = fixer("b", &["a", "c"]).shell(&adds("a.txt", "and of b"));
    script.rule(both.say("Fixed b.\n")).rule(fixer("c", &["a", "b"]).say("Fixed c.\n"))
}

#[test]
fn killed_while_fixes_that_overlap_are_put_together() {
    killed_at(overlapping, &["combine", "put_together", "moved", "combined"], every);
}

#[test]
fn a_file_is_the_same_however_the_reviewer_names_it() {
    let project = project(|script| {
        let found = "echo \"- $PWD/a.txt:1 lacks the word of a\"; echo '- ./a.txt:3 names nobody at all'\n\
                     echo \"- b/../b.txt:1 lacks the word of b\"; echo; echo '**Verdict: CHANGES_REQUESTED**'";
        let script = script.rule(Rule::role("review").cycle(1).shell(found));
        let script = wanting(script, &[]).rule(fixer("a", &["b"]).say("Fixed.\n"));
        script.rule(fixer("b", &["a"]).say("Fixed.\n"))
    });
    let worked = project.run(&["work"]);
    assert!(worked.stdout.contains("Improving (2 fixes at once)..."), "{worked}");
    let only = |call: &Call| {
        let files = call.prompt.split("Change only these files").nth(1).unwrap_or_default();
        files.lines().filter(|line| line.contains(".txt")).collect::<Vec<_>>().join(" ")
    };
    let mut told: Vec<String> = fixers(&project).iter().map(only).collect();
    told.sort();
    assert_eq!(told, ["a.txt", "b.txt"]);
    insta::assert_snapshot!(files(&project), @"
    a.txt: one, word of a
    b.txt: one, word of b
    c.txt: one
    ");
    assert!(!project.subjects(BRANCH).contains("by hand"));
    tidy(&project);
}

#[test]
fn what_a_review_asks_for_beside_its_findings_is_told_to_the_first() {
    let project = project(|script| {
        let more = format!("The manual must name all of them.\n\n{}", wants(&["a.txt:1", "b.txt:1"]));
        let script = script.rule(Rule::role("review").cycle(1).say(&more));
        let script = wanting(script, &[]).rule(fixer("a", &["b"]).say("Fixed.\n"));
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
fn who_left_a_worktree_nobody_can_use_begins_in_a_new_one() {
    let name = "git -c user.name=A -c user.email=a@example.org";
    let rebase = format!(
        "{name} commit -qam Mine && GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' {name} rebase -q -i HEAD~1 2>/dev/null"
    );
    for leaves in ["git checkout -q --orphan other", &rebase] {
        let retried = format!("{AT_ONCE}on_fixer_failure = [\"retry\", \"fail\"]\n");
        let once = format!("test -e {YARD}/once || {{ touch {YARD}/once; {leaves}; }}");
        let project = configured(&retried, |script| {
            let strays = fixer("a", &["b"]).shell(&once);
            let script = wanting(script, &["a.txt:1", "b.txt:1"]).rule(strays.say("Fixed a.\n"));
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
        tidy(&project);
    }
}

/// A task that failed while its fixers worked: their commits are kept.
fn failed() -> Project {
    let project = project(|script| {
        let kept = "../../../.git/refs/signoff/apart/1/1/1.1.1.0";
        let fails = fixer("b", &["a"]).wait_for(kept).shell("rm -rf ../task-1-fix-1.1.1.0").exit(1);
        wanting(script, &["a.txt:1", "b.txt:1"]).rule(fixer("a", &["b"]).say("Fixed a.\n")).rule(fails)
    });
    assert_eq!(project.run(&["work"]).code, Some(1));
    assert_ne!(project.git("for-each-ref refs/signoff/apart"), "");
    project
}

/// What is kept of fixes that nobody goes on with: under which names, and what is in them.
fn left(project: &Project) -> String {
    let names = project.git("for-each-ref --format='%(refname)' refs/signoff/left");
    let one = |name: &str| format!("{name}: {}", project.git(&format!("diff --name-only {BRANCH}...{name}")));
    names.lines().map(one).collect()
}

#[test]
fn fixes_of_a_task_that_is_called_off_or_approved_are_kept_elsewhere_and_that_is_told() {
    for decision in [&["cancel", "1"] as &[&str], &["edit", "1", "--verdict", "APPROVED"]] {
        let project = failed();
        let output = project.run(decision);
        assert_eq!(output.code, Some(0), "{output}");
        assert!(output.stderr.contains("kept as refs/signoff/left/1/1/fix-1.1.1.0"), "{output}");
        insta::allow_duplicates! {
            insta::assert_snapshot!(left(&project), @"
            refs/signoff/left/1/1/fix-1.1.1.0: a.txt
            refs/signoff/left/1/1/fix-1.1.1.1: b.txt
            ");
        }
        tidy(&project);
    }
}

#[test]
fn fixes_that_are_done_are_kept_elsewhere_when_a_person_begins_again() {
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
    `signoff work` goes on
    ");
    insta::assert_snapshot!(left(&project), @"
    refs/signoff/left/1/1/fix-1.1.1.0: a.txt
    refs/signoff/left/1/1/fix-1.1.1.1: b.txt
    refs/signoff/left/1/1/fix-1.1.1.2: c.txt
    ");
    let shown = project.run(&["show", "1"]);
    assert!(shown.stdout.contains("kept as refs/signoff/left/1/1/fix-1.1.1.0"), "{shown}");
    tidy(&project);
    let brought =
        format!("-C .signoff/worktrees/task-1 cherry-pick {BRANCH}..refs/signoff/left/1/1/fix-1.1.1.0");
    project.git(&brought);
    assert_eq!(project.git(&format!("show {BRANCH}:a.txt")), "one\nword of a\n");
}

#[test]
fn fixes_that_are_done_are_kept_elsewhere_when_a_task_is_called_off_while_others_are_at_work() {
    let project = project(|script| {
        let rule = fixer("b", &["a"]);
        let hangs =
            Rule { steps: rule.steps[..2].to_vec(), ..rule }.write(&format!("{YARD}/ready"), "").hang();
        wanting(script, &["a.txt:1", "b.txt:1"]).rule(fixer("a", &["b"]).say("Fixed a.\n")).rule(hangs)
    });
    let work = project.env.start_group(&["work"]);
    until("one has ended", || ended(&project) == 1 && project.env.root().join("yard/ready").exists());
    assert_eq!(project.run(&["cancel", "1"]).code, Some(0));
    let output = project.env.finish(work);
    assert!(output.to_string().contains("kept as refs/signoff/left/1/1/fix-1.1.1.0"), "{output}");
    assert_eq!(left(&project), "refs/signoff/left/1/1/fix-1.1.1.0: a.txt\n");
    tidy(&project);
}
