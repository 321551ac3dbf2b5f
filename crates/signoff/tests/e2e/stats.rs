//! `signoff stats`: statistics of all runs of a repository.

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::ScriptRule;

use crate::PROGRAM;
use crate::actors::{APPROVED, developer, strict_reviewer};

/// One task approved at its third review, one whose review failed, one approved at once.
fn worked_project() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| {
        let script = developer(script).rule(ScriptRule::role("review").task("2").exit(1));
        strict_reviewer(script.rule(ScriptRule::role("review").task("3").say(APPROVED)))
    });
    for title in ["Add login", "Break it", "Add logout"] {
        project.run(&["add", title, "-a"]);
        project.run(&["work"]);
    }
    project
}

#[test]
fn without_runs_it_prints_the_next_command() {
    let project = TestProject::with_agent(PROGRAM, developer);
    insta::assert_snapshot!(project.run(&["stats"]), @"
    exit 0
    --- stdout
    No runs.
      signoff work    works the tasks
    ");
    assert_eq!(project.run(&["stats", "--json"]).json()["runs"], 0);
}

#[test]
fn all_runs_are_counted() {
    let project = worked_project();
    let stats = project.run(&["stats", "--json"]).json();
    assert_eq!((&stats["version"], &stats["runs"]), (&1.into(), &3.into()));
    insta::assert_snapshot!(format!("{:#}", stats["tasks"]), @r#"
    {
      "all": 3,
      "approved": 2,
      "accepted": 0,
      "not_approved": 1,
      "unfinished": 0
    }
    "#);
    insta::assert_snapshot!(format!("{:#}", stats["cycles_to_approval"]), @r#"
    {
      "median": 2.0,
      "mean": 2.0,
      "distribution": [
        {
          "cycles": 1,
          "tasks": 1
        },
        {
          "cycles": 3,
          "tasks": 1
        }
      ]
    }
    "#);
    insta::assert_snapshot!(stats["stop_reasons"].to_string(), @r#"[{"outcome":"approved","reason":null,"tasks":2},{"outcome":"failed","reason":"reviewer_failed","tasks":1}]"#);
    let general = &stats["reviewers"][0];
    assert_eq!(
        (&general["reviewer"], &general["raised"], &general["upheld"]),
        (&"general".into(), &2.into(), &2.into())
    );
    assert_eq!(general["precision"], 1.0);
    assert_eq!(stats["failures"][0]["outcome"], "exit_code");
    let phases: Vec<&str> =
        stats["phases"].as_array().unwrap().iter().filter_map(|phase| phase["phase"].as_str()).collect();
    assert!(phases.contains(&"implement") && phases.contains(&"review"), "{phases:?}");
    let text = project.run(&["stats"]).stdout;
    assert!(text.starts_with("3 tasks in 3 runs: 2 approved, 1 not approved\n"), "{text}");
    assert!(text.contains("Reviews until approval (median 2, mean 2):"), "{text}");
}

#[test]
fn statistics_can_be_filtered() {
    let project = worked_project();
    assert_eq!(project.run(&["stats", "--since", "1d", "--json"]).json()["runs"], 3);
    assert_eq!(project.run(&["stats", "--since", "2999-01-01", "--json"]).json()["runs"], 0);
    assert_eq!(project.run(&["stats", "--preset", "task", "--json"]).json()["runs"], 3);
    insta::assert_snapshot!(project.run(&["stats", "--preset", "plan"]), @"
    exit 0
    --- stdout
    No runs of plan.
      signoff work    works the tasks
    ");
    insta::assert_snapshot!(project.run(&["stats", "--preset", "nonsense"]), @"
    exit 2
    --- stderr
    error: there is no preset `nonsense`
    hint: known presets: loops, phases, plan, slots, task
    ");
    assert_eq!(project.run(&["stats", "--since", "yesterday"]).code, Some(2));
}
