//! The person's checkout as a commit, without touching it.

use std::fs;

use signoff_engine::git::{NewWorktree, Repository, Uncommitted};

use crate::place::{Place, write};

#[test]
fn a_snapshot_has_everything_and_touches_nothing() {
    let place = Place::new();
    place.write(".gitignore", "*.log\n");
    place.commit("ignore");
    place.write("README.md", "edited\n");
    place.write("staged", "1\n");
    place.run(&["add", "staged"]);
    place.write("staged", "2\n");
    place.write("new file", "new\n");
    place.write("a.log", "");
    place.write(".signoff/signoff.db", "");
    fs::remove_file(place.root().join("src/main.rs")).unwrap();
    let stash = place.run(&["stash", "create"]);
    place.run(&["stash", "store", "-m", "theirs", stash.trim()]);
    let before = place.person();
    let refs = place.run(&["for-each-ref"]);

    let snapshot = place.repository().snapshot_commit().unwrap();
    assert_eq!(place.person(), before);
    assert_eq!(place.run(&["for-each-ref"]), refs);
    let show = |what: &str| place.run(&["show", &format!("{snapshot}{what}")]);
    assert_eq!(show(":README.md"), "edited\n");
    assert_eq!(show(":staged"), "2\n");
    let names = place.run(&["ls-tree", "-r", "--name-only", snapshot.as_str()]);
    assert_eq!(names, ".gitignore\nREADME.md\nnew file\nstaged\n");
    assert_eq!(place.run(&["rev-parse", &format!("{snapshot}^")]).trim(), place.head().as_str());
}

#[test]
fn a_clean_checkout_and_one_without_commits() {
    let place = Place::empty();
    place.write("a", "a\n");
    let snapshot = place.repository().snapshot_commit().unwrap();
    assert_eq!(place.run(&["show", &format!("{snapshot}:a")]), "a\n");
    place.commit("first");
    let before = place.person();
    let snapshot = place.repository().snapshot_commit().unwrap();
    let trees = [format!("{snapshot}^{{tree}}"), "HEAD^{tree}".to_owned()]
        .map(|tree| place.run(&["rev-parse", &tree]));
    assert_eq!(trees[0], trees[1]);
    assert_eq!(place.person(), before);
}

#[test]
fn their_index_lock_is_not_ours_to_wait_for() {
    let place = Place::new();
    place.write("README.md", "edited\n");
    fs::write(place.root().join(".git/index.lock"), "").unwrap();
    let before = place.person();
    place.impatient().snapshot_commit().unwrap();
    assert!(place.root().join(".git/index.lock").exists());
    assert_eq!(place.person(), before);
}

#[test]
fn a_merge_in_their_checkout_is_left_in_the_middle() {
    let place = Place::new();
    place.run(&["checkout", "-qb", "side"]);
    place.write("README.md", "side\n");
    place.commit("side");
    place.run(&["checkout", "-q", "main"]);
    place.write("README.md", "main\n");
    place.commit("main");
    assert!(!place.try_in(&place.root(), &["merge", "side"]).0);
    let before = place.person();
    let snapshot = place.repository().snapshot_commit().unwrap();
    assert!(place.run(&["show", &format!("{snapshot}:README.md")]).contains("<<<<<<<"));
    assert!(place.root().join(".git/MERGE_HEAD").exists());
    assert_eq!(place.person(), before);
}

/// A checkout with everything in it that could be lost.
fn busy() -> Place {
    let place = Place::new();
    place.write("README.md", "stashed\n");
    place.run(&["stash", "-q"]);
    place.write("README.md", "edited\n");
    place.write("staged", "1\n");
    place.run(&["add", "staged"]);
    place.write("staged", "2\n");
    place.write("untracked", "3\n");
    place.write(".env", "KEY=1\n");
    place
}

#[test]
fn no_operation_touches_the_person() {
    let place = busy();
    let before = place.person();
    let same = |what: &str| assert_eq!(place.person(), before, "{what}");
    let repository = place.repository();
    let base = repository.base().unwrap();
    repository.at().unwrap();
    repository.default_branch().unwrap();
    repository.submodules().unwrap();
    same("asking");
    let worktree = place.worktree("one");
    same("add_worktree");
    worktree.copy_files(&[".env".to_owned()]).unwrap();
    same("copy_files");
    write(worktree.path(), "README.md", "the agent's\n");
    write(worktree.path(), "new", "the agent's\n");
    worktree.diff(&base).unwrap();
    same("diff");
    worktree.commit_all("work").unwrap();
    same("commit_all");
    let snapshot = worktree.snapshot().unwrap();
    same("snapshot");
    place.run_in(worktree.path(), &["reset", "-q", "--hard", "HEAD~1"]);
    write(worktree.path(), "notes", "the reviewer's\n");
    worktree.undo_since(&snapshot).unwrap();
    same("undo_since");
    repository.snapshot_commit().unwrap();
    same("snapshot_commit");
    let copy = repository.add_detached(&place.path("copy"), &worktree.head().unwrap().commit).unwrap();
    same("add_detached");
    repository.remove_worktree(copy.path(), Uncommitted::Discard).unwrap();
    fs::remove_dir_all(worktree.path()).unwrap();
    place.worktree("one");
    same("taking up");
    repository.remove_worktree(worktree.path(), Uncommitted::Keep).unwrap();
    same("remove_worktree");
    repository.delete_branch("loop/one").unwrap();
    same("delete_branch");
}

#[test]
fn worktrees_may_lie_inside_the_checkout() {
    let place = Place::new();
    let path = place.root().join(".signoff/worktrees/one");
    let start = place.head();
    let new = NewWorktree { path: &path, branch: "one", start: &start };
    let worktree = place.repository().add_worktree(&new).unwrap();
    write(&path, "new", "");
    assert!(worktree.commit_all("work").unwrap().made);
    let snapshot = place.repository().snapshot_commit().unwrap();
    assert_eq!(place.run(&["ls-tree", "-r", "--name-only", snapshot.as_str()]), "README.md\nsrc/main.rs\n");
    let inside = Repository::discover(&place.git, &path).unwrap();
    assert_eq!((inside.root(), inside.checkout()), (place.root().as_path(), path.as_path()));
}
