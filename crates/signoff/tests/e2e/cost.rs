//! The number of processes and syncs of a loop, as the program counts them. `bench/cost.sh` measures the time.

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};

use crate::PROGRAM;

/// Implement, a review that asks for changes, fix, a review that approves.
fn one_fix(script: AgentScript) -> AgentScript {
    script
        .rule(ScriptRule::role("implement").write("auth.txt", "login\n").say("Done.\n"))
        .rule(ScriptRule::role("fix").append("auth.txt", "fixed\n").say("Fixed.\n"))
        .rule(ScriptRule::role("review").cycle(1).say("- auth.txt:1 too short\n\n**Verdict: CHANGES_REQUESTED**\n"))
        .rule(ScriptRule::role("review").say("All is well.\n\n**Verdict: APPROVED**\n"))
}

/// The numbers that `work -v` prints at its end: git processes, commits of the store, agents.
fn work_counts(stderr: &str) -> [u64; 3] {
    let line = stderr.lines().find(|line| line.contains("git processes")).expect("a line with the count");
    let numbers: Vec<u64> = line.split(' ').filter_map(|word| word.parse().ok()).collect();
    numbers.try_into().expect("three numbers")
}

#[test]
fn a_loop_costs_few_processes_and_few_syncs() {
    let project = TestProject::with_agent(PROGRAM, one_fix);
    project.run(&["add", "Add user authentication", "--auto-review", "--max-cycles", "3"]);
    let [git, commits, agents] = work_counts(&project.run(&["-v", "work"]).stderr);
    assert_eq!(agents, 4);
    assert!(git <= 20, "{git} git processes");
    assert!(commits <= 10, "{commits} commits");
}

#[test]
fn a_second_reviewer_costs_little_more() {
    let project = TestProject::with_agent(PROGRAM, one_fix);
    project.configure("[gate]\nreviewers = [\"code\", \"spec\"]\n[reviewers.code]\n[reviewers.spec]\n");
    project.run(&["add", "Add user authentication", "--auto-review", "--max-cycles", "3"]);
    let [git, commits, agents] = work_counts(&project.run(&["-v", "work"]).stderr);
    assert_eq!(agents, 6);
    // Two cycles.
    assert!(git <= 20, "{git} git processes");
    assert!(commits <= 10, "{commits} commits");
}

#[test]
fn later_tasks_cost_no_more_than_the_first() {
    let project = TestProject::with_agent(PROGRAM, one_fix);
    for number in 1..=4 {
        project.run(&["add", &format!("Task {number}"), "--auto-review", "--max-cycles", "3"]);
    }
    let [git, commits, agents] = work_counts(&project.run(&["-v", "work", "--jobs", "1"]).stderr);
    assert_eq!(agents, 16);
    assert!(git <= 4 * 16, "{git} git processes");
    assert!(commits <= 4 * 10, "{commits} commits");
}
