//! Every documented line of a script and every step of a CI file that calls signoff is run in a
//! repository prepared for it.
//!
//! Fences `console` show their output, see [`crate::documentation`]. Others need something that only the reader or a
//! third party has; a stand-in replaces it here.

use std::fs;

use signoff_testkit::TestProject;
use signoff_testkit::agent_script::ScriptRule;
use signoff_testkit::console_example::{MarkdownBlock, MarkdownFence, blocks};

use crate::actors::APPROVED;
use crate::documentation::documents;
use crate::documented_commands::in_a_script;
use crate::iterate;

/// Names in the documentation, and what replaces them here.
const NAMES: [(&str, &str); 4] =
    [(" 29", " 1"), (" run-3", " run-1"), ("watch 3", "watch 1"), ("replay 3", "replay 1")];

/// Environment variables that CI systems set.
const CI_VARIABLES: &str =
    "export GITHUB_STEP_SUMMARY=summary.md GITHUB_BASE_REF=main CI_MERGE_REQUEST_TARGET_BRANCH_NAME=main\n";

/// The answer of a slot's reviewer.
const PASS: &str = r#"{"verdict": "pass", "followUpPrompt": "All is well."}"#;

#[test]
fn every_line_of_a_script_that_calls_signoff_runs() {
    let project = project_for_scripts();
    // `scripts/test` reports if it is missing.
    let has_jq = project.env.shell("command -v jq").code == Some(0);
    let mut failed = Vec::new();
    for path in documents() {
        let lines = lines(&fs::read_to_string(&path).unwrap());
        for line in lines.into_iter().filter(|line| has_jq || !line.contains("| jq")) {
            project.env.write(".signoff/script.sh", format!("{CI_VARIABLES}{}\n", runnable(&line)));
            let ran = project.env.shell("bash -eo pipefail .signoff/script.sh");
            if ran.code != Some(0) {
                failed.push(format!("{}: {line}\n{ran}", path.display()));
            }
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
    for (file, holds) in [
        ("home/asked.txt", "pr create --title Add login --body-file -"),
        ("home/body.md", "Add a greeting"),
        ("home/opened.txt", "http://127.0.0.1:"),
        ("work/summary.md", "Add a greeting"),
        ("work/junit.xml", "<testsuites"),
        ("work/review.sarif", "2.1.0"),
        ("work/review.md", "**Verdict: APPROVED**"),
        ("work/report.html", "<!DOCTYPE html>"),
        ("work/state.json", "\"version\""),
    ] {
        let kept = fs::read_to_string(project.env.root().join(file)).unwrap_or_default();
        assert!(kept.to_lowercase().contains(&holds.to_lowercase()), "{file}: {kept}");
    }
}

/// A project with an iterated task, a branch with a new commit, and whatever else the scripts need.
fn project_for_scripts() -> TestProject {
    let project = iterate::project(iterate::team);
    project.run(&iterate::BEGIN);
    project.set_agent(|script| {
        script
            .rule(ScriptRule::role("implement").write("{task}.txt", "done\n").say("Done.\n"))
            .rule(ScriptRule::role("review").prompt_contains("followUpPrompt").say(PASS))
            .rule(ScriptRule::role("review").say(APPROVED))
    });
    project.env.stub_program("gh", "echo \"$@\" > \"$HOME/asked.txt\"; cat > \"$HOME/body.md\"");
    project.env.stub_program("xdg-open", "echo \"$@\" > \"$HOME/opened.txt\"");
    // The project's own test checks this file.
    project.env.write("list.txt", "hello.txt\n");
    project.commit("A list");
    project.git("update-ref refs/remotes/origin/main main");
    project.git("switch -q -c discount");
    project
        .env
        .write(".beads/issues.jsonl", "{\"id\":\"b-1\",\"title\":\"Count\",\"status\":\"open\",\"priority\":2}\n");
    project.commit("A discount");
    project
}

/// The lines to run, in order.
fn lines(document: &str) -> Vec<String> {
    let fences = blocks(document).into_iter().filter_map(|block| match block {
        MarkdownBlock::Fence(fence) => Some(fence),
        MarkdownBlock::Line(_) => None,
    });
    let scripts = fences.filter(|fence| ["sh", "yaml"].contains(&fence.language()) && fence.file().is_none());
    scripts.flat_map(|fence| in_fence(&fence)).collect()
}

fn in_fence(fence: &MarkdownFence<'_>) -> Vec<String> {
    let commands = fence.body.iter().map(|line| line.split(" #").next().unwrap_or("").trim());
    let calls = commands.filter(|line| line.contains("signoff ") && !line.starts_with('#'));
    calls
        .map(|line| {
            assert!(!in_a_script(line).is_empty(), "the shell would not run it: {line}");
            let step = line.strip_prefix("- ").unwrap_or(line);
            step.strip_prefix("run: ").unwrap_or(step).to_owned()
        })
        .collect()
}

/// The line with documented names replaced. A command that runs until it is stopped is stopped once it has
/// printed its address.
fn runnable(line: &str) -> String {
    let line = NAMES.iter().fold(line.to_owned(), |line, (there, here)| line.replace(there, here));
    if !line.starts_with("signoff serve") {
        return line;
    }
    // Any free port.
    let line = line.split(" --port ").next().unwrap_or_default();
    let port = " --port 0";
    format!(
        "rm -f .signoff/said; mkfifo .signoff/said\n{line}{port} > .signoff/said &\n\
         grep -m 1 127.0.0.1 < .signoff/said\nkill $!; wait $! || true"
    )
}

#[test]
fn lines_are_found_in_scripts_and_steps_of_ci_systems() {
    let document = "\
```sh
signoff report 29   # a comment
git log && signoff status | cat
```

```yaml
steps:
  - run: ./install.sh   # puts signoff on the PATH
  - run: signoff stats
  - run: |
      signoff review --fail-on HIGH > review.txt
script:
  - signoff work
```

```sh file=hook.sh
exec signoff review
```
";
    assert_eq!(
        lines(document),
        [
            "signoff report 29",
            "git log && signoff status | cat",
            "signoff stats",
            "signoff review --fail-on HIGH > review.txt",
            "signoff work"
        ]
    );
}
