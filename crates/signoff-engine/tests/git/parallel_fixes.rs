//! Parallel fixes: made in separate worktrees, then combined.

use std::fs;
use std::os::unix::fs::symlink;

use signoff_core::ids::Commit;
use signoff_core::machine::Head;
use signoff_engine::git::{CombinedFixes, Repository};

use crate::git::fixture::{GitFixture, write};

/// Creates a repository with three files of several lines. Returns its tip.
fn begin() -> (GitFixture, Repository, Head) {
    let fixture = GitFixture::new();
    for name in ["a", "b", "c"] {
        fixture.write(name, "1\n2\n3\n4\n5\n6\n7\n8\n");
    }
    fixture.commit("files");
    let repository = fixture.repository();
    let tip = repository.land_target("main").unwrap().unwrap().tip;
    (fixture, repository, tip)
}

/// Runs a shell script in a separate worktree and commits the result.
fn separate_commit(fixture: &GitFixture, repository: &Repository, number: usize, script: &str) -> (usize, Commit) {
    let path = fixture.path("trees").join(format!("part-{number}"));
    let start = repository.land_target("main").unwrap().unwrap().tip.commit;
    let worktree = repository.parallel_worktree(&path, || Ok(start)).unwrap();
    assert_eq!(fixture.shell(&path, &format!("set -e; {script}; echo done")), "done\n", "{script}");
    (number, worktree.commit_all(&format!("Part {number}")).unwrap().head.commit)
}

fn combine(repository: &Repository, tip: &Head, parts: &[(usize, Commit)]) -> CombinedFixes {
    repository.combine_fixes(&tip.commit, tip, parts, "Parts").unwrap()
}

/// Lists the combined commits with their files, oldest first.
fn log(fixture: &GitFixture, tip: &Head, combined: &CombinedFixes) -> String {
    let range = format!("{}..{}", tip.commit, combined.head.commit);
    let log = fixture.run(&["log", "--reverse", "--format=%s", "--name-status", "--no-renames", &range]);
    log.replace("\n\n", ": ").replace('\t', " ")
}

#[test]
fn independent_changes_become_a_linear_history() {
    let (fixture, repository, tip) = begin();
    let before = fixture.checkout_fingerprint();
    let scripts = ["echo x >> a", "rm b; echo new > d", "chmod +x c"];
    let parts: Vec<_> =
        (0..).zip(scripts).map(|(number, script)| separate_commit(&fixture, &repository, number, script)).collect();
    let combined = combine(&repository, &tip, &parts);
    assert_eq!(combined.included, [0, 1, 2]);
    insta::assert_snapshot!(log(&fixture, &tip, &combined), @"
    Part 0: M a
    Part 1: D b
    A d
    Part 2: M c
    ");
    assert_eq!(fixture.checkout_fingerprint(), before);
}

#[test]
fn of_overlapping_changes_the_first_is_kept() {
    let overlaps = [
        ("other lines of one file", "sed -i 1d a", "sed -i '$d' a"),
        ("the same change", "echo x >> a", "echo x >> a"),
        ("renamed and changed", "git mv a d", "sed -i 1d a"),
        ("changed and renamed", "sed -i 1d a", "git mv a d"),
        ("renamed to one name", "git mv a d", "git mv b d"),
        ("deleted and changed", "rm a", "sed -i 1d a"),
        ("new under one name", "echo 1 > d", "echo 2 > d"),
        ("a file and a directory", "echo 1 > d", "mkdir d; echo 2 > d/e"),
        ("a directory and a file", "mkdir d; echo 2 > d/e", "echo 1 > d"),
        ("mode and content", "chmod +x a", "echo x >> a"),
    ];
    for (name, first, second) in overlaps {
        let (fixture, repository, tip) = begin();
        let parts =
            [separate_commit(&fixture, &repository, 0, first), separate_commit(&fixture, &repository, 1, second)];
        let both = combine(&repository, &tip, &parts);
        assert_eq!(both.included, [0], "{name}");
        let alone = combine(&repository, &tip, &parts[..1]);
        assert_eq!(both.head.tree, alone.head.tree, "{name}");
        let turned = [parts[1].clone(), parts[0].clone()];
        assert_eq!(combine(&repository, &tip, &turned).included, [1], "{name}");
    }
}

#[test]
fn a_dropped_change_does_not_block_later_ones() {
    let (fixture, repository, tip) = begin();
    let scripts = ["echo x >> a", "echo x >> a; echo x >> b", "echo x >> b"];
    let parts: Vec<_> =
        (0..).zip(scripts).map(|(number, script)| separate_commit(&fixture, &repository, number, script)).collect();
    assert_eq!(combine(&repository, &tip, &parts).included, [0, 2]);
}

#[test]
fn an_empty_change_is_kept_and_a_missing_commit_is_dropped() {
    let (fixture, repository, tip) = begin();
    let idle = separate_commit(&fixture, &repository, 0, "true");
    assert_eq!(idle.1, tip.commit);
    let gone = (1, Commit::new("1234567890123456789012345678901234567890"));
    let combined = combine(&repository, &tip, &[idle, gone]);
    assert_eq!(combined, CombinedFixes { included: vec![0], head: tip });
}

#[test]
fn several_commits_of_one_fix_stay_separate() {
    let (fixture, repository, tip) = begin();
    let own = "echo x >> a; git commit -qam One; echo y >> a; git commit -qam Two; echo z >> a";
    let parts =
        [separate_commit(&fixture, &repository, 0, own), separate_commit(&fixture, &repository, 1, "echo x >> b")];
    insta::assert_snapshot!(log(&fixture, &tip, &combine(&repository, &tip, &parts)), @"
    One: M a
    Two: M a
    Part 0: M a
    Part 1: M b
    ");
}

#[test]
fn changes_are_combined_on_top_of_a_moved_tip() {
    let (fixture, repository, from) = begin();
    let parts = [
        separate_commit(&fixture, &repository, 0, "echo x >> a"),
        separate_commit(&fixture, &repository, 1, "sed -i '$d' b"),
    ];
    fixture.write("b", "0\n1\n2\n3\n4\n5\n6\n7\n8\n");
    fixture.commit("meanwhile");
    let tip = repository.land_target("main").unwrap().unwrap().tip;
    let combined = repository.combine_fixes(&from.commit, &tip, &parts, "Parts").unwrap();
    assert_eq!(combined.included, [0, 1]);
    assert_eq!(fixture.run(&["show", &format!("{}:b", combined.head.commit)]), "0\n1\n2\n3\n4\n5\n6\n7\n");
}

#[test]
fn an_existing_worktree_is_reused_with_its_files() {
    let (fixture, repository, tip) = begin();
    let path = fixture.path("trees/part");
    let make = || repository.parallel_worktree(&path, || Ok(tip.commit.clone())).unwrap();
    make();
    write(&path, "a", "work\n");
    assert_eq!(make().path(), path);
    assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "work\n");
}

type Damage = fn(&GitFixture);

#[test]
fn a_damaged_worktree_is_created_again() {
    let damages: [(&str, Damage); 5] = [
        ("files deleted", |fixture| fs::remove_dir_all(fixture.path("trees/part")).unwrap()),
        ("git directory deleted", |fixture| fs::remove_dir_all(fixture.root().join(".git/worktrees/part")).unwrap()),
        ("a link in its place", |fixture| {
            fs::remove_dir_all(fixture.path("trees/part")).unwrap();
            symlink(fixture.root(), fixture.path("trees/part")).unwrap();
        }),
        ("a file in its place", |fixture| {
            fs::remove_dir_all(fixture.path("trees/part")).unwrap();
            fs::write(fixture.path("trees/part"), "here").unwrap();
        }),
        ("HEAD emptied", |fixture| fs::write(fixture.root().join(".git/worktrees/part/HEAD"), "").unwrap()),
    ];
    for (name, damage) in damages {
        let (fixture, repository, tip) = begin();
        let before = fixture.checkout_fingerprint();
        let path = fixture.path("trees/part");
        let make = || repository.parallel_worktree(&path, || Ok(tip.commit.clone())).unwrap();
        make();
        damage(&fixture);
        let made = make();
        assert_eq!(made.head().unwrap(), tip, "{name}");
        assert_eq!(fixture.run_in(&path, &["status", "--porcelain"]), "", "{name}");
        repository.remove_parallel_worktree(&path).unwrap();
        repository.remove_parallel_worktree(&path).unwrap();
        assert!(!path.exists(), "{name}");
        assert_eq!(fixture.run(&["worktree", "list"]).lines().count(), 1, "{name}");
        assert_eq!(fixture.checkout_fingerprint(), before, "{name}");
    }
}

#[test]
fn kept_commits_survive_gc_until_they_are_released() {
    let (fixture, repository, tip) = begin();
    let (_, commit) = separate_commit(&fixture, &repository, 0, "echo x >> a");
    for name in ["1/7/1.1.1.0", "1/7/1.1.1.1", "1/71/1.1.1.0"] {
        repository.keep_parallel_commit(name, &commit).unwrap();
    }
    repository.remove_parallel_worktree(&fixture.path("trees/part-0")).unwrap();
    fixture.run(&["gc", "-q", "--prune=now"]);
    assert_eq!(repository.parallel_commit("1/7/1.1.1.0").unwrap(), Some(commit.clone()));
    repository.delete_parallel_refs("1/7/1.1.1.0").unwrap();
    assert_eq!(repository.parallel_commit("1/7/1.1.1.0").unwrap(), None);
    assert_eq!(repository.parallel_commit("1/7/1.1.1.1").unwrap(), Some(commit.clone()));
    repository.delete_parallel_refs("1/7").unwrap();
    assert_eq!(repository.parallel_commit("1/7/1.1.1.1").unwrap(), None);
    assert_eq!(repository.parallel_commit("1/71/1.1.1.0").unwrap(), Some(commit));
    repository.delete_parallel_refs("1/7").unwrap();
    assert_eq!(repository.land_target("main").unwrap().unwrap().tip, tip);
}

#[test]
fn malformed_commits_can_be_combined() {
    let (fixture, repository, tip) = begin();
    let odd = |author: &str, message: &str| {
        format!(
            "git add -A; tree=$(git write-tree); head=$(git rev-parse HEAD); commit=$( (printf \
             'tree %s\\nparent %s\\nauthor {author}\\ncommitter C <c@example.org> 1700000000 +0000\\n\\n' $tree $head; \
             {message}) | git hash-object -t commit -w --stdin --literally); git update-ref HEAD $commit"
        )
    };
    let long = odd("A <a@example.org> 1700000000 +0000", "head -c 300000 /dev/zero | tr '\\0' x");
    let scripts = [
        "echo x >> a".to_owned(),
        format!("echo x >> b; {}", odd(" <> 1700000000 +0000", "echo Nobody")),
        format!("echo x >> c; {long}"),
        format!("echo x > d; {}", odd("A <a@example.org> 7 +0000", "echo Long ago")),
    ];
    let parts: Vec<_> =
        (0..).zip(&scripts).map(|(number, script)| separate_commit(&fixture, &repository, number, script)).collect();
    let combined = combine(&repository, &tip, &parts);
    assert_eq!(combined.included, [0, 1, 2, 3]);
    let log = |format: &str| {
        let range = format!("{}..{}", tip.commit, combined.head.commit);
        fixture.run(&["log", "--reverse", &format!("--format={format}"), &range])
    };
    let longest = log("%s").lines().map(str::len).max();
    assert_eq!(longest, Some(300_000));
    assert!(log("%an").lines().all(|name| !name.is_empty()), "{}", log("%an"));
}
