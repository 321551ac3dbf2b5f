//! Worktrees: made, taken up again, removed.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use signoff_core::ids::Commit;
use signoff_engine::git::{GitError, NewWorktree, Repository, Uncommitted, Worktree};

use crate::place::{Place, write};

fn add(repository: &Repository, path: &Path, branch: &str, start: &Commit) -> Result<Worktree, GitError> {
    repository.add_worktree(&NewWorktree { path, branch, start })
}

#[test]
fn a_worktree_has_the_files_and_a_branch_of_its_own() {
    let place = Place::new();
    let before = place.person();
    let start = place.head();
    let path = place.path("trees/with space\nand \"line\"");
    let worktree = add(&place.repository(), &path, "loop/grün", &start).unwrap();
    assert_eq!(fs::read_to_string(path.join("src/main.rs")).unwrap(), "fn main() {}\n");
    assert_eq!(worktree.head().unwrap().commit, start);
    assert_eq!((worktree.path(), worktree.branch()), (path.as_path(), Some("loop/grün")));
    assert!(worktree.is_there());
    assert_eq!(place.run_in(&path, &["branch", "--show-current"]), "loop/grün\n");
    assert_eq!(place.run_in(&path, &["status", "--porcelain"]), "");
    assert_eq!(place.person(), before);
}

#[test]
fn it_starts_from_the_recorded_commit_and_not_from_the_checkout() {
    let place = Place::new();
    let start = place.head();
    place.write("later", "later");
    place.commit("later");
    let worktree = add(&place.repository(), &place.path("one"), "one", &start).unwrap();
    assert_eq!(worktree.head().unwrap().commit, start);
    assert!(!worktree.path().join("later").exists());
}

#[test]
fn twenty_four_at_once() {
    let place = Place::new();
    let before = place.person();
    let start = place.head();
    let shared = place.repository();
    std::thread::scope(|scope| {
        for number in 0..24 {
            let (place, start, shared) = (&place, &start, &shared);
            scope.spawn(move || {
                let path = place.path("trees").join(number.to_string());
                // Every other one as if it were a program of its own.
                let repository = if number % 2 == 0 { shared.clone() } else { place.repository() };
                let made = add(&repository, &path, &format!("loop/{number}"), start).unwrap();
                assert_eq!(made.head().unwrap().commit, *start);
            });
        }
    });
    assert_eq!(place.run(&["worktree", "list"]).lines().count(), 25);
    assert_eq!(place.run(&["branch", "--list", "loop/*"]).lines().count(), 24);
    place.run(&["fsck", "--strict"]);
    assert_eq!(place.person(), before);
}

#[test]
fn what_is_there_is_taken_up_again() {
    let place = Place::new();
    let worktree = place.worktree("one");
    write(worktree.path(), "new", "work");
    let head = worktree.commit_all("work").unwrap().head;
    write(worktree.path(), "unsaved", "more");
    let again = place.worktree("one");
    assert_eq!(again.head().unwrap(), head);
    assert_eq!(fs::read_to_string(again.path().join("unsaved")).unwrap(), "more");
    let opened = place.repository().worktree(worktree.path()).unwrap();
    assert_eq!(opened.branch(), Some("loop/one"));
}

#[test]
fn a_worktree_deleted_underneath_comes_back_from_its_branch() {
    let place = Place::new();
    let worktree = place.worktree("one");
    write(worktree.path(), "new", "work");
    let head = worktree.commit_all("work").unwrap().head;
    fs::remove_dir_all(worktree.path()).unwrap();
    assert!(!worktree.is_there());
    assert!(matches!(worktree.head(), Err(GitError::WorktreeGone(_))));
    assert!(matches!(worktree.commit_all("x"), Err(GitError::WorktreeGone(_))));

    let again = place.worktree("one");
    assert_eq!(again.head().unwrap(), head);
    assert_eq!(fs::read_to_string(again.path().join("new")).unwrap(), "work");
    assert_eq!(place.run_in(again.path(), &["status", "--porcelain"]), "");

    fs::remove_dir_all(worktree.path()).unwrap();
    place.run(&["worktree", "prune"]);
    assert_eq!(place.worktree("one").head().unwrap(), head);
}

#[test]
fn a_branch_whose_worktree_is_gone_may_move_to_another_place() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let start = place.head();
    let elsewhere = place.path("elsewhere");
    let taken = add(&place.repository(), &elsewhere, "loop/one", &start);
    assert!(matches!(taken, Err(GitError::BranchTaken { by: Some(by), .. }) if by == worktree.path()));
    fs::remove_dir_all(worktree.path()).unwrap();
    assert_eq!(add(&place.repository(), &elsewhere, "loop/one", &start).unwrap().path(), elsewhere);
}

type Cut<'a> = &'a dyn Fn(&Worktree);

/// What a kill at each step of making a worktree leaves behind.
#[test]
fn a_half_made_worktree_is_finished() {
    let place = Place::new();
    let admin = place.root().join(".git/worktrees/one");
    let cuts: [(&str, Cut<'_>); 4] = [
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
        cut(&place.worktree("one"));
        let worktree = place.worktree("one");
        assert_eq!(place.run_in(worktree.path(), &["status", "--porcelain"]), "", "{when}");
        assert!(worktree.path().join("src/main.rs").exists(), "{when}");
    }
}

#[test]
fn what_is_not_ours_is_neither_used_nor_deleted() {
    let place = Place::new();
    let start = place.head();
    place.run(&["branch", "theirs"]);
    place.run(&["worktree", "add", "-q", "-b", "side", "../side"]);
    write(&place.path("full"), "file", "precious");
    let repository = place.repository();
    let before = place.person();
    let side = place.path("side");

    assert!(matches!(
        add(&repository, &place.path("new"), "theirs", &start),
        Err(GitError::BranchTaken { by: None, .. })
    ));
    assert!(matches!(
        add(&repository, &place.path("new"), "main", &start),
        Err(GitError::BranchTaken { by: Some(by), .. }) if by == place.root()
    ));
    assert!(matches!(add(&repository, &side, "side", &start), Err(GitError::NotOurs(_))));
    assert!(matches!(add(&repository, &place.path("full"), "new", &start), Err(GitError::NotOurs(_))));
    for branch in ["-x", "", "a..b", "a b"] {
        assert!(add(&repository, &place.path("new"), branch, &start).is_err(), "{branch}");
    }
    for path in [&side, &place.path("full"), &place.root()] {
        for how in [Uncommitted::Keep, Uncommitted::Discard] {
            let refused = repository.remove_worktree(path, how);
            assert!(matches!(refused, Err(GitError::NotOurs(_) | GitError::WorktreeGone(_))), "{path:?}");
        }
    }
    assert!(matches!(repository.delete_branch("theirs"), Err(GitError::BranchTaken { .. })));
    assert!(place.path("full/file").exists() && side.join("README.md").exists());
    assert_eq!(place.person(), before);
}

#[test]
fn removing_loses_no_work() {
    let place = Place::new();
    let repository = place.repository();
    let worktree = place.worktree("one");
    write(worktree.path(), "new", "work");
    let kept = repository.remove_worktree(worktree.path(), Uncommitted::Keep);
    assert!(matches!(kept, Err(GitError::UncommittedWork(_))));
    let head = worktree.commit_all("work").unwrap().head;

    place.run_in(worktree.path(), &["checkout", "-q", "--detach"]);
    place.run_in(worktree.path(), &["commit", "-q", "--allow-empty", "-m", "away"]);
    let kept = repository.remove_worktree(worktree.path(), Uncommitted::Keep);
    assert!(matches!(kept, Err(GitError::Astray { .. })));
    place.run_in(worktree.path(), &["checkout", "-q", "loop/one"]);

    assert!(matches!(repository.delete_branch("loop/one"), Err(GitError::BranchTaken { .. })));
    write(worktree.path(), "closed/file", "");
    fs::write(worktree.path().join(".gitignore"), "closed\n.gitignore\n").unwrap();
    fs::set_permissions(worktree.path().join("closed"), fs::Permissions::from_mode(0o500)).unwrap();
    repository.remove_worktree(worktree.path(), Uncommitted::Keep).unwrap();
    assert!(!worktree.path().exists());
    assert_eq!(repository.head_of("loop/one").unwrap(), Some(head));
    assert_eq!(place.run(&["worktree", "list"]).lines().count(), 1);

    repository.delete_branch("loop/one").unwrap();
    assert!(!repository.has_branch("loop/one").unwrap());
    assert_eq!(place.run(&["for-each-ref", "refs/signoff"]), "");
    repository.delete_branch("loop/one").unwrap();
}

#[test]
fn a_worktree_replaced_by_a_link_takes_nothing_else_along() {
    let place = Place::new();
    let worktree = place.worktree("one");
    write(&place.path("precious"), "file", "");
    fs::remove_dir_all(worktree.path()).unwrap();
    symlink(place.path("precious"), worktree.path()).unwrap();
    place.repository().remove_worktree(worktree.path(), Uncommitted::Discard).unwrap();
    assert!(place.path("precious/file").exists());
    assert!(!worktree.path().exists());
}

#[test]
fn a_throw_away_worktree_of_a_commit() {
    let place = Place::new();
    let repository = place.repository();
    let path = place.path("copy");
    let worktree = repository.add_detached(&path, &place.head()).unwrap();
    assert_eq!((worktree.head().unwrap().commit, worktree.branch()), (place.head(), None));
    write(&path, "build/output", "");
    repository.remove_worktree(&path, Uncommitted::Discard).unwrap();
    assert!(!path.exists());
}

#[test]
fn a_turn_that_never_comes_is_an_error_that_names_the_lock() {
    let place = Place::new();
    let held = place.root().join(".git/signoff/lock");
    place.worktree("one");
    let file = fs::File::open(&held).unwrap();
    file.lock().unwrap();
    let start = place.head();
    let locked = add(&place.impatient(), &place.path("two"), "two", &start);
    assert!(matches!(locked, Err(GitError::Locked { file }) if file == held));
    file.unlock().unwrap();
    add(&place.impatient(), &place.path("two"), "two", &start).unwrap();
}

#[test]
fn whoever_waits_behind_a_lock_of_git_s_is_told_that_lock() {
    let place = Place::new();
    place.worktree("one");
    let lock = place.root().join(".git/refs/heads/two.lock");
    fs::write(&lock, "").unwrap();
    let (repository, start) = (place.impatient(), place.head());
    add(&repository, &place.path("two"), "two", &start).unwrap_err();
    // As if that one waited still.
    let turn = fs::File::open(place.root().join(".git/signoff/lock")).unwrap();
    turn.lock().unwrap();
    let locked = add(&repository, &place.path("three"), "three", &start);
    assert!(
        matches!(&locked, Err(GitError::Locked { file }) if file.ends_with("refs/heads/two.lock")),
        "{locked:?}"
    );
}

#[test]
fn a_ref_that_stays_locked_is_an_error_that_names_the_lock() {
    let place = Place::new();
    let lock = place.root().join(".git/refs/heads/two.lock");
    fs::write(&lock, "").unwrap();
    let locked = add(&place.impatient(), &place.path("two"), "two", &place.head());
    assert!(
        matches!(&locked, Err(GitError::Locked { file }) if file.ends_with("refs/heads/two.lock")),
        "{locked:?}"
    );
    fs::remove_file(&lock).unwrap();
    add(&place.impatient(), &place.path("two"), "two", &place.head()).unwrap();
}

#[test]
fn secrets_are_copied_in_and_never_committed() {
    let place = Place::new();
    place.write(".env", "KEY=1");
    place.write("conf/local.toml", "a = 1");
    place.write("README.md", "changed by the person");
    symlink("/etc/hosts", place.root().join("hosts")).unwrap();
    let before = place.person();
    let worktree = place.worktree("one");
    let names = [".env", "conf/local.toml", "hosts", "README.md", "nowhere", "src"].map(str::to_owned);
    let copied = worktree.copy_files(&names).unwrap();
    assert_eq!(copied, [".env", "conf/local.toml", "hosts"].map(std::path::PathBuf::from));
    assert_eq!(fs::read_link(worktree.path().join("hosts")).unwrap(), Path::new("/etc/hosts"));
    assert_eq!(fs::read_to_string(worktree.path().join("README.md")).unwrap(), "hello\n");

    assert!(!worktree.commit_all("nothing").unwrap().made);
    place.run_in(worktree.path(), &["add", "-f", ".env"]);
    write(worktree.path(), "work", "");
    assert!(worktree.commit_all("work").unwrap().made);
    assert_eq!(place.run(&["ls-tree", "-r", "--name-only", "loop/one"]), "README.md\nsrc/main.rs\nwork\n");

    symlink("/tmp", worktree.path().join("out")).unwrap();
    for name in ["../x", "/etc/passwd", "a/../../x", "out/x", ".git/config", ""] {
        let refused = worktree.copy_files(&[name.to_owned()]);
        assert!(matches!(refused, Err(GitError::OutsideWorktree(_))), "{name}");
    }
    assert_eq!(place.person(), before);
}

#[test]
fn a_marker_that_was_cut_off_is_none() {
    let place = Place::new();
    let admin = place.root().join(".git/worktrees/one");
    place.worktree("one");
    fs::remove_file(admin.join("index")).unwrap();
    fs::rename(admin.join("signoff-owned"), admin.join("signoff-owned.new")).unwrap();
    fs::write(admin.join("signoff-owned.new"), "").unwrap();
    assert_eq!(place.worktree("one").branch(), Some("loop/one"));
    assert_eq!(fs::read_to_string(admin.join("signoff-owned")).unwrap(), "loop/one");
    assert!(!admin.join("signoff-owned.new").exists());
}

/// `git worktree add` writes `gitdir` first; killed after that, it leaves a worktree that git cannot read.
#[test]
fn a_worktree_that_git_was_killed_making_is_made_again() {
    for missing in [["HEAD"].as_slice(), &["commondir"], &["HEAD", "commondir"]] {
        let place = Place::new();
        let admin = place.root().join(".git/worktrees/one");
        let worktree = place.worktree("one");
        let link = fs::read(worktree.path().join(".git")).unwrap();
        fs::remove_dir_all(worktree.path()).unwrap();
        write(worktree.path(), ".git", std::str::from_utf8(&link).unwrap());
        for name in ["index", "signoff-owned"].iter().chain(missing) {
            fs::remove_file(admin.join(name)).unwrap();
        }
        fs::write(admin.join("locked"), "initializing").unwrap();
        let again = place.worktree("one");
        assert_eq!(place.run_in(again.path(), &["status", "--porcelain"]), "", "{missing:?}");
        assert_eq!(again.branch(), Some("loop/one"));
    }
}

#[test]
fn a_link_in_place_of_a_worktree_is_removed_and_what_it_leads_to_is_not() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let snapshot = worktree.snapshot().unwrap();
    write(&place.path("precious"), ".git/HEAD", "");
    let replace = || {
        fs::remove_dir_all(worktree.path()).unwrap();
        symlink(place.path("precious"), worktree.path()).unwrap();
    };
    replace();
    assert!(matches!(worktree.commit_all("x"), Err(GitError::WorktreeGone(_))));
    worktree.undo_since(&snapshot).unwrap();
    assert!(worktree.path().join("README.md").exists());
    replace();
    assert!(place.worktree("one").path().join("README.md").exists());
    let start = place.head();
    let new = NewWorktree { path: worktree.path(), branch: "loop/one", start: &start };
    replace();
    fs::remove_dir_all(place.root().join(".git/worktrees/one")).unwrap();
    assert!(
        matches!(place.repository().add_worktree(&new), Err(GitError::NotOurs(_))),
        "it may be anybody's"
    );
    assert!(place.repository().mend_worktree(&new).unwrap().path().join("README.md").exists());
    assert!(place.path("precious/.git/HEAD").exists());
    assert_eq!(fs::read_dir(place.path("precious")).unwrap().count(), 1);
}
