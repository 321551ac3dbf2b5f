//! Work on a detached `HEAD`: the state of the branch afterwards.

use crate::git::fixture::GitFixture;

/// Runs `script` in a worktree with a detached `HEAD`. Returns the state of the branch and of `HEAD` afterwards.
fn state_after(script: &str) -> String {
    let fixture = GitFixture::new();
    fixture.write("f", "1\n");
    fixture.commit("First");
    let worktree = fixture.worktree("work");
    fixture.shell(worktree.path(), "echo 2 > f; git commit -qam Second");
    worktree.enter_sandbox_dir().unwrap();
    let meanwhile = fixture.shell(
        worktree.path(),
        &format!("git symbolic-ref -q HEAD || echo off its branch; ({script}) >&2 2>/dev/null; git log -1 --format=%s"),
    );
    assert!(worktree.import_from_sandbox().unwrap().is_empty());
    worktree.sync_branch().unwrap();
    let branch = worktree.branch().unwrap_or_default().to_owned();
    let log = fixture.run(&["log", "--reverse", "--format=%s", &branch]).trim_end().replace('\n', ", ");
    let head = fixture.shell(worktree.path(), "git symbolic-ref -q --short HEAD || echo off its branch");
    let common = fixture.shell(worktree.path(), "cd \"$(git rev-parse --git-common-dir)\" && pwd -P");
    assert_eq!(common.trim_end(), fixture.root().join(".git").canonicalize().unwrap().display().to_string());
    format!("{meanwhile}{log}\n{}", head.replace(&branch, "on its branch"))
}

#[test]
fn commits_are_moved_to_the_branch() {
    insta::assert_snapshot!(state_after("echo 3 > f; git commit -qam Third"), @"
    off its branch
    Third
    first, First, Second, Third
    on its branch
    ");
    insta::assert_snapshot!(state_after("git commit -q --amend -m Better"), @"
    off its branch
    Better
    first, First, Better
    on its branch
    ");
    insta::assert_snapshot!(state_after(":"), @"
    off its branch
    Second
    first, First, Second
    on its branch
    ");
}

/// A reset may mean discarded work or a look at an older commit: the branch keeps its commits.
#[test]
fn a_reset_does_not_move_the_branch_back() {
    insta::assert_snapshot!(state_after("git reset -q --hard HEAD~1"), @"
    off its branch
    First
    first, First, Second
    off its branch
    ");
}

#[test]
fn unrelated_history_is_not_moved_to_the_branch() {
    let orphan = "git checkout -q --orphan other && git commit -qm Other && git checkout -q --detach";
    insta::assert_snapshot!(state_after(orphan), @"
    off its branch
    Other
    first, First, Second
    off its branch
    ");
}

#[test]
fn commits_survive_deleted_files() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("work");
    worktree.enter_sandbox_dir().unwrap();
    fixture.shell(worktree.path(), "echo 2 > f; git add f; git commit -qm Second");
    std::fs::remove_dir_all(worktree.path()).unwrap();
    assert!(worktree.import_from_sandbox().unwrap().is_empty());
    worktree.sync_branch().unwrap();
    assert_eq!(fixture.shell(worktree.path(), "git status --short; git log -1 --format=%s; cat f"), "Second\n2\n");
}
