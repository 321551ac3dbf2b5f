//! Work joins its target: by a merge, or with the same changes on top.

use std::fs;
use std::path::PathBuf;

use signoff_core::ids::Commit;
use signoff_core::machine::Head;
use signoff_engine::git::{GitError, Merge, Moved, Replay, Repository, Target, Worktree};

use crate::place::{Place, write};

/// Makes a change in a worktree and commits it.
fn change(worktree: &Worktree, files: &[(&str, &str)], message: &str) -> Head {
    for (name, text) in files {
        write(worktree.path(), name, text);
    }
    worktree.commit_all(message).unwrap().head
}

fn target(repository: &Repository, branch: &str) -> Target {
    repository.target(branch).unwrap().unwrap()
}

/// Merges onto a branch as it is now.
fn merge(repository: &Repository, branch: &str, commit: &Commit) -> Merge {
    repository.merge_onto(&target(repository, branch).tip, commit, "Merge it").unwrap()
}

fn clean(merge: Merge) -> Head {
    match merge {
        Merge::Clean(head) => head,
        Merge::Contained | Merge::Conflicting { .. } => panic!("{merge:?}"),
    }
}

/// Lands a commit and tells where the branch is then.
fn land(repository: &Repository, branch: &str, commit: &Commit) -> Head {
    let head = clean(merge(repository, branch, commit));
    assert_eq!(repository.move_target(&target(repository, branch), &head.commit).unwrap(), Moved::Done);
    head
}

/// A run's branch, and two worktrees that began where it did.
fn two_loops(place: &Place) -> (Repository, [Worktree; 2]) {
    let repository = place.repository();
    repository.make_target("signoff/run-1", &place.head()).unwrap();
    let worktrees = [place.worktree("one"), place.worktree("two")];
    (repository, worktrees)
}

#[test]
fn both_are_in_and_the_checkout_is_untouched() {
    let place = Place::new();
    let (repository, [one, two]) = two_loops(&place);
    let (first, second) =
        (change(&one, &[("a.txt", "a\n")], "one"), change(&two, &[("b.txt", "b\n")], "two"));
    let before = place.person();
    land(&repository, "signoff/run-1", &first.commit);
    land(&repository, "signoff/run-1", &second.commit);
    assert_eq!(place.person(), before);
    insta::assert_snapshot!(place.run(&["log", "--graph", "--format=%s", "signoff/run-1"]), @r"
    *   Merge it
    |\  
    | * two
    * |   Merge it
    |\ \  
    | |/  
    |/|   
    | * one
    |/  
    * first
    ");
    assert_eq!(merge(&repository, "signoff/run-1", &first.commit), Merge::Contained, "it landed before");
}

#[test]
fn a_clean_landing_costs_few_processes() {
    let place = Place::new();
    let (repository, [one, _]) = two_loops(&place);
    let head = change(&one, &[("a.txt", "a\n")], "one");
    let before = place.git.processes();
    let target = target(&repository, "signoff/run-1");
    let merged = clean(repository.merge_onto(&target.tip, &head.commit, "Merge it").unwrap());
    repository.move_target(&target, &merged.commit).unwrap();
    assert!(repository.is_ancestor(head.commit.as_str(), "refs/heads/signoff/run-1").unwrap());
    assert_eq!(place.git.processes() - before, 5);
}

#[test]
fn a_conflict_is_a_commit_with_both_sides_in_its_files() {
    let place = Place::new();
    let (repository, [one, two]) = two_loops(&place);
    let first = change(&one, &[("README.md", "hello one\n")], "one");
    let second = change(&two, &[("README.md", "hello two\n"), ("b.txt", "b\n")], "two");
    let landed = land(&repository, "signoff/run-1", &first.commit);
    let Merge::Conflicting { head, files } = merge(&repository, "signoff/run-1", &second.commit) else {
        panic!("no conflict")
    };
    let told: Vec<String> =
        files.iter().map(|file| format!("{}: {}", file.path.display(), file.what)).collect();
    insta::assert_snapshot!(told.join("\n"), @"README.md: (content): Merge conflict in README.md");
    let show = |name: &str| place.run(&["show", &format!("{}:{name}", head.commit)]);
    let named =
        show("README.md").replace(second.commit.as_str(), "TWO").replace(landed.commit.as_str(), "LANDED");
    insta::assert_snapshot!(named, @"
    <<<<<<< TWO
    hello two
    =======
    hello one
    >>>>>>> LANDED
    ");
    assert_eq!(show("b.txt"), "b\n");
    let parents = place.run(&["log", "-1", "--format=%P", head.commit.as_str()]);
    assert_eq!(parents.trim(), format!("{} {}", second.commit, landed.commit));
    let marks = [second.commit.to_string(), landed.commit.to_string()];
    let files = [PathBuf::from("README.md"), PathBuf::from("b.txt")];
    let lines = repository.marked_lines(&head.commit, &marks, &files).unwrap();
    assert_eq!(lines.into_iter().collect::<Vec<_>>(), [(PathBuf::from("README.md"), 1)]);
    assert_eq!(repository.marked_lines(&second.commit, &marks, &files).unwrap().len(), 0);
    // The loop goes on from there.
    assert!(repository.advance("loop/two", &second.commit, &head.commit).unwrap());
    two.follow_branch(&head.commit).unwrap();
    assert_eq!(two.head().unwrap(), head);
    assert!(!two.commit_all("nothing").unwrap().made);
}

/// What git says about each file, after both sides did something to it.
fn told(place: &Place, one: &str, two: &str) -> String {
    let (repository, [first, second]) = two_loops(place);
    let did = |worktree: &Worktree, script: &str| {
        place.shell(worktree.path(), script);
        worktree.commit_all("did").unwrap().head
    };
    let (first, second) = (did(&first, one), did(&second, two));
    let landed = land(&repository, "signoff/run-1", &first.commit);
    match merge(&repository, "signoff/run-1", &second.commit) {
        Merge::Conflicting { files, .. } => files
            .iter()
            .map(|file| format!("{}: {}", file.path.display(), file.what))
            .collect::<Vec<_>>()
            .join("\n")
            .replace(second.commit.as_str(), "TWO")
            .replace(landed.commit.as_str(), "LANDED"),
        merge @ (Merge::Clean(_) | Merge::Contained) => format!("{merge:?}"),
    }
}

#[test]
fn all_kinds_of_conflicts_are_told() {
    let place = Place::new();
    insta::assert_snapshot!(told(&place, "rm README.md", "echo more >> README.md"), @"README.md: (modify/delete): README.md deleted in LANDED and modified in TWO.  Version TWO of README.md left in tree.");
    let place = Place::new();
    insta::assert_snapshot!(told(&place, "mv README.md A.md", "mv README.md B.md"), @"
    A.md: (rename/rename): README.md renamed to B.md in TWO and to A.md in LANDED.
    B.md: (rename/rename): README.md renamed to B.md in TWO and to A.md in LANDED.
    README.md: (rename/rename): README.md renamed to B.md in TWO and to A.md in LANDED.
    ");
    let place = Place::new();
    let (one, two) = ("printf 'a\\0b' > image", "printf 'a\\0c' > image");
    insta::assert_snapshot!(told(&place, one, two), @"image: warning: Cannot merge binary files: image (TWO vs. LANDED); (add/add): Merge conflict in image");
    let place = Place::new();
    let (one, two) = ("echo one > README.md", "chmod +x README.md");
    assert!(told(&place, one, two).starts_with("Clean"), "a mode and a content go together");
}

#[test]
fn what_files_say_about_merging_is_not_believed() {
    let place = Place::new();
    place.write(".gitattributes", "* merge=union\n");
    place.commit("attributes");
    place.run(&["config", "merge.evil.driver", "touch ../evil; true"]);
    fs::write(place.root().join(".git/info/attributes"), "* merge=evil\n").unwrap();
    for hook in ["reference-transaction", "post-merge", "pre-merge-commit", "post-checkout"] {
        let path = place.root().join(".git/hooks").join(hook);
        fs::write(&path, "#!/bin/sh\ntouch ../evil\n").unwrap();
        place.shell(&place.root(), &format!("chmod +x .git/hooks/{hook}"));
    }
    let (one, two) = ("echo one > README.md", "echo two > README.md");
    assert_eq!(told(&place, one, two), "README.md: (content): Merge conflict in README.md");
    assert!(!place.path("evil").exists() && !place.path("trees/evil").exists());
}

#[test]
fn a_target_that_somebody_else_moved_is_not_moved() {
    let place = Place::new();
    let (repository, [one, two]) = two_loops(&place);
    let (first, second) =
        (change(&one, &[("a.txt", "a\n")], "one"), change(&two, &[("b.txt", "b\n")], "two"));
    let seen = target(&repository, "signoff/run-1");
    let merged = clean(merge(&repository, "signoff/run-1", &first.commit));
    let other = land(&repository, "signoff/run-1", &second.commit);
    assert_eq!(repository.move_target(&seen, &merged.commit).unwrap(), Moved::Elsewhere);
    assert_eq!(target(&repository, "signoff/run-1").tip, other);
    place.run(&["branch", "-D", "signoff/run-1"]);
    assert_eq!(repository.move_target(&seen, &merged.commit).unwrap(), Moved::Elsewhere);
}

#[test]
fn a_clean_checkout_follows_its_branch() {
    let place = Place::new();
    let repository = place.repository();
    let worktree = place.worktree("one");
    place.write("mine.txt", "mine\n");
    place.shell(
        worktree.path(),
        "rm README.md; mkdir -p deep/er; echo new > deep/er/new.txt; echo x > src/main.rs",
    );
    let head = worktree.commit_all("one").unwrap().head;
    // What was merely touched is not changed.
    place.shell(&place.root(), "touch -d '2001-01-01' src/main.rs");
    land(&repository, "main", &head.commit);
    insta::assert_snapshot!(place.run(&["status", "--porcelain", "--branch"]), @"
    ## main
    ?? mine.txt
    ");
    assert_eq!(place.run(&["diff", "HEAD", head.commit.as_str()]), "");
    assert_eq!(fs::read_to_string(place.root().join("deep/er/new.txt")).unwrap(), "new\n");
    assert!(!place.root().join("README.md").exists());
}

#[test]
fn a_checkout_in_another_worktree_follows_too() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let head = change(&worktree, &[("a.txt", "a\n")], "one");
    place.run(&["checkout", "-q", "-b", "elsewhere"]);
    let other = place.path("other");
    place.run(&["worktree", "add", "-q", other.to_str().unwrap(), "main"]);
    let before = place.person();
    land(&place.repository(), "main", &head.commit);
    assert_eq!(place.person(), before);
    assert_eq!(place.run_in(&other, &["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(other.join("a.txt")).unwrap(), "a\n");
}

/// Why a landing onto the checked out branch is refused after the person did something in the checkout.
fn refused(work: &str, did: &str) -> String {
    let place = Place::new();
    place.write(".gitignore", "*.secret\n");
    place.commit("ignore");
    let worktree = place.worktree("one");
    place.shell(worktree.path(), work);
    let head = worktree.commit_all("one").unwrap().head;
    place.shell(&place.root(), did);
    let (repository, before) = (place.repository(), place.person());
    let merged = clean(merge(&repository, "main", &head.commit));
    let error = repository.move_target(&target(&repository, "main"), &merged.commit).unwrap_err();
    assert_eq!(place.person(), before);
    error.to_string().replace(&place.root().display().to_string(), "CHECKOUT")
}

#[test]
fn nothing_of_the_persons_is_overwritten() {
    let work = "echo a > a.txt; git add -f a.txt; echo s > s.secret; git add -f s.secret";
    insta::assert_snapshot!(refused(work, "echo more >> README.md"), @"CHECKOUT has changes that are not committed: README.md");
    insta::assert_snapshot!(refused(work, "echo more >> README.md; git add README.md"), @"CHECKOUT has changes that are not committed: README.md");
    insta::assert_snapshot!(refused(work, "echo mine > a.txt"), @"a.txt in CHECKOUT is not known to git, and would be overwritten");
    insta::assert_snapshot!(refused(work, "echo mine > s.secret"), @"s.secret in CHECKOUT is not known to git, and would be overwritten");
    insta::assert_snapshot!(refused("mkdir s.secret; echo x > s.secret/x; git add -f s.secret", "echo mine > s.secret"), @"s.secret in CHECKOUT is not known to git, and would be overwritten");
    insta::assert_snapshot!(refused("rm -r src; echo file > src", "echo mine > src/x.secret"), @"src in CHECKOUT is not known to git, and would be overwritten");
    insta::assert_snapshot!(refused(work, "git checkout -q -b other; echo o > o; git add o; git commit -qm o; git checkout -q main; echo m > o; git add o; git commit -qm m; git cherry-pick other || git checkout -q --theirs o"), @"a cherry-pick was left unfinished in CHECKOUT");
}

/// Moves `main` as a program that is killed right after.
fn move_alone(place: &Place, to: &Commit) {
    let from = place.head();
    let checkout = place.root().into_os_string();
    let note = serde_json::json!({"branch": "main", "checkout": checkout, "from": from, "to": to});
    fs::create_dir_all(place.root().join(".git/signoff")).unwrap();
    fs::write(place.root().join(".git/signoff/forward.json"), note.to_string()).unwrap();
    place.run(&["update-ref", "refs/heads/main", to.as_str()]);
}

/// A checkout that a killed program left behind its branch, after `done` was done to the files.
fn left_behind(done: &str) -> (Place, Head) {
    let place = Place::new();
    let worktree = place.worktree("one");
    place.shell(worktree.path(), "echo changed > README.md; echo a > a.txt; rm src/main.rs");
    let head = worktree.commit_all("one").unwrap().head;
    move_alone(&place, &head.commit);
    place.shell(&place.root(), done);
    (place, head)
}

#[test]
fn a_checkout_that_was_left_behind_catches_up() {
    for done in
        ["true", "echo changed > README.md", "echo changed > README.md; echo a > a.txt; rm src/main.rs"]
    {
        let (place, head) = left_behind(done);
        place.repository().finish_forward().unwrap();
        assert_eq!(place.run(&["status", "--porcelain"]), "", "{done}");
        assert_eq!(place.head(), head.commit);
        assert_eq!(fs::read_to_string(place.root().join("a.txt")).unwrap(), "a\n");
        assert!(!place.root().join(".git/signoff/forward.json").exists());
    }
}

#[test]
fn what_is_not_in_the_way_is_left_alone_while_a_checkout_catches_up() {
    for done in
        ["echo mine > notes.txt", "echo mine > notes.txt; git add notes.txt", "git checkout -q -b aside"]
    {
        let (place, head) = left_behind(done);
        place.repository().finish_forward().unwrap();
        let others = place.run(&["status", "--porcelain"]);
        assert_eq!(
            others.trim_start_matches(['A', '?', ' ']),
            if others.is_empty() { "" } else { "notes.txt\n" }
        );
        assert_eq!(
            place.run(&["diff", "--name-only", head.commit.as_str(), "--", "README.md", "a.txt", "src"]),
            ""
        );
        place.run(&["add", "-A"]);
        place.run(&["commit", "-q", "--allow-empty", "-m", "mine"]);
        assert_eq!(place.run(&["show", "HEAD:a.txt"]), "a\n", "{done}");
    }
}

/// What is told of a checkout that was left behind after the person did something, and what git says of it then.
fn told_after(done: &str) -> (Place, String) {
    let (place, _) = left_behind(done);
    let error = place.repository().finish_forward().unwrap_err();
    assert!(matches!(error, GitError::Behind { .. }), "{error}");
    let error = error.to_string().replace(&place.root().display().to_string(), "CHECKOUT");
    let told = format!("{error}\n{}", place.run(&["status", "--porcelain"]));
    (place, told)
}

#[test]
fn what_the_person_changed_meanwhile_is_not_overwritten_either() {
    let (place, told) = told_after("echo mine > README.md");
    insta::assert_snapshot!(told, @"
    CHECKOUT followed its branch, but for what was changed there meanwhile: README.md
     M README.md
    ");
    assert_eq!(fs::read_to_string(place.root().join("README.md")).unwrap(), "mine\n");
    // As long as nothing is done about it, it is told.
    let again = place.repository().finish_forward().unwrap_err();
    assert!(matches!(again, GitError::Behind { .. }), "{again}");
    place.write("README.md", "mine and changed\n");
    place.repository().finish_forward().unwrap();
    assert_eq!(place.run(&["status", "--porcelain"]), " M README.md\n");
    assert!(!place.root().join(".git/signoff/forward-left").exists());
}

#[test]
fn whatever_the_person_did_meanwhile_nothing_is_lost() {
    insta::assert_snapshot!(told_after("echo mine > README.md; git add README.md").1, @"
    CHECKOUT followed its branch, but for what was changed there meanwhile: README.md
     M README.md
    ");
    insta::assert_snapshot!(told_after("echo mine > README.md; git add README.md; echo more >> README.md").1, @"
    CHECKOUT followed its branch, but for what was changed there meanwhile: README.md
    MM README.md
    ");
    insta::assert_snapshot!(told_after("echo mine > a.txt").1, @"
    CHECKOUT followed its branch, but for what was changed there meanwhile: a.txt
     M a.txt
    ");
    insta::assert_snapshot!(told_after("echo a.txt > .git/info/exclude; echo mine > a.txt").1, @"
    CHECKOUT followed its branch, but for what was changed there meanwhile: a.txt
     M a.txt
    ");
    insta::assert_snapshot!(told_after("mkdir a.txt; echo mine > a.txt/b").1, @"
    CHECKOUT followed its branch, but for what was changed there meanwhile: a.txt
     D a.txt
    ");
    insta::assert_snapshot!(told_after("echo mine > src/main.rs; echo mine > src/other.rs").1, @"
    CHECKOUT followed its branch, but for what was changed there meanwhile: src/main.rs
    ?? src/
    ");
    insta::assert_snapshot!(told_after("rm README.md").1, @"
    CHECKOUT followed its branch, but for what was changed there meanwhile: README.md
     D README.md
    ");
}

#[test]
fn a_change_that_landed_is_brought_into_a_changed_file() {
    let place = Place::new();
    let lines: String = (0..20).map(|line| format!("{line}\n")).collect();
    place.write("README.md", &lines);
    place.commit("lines");
    let (from, worktree) = (place.head(), place.worktree("one"));
    place.shell(worktree.path(), "sed -i 's/^2$/landed/' README.md");
    let to = worktree.commit_all("one").unwrap().head.commit;
    move_alone(&place, &to);
    place.write("README.md", lines.replace("18\n", "mine\n"));
    place.repository().finish_forward().unwrap_err();
    place.shell(&place.root(), &format!("git diff {from} {to} -- README.md | git apply"));
    place.repository().finish_forward().unwrap();
    let both = lines.replace("18\n", "mine\n").replace("\n2\n", "\nlanded\n");
    assert_eq!(fs::read_to_string(place.root().join("README.md")).unwrap(), both);
    assert_eq!(place.run(&["status", "--porcelain"]), " M README.md\n");
}

#[test]
fn nobody_commits_while_a_checkout_follows() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let head = change(&worktree, &[("a.txt", "a\n")], "one");
    let lock = place.root().join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let impatient = place.impatient();
    let merged = clean(merge(&impatient, "main", &head.commit));
    let before = place.head();
    let error = impatient.move_target(&target(&impatient, "main"), &merged.commit).unwrap_err();
    assert!(matches!(&error, GitError::Locked { file } if *file == lock), "{error}");
    assert_eq!(place.head(), before);
    assert_eq!(fs::read(&lock).unwrap(), b"");
    impatient.finish_forward().unwrap();
    assert!(lock.exists(), "it is not ours");
    fs::remove_file(&lock).unwrap();
    assert_eq!(impatient.move_target(&target(&impatient, "main"), &merged.commit).unwrap(), Moved::Done);
    assert!(!lock.exists());
    assert_eq!(place.run(&["status", "--porcelain"]), "");
}

#[test]
fn a_branch_that_is_rebased_or_bisected_stays_where_it_is() {
    let rebase = "echo o > README.md; git commit -qam o; GIT_SEQUENCE_EDITOR='sed -i s/pick/edit/' git rebase -qi HEAD~1";
    let bisect = "git commit -q --allow-empty -m o; git commit -q --allow-empty -m p; git commit -q --allow-empty -m q; git bisect start HEAD HEAD~3";
    for (operation, did) in [("rebase", rebase), ("bisect", bisect)] {
        let place = Place::new();
        let worktree = place.worktree("one");
        let head = change(&worktree, &[("a.txt", "a\n")], "one");
        let other = place.path("other");
        place.run(&["checkout", "-q", "-b", "elsewhere"]);
        place.run(&["worktree", "add", "-q", other.to_str().unwrap(), "main"]);
        place.shell(&other, did);
        let repository = place.repository();
        let (target, at) = (target(&repository, "main"), place.run(&["rev-parse", "main"]));
        assert_eq!(target.used_by, None, "{operation}");
        let merged = clean(merge(&repository, "main", &head.commit));
        let error = repository.move_target(&target, &merged.commit).unwrap_err();
        assert_eq!(error.to_string(), format!("a {operation} was left unfinished in {}", other.display()));
        assert!(repository.check_movable(&target).is_err());
        assert_eq!(place.run(&["rev-parse", "main"]), at);
    }
}

#[test]
fn merges_are_checked_in_a_worktree_that_keeps_only_what_is_ignored() {
    let place = Place::new();
    place.write(".gitignore", "built/\n");
    place.commit("ignore");
    let (repository, path) = (place.repository(), place.path("trees/landing"));
    let worktree = place.worktree("one");
    let head = change(&worktree, &[("a.txt", "a\n")], "one");
    let first = repository.integration(&path, &place.head()).unwrap();
    place
        .shell(first.path(), "mkdir built; echo o > built/o; echo left > left.txt; echo changed > README.md");
    let second = repository.integration(&path, &head.commit).unwrap();
    assert_eq!(second.head().unwrap().commit, head.commit);
    let names = place.shell(second.path(), "ls -A; cat README.md built/o");
    insta::assert_snapshot!(names, @"
    .git
    .gitignore
    README.md
    a.txt
    built
    src
    hello
    o
    ");
    fs::remove_dir_all(&path).unwrap();
    assert_eq!(repository.integration(&path, &place.head()).unwrap().head().unwrap().commit, place.head());
}

/// The commits of a branch on top of another.
fn replay(repository: &Repository, branch: &str, commit: &Commit) -> Replay {
    repository.replay_onto(&target(repository, branch).tip, commit, "It").unwrap()
}

#[test]
fn the_same_changes_come_on_top_with_their_authors() {
    let place = Place::new();
    let (repository, [one, two]) = two_loops(&place);
    let first = change(&one, &[("a.txt", "a\n")], "one");
    change(&two, &[("b.txt", "b\n")], "two");
    place.shell(
        two.path(),
        "echo c > c.txt; git add c.txt; git commit -q --author 'Eve <e@x>' -m 'three\n\nWhy.'",
    );
    let second = two.head().unwrap();
    land(&repository, "signoff/run-1", &first.commit);
    let Replay::As(Merge::Clean(head)) = replay(&repository, "signoff/run-1", &second.commit) else {
        panic!("it does not fit")
    };
    let format = "--format=%s by %an";
    insta::assert_snapshot!(place.run(&["log", format, &format!("signoff/run-1..{}", head.commit)]), @"
    three by Eve
    two by Ada
    ");
    assert!(
        repository
            .advance("signoff/run-1", &target(&repository, "signoff/run-1").tip.commit, &head.commit)
            .unwrap()
    );
    assert!(repository.has_changes_of("signoff/run-1", &second.commit).unwrap());
    assert!(!repository.has_changes_of("main", &second.commit).unwrap());
    // What is on top already stays as it is; what is in is not put in again.
    assert_eq!(replay(&repository, "main", &first.commit), Replay::As(Merge::Clean(first)));
    assert_eq!(replay(&repository, "signoff/run-1", &second.commit), Replay::As(Merge::Contained));
}

#[test]
fn a_change_in_other_surroundings_is_another_change() {
    let place = Place::new();
    let lines = |changed: &[(usize, &str)]| {
        let line =
            |number: usize| changed.iter().find(|(at, _)| *at == number).map_or("same", |(_, text)| text);
        (1..=9).map(|number| format!("{}\n", line(number))).collect::<String>()
    };
    place.write("list.txt", lines(&[]));
    place.commit("list");
    let (repository, [one, two]) = two_loops(&place);
    let first = change(&one, &[("list.txt", &lines(&[(3, "near")]))], "near");
    let second = change(&two, &[("list.txt", &lines(&[(5, "mine")]))], "mine");
    land(&repository, "signoff/run-1", &first.commit);
    let replayed = replay(&repository, "signoff/run-1", &second.commit);
    assert!(matches!(replayed, Replay::Different(_)), "{replayed:?}");
}

#[test]
fn a_resolved_conflict_comes_as_one_commit() {
    let place = Place::new();
    let (repository, [one, two]) = two_loops(&place);
    let first = change(&one, &[("README.md", "hello one\n")], "one");
    let second = change(&two, &[("README.md", "hello two\n")], "two");
    let landed = land(&repository, "signoff/run-1", &first.commit);
    let Replay::As(Merge::Conflicting { head, .. }) = replay(&repository, "signoff/run-1", &second.commit)
    else {
        panic!("no conflict")
    };
    assert!(repository.advance("loop/two", &second.commit, &head.commit).unwrap());
    two.follow_branch(&head.commit).unwrap();
    let resolved = change(&two, &[("README.md", "hello one and two\n")], "resolved");
    let Replay::As(Merge::Clean(head)) = replay(&repository, "signoff/run-1", &resolved.commit) else {
        panic!("it does not fit")
    };
    let parents = place.run(&["log", "-1", "--format=%s %P", head.commit.as_str()]);
    assert_eq!(parents.trim(), format!("two {}", landed.commit));
    assert_eq!(head.tree, resolved.tree);
}
