//! Commits the changes of an agent, whatever state it left the worktree in.

use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{PermissionsExt, symlink};

use signoff_engine::git::{GitError, NewWorktree, Operation, Repository, Worktree};

use crate::git::fixture::{GitFixture, write};

fn committed_files(fixture: &GitFixture, worktree: &Worktree) -> String {
    fixture.run_in(worktree.path(), &["ls-tree", "-r", "--name-only", "HEAD"])
}

fn assert_clean(fixture: &GitFixture, worktree: &Worktree) {
    assert_eq!(fixture.run_in(worktree.path(), &["status", "--porcelain"]), "");
}

#[test]
fn everything_but_ignored_files_and_signoffs_own_is_committed() {
    let fixture = GitFixture::new();
    let before = fixture.checkout_fingerprint();
    let worktree = fixture.worktree("one");
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
    fixture.run_in(top, &["add", "run.sh", ".signoff"]);

    let committed = worktree.commit_all("Add X - initial implementation").unwrap();
    assert!(committed.made);
    assert_eq!(committed.head, worktree.head().unwrap());
    insta::assert_snapshot!(fixture.run_in(top, &["ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD"]), @r#"
    100644  -lead
    100644 .gitignore
    120000 link
    100644 "new\nline \"q\" \303\274"
    100755 run.sh
    100644 src/main.rs
    100644 "\377\376"
    "#);
    let who = fixture.run_in(top, &["log", "-1", "--format=%an <%ae>, %cn <%ce>: %s"]);
    insta::assert_snapshot!(who, @"Ada <ada@example.org>, Ada <ada@example.org>: Add X - initial implementation");
    assert_eq!(fixture.checkout_fingerprint(), before);
}

/// The head is read from git's files; git itself must report the same.
#[test]
fn the_head_after_a_commit_is_what_git_says() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let top = worktree.path();
    let changes: [&dyn Fn(); 5] = [
        &|| write(top, "a/b/c.txt", "new"),
        &|| write(top, "a/b/c.txt", "known to git"),
        &|| fs::rename(top.join("a/b"), top.join("d")).unwrap(),
        &|| fs::remove_dir_all(top.join("d")).unwrap(),
        &|| drop(fixture.run_in(top, &["commit", "-q", "--allow-empty", "-m", "by itself"])),
    ];
    for change in changes {
        change();
        let head = worktree.commit_all("Change").unwrap().head;
        let output = fixture.run_in(top, &["rev-parse", "HEAD^{commit}", "HEAD^{tree}"]);
        assert_eq!(format!("{}\n{}\n", head.commit, head.tree), output);
    }
}

/// Forges an index entry that makes a changed file look unchanged, so that git skips it.
fn forge_index(fixture: &GitFixture, worktree: &Worktree) {
    let top = worktree.path();
    let id = |what: &str| {
        let hex = fixture.run_in(top, &["rev-parse", what]);
        let digits = hex.trim().as_bytes().chunks(2);
        digits
            .map(|pair| u8::from_str_radix(str::from_utf8(pair).expect("a forged index"), 16).expect("a forged index"))
            .collect::<Vec<u8>>()
    };
    write(top, "README.md", "quite another text\n");
    // Git would check a file that is as new as the index.
    let file = fs::File::options().write(true).open(top.join("README.md")).expect("a forged index");
    file.set_modified(std::time::SystemTime::UNIX_EPOCH).expect("a forged index");
    fixture.run_in(top, &["add", "README.md"]);
    let index = fixture.root().join(".git/worktrees").join(top.file_name().expect("a forged index")).join("index");
    let (staged, committed) = (id(":README.md"), id("HEAD:README.md"));
    let mut bytes = fs::read(&index).expect("a forged index");
    let at = bytes.windows(20).position(|window| window == staged).expect("a forged index");
    bytes[at..at + 20].copy_from_slice(&committed);
    let end = bytes.len() - 20;
    bytes[end..].fill(0);
    fs::write(&index, bytes).expect("a forged index");
}

#[test]
fn a_forged_index_does_not_hide_changes() {
    let forms: [&[&str]; 4] = [
        &[],
        &["update-index", "--assume-unchanged", "src/main.rs"],
        &["update-index", "--split-index"],
        &["update-index", "--index-version", "4"],
    ];
    for form in forms {
        let fixture = GitFixture::new();
        let worktree = fixture.worktree("one");
        forge_index(&fixture, &worktree);
        assert_eq!(fixture.run_in(worktree.path(), &["status", "--porcelain"]), "", "git reports a clean status");
        if !form.is_empty() {
            fixture.run_in(worktree.path(), form);
        }
        write(worktree.path(), "more.txt", "more\n");
        worktree.commit_all("Change").unwrap();
        let committed = fixture.run_in(worktree.path(), &["show", "HEAD:README.md"]);
        assert_eq!(committed, "quite another text\n", "{form:?}");
    }
}

#[test]
fn a_damaged_index_does_not_block_the_commit() {
    let fixture = GitFixture::new();
    let victim = fixture.path("victim");
    let replace = |index: &str, how: &str| {
        let script = how.replace("INDEX", index).replace("VICTIM", victim.to_str().unwrap());
        let (done, output) = fixture.try_in(&fixture.root(), &["-c", &format!("alias.x=!{script}"), "x"]);
        assert!(done, "{script}: {output}");
    };
    let ways = [
        "rm INDEX; mkfifo INDEX; true",
        "rm INDEX; mkdir INDEX; true",
        "echo garbage > INDEX; true",
        "ln -s VICTIM INDEX.new; ln -s VICTIM $(dirname INDEX)/signoff-index; true",
        "cp INDEX VICTIM; ln -sf VICTIM INDEX; true",
    ];
    for (number, way) in ways.into_iter().enumerate() {
        let worktree = fixture.worktree(&format!("way-{number}"));
        let git_dir = fixture.root().join(".git/worktrees").join(worktree.path().file_name().unwrap());
        fs::write(&victim, "precious").unwrap();
        replace(git_dir.join("index").to_str().unwrap(), way);
        let before = fs::read(&victim).unwrap();
        write(worktree.path(), "new.txt", "new\n");
        worktree.commit_all("Change").unwrap();
        assert_eq!(fixture.run_in(worktree.path(), &["show", "HEAD:new.txt"]), "new\n", "{way}");
        assert_eq!(fs::read(&victim).unwrap(), before, "{way}");
        assert_clean(&fixture, &worktree);
    }
}

#[test]
fn the_files_of_a_repository_that_the_agent_staged_are_committed() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let inner = worktree.path().join("sub");
    fixture.run_in(worktree.path(), &["init", "-q", "sub"]);
    write(&inner, "s.txt", "inside\n");
    fixture.run_in(&inner, &["add", "s.txt"]);
    fixture.run_in(&inner, &["commit", "-q", "-m", "Inside"]);
    fixture.run_in(worktree.path(), &["add", "sub"]);
    worktree.commit_all("Change").unwrap();
    assert_eq!(fixture.run_in(worktree.path(), &["show", "HEAD:sub/s.txt"]), "inside\n");
}

#[test]
fn nothing_to_commit_is_no_commit() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let head = worktree.head().unwrap();
    write(worktree.path(), "README.md", "hello\n");
    let committed = worktree.commit_all("nothing").unwrap();
    assert_eq!((committed.made, committed.head, committed.unfinished), (false, head, None));
}

#[test]
fn commits_of_the_agent_count() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    write(worktree.path(), "a", "");
    fixture.run_in(worktree.path(), &["add", "-A"]);
    fixture.run_in(worktree.path(), &["commit", "-qm", "the agent's own"]);
    let before = worktree.head().unwrap();
    let committed = worktree.commit_all("rest").unwrap();
    assert_eq!((committed.made, &committed.head), (false, &before));
    write(worktree.path(), "b", "");
    worktree.commit_all("rest").unwrap();
    let subjects = fixture.repository().log_subjects(&fixture.head(), &worktree.head().unwrap().commit).unwrap();
    assert_eq!(subjects, ["rest", "the agent's own"]);
}

#[test]
fn a_stale_index_lock_is_removed() {
    let fixture = GitFixture::new();
    let worktree = fixture.with_short_timeout().worktree(fixture.worktree("one").path()).unwrap();
    write(worktree.path(), "a", "");
    let lock = fixture.root().join(".git/worktrees/one/index.lock");
    fs::write(&lock, "").unwrap();
    assert!(worktree.commit_all("work").unwrap().made);
    assert!(!lock.exists());
}

/// Creates a worktree whose branch and `main` changed the same line.
fn conflict(fixture: &GitFixture) -> Worktree {
    let worktree = fixture.worktree("one");
    write(worktree.path(), "README.md", "ours\n");
    worktree.commit_all("ours").expect("a commit");
    fixture.write("README.md", "theirs\n");
    fixture.write("other", "other\n");
    fixture.commit("theirs");
    worktree
}

#[test]
fn an_unfinished_merge_keeps_its_files() {
    let fixture = GitFixture::new();
    let worktree = conflict(&fixture);
    assert!(!fixture.try_in(worktree.path(), &["merge", "main"]).0);
    let committed = worktree.commit_all("merged?").unwrap();
    assert_eq!((committed.made, committed.unfinished), (true, Some(Operation::Merge)));
    assert!(fixture.run_in(worktree.path(), &["show", "HEAD:README.md"]).contains("<<<<<<<"));
    assert_eq!(fixture.run_in(worktree.path(), &["show", "HEAD:other"]), "other\n");
    assert_clean(&fixture, &worktree);
    assert_eq!(worktree.commit_all("again").unwrap().unfinished, None);
}

#[test]
fn a_resolved_merge_becomes_a_merge_commit() {
    let fixture = GitFixture::new();
    let worktree = conflict(&fixture);
    assert!(!fixture.try_in(worktree.path(), &["merge", "main"]).0);
    write(worktree.path(), "README.md", "both\n");
    fixture.run_in(worktree.path(), &["add", "README.md"]);
    worktree.commit_all("merged").unwrap();
    let parents = fixture.run_in(worktree.path(), &["log", "-1", "--format=%P"]);
    assert_eq!(parents.split_whitespace().count(), 2);
    assert_clean(&fixture, &worktree);
}

#[test]
fn an_unfinished_cherry_pick_keeps_its_files() {
    let fixture = GitFixture::new();
    let worktree = conflict(&fixture);
    assert!(!fixture.try_in(worktree.path(), &["cherry-pick", "main"]).0);
    let committed = worktree.commit_all("picked").unwrap();
    assert_eq!(committed.unfinished, Some(Operation::CherryPick));
    assert_eq!(fixture.run_in(worktree.path(), &["log", "-1", "--format=%s"]), "picked\n");
    assert_clean(&fixture, &worktree);
}

#[test]
fn an_unfinished_rebase_is_reported_and_left_alone() {
    let fixture = GitFixture::new();
    let worktree = conflict(&fixture);
    assert!(!fixture.try_in(worktree.path(), &["rebase", "main"]).0);
    let tip = fixture.run(&["rev-parse", "loop/one"]);
    assert!(matches!(worktree.commit_all("x"), Err(GitError::Unfinished { operation: Operation::Rebase, .. })));
    assert_eq!(fixture.run(&["rev-parse", "loop/one"]), tip);
    fixture.run_in(worktree.path(), &["rebase", "--abort"]);
    assert!(!worktree.commit_all("x").unwrap().made);
}

#[test]
fn commits_on_a_detached_head_are_moved_to_the_branch() {
    for away in [["checkout", "-q", "--detach"].as_slice(), &["checkout", "-qb", "agents-own"], &["branch", "-m", "x"]]
    {
        let fixture = GitFixture::new();
        let worktree = fixture.worktree("one");
        let top = worktree.path();
        fixture.run_in(top, away);
        write(top, "committed", "");
        fixture.run_in(top, &["add", "-A"]);
        fixture.run_in(top, &["commit", "-qm", "away"]);
        write(top, "left", "");
        let committed = worktree.commit_all("rest").unwrap();
        assert_eq!(fixture.run_in(top, &["branch", "--show-current"]), "loop/one\n", "{away:?}");
        assert_eq!(fixture.repository().head_of("loop/one").unwrap(), Some(committed.head), "{away:?}");
        assert_eq!(committed_files(&fixture, &worktree), "README.md\ncommitted\nleft\nsrc/main.rs\n");
        assert_clean(&fixture, &worktree);
    }
}

#[test]
fn a_worktree_left_at_an_older_commit_returns_to_its_branch() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    write(worktree.path(), "a", "");
    let head = worktree.commit_all("a").unwrap().head;
    fixture.run_in(worktree.path(), &["checkout", "-q", "HEAD~1"]);
    let committed = worktree.commit_all("b").unwrap();
    assert_eq!((committed.made, committed.head), (false, head));
    assert!(worktree.path().join("a").exists());
    assert_clean(&fixture, &worktree);
}

/// Creates a worktree whose branch was moved from outside to a commit that adds `b` and changes `a`.
fn with_moved_branch() -> (GitFixture, Worktree) {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    write(worktree.path(), "a", "1\n");
    worktree.commit_all("a").expect("a commit");
    fixture.shell(
        &fixture.root(),
        "git worktree add -q --detach ../other loop/one && cd ../other && echo 2 > a && echo b > b && \
         git add -A && git commit -qm elsewhere && git update-ref refs/heads/loop/one HEAD",
    );
    (fixture, worktree)
}

#[test]
fn outside_commits_to_the_branch_are_not_reverted() {
    let (fixture, worktree) = with_moved_branch();
    let tip = fixture.repository().head_of("loop/one").unwrap().unwrap();
    let committed = worktree.commit_all("nothing").unwrap();
    assert_eq!((committed.made, committed.head), (false, tip));
    assert_clean(&fixture, &worktree);
    let (fixture, worktree) = with_moved_branch();
    write(worktree.path(), "c", "own\n");
    write(worktree.path(), "README.md", "own\n");
    assert!(worktree.commit_all("own").unwrap().made);
    let changed = fixture.run_in(worktree.path(), &["show", "--format=%s", "--name-status", "HEAD"]);
    assert_eq!(changed, "own\n\nM\tREADME.md\nA\tc\n");
    assert_clean(&fixture, &worktree);
}

#[test]
fn a_manual_revert_is_committed() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    write(worktree.path(), "a", "1\n");
    worktree.commit_all("a").unwrap();
    write(worktree.path(), "a", "2\n");
    worktree.commit_all("b").unwrap();
    fixture.run_in(worktree.path(), &["checkout", "-q", "HEAD~1", "--", "."]);
    assert!(worktree.commit_all("back").unwrap().made);
    assert_eq!(fixture.run_in(worktree.path(), &["show", "HEAD:a"]), "1\n");
}

#[test]
fn unrelated_history_is_reported_and_kept() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    write(worktree.path(), "a", "");
    worktree.commit_all("a").unwrap();
    fixture.run_in(worktree.path(), &["checkout", "-q", "HEAD~1"]);
    write(worktree.path(), "b", "");
    assert!(matches!(worktree.commit_all("b"), Err(GitError::OffBranch { .. })));
    assert!(worktree.path().join("b").exists());
}

#[test]
fn a_deleted_branch_is_reported() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    fixture.run_in(worktree.path(), &["update-ref", "-d", "refs/heads/loop/one"]);
    assert!(matches!(worktree.commit_all("b"), Err(GitError::BranchGone(branch)) if branch == "loop/one"));
}

#[test]
fn files_of_nested_repositories_are_committed() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    for name in ["fresh", "with commits", "with commits/in side"] {
        let inside = worktree.path().join(name);
        fs::create_dir_all(&inside).unwrap();
        fixture.run_in(&inside, &["init", "-q"]);
        write(&inside, "file\n1", name);
        write(&inside, ".gitignore", "ignored\n");
        write(&inside, "ignored", "");
    }
    let inside = worktree.path().join("with commits");
    fixture.run_in(&inside, &["add", ".gitignore"]);
    fixture.run_in(&inside, &["commit", "-qm", "inside"]);
    let diff = worktree.diff(&fixture.head()).unwrap();
    assert_eq!((diff.files, diff.submodules.len()), (6, 0));
    worktree.commit_all("all").unwrap();
    insta::assert_snapshot!(committed_files(&fixture, &worktree), @r#"
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
fn files_may_become_directories_and_back() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let top = worktree.path();
    fs::remove_file(top.join("README.md")).unwrap();
    write(top, "README.md/inside", "");
    fs::remove_dir_all(top.join("src")).unwrap();
    symlink("README.md", top.join("src")).unwrap();
    worktree.commit_all("turned").unwrap();
    assert_eq!(committed_files(&fixture, &worktree), "README.md/inside\nsrc\n");
    assert_clean(&fixture, &worktree);
}

#[test]
fn line_endings_follow_the_users_configuration() {
    let fixture = GitFixture::new();
    fixture.run(&["config", "core.autocrlf", "true"]);
    fixture.run(&["config", "core.safecrlf", "true"]);
    let worktree = fixture.worktree("one");
    assert_eq!(fs::read(worktree.path().join("README.md")).unwrap(), b"hello\r\n");
    assert!(!worktree.commit_all("nothing").unwrap().made);
    write(worktree.path(), "mixed", "a\r\nb\n");
    worktree.commit_all("work").unwrap();
    assert_eq!(fixture.run_in(worktree.path(), &["cat-file", "blob", "HEAD:mixed"]), "a\nb\n");
}

#[test]
fn untracking_and_ignoring_a_file_is_respected() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    fixture.run_in(worktree.path(), &["rm", "-q", "--cached", "README.md"]);
    write(worktree.path(), ".gitignore", "README.md\n");
    write(worktree.path(), "forced", "");
    worktree.commit_all("untracked").unwrap();
    assert_eq!(committed_files(&fixture, &worktree), ".gitignore\nforced\nsrc/main.rs\n");
    assert!(worktree.path().join("README.md").exists());
}

#[test]
fn without_a_configured_user_signoff_is_the_author() {
    let fixture = GitFixture::new();
    fixture.run(&["config", "--global", "--unset", "user.name"]);
    fixture.run(&["config", "--global", "--unset", "user.email"]);
    let worktree = fixture.worktree("one");
    write(worktree.path(), "a", "");
    worktree.commit_all("a").unwrap();
    assert_eq!(fixture.run_in(worktree.path(), &["log", "-1", "--format=%an <%ae>"]), "signoff <signoff@localhost>\n");
    fixture.run(&["config", "user.name", "Repo \"Name\" ü"]);
    let worktree = fixture.worktree("two");
    write(worktree.path(), "a", "");
    worktree.commit_all("a").unwrap();
    assert_eq!(fixture.run_in(worktree.path(), &["log", "-1", "--format=%an"]), "Repo \"Name\" ü\n");
}

#[test]
fn a_cycle_costs_few_processes() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    let base = fixture.head();
    let before = fixture.git.processes();
    for cycle in 0..2 {
        write(worktree.path(), "a", cycle.to_string());
        let head = worktree.commit_all("work").unwrap().head.commit;
        worktree.diff(&base).unwrap();
        for _reviewer in 0..2 {
            let snapshot = worktree.snapshot_at_commit(&head).unwrap();
            worktree.undo_since(&snapshot).unwrap();
        }
    }
    insta::assert_snapshot!((fixture.git.processes() - before) / 2, @"8");
}

#[test]
fn a_message_is_kept_as_it_is() {
    let fixture = GitFixture::new();
    let worktree = fixture.worktree("one");
    write(worktree.path(), "a", "");
    worktree.commit_all("# not a comment\n\n---\n-m x").unwrap();
    assert_eq!(fixture.run_in(worktree.path(), &["log", "-1", "--format=%B"]), "# not a comment\n\n---\n-m x\n\n");
}

#[test]
fn a_shallow_clone_works() {
    let fixture = GitFixture::new();
    fixture.write("b", "");
    fixture.commit("second");
    let url = format!("file://{}", fixture.root().display());
    fixture.run(&["clone", "-q", "--depth=1", &url, "../shallow"]);
    let repository = Repository::discover(&fixture.git, &fixture.path("shallow")).unwrap();
    let start = fixture.head();
    let new = NewWorktree { path: &fixture.path("tree"), branch: "one", start: &start };
    let worktree = repository.add_worktree(&new).unwrap();
    write(worktree.path(), "c", "");
    assert!(worktree.commit_all("third").unwrap().made);
    assert_eq!(repository.base().unwrap(), start);
}
