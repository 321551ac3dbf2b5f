//! Snapshots the user's checkout as a commit without changing the checkout.

use std::fs;

use signoff_engine::git::{NewWorktree, Repository, UncommittedPolicy};

use crate::git::fixture::{GitFixture, snapshot, write};

#[test]
fn a_snapshot_has_everything_and_touches_nothing() {
    let fixture = GitFixture::new();
    fixture.write(".gitignore", "*.log\n");
    fixture.commit("ignore");
    fixture.write("README.md", "edited\n");
    fixture.write("staged", "1\n");
    fixture.run(&["add", "staged"]);
    fixture.write("staged", "2\n");
    fixture.write("new file", "new\n");
    fixture.write("a.log", "");
    fixture.write(".signoff/signoff.db", "");
    fs::remove_file(fixture.root().join("src/main.rs")).unwrap();
    let stash = fixture.run(&["stash", "create"]);
    fixture.run(&["stash", "store", "-m", "theirs", stash.trim()]);
    let before = fixture.checkout_fingerprint();
    let refs = fixture.run(&["for-each-ref"]);

    let snapshot = fixture.repository().snapshot_commit().unwrap();
    assert_eq!(fixture.checkout_fingerprint(), before);
    assert_eq!(fixture.run(&["for-each-ref"]), refs);
    let show = |what: &str| fixture.run(&["show", &format!("{snapshot}{what}")]);
    assert_eq!(show(":README.md"), "edited\n");
    assert_eq!(show(":staged"), "2\n");
    let names = fixture.run(&["ls-tree", "-r", "--name-only", snapshot.as_str()]);
    assert_eq!(names, ".gitignore\nREADME.md\nnew file\nstaged\n");
    assert_eq!(fixture.run(&["rev-parse", &format!("{snapshot}^")]).trim(), fixture.head().as_str());
}

#[test]
fn a_clean_checkout_and_one_without_commits() {
    let fixture = GitFixture::empty();
    fixture.write("a", "a\n");
    let snapshot = fixture.repository().snapshot_commit().unwrap();
    assert_eq!(fixture.run(&["show", &format!("{snapshot}:a")]), "a\n");
    fixture.commit("first");
    let before = fixture.checkout_fingerprint();
    let snapshot = fixture.repository().snapshot_commit().unwrap();
    let trees =
        [format!("{snapshot}^{{tree}}"), "HEAD^{tree}".to_owned()].map(|tree| fixture.run(&["rev-parse", &tree]));
    assert_eq!(trees[0], trees[1]);
    assert_eq!(fixture.checkout_fingerprint(), before);
}

#[test]
fn a_snapshot_does_not_wait_for_the_index_lock() {
    let fixture = GitFixture::new();
    fixture.write("README.md", "edited\n");
    fs::write(fixture.root().join(".git/index.lock"), "").unwrap();
    let before = fixture.checkout_fingerprint();
    fixture.with_short_timeout().snapshot_commit().unwrap();
    assert!(fixture.root().join(".git/index.lock").exists());
    assert_eq!(fixture.checkout_fingerprint(), before);
}

#[test]
fn an_unfinished_merge_in_the_checkout_is_left_alone() {
    let fixture = GitFixture::new();
    fixture.run(&["checkout", "-qb", "side"]);
    fixture.write("README.md", "side\n");
    fixture.commit("side");
    fixture.run(&["checkout", "-q", "main"]);
    fixture.write("README.md", "main\n");
    fixture.commit("main");
    assert!(!fixture.try_in(&fixture.root(), &["merge", "side"]).0);
    let before = fixture.checkout_fingerprint();
    let snapshot = fixture.repository().snapshot_commit().unwrap();
    assert!(fixture.run(&["show", &format!("{snapshot}:README.md")]).contains("<<<<<<<"));
    assert!(fixture.root().join(".git/MERGE_HEAD").exists());
    assert_eq!(fixture.checkout_fingerprint(), before);
}

/// Creates a checkout with every kind of state that could be lost.
fn busy() -> GitFixture {
    let fixture = GitFixture::new();
    fixture.write("README.md", "stashed\n");
    fixture.run(&["stash", "-q"]);
    fixture.write("README.md", "edited\n");
    fixture.write("staged", "1\n");
    fixture.run(&["add", "staged"]);
    fixture.write("staged", "2\n");
    fixture.write("untracked", "3\n");
    fixture.write(".env", "KEY=1\n");
    fixture
}

#[test]
fn no_operation_changes_the_checkout() {
    let fixture = busy();
    let before = fixture.checkout_fingerprint();
    let same = |what: &str| assert_eq!(fixture.checkout_fingerprint(), before, "{what}");
    let repository = fixture.repository();
    let base = repository.base().unwrap();
    repository.checkout_head().unwrap();
    repository.default_branch().unwrap();
    repository.submodules().unwrap();
    same("asking");
    let worktree = fixture.worktree("one");
    same("add_worktree");
    worktree.copy_files(&[".env".to_owned()]).unwrap();
    same("copy_files");
    write(worktree.path(), "README.md", "the agent's\n");
    write(worktree.path(), "new", "the agent's\n");
    worktree.diff(&base).unwrap();
    same("diff");
    worktree.commit_all("work").unwrap();
    same("commit_all");
    let snapshot = snapshot(&worktree);
    same("snapshot");
    fixture.run_in(worktree.path(), &["reset", "-q", "--hard", "HEAD~1"]);
    write(worktree.path(), "notes", "the reviewer's\n");
    worktree.undo_since(&snapshot).unwrap();
    same("undo_since");
    repository.snapshot_commit().unwrap();
    same("snapshot_commit");
    let copy = repository.add_detached(&fixture.path("copy"), &worktree.head().unwrap().commit).unwrap();
    same("add_detached");
    repository.remove_worktree(copy.path(), UncommittedPolicy::Discard).unwrap();
    fs::remove_dir_all(worktree.path()).unwrap();
    fixture.worktree("one");
    same("taking up");
    repository.remove_worktree(worktree.path(), UncommittedPolicy::Keep).unwrap();
    same("remove_worktree");
}

#[test]
fn worktrees_may_be_inside_the_checkout() {
    let fixture = GitFixture::new();
    let path = fixture.root().join(".signoff/worktrees/one");
    let start = fixture.head();
    let new = NewWorktree { path: &path, branch: "one", start: &start };
    let worktree = fixture.repository().add_worktree(&new).unwrap();
    write(&path, "new", "");
    assert!(worktree.commit_all("work").unwrap().made);
    let snapshot = fixture.repository().snapshot_commit().unwrap();
    assert_eq!(fixture.run(&["ls-tree", "-r", "--name-only", snapshot.as_str()]), "README.md\nsrc/main.rs\n");
    let inside = Repository::discover(&fixture.git, &path).unwrap();
    assert_eq!((inside.root(), inside.checkout()), (fixture.root().as_path(), path.as_path()));
}
