//! Work off its branch: what becomes of the branch when it has ended.

use crate::place::Place;

/// What a branch and `HEAD` are after somebody with a worktree off its branch did `script`.
fn after(script: &str) -> String {
    let place = Place::new();
    place.write("f", "1\n");
    place.commit("First");
    let worktree = place.worktree("work");
    place.shell(worktree.path(), "echo 2 > f; git commit -qam Second");
    worktree.lend().unwrap();
    let meanwhile = place.shell(
        worktree.path(),
        &format!("git symbolic-ref -q HEAD || echo off its branch; ({script}) >&2 2>/dev/null; git log -1 --format=%s"),
    );
    assert!(worktree.take_back().unwrap().is_empty());
    worktree.follow().unwrap();
    let branch = worktree.branch().unwrap_or_default().to_owned();
    let log = place.run(&["log", "--reverse", "--format=%s", &branch]).trim_end().replace('\n', ", ");
    let head = place.shell(worktree.path(), "git symbolic-ref -q --short HEAD || echo off its branch");
    let common = place.shell(worktree.path(), "cd \"$(git rev-parse --git-common-dir)\" && pwd -P");
    assert_eq!(common.trim_end(), place.root().join(".git").canonicalize().unwrap().display().to_string());
    format!("{meanwhile}{log}\n{}", head.replace(&branch, "on its branch"))
}

#[test]
fn commits_come_home() {
    insta::assert_snapshot!(after("echo 3 > f; git commit -qam Third"), @"
    off its branch
    Third
    first, First, Second, Third
    on its branch
    ");
    insta::assert_snapshot!(after("git commit -q --amend -m Better"), @"
    off its branch
    Better
    first, First, Better
    on its branch
    ");
    insta::assert_snapshot!(after(":"), @"
    off its branch
    Second
    first, First, Second
    on its branch
    ");
}

/// Whether somebody gave up work or only looked at it cannot be told: nothing is lost.
#[test]
fn a_step_back_is_none() {
    insta::assert_snapshot!(after("git reset -q --hard HEAD~1"), @"
    off its branch
    First
    first, First, Second
    off its branch
    ");
}

#[test]
fn what_has_another_beginning_stays_where_it_is() {
    let orphan = "git checkout -q --orphan other && git commit -qm Other && git checkout -q --detach";
    insta::assert_snapshot!(after(orphan), @"
    off its branch
    Other
    first, First, Second
    off its branch
    ");
}

#[test]
fn commits_outlive_the_files() {
    let place = Place::new();
    let worktree = place.worktree("work");
    worktree.lend().unwrap();
    place.shell(worktree.path(), "echo 2 > f; git add f; git commit -qm Second");
    std::fs::remove_dir_all(worktree.path()).unwrap();
    assert!(worktree.take_back().unwrap().is_empty());
    worktree.follow().unwrap();
    assert_eq!(
        place.shell(worktree.path(), "git status --short; git log -1 --format=%s; cat f"),
        "Second\n2\n"
    );
}
