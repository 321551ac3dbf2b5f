//! Checkpoint reviews of loops that take many attempts.

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};

use crate::PROGRAM;
use crate::actors::APPROVED;
use crate::tables::query;

/// Two independent tasks.
fn planners(script: AgentScript) -> AgentScript {
    let tasks = r#"{"tasks": [{"id": "a", "title": "A"}, {"id": "b", "title": "B"}]}"#;
    let (tasks, groups) =
        (ScriptRule::role("enumerate").say(tasks), ScriptRule::role("plan").say(r#"{"groups": [["a", "b"]]}"#));
    script.rule(tasks).rule(groups)
}

/// A developer that needs this many attempts for a task.
fn slow(script: AgentScript, task: &str, attempts: u32) -> AgentScript {
    let works = |rule: ScriptRule| rule.append("task-{task}.txt", "step {call}\n");
    let last = works(ScriptRule::role("implement").task(task).call(attempts)).say("All of it.\nTASK_COMPLETE\n");
    script.rule(last).rule(works(ScriptRule::role("implement").task(task)).say("Some of it.\nITERATION_DONE\n"))
}

/// A reviewer that finds something at every checkpoint.
fn reviewers(script: AgentScript) -> AgentScript {
    let checkpoint_review = ScriptRule::role("review")
        .prompt_contains("at a checkpoint")
        .say("- task-{task}.txt:1 [LOW] task {task} goes astray\n\n**Verdict: CHANGES_REQUESTED**\n");
    script.rule(checkpoint_review).rule(ScriptRule::role("review").say(APPROVED))
}

fn project(script: impl FnOnce(AgentScript) -> AgentScript) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, script);
    project.env.write("SPEC.md", "# A and B\n");
    project.commit("Specify");
    project
}

const TABLE_IS_GONE: &str =
    "- b.txt:1 [HIGH] the migration deletes the users table\n\n**Verdict: CHANGES_REQUESTED**\n";

/// The second task completes during its checkpoint review and is approved before the answer arrives.
#[test]
fn a_checkpoint_finding_that_comes_after_the_approval_reopens_the_task() {
    let project = TestProject::new(PROGRAM);
    let file = |name: &str| project.state().with_file_name(name).display().to_string();
    let (begun, looking, approved) = (file("begun"), file("looking"), file("approved"));
    let touch = |path: &str| format!("touch '{path}'");
    let completes = ScriptRule::role("implement")
        .task("2")
        .write("draft.txt", "draft\n")
        .shell(&touch(&begun))
        .wait_for(&looking)
        .write("b.txt", "drop table users\n")
        .say("TASK_COMPLETE\n");
    let checkpoint_review = ScriptRule::role("review").task("2").prompt_contains("at a checkpoint");
    // The merged review is written right before the approval is recorded.
    let reviews = project.env.work().join(".signoff/reviews").display().to_string();
    let merged = format!("until ls '{reviews}'/*task-2*.md >/dev/null 2>&1; do :; done");
    let checkpoint_review =
        checkpoint_review.shell(&touch(&looking)).wait_for(&approved).shell(&merged).say(TABLE_IS_GONE);
    let judges = ScriptRule::role("review").task("2").cycle(1).shell(&touch(&approved)).say(APPROVED);
    let fixes = ScriptRule::role("fix").task("2").write("b.txt", "add a column\n").say("TASK_COMPLETE\n");
    project.set_agent(|script| {
        let script = planners(script).rule(completes).rule(checkpoint_review).rule(judges).rule(fixes);
        let first = ScriptRule::role("implement").task("1").call(1).wait_for(&begun).append("a.txt", "a\n");
        let second = ScriptRule::role("implement").task("1").append("a.txt", "a\n").say("TASK_COMPLETE\n");
        script.rule(first.say("ITERATION_DONE\n")).rule(second).rule(ScriptRule::role("review").say(APPROVED))
    });
    project.configure("");
    project.env.write("SPEC.md", "# A and B\n");
    project.commit("Specify");
    let output = project.run(&["run", "SPEC.md", "--effort", "max", "-j", "2"]);
    assert_eq!(output.code, Some(0), "{output}");

    let calls = project.calls();
    let of_task = |role: &'static str| calls.with_role(role).filter(|call| call.start.task == "2");
    let fixed = of_task("fix").next().expect("the fixer is called");
    assert!(fixed.prompt.contains("the migration deletes the users table"), "{}", fixed.prompt);
    let judged = of_task("review").last().expect("a second completion review");
    assert!(judged.prompt.contains("the migration deletes the users table"), "{}", judged.prompt);
    assert_eq!(project.git("show signoff/run-1:b.txt").trim(), "add a column");
    let issues = "select i.loop_id, i.task_id is null, i.description, i.state from review_issues i \
                  where i.description like 'the migration%'";
    assert_eq!(query(&project, issues), "2|1|the migration deletes the users table|fixed");
    assert_eq!(output.stdout.matches("Checkpoint review: 1 finding, which reopens the task").count(), 1, "{output}");
    assert!(output.stdout.contains("Checkpoint review of #1, #2: 1 finding\n"), "{output}");
    assert!(!output.stdout.contains("nothing found"), "{output}");
    is_counted_once_as_fixed(&project);
}

/// Every report contains the run's one finding once, in the state that the task's reviewers gave it.
fn is_counted_once_as_fixed(project: &TestProject) {
    let report = |format: &str| project.run(&["report", "run-1", "--format", format]).stdout;
    let json: serde_json::Value = serde_json::from_str(&report("json")).expect("JSON");
    let findings = &json["totals"]["findings"];
    assert_eq!((&findings["open"], &findings["fixed"]), (&0.into(), &1.into()), "{findings}");
    let reviewer = &json["totals"]["reviewers"][0];
    assert_eq!((&reviewer["raised"], &reviewer["upheld"]), (&1.into(), &1.into()), "{reviewer}");
    let junit = report("junit");
    assert!(!junit.contains("<failure"), "{junit}");
    let sarif: serde_json::Value = serde_json::from_str(&report("sarif")).expect("SARIF");
    assert_eq!(sarif["runs"][0]["results"], serde_json::json!([]));
    let markdown = report("markdown");
    assert_eq!(markdown.matches("| the migration deletes the users table |").count(), 1, "{markdown}");
    assert!(!markdown.contains("**open**"), "{markdown}");
    let stats = project.run(&["stats", "--json"]).json();
    let reviewer = &stats["reviewers"][0];
    assert_eq!((&reviewer["raised"], &reviewer["open"]), (&1.into(), &0.into()), "{stats}");
    assert_eq!(query(project, "select distinct state from findings"), "fixed");
}

#[test]
fn a_disputed_checkpoint_finding_is_disputed_on_its_task() {
    let project = project(|script| {
        let quick = ScriptRule::role("implement").task("2").write("b.txt", "b\n").say("TASK_COMPLETE\n");
        reviewers(slow(planners(script), "1", 2).rule(quick))
    });
    project.run(&["run", "SPEC.md", "--effort", "max", "-j", "1"]);
    let at = "select last_checkpoint_review_at, iteration from loops where id = '1'";
    assert_eq!(query(&project, at), "1|2");
    let finding = query(&project, "select distinct id from findings");
    project.run(&["dispute", &finding, "--reason", "it is wanted"]);
    let shown = project.run(&["show", "1", "--json"]).json();
    assert_eq!(shown["ledger"][0]["state"], "refuted", "{shown}");
    assert_eq!(query(&project, "select distinct state from findings"), "refuted");
}
