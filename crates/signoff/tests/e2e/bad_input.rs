//! Unusable environments and inputs: one clear error, no lost work, and the same command succeeds after the repair.

use std::fs;
use std::path::Path;
use std::thread;

use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::processes::wait_until;
use signoff_testkit::{ProgramOutput, TestProject};

use crate::{PROGRAM, test_env};

fn agent(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").write("work.txt", "work\n").say("Done.\n"))
        .rule(ScriptRule::role("review").say("All is well.\n\n**Verdict: APPROVED**\n"))
}

/// A project with one task in its queue.
fn project() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, agent);
    project.run(&["add", "Do it", "-a"]);
    project
}

/// After the repair, the same command finishes the task, and no work was lost.
fn assert_work_finishes(project: &TestProject) {
    let output = project.run(&["work"]);
    assert_eq!(output.code, Some(0), "{output}");
    assert!(output.stdout.contains("✓ Task #1 completed (APPROVED after 1 cycle)"), "{output}");
}

/// The database file, after a checkpoint of its write-ahead log.
fn database(project: &TestProject) -> std::path::PathBuf {
    sql(project, "PRAGMA wal_checkpoint(TRUNCATE)");
    file(project)
}

fn file(project: &TestProject) -> std::path::PathBuf {
    project.env.work().join(".signoff/signoff.db")
}

/// Changes the database as another program could.
fn sql(project: &TestProject, statement: &str) {
    let connection = rusqlite::Connection::open(file(project)).unwrap();
    connection.execute_batch(statement).unwrap();
}

#[test]
fn outside_of_a_repository() {
    let env = test_env();
    let all = [["add", "x"].as_slice(), &["work"], &["status"], &["doctor"], &["show", "1"], &[], &["--json"]];
    for words in all {
        let output = env.run(words);
        assert_eq!(output.code, Some(2), "{words:?}: {output}");
        assert!(output.stderr.contains("error: this is not a git repository"), "{words:?}: {output}");
        assert!(output.stderr.contains("git init"), "{words:?}: {output}");
    }
    assert_eq!(fs::read_dir(env.work()).unwrap().count(), 0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_repository_whose_path_git_cannot_print() {
    let env = test_env();
    env.shell("git init -q 'new\nline'; git init -q \"$(printf 'no-\\377')\"");
    let add_in = |directory: &str| env.shell(&format!("cd {directory} && {PROGRAM} add It; echo $?"));
    insta::assert_snapshot!(add_in("'new\nline'"), @r#"
    exit 0
    --- stdout
    2
    --- stderr
    error: the path "[ROOT]/work/new\nline" has a line break or is not UTF-8
    hint: rename the directory: UTF-8, no line breaks
    "#);
    insta::assert_snapshot!(add_in("no-*"), @r#"
    exit 0
    --- stdout
    2
    --- stderr
    error: the path "[ROOT]/work/no-�" has a line break or is not UTF-8
    hint: rename the directory: UTF-8, no line breaks
    "#);
}

#[test]
fn a_bare_repository() {
    let env = test_env();
    env.shell("git init -q --bare .");
    insta::assert_snapshot!(env.run(&["work"]), @"
    exit 2
    --- stderr
    error: [ROOT]/work has no files to work on: it is a bare repository or lies inside of one
    hint: use a non-bare clone
    ");
}

#[test]
fn a_repository_without_commits() {
    let env = test_env();
    env.shell("git init -q -b main");
    env.write("signoff.toml", "[agents.a]\nkind = \"command\"\ncommand = [\"true\"]\n");
    env.run(&["add", "Do it"]);
    insta::assert_snapshot!(env.run(&["work"]), @r#"
    exit 2
    --- stderr
    error: the repository has no commit yet (branch main)
    hint: create the first one: git commit --allow-empty -m "Start"
    "#);
}

#[test]
fn no_agent() {
    let project = TestProject::new(PROGRAM);
    project.run(&["add", "Do it", "-a"]);
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 2
    --- stderr
    error: no agent is configured
    hint: install one and run `signoff init` (`--force` if signoff.toml exists), or write an [agents.NAME] table into signoff.toml
    ");
    project.set_agent(agent);
    project.configure("");
    assert_work_finishes(&project);
}

#[test]
fn unknown_tasks() {
    let project = project();
    for words in [
        ["work", "99"].as_slice(),
        &["show", "99"],
        &["logs", "99"],
        &["diff", "99"],
        &["retry", "99"],
        &["cancel", "99"],
        &["edit", "99", "--verdict", "APPROVED"],
        &["review", "99"],
        &["improve", "99"],
        &["answer", "99", "retry"],
        &["add", "x", "--depends-on", "99"],
        &["work", "18446744073709551615"],
        &["work", "-1"],
        &["work", "eins"],
    ] {
        let output = project.run(words);
        assert_eq!(output.code, Some(2), "{words:?}: {output}");
        assert!(output.stderr.starts_with("error: "), "{words:?}: {output}");
    }
    insta::assert_snapshot!(project.run(&["show", "99"]), @"
    exit 2
    --- stderr
    error: there is no task 99
    hint: `signoff status` lists the tasks
    ");
}

#[test]
fn a_missing_agent() {
    let project = project();
    project.env.write("signoff.toml", "[agents.a]\nkind = \"command\"\ncommand = [\"no-such-agent\"]\n");
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 2
    --- stderr
    error: agent a: program no-such-agent was not found
      --> signoff.toml:3
    hint: install it, or set [agents.a] command in signoff.toml
    ");
    assert_eq!(project.git("for-each-ref refs/heads/signoff"), "");
    project.configure("");
    assert_work_finishes(&project);
}

#[test]
fn an_agent_that_disappears_after_the_task_was_started() {
    let project = project();
    let own = project.env.root().join("own-agent");
    fs::copy(signoff_testkit::fake_agent::program(), &own).unwrap();
    let script = project.env.root().join("script.json");
    let config = |own: &Path| {
        format!(
            "sandbox = false\n[agents.a]\nkind = \"command\"\ncommand = [\"{}\", \"{}\"]\n",
            own.display(),
            script.display()
        )
    };
    project.env.write("signoff.toml", config(&own));
    let removes = format!("rm {}", own.display());
    project.set_agent(|script| {
        agent(script.rule(ScriptRule::role("implement").write("work.txt", "work\n").shell(&removes)))
    });
    let output = project.run(&["work"]).to_string();
    // The width of the line depends on the path of the test's directory.
    let (before, after) = output.split_once("No such file").expect("a missing program");
    let end = after.split_once('\n').map_or("", |(_, end)| end);
    insta::assert_snapshot!(format!("{before}No such file\n{end}"), @"
    exit 1
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: INCONCLUSIVE - general: could not be started: cannot start [ROOT]/own-agent: No such file
    ✗ Task #1 failed: a reviewer or check failed (reviewer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
    fs::copy(signoff_testkit::fake_agent::program(), &own).unwrap();
    let output = project.run(&["retry", "1"]);
    insta::assert_snapshot!(output, @"
    exit 0
    --- stdout
    Retrying task #1: Do it
      [1/3] Asking general again...
      [1/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
    insta::assert_snapshot!(project.calls().summary(), @"
    implement task 1 cycle 0: exit 0
    review general task 1 cycle 1: exit 0
    ");
}

#[test]
fn broken_configuration() {
    let project = project();
    for (text, message) in [
        ("jobs = \n", "signoff.toml:1"),
        ("jobs = 2\ncolour = \"red\"\n", "unknown key `colour`"),
        ("jobs = 0\n", "signoff.toml:1"),
        ("[gate]\nfail_on = \"SOMEWHAT\"\n", "signoff.toml:2"),
        ("\u{0}", "signoff.toml:1"),
    ] {
        project.env.write("signoff.toml", text);
        let output = project.run(&["work"]);
        assert_eq!(output.code, Some(2), "{text:?}: {output}");
        assert!(output.stderr.contains(message), "{text:?}: {output}");
        assert!(output.stderr.contains("hint: "), "{text:?}: {output}");
    }
    project.env.write("signoff.toml", b"name = \"\xff\xfe\"\n");
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 2
    --- stderr
    error: signoff.toml is not UTF-8 text
      --> signoff.toml:1
    hint: save it as UTF-8
    ");
    project.configure("");
    assert_work_finishes(&project);
}

#[test]
fn a_database_of_garbage() {
    let project = project();
    let good = fs::read(database(&project)).unwrap();
    fs::write(file(&project), "garbage".repeat(1000)).unwrap();
    for words in [["work"].as_slice(), &["status"], &["add", "x"], &["doctor"], &[], &["--json"]] {
        let output = project.run(words);
        assert_eq!(output.code, Some(1), "{words:?}: {output}");
        assert!(output.stderr.contains(".signoff/signoff.db"), "{words:?}: {output}");
    }
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 1
    --- stderr
    error: the database is damaged: file is not a database
      --> .signoff/signoff.db
    hint: `signoff doctor --rebuild` rebuilds the tables; if it fails, restore a backup of the file, or move it away and start again: all branches are kept
    ");
    // The file was not overwritten.
    assert_eq!(fs::read(file(&project)).unwrap(), "garbage".repeat(1000).as_bytes());
    fs::write(file(&project), good).unwrap();
    assert_work_finishes(&project);
}

#[test]
fn a_damaged_page() {
    let project = project();
    let good = fs::read(database(&project)).unwrap();
    let mut bad = good.clone();
    let pages = bad.len() / 4096;
    for page in 1..pages {
        bad[page * 4096..page * 4096 + 64].fill(0xaa);
    }
    fs::write(file(&project), &bad).unwrap();
    let output = project.run(&["work"]);
    assert_eq!(output.code, Some(1), "{output}");
    insta::assert_snapshot!(output, @"
    exit 1
    --- stderr
    error: the database is damaged: database disk image is malformed
      --> .signoff/signoff.db
    hint: `signoff doctor --rebuild` rebuilds the tables; if it fails, restore a backup of the file, or move it away and start again: all branches are kept
    ");
    let doctor = project.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor}");
    fs::write(file(&project), good).unwrap();
    assert_work_finishes(&project);
}

#[test]
fn a_database_of_a_newer_signoff() {
    let project = project();
    sql(&project, "PRAGMA user_version = 99");
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 2
    --- stderr
    error: the database was written by a newer signoff (version 99, this signoff supports version 8)
    hint: update signoff
    ");
    assert_eq!(project.run(&[]), project.run(&["work"]));
}

#[test]
fn a_worktree_that_is_deleted_between_two_runs() {
    let project = project();
    project.set_agent(|script| agent(script.rule(ScriptRule::role("review").call(1).say("?\n").exit(7))));
    assert_eq!(project.run(&["work"]).code, Some(1));
    fs::remove_dir_all(project.env.work().join(".signoff/worktrees/task-1")).unwrap();
    insta::assert_snapshot!(project.run(&["retry", "1"]), @"
    exit 0
    --- stdout
    Retrying task #1: Do it
      [1/3] Asking general again...
      [1/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
    insta::assert_snapshot!(project.calls().summary(), @"
    implement task 1 cycle 0: exit 0
    review general task 1 cycle 1: exit 7
    review general task 1 cycle 1: exit 0
    ");
    insta::assert_snapshot!(project.git("ls-tree --name-only signoff/task-1-do-it"), @"
    README.md
    signoff.toml
    work.txt
    ");
}

#[test]
fn a_worktree_that_is_deleted_while_an_agent_works_in_it() {
    let project = project();
    project.set_agent(|script| {
        let deletes = ScriptRule::role("implement").call(1).write("work.txt", "work\n").shell("rm -rf \"$PWD\"");
        agent(script.rule(deletes))
    });
    let first = project.run(&["work"]);
    insta::assert_snapshot!(first, @"
    exit 1
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation failed: ended without changing anything
    ✗ Task #1 failed: the implementer failed (implementer_failed)
        Next: signoff show 1, then signoff retry 1
    ");
    insta::assert_snapshot!(project.run(&["retry", "1"]), @"
    exit 0
    --- stdout
    Retrying task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 1 cycle)
    ");
}

#[test]
fn all_files_of_signoff_are_deleted_between_two_runs() {
    let project = project();
    assert_work_finishes(&project);
    fs::remove_dir_all(project.env.work().join(".signoff")).unwrap();
    let output = project.run(&["status"]);
    assert_eq!(output.code, Some(0), "{output}");
    project.run(&["add", "Do it", "-a"]);
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 1
    --- stderr
    error: the branch signoff/task-1-do-it already exists
    hint: rename the other branch, `git branch -m signoff/task-1-do-it OTHER`; then run `signoff work`
    ");
    project.git("branch -m signoff/task-1-do-it other");
    assert_work_finishes(&project);
    let both = "for-each-ref --format='%(refname:short) %(tree)' refs/heads/signoff refs/heads/other";
    let printed = project.git(both);
    let trees: Vec<&str> = printed.lines().filter_map(|line| line.split_once(' ')).map(|(_, tree)| tree).collect();
    assert!(trees.len() == 2 && trees[0] == trees[1], "{printed}");
}

/// Limits how long the program waits for a lock.
const IMPATIENT: [(&str, &str); 1] = [("SIGNOFF_TEST_LOCK_TIMEOUT_MS", "200")];

#[test]
fn a_lock_on_a_ref_is_waited_for_and_then_named() {
    let project = project();
    let lock = project.env.work().join(".git/refs/heads/signoff/task-1-do-it.lock");
    fs::create_dir_all(lock.parent().unwrap()).unwrap();
    fs::write(&lock, "").unwrap();
    insta::assert_snapshot!(project.env.run_with(&["work"], &IMPATIENT), @"
    exit 1
    --- stderr
    error: [ROOT]/work/.git/refs/heads/signoff/task-1-do-it.lock is held by another program
      --> [ROOT]/work/.git/refs/heads/signoff/task-1-do-it.lock
    hint: wait for the other program; if none runs, remove the file and run the command again
    ");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"  · 1. implement Do it    pending");
    fs::remove_file(&lock).unwrap();
    assert_work_finishes(&project);
}

#[test]
fn a_lock_on_the_persons_index_is_ignored() {
    let project = project();
    fs::write(project.env.work().join(".git/index.lock"), "").unwrap();
    assert_work_finishes(&project);
    assert!(project.env.work().join(".git/index.lock").exists());
}

#[test]
fn a_lock_on_the_worktrees_index_is_waited_out() {
    let project = project();
    project.set_agent(|script| agent(script.rule(ScriptRule::role("review").call(1).leave_index_lock().exit(7))));
    assert_eq!(project.run(&["work"]).code, Some(1));
    assert_eq!(project.run(&["retry", "1"]).code, Some(0));
}

/// A small file system mounted on a directory; `None` without the permission to mount one.
struct SmallDisk<'a>(&'a TestProject);

impl<'a> SmallDisk<'a> {
    fn mount(project: &'a TestProject, directory: &str, size: &str) -> Option<Self> {
        let mounted =
            project.env.shell(&format!("mkdir -p {directory} && mount -t tmpfs -o size={size} none {directory}"));
        (mounted.code == Some(0)).then_some(Self(project))
    }
}

impl Drop for SmallDisk<'_> {
    fn drop(&mut self) {
        self.0.env.shell("umount -l .signoff");
    }
}

#[test]
fn a_full_disk() {
    let project = TestProject::with_agent(PROGRAM, agent);
    let Some(_disk) = SmallDisk::mount(&project, ".signoff", "3m") else { return };
    assert_eq!(project.run(&["add", "Do it", "-a"]).code, Some(0));
    project.env.shell("cat /dev/zero > .signoff/filler");
    let output = project.run(&["work"]);
    insta::assert_snapshot!(output, @"
    exit 1
    --- stderr
    error: the disk is full
    hint: free disk space and run the command again; nothing was lost
    ");
    project.env.shell("rm .signoff/filler");
    assert_work_finishes(&project);
}

#[test]
fn a_disk_that_fills_while_an_agent_talks() {
    let project = TestProject::with_agent(PROGRAM, |script| {
        agent(script.rule(ScriptRule::role("implement").call(1).write("work.txt", "work\n").flood(8_000_000)))
    });
    let Some(_disk) = SmallDisk::mount(&project, ".signoff", "4m") else { return };
    project.run(&["add", "Do it", "-a"]);
    let output = project.run(&["work"]);
    insta::assert_snapshot!(output, @"
    exit 1
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
    --- stderr
    error: cannot store the output in [ROOT]/work/.signoff/runs/1/1/a1: No space left on device (os error 28)
    hint: nothing was lost: `signoff work` continues
    ");
    project.env.shell("rm -f .signoff/runs/*/*/*/stdout");
    assert_work_finishes(&project);
}

#[test]
fn a_full_database() {
    let project = project();
    let output = project.env.run_with(&["work"], &[("SIGNOFF_TEST_MAX_PAGES", "1")]);
    insta::assert_snapshot!(output, @"
    exit 1
    --- stderr
    error: the disk is full
    hint: free disk space and run the command again; nothing was lost
    ");
    assert_work_finishes(&project);
}

/// Works the task; something happens while its implementer runs and lasts until the program ends.
fn work_while<T>(project: &TestProject, env: &[(&str, &str)], happens: impl FnOnce() -> T) -> ProgramOutput {
    project.set_agent(|script| {
        let waits = ScriptRule::role("implement").write("work.txt", "work\n").wait_for("../../../../go");
        agent(script.rule(waits))
    });
    thread::scope(|scope| {
        let work = scope.spawn(|| project.env.run_with(&["work"], env));
        wait_until("the implementer is at work", || !project.calls().all().is_empty());
        let _lasts = happens();
        fs::write(project.env.root().join("go"), "").expect("a file to wait for");
        work.join().expect("the program's end")
    })
}

/// Another process locks the database while the implementer ends. The next attempt must wait until the end is recorded.
#[test]
fn no_agent_starts_if_its_start_cannot_be_recorded() {
    let project = project();
    let output = work_while(&project, &IMPATIENT, || {
        let connection = rusqlite::Connection::open(file(&project)).unwrap();
        connection.execute_batch("BEGIN IMMEDIATE").unwrap();
        connection
    });
    insta::assert_snapshot!(output, @"
    exit 1
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
    --- stderr
    error: the database is busy: another program holds it
    hint: run the command again when the other program is done
    ");
    assert_eq!(project.calls().all().len(), 1, "{}", project.calls().summary());
    assert_work_finishes(&project);
    insta::assert_snapshot!(project.calls().summary(), @"
    implement task 1 cycle 0: exit 0
    review general task 1 cycle 1: exit 0
    ");
}

#[test]
fn a_database_that_is_moved_away_while_in_use() {
    let project = project();
    let home = project.env.work().join(".signoff");
    let moved = |from: &str, to: &str| {
        for more in ["", "-wal", "-shm"] {
            fs::rename(home.join(format!("{from}{more}")), home.join(format!("{to}{more}"))).unwrap();
        }
    };
    let output = work_while(&project, &[], || moved("signoff.db", "elsewhere"));
    insta::assert_snapshot!(output, @"
    exit 1
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
    --- stderr
    error: the database was removed while it was in use
      --> .signoff/signoff.db
    hint: restore the file and run the command again; otherwise the next command creates an empty store; the agents' commits are on their branches
    ");
    moved("elsewhere", "signoff.db");
    assert_work_finishes(&project);
    assert_eq!(project.calls().with_role("implement").count(), 1);
}

#[test]
fn a_new_database_does_not_reuse_task_numbers() {
    let project = project();
    assert_work_finishes(&project);
    let before = project.list(".signoff/reviews");
    for name in ["signoff.db", "signoff.db-wal", "signoff.db-shm"] {
        fs::remove_file(project.env.work().join(".signoff").join(name)).ok();
    }
    insta::assert_snapshot!(project.run(&["add", "Do it", "-a"]).stdout, @"Added task #2: Do it");
    assert_eq!(project.run(&["work"]).code, Some(0));
    insta::assert_snapshot!(project.list(".signoff/runs").join(" "), @"1 2");
    // Nothing of the first task was changed.
    let after = project.list(".signoff/reviews");
    assert!(before.iter().all(|name| after.contains(name)) && after.len() > before.len(), "{after:?}");
    insta::assert_snapshot!(project.git("branch --format='%(refname:short)'"), @"
    main
    signoff/task-1-do-it
    signoff/task-2-do-it
    ");
}

#[test]
fn submodules() {
    let project = project();
    project.git("clone -q . ../other && git -c protocol.file.allow=always submodule --quiet add ../other sub");
    project.commit("Submodule");
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 2
    --- stderr
    error: submodules are not supported yet: sub
    hint: work in a repository without submodules, or vendor them
    ");
    let doctor = project.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor}");
    assert!(doctor.stdout.contains("✗ repository: submodules are not supported yet: sub"), "{doctor}");
}

#[test]
fn missing_checks() {
    let project = project();
    let checks = "[agents.checks]\nkind = \"checks\"\n[reviewers.tests]\nkind = \"tests\"\nagent = \"checks\"\n\
                  [roles]\nimplement = \"scripted\"\n[gate]\nreviewers = [\"tests\"]\n";
    project.configure(checks);
    insta::assert_snapshot!(project.run(&["work"]), @r#"
    exit 2
    --- stderr
    error: reviewer tests runs the project's checks, and there are none
    hint: name them in [checks] of signoff.toml: test = "make test"
    "#);
    let doctor = project.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor}");
    assert!(doctor.stdout.contains("✗ agents: reviewer tests runs the project's checks"), "{doctor}");
    assert_eq!(project.calls().all().len(), 0, "no agent was called");
    project.configure(&format!("{checks}[checks]\ntest = \"true\"\n"));
    assert_work_finishes(&project);
}

#[test]
fn a_phase_of_checks_without_checks() {
    let project = project();
    project.configure(
        "preset = \"mine\"\n[workflows.mine]\n[[workflows.mine.phases]]\nname = \"implement\"\nkind = \"agent\"\n\
         [[workflows.mine.phases]]\nname = \"test\"\nkind = \"check\"\n",
    );
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 0
    --- stdout
    Running task #1: Do it
      Implementing...
      Implementation complete
      [1/3] Running checks...
      [1/3] Nothing to check: no checks are configured, and none were found
    ○ Task #1 completed (not reviewed)
    ");
}

#[test]
fn settings_that_cannot_be_applied() {
    let project = project();
    project.configure("review_workspace = \"copy\"\n[worktree]\ncopy = [\"nope.txt\", \".signoff\"]\n");
    insta::assert_snapshot!(project.run(&["doctor"]).stdout, @"
    ✓ repository: on branch main
    ✓ agents: scripted
    ✓ store: the log is readable and the tables match it
    ✓ sandbox: switched off; signoff reverts reviewers' changes
    ! settings: [worktree] copy: there is no nope.txt; it is not copied
    ! settings: [worktree] copy: .signoff is a directory; only files are copied
    ");
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 0
    --- stdout
    Running task #1: Do it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 1 cycle)
    --- stderr
    warning: [worktree] copy: there is no nope.txt; it is not copied
    warning: [worktree] copy: .signoff is a directory; only files are copied
    ");
    project.configure("store = \"postgres://me:secret@db/signoff\"\n");
    insta::assert_snapshot!(project.run(&["work"]), @r#"
    exit 2
    --- stderr
    error: `store` names a PostgreSQL database, which is not supported yet: expected "sqlite"
      --> signoff.toml:3
    hint: fix the file, then check it with `signoff config`
    "#);
    let from_outside = project.env.run_with(&["add", "x"], &[("SIGNOFF_STORE", "postgres://db")]);
    insta::assert_snapshot!(from_outside, @r#"
    exit 2
    --- stderr
    error: `store` names a PostgreSQL database, which is not supported yet: expected "sqlite"
      --> SIGNOFF_STORE
    hint: give SIGNOFF_STORE another value, or leave it out
    "#);
}

#[test]
fn a_plan_in_another_format_than_stated() {
    let project = project();
    project.env.write("plan.md", "### Task 1: Do it\n\nNow.\n");
    insta::assert_snapshot!(project.run(&["run", "plan.md", "--as", "beads"]), @r#"
    exit 2
    --- stderr
    error: not JSON; expected an array of issues, {"data": […]}, {"issues": […]}, or one issue a line
      --> plan.md:1
    hint: fix the file, or set its kind with --as: plan, spec, beads
    "#);
}

#[test]
fn an_answer_without_a_question() {
    let project = project();
    insta::assert_snapshot!(project.run(&["answer", "1", "retry"]), @"
    exit 2
    --- stderr
    error: there is no open question 1
    hint: `signoff status` shows what each task waits for
    ");
}

#[test]
fn a_detached_head() {
    let project = project();
    project.git("checkout -q --detach");
    assert_work_finishes(&project);
    assert_eq!(project.env.shell("git symbolic-ref -q HEAD").code, Some(1));
}

#[test]
fn a_subdirectory_and_a_linked_worktree() {
    let project = project();
    project.env.write("a/b/c.txt", "c\n");
    let output = project.env.shell("cd a/b && signoff work");
    assert_eq!(output.code, Some(0), "{output}");
    project.git("worktree add -q ../linked -b linked");
    let output =
        project.env.shell("cd ../linked && signoff status && signoff add 'Second' && signoff work && signoff status");
    insta::assert_snapshot!(output, @"
    exit 0
    --- stdout
      ✓ 1. implement Do it    completed  APPROVED (1 cycle)
    Added task #2: Second
    Running task #2: Second
      Implementing...
      Implementation complete
    ○ Task #2 completed (not reviewed)
      ✓ 1. implement Do it     completed  APPROVED (1 cycle)
      ○ 2. implement Second    completed  not reviewed
    --- stderr
    `signoff work` starts it
    ");
    assert!(!project.env.root().join("linked/.signoff").exists());
}

#[test]
fn an_existing_branch() {
    let project = project();
    project.git("branch signoff/task-1-do-it");
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 1
    --- stderr
    error: the branch signoff/task-1-do-it already exists
    hint: rename the other branch, `git branch -m signoff/task-1-do-it OTHER`; then run `signoff work`
    ");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"  · 1. implement Do it    pending");
    project.git("branch -m signoff/task-1-do-it mine");
    assert_work_finishes(&project);
}

#[test]
fn a_branch_name_that_is_a_directory_of_branches() {
    let project = project();
    project.git("branch signoff");
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 1
    --- stderr
    error: the branch signoff already exists
    hint: rename the other branch, `git branch -m signoff OTHER`; then run `signoff work`
    ");
    project.git("branch -m signoff mine");
    assert_work_finishes(&project);
}

#[test]
fn invalid_titles() {
    let project = TestProject::with_agent(PROGRAM, agent);
    let long = "a very long title ".repeat(100_000 / 18);
    for title in
        ["!?.,;:", "../../etc/passwd", "-rf", "日本語のタスク", "a\tb\r\nc\u{1b}[31md", "x.lock", "@{", long.trim()]
    {
        let added = project.run(&["add", "--", title]);
        assert_eq!(added.code, Some(0), "{title:.40}: {added}");
    }
    assert_eq!(project.run(&["add", ""]).code, Some(2));
    assert_eq!(project.run(&["add", " \n "]).code, Some(2));
    let output = project.run(&["work", "-j", "1"]);
    assert_eq!(output.code, Some(0), "{output}");
    insta::assert_snapshot!(project.git("for-each-ref --format='%(refname:short)' refs/heads/signoff"), @"
    signoff/task-1
    signoff/task-2-etc-passwd
    signoff/task-3-rf
    signoff/task-4
    signoff/task-5-a-b
    signoff/task-6-x-lock
    signoff/task-7
    signoff/task-8-a-very-long-title-a-very-long-title-a
    ");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
    ○ 1. implement !?.,;:                                                          completed  not reviewed
    ○ 2. implement ../../etc/passwd                                                completed  not reviewed
    ○ 3. implement -rf                                                             completed  not reviewed
    ○ 4. implement 日本語のタスク                                                  completed  not reviewed
    ○ 5. implement a b                                                             completed  not reviewed
    ○ 6. implement x.lock                                                          completed  not reviewed
    ○ 7. implement @{                                                              completed  not reviewed
    ○ 8. implement a very long title a very long title a very long title a ver…    completed  not reviewed
    ");
}

#[test]
fn without_a_home() {
    let project = project();
    let output = project.env.shell("unset HOME && signoff work");
    assert_eq!(output.code, Some(0), "{output}");
}

#[test]
fn without_git() {
    let project = project();
    let output = project.env.run_with(&["work"], &[("PATH", "/nowhere")]);
    insta::assert_snapshot!(output, @"
    exit 2
    --- stderr
    error: git is not installed, or not in PATH
    hint: install git 2.32 or newer
    ");
    assert_work_finishes(&project);
}

#[test]
fn a_directory_that_is_not_writable() {
    let project = TestProject::with_agent(PROGRAM, agent);
    // Root ignores permissions, but not a read-only file system.
    let disk = SmallDisk::mount(&project, ".signoff", "30m");
    let (close, open) = match disk {
        Some(_) => ("mount -o remount,ro .signoff", "mount -o remount,rw .signoff"),
        None => ("chmod -R a-w .signoff", "chmod -R u+w .signoff"),
    };
    project.run(&["add", "Do it", "-a"]);
    project.env.shell(close);
    let output = project.run(&["work"]);
    assert_eq!(output.code, Some(1), "{output}");
    assert!(output.stderr.contains(".signoff/signoff.db\nhint: check that the file"), "{output}");
    project.env.shell(open);
    assert_work_finishes(&project);
}
