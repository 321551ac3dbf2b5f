//! Agents that delete signoff's files or replace them by something else.

use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::{ProgramOutput, TestProject};

use crate::PROGRAM;

const APPROVED: &str = "All is well.\n\n**Verdict: APPROVED**\n";
const REFUSED: &str = "- work.txt:1 [HIGH] lacks a check\n\n**Verdict: CHANGES_REQUESTED**\n";

/// Replaces the worktree by a link to another repository.
const LINKED: &str = "w=$PWD; other=$(cd ../../../../other; pwd); cd /; rm -rf \"$w\"; ln -s \"$other\" \"$w\"";

fn works() -> ScriptRule {
    ScriptRule::role("implement").write("work.txt", "work\n").say("Done.\n")
}

fn approves() -> ScriptRule {
    ScriptRule::role("review").say(APPROVED)
}

/// A project with a task that follows these rules, and another one that succeeds.
fn project(rules: impl IntoIterator<Item = ScriptRule>) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| {
        let script = rules.into_iter().map(|rule| rule.task("1")).fold(script, AgentScript::rule);
        script.rule(works()).rule(approves())
    });
    project.env.shell(
        "git init -q ../other && cd ../other && echo mine > mine.txt && git add . && \
         git -c user.name=A -c user.email=a@b.c commit -qm mine && echo more >> mine.txt && echo new > new.txt",
    );
    project.run(&["add", "Do it", "-a"]);
    project.run(&["add", "Next", "-a"]);
    project
}

/// The state of the other repository.
fn other(project: &TestProject) -> String {
    project.env.shell("cd ../other && ls -A && cat .git/HEAD *.txt && git log --format=%s && git status --short").stdout
}

/// Works both tasks. The second task and the other repository must not be affected.
fn work_tasks(project: &TestProject) -> ProgramOutput {
    let (before, checkout) = (other(project), project.checkout());
    assert!(before.contains("more"), "{before}");
    let output = project.run(&["work", "-j", "1"]);
    assert_eq!(other(project), before, "{output}");
    assert_eq!(project.checkout(), checkout);
    let rows = project.run(&["status", "--json"]).json()["tasks"].clone();
    assert_eq!(rows[1]["final_verdict"], "APPROVED", "{output}");
    output
}

/// The first task as `status` shows it.
fn row(project: &TestProject) -> String {
    project.run(&["status"]).stdout.lines().next().unwrap_or_default().to_owned()
}

#[test]
fn a_link_in_place_of_the_worktree_is_not_followed() {
    let project = project([works().shell(LINKED)]);
    insta::assert_snapshot!(work_tasks(&project), @"
    exit 1
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation failed: ended without changing anything
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    Running task #2: Next
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #2 completed (APPROVED after 1 cycle)
    ✗ Run 1 failed: 2 tasks, 1 completed, 1 failed
    --- stderr
    the worktree was replaced by something else; recreated from its branch
    ");
    // No commit is lost, and the next attempt has its files.
    project.set_agent(|script| script.rule(works()).rule(approves()));
    assert_eq!(project.run(&["retry", "1"]).code, Some(0));
    assert_eq!(project.git("show signoff/task-1-do-it:work.txt"), "work\n");
}

#[test]
fn a_link_that_a_reviewer_put_in_place_of_the_worktree_is_not_followed() {
    let project = project([works(), ScriptRule::role("review").say(APPROVED).shell(LINKED)]);
    insta::assert_snapshot!(work_tasks(&project).stderr, @"
    the worktree was replaced by something else; recreated from its branch
    general changed files while reviewing; undone: modified .git, deleted README.md, deleted signoff.toml, deleted work.txt
    the worktree was replaced by something else; recreated from its branch
    general changed files while reviewing; undone: modified .git, deleted README.md, deleted signoff.toml, deleted work.txt
    ");
    assert_eq!(project.git("show signoff/task-1-do-it:work.txt"), "work\n");
}

#[test]
fn a_file_in_place_of_the_worktree_is_removed() {
    let project = project([works().shell("w=$PWD; cd /; rm -rf \"$w\"; echo x > \"$w\"")]);
    work_tasks(&project);
    insta::assert_snapshot!(row(&project), @"  ✗ 1. implement Do it    failed     implementer_failed");
    project.set_agent(|script| script.rule(works()).rule(approves()));
    assert_eq!(project.run(&["retry", "1"]).code, Some(0));
}

#[test]
fn a_link_in_place_of_the_git_directory_is_not_followed() {
    let links = "g=$(git rev-parse --git-dir); rm -rf \"$g\"; ln -s \"$(cd ../../../../other/.git; pwd)\" \"$g\"";
    let again = ScriptRule::role("review").cycle(1).say(REFUSED).shell(links);
    let fix = ScriptRule::role("fix").append("work.txt", "fixed\n").shell(links);
    let project = project([works().shell(links), again, fix]);
    insta::assert_snapshot!(work_tasks(&project), @"
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
    Running task #2: Next
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #2 completed (APPROVED after 1 cycle)
    ✓ Run 1 completed, all approved: 2 tasks, 2 completed
    --- stderr
    the git directory of the worktree was deleted; recreated
    the git directory of the worktree was deleted; recreated
    the git directory of the worktree was deleted; recreated
    ");
    assert_eq!(project.git("show signoff/task-1-do-it:work.txt"), "work\nfixed\n");
}

#[test]
fn a_link_in_place_of_all_worktrees_is_refused() {
    let links = "d=$(cd ..; pwd); o=$(cd ../../../../other; pwd); cd /; rm -rf \"$d\"; ln -s \"$o\" \"$d\"";
    let project = project([works().shell(links)]);
    let before = other(&project);
    let output = project.run(&["work", "1"]);
    assert_eq!(other(&project), before);
    insta::assert_snapshot!(output, @"
    exit 1
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation failed: left the branch in an unusable state: [ROOT]/work/.signoff/worktrees is a link; worktrees are kept in real directories only
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
    insta::assert_snapshot!(project.run(&["retry", "1"]), @"
    exit 1
    --- stderr
    error: [ROOT]/work/.signoff/worktrees is a link; worktrees are kept in real directories only
    hint: remove the link, or set worktree.directory to its target
    ");
    assert_eq!(other(&project), before);
    project.env.shell("rm .signoff/worktrees");
    project.set_agent(|script| script.rule(works()).rule(approves()));
    assert_eq!(project.run(&["retry", "1"]).code, Some(0));
    assert_eq!(project.git("show signoff/task-1-do-it:work.txt"), "work\n");
}

/// Damage to the git directory of a worktree that can be repaired.
#[test]
fn work_is_kept_whatever_happens_to_the_git_directory() {
    let ways = [
        "g=$(git rev-parse --git-dir); b=$(git symbolic-ref HEAD); rm -rf \"$g\"; git -C ../../.. update-ref -d $b",
        "g=$(git rev-parse --git-dir); git update-ref -d $(git symbolic-ref HEAD); echo $g",
        "g=$(git rev-parse --git-dir); rm -rf \"$g\"; echo x > \"$g\"",
        "g=$(git rev-parse --git-dir); rm \"$g/gitdir\"; touch \"$g/index.lock\"",
        "g=$(git rev-parse --git-dir); echo /nowhere/.git > \"$g/gitdir\"",
        "g=$(git rev-parse --git-dir); rm \"$g/signoff-owned\"",
        "g=$(git rev-parse --git-dir); echo x > \"$g/HEAD\"",
        "g=$(git rev-parse --git-dir); rm \"$g/HEAD\"; mkdir \"$g/HEAD\"",
    ];
    for way in ways {
        let project = project([works().shell(way)]);
        let output = work_tasks(&project);
        assert_eq!(row(&project), "  ✓ 1. implement Do it    completed  APPROVED (1 cycle)", "{way}: {output}");
        assert_eq!(project.git("show signoff/task-1-do-it:work.txt"), "work\n", "{way}");
    }
}

#[test]
fn a_persons_worktree_with_the_same_name_is_left_alone() {
    let project = project([works().shell("rm -rf \"$(git rev-parse --git-dir)\"")]);
    project.git("worktree add -q -b theirs ../elsewhere/task-1");
    work_tasks(&project);
    assert_eq!(row(&project), "  ✓ 1. implement Do it    completed  APPROVED (1 cycle)");
    assert_eq!(project.git("-C ../elsewhere/task-1 symbolic-ref HEAD"), "refs/heads/theirs\n");
    assert_eq!(project.git("show signoff/task-1-do-it:work.txt"), "work\n");
}

#[test]
fn an_inaccessible_directory_is_made_accessible_again() {
    use std::os::unix::fs::PermissionsExt;
    let project = project([works(), ScriptRule::role("review").say(APPROVED).shell("chmod 000 .")]);
    work_tasks(&project);
    assert_eq!(row(&project), "  ✓ 1. implement Do it    completed  APPROVED (1 cycle)");
    let found = std::fs::metadata(project.env.work().join(".signoff/worktrees/task-1")).unwrap();
    assert_eq!(found.permissions().mode() & 0o700, 0o700);
}
