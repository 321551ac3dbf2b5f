//! Landing a run's branch on the default branch: only reviewed work lands.

use std::fs;

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};

use super::tracker::blocked;
use super::{PASS, passing_agent, tracked, works};
use crate::PROGRAM;
use crate::actors::{APPROVED, FOREIGN};

fn in_main(project: &TestProject) -> Vec<String> {
    let files = project.git("ls-tree --name-only main");
    let ours = |name: &&str| name.ends_with(".txt");
    files.lines().filter(ours).map(str::to_owned).collect()
}

/// Two beads, one after the other; while the second runs, an unrelated commit is added to the run's branch.
#[test]
fn a_foreign_commit_on_the_runs_branch_does_not_land() {
    for landing in ["merge", "rebase"] {
        let evil = ScriptRule::role("implement").task("2").shell(FOREIGN).write("2.txt", "work\n").say("Wrote it.\n");
        let project = tracked(&["First", "Second"], |script| passing_agent(script.rule(evil)));
        project.configure(&format!("landing = \"{landing}\"\n"));
        let output = project.run(&["run", "beads", "--review", "-j", "1", "--land"]);
        assert_eq!(output.code, Some(1), "{landing}: {output}");
        let named = "(\"Evil\") came onto signoff/run-1 from elsewhere and was not reviewed";
        assert!(output.stderr.contains("error: run 1 did not land: commit "), "{output}");
        assert!(output.stderr.contains(named), "{landing}: {output}");
        assert_eq!(in_main(&project), [""; 0], "{landing}");
        // The tasks alone do not contain it.
        let landed = project.run(&["land"]);
        assert_eq!((landed.code, in_main(&project)), (Some(0), vec!["1.txt".into(), "2.txt".into()]), "{landed}");
    }
}

/// The first bead adds a back door and removes it again: only both commits together are approved. While the second
/// runs, the back door is added again.
#[test]
fn a_part_of_an_approved_change_does_not_land_again() {
    let first = "echo evil > evil.txt; git add -A; git commit -q -m In; git rm -q evil.txt; \
                 echo work > 1.txt; git add -A; git commit -q -m Out";
    let again = "cd ../../..; part=$(git log --all --format=%H --grep='^In$' | head -1); \
                 tip=$(git rev-parse signoff/run-1); \
                 tree=$(git merge-tree --write-tree --merge-base=$part^ $tip $part); \
                 git update-ref refs/heads/signoff/run-1 $(git commit-tree -p $tip -m Chore $tree)";
    let first = ScriptRule::role("implement").task("1").shell(first).say("Wrote it.\n");
    let second = ScriptRule::role("implement").task("2").shell(again).write("2.txt", "work\n").say("Wrote it.\n");
    let project = tracked(&["First", "Second"], |script| passing_agent(script.rule(first).rule(second)));
    project.configure("landing = \"rebase\"\n");
    let output = project.run(&["run", "beads", "--review", "-j", "1", "--land"]);
    assert_eq!((output.code, in_main(&project)), (Some(1), vec![]), "{output}");
    assert!(output.stderr.contains("(\"Chore\") came onto signoff/run-1 from elsewhere"), "{output}");
}

#[test]
fn reviewed_work_lands_with_the_run() {
    for landing in ["merge", "rebase"] {
        for jobs in ["1", "2"] {
            let project = tracked(&["First", "Second", "Third"], passing_agent);
            project.configure(&format!("landing = \"{landing}\"\n"));
            let output = project.run(&["run", "beads", "--review", "-j", jobs, "--land"]);
            assert_eq!((output.code, in_main(&project).len()), (Some(0), 3), "{landing} -j {jobs}: {output}");
        }
    }
}

/// Three beads; the check of the first landing waits until all three landings have started.
fn landing_at_once(landing: &str) -> (TestProject, String) {
    let project = tracked(&["First", "Second", "Third"], passing_agent);
    let begun = project.env.root().join("failpoints").display().to_string();
    let wait = format!("until [ $(grep -c ^landing_lock$ {begun}) -ge 3 ]; do sleep 0.02; done");
    let check = format!("case $PWD in */landing) {wait};; esac");
    project.configure(&format!("landing = \"{landing}\"\n[checks]\ntest = \"{check}\"\n"));
    (project, begun)
}

#[test]
fn work_that_lands_while_others_wait_is_not_reported_as_foreign() {
    for landing in ["merge", "rebase"] {
        let (project, begun) = landing_at_once(landing);
        let arguments = ["run", "beads", "--review", "-j", "3", "--land"];
        let output = project.env.run_with(&arguments, &[("SIGNOFF_FAILPOINTS", &begun)]);
        assert_eq!((output.code, in_main(&project).len()), (Some(0), 3), "{landing}: {output}");
        assert!(!output.to_string().contains("from elsewhere"), "{landing}: {output}");
    }
}

/// The program is killed after the branch was updated and before the event was recorded.
#[test]
fn work_landed_by_a_killed_program_is_not_reported_as_foreign() {
    for landing in ["merge", "rebase"] {
        let (project, begun) = landing_at_once(landing);
        let variables = [("SIGNOFF_FAILPOINTS", begun.as_str()), ("SIGNOFF_FAILPOINT", "landed:2")];
        project.env.run_with(&["run", "beads", "--review", "-j", "3", "--land"], &variables);
        let output = project.run(&["run", "--resume"]);
        assert_eq!((output.code, in_main(&project).len()), (Some(0), 3), "{landing}: {output}");
        assert!(!output.to_string().contains("from elsewhere"), "{landing}: {output}");
    }
}

/// Reviewers that answer in the format that their prompt asks for.
fn reviewers(script: AgentScript) -> AgentScript {
    let of_slots = ScriptRule::role("review").prompt_contains("followUpPrompt").say(PASS);
    script.rule(works()).rule(of_slots).rule(ScriptRule::role("review").say(APPROVED))
}

#[test]
fn a_run_based_on_unreviewed_work_of_another_run_does_not_land() {
    let project = tracked(&["First"], reviewers);
    assert_eq!(project.run(&["run", "beads", "--no-review"]).code, Some(0));
    fs::write(project.env.root().join("beads/open/b-2"), blocked("b-2", "Second", "b-1")).unwrap();
    let output = project.run(&["run", "beads", "--review", "--land"]);
    assert_eq!((output.code, in_main(&project)), (Some(1), vec![]), "{output}");
    assert!(output.stderr.contains("error: run 2 builds on task 1, which is not approved"), "{output}");
    // A task that depends on it does not land, either.
    project.run(&["add", "Third", "-a", "--depends-on", "1"]);
    project.run(&["work", "3"]);
    let merged = project.run(&["merge", "3"]);
    assert_eq!((merged.code, in_main(&project)), (Some(1), vec![]), "{merged}");
    assert!(merged.stderr.contains("error: task 3 builds on task 1, which is not approved"), "{merged}");
    let accepted = project.run(&["merge", "1", "--force", "--reason", "I looked at it"]);
    assert_eq!(accepted.code, Some(0), "{accepted}");
    let landed = project.run(&["land"]);
    assert_eq!((landed.code, in_main(&project).len()), (Some(0), 3), "{landed}");
}

#[test]
fn a_queue_based_on_unreviewed_work_does_not_land() {
    let project = TestProject::with_agent(PROGRAM, reviewers);
    project.run(&["add", "First"]);
    project.run(&["work"]);
    project.run(&["add", "Second", "--depends-on", "1"]);
    let output = project.run(&["run", "queue", "--review", "--land"]);
    assert_eq!((output.code, in_main(&project)), (Some(1), vec![]), "{output}");
    assert!(output.stderr.contains("error: run 2 builds on task 1, which is not approved"), "{output}");
}
