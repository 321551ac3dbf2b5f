//! Every task is worked once, whoever else wants it.

use std::collections::BTreeSet;

use signoff_testkit::{Output, Project};

use super::{BD, asked, bead, beads, install, said, tracked, well, works};
use crate::PROGRAM;

/// Two programs with sixteen slots each.
fn two_programs(project: &Project, source: &[&str]) -> [Output; 2] {
    let arguments = [&["run"], source, &["-j", "16"]].concat();
    let programs = [project.start(&arguments), project.start(&arguments)];
    programs.map(|program| project.env.finish(program))
}

/// A hundred tasks were worked, each once.
fn assert_each_once(project: &Project, outputs: &[Output]) {
    for output in outputs {
        assert_eq!(output.code, Some(0), "{output}");
    }
    let calls = project.calls();
    let worked: Vec<&str> = calls.of_role("implement").map(|call| call.start.task.as_str()).collect();
    assert_eq!((worked.len(), worked.iter().collect::<BTreeSet<_>>().len()), (100, 100));
    let titles: BTreeSet<&str> = calls
        .all()
        .iter()
        .map(|call| call.prompt.lines().find(|line| line.contains("Bead number")).expect("a title"))
        .collect();
    assert_eq!(titles.len(), 100);
    assert_eq!(project.run(&["doctor"]).code, Some(0));
}

fn hundred() -> Vec<String> {
    (1..=100).map(|number| format!("Bead number {number}")).collect()
}

#[test]
fn a_hundred_beads_of_a_program() {
    let titles = hundred();
    let project = tracked(&titles.iter().map(String::as_str).collect::<Vec<_>>(), well);
    let outputs = two_programs(&project, &["beads"]);
    assert_each_once(&project, &outputs);
    assert_eq!(beads(&project, "closed").len(), 100);
    let claims = asked(&project).lines().filter(|line| line.starts_with("update")).count();
    assert_eq!(claims, 100);
}

#[test]
fn a_hundred_beads_of_a_file() {
    let project = Project::with_agent(PROGRAM, well);
    let lines: String =
        (1..).zip(hundred()).map(|(number, title)| bead(&format!("b-{number}"), &title, 2) + "\n").collect();
    project.env.write("issues.jsonl", lines);
    let outputs = two_programs(&project, &["issues.jsonl"]);
    assert_each_once(&project, &outputs);
}

#[test]
fn a_hundred_tasks_of_the_queue() {
    let project = Project::with_agent(PROGRAM, well);
    let adds: String = hundred().iter().map(|title| format!("signoff add '{title}' >/dev/null\n")).collect();
    project.env.shell(&adds);
    let outputs = two_programs(&project, &["queue"]);
    assert_each_once(&project, &outputs);
}

#[test]
fn what_somebody_else_has_is_left_to_them() {
    let project = tracked(&["One", "Two"], |script| script.rule(works()));
    // The claim succeeds, and yet the first bead is Bob's.
    let program = BD.replace("show)\n", "show)\n[ $2 = b-1 ] && { sed 's/\"open\"/\"in_progress\",\"assignee\":\"Bob\"/' begun/b-1; exit; }\n");
    install(&project, &program);
    insta::assert_snapshot!(said(&project.run(&["run", "beads", "-j", "1"])), @"
    exit 0
    --- stdout
    – Task #1 cancelled
    Running task #2: Two
      Implementing...
      Implementation complete
      Landing...
      Landed on signoff/run-1 as [COMMIT]
    ✓ Task #2 completed (not reviewed)
    ✓ Run 1 is through, not all approved: 2 tasks, 1 cancelled, 1 completed
        It is on signoff/run-1; signoff land brings what is approved to the default branch
    --- stderr
    b-1 is left to others: Bob has it
    ");
    assert_eq!(beads(&project, "closed"), ["b-2"]);
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
    – 1. implement One    cancelled
    ✓ 2. implement Two    completed  not reviewed
    ");
}

#[test]
fn a_cancelled_task_gives_its_bead_back() {
    let project = Project::with_agent(PROGRAM, |script| {
        script.rule(signoff_testkit::script::Rule::role("implement").exit(1))
    });
    project.env.write("issues.jsonl", bead("b-1", "One", 2));
    assert_eq!(project.run(&["run", "issues.jsonl"]).code, Some(1));
    insta::assert_snapshot!(said(&project.run(&["run", "issues.jsonl"])), @"
    exit 0
    --- stderr
    b-1 is left out: task 1 has it (failed): `signoff retry 1` goes on with it
    Nothing is ready in issues.jsonl
    ");
    insta::assert_snapshot!(said(&project.run(&["cancel", "1"])), @"
    exit 0
    --- stdout
    Task #1 cancelled
    ");
    project.set_agent(well);
    assert_eq!(project.run(&["run", "issues.jsonl"]).code, Some(0));
    insta::assert_snapshot!(project.run(&["status"]).stdout, @"
    – 1. implement One    cancelled
    ✓ 2. implement One    completed  not reviewed
    ");
}

#[test]
fn killed_between_the_store_and_the_tracker() {
    for place in ["claimed:1", "closed:1", "placed:1", "appended:2", "appended:3"] {
        let project = tracked(&["One", "Two"], well);
        let killed = project.env.run_with(&["run", "beads", "-j", "2"], &[("SIGNOFF_FAILPOINT", place)]);
        assert_eq!(killed.signal, Some(9), "{place}: {killed}");
        let output = project.run(&["run", "--resume"]);
        assert_eq!(output.code, Some(0), "{place}: {output}");
        assert_eq!(beads(&project, "closed"), ["b-1", "b-2"], "{place}: {output}{}", asked(&project));
        assert_eq!(project.run(&["doctor"]).code, Some(0));
    }
}
