//! What somebody changed who must not change anything.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use signoff_engine::git::{Change, Worktree};

use crate::place::{Place, files, write};

/// What git and the eyes see of a worktree.
#[derive(Debug, PartialEq, Eq)]
struct Seen {
    status: String,
    head: String,
    files: Vec<(PathBuf, u32, Vec<u8>)>,
}

fn seen(place: &Place, worktree: &Worktree) -> Seen {
    let top = worktree.path();
    let files = files(top).into_iter().map(|(path, (_, _, mode, _))| {
        let link = fs::read_link(&path).map(|target| target.into_os_string().into_encoded_bytes());
        let content = link.or_else(|_| fs::read(&path)).unwrap_or_default();
        (path, mode, content)
    });
    Seen {
        status: place.run_in(top, &["status", "--porcelain", "--branch"]),
        head: place.run_in(top, &["rev-parse", "HEAD"]),
        files: files.collect(),
    }
}

fn told(changes: &[Change]) -> String {
    changes.iter().map(|change| format!("{change}\n")).collect()
}

#[test]
fn nothing_changed_costs_two_processes() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let before = place.git.processes();
    let snapshot = worktree.snapshot().unwrap();
    place.run_in(worktree.path(), &["status"]);
    assert_eq!(worktree.undo_since(&snapshot).unwrap(), []);
    assert_eq!(place.git.processes() - before, 2);
}

#[test]
fn files_are_put_back() {
    let place = Place::new();
    place.write(".gitignore", "target\n");
    place.write("run.sh", "#!/bin/sh\n");
    place.commit("more");
    let worktree = place.worktree("one");
    let top = worktree.path();
    let before = seen(&place, &worktree);
    let snapshot = worktree.snapshot().unwrap();

    write(top, "README.md", "improved\n");
    write(top, "notes/a\nb.md", "my review\n");
    fs::remove_dir_all(top.join("src")).unwrap();
    symlink("/tmp", top.join("src")).unwrap();
    fs::set_permissions(top.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::create_dir(top.join("clone")).unwrap();
    place.run_in(&top.join("clone"), &["init", "-q"]);
    write(top, "target/cache", "kept");
    place.run_in(top, &["add", "README.md"]);

    let changes = worktree.undo_since(&snapshot).unwrap();
    insta::assert_snapshot!(told(&changes), @r"
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
    assert_eq!(seen(&place, &worktree), before);
    assert_eq!(worktree.undo_since(&snapshot).unwrap(), []);
}

#[test]
fn commits_are_taken_back_and_told() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let top = worktree.path();
    let before = seen(&place, &worktree);
    let snapshot = worktree.snapshot().unwrap();
    write(top, "README.md", "improved\n");
    place.run_in(top, &["commit", "-qam", "mine"]);
    let made = place.run_in(top, &["rev-parse", "HEAD"]);
    let changes = worktree.undo_since(&snapshot).unwrap();
    assert_eq!(told(&changes), format!("moved the branch to {made}modified README.md\n"));
    assert_eq!(seen(&place, &worktree), before);
    assert!(place.run_in(top, &["reflog"]).contains("mine"), "the commit can still be found");
}

#[test]
fn branches_and_operations_are_left_again() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let top = worktree.path();
    write(top, "README.md", "ours\n");
    worktree.commit_all("ours").unwrap();
    place.write("README.md", "theirs\n");
    place.commit("theirs");
    let before = seen(&place, &worktree);
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
        let snapshot = worktree.snapshot().unwrap();
        for command in commands {
            place.try_in(top, command);
        }
        let changes = worktree.undo_since(&snapshot).unwrap();
        assert_ne!(changes, [], "{name}");
        assert_eq!(seen(&place, &worktree), before, "{name}: {}", told(&changes));
        assert_eq!(worktree.undo_since(&snapshot).unwrap(), [], "{name}");
    }
}

#[test]
fn a_dirty_worktree_is_put_back_as_dirty_as_it_was() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let top = worktree.path();
    write(top, "README.md", "half done\n");
    write(top, "staged", "1\n");
    place.run_in(top, &["add", "staged"]);
    write(top, "staged", "2\n");
    write(top, "untracked", "3\n");
    let before = seen(&place, &worktree);
    let snapshot = worktree.snapshot().unwrap();
    write(top, "README.md", "other\n");
    write(top, "staged", "x");
    fs::remove_file(top.join("untracked")).unwrap();
    place.run_in(top, &["add", "-A"]);
    let changes = worktree.undo_since(&snapshot).unwrap();
    insta::assert_snapshot!(told(&changes), @r"
    modified README.md
    modified staged
    deleted untracked
    ");
    assert_eq!(seen(&place, &worktree), before);
}

#[test]
fn no_flag_and_no_ignore_file_hides_a_change() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let top = worktree.path();
    let before = seen(&place, &worktree);
    let snapshot = worktree.snapshot().unwrap();
    place.run_in(top, &["update-index", "--assume-unchanged", "README.md"]);
    place.run_in(top, &["update-index", "--skip-worktree", "src/main.rs"]);
    write(top, "README.md", "hidden\n");
    write(top, "src/main.rs", "hidden\n");
    write(top, ".gitignore", "hidden\n");
    write(top, "hidden", "hidden\n");
    let changes = worktree.undo_since(&snapshot).unwrap();
    insta::assert_snapshot!(told(&changes), @r"
    modified README.md
    modified src/main.rs
    added .gitignore
    added hidden
    ");
    assert_eq!(seen(&place, &worktree), before);
}

#[test]
fn what_all_worktrees_share_is_told_and_left() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let snapshot = worktree.snapshot().unwrap();
    place.run_in(worktree.path(), &["config", "core.fsmonitor", "/bin/false"]);
    write(&place.root().join(".git/hooks"), "pre-commit", "#!/bin/sh\n");
    write(worktree.path(), "README.md", "stashed\n");
    place.run_in(worktree.path(), &["-c", "core.fsmonitor=false", "stash", "-q"]);
    fs::write(worktree.path().join(".git"), "gitdir: /nowhere\n").unwrap();
    let changes = worktree.undo_since(&snapshot).unwrap();
    insta::assert_snapshot!(told(&changes), @r"
    changed config of the repository
    changed hooks/pre-commit of the repository
    changed refs/stash of the repository
    modified .git
    ");
    place.run_in(worktree.path(), &["rev-parse", "HEAD"]);
}

#[test]
fn a_lock_and_even_the_whole_directory_can_be_gone_wrong() {
    let place = Place::new();
    let worktree = place.impatient().worktree(place.worktree("one").path()).unwrap();
    let before = seen(&place, &worktree);
    let snapshot = worktree.snapshot().unwrap();
    fs::remove_dir_all(worktree.path()).unwrap();
    fs::write(place.root().join(".git/worktrees/one/index.lock"), "").unwrap();
    assert_ne!(worktree.undo_since(&snapshot).unwrap(), []);
    assert_eq!(seen(&place, &worktree), before);
}

#[test]
fn after_a_crash_the_recorded_head_is_enough() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let head = worktree.head().unwrap().commit;
    let before = seen(&place, &worktree);
    write(worktree.path(), "README.md", "half a review\n");
    write(worktree.path(), "notes", "half a review\n");
    place.run_in(worktree.path(), &["commit", "-qam", "mine"]);
    let snapshot = worktree.snapshot_of(&head).unwrap();
    assert_eq!(worktree.undo_since(&snapshot).unwrap().len(), 3);
    assert_eq!(seen(&place, &worktree), before);
}

#[test]
fn the_person_is_not_touched() {
    let place = Place::new();
    place.write("README.md", "being edited\n");
    let before = place.person();
    let worktree = place.worktree("one");
    let snapshot = worktree.snapshot().unwrap();
    write(worktree.path(), "README.md", "x");
    place.run_in(worktree.path(), &["commit", "-qam", "mine"]);
    worktree.undo_since(&snapshot).unwrap();
    assert_eq!(place.person(), before);
}
