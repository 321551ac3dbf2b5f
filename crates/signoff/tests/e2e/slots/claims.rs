//! Every task is worked once, even if several programs and people claim it.

use std::collections::BTreeSet;

use signoff_testkit::agent_script::ScriptRule;
use signoff_testkit::processes::wait_until;
use signoff_testkit::{ProgramOutput, TestProject};

use super::{BD, bead, beads, install, passing_agent, tracked, tracker_calls, without_commit_ids, works};
use crate::PROGRAM;

/// Two programs with sixteen slots each.
fn two_programs(project: &TestProject, source: &[&str]) -> [ProgramOutput; 2] {
    let arguments = [&["run"], source, &["-j", "16"]].concat();
    let programs = [project.start(&arguments), project.start(&arguments)];
    programs.map(|program| project.env.finish(program))
}

/// Each of a hundred tasks was worked once.
fn assert_each_once(project: &TestProject, outputs: &[ProgramOutput]) {
    for output in outputs {
        assert_eq!(output.code, Some(0), "{output}");
    }
    let calls = project.calls();
    let worked: Vec<&str> = calls.with_role("implement").map(|call| call.start.task.as_str()).collect();
    assert_eq!((worked.len(), worked.iter().collect::<BTreeSet<_>>().len()), (100, 100));
    let titles: BTreeSet<&str> = calls
        .all()
        .iter()
        .map(|call| call.prompt.lines().find(|line| line.contains("Bead number")).expect("a title"))
        .collect();
    assert_eq!(titles.len(), 100);
    assert_eq!(project.run(&["doctor"]).code, Some(0));
}

fn hundred_titles() -> Vec<String> {
    (1..=100).map(|number| format!("Bead number {number}")).collect()
}

#[test]
fn a_hundred_beads_of_a_program() {
    let titles = hundred_titles();
    let project = tracked(&titles.iter().map(String::as_str).collect::<Vec<_>>(), passing_agent);
    let outputs = two_programs(&project, &["beads"]);
    assert_each_once(&project, &outputs);
    assert_eq!(beads(&project, "closed").len(), 100);
    let claims = tracker_calls(&project).lines().filter(|line| line.starts_with("update")).count();
    assert_eq!(claims, 100);
}

#[test]
fn a_hundred_beads_of_a_file() {
    let project = TestProject::with_agent(PROGRAM, passing_agent);
    let lines: String =
        (1..).zip(hundred_titles()).map(|(number, title)| bead(&format!("b-{number}"), &title, 2) + "\n").collect();
    project.env.write("issues.jsonl", lines);
    let outputs = two_programs(&project, &["issues.jsonl"]);
    assert_each_once(&project, &outputs);
}

#[test]
fn a_hundred_tasks_of_the_queue() {
    let project = TestProject::with_agent(PROGRAM, passing_agent);
    let adds: String = hundred_titles().iter().map(|title| format!("signoff add '{title}' >/dev/null\n")).collect();
    project.env.shell(&adds);
    let outputs = two_programs(&project, &["queue"]);
    assert_each_once(&project, &outputs);
}

#[test]
fn a_bead_of_another_assignee_is_left_alone() {
    let project = tracked(&["One", "Two"], |script| script.rule(works()));
    // The claim succeeds, but the first bead is assigned to Bob.
    let program = BD.replace(
        "show)\n",
        "show)\n[ $2 = b-1 ] && { sed 's/\"open\"/\"in_progress\",\"assignee\":\"Bob\"/' begun/b-1; exit; }\n",
    );
    install(&project, &program);
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads", "-j", "1"])), @"
    exit 0
    --- stdout
    - Task #1 (b-1) cancelled
    Running task #2 (b-2): Two
      #2 b-2 Implementing...
      #2 b-2 Implementation complete
      #2 b-2 Landing...
      #2 b-2 Landed on signoff/run-1 as [COMMIT]
    ○ Task #2 (b-2) completed (not reviewed)
    ○ Run 1 completed, not all approved: 2 tasks, 1 cancelled, 1 completed
        Its work is on signoff/run-1; `signoff land` lands the approved work on the default branch
    --- stderr
    skipped b-1: claimed by Bob; if that is you, set BD_ACTOR and reopen b-1
    ");
    assert_eq!(beads(&project, "closed"), ["b-2"]);
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
    - 1. implement One    cancelled
    ○ 2. implement Two    completed  not reviewed
    ");
}

/// A tracker that assigns claimed beads to this name, and the name that a claim reports, if any.
fn assign_claims_to(project: &TestProject, assignee: &str, reported_name: Option<&str>) {
    let claimed_by = |name: &str| format!(r#"sed "s/\"open\"/\"in_progress\",\"assignee\":\"{name}\"/""#);
    let claimed = reported_name.map(|name| format!("&& {} \"begun/$2\"", claimed_by(name))).unwrap_or_default();
    let program = BD
        .replace("\"begun/$2\" 2>/dev/null ||", &format!("\"begun/$2\" 2>/dev/null {claimed} ||"))
        .replace(r#"sed 's/"open"/"in_progress","assignee":"Ann"/'"#, &claimed_by(assignee));
    assert_ne!(program, BD);
    install(project, &program);
}

#[test]
fn a_claim_succeeds_under_any_assignee_name() {
    for (assignee, reported_name) in [
        // Without an account name, as under cron, it gets one.
        ("${USER:-nobody}", None),
        // The placeholder for an unknown name belongs to no other person.
        ("unknown", None),
        // It is configured with another name and reports it.
        ("Fleet", Some("Fleet")),
    ] {
        let project = tracked(&["One"], passing_agent);
        assign_claims_to(&project, assignee, reported_name);
        let output = project.run(&["run", "beads"]);
        assert_eq!(output.code, Some(0), "{assignee}: {output}");
        assert_eq!(beads(&project, "closed"), ["b-1"], "{assignee}: {output}");
    }
}

#[test]
fn a_run_whose_beads_are_all_claimed_by_others_has_done_nothing() {
    let project = tracked(&["One", "Two"], passing_agent);
    // The claim succeeded, and then the bead was assigned to Bob.
    assign_claims_to(&project, "Bob", Some("Fleet"));
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads", "-j", "1"])), @"
    exit 0
    --- stdout
    - Task #1 (b-1) cancelled
    - Task #2 (b-2) cancelled
    - Run 1 ended, all tasks cancelled: 2 tasks, 2 cancelled
    --- stderr
    skipped b-1: claimed by Bob; if that is you, set BD_ACTOR and reopen b-1
    skipped b-2: claimed by Bob; if that is you, set BD_ACTOR and reopen b-2
    No task was started: other workers claimed every ready task first
    ");
    assert_eq!(beads(&project, "begun"), ["b-1", "b-2"], "what is Bob's stays so");
}

#[test]
fn a_cancelled_task_is_reopened_in_the_tracker() {
    let project = tracked(&["One"], |script| script.rule(ScriptRule::role("implement").exit(1)));
    assert_eq!(project.run(&["run", "beads"]).code, Some(1));
    assert_eq!(beads(&project, "begun"), ["b-1"]);
    insta::assert_snapshot!(without_commit_ids(&project.run(&["cancel", "1"])), @"
    exit 0
    --- stdout
    Task #1 cancelled
    ");
    assert_eq!(beads(&project, "open"), ["b-1"]);
    insta::assert_snapshot!(tracker_calls(&project).lines().last().unwrap(), @"update b-1 --status open --assignee");
    project.set_agent(passing_agent);
    assert_eq!(project.run(&["run", "beads"]).code, Some(0));
    assert_eq!(beads(&project, "closed"), ["b-1"]);
}

/// The second task is cancelled while it runs; the first ends after that.
#[test]
fn a_cancelled_task_is_not_started_again_by_the_same_run() {
    let project = tracked(&["One", "Two"], |script| {
        let hangs =
            ScriptRule::role("implement").task("2").write("../../../../begun", "").wait_for("../../../../never");
        script.rule(hangs).rule(works().wait_for("../../../../go"))
    });
    let program = project.start(&["run", "beads", "-j", "2"]);
    wait_until("the second is worked", || project.env.root().join("begun").exists());
    let cancelled = project.env.shell("signoff cancel 2 && touch ../go");
    assert_eq!(cancelled.code, Some(0), "{cancelled}");
    let output = project.env.finish(program);
    assert_eq!(output.code, Some(0), "{output}");
    assert_eq!((beads(&project, "closed"), beads(&project, "open")), (vec!["b-1".to_owned()], vec!["b-2".to_owned()]));
}

#[test]
fn a_cancelled_task_releases_its_bead() {
    let project = TestProject::with_agent(PROGRAM, |script| script.rule(ScriptRule::role("implement").exit(1)));
    project.env.write("issues.jsonl", bead("b-1", "One", 2));
    assert_eq!(project.run(&["run", "issues.jsonl"]).code, Some(1));
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "issues.jsonl"])), @"
    exit 0
    --- stderr
    Skipped b-1: claimed by task 1 (failed): signoff show 1, then signoff retry 1
    Nothing is ready in issues.jsonl
    ");
    insta::assert_snapshot!(without_commit_ids(&project.run(&["cancel", "1"])), @"
    exit 0
    --- stdout
    Task #1 cancelled
    ");
    project.set_agent(passing_agent);
    assert_eq!(project.run(&["run", "issues.jsonl"]).code, Some(0));
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
    - 1. implement One    cancelled
    ○ 2. implement One    completed  not reviewed
    ");
}

#[test]
fn killed_between_the_store_and_the_tracker() {
    for place in ["claimed:1", "closed:1", "workspace_created:1", "appended:2", "appended:3"] {
        let project = tracked(&["One", "Two"], passing_agent);
        let killed = project.env.run_with(&["run", "beads", "-j", "2"], &[("SIGNOFF_FAILPOINT", place)]);
        assert_eq!(killed.signal, Some(9), "{place}: {killed}");
        let output = project.run(&["run", "--resume"]);
        assert_eq!(output.code, Some(0), "{place}: {output}");
        assert_eq!(beads(&project, "closed"), ["b-1", "b-2"], "{place}: {output}{}", tracker_calls(&project));
        assert_eq!(project.run(&["doctor"]).code, Some(0));
    }
}

#[test]
fn a_killed_run_is_named_before_the_next_one() {
    let project = tracked(&["One"], passing_agent);
    let killed = project.env.run_with(&["run", "beads"], &[("SIGNOFF_FAILPOINT", "claimed:1")]);
    assert_eq!((killed.signal, beads(&project, "begun").len()), (Some(9), 1), "{killed}");
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads"])), @"
    exit 0
    --- stderr
    Run 1 has 1 unfinished task: `signoff run --resume 1` continues it
    Nothing is ready in bd
    ");
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
      · 1. implement One    pending

    Runs:
      → run 1: 1 unfinished task
          signoff run --resume 1
    ");
    insta::assert_snapshot!(project.run(&[]).stdout, @"
    Interrupted:
      → run 1: 1 unfinished task
          signoff run --resume 1

    1 pending
      signoff work    works what is pending
    ");
    let two = project.env.root().join("beads/open/b-2");
    std::fs::write(two, bead("b-2", "Two", 2) + "\n").unwrap();
    insta::assert_snapshot!(without_commit_ids(&project.run(&["run", "beads"])), @"
    exit 0
    --- stdout
    Running task #2 (b-2): Two
      #2 b-2 Implementing...
      #2 b-2 Implementation complete
      #2 b-2 Landing...
      #2 b-2 Landed on signoff/run-2 as [COMMIT]
    ○ Task #2 (b-2) completed (not reviewed)
    --- stderr
    Run 1 has 1 unfinished task: `signoff run --resume 1` continues it
    ");
    assert_eq!(project.run(&["run", "--resume", "1"]).code, Some(0));
    assert_eq!(beads(&project, "closed"), ["b-1", "b-2"]);
    assert!(!project.run(&["status"]).stdout.contains("Runs:"));
}
