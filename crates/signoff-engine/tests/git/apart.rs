//! Work done side by side: kept apart, then put together.

use std::fs;
use std::os::unix::fs::symlink;

use signoff_core::ids::Commit;
use signoff_core::machine::Head;
use signoff_engine::git::{Repository, Together};

use crate::place::{Place, write};

/// A repository with three files of several lines, and where it is.
fn begin() -> (Place, Repository, Head) {
    let place = Place::new();
    for name in ["a", "b", "c"] {
        place.write(name, "1\n2\n3\n4\n5\n6\n7\n8\n");
    }
    place.commit("files");
    let repository = place.repository();
    let tip = repository.target("main").unwrap().unwrap().tip;
    (place, repository, tip)
}

/// A commit that is made apart by a shell script.
fn part(place: &Place, repository: &Repository, number: usize, script: &str) -> (usize, Commit) {
    let path = place.path("trees").join(format!("part-{number}"));
    let start = repository.target("main").unwrap().unwrap().tip.commit;
    let worktree = repository.apart(&path, || Ok(start)).unwrap();
    assert_eq!(place.shell(&path, &format!("set -e; {script}; echo done")), "done\n", "{script}");
    (number, worktree.commit_all(&format!("Part {number}")).unwrap().head.commit)
}

fn together(repository: &Repository, tip: &Head, parts: &[(usize, Commit)]) -> Together {
    repository.put_together((&tip.commit, tip), parts, "Parts").unwrap()
}

/// The commits of it with their files, the oldest first.
fn told(place: &Place, tip: &Head, together: &Together) -> String {
    let range = format!("{}..{}", tip.commit, together.head.commit);
    let log = place.run(&["log", "--reverse", "--format=%s", "--name-status", "--no-renames", &range]);
    log.replace("\n\n", ": ").replace('\t', " ")
}

#[test]
fn what_has_nothing_in_common_becomes_one_line() {
    let (place, repository, tip) = begin();
    let before = place.person();
    let scripts = ["echo x >> a", "rm b; echo new > d", "chmod +x c"];
    let parts: Vec<_> =
        (0..).zip(scripts).map(|(number, script)| part(&place, &repository, number, script)).collect();
    let together = together(&repository, &tip, &parts);
    assert_eq!(together.kept, [0, 1, 2]);
    insta::assert_snapshot!(told(&place, &tip, &together), @"
    Part 0: M a
    Part 1: D b
    A d
    Part 2: M c
    ");
    assert_eq!(place.person(), before);
}

#[test]
fn who_comes_first_is_kept() {
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
        let (place, repository, tip) = begin();
        let parts = [part(&place, &repository, 0, first), part(&place, &repository, 1, second)];
        let both = together(&repository, &tip, &parts);
        assert_eq!(both.kept, [0], "{name}");
        let alone = together(&repository, &tip, &parts[..1]);
        assert_eq!(both.head.tree, alone.head.tree, "{name}");
        let turned = [parts[1].clone(), parts[0].clone()];
        assert_eq!(together(&repository, &tip, &turned).kept, [1], "{name}");
    }
}

#[test]
fn who_is_left_out_is_in_nobodys_way() {
    let (place, repository, tip) = begin();
    let scripts = ["echo x >> a", "echo x >> a; echo x >> b", "echo x >> b"];
    let parts: Vec<_> =
        (0..).zip(scripts).map(|(number, script)| part(&place, &repository, number, script)).collect();
    assert_eq!(together(&repository, &tip, &parts).kept, [0, 2]);
}

#[test]
fn who_changed_nothing_is_kept_and_what_is_gone_is_not() {
    let (place, repository, tip) = begin();
    let idle = part(&place, &repository, 0, "true");
    assert_eq!(idle.1, tip.commit);
    let gone = (1, Commit::new("1234567890123456789012345678901234567890"));
    let together = together(&repository, &tip, &[idle, gone]);
    assert_eq!(together, Together { kept: vec![0], head: tip });
}

#[test]
fn several_commits_of_one_stay_several() {
    let (place, repository, tip) = begin();
    let own = "echo x >> a; git commit -qam One; echo y >> a; git commit -qam Two; echo z >> a";
    let parts = [part(&place, &repository, 0, own), part(&place, &repository, 1, "echo x >> b")];
    insta::assert_snapshot!(told(&place, &tip, &together(&repository, &tip, &parts)), @"
    One: M a
    Two: M a
    Part 0: M a
    Part 1: M b
    ");
}

#[test]
fn it_goes_on_top_of_what_came_meanwhile() {
    let (place, repository, from) = begin();
    let parts = [part(&place, &repository, 0, "echo x >> a"), part(&place, &repository, 1, "sed -i '$d' b")];
    place.write("b", "0\n1\n2\n3\n4\n5\n6\n7\n8\n");
    place.commit("meanwhile");
    let tip = repository.target("main").unwrap().unwrap().tip;
    let together = repository.put_together((&from.commit, &tip), &parts, "Parts").unwrap();
    assert_eq!(together.kept, [0, 1]);
    assert_eq!(place.run(&["show", &format!("{}:b", together.head.commit)]), "0\n1\n2\n3\n4\n5\n6\n7\n");
}

#[test]
fn a_place_apart_is_found_again_with_what_is_in_it() {
    let (place, repository, tip) = begin();
    let path = place.path("trees/part");
    let make = || repository.apart(&path, || Ok(tip.commit.clone())).unwrap();
    make();
    write(&path, "a", "work\n");
    assert_eq!(make().path(), path);
    assert_eq!(fs::read_to_string(path.join("a")).unwrap(), "work\n");
}

type Damage = fn(&Place);

#[test]
fn a_place_apart_is_made_again_whatever_became_of_it() {
    let damages: [(&str, Damage); 5] = [
        ("files deleted", |place| fs::remove_dir_all(place.path("trees/part")).unwrap()),
        ("git directory deleted", |place| {
            fs::remove_dir_all(place.root().join(".git/worktrees/part")).unwrap()
        }),
        ("a link in its place", |place| {
            fs::remove_dir_all(place.path("trees/part")).unwrap();
            symlink(place.root(), place.path("trees/part")).unwrap();
        }),
        ("a file in its place", |place| {
            fs::remove_dir_all(place.path("trees/part")).unwrap();
            fs::write(place.path("trees/part"), "here").unwrap();
        }),
        ("HEAD emptied", |place| fs::write(place.root().join(".git/worktrees/part/HEAD"), "").unwrap()),
    ];
    for (name, damage) in damages {
        let (place, repository, tip) = begin();
        let before = place.person();
        let path = place.path("trees/part");
        let make = || repository.apart(&path, || Ok(tip.commit.clone())).unwrap();
        make();
        damage(&place);
        let made = make();
        assert_eq!(made.head().unwrap(), tip, "{name}");
        assert_eq!(place.run_in(&path, &["status", "--porcelain"]), "", "{name}");
        repository.clear_apart(&path).unwrap();
        repository.clear_apart(&path).unwrap();
        assert!(!path.exists(), "{name}");
        assert_eq!(place.run(&["worktree", "list"]).lines().count(), 1, "{name}");
        assert_eq!(place.person(), before, "{name}");
    }
}

#[test]
fn what_is_kept_is_kept_until_it_is_forgotten() {
    let (place, repository, tip) = begin();
    let (_, commit) = part(&place, &repository, 0, "echo x >> a");
    for name in ["1/7/1.1.1.0", "1/7/1.1.1.1", "1/71/1.1.1.0"] {
        repository.keep_apart(name, &commit).unwrap();
    }
    repository.clear_apart(&place.path("trees/part-0")).unwrap();
    place.run(&["gc", "-q", "--prune=now"]);
    assert_eq!(repository.kept_apart("1/7/1.1.1.0").unwrap(), Some(commit.clone()));
    repository.forget_apart("1/7/1.1.1.0").unwrap();
    assert_eq!(repository.kept_apart("1/7/1.1.1.0").unwrap(), None);
    assert_eq!(repository.kept_apart("1/7/1.1.1.1").unwrap(), Some(commit.clone()));
    repository.forget_apart("1/7").unwrap();
    assert_eq!(repository.kept_apart("1/7/1.1.1.1").unwrap(), None);
    assert_eq!(repository.kept_apart("1/71/1.1.1.0").unwrap(), Some(commit));
    repository.forget_apart("1/7").unwrap();
    assert_eq!(repository.target("main").unwrap().unwrap().tip, tip);
}

#[test]
fn commits_that_git_would_not_make_are_put_together_all_the_same() {
    let (place, repository, tip) = begin();
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
        (0..).zip(&scripts).map(|(number, script)| part(&place, &repository, number, script)).collect();
    let together = together(&repository, &tip, &parts);
    assert_eq!(together.kept, [0, 1, 2, 3]);
    let told = |format: &str| {
        let range = format!("{}..{}", tip.commit, together.head.commit);
        place.run(&["log", "--reverse", &format!("--format={format}"), &range])
    };
    let longest = told("%s").lines().map(str::len).max();
    assert_eq!(longest, Some(300_000));
    assert!(told("%an").lines().all(|name| !name.is_empty()), "{}", told("%an"));
}
