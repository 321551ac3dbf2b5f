//! A `.signoff` directory that an earlier version wrote opens, replays and continues.
//!
//! `testdata/projects/unfinished-work` holds a landed task, one that ran out of cycles, one with an open question, one whose
//! program was killed while its agent worked, and one that was not begun. Its `notified` lists a delivered message, and
//! an undelivered one about the question. Commit d668c01a wrote it, the last one before the types were renamed, with
//! version 7 of the database. `@WORK@`, `@HOME@`, `@PLACE@` and `@PROGRAM@` stand for the paths of the project, of the home
//! directory, of the directory around them and of the program.

use std::fs;
use std::path::{Path, PathBuf};

use signoff_testkit::agent_script::ScriptRule;
use signoff_testkit::{ProgramOutput, TestProject};

use crate::PROGRAM;

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/projects/unfinished-work")
}

fn project() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").append("work.txt", "done\n").say("Done.\n"))
            .rule(ScriptRule::role("fix").append("work.txt", "fixed\n").say("Fixed.\n"))
            .rule(ScriptRule::role("review").say("Fine.\n\n**Verdict: APPROVED**\n"))
    });
    let bundle = fixture().join("repository.bundle");
    project.git(&format!("fetch -q --update-head-ok {:?} '+refs/*:refs/*'", bundle.display().to_string()));
    project.git("reset -q --hard main");
    project.configure("[gate]\non_discussion = \"ask\"\n");
    let directory = project.env.work().join(".signoff");
    copy(&fixture().join("signoff"), &directory, &project);
    let database = rusqlite::Connection::open(directory.join("signoff.db")).expect("the fixture can be read");
    let dump = fs::read_to_string(fixture().join("database.sql")).expect("the fixture can be read");
    database.execute_batch(&with_paths(&dump, &project)).expect("the fixture can be read");
    project
}

fn with_paths(text: &str, project: &TestProject) -> String {
    let (work, root) = (project.env.work(), project.env.root());
    let paths = [("@WORK@", &*work), ("@PLACE@", root), ("@HOME@", &root.join("home"))];
    let text = text.replace("@PROGRAM@", PROGRAM);
    paths.into_iter().fold(text, |text, (name, path)| text.replace(name, &path.display().to_string()))
}

fn copy(from: &Path, to: &Path, project: &TestProject) {
    fs::create_dir_all(to).expect("the fixture can be read");
    for entry in fs::read_dir(from).expect("the fixture can be read") {
        let (path, name) = entry.map(|entry| (entry.path(), entry.file_name())).expect("the fixture can be read");
        if path.is_dir() {
            copy(&path, &to.join(name), project);
        } else {
            let text = fs::read_to_string(&path).expect("the fixture can be read");
            fs::write(to.join(name), with_paths(&text, project)).expect("the fixture can be read");
        }
    }
}

#[test]
fn its_tasks_are_listed_as_before() {
    insta::assert_snapshot!(project().run(&["status"]), @"
    exit 0
    --- stdout
      ✓ 1. implement Approve later     completed  APPROVED (2 cycles)
      ! 2. implement Never good        completed  MAX_CYCLES_REACHED (2 cycles)
      ! 3. implement Talk about it     waiting     (cycle 1/3)
      → 4. implement Killed at work    in_progress (implement)
      · 5. implement Not begun         pending

    Questions:
      q1 task 3: general requests a discussion. Fix, proceed, or stop?
          signoff answer 3 CHOICE (fix, proceed, stop, restart)
    ");
}

#[test]
fn its_runs_are_replayed() {
    insta::assert_snapshot!(project().run(&["replay", "1", "--speed", "max", "--plain"]), @"
    exit 0
    --- stdout
    Running task #1: Approve later
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - too short
      [2/3] Improving...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    Running task #2: Never good
      [1/2] Implementing...
      [1/2] Implementation complete
      [1/2] Running review...
      [1/2] Review: CHANGES_REQUESTED - too short
      [2/2] Improving...
      [2/2] Running review...
      [2/2] Review: CHANGES_REQUESTED - too short
    Max review cycles (2) reached without approval
    ! Task #2 completed (MAX_CYCLES_REACHED after 2 cycles)
        Next: signoff show 2, then signoff improve 2 --review or signoff edit 2 --verdict APPROVED
    Running task #3: Talk about it
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: NEEDS_DISCUSSION - None or ValueError?
      [1/3] Question: general requests a discussion. Fix, proceed, or stop?
        signoff answer 3 CHOICE (fix, proceed, stop, restart)
      #1 Landing...
      #1 Landed as 293c8a1d2764594674413c9614b338f12a166aab
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    insta::assert_snapshot!(project().run(&["replay", "2", "--speed", "max", "--plain"]), @"
    exit 0
    --- stdout
    Running task #4: Killed at work
      [1/3] Implementing...
    ");
}

#[test]
fn a_run_with_a_killed_attempt_is_replayed_after_it_continued() {
    let project = project();
    project.run(&["work", "--jobs", "1"]);
    insta::assert_snapshot!(project.run(&["replay", "2", "--speed", "max", "--plain"]), @"
    exit 0
    --- stdout
    Running task #4: Killed at work
      [1/3] Implementing...
      [1/3] An attempt was lost when signoff ended; trying again
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #4 completed (APPROVED after 1 cycle)
    Running task #5: Not begun
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #5 completed (APPROVED after 1 cycle)
    ✓ Run 2 completed, all approved: 2 tasks, 2 completed
    ");
}

/// The database lists the deliveries instead.
#[test]
fn its_list_of_deliveries_is_neither_read_nor_changed() {
    let project = project();
    let channel = "[notify]\nquestion = [\"list\"]\nstuck = [\"list\"]\ndone = [\"list\"]\n\
                   [notify.channels.list]\nkind = \"command\"\ncommand = [\"cat\"]\n";
    project.configure(&format!("[gate]\non_discussion = \"ask\"\n{channel}"));
    let before = project.read(".signoff/notified");
    assert_eq!(before.lines().count(), 3);
    let status = project.run(&["status"]);
    assert_eq!((status.code, status.stderr.as_str()), (Some(0), ""), "{status}");
    let worked = project.run(&["work", "--jobs", "1"]);
    assert_eq!(worked.code, Some(3), "{worked}");
    assert_eq!(project.read(".signoff/notified"), before);
}

#[test]
fn its_unfinished_work_continues() {
    let project = project();
    insta::assert_snapshot!(project.run(&["work", "--jobs", "1"]), @"
    exit 3
    --- stdout
    Resuming task #4: Killed at work
      [1/3] An attempt was lost when signoff ended; trying again
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #4 completed (APPROVED after 1 cycle)
    Running task #5: Not begun
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: APPROVED
    ✓ Task #5 completed (APPROVED after 1 cycle)
    ✓ Run 2 completed, all approved: 2 tasks, 2 completed
    --- stderr
    Task #2 is not approved (completed MAX_CYCLES_REACHED (2 cycles)): signoff show 2, then signoff improve 2 --review or signoff edit 2 --verdict APPROVED
    Task #3 waits for you (q1): general requests a discussion. Fix, proceed, or stop?
      signoff answer 3 CHOICE (fix, proceed, stop, restart)
    ");
    insta::assert_snapshot!(project.run(&["answer", "3", "proceed"]), @"
    exit 0
    --- stdout
    q1 answered: proceed
    ! Task #3 completed with issues (NEEDS_DISCUSSION after 1 cycle): a reviewer asks for a discussion (discussion)
        Next: signoff show 3, then signoff improve 3 --review
    ");
    insta::assert_snapshot!(project.run(&["retry", "2"]), @"
    exit 0
    --- stdout
    Retrying task #2: Never good
      [3/3] Improving...
      [3/3] Running review...
      [3/3] Review: APPROVED
    ✓ Task #2 completed (APPROVED after 3 cycles)
    ! Run 1 completed, not all approved: 3 tasks, 3 completed
    ");
    insta::assert_snapshot!(project.run(&["status"]), @"
    exit 0
    --- stdout
      ✓ 1. implement Approve later     completed  APPROVED (2 cycles)
      ✓ 2. implement Never good        completed  APPROVED (3 cycles)
      ! 3. implement Talk about it     completed  NEEDS_DISCUSSION (1 cycle)
      ✓ 4. implement Killed at work    completed  APPROVED (1 cycle)
      ✓ 5. implement Not begun         completed  APPROVED (1 cycle)
    ");
}

#[test]
fn rebuilding_its_tables_gives_the_same_rows() {
    let project = project();
    let all = |project: &TestProject| -> Vec<ProgramOutput> {
        let commands = [vec!["status", "--json"], vec!["show", "1", "--json"], vec!["show", "3", "--json"]];
        commands.iter().map(|command| project.run(command)).collect()
    };
    let before = all(&project);
    project.run(&["doctor", "--rebuild"]);
    assert_eq!(all(&project), before);
}
