//! Detects and reverts changes by agents that must not write, such as reviewers.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use signoff_engine::git::{Worktree, WorktreeChange};

use crate::git::fixture::{GitFixture, files, snapshot, write};

/// The state of a worktree: git's status and all files.
#[derive(Debug, PartialEq, Eq)]
struct WorktreeState {
    status: String,
    head: String,
    files: Vec<(PathBuf, u32, Vec<u8>)>,
}

fn worktree_state(fixture: &GitFixture, worktree: &Worktree) -> WorktreeState {
    let top = worktree.path();
    let files = files(top).into_iter().map(|(path, (_, _, mode, _))| {
        let link = fs::read_link(&path).map(|target| target.into_os_string().into_encoded_bytes());
        let content = link.or_else(|_| fs::read(&path)).unwrap_or_default();
        (path, mode, content)
    });
    WorktreeState {
        status: fixture.run_in(top, &["status", "--porcelain", "--branch"]),
        head: fixture.run_in(top, &["rev-parse", "HEAD"]),
        files: files.collect(),
    }
}

fn describe(changes: &[WorktreeChange]) -> String {
    changes.iter().map(|change| format!("{change}\n")).collect()
}

#[test]
fn an_unchanged_worktree_costs_two_processes() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let head = worktree.head().unwrap().commit;
    let before = fixture.git.processes();
    let snapshot = worktree.snapshot_at_commit(&head).unwrap();
    fixture.run_in(worktree.path(), &["status"]);
    assert_eq!(worktree.undo_since(&snapshot).unwrap(), []);
    assert_eq!(fixture.git.processes() - before, 2);
}

#[test]
fn changed_files_are_restored() {
    let fixture = GitFixture::new();
    fixture.write(".gitignore", "target\n");
    fixture.write("run.sh", "#!/bin/sh\n");
    fixture.commit("more");
    let worktree = fixture.worktree("one");
    let top = worktree.path();
    let before = worktree_state(&fixture, &worktree);
    let snapshot = snapshot(&worktree);

    write(top, "README.md", "improved\n");
    write(top, "notes/a\nb.md", "my review\n");
    fs::remove_dir_all(top.join("src")).unwrap();
    symlink("/tmp", top.join("src")).unwrap();
    fs::set_permissions(top.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(top.join("clone")).unwrap();
    fixture.run_in(&top.join("clone"), &["init", "-q"]);
    write(top, "target/cache", "kept");
    fixture.run_in(top, &["add", "README.md"]);

    let changes = worktree.undo_since(&snapshot).unwrap();
    insta::assert_snapshot!(describe(&changes), @r"
    modified README.md
    modified run.sh
    deleted src/main.rs
    added clone
    added notes/a
    b.md
    added src
    ");
    assert_eq!(fs::read_to_string(top.join("target/cache")).unwrap(), "kept");
    fs::remove_dir_all(top.join("target")).unwrap();
    assert_eq!(worktree_state(&fixture, &worktree), before);
    assert_eq!(worktree.undo_since(&snapshot).unwrap(), []);
}

#[test]
fn commits_are_reverted_and_reported() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let top = worktree.path();
    let before = worktree_state(&fixture, &worktree);
    let snapshot = snapshot(&worktree);
    write(top, "README.md", "improved\n");
    fixture.run_in(top, &["commit", "-qam", "mine"]);
    let made = fixture.run_in(top, &["rev-parse", "HEAD"]);
    let changes = worktree.undo_since(&snapshot).unwrap();
    assert_eq!(describe(&changes), format!("moved the branch to {made}modified README.md\n"));
    assert_eq!(worktree_state(&fixture, &worktree), before);
    assert!(fixture.run_in(top, &["reflog"]).contains("mine"), "the commit can still be found");
}

#[test]
fn branch_changes_and_operations_are_reverted() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let top = worktree.path();
    write(top, "README.md", "ours\n");
    worktree.commit_all("ours").unwrap();
    fixture.write("README.md", "theirs\n");
    fixture.commit("theirs");
    let before = worktree_state(&fixture, &worktree);
    let attacks: [(&str, &[&[&str]]); 8] = [
        ("detached", &[&["checkout", "-q", "--detach", "main"]]),
        ("branch", &[&["checkout", "-qb", "mine"], &["commit", "-q", "--allow-empty", "-m", "x"]]),
        ("reset", &[&["reset", "-q", "--hard", "HEAD~1"]]),
        ("merge", &[&["merge", "main"]]),
        ("rebase", &[&["rebase", "main"]]),
        ("pick", &[&["cherry-pick", "main"]]),
        ("deleted", &[&["update-ref", "-d", "refs/heads/loop/one"]]),
        ("bisect", &[&["bisect", "start", "HEAD", "HEAD~1"]]),
    ];
    for (name, commands) in attacks {
        let snapshot = snapshot(&worktree);
        for command in commands {
            fixture.try_in(top, command);
        }
        let changes = worktree.undo_since(&snapshot).unwrap();
        assert_ne!(changes, [], "{name}");
        assert_eq!(worktree_state(&fixture, &worktree), before, "{name}: {}", describe(&changes));
        assert_eq!(worktree.undo_since(&snapshot).unwrap(), [], "{name}");
    }
}

#[test]
fn no_flag_and_no_ignore_file_hides_a_change() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let top = worktree.path();
    let before = worktree_state(&fixture, &worktree);
    let snapshot = snapshot(&worktree);
    fixture.run_in(top, &["update-index", "--assume-unchanged", "README.md"]);
    fixture.run_in(top, &["update-index", "--skip-worktree", "src/main.rs"]);
    write(top, "README.md", "hidden\n");
    write(top, "src/main.rs", "hidden\n");
    write(top, ".gitignore", "hidden\n");
    write(top, "hidden", "hidden\n");
    let changes = worktree.undo_since(&snapshot).unwrap();
    insta::assert_snapshot!(describe(&changes), @r"
    modified README.md
    modified src/main.rs
    added .gitignore
    added hidden
    ");
    assert_eq!(worktree_state(&fixture, &worktree), before);
}

#[test]
fn changes_to_shared_git_files_are_reported_but_kept() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let snapshot = snapshot(&worktree);
    fixture.run_in(worktree.path(), &["config", "core.fsmonitor", "/bin/false"]);
    write(&fixture.root().join(".git/hooks"), "pre-commit", "#!/bin/sh\n");
    write(worktree.path(), "README.md", "stashed\n");
    fixture.run_in(worktree.path(), &["-c", "core.fsmonitor=false", "stash", "-q"]);
    fs::write(worktree.path().join(".git"), "gitdir: /nowhere\n").unwrap();
    let changes = worktree.undo_since(&snapshot).unwrap();
    insta::assert_snapshot!(describe(&changes), @r"
    changed config of the repository
    changed hooks/pre-commit of the repository
    changed refs/stash of the repository
    modified .git
    ");
    fixture.run_in(worktree.path(), &["rev-parse", "HEAD"]);
}

#[test]
fn a_deleted_worktree_and_a_stale_lock_are_repaired() {
    let fixture = GitFixture::new();
    let worktree = fixture.with_short_timeout().worktree(fixture.worktree("one").path()).unwrap();
    let before = worktree_state(&fixture, &worktree);
    let snapshot = snapshot(&worktree);
    fs::remove_dir_all(worktree.path()).unwrap();
    fs::write(fixture.root().join(".git/worktrees/one/index.lock"), "").unwrap();
    assert_ne!(worktree.undo_since(&snapshot).unwrap(), []);
    assert_eq!(worktree_state(&fixture, &worktree), before);
}

#[test]
fn a_snapshot_can_be_rebuilt_from_the_recorded_head() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let head = worktree.head().unwrap().commit;
    let before = worktree_state(&fixture, &worktree);
    write(worktree.path(), "README.md", "half a review\n");
    write(worktree.path(), "notes", "half a review\n");
    fixture.run_in(worktree.path(), &["commit", "-qam", "mine"]);
    let snapshot = worktree.snapshot_at_commit(&head).unwrap();
    assert_eq!(worktree.undo_since(&snapshot).unwrap().len(), 3);
    assert_eq!(worktree_state(&fixture, &worktree), before);
}

#[test]
fn the_checkout_is_not_changed() {
    let fixture = GitFixture::new();
    fixture.write("README.md", "being edited\n");
    let before = fixture.checkout_fingerprint();
    let worktree = fixture.worktree("one");
    let snapshot = snapshot(&worktree);
    write(worktree.path(), "README.md", "x");
    fixture.run_in(worktree.path(), &["commit", "-qam", "mine"]);
    worktree.undo_since(&snapshot).unwrap();
    assert_eq!(fixture.checkout_fingerprint(), before);
}
