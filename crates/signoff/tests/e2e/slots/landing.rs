//! From a run's branch to the default branch: only with what was reviewed.

use std::fs;

use signoff_testkit::Project;
use signoff_testkit::script::{Rule, Script};

use super::tracker::blocked;
use super::{PASS, tracked, well, works};
use crate::PROGRAM;
use crate::actors::{APPROVED, FOREIGN};

fn in_main(project: &Project) -> Vec<String> {
    let files = project.git("ls-tree --name-only main");
    let ours = |name: &&str| name.ends_with(".txt");
    files.lines().filter(ours).map(str::to_owned).collect()
}

/// Two beads, one after the other; while the second is worked, somebody commits to the run's branch.
#[test]
fn a_commit_that_came_onto_the_branch_from_elsewhere_does_not_land() {
    for landing in ["merge", "rebase"] {
        let evil =
            Rule::role("implement").task("2").shell(FOREIGN).write("2.txt", "work\n").say("Wrote it.\n");
        let project = tracked(&["First", "Second"], |script| well(script.rule(evil)));
        project.configure(&format!("landing = \"{landing}\"\n"));
        let output = project.run(&["run", "beads", "--review", "-j", "1", "--land"]);
        assert_eq!(output.code, Some(1), "{landing}: {output}");
        let named = "(\"Evil\") came onto signoff/run-1 from elsewhere and nobody reviewed it";
        assert!(
            output.stderr.contains("(\"Evil\") came onto signoff/run-1 from elsewhere; nobody"),
            "{output}"
        );
        assert!(output.stderr.contains("error: run 1 did not land: commit "), "{output}");
        assert!(output.stderr.contains(named), "{landing}: {output}");
        assert_eq!(in_main(&project), [""; 0], "{landing}");
        // By themselves the tasks have nothing to do with it.
        let landed = project.run(&["land"]);
        assert_eq!(
            (landed.code, in_main(&project)),
            (Some(0), vec!["1.txt".into(), "2.txt".into()]),
            "{landed}"
        );
    }
}

/// The first bead puts a back door in and takes it out again: only both together were approved. While the second is
/// worked, somebody puts the back door in once more.
#[test]
fn a_part_of_what_was_approved_does_not_land_again() {
    let first = "echo evil > evil.txt; git add -A; git commit -q -m In; git rm -q evil.txt; \
                 echo work > 1.txt; git add -A; git commit -q -m Out";
    let again = "cd ../../..; part=$(git log --all --format=%H --grep='^In$' | head -1); \
                 tip=$(git rev-parse signoff/run-1); \
                 tree=$(git merge-tree --write-tree --merge-base=$part^ $tip $part); \
                 git update-ref refs/heads/signoff/run-1 $(git commit-tree -p $tip -m Chore $tree)";
    let first = Rule::role("implement").task("1").shell(first).say("Wrote it.\n");
    let second = Rule::role("implement").task("2").shell(again).write("2.txt", "work\n").say("Wrote it.\n");
    let project = tracked(&["First", "Second"], |script| well(script.rule(first).rule(second)));
    project.configure("landing = \"rebase\"\n");
    let output = project.run(&["run", "beads", "--review", "-j", "1", "--land"]);
    assert_eq!((output.code, in_main(&project)), (Some(1), vec![]), "{output}");
    assert!(output.stderr.contains("(\"Chore\") came onto signoff/run-1 from elsewhere"), "{output}");
}

#[test]
fn what_was_reviewed_lands_with_the_run() {
    for landing in ["merge", "rebase"] {
        for jobs in ["1", "2"] {
            let project = tracked(&["First", "Second", "Third"], well);
            project.configure(&format!("landing = \"{landing}\"\n"));
            let output = project.run(&["run", "beads", "--review", "-j", jobs, "--land"]);
            assert_eq!((output.code, in_main(&project).len()), (Some(0), 3), "{landing} -j {jobs}: {output}");
        }
    }
}

/// Three beads whose first landing waits in its check until all three landings have begun.
fn landing_at_once(landing: &str) -> (Project, String) {
    let project = tracked(&["First", "Second", "Third"], well);
    let begun = project.env.root().join("failpoints").display().to_string();
    let wait = format!("until [ $(grep -c ^land_turn$ {begun}) -ge 3 ]; do sleep 0.02; done");
    let check = format!("case $PWD in */landing) {wait};; esac");
    project.configure(&format!("landing = \"{landing}\"\n[checks]\ntest = \"{check}\"\n"));
    (project, begun)
}

#[test]
fn work_that_lands_while_others_wait_is_not_called_foreign() {
    for landing in ["merge", "rebase"] {
        let (project, begun) = landing_at_once(landing);
        let arguments = ["run", "beads", "--review", "-j", "3", "--land"];
        let output = project.env.run_with(&arguments, &[("SIGNOFF_FAILPOINTS", &begun)]);
        assert_eq!((output.code, in_main(&project).len()), (Some(0), 3), "{landing}: {output}");
        assert!(!output.to_string().contains("from elsewhere"), "{landing}: {output}");
    }
}

/// The program is killed when the branch has the second landing and the log does not.
#[test]
fn work_that_a_killed_program_landed_is_not_called_foreign() {
    for landing in ["merge", "rebase"] {
        let (project, begun) = landing_at_once(landing);
        let variables = [("SIGNOFF_FAILPOINTS", begun.as_str()), ("SIGNOFF_FAILPOINT", "landed:2")];
        project.env.run_with(&["run", "beads", "--review", "-j", "3", "--land"], &variables);
        let output = project.run(&["run", "--resume"]);
        assert_eq!((output.code, in_main(&project).len()), (Some(0), 3), "{landing}: {output}");
        assert!(!output.to_string().contains("from elsewhere"), "{landing}: {output}");
    }
}

/// Reviewers who know what is asked of them.
fn reviewers(script: Script) -> Script {
    let of_slots = Rule::role("review").asked_for("followUpPrompt").say(PASS);
    script.rule(works()).rule(of_slots).rule(Rule::role("review").say(APPROVED))
}

#[test]
fn a_run_that_builds_on_another_one_s_unreviewed_work_does_not_land() {
    let project = tracked(&["First"], reviewers);
    assert_eq!(project.run(&["run", "beads", "--no-review"]).code, Some(0));
    fs::write(project.env.root().join("beads/open/b-2"), blocked("b-2", "Second", "b-1")).unwrap();
    let output = project.run(&["run", "beads", "--review", "--land"]);
    assert_eq!((output.code, in_main(&project)), (Some(1), vec![]), "{output}");
    assert!(output.stderr.contains("error: run 2 builds on task 1, which is not approved"), "{output}");
    // Nor does a task of its own.
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
fn a_queue_that_builds_on_unreviewed_work_does_not_land() {
    let project = Project::with_agent(PROGRAM, reviewers);
    project.run(&["add", "First"]);
    project.run(&["work"]);
    project.run(&["add", "Second", "--depends-on", "1"]);
    let output = project.run(&["run", "queue", "--review", "--land"]);
    assert_eq!((output.code, in_main(&project)), (Some(1), vec![]), "{output}");
    assert!(output.stderr.contains("error: run 2 builds on task 1, which is not approved"), "{output}");
}
