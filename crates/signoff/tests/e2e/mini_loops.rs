//! Findings that have nothing to do with each other are fixed side by side, and put together.

use std::collections::BTreeMap;
use std::fs;

use signoff_testkit::Project;
use signoff_testkit::calls::Call;
use signoff_testkit::processes::{self, until};
use signoff_testkit::script::{Rule, Script};

use crate::PROGRAM;
use crate::actors::APPROVED;

const BRANCH: &str = "signoff/task-1-three-files";

/// Everywhere all that are independent at once.
const AT_ONCE: &str = "[gate]\nparallel_fixes = true\n";

/// What all agents of a test can see.
const YARD: &str = "../../../../yard";

/// Wants something of each of these files.
fn wants(files: &[&str]) -> String {
    let lines = files.iter().map(|file| format!("- {file} lacks the word of {}\n", &file[..1]));
    format!("{}\n**Verdict: CHANGES_REQUESTED**\n", lines.collect::<String>())
}

/// Three files, and a reviewer who wants something of each before it approves.
fn three_files(script: Script) -> Script {
    wanting(script, &["a.txt:1", "b.txt:1", "c.txt:1"])
}

fn wanting(script: Script, files: &[&str]) -> Script {
    let implement = ["a.txt", "b.txt", "c.txt"]
        .into_iter()
        .fold(Rule::role("implement"), |rule, file| rule.write(file, "one\n"));
    script
        .rule(implement.say("Done.\n"))
        .rule(Rule::role("review").cycle(1).say(&wants(files)))
        .rule(Rule::role("review").say(APPROVED))
}

/// The fixer of a file, which is not done before all others have begun.
fn fixer(own: &str, others: &[&str]) -> Rule {
    let begun = |name: &str| format!("{YARD}/{name}.begun");
    let rule = Rule::role("fix").asked_for(&format!("the word of {own}")).write(&begun(own), "");
    let rule = others.iter().fold(rule, |rule, other| rule.wait_for(&begun(other)));
    rule.append(&format!("{own}.txt"), &format!("word of {own}\n"))
}

fn three_fixers(script: Script) -> Script {
    let script = script.rule(fixer("a", &["b", "c"]).say("Fixed a.\n"));
    let script = script.rule(fixer("b", &["a", "c"]).say("Fixed b.\n"));
    script.rule(fixer("c", &["a", "b"]).say("Fixed c.\n"))
}

/// A project with one task.
fn project(agent: impl Fn(Script) -> Script) -> Project {
    let project = Project::with_agent(PROGRAM, agent);
    project.configure(AT_ONCE);
    fs::create_dir_all(project.env.root().join("yard")).unwrap();
    project.run(&["add", "Three files", "--auto-review"]);
    project
}

/// The files of the branch, as they are there.
fn files(project: &Project) -> String {
    let file = |name: &str| {
        let text = project.git(&format!("show {BRANCH}:{name}"));
        format!("{name}: {}\n", text.trim_end().replace('\n', ", "))
    };
    ["a.txt", "b.txt", "c.txt"].map(file).concat()
}

/// Nothing is left of what was made for fixers.
fn tidy(project: &Project) {
    assert_eq!(project.list(".signoff/worktrees"), ["task-1"]);
    assert_eq!(project.git("for-each-ref refs/signoff/apart"), "");
    assert_eq!(project.git("worktree list --porcelain").matches("worktree ").count(), 2);
    let status = project.git("-C .signoff/worktrees/task-1 status --porcelain");
    assert_eq!(status, "");
}

fn fixers(project: &Project) -> Vec<Call> {
    project.calls().of_role("fix").cloned().collect()
}

#[test]
fn three_findings_in_three_files_are_fixed_by_three_at_once() {
    let project = project(|script| three_fixers(three_files(script)));
    let before = project.checkout();
    insta::assert_snapshot!(project.run(&["work"]), @"
    exit 0
    --- stdout
    Running task #1: Three files
      [1/3] Implementing...
      [1/3] Implementation complete
      [1/3] Running review...
      [1/3] Review: CHANGES_REQUESTED - lacks the word of a
      [2/3] Improving (3 fixes at once)...
      [2/3] Putting the fixes together...
      [2/3] Running review...
      [2/3] Review: APPROVED
    ✓ Task #1 completed (APPROVED after 2 cycles)
    ");
    insta::assert_snapshot!(project.subjects(BRANCH), @"
    Three files - initial implementation
    Address review feedback (cycle 1)
    Address review feedback (cycle 1)
    Address review feedback (cycle 1)
    ");
    insta::assert_snapshot!(files(&project), @"
    a.txt: one, word of a
    b.txt: one, word of b
    c.txt: one, word of c
    ");
    assert_eq!(project.calls().most_at_once(), 3);
    assert_eq!(fixers(&project).len(), 3);
    assert_eq!(project.checkout(), before);
    tidy(&project);
}
