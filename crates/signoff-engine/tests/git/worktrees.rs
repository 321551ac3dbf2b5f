//! Worktrees: creation, reuse and removal.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use signoff_core::ids::Commit;
use signoff_engine::git::{GitError, NewWorktree, Repository, UncommittedPolicy, Worktree};

use crate::git::fixture::{GitFixture, snapshot, write};

fn add(repository: &Repository, path: &Path, branch: &str, start: &Commit) -> Result<Worktree, GitError> {
    repository.add_worktree(&NewWorktree { path, branch, start })
}

#[test]
fn a_worktree_has_the_files_and_a_branch_of_its_own() {
    let fixture = GitFixture::new();
    let before = fixture.checkout_fingerprint();
    let start = fixture.head();
    let path = fixture.path("trees/with space\nand \"line\"");
    let worktree = add(&fixture.repository(), &path, "loop/grün", &start).unwrap();
    assert_eq!(fs::read_to_string(path.join("src/main.rs")).unwrap(), "fn main() {}\n");
    assert_eq!(worktree.head().unwrap().commit, start);
    assert_eq!((worktree.path(), worktree.branch()), (path.as_path(), Some("loop/grün")));
    assert!(worktree.exists());
    assert_eq!(fixture.run_in(&path, &["branch", "--show-current"]), "loop/grün\n");
    assert_eq!(fixture.run_in(&path, &["status", "--porcelain"]), "");
    assert_eq!(fixture.checkout_fingerprint(), before);
}

#[test]
fn a_worktree_starts_at_the_recorded_commit() {
    let fixture = GitFixture::new();
    let start = fixture.head();
    fixture.write("later", "later");
    fixture.commit("later");
    let worktree = add(&fixture.repository(), &fixture.path("one"), "one", &start).unwrap();
    assert_eq!(worktree.head().unwrap().commit, start);
    assert!(!worktree.path().join("later").exists());
}

#[test]
fn twenty_four_worktrees_are_created_in_parallel() {
    let fixture = GitFixture::new();
    let before = fixture.checkout_fingerprint();
    let start = fixture.head();
    let shared = fixture.repository();
    std::thread::scope(|scope| {
        for number in 0..24 {
            let (fixture, start, shared) = (&fixture, &start, &shared);
            scope.spawn(move || {
                let path = fixture.path("trees").join(number.to_string());
                // Every other thread acts like a separate process.
                let repository = if number % 2 == 0 { shared.clone() } else { fixture.repository() };
                let made = add(&repository, &path, &format!("loop/{number}"), start).unwrap();
                assert_eq!(made.head().unwrap().commit, *start);
            });
        }
    });
    assert_eq!(fixture.run(&["worktree", "list"]).lines().count(), 25);
    assert_eq!(fixture.run(&["branch", "--list", "loop/*"]).lines().count(), 24);
    fixture.run(&["fsck", "--strict"]);
    assert_eq!(fixture.checkout_fingerprint(), before);
}

#[test]
fn an_existing_worktree_is_reused() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    write(worktree.path(), "new", "work");
    let head = worktree.commit_all("work").unwrap().head;
    write(worktree.path(), "unsaved", "more");
    let again = fixture.worktree("one");
    assert_eq!(again.head().unwrap(), head);
    assert_eq!(fs::read_to_string(again.path().join("unsaved")).unwrap(), "more");
    let opened = fixture.repository().worktree(worktree.path()).unwrap();
    assert_eq!(opened.branch(), Some("loop/one"));
}

#[test]
fn a_deleted_worktree_is_restored_from_its_branch() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    write(worktree.path(), "new", "work");
    let head = worktree.commit_all("work").unwrap().head;
    fs::remove_dir_all(worktree.path()).unwrap();
    assert!(!worktree.exists());
    assert!(matches!(worktree.head(), Err(GitError::WorktreeGone(_))));
    assert!(matches!(worktree.commit_all("x"), Err(GitError::WorktreeGone(_))));

    let again = fixture.worktree("one");
    assert_eq!(again.head().unwrap(), head);
    assert_eq!(fs::read_to_string(again.path().join("new")).unwrap(), "work");
    assert_eq!(fixture.run_in(again.path(), &["status", "--porcelain"]), "");

    fs::remove_dir_all(worktree.path()).unwrap();
    fixture.run(&["worktree", "prune"]);
    assert_eq!(fixture.worktree("one").head().unwrap(), head);
}

#[test]
fn a_branch_without_worktree_can_use_another_path() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let start = fixture.head();
    let elsewhere = fixture.path("elsewhere");
    let taken = add(&fixture.repository(), &elsewhere, "loop/one", &start);
    assert!(matches!(taken, Err(GitError::BranchTaken { by: Some(by), .. }) if by == worktree.path()));
    fs::remove_dir_all(worktree.path()).unwrap();
    assert_eq!(add(&fixture.repository(), &elsewhere, "loop/one", &start).unwrap().path(), elsewhere);
}

type Interruption<'a> = &'a dyn Fn(&Worktree);

/// Simulates a kill at each step of the creation.
#[test]
fn an_interrupted_creation_is_completed() {
    let fixture = GitFixture::new();
    let admin = fixture.root().join(".git/worktrees/one");
    let cuts: [(&str, Interruption<'_>); 4] = [
        ("before the files", &|worktree| {
            fs::remove_file(admin.join("index")).unwrap();
            fs::remove_dir_all(worktree.path().join("src")).unwrap();
        }),
        ("before the link", &|worktree| {
            fs::remove_file(admin.join("index")).unwrap();
            fs::write(worktree.path().join(".git"), "gitdir: /nowhere/worktrees/one\n").unwrap();
        }),
        ("before the marker", &|_| {
            fs::remove_file(admin.join("index")).unwrap();
            fs::remove_file(admin.join("signoff-owned")).unwrap();
        }),
        ("before the worktree", &|worktree| {
            fs::remove_dir_all(&admin).unwrap();
            fs::remove_dir_all(worktree.path()).unwrap();
        }),
    ];
    for (when, cut) in cuts {
        cut(&fixture.worktree("one"));
        let worktree = fixture.worktree("one");
        assert_eq!(fixture.run_in(worktree.path(), &["status", "--porcelain"]), "", "{when}");
        assert!(worktree.path().join("src/main.rs").exists(), "{when}");
    }
}

#[test]
fn foreign_directories_are_neither_used_nor_deleted() {
    let fixture = GitFixture::new();
    let start = fixture.head();
    fixture.run(&["branch", "theirs"]);
    fixture.run(&["worktree", "add", "-q", "-b", "side", "../side"]);
    write(&fixture.path("full"), "file", "precious");
    let repository = fixture.repository();
    let before = fixture.checkout_fingerprint();
    let side = fixture.path("side");

    assert!(matches!(
        add(&repository, &fixture.path("new"), "theirs", &start),
        Err(GitError::BranchTaken { by: None, .. })
    ));
    assert!(matches!(
        add(&repository, &fixture.path("new"), "main", &start),
        Err(GitError::BranchTaken { by: Some(by), .. }) if by == fixture.root()
    ));
    assert!(matches!(add(&repository, &side, "side", &start), Err(GitError::NotOurs(_))));
    assert!(matches!(add(&repository, &fixture.path("full"), "new", &start), Err(GitError::NotOurs(_))));
    for branch in ["-x", "", "a..b", "a b"] {
        assert!(add(&repository, &fixture.path("new"), branch, &start).is_err(), "{branch}");
    }
    for path in [&side, &fixture.path("full"), &fixture.root()] {
        for how in [UncommittedPolicy::Keep, UncommittedPolicy::Discard] {
            let refused = repository.remove_worktree(path, how);
            assert!(matches!(refused, Err(GitError::NotOurs(_) | GitError::WorktreeGone(_))), "{path:?}");
        }
    }
    assert!(fixture.path("full/file").exists() && side.join("README.md").exists());
    assert_eq!(fixture.checkout_fingerprint(), before);
}

#[test]
fn removing_loses_no_work() {
    let fixture = GitFixture::new();
    let repository = fixture.repository();
    let worktree = fixture.worktree("one");
    write(worktree.path(), "new", "work");
    let kept = repository.remove_worktree(worktree.path(), UncommittedPolicy::Keep);
    assert!(matches!(kept, Err(GitError::UncommittedWork(_))));
    let head = worktree.commit_all("work").unwrap().head;

    fixture.run_in(worktree.path(), &["checkout", "-q", "--detach"]);
    fixture.run_in(worktree.path(), &["commit", "-q", "--allow-empty", "-m", "away"]);
    let kept = repository.remove_worktree(worktree.path(), UncommittedPolicy::Keep);
    assert!(matches!(kept, Err(GitError::OffBranch { .. })));
    fixture.run_in(worktree.path(), &["checkout", "-q", "loop/one"]);

    write(worktree.path(), "closed/file", "");
    fs::write(worktree.path().join(".gitignore"), "closed\n.gitignore\n").unwrap();
    fs::set_permissions(worktree.path().join("closed"), fs::Permissions::from_mode(0o500)).unwrap();
    repository.remove_worktree(worktree.path(), UncommittedPolicy::Keep).unwrap();
    assert!(!worktree.path().exists());
    assert_eq!(repository.head_of("loop/one").unwrap(), Some(head));
    assert_eq!(fixture.run(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn removing_a_link_in_place_of_a_worktree_keeps_its_target() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    write(&fixture.path("precious"), "file", "");
    fs::remove_dir_all(worktree.path()).unwrap();
    symlink(fixture.path("precious"), worktree.path()).unwrap();
    fixture.repository().remove_worktree(worktree.path(), UncommittedPolicy::Discard).unwrap();
    assert!(fixture.path("precious/file").exists());
    assert!(!worktree.path().exists());
}

#[test]
fn a_temporary_worktree_of_a_commit() {
    let fixture = GitFixture::new();
    let repository = fixture.repository();
    let path = fixture.path("copy");
    let worktree = repository.add_detached(&path, &fixture.head()).unwrap();
    assert_eq!((worktree.head().unwrap().commit, worktree.branch()), (fixture.head(), None));
    write(&path, "build/output", "");
    repository.remove_worktree(&path, UncommittedPolicy::Discard).unwrap();
    assert!(!path.exists());
}

#[test]
fn a_held_lock_is_an_error_that_names_the_lock() {
    let fixture = GitFixture::new();
    let held = fixture.root().join(".git/signoff/lock");
    fixture.worktree("one");
    let file = fs::File::open(&held).unwrap();
    file.lock().unwrap();
    let start = fixture.head();
    let locked = add(&fixture.with_short_timeout(), &fixture.path("two"), "two", &start);
    assert!(matches!(locked, Err(GitError::Locked { file }) if file == held));
    file.unlock().unwrap();
    add(&fixture.with_short_timeout(), &fixture.path("two"), "two", &start).unwrap();
}

#[test]
fn a_waiting_process_reports_the_git_lock_of_the_holder() {
    let fixture = GitFixture::new();
    fixture.worktree("one");
    let lock = fixture.root().join(".git/refs/heads/two.lock");
    fs::write(&lock, "").unwrap();
    let (repository, start) = (fixture.with_short_timeout(), fixture.head());
    add(&repository, &fixture.path("two"), "two", &start).unwrap_err();
    // Hold the lock as if the first process still waited.
    let own_lock = fs::File::open(fixture.root().join(".git/signoff/lock")).unwrap();
    own_lock.lock().unwrap();
    let locked = add(&repository, &fixture.path("three"), "three", &start);
    assert!(matches!(&locked, Err(GitError::Locked { file }) if file.ends_with("refs/heads/two.lock")), "{locked:?}");
}

#[test]
fn a_ref_that_stays_locked_is_an_error_that_names_the_lock() {
    let fixture = GitFixture::new();
    let lock = fixture.root().join(".git/refs/heads/two.lock");
    fs::write(&lock, "").unwrap();
    let locked = add(&fixture.with_short_timeout(), &fixture.path("two"), "two", &fixture.head());
    assert!(matches!(&locked, Err(GitError::Locked { file }) if file.ends_with("refs/heads/two.lock")), "{locked:?}");
    fs::remove_file(&lock).unwrap();
    add(&fixture.with_short_timeout(), &fixture.path("two"), "two", &fixture.head()).unwrap();
}

#[test]
fn secrets_are_copied_in_and_never_committed() {
    let fixture = GitFixture::new();
    fixture.write(".env", "KEY=1");
    fixture.write("conf/local.toml", "a = 1");
    fixture.write("README.md", "changed by the user");
    symlink("/etc/hosts", fixture.root().join("hosts")).unwrap();
    let before = fixture.checkout_fingerprint();
    let worktree = fixture.worktree("one");
    let names = [".env", "conf/local.toml", "hosts", "README.md", "nowhere", "src"].map(str::to_owned);
    let copied = worktree.copy_files(&names).unwrap();
    assert_eq!(copied, [".env", "conf/local.toml", "hosts"].map(std::path::PathBuf::from));
    assert_eq!(fs::read_link(worktree.path().join("hosts")).unwrap(), Path::new("/etc/hosts"));
    assert_eq!(fs::read_to_string(worktree.path().join("README.md")).unwrap(), "hello\n");

    assert!(!worktree.commit_all("nothing").unwrap().made);
    fixture.run_in(worktree.path(), &["add", "-f", ".env"]);
    write(worktree.path(), "work", "");
    assert!(worktree.commit_all("work").unwrap().made);
    assert_eq!(fixture.run(&["ls-tree", "-r", "--name-only", "loop/one"]), "README.md\nsrc/main.rs\nwork\n");

    symlink("/tmp", worktree.path().join("out")).unwrap();
    for name in ["../x", "/etc/passwd", "a/../../x", "out/x", ".git/config", ""] {
        let refused = worktree.copy_files(&[name.to_owned()]);
        assert!(matches!(refused, Err(GitError::OutsideWorktree(_))), "{name}");
    }
    assert_eq!(fixture.checkout_fingerprint(), before);
}

#[test]
fn a_truncated_marker_is_ignored() {
    let fixture = GitFixture::new();
    let admin = fixture.root().join(".git/worktrees/one");
    fixture.worktree("one");
    fs::remove_file(admin.join("index")).unwrap();
    fs::rename(admin.join("signoff-owned"), admin.join("signoff-owned.new")).unwrap();
    fs::write(admin.join("signoff-owned.new"), "").unwrap();
    assert_eq!(fixture.worktree("one").branch(), Some("loop/one"));
    assert_eq!(fs::read_to_string(admin.join("signoff-owned")).unwrap(), "loop/one");
    assert!(!admin.join("signoff-owned.new").exists());
}

/// `git worktree add` writes `gitdir` first. If it is killed after that, git cannot read the worktree.
#[test]
fn a_worktree_that_git_could_not_finish_is_created_again() {
    for missing in [["HEAD"].as_slice(), &["commondir"], &["HEAD", "commondir"]] {
        let fixture = GitFixture::new();
        let admin = fixture.root().join(".git/worktrees/one");
        let worktree = fixture.worktree("one");
        let link = fs::read(worktree.path().join(".git")).unwrap();
        fs::remove_dir_all(worktree.path()).unwrap();
        write(worktree.path(), ".git", std::str::from_utf8(&link).unwrap());
        for name in ["index", "signoff-owned"].iter().chain(missing) {
            fs::remove_file(admin.join(name)).unwrap();
        }
        fs::write(admin.join("locked"), "initializing").unwrap();
        let again = fixture.worktree("one");
        assert_eq!(fixture.run_in(again.path(), &["status", "--porcelain"]), "", "{missing:?}");
        assert_eq!(again.branch(), Some("loop/one"));
    }
}

#[test]
fn a_link_in_place_of_a_worktree_is_replaced_but_not_followed() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let snapshot = snapshot(&worktree);
    write(&fixture.path("precious"), ".git/HEAD", "");
    let replace = || {
        fs::remove_dir_all(worktree.path()).unwrap();
        symlink(fixture.path("precious"), worktree.path()).unwrap();
    };
    replace();
    assert!(matches!(worktree.commit_all("x"), Err(GitError::WorktreeGone(_))));
    worktree.undo_since(&snapshot).unwrap();
    assert!(worktree.path().join("README.md").exists());
    replace();
    assert!(fixture.worktree("one").path().join("README.md").exists());
    let start = fixture.head();
    let new = NewWorktree { path: worktree.path(), branch: "loop/one", start: &start };
    replace();
    fs::remove_dir_all(fixture.root().join(".git/worktrees/one")).unwrap();
    assert!(
        matches!(fixture.repository().add_worktree(&new), Err(GitError::NotOurs(_))),
        "the directory may belong to the user"
    );
    assert!(fixture.repository().repair_worktree(&new).unwrap().path().join("README.md").exists());
    assert!(fixture.path("precious/.git/HEAD").exists());
    assert_eq!(fs::read_dir(fixture.path("precious")).unwrap().count(), 1);
}
