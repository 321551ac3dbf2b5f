//! Lands work on its target branch: by merge or by rebase.

use std::fs;
use std::path::PathBuf;

use signoff_core::ids::Commit;
use signoff_core::machine::Head;
use signoff_engine::git::{GitError, LandTarget, MergeOutcome, MoveOutcome, Repository, Worktree};

use crate::git::fixture::{GitFixture, write};

/// Writes files in a worktree and commits them.
fn change(worktree: &Worktree, files: &[(&str, &str)], message: &str) -> Head {
    for (name, text) in files {
        write(worktree.path(), name, text);
    }
    worktree.commit_all(message).unwrap().head
}

fn target(repository: &Repository, branch: &str) -> LandTarget {
    repository.land_target(branch).unwrap().unwrap()
}

/// Merges onto the current tip of a branch.
fn merge(repository: &Repository, branch: &str, commit: &Commit) -> MergeOutcome {
    repository.merge_onto(&target(repository, branch).tip, commit, "Merge it").unwrap()
}

fn clean(merge: MergeOutcome) -> Head {
    match merge {
        MergeOutcome::Clean(head) => head,
        MergeOutcome::Contained | MergeOutcome::Different(_) | MergeOutcome::Conflicting { .. } => panic!("{merge:?}"),
    }
}

/// Lands a commit and returns the new tip of the branch.
fn land(repository: &Repository, branch: &str, commit: &Commit) -> Head {
    let head = clean(merge(repository, branch, commit));
    assert_eq!(repository.move_target(&target(repository, branch), &head.commit).unwrap(), MoveOutcome::Done);
    head
}

/// Creates a run branch and two worktrees that start at the same commit.
fn two_loops(fixture: &GitFixture) -> (Repository, [Worktree; 2]) {
    let repository = fixture.repository();
    repository.create_target("signoff/run-1", &fixture.head()).unwrap();
    let worktrees = [fixture.worktree("one"), fixture.worktree("two")];
    (repository, worktrees)
}

#[test]
fn both_changes_land_and_the_checkout_is_unchanged() {
    let fixture = GitFixture::new();
    let (repository, [one, two]) = two_loops(&fixture);
    let (first, second) = (change(&one, &[("a.txt", "a\n")], "one"), change(&two, &[("b.txt", "b\n")], "two"));
    let before = fixture.checkout_fingerprint();
    land(&repository, "signoff/run-1", &first.commit);
    land(&repository, "signoff/run-1", &second.commit);
    assert_eq!(fixture.checkout_fingerprint(), before);
    insta::assert_snapshot!(fixture.run(&["log", "--graph", "--format=%s", "signoff/run-1"]), @r"
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
    assert_eq!(merge(&repository, "signoff/run-1", &first.commit), MergeOutcome::Contained, "it landed before");
}

#[test]
fn a_clean_landing_costs_few_processes() {
    let fixture = GitFixture::new();
    let (repository, [one, _]) = two_loops(&fixture);
    let head = change(&one, &[("a.txt", "a\n")], "one");
    let before = fixture.git.processes();
    let target = target(&repository, "signoff/run-1");
    let merged = clean(repository.merge_onto(&target.tip, &head.commit, "Merge it").unwrap());
    repository.move_target(&target, &merged.commit).unwrap();
    assert!(repository.is_ancestor(head.commit.as_str(), "refs/heads/signoff/run-1").unwrap());
    assert_eq!(fixture.git.processes() - before, 5);
}

#[test]
fn a_conflict_is_a_commit_with_both_sides_in_its_files() {
    let fixture = GitFixture::new();
    let (repository, [one, two]) = two_loops(&fixture);
    let first = change(&one, &[("README.md", "hello one\n")], "one");
    let second = change(&two, &[("README.md", "hello two\n"), ("b.txt", "b\n")], "two");
    let landed = land(&repository, "signoff/run-1", &first.commit);
    let MergeOutcome::Conflicting { head, files } = merge(&repository, "signoff/run-1", &second.commit) else {
        panic!("no conflict")
    };
    let text: Vec<String> = files.iter().map(|file| format!("{}: {}", file.path.display(), file.message)).collect();
    insta::assert_snapshot!(text.join("\n"), @"README.md: (content): Merge conflict in README.md");
    let show = |name: &str| fixture.run(&["show", &format!("{}:{name}", head.commit)]);
    let named = show("README.md").replace(second.commit.as_str(), "TWO").replace(landed.commit.as_str(), "LANDED");
    insta::assert_snapshot!(named, @"
    <<<<<<< TWO
    hello two
    =======
    hello one
    >>>>>>> LANDED
    ");
    assert_eq!(show("b.txt"), "b\n");
    let parents = fixture.run(&["log", "-1", "--format=%P", head.commit.as_str()]);
    assert_eq!(parents.trim(), format!("{} {}", second.commit, landed.commit));
    let marks = [second.commit.to_string(), landed.commit.to_string()];
    let files = [PathBuf::from("README.md"), PathBuf::from("b.txt")];
    let lines = repository.conflict_marker_lines(&head.commit, &marks, &files).unwrap();
    assert_eq!(lines.into_iter().collect::<Vec<_>>(), [(PathBuf::from("README.md"), 1)]);
    assert_eq!(repository.conflict_marker_lines(&second.commit, &marks, &files).unwrap().len(), 0);
    // The loop continues from the conflict commit.
    assert!(repository.advance_branch("loop/two", &second.commit, &head.commit).unwrap());
    two.check_out_branch(&head.commit).unwrap();
    assert_eq!(two.head().unwrap(), head);
    assert!(!two.commit_all("nothing").unwrap().made);
}

/// Changes files on both sides and returns git's conflict message for each file.
fn conflicts_of(fixture: &GitFixture, one: &str, two: &str) -> String {
    let (repository, [first, second]) = two_loops(fixture);
    let did = |worktree: &Worktree, script: &str| {
        fixture.shell(worktree.path(), script);
        worktree.commit_all("did").unwrap().head
    };
    let (first, second) = (did(&first, one), did(&second, two));
    let landed = land(&repository, "signoff/run-1", &first.commit);
    match merge(&repository, "signoff/run-1", &second.commit) {
        MergeOutcome::Conflicting { files, .. } => files
            .iter()
            .map(|file| format!("{}: {}", file.path.display(), file.message))
            .collect::<Vec<_>>()
            .join("\n")
            .replace(second.commit.as_str(), "TWO")
            .replace(landed.commit.as_str(), "LANDED"),
        merge @ (MergeOutcome::Clean(_) | MergeOutcome::Different(_) | MergeOutcome::Contained) => format!("{merge:?}"),
    }
}

#[test]
fn all_kinds_of_conflicts_are_reported() {
    let fixture = GitFixture::new();
    insta::assert_snapshot!(conflicts_of(&fixture, "rm README.md", "echo more >> README.md"), @"README.md: (modify/delete): README.md deleted in LANDED and modified in TWO.  Version TWO of README.md left in tree.");
    let fixture = GitFixture::new();
    insta::assert_snapshot!(conflicts_of(&fixture, "mv README.md A.md", "mv README.md B.md"), @"
    A.md: (rename/rename): README.md renamed to B.md in TWO and to A.md in LANDED.
    B.md: (rename/rename): README.md renamed to B.md in TWO and to A.md in LANDED.
    README.md: (rename/rename): README.md renamed to B.md in TWO and to A.md in LANDED.
    ");
    let fixture = GitFixture::new();
    let (one, two) = ("printf 'a\\0b' > image", "printf 'a\\0c' > image");
    insta::assert_snapshot!(conflicts_of(&fixture, one, two), @"image: warning: Cannot merge binary files: image (TWO vs. LANDED); (add/add): Merge conflict in image");
    let fixture = GitFixture::new();
    let (one, two) = ("echo one > README.md", "chmod +x README.md");
    assert!(conflicts_of(&fixture, one, two).starts_with("Clean"), "a mode and a content go together");
}

#[test]
fn merge_attributes_of_the_repository_are_ignored() {
    let fixture = GitFixture::new();
    fixture.write(".gitattributes", "* merge=union\n");
    fixture.commit("attributes");
    fixture.run(&["config", "merge.evil.driver", "touch ../evil; true"]);
    fs::write(fixture.root().join(".git/info/attributes"), "* merge=evil\n").unwrap();
    for hook in ["reference-transaction", "post-merge", "pre-merge-commit", "post-checkout"] {
        let path = fixture.root().join(".git/hooks").join(hook);
        fs::write(&path, "#!/bin/sh\ntouch ../evil\n").unwrap();
        fixture.shell(&fixture.root(), &format!("chmod +x .git/hooks/{hook}"));
    }
    let (one, two) = ("echo one > README.md", "echo two > README.md");
    assert_eq!(conflicts_of(&fixture, one, two), "README.md: (content): Merge conflict in README.md");
    assert!(!fixture.path("evil").exists() && !fixture.path("trees/evil").exists());
}

#[test]
fn a_target_that_moved_meanwhile_is_not_changed() {
    let fixture = GitFixture::new();
    let (repository, [one, two]) = two_loops(&fixture);
    let (first, second) = (change(&one, &[("a.txt", "a\n")], "one"), change(&two, &[("b.txt", "b\n")], "two"));
    let seen = target(&repository, "signoff/run-1");
    let merged = clean(merge(&repository, "signoff/run-1", &first.commit));
    let other = land(&repository, "signoff/run-1", &second.commit);
    assert_eq!(repository.move_target(&seen, &merged.commit).unwrap(), MoveOutcome::Conflict);
    assert_eq!(target(&repository, "signoff/run-1").tip, other);
    fixture.run(&["branch", "-D", "signoff/run-1"]);
    assert_eq!(repository.move_target(&seen, &merged.commit).unwrap(), MoveOutcome::Conflict);
}

#[test]
fn a_clean_checkout_follows_its_branch() {
    let fixture = GitFixture::new();
    let repository = fixture.repository();
    let worktree = fixture.worktree("one");
    fixture.write("mine.txt", "mine\n");
    fixture.shell(worktree.path(), "rm README.md; mkdir -p deep/er; echo new > deep/er/new.txt; echo x > src/main.rs");
    let head = worktree.commit_all("one").unwrap().head;
    // A changed timestamp alone is no change.
    fixture.shell(&fixture.root(), "touch -d '2001-01-01' src/main.rs");
    land(&repository, "main", &head.commit);
    insta::assert_snapshot!(fixture.run(&["status", "--porcelain", "--branch"]), @"
    ## main
    ?? mine.txt
    ");
    assert_eq!(fixture.run(&["diff", "HEAD", head.commit.as_str()]), "");
    assert_eq!(fs::read_to_string(fixture.root().join("deep/er/new.txt")).unwrap(), "new\n");
    assert!(!fixture.root().join("README.md").exists());
}

#[test]
fn a_checkout_in_another_worktree_follows_too() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let head = change(&worktree, &[("a.txt", "a\n")], "one");
    fixture.run(&["checkout", "-q", "-b", "elsewhere"]);
    let other = fixture.path("other");
    fixture.run(&["worktree", "add", "-q", other.to_str().unwrap(), "main"]);
    let before = fixture.checkout_fingerprint();
    land(&fixture.repository(), "main", &head.commit);
    assert_eq!(fixture.checkout_fingerprint(), before);
    assert_eq!(fixture.run_in(&other, &["status", "--porcelain"]), "");
    assert_eq!(fs::read_to_string(other.join("a.txt")).unwrap(), "a\n");
}

/// Changes the checkout, then tries to land on its branch. Returns the error.
fn landing_error(work: &str, did: &str) -> String {
    let fixture = GitFixture::new();
    fixture.write(".gitignore", "*.secret\n");
    fixture.commit("ignore");
    let worktree = fixture.worktree("one");
    fixture.shell(worktree.path(), work);
    let head = worktree.commit_all("one").unwrap().head;
    fixture.shell(&fixture.root(), did);
    let (repository, before) = (fixture.repository(), fixture.checkout_fingerprint());
    let merged = clean(merge(&repository, "main", &head.commit));
    let error = repository.move_target(&target(&repository, "main"), &merged.commit).unwrap_err();
    assert_eq!(fixture.checkout_fingerprint(), before);
    error.to_string().replace(&fixture.root().display().to_string(), "CHECKOUT")
}

#[test]
fn changes_in_the_checkout_are_not_overwritten() {
    let work = "echo a > a.txt; git add -f a.txt; echo s > s.secret; git add -f s.secret";
    insta::assert_snapshot!(landing_error(work, "echo more >> README.md"), @"CHECKOUT has changes that are not committed: README.md");
    insta::assert_snapshot!(landing_error(work, "echo more >> README.md; git add README.md"), @"CHECKOUT has changes that are not committed: README.md");
    insta::assert_snapshot!(landing_error(work, "echo mine > a.txt"), @"a.txt in CHECKOUT is untracked and would be overwritten");
    insta::assert_snapshot!(landing_error(work, "echo mine > s.secret"), @"s.secret in CHECKOUT is untracked and would be overwritten");
    insta::assert_snapshot!(landing_error("mkdir s.secret; echo x > s.secret/x; git add -f s.secret", "echo mine > s.secret"), @"s.secret in CHECKOUT is untracked and would be overwritten");
    insta::assert_snapshot!(landing_error("rm -r src; echo file > src", "echo mine > src/x.secret"), @"src in CHECKOUT is untracked and would be overwritten");
    insta::assert_snapshot!(landing_error(work, "git checkout -q -b other; echo o > o; git add o; git commit -qm o; git checkout -q main; echo m > o; git add o; git commit -qm m; git cherry-pick other || git checkout -q --theirs o"), @"a cherry-pick was left unfinished in CHECKOUT");
}

/// Moves `main` like a process that is killed before it updates the checkout.
fn move_branch_only(fixture: &GitFixture, to: &Commit) {
    let from = fixture.head();
    let checkout = fixture.root().into_os_string();
    let note = serde_json::json!({"branch": "main", "checkout": checkout, "from": from, "to": to});
    fs::create_dir_all(fixture.root().join(".git/signoff")).unwrap();
    fs::write(fixture.root().join(".git/signoff/forward.json"), note.to_string()).unwrap();
    fixture.run(&["update-ref", "refs/heads/main", to.as_str()]);
}

/// Creates a checkout that is behind its branch after a kill, then runs `done` in it.
fn checkout_behind_branch(done: &str) -> (GitFixture, Head) {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    fixture.shell(worktree.path(), "echo changed > README.md; echo a > a.txt; rm src/main.rs");
    let head = worktree.commit_all("one").unwrap().head;
    move_branch_only(&fixture, &head.commit);
    fixture.shell(&fixture.root(), done);
    (fixture, head)
}

#[test]
fn a_checkout_behind_its_branch_is_updated() {
    for done in ["true", "echo changed > README.md", "echo changed > README.md; echo a > a.txt; rm src/main.rs"] {
        let (fixture, head) = checkout_behind_branch(done);
        fixture.repository().finish_checkout_update().unwrap();
        assert_eq!(fixture.run(&["status", "--porcelain"]), "", "{done}");
        assert_eq!(fixture.head(), head.commit);
        assert_eq!(fs::read_to_string(fixture.root().join("a.txt")).unwrap(), "a\n");
        assert!(!fixture.root().join(".git/signoff/forward.json").exists());
    }
}

#[test]
fn updating_the_checkout_keeps_unrelated_changes() {
    for done in ["echo mine > notes.txt", "echo mine > notes.txt; git add notes.txt", "git checkout -q -b aside"] {
        let (fixture, head) = checkout_behind_branch(done);
        fixture.repository().finish_checkout_update().unwrap();
        let others = fixture.run(&["status", "--porcelain"]);
        assert_eq!(others.trim_start_matches(['A', '?', ' ']), if others.is_empty() { "" } else { "notes.txt\n" });
        assert_eq!(fixture.run(&["diff", "--name-only", head.commit.as_str(), "--", "README.md", "a.txt", "src"]), "");
        fixture.run(&["add", "-A"]);
        fixture.run(&["commit", "-q", "--allow-empty", "-m", "mine"]);
        assert_eq!(fixture.run(&["show", "HEAD:a.txt"]), "a\n", "{done}");
    }
}

/// Updates a checkout behind its branch after the user ran `done` in it. Returns the error and git's status.
fn error_and_status_after(done: &str) -> (GitFixture, String) {
    let (fixture, _) = checkout_behind_branch(done);
    let error = fixture.repository().finish_checkout_update().unwrap_err();
    assert!(matches!(error, GitError::CheckoutBehind { .. }), "{error}");
    let error = error.to_string().replace(&fixture.root().display().to_string(), "CHECKOUT");
    let text = format!("{error}\n{}", fixture.run(&["status", "--porcelain"]));
    (fixture, text)
}

#[test]
fn updating_the_checkout_keeps_changed_files() {
    let (fixture, text) = error_and_status_after("echo mine > README.md");
    insta::assert_snapshot!(text, @"
    CHECKOUT followed its branch, except for files that changed at the same time: README.md
     M README.md
    ");
    assert_eq!(fs::read_to_string(fixture.root().join("README.md")).unwrap(), "mine\n");
    // The error is repeated until the conflict is resolved.
    let again = fixture.repository().finish_checkout_update().unwrap_err();
    assert!(matches!(again, GitError::CheckoutBehind { .. }), "{again}");
    fixture.write("README.md", "mine and changed\n");
    fixture.repository().finish_checkout_update().unwrap();
    assert_eq!(fixture.run(&["status", "--porcelain"]), " M README.md\n");
    assert!(!fixture.root().join(".git/signoff/forward-left").exists());
}

#[test]
fn updating_the_checkout_loses_no_change() {
    insta::assert_snapshot!(error_and_status_after("echo mine > README.md; git add README.md").1, @"
    CHECKOUT followed its branch, except for files that changed at the same time: README.md
     M README.md
    ");
    insta::assert_snapshot!(error_and_status_after("echo mine > README.md; git add README.md; echo more >> README.md").1, @"
    CHECKOUT followed its branch, except for files that changed at the same time: README.md
    MM README.md
    ");
    insta::assert_snapshot!(error_and_status_after("echo mine > a.txt").1, @"
    CHECKOUT followed its branch, except for files that changed at the same time: a.txt
     M a.txt
    ");
    insta::assert_snapshot!(error_and_status_after("echo a.txt > .git/info/exclude; echo mine > a.txt").1, @"
    CHECKOUT followed its branch, except for files that changed at the same time: a.txt
     M a.txt
    ");
    insta::assert_snapshot!(error_and_status_after("mkdir a.txt; echo mine > a.txt/b").1, @"
    CHECKOUT followed its branch, except for files that changed at the same time: a.txt
     D a.txt
    ");
    insta::assert_snapshot!(error_and_status_after("echo mine > src/main.rs; echo mine > src/other.rs").1, @"
    CHECKOUT followed its branch, except for files that changed at the same time: src/main.rs
    ?? src/
    ");
    insta::assert_snapshot!(error_and_status_after("rm README.md").1, @"
    CHECKOUT followed its branch, except for files that changed at the same time: README.md
     D README.md
    ");
}

#[test]
fn a_landed_change_can_be_applied_to_a_changed_file() {
    let fixture = GitFixture::new();
    let lines: String = (0..20).map(|line| format!("{line}\n")).collect();
    fixture.write("README.md", &lines);
    fixture.commit("lines");
    let (from, worktree) = (fixture.head(), fixture.worktree("one"));
    fixture.shell(worktree.path(), "sed -i 's/^2$/landed/' README.md");
    let to = worktree.commit_all("one").unwrap().head.commit;
    move_branch_only(&fixture, &to);
    fixture.write("README.md", lines.replace("18\n", "mine\n"));
    fixture.repository().finish_checkout_update().unwrap_err();
    fixture.shell(&fixture.root(), &format!("git diff {from} {to} -- README.md | git apply"));
    fixture.repository().finish_checkout_update().unwrap();
    let both = lines.replace("18\n", "mine\n").replace("\n2\n", "\nlanded\n");
    assert_eq!(fs::read_to_string(fixture.root().join("README.md")).unwrap(), both);
    assert_eq!(fixture.run(&["status", "--porcelain"]), " M README.md\n");
}

#[test]
fn the_index_is_locked_while_the_checkout_is_updated() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let head = change(&worktree, &[("a.txt", "a\n")], "one");
    let lock = fixture.root().join(".git/index.lock");
    fs::write(&lock, "").unwrap();
    let impatient = fixture.with_short_timeout();
    let merged = clean(merge(&impatient, "main", &head.commit));
    let before = fixture.head();
    let error = impatient.move_target(&target(&impatient, "main"), &merged.commit).unwrap_err();
    assert!(matches!(&error, GitError::Locked { file } if *file == lock), "{error}");
    assert_eq!(fixture.head(), before);
    assert_eq!(fs::read(&lock).unwrap(), b"");
    impatient.finish_checkout_update().unwrap();
    assert!(lock.exists(), "it is not ours");
    fs::remove_file(&lock).unwrap();
    assert_eq!(impatient.move_target(&target(&impatient, "main"), &merged.commit).unwrap(), MoveOutcome::Done);
    assert!(!lock.exists());
    assert_eq!(fixture.run(&["status", "--porcelain"]), "");
}

#[test]
fn a_branch_in_a_rebase_or_bisect_is_not_moved() {
    let rebase =
        "echo o > README.md; git commit -qam o; GIT_SEQUENCE_EDITOR='sed -i s/pick/edit/' git rebase -qi HEAD~1";
    let bisect = "git commit -q --allow-empty -m o; git commit -q --allow-empty -m p; git commit -q --allow-empty -m q; git bisect start HEAD HEAD~3";
    for (operation, did) in [("rebase", rebase), ("bisect", bisect)] {
        let fixture = GitFixture::new();
        let worktree = fixture.worktree("one");
        let head = change(&worktree, &[("a.txt", "a\n")], "one");
        let other = fixture.path("other");
        fixture.run(&["checkout", "-q", "-b", "elsewhere"]);
        fixture.run(&["worktree", "add", "-q", other.to_str().unwrap(), "main"]);
        fixture.shell(&other, did);
        let repository = fixture.repository();
        let (target, at) = (target(&repository, "main"), fixture.run(&["rev-parse", "main"]));
        assert_eq!(target.worktree, None, "{operation}");
        let merged = clean(merge(&repository, "main", &head.commit));
        let error = repository.move_target(&target, &merged.commit).unwrap_err();
        assert_eq!(error.to_string(), format!("a {operation} was left unfinished in {}", other.display()));
        assert!(repository.check_movable(&target).is_err());
        assert_eq!(fixture.run(&["rev-parse", "main"]), at);
    }
}

#[test]
fn the_integration_worktree_keeps_only_ignored_files() {
    let fixture = GitFixture::new();
    fixture.write(".gitignore", "built/\n");
    fixture.commit("ignore");
    let (repository, path) = (fixture.repository(), fixture.path("trees/landing"));
    let worktree = fixture.worktree("one");
    let head = change(&worktree, &[("a.txt", "a\n")], "one");
    let first = repository.integration_worktree(&path, &fixture.head()).unwrap();
    fixture.shell(first.path(), "mkdir built; echo o > built/o; echo left > left.txt; echo changed > README.md");
    let second = repository.integration_worktree(&path, &head.commit).unwrap();
    assert_eq!(second.head().unwrap().commit, head.commit);
    let names = fixture.shell(second.path(), "ls -A; cat README.md built/o");
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
    assert_eq!(repository.integration_worktree(&path, &fixture.head()).unwrap().head().unwrap().commit, fixture.head());
}

/// Rebases the commits onto a branch.
fn replay(repository: &Repository, branch: &str, commit: &Commit) -> MergeOutcome {
    repository.replay_onto(&target(repository, branch).tip, commit, "It").unwrap()
}

#[test]
fn a_rebase_keeps_changes_and_authors() {
    let fixture = GitFixture::new();
    let (repository, [one, two]) = two_loops(&fixture);
    let first = change(&one, &[("a.txt", "a\n")], "one");
    change(&two, &[("b.txt", "b\n")], "two");
    fixture.shell(two.path(), "echo c > c.txt; git add c.txt; git commit -q --author 'Eve <e@x>' -m 'three\n\nWhy.'");
    let second = two.head().unwrap();
    land(&repository, "signoff/run-1", &first.commit);
    let MergeOutcome::Clean(head) = replay(&repository, "signoff/run-1", &second.commit) else {
        panic!("it does not fit")
    };
    let format = "--format=%s by %an";
    insta::assert_snapshot!(fixture.run(&["log", format, &format!("signoff/run-1..{}", head.commit)]), @"
    three by Eve
    two by Ada
    ");
    assert!(
        repository
            .advance_branch("signoff/run-1", &target(&repository, "signoff/run-1").tip.commit, &head.commit)
            .unwrap()
    );
    assert!(repository.contains_changes("signoff/run-1", &second.commit).unwrap());
    assert!(!repository.contains_changes("main", &second.commit).unwrap());
    // Commits already on top stay as they are; contained commits are not applied again.
    assert_eq!(replay(&repository, "main", &first.commit), MergeOutcome::Clean(first));
    assert_eq!(replay(&repository, "signoff/run-1", &second.commit), MergeOutcome::Contained);
}

#[test]
fn a_change_with_different_context_is_a_different_change() {
    let fixture = GitFixture::new();
    let lines = |changed: &[(usize, &str)]| {
        let line = |number: usize| changed.iter().find(|(at, _)| *at == number).map_or("same", |(_, text)| text);
        (1..=9).map(|number| format!("{}\n", line(number))).collect::<String>()
    };
    fixture.write("list.txt", lines(&[]));
    fixture.commit("list");
    let (repository, [one, two]) = two_loops(&fixture);
    let first = change(&one, &[("list.txt", &lines(&[(3, "near")]))], "near");
    let second = change(&two, &[("list.txt", &lines(&[(5, "mine")]))], "mine");
    land(&repository, "signoff/run-1", &first.commit);
    let replayed = replay(&repository, "signoff/run-1", &second.commit);
    assert!(matches!(replayed, MergeOutcome::Different(_)), "{replayed:?}");
}

#[test]
fn a_resolved_conflict_becomes_one_commit() {
    let fixture = GitFixture::new();
    let (repository, [one, two]) = two_loops(&fixture);
    let first = change(&one, &[("README.md", "hello one\n")], "one");
    let second = change(&two, &[("README.md", "hello two\n")], "two");
    let landed = land(&repository, "signoff/run-1", &first.commit);
    let MergeOutcome::Conflicting { head, .. } = replay(&repository, "signoff/run-1", &second.commit) else {
        panic!("no conflict")
    };
    assert!(repository.advance_branch("loop/two", &second.commit, &head.commit).unwrap());
    two.check_out_branch(&head.commit).unwrap();
    let resolved = change(&two, &[("README.md", "hello one and two\n")], "resolved");
    let MergeOutcome::Clean(head) = replay(&repository, "signoff/run-1", &resolved.commit) else {
        panic!("it does not fit")
    };
    let parents = fixture.run(&["log", "-1", "--format=%s %P", head.commit.as_str()]);
    assert_eq!(parents.trim(), format!("two {}", landed.commit));
    assert_eq!(head.tree, resolved.tree);
}
