//! Committing what an agent left, in whatever state.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use signoff_engine::git::{GitError, NewWorktree, Operation, Repository, Worktree};

use crate::place::{Place, write};

fn committed_files(place: &Place, worktree: &Worktree) -> String {
    place.run_in(worktree.path(), &["ls-tree", "-r", "--name-only", "HEAD"])
}

fn clean(place: &Place, worktree: &Worktree) {
    assert_eq!(place.run_in(worktree.path(), &["status", "--porcelain"]), "");
}

#[test]
fn everything_is_committed_but_what_is_ignored_or_ours() {
    let place = Place::new();
    let before = place.person();
    let worktree = place.worktree("one");
    let top = worktree.path();
    write(top, ".gitignore", "*.log\n");
    write(top, "a.log", "");
    write(top, ".signoff/prompts/review.md", "");
    write(top, "new\nline \"q\" ü", "x");
    write(top, " -lead", "x");
    fs::write(top.join(std::ffi::OsStr::from_bytes(b"\xff\xfe")), "x").unwrap();
    write(top, "run.sh", "#!/bin/sh\n");
    fs::set_permissions(top.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    symlink("run.sh", top.join("link")).unwrap();
    fs::remove_file(top.join("README.md")).unwrap();
    place.run_in(top, &["add", "run.sh", ".signoff"]);

    let committed = worktree.commit_all("Add X - initial implementation").unwrap();
    assert!(committed.made);
    assert_eq!(committed.head, worktree.head().unwrap());
    insta::assert_snapshot!(place.run_in(top, &["ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD"]), @r#"
    100644  -lead
    100644 .gitignore
    120000 link
    100644 "new\nline \"q\" \303\274"
    100755 run.sh
    100644 src/main.rs
    100644 "\377\376"
    "#);
    let who = place.run_in(top, &["log", "-1", "--format=%an <%ae>, %cn <%ce>: %s"]);
    insta::assert_snapshot!(who, @"Ada <ada@example.org>, Ada <ada@example.org>: Add X - initial implementation");
    assert_eq!(place.person(), before);
}

/// It is told from git's files; git itself must say the same.
#[test]
fn the_head_after_a_commit_is_what_git_says() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let top = worktree.path();
    let changes: [&dyn Fn(); 5] = [
        &|| write(top, "a/b/c.txt", "new"),
        &|| write(top, "a/b/c.txt", "known to git"),
        &|| fs::rename(top.join("a/b"), top.join("d")).unwrap(),
        &|| fs::remove_dir_all(top.join("d")).unwrap(),
        &|| drop(place.run_in(top, &["commit", "-q", "--allow-empty", "-m", "by itself"])),
    ];
    for change in changes {
        change();
        let head = worktree.commit_all("Change").unwrap().head;
        let said = place.run_in(top, &["rev-parse", "HEAD^{commit}", "HEAD^{tree}"]);
        assert_eq!(format!("{}\n{}\n", head.commit, head.tree), said);
    }
}

/// An index in which a file passes for the one of `HEAD`: git would not look at it.
fn forge(place: &Place, worktree: &Worktree) {
    let top = worktree.path();
    let id = |what: &str| {
        let hex = place.run_in(top, &["rev-parse", what]);
        let digits = hex.trim().as_bytes().chunks(2);
        digits
            .map(|pair| {
                u8::from_str_radix(str::from_utf8(pair).expect("a forged index"), 16).expect("a forged index")
            })
            .collect::<Vec<u8>>()
    };
    write(top, "README.md", "quite another text\n");
    // A file as new as the index would be looked at.
    let file = fs::File::options().write(true).open(top.join("README.md")).expect("a forged index");
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("a forged index");
    place.run_in(top, &["add", "README.md"]);
    let index =
        place.root().join(".git/worktrees").join(top.file_name().expect("a forged index")).join("index");
    let (staged, committed) = (id(":README.md"), id("HEAD:README.md"));
    let mut bytes = fs::read(&index).expect("a forged index");
    let at = bytes.windows(20).position(|window| window == staged).expect("a forged index");
    bytes[at..at + 20].copy_from_slice(&committed);
    let end = bytes.len() - 20;
    bytes[end..].fill(0);
    fs::write(&index, bytes).expect("a forged index");
}

#[test]
fn an_index_that_lies_is_not_believed() {
    let forms: [&[&str]; 4] = [
        &[],
        &["update-index", "--assume-unchanged", "src/main.rs"],
        &["update-index", "--split-index"],
        &["update-index", "--index-version", "4"],
    ];
    for form in forms {
        let place = Place::new();
        let worktree = place.worktree("one");
        forge(&place, &worktree);
        assert_eq!(place.run_in(worktree.path(), &["status", "--porcelain"]), "", "git believes it");
        if !form.is_empty() {
            place.run_in(worktree.path(), form);
        }
        write(worktree.path(), "more.txt", "more\n");
        worktree.commit_all("Change").unwrap();
        let committed = place.run_in(worktree.path(), &["show", "HEAD:README.md"]);
        assert_eq!(committed, "quite another text\n", "{form:?}");
    }
}

#[test]
fn whatever_is_in_place_of_the_index_holds_nobody_up() {
    let place = Place::new();
    let victim = place.path("victim");
    let replace = |index: &str, how: &str| {
        let script = how.replace("INDEX", index).replace("VICTIM", victim.to_str().unwrap());
        let (done, said) = place.try_in(&place.root(), &["-c", &format!("alias.x=!{script}"), "x"]);
        assert!(done, "{script}: {said}");
    };
    let ways = [
        "rm INDEX; mkfifo INDEX; true",
        "rm INDEX; mkdir INDEX; true",
        "echo garbage > INDEX; true",
        "ln -s VICTIM INDEX.new; ln -s VICTIM $(dirname INDEX)/signoff-index; true",
        "cp INDEX VICTIM; ln -sf VICTIM INDEX; true",
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let worktree = place.worktree(&format!("way-{number}"));
        let git_dir = place.root().join(".git/worktrees").join(worktree.path().file_name().unwrap());
        fs::write(&victim, "precious").unwrap();
        replace(git_dir.join("index").to_str().unwrap(), way);
        let before = fs::read(&victim).unwrap();
        write(worktree.path(), "new.txt", "new\n");
        worktree.commit_all("Change").unwrap();
        assert_eq!(place.run_in(worktree.path(), &["show", "HEAD:new.txt"]), "new\n", "{way}");
        assert_eq!(fs::read(&victim).unwrap(), before, "{way}");
        clean(&place, &worktree);
    }
}

#[test]
fn the_files_of_a_repository_that_the_agent_staged_are_committed() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let inner = worktree.path().join("sub");
    place.run_in(worktree.path(), &["init", "-q", "sub"]);
    write(&inner, "s.txt", "inside\n");
    place.run_in(&inner, &["add", "s.txt"]);
    place.run_in(&inner, &["commit", "-q", "-m", "Inside"]);
    place.run_in(worktree.path(), &["add", "sub"]);
    worktree.commit_all("Change").unwrap();
    assert_eq!(place.run_in(worktree.path(), &["show", "HEAD:sub/s.txt"]), "inside\n");
}

#[test]
fn nothing_to_commit_is_no_commit() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let head = worktree.head().unwrap();
    write(worktree.path(), "README.md", "hello\n");
    let committed = worktree.commit_all("nothing").unwrap();
    assert_eq!((committed.made, committed.head, committed.unfinished), (false, head, None));
}

#[test]
fn what_the_agent_committed_itself_counts() {
    let place = Place::new();
    let worktree = place.worktree("one");
    write(worktree.path(), "a", "");
    place.run_in(worktree.path(), &["add", "-A"]);
    place.run_in(worktree.path(), &["commit", "-qm", "the agent's own"]);
    let before = worktree.head().unwrap();
    let committed = worktree.commit_all("rest").unwrap();
    assert_eq!((committed.made, &committed.head), (false, &before));
    write(worktree.path(), "b", "");
    worktree.commit_all("rest").unwrap();
    let subjects = place.repository().log_subjects(&place.head(), &worktree.head().unwrap().commit).unwrap();
    assert_eq!(subjects, ["rest", "the agent's own"]);
}

#[test]
fn an_index_lock_of_a_dead_agent_is_removed() {
    let place = Place::new();
    let worktree = place.impatient().worktree(place.worktree("one").path()).unwrap();
    write(worktree.path(), "a", "");
    let lock = place.root().join(".git/worktrees/one/index.lock");
    fs::write(&lock, "").unwrap();
    assert!(worktree.commit_all("work").unwrap().made);
    assert!(!lock.exists());
}

/// The person's branch and ours changed the same line.
fn conflict(place: &Place) -> Worktree {
    let worktree = place.worktree("one");
    write(worktree.path(), "README.md", "ours\n");
    worktree.commit_all("ours").expect("a commit");
    place.write("README.md", "theirs\n");
    place.write("other", "other\n");
    place.commit("theirs");
    worktree
}

#[test]
fn an_unfinished_merge_keeps_its_files() {
    let place = Place::new();
    let worktree = conflict(&place);
    assert!(!place.try_in(worktree.path(), &["merge", "main"]).0);
    let committed = worktree.commit_all("merged?").unwrap();
    assert_eq!((committed.made, committed.unfinished), (true, Some(Operation::Merge)));
    assert!(place.run_in(worktree.path(), &["show", "HEAD:README.md"]).contains("<<<<<<<"));
    assert_eq!(place.run_in(worktree.path(), &["show", "HEAD:other"]), "other\n");
    clean(&place, &worktree);
    assert_eq!(worktree.commit_all("again").unwrap().unfinished, None);
}

#[test]
fn a_merge_that_was_resolved_becomes_a_merge() {
    let place = Place::new();
    let worktree = conflict(&place);
    assert!(!place.try_in(worktree.path(), &["merge", "main"]).0);
    write(worktree.path(), "README.md", "both\n");
    place.run_in(worktree.path(), &["add", "README.md"]);
    worktree.commit_all("merged").unwrap();
    let parents = place.run_in(worktree.path(), &["log", "-1", "--format=%P"]);
    assert_eq!(parents.split_whitespace().count(), 2);
    clean(&place, &worktree);
}

#[test]
fn an_unfinished_cherry_pick_keeps_its_files() {
    let place = Place::new();
    let worktree = conflict(&place);
    assert!(!place.try_in(worktree.path(), &["cherry-pick", "main"]).0);
    let committed = worktree.commit_all("picked").unwrap();
    assert_eq!(committed.unfinished, Some(Operation::CherryPick));
    assert_eq!(place.run_in(worktree.path(), &["log", "-1", "--format=%s"]), "picked\n");
    clean(&place, &worktree);
}

#[test]
fn an_unfinished_rebase_is_reported_and_left_alone() {
    let place = Place::new();
    let worktree = conflict(&place);
    assert!(!place.try_in(worktree.path(), &["rebase", "main"]).0);
    let tip = place.run(&["rev-parse", "loop/one"]);
    assert!(matches!(
        worktree.commit_all("x"),
        Err(GitError::Unfinished { operation: Operation::Rebase, .. })
    ));
    assert_eq!(place.run(&["rev-parse", "loop/one"]), tip);
    place.run_in(worktree.path(), &["rebase", "--abort"]);
    assert!(!worktree.commit_all("x").unwrap().made);
}

#[test]
fn commits_made_away_from_the_branch_are_brought_to_it() {
    for away in [
        ["checkout", "-q", "--detach"].as_slice(),
        &["checkout", "-qb", "agents-own"],
        &["branch", "-m", "x"],
    ] {
        let place = Place::new();
        let worktree = place.worktree("one");
        let top = worktree.path();
        place.run_in(top, away);
        write(top, "committed", "");
        place.run_in(top, &["add", "-A"]);
        place.run_in(top, &["commit", "-qm", "away"]);
        write(top, "left", "");
        let committed = worktree.commit_all("rest").unwrap();
        assert_eq!(place.run_in(top, &["branch", "--show-current"]), "loop/one\n", "{away:?}");
        assert_eq!(place.repository().head_of("loop/one").unwrap(), Some(committed.head), "{away:?}");
        assert_eq!(committed_files(&place, &worktree), "README.md\ncommitted\nleft\nsrc/main.rs\n");
        clean(&place, &worktree);
    }
}

#[test]
fn a_worktree_left_at_an_older_commit_returns_to_its_branch() {
    let place = Place::new();
    let worktree = place.worktree("one");
    write(worktree.path(), "a", "");
    let head = worktree.commit_all("a").unwrap().head;
    place.run_in(worktree.path(), &["checkout", "-q", "HEAD~1"]);
    let committed = worktree.commit_all("b").unwrap();
    assert_eq!((committed.made, committed.head), (false, head));
    assert!(worktree.path().join("a").exists());
    clean(&place, &worktree);
}

/// A worktree whose branch was moved from elsewhere to a commit that adds `b` and changes `a`.
fn moved_elsewhere() -> (Place, Worktree) {
    let place = Place::new();
    let worktree = place.worktree("one");
    write(worktree.path(), "a", "1\n");
    worktree.commit_all("a").expect("a commit");
    place.shell(
        &place.root(),
        "git worktree add -q --detach ../other loop/one && cd ../other && echo 2 > a && echo b > b && \
         git add -A && git commit -qm elsewhere && git update-ref refs/heads/loop/one HEAD",
    );
    (place, worktree)
}

#[test]
fn what_was_committed_to_the_branch_from_elsewhere_is_not_taken_back() {
    let (place, worktree) = moved_elsewhere();
    let tip = place.repository().head_of("loop/one").unwrap().unwrap();
    let committed = worktree.commit_all("nothing").unwrap();
    assert_eq!((committed.made, committed.head), (false, tip));
    clean(&place, &worktree);
    let (place, worktree) = moved_elsewhere();
    write(worktree.path(), "c", "own\n");
    write(worktree.path(), "README.md", "own\n");
    assert!(worktree.commit_all("own").unwrap().made);
    let changed = place.run_in(worktree.path(), &["show", "--format=%s", "--name-status", "HEAD"]);
    assert_eq!(changed, "own\n\nM\tREADME.md\nA\tc\n");
    clean(&place, &worktree);
}

#[test]
fn what_is_taken_back_by_hand_stays_so() {
    let place = Place::new();
    let worktree = place.worktree("one");
    write(worktree.path(), "a", "1\n");
    worktree.commit_all("a").unwrap();
    write(worktree.path(), "a", "2\n");
    worktree.commit_all("b").unwrap();
    place.run_in(worktree.path(), &["checkout", "-q", "HEAD~1", "--", "."]);
    assert!(worktree.commit_all("back").unwrap().made);
    assert_eq!(place.run_in(worktree.path(), &["show", "HEAD:a"]), "1\n");
}

#[test]
fn work_that_does_not_continue_the_branch_is_reported_and_kept() {
    let place = Place::new();
    let worktree = place.worktree("one");
    write(worktree.path(), "a", "");
    worktree.commit_all("a").unwrap();
    place.run_in(worktree.path(), &["checkout", "-q", "HEAD~1"]);
    write(worktree.path(), "b", "");
    assert!(matches!(worktree.commit_all("b"), Err(GitError::Astray { .. })));
    assert!(worktree.path().join("b").exists());
}

#[test]
fn a_branch_that_was_deleted_is_reported() {
    let place = Place::new();
    let worktree = place.worktree("one");
    place.run_in(worktree.path(), &["update-ref", "-d", "refs/heads/loop/one"]);
    assert!(matches!(worktree.commit_all("b"), Err(GitError::BranchGone(branch)) if branch == "loop/one"));
}

#[test]
fn repositories_inside_give_their_files() {
    let place = Place::new();
    let worktree = place.worktree("one");
    for name in ["fresh", "with commits", "with commits/in side"] {
        let inside = worktree.path().join(name);
        fs::create_dir_all(&inside).unwrap();
        place.run_in(&inside, &["init", "-q"]);
        write(&inside, "file\n1", name);
        write(&inside, ".gitignore", "ignored\n");
        write(&inside, "ignored", "");
    }
    let inside = worktree.path().join("with commits");
    place.run_in(&inside, &["add", ".gitignore"]);
    place.run_in(&inside, &["commit", "-qm", "inside"]);
    let diff = worktree.diff(&place.head()).unwrap();
    assert_eq!((diff.files, diff.links.len()), (6, 0));
    worktree.commit_all("all").unwrap();
    insta::assert_snapshot!(committed_files(&place, &worktree), @r#"
    README.md
    fresh/.gitignore
    "fresh/file\n1"
    src/main.rs
    with commits/.gitignore
    "with commits/file\n1"
    with commits/in side/.gitignore
    "with commits/in side/file\n1"
    "#);
    assert!(!worktree.commit_all("again").unwrap().made);
}

#[test]
fn files_that_became_directories_and_back() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let top = worktree.path();
    fs::remove_file(top.join("README.md")).unwrap();
    write(top, "README.md/inside", "");
    fs::remove_dir_all(top.join("src")).unwrap();
    symlink("README.md", top.join("src")).unwrap();
    worktree.commit_all("turned").unwrap();
    assert_eq!(committed_files(&place, &worktree), "README.md/inside\nsrc\n");
    clean(&place, &worktree);
}

#[test]
fn line_ends_are_what_the_person_configured() {
    let place = Place::new();
    place.run(&["config", "core.autocrlf", "true"]);
    place.run(&["config", "core.safecrlf", "true"]);
    let worktree = place.worktree("one");
    assert_eq!(fs::read(worktree.path().join("README.md")).unwrap(), b"hello\r\n");
    assert!(!worktree.commit_all("nothing").unwrap().made);
    write(worktree.path(), "mixed", "a\r\nb\n");
    worktree.commit_all("work").unwrap();
    assert_eq!(place.run_in(worktree.path(), &["cat-file", "blob", "HEAD:mixed"]), "a\nb\n");
}

#[test]
fn untracking_and_ignoring_a_file_is_respected() {
    let place = Place::new();
    let worktree = place.worktree("one");
    place.run_in(worktree.path(), &["rm", "-q", "--cached", "README.md"]);
    write(worktree.path(), ".gitignore", "README.md\n");
    write(worktree.path(), "forced", "");
    worktree.commit_all("untracked").unwrap();
    assert_eq!(committed_files(&place, &worktree), ".gitignore\nforced\nsrc/main.rs\n");
    assert!(worktree.path().join("README.md").exists());
}

#[test]
fn without_a_name_the_program_commits_under_its_own() {
    let place = Place::new();
    place.run(&["config", "--global", "--unset", "user.name"]);
    place.run(&["config", "--global", "--unset", "user.email"]);
    let worktree = place.worktree("one");
    write(worktree.path(), "a", "");
    worktree.commit_all("a").unwrap();
    assert_eq!(
        place.run_in(worktree.path(), &["log", "-1", "--format=%an <%ae>"]),
        "signoff <signoff@localhost>\n"
    );
    place.run(&["config", "user.name", "Repo \"Name\" ü"]);
    let worktree = place.worktree("two");
    write(worktree.path(), "a", "");
    worktree.commit_all("a").unwrap();
    assert_eq!(place.run_in(worktree.path(), &["log", "-1", "--format=%an"]), "Repo \"Name\" ü\n");
}

#[test]
fn a_cycle_costs_few_processes() {
    let place = Place::new();
    let worktree = place.worktree("one");
    let base = place.head();
    let before = place.git.processes();
    for cycle in 0..2 {
        write(worktree.path(), "a", cycle.to_string());
        worktree.commit_all("work").unwrap();
        worktree.diff(&base).unwrap();
        for _reviewer in 0..2 {
            let snapshot = worktree.snapshot().unwrap();
            worktree.undo_since(&snapshot).unwrap();
        }
    }
    insta::assert_snapshot!((place.git.processes() - before) / 2, @"8");
}

#[test]
fn a_message_is_kept_as_it_is() {
    let place = Place::new();
    let worktree = place.worktree("one");
    write(worktree.path(), "a", "");
    worktree.commit_all("# not a comment\n\n---\n-m x").unwrap();
    assert_eq!(
        place.run_in(worktree.path(), &["log", "-1", "--format=%B"]),
        "# not a comment\n\n---\n-m x\n\n"
    );
}

#[test]
fn a_shallow_clone_works() {
    let place = Place::new();
    place.write("b", "");
    place.commit("second");
    let url = format!("file://{}", place.root().display());
    place.run(&["clone", "-q", "--depth=1", &url, "../shallow"]);
    let repository = Repository::discover(&place.git, &place.path("shallow")).unwrap();
    let start = place.head();
    let new = NewWorktree { path: &place.path("tree"), branch: "one", start: &start };
    let worktree = repository.add_worktree(&new).unwrap();
    write(worktree.path(), "c", "");
    assert!(worktree.commit_all("third").unwrap().made);
    assert_eq!(repository.base().unwrap(), start);
}
