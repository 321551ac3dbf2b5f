//! Misbehaving agents: hangs, floods, and unwanted changes to files, branches and the repository.

use std::fs;

use signoff_testkit::agent_script::{AgentScript, GitTrap, ScriptRule};
use signoff_testkit::processes::{self, wait_until};
use signoff_testkit::{ProgramOutput, TestProject};

use crate::PROGRAM;
use crate::actors::changes;

const APPROVED: &str = "All is well.\n\n**Verdict: APPROVED**\n";
const REFUSED: &str = "- work.txt:1 [HIGH] lacks a check\n\n**Verdict: CHANGES_REQUESTED**\n";

/// Limits that are reached within a test, but not before an agent has done its work on a busy machine.
const SHORT: &str = "[limits]\nattempt = \"5s\"\ngrace = \"1s\"\n";

fn works() -> ScriptRule {
    ScriptRule::role("implement").write("work.txt", "work\n").say("Done.\n")
}

fn approves() -> ScriptRule {
    ScriptRule::role("review").say(APPROVED)
}

/// A project with one task, whose agent follows these rules.
fn project(rules: impl IntoIterator<Item = ScriptRule>) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| rules.into_iter().fold(script, AgentScript::rule));
    project.run(&["add", "Do it", "-a"]);
    project
}

/// Works the task; the person's checkout must be unchanged, and no process may remain.
fn work_tasks(rules: impl IntoIterator<Item = ScriptRule>, more: &str) -> (TestProject, ProgramOutput) {
    let project = project(rules);
    project.configure(more);
    let before = project.checkout();
    let output = project.run(&["work"]);
    assert_eq!(project.checkout(), before);
    wait_until("nothing of ours runs", || processes::with_root(project.env.root()).is_empty());
    (project, output)
}

/// A text without commit ids, which differ from run to run.
fn without_commit_ids(text: &str) -> String {
    let mut out = String::new();
    for part in text.split_inclusive(|c: char| !c.is_ascii_hexdigit()) {
        let digits = part.trim_end_matches(|c: char| !c.is_ascii_hexdigit());
        if digits.len() == 40 { out += &part.replace(digits, "[COMMIT]") } else { out += part }
    }
    out
}

/// The notes about attempts that `show` prints.
fn notes(project: &TestProject) -> String {
    let show = project.run(&["show", "1"]).stdout;
    let notes = show.split_once("\nNotes:\n").map(|(_, rest)| rest.split("\n\n").next().unwrap_or_default());
    notes.unwrap_or_default().to_owned()
}

fn branch(project: &TestProject) -> String {
    let tree = project.git("ls-tree --name-only signoff/task-1-do-it");
    format!("{}---\n{tree}", project.subjects("signoff/task-1-do-it"))
}

#[test]
fn an_agent_that_hangs_is_stopped_after_its_time_limit() {
    let (project, output) = work_tasks([ScriptRule::role("implement").write("work.txt", "half\n").hang()], SHORT);
    insta::assert_snapshot!(output, @"
    exit 1
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation failed: timed out
        hint: `timeout_minutes` of the task's type, or without one `[agents.scripted] timeout`, sets the timeout; `signoff config` shows the settings in effect
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
    insta::assert_snapshot!(branch(&project), @"
    Do it - work in progress
    ---
    README.md
    signoff.toml
    work.txt
    ");
}

#[test]
fn an_agent_that_is_silent_is_stopped() {
    let limits = "[limits]\nsilence = \"1s\"\ngrace = \"1s\"\n";
    let (_, output) = work_tasks([ScriptRule::role("implement").say("Let me think.\n").hang()], limits);
    insta::assert_snapshot!(output, @"
    exit 1
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation failed: printed nothing for too long
        hint: raise `[limits] silence`; `signoff config` shows the settings in effect
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
}

#[test]
fn an_agent_that_ignores_sigterm_is_killed() {
    let (_, output) = work_tasks([ScriptRule::role("implement").ignore_term().hang()], SHORT);
    insta::assert_snapshot!(output, @"
    exit 1
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation failed: timed out
        hint: `timeout_minutes` of the task's type, or without one `[agents.scripted] timeout`, sets the timeout; `signoff config` shows the settings in effect
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
}

#[test]
fn a_daemon_does_not_outlive_its_attempt() {
    let rule = works().daemon("../../../../one.pid").term_ignoring_daemon("../../../../two.pid");
    let (project, output) = work_tasks([rule, approves()], SHORT);
    insta::assert_snapshot!(output, @"
    exit 0
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
    for name in ["one.pid", "two.pid"] {
        let pid = fs::read_to_string(project.env.root().join(name)).unwrap();
        assert!(!processes::is_alive(pid.parse().unwrap()));
    }
}

#[test]
fn an_agent_that_is_killed_fails_its_task() {
    let (project, output) = work_tasks([works().die(9), approves()], "");
    insta::assert_snapshot!(output, @"
    exit 1
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation failed: killed by signal 9
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
    insta::assert_snapshot!(branch(&project), @"
    Do it - work in progress
    ---
    README.md
    signoff.toml
    work.txt
    ");
    // The next attempt continues with the existing work.
    project.set_agent(|script| script.rule(works()).rule(approves()));
    insta::assert_snapshot!(project.run(&["retry", "1"]), @"
    exit 0
    --- stdout
    Retrying task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
}

#[test]
fn an_agent_that_does_nothing_has_failed() {
    let (_, output) = work_tasks([ScriptRule::role("implement").say("Done.\n"), approves()], "");
    insta::assert_snapshot!(output, @"
    exit 1
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation failed: ended without changing anything
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
}

#[test]
fn a_reviewers_edits_are_undone_and_its_review_counts() {
    let meddles = ScriptRule::role("review")
        .cycle(1)
        .write("work.txt", "mine\n")
        .write("more/new.txt", "new\n")
        .delete("README.md")
        .say(REFUSED);
    let fix = ScriptRule::role("fix").shell("cat work.txt; ls").append("work.txt", "fixed\n");
    let (project, output) = work_tasks([works(), meddles, fix, approves()], "");
    insta::assert_snapshot!(output, @"
    exit 0
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - lacks a check
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    --- stderr
    general changed files while reviewing; undone: deleted README.md, modified work.txt, added more/new.txt
    ");
    insta::assert_snapshot!(project.git("show signoff/task-1-do-it:work.txt"), @"
    work
    fixed
    ");
    insta::assert_snapshot!(branch(&project), @"
    Do it - initial implementation
    Address review feedback (cycle 1)
    ---
    README.md
    signoff.toml
    work.txt
    ");
    insta::assert_snapshot!(notes(&project), @"  a2  general changed files while reviewing; undone: deleted README.md, modified work.txt, added more/new.txt");
}

#[test]
fn a_reviewers_commits_are_undone() {
    let meddles = ScriptRule::role("review").cycle(1).write("mine.txt", "mine\n").commit("Mine").say(REFUSED);
    let fix = ScriptRule::role("fix").append("work.txt", "fixed\n");
    let (project, output) = work_tasks([works(), meddles, fix, approves()], "");
    insta::assert_snapshot!(without_commit_ids(&output.stderr), @"general changed files while reviewing; undone: moved the branch to [COMMIT], added mine.txt");
    insta::assert_snapshot!(branch(&project), @"
    Do it - initial implementation
    Address review feedback (cycle 1)
    ---
    README.md
    signoff.toml
    work.txt
    ");
}

#[test]
fn a_reviewer_that_switches_branches_is_undone() {
    let meddles = ScriptRule::role("review").cycle(1).shell("git checkout -q -b elsewhere").say(REFUSED);
    let fix = ScriptRule::role("fix").append("work.txt", "fixed\n");
    let (project, output) = work_tasks([works(), meddles, fix, approves()], "");
    insta::assert_snapshot!(output.stderr, @"general changed files while reviewing; undone: left the branch signoff/task-1-do-it");
    insta::assert_snapshot!(branch(&project), @"
    Do it - initial implementation
    Address review feedback (cycle 1)
    ---
    README.md
    signoff.toml
    work.txt
    ");
}

#[test]
fn undone_changes_and_changes_that_are_only_reported_are_distinguished() {
    let meddles = ScriptRule::role("review").cycle(1).say(REFUSED).shell("git config core.pager x; echo x > work.txt");
    let fix = ScriptRule::role("fix").append("work.txt", "fixed\n");
    let (_, output) = work_tasks([works(), meddles, fix, approves()], "");
    insta::assert_snapshot!(output.stderr, @"
    general changed files while reviewing; undone: modified work.txt
    changed config of the repository while general was reviewing; not undone
    ");
}

#[test]
fn a_worktree_deleted_by_a_reviewer_is_restored() {
    let meddles = ScriptRule::role("review").cycle(1).say(REFUSED).shell("rm -rf \"$PWD\"");
    let fix = ScriptRule::role("fix").append("work.txt", "fixed\n");
    let (project, output) = work_tasks([works(), meddles, fix, approves()], "");
    insta::assert_snapshot!(output, @"
    exit 0
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - lacks a check
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    --- stderr
    general changed files while reviewing; undone: modified .git, deleted README.md, deleted signoff.toml, deleted work.txt
    ");
    insta::assert_snapshot!(branch(&project), @"
    Do it - initial implementation
    Address review feedback (cycle 1)
    ---
    README.md
    signoff.toml
    work.txt
    ");
}

/// The files are kept, and the worktree is registered in git again.
#[test]
fn an_agent_that_deletes_the_git_directory_of_its_worktree() {
    let deletes = "rm -rf \"$(git rev-parse --git-dir)\" && ! git status";
    let meddles = ScriptRule::role("review").cycle(1).say(REFUSED).shell(deletes);
    let fix = ScriptRule::role("fix").append("work.txt", "fixed\n").shell(&format!("{deletes}; rm .git"));
    let (project, output) = work_tasks([works().shell(deletes), meddles, fix, approves()], "");
    insta::assert_snapshot!(output, @"
    exit 0
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - lacks a check
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    --- stderr
    the git directory of the worktree was deleted; recreated
    the git directory of the worktree was deleted; recreated
    the git directory of the worktree was deleted; recreated
    ");
    insta::assert_snapshot!(branch(&project), @"
    Do it - initial implementation
    Address review feedback (cycle 1)
    ---
    README.md
    signoff.toml
    work.txt
    ");
    insta::assert_snapshot!(project.git("show signoff/task-1-do-it:work.txt"), @"
    work
    fixed
    ");
}

#[test]
fn hooks_planted_in_the_repository_never_run() {
    let traps = [GitTrap::HooksPath, GitTrap::Hooks, GitTrap::Fsmonitor, GitTrap::Filter, GitTrap::Diff];
    let plants = |rule: ScriptRule| traps.into_iter().fold(rule, |rule, trap| rule.plant(trap, "../../../../sprung"));
    let rules = [
        plants(works()),
        ScriptRule::role("review").cycle(1).say(REFUSED),
        ScriptRule::role("fix").append("work.txt", "fixed\n"),
        approves(),
    ];
    let project = project(rules);
    let output = project.run(&["work"]);
    insta::assert_snapshot!(output, @"
    exit 0
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - lacks a check
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    project.run(&["diff", "1"]);
    project.run(&["doctor"]);
    assert!(!project.env.root().join("sprung").exists());
    // The hook itself works: the person's own git runs it.
    project.env.shell("git status");
    assert!(project.env.root().join("sprung").exists());
}

#[test]
fn a_leftover_lock_blocks_nothing() {
    let rules = [
        works().leave_index_lock(),
        ScriptRule::role("review").cycle(1).leave_index_lock().say(REFUSED),
        ScriptRule::role("fix").append("work.txt", "fixed\n").leave_index_lock(),
        approves(),
    ];
    let (project, output) = work_tasks(rules, "");
    insta::assert_snapshot!(output, @"
    exit 0
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - lacks a check
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    insta::assert_snapshot!(branch(&project), @"
    Do it - initial implementation
    Address review feedback (cycle 1)
    ---
    README.md
    signoff.toml
    work.txt
    ");
}

#[test]
fn an_answer_of_more_than_ten_megabytes_is_rejected() {
    let rules = [
        works(),
        ScriptRule::role("review").cycle(1).flood(10 * 1024 * 1024 + 1).say(APPROVED),
        ScriptRule::role("fix").append("work.txt", "fixed\n"),
        approves(),
    ];
    let (_, output) = work_tasks(rules, "");
    insta::assert_snapshot!(output, @"
    exit 3
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review by general is unclear: the answer has 10485761 bytes; at most 10485760 are read; trying again
      [1/3] Review: INCONCLUSIVE - general: the answer has 10485761 bytes; at most 10485760 are read
    ! Task #1 completed (no verdict after 1 cycle): a review could not be parsed (unclear_review)
        Next: signoff show 1, then signoff retry 1
    ");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let red = "\u{1b}[31mred\u{1b}[0m\u{7}\u{9b}2J\u{202e}";
    let rules = [
        ScriptRule::role("implement").write("work.txt", red).say(&format!("{red}\n")).complain(&format!("{red}\n")),
        ScriptRule::role("review")
            .cycle(1)
            .say(&format!("- work.txt:1 {red} is missing\n\n**Verdict: CHANGES_REQUESTED**\n")),
        ScriptRule::role("fix").write("fix.txt", red).say(red),
        approves(),
    ];
    let project = project(rules);
    project.run(&["add", &format!("Second {red}"), "-a"]);
    for words in [["work"].as_slice(), &["status"], &["show", "1"], &["show", "2"], &["logs", "1"], &[], &["doctor"]] {
        let output = project.run(words);
        for text in [&output.stdout, &output.stderr] {
            let steers = text.chars().find(|&c| c != '\n' && (c.is_control() || c == '\u{202e}'));
            assert_eq!(steers, None, "{words:?}: {text:?}");
        }
    }
}

#[test]
fn commits_of_an_agent_are_kept() {
    let (project, output) = work_tasks([works().commit("Mine").write("more.txt", "more\n"), approves()], "");
    assert_eq!(output.code, Some(0), "{output}");
    insta::assert_snapshot!(branch(&project), @"
    Mine
    Do it - initial implementation
    ---
    README.md
    more.txt
    signoff.toml
    work.txt
    ");
}

#[test]
fn an_agent_that_amends_an_earlier_commit() {
    let name = "git -c user.name=A -c user.email=a@example.org";
    let amends = works().shell(&format!("git add -A && {name} commit -q --amend -m Amended"));
    let (project, output) = work_tasks([amends, approves()], "");
    insta::assert_snapshot!(output, @"
    exit 0
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
    insta::assert_snapshot!(branch(&project), @"
    Amended
    ---
    README.md
    signoff.toml
    work.txt
    ");
}

#[test]
fn an_agent_that_resets_its_branch() {
    let rules = [
        works(),
        ScriptRule::role("review").cycle(1).say(REFUSED),
        ScriptRule::role("fix").shell("git reset -q --hard HEAD~2 && echo other > other.txt"),
        approves(),
    ];
    let (project, output) = work_tasks(rules, "");
    insta::assert_snapshot!(output, @"
    exit 0
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - lacks a check
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    --- stderr
    the agent dropped commits from the branch; kept as refs/signoff/left/1/1/a3: `git log signoff/task-1-do-it..refs/signoff/left/1/1/a3` shows them, `git cherry-pick signoff/task-1-do-it..refs/signoff/left/1/1/a3` brings them back
    ");
    insta::assert_snapshot!(branch(&project), @"
    Address review feedback (cycle 1)
    ---
    README.md
    other.txt
    signoff.toml
    ");
}

#[test]
fn commits_removed_from_the_branch_are_kept_and_reported() {
    let rules = [
        works(),
        ScriptRule::role("review").cycle(1).say(REFUSED),
        ScriptRule::role("fix").shell("git reset -q --hard HEAD~1 && echo other > other.txt"),
        approves(),
    ];
    let (project, output) = work_tasks(rules, "");
    assert_eq!(output.code, Some(0), "{output}");
    assert!(output.to_string().contains("dropped commits from the branch; kept as refs/signoff/left/1/1/"), "{output}");
    project.git("reflog expire --expire=now --all");
    project.git("gc -q --prune=now");
    let kept = project.git("for-each-ref --format='%(refname)' refs/signoff/left");
    assert_eq!(project.git(&format!("log -1 --format=%s {}", kept.trim())), "Do it - initial implementation\n");
}

#[test]
fn an_agent_that_switches_to_its_own_branch() {
    let goes = works().shell("git checkout -q -b mine").commit("Mine").write("more.txt", "more\n");
    let (project, output) = work_tasks([goes, approves()], "");
    insta::assert_snapshot!(output, @"
    exit 0
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
    insta::assert_snapshot!(branch(&project), @"
    Mine
    Do it - initial implementation
    ---
    README.md
    more.txt
    signoff.toml
    work.txt
    ");
}

#[test]
fn an_agent_that_switches_to_an_unrelated_branch() {
    let goes = works()
        .call(1)
        .commit("Mine")
        .shell("git checkout -q --orphan other && git rm -rfq . && echo other > other.txt")
        .commit("Other");
    let (project, output) = work_tasks([goes, works().append("work.txt", "again\n"), approves()], "");
    insta::assert_snapshot!(without_commit_ids(&output.to_string()), @"
    exit 1
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation failed: left the branch in an unusable state: [ROOT]/work/.signoff/worktrees/task-1 is at [COMMIT], which does not continue its branch signoff/task-1-do-it
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
    insta::assert_snapshot!(branch(&project), @"
    Mine
    ---
    README.md
    signoff.toml
    work.txt
    ");
    // After the repair, the agent is called again.
    let mended = project.env.shell("cd .signoff/worktrees/task-1 && git checkout -q signoff/task-1-do-it");
    assert_eq!(mended.code, Some(0), "{mended}");
    insta::assert_snapshot!(project.run(&["retry", "1"]), @"
    exit 0
    --- stdout
    Retrying task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
    insta::assert_snapshot!(project.calls().summary(), @"
    implement task 1 cycle 0: exit 0
    implement task 1 cycle 0: exit 0
    review general task 1 cycle 1: exit 0
    ");
}

#[test]
fn an_agent_that_leaves_an_unfinished_rebase() {
    let name = "git -c user.name=A -c user.email=a@example.org";
    let rebases = works().call(1).commit("One").shell(&format!(
        "echo two > work.txt && git add -A && {name} commit -qm Two && GIT_SEQUENCE_EDITOR='sed -i 1s/pick/edit/' {name} rebase -q -i HEAD~2 2>/dev/null"
    ));
    let (project, output) = work_tasks([rebases, works().append("work.txt", "again\n"), approves()], "");
    insta::assert_snapshot!(output, @"
    exit 1
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation failed: left the branch in an unusable state: a rebase was left unfinished in [ROOT]/work/.signoff/worktrees/task-1
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
    insta::assert_snapshot!(branch(&project), @"
    One
    Two
    ---
    README.md
    signoff.toml
    work.txt
    ");
    let mended = project.env.shell("cd .signoff/worktrees/task-1 && git rebase --abort");
    assert_eq!(mended.code, Some(0), "{mended}");
    insta::assert_snapshot!(project.run(&["retry", "1"]), @"
    exit 0
    --- stdout
    Retrying task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
    insta::assert_snapshot!(project.calls().summary(), @"
    implement task 1 cycle 0: exit 0
    implement task 1 cycle 0: exit 0
    review general task 1 cycle 1: exit 0
    ");
}

#[test]
fn an_agent_that_writes_into_the_checkout_is_reported() {
    let strays = works()
        .write("../../../stray.txt", "stray\n")
        .append("../../../README.md", "mine\n")
        .write("../../../.signoff/ours.txt", "ignored\n");
    let project = project([strays, approves()]);
    project.env.write("mine.txt", "the person's own\n");
    let output = project.run(&["work"]);
    insta::assert_snapshot!(output, @"
    exit 0
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 1 cycle)
    --- stderr
    your checkout changed while implement was running; not undone: README.md, stray.txt
    ");
    insta::assert_snapshot!(notes(&project), @"  a1  your checkout changed while implement was running; not undone: README.md, stray.txt");
    // The person decides what happens to the file.
    insta::assert_snapshot!(project.git("status --porcelain"), @"
     M README.md
    ?? mine.txt
    ?? stray.txt
    ");
}

#[test]
fn an_agent_that_commits_in_the_checkout_is_reported() {
    let strays = works().shell("cd ../../.. && git -c user.name=A -c user.email=a@b.c commit -q --allow-empty -m Mine && git checkout -q -b mine");
    let project = project([strays, approves()]);
    let output = project.run(&["work"]);
    assert_eq!(output.code, Some(0));
    insta::assert_snapshot!(without_commit_ids(&output.stderr), @"your checkout changed while implement was running; not undone: it is on mine, it is at [COMMIT]");
}

/// The peak memory of a process in kilobytes, without the pages of its program file, which depend on the build.
fn peak_memory(pid: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let number = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.and_then(|line| line.trim().strip_suffix(" kB")).map_or(0, |number| number.parse::<u64>().unwrap())
    };
    number("VmHWM:").saturating_sub(number("RssFile:"))
}

/// A reviewer that prints this many bytes; returns the peak memory of signoff and its supervisors.
fn peak_with_output(bytes: u64) -> (Vec<u64>, ProgramOutput) {
    let measured = "../../../../measured-{role}";
    let waits = |rule: ScriptRule| rule.write("../../../../waits-{role}", "").wait_for(measured);
    let project = project([
        works(),
        waits(ScriptRule::role("review").call(1).flood(bytes)),
        ScriptRule::role("review").call(2).say(&changes("no name")),
        waits(ScriptRule::role("fix").append("work.txt", "fixed\n")),
        approves(),
    ]);
    let program = project.start(&["work"]);
    let mut peaks = Vec::new();
    // During the flood, and after it was parsed.
    for role in ["review", "fix"] {
        let at = |name: &str| project.env.root().join(format!("{name}-{role}"));
        wait_until("the agent waits", || at("waits").exists());
        let ours = processes::with_root(project.env.root()).into_iter().filter(|line| line.contains("/signoff "));
        peaks.extend(ours.map(|line| peak_memory(line.split(' ').next().unwrap_or_default())));
        fs::write(at("measured"), "").unwrap();
    }
    (peaks, project.env.finish(program))
}

fn memory_stays_bounded_through(bytes: u64) {
    let (peaks, output) = peak_with_output(bytes);
    assert_eq!(output.code, Some(0), "{output}");
    assert!(output.stdout.contains("is unclear: "), "{output}");
    assert_eq!(peaks.len(), 4, "signoff and a supervisor, twice: {peaks:?}");
    assert!(peaks.iter().all(|&peak| 0 < peak && peak < 40 * 1024), "{peaks:?}");
}

#[test]
fn a_flood_is_kept_on_disk() {
    memory_stays_bounded_through(100_000_000);
}

#[test]
#[ignore = "writes a gigabyte: scripts/soak"]
fn a_flood_of_a_gigabyte_is_kept_on_disk() {
    memory_stays_bounded_through(1_000_000_000);
}
