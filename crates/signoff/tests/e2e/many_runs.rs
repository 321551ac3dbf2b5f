//! Many runs with several loops at once: every approved task is in the target branch.

use std::collections::BTreeSet;

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::{AgentScript, ScriptRule};

use crate::PROGRAM;
use crate::actors::APPROVED;

/// The number of runs in one repository.
const RUNS: usize = 10;

/// Four tasks in one group.
fn four(script: AgentScript) -> AgentScript {
    let task = |id: u32| format!("{{\"id\": \"{id}\", \"title\": \"Part {id}\"}}");
    let tasks: Vec<String> = (1..=4).map(task).collect();
    script
        .rule(ScriptRule::role("enumerate").say(&format!("{{\"tasks\": [{}]}}", tasks.join(", "))))
        .rule(ScriptRule::role("plan").say(r#"{"groups": [["1", "2", "3", "4"]]}"#))
        .rule(ScriptRule::role("review").say(APPROVED))
}

fn project(script: impl FnOnce(AgentScript) -> AgentScript) -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |own| script(four(own)));
    project.env.write("SPEC.md", "# Four parts\n");
    project.env.write("shared.txt", "first\nlast\n");
    project.commit("Specify");
    project
}

/// Runs them all; `lost` returns what of a run's approved tasks is missing in its branch.
fn run_them(project: &TestProject, lost: impl Fn(&str, &[u64]) -> Vec<String>) {
    let before = (project.checkout(), files(project));
    for run in 1..=RUNS {
        let output = project.run(&["run", "SPEC.md"]);
        assert_eq!(output.code, Some(0), "run {run}: {output}");
        let status = project.run(&["status", "--json"]).json();
        let rows = status["tasks"].as_array().unwrap();
        let approved: Vec<u64> = rows
            .iter()
            .filter(|row| row["run_id"] == run && row["final_verdict"] == "APPROVED")
            .map(|row| row["id"].as_u64().unwrap())
            .collect();
        assert_eq!(approved.len(), 4, "run {run}: {output}");
        assert_eq!(lost(&format!("signoff/run-{run}"), &approved), Vec::<String>::new(), "run {run}: {output}");
    }
    assert_eq!((project.checkout(), files(project)), before);
}

/// Every file of the checkout that is not signoff's, with its content.
fn files(project: &TestProject) -> BTreeSet<(String, String)> {
    let names = project.git("ls-files --cached --others --exclude-standard");
    names.lines().map(|name| (name.to_owned(), project.read(name))).collect()
}

fn different_files() {
    let project = project(|script| {
        script.rule(ScriptRule::role("implement").write("part-{task}.txt", "part {task}\n").say("TASK_COMPLETE\n"))
    });
    run_them(&project, |branch, tasks| {
        let files = project.git(&format!("ls-tree --name-only {branch}"));
        tasks.iter().map(|task| format!("part-{task}.txt")).filter(|name| !files.contains(name)).collect()
    });
}

fn same_file() {
    let project = project(|script| {
        script
            .rule(
                ScriptRule::role("implement")
                    .shell("sed -i \"1a part $SIGNOFF_TASK_ID\" shared.txt")
                    .say("TASK_COMPLETE\n"),
            )
            .rule(
                ScriptRule::role("fix")
                    .shell("sed -i '/^<<<<<<</d;/^|||||||/d;/^=======/d;/^>>>>>>>/d' shared.txt")
                    .say("Both.\n"),
            )
    });
    run_them(&project, |branch, tasks| {
        let text = project.git(&format!("show {branch}:shared.txt"));
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.first(), lines.last()), (Some(&"first"), Some(&"last")), "{text}");
        let missing = |task: &u64| !lines.contains(&format!("part {task}").as_str());
        tasks.iter().filter(|task| missing(task)).map(|task| format!("part {task}: {text}")).collect()
    });
}

/// Ten runs per test, so that the tests can run in parallel.
macro_rules! fifty {
    ($($name:ident: $runs:ident,)*) => {
        $(#[test]
        fn $name() {
            $runs();
        })*
    };
}

fifty! {
    loops_on_different_files_all_land_1: different_files,
    loops_on_different_files_all_land_2: different_files,
    loops_on_different_files_all_land_3: different_files,
    loops_on_different_files_all_land_4: different_files,
    loops_on_different_files_all_land_5: different_files,
    loops_on_one_file_all_land_1: same_file,
    loops_on_one_file_all_land_2: same_file,
    loops_on_one_file_all_land_3: same_file,
    loops_on_one_file_all_land_4: same_file,
    loops_on_one_file_all_land_5: same_file,
}
