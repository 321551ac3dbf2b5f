//! A whole loop with each program: implement, two reviewers at once, a fix, approval, landing.

use serde_json::json;
use signoff_testkit::model::{Rule, Script, Turn, Usage};

use super::{Cli, Team};

fn used(input: u64, output: u64) -> Usage {
    Usage { input, output, ..Usage::default() }
}

/// What the model says to each of them. One reviewer finds something once; both approve what was fixed.
fn script() -> Script {
    let passed = json!({ "loopId": "{loop}", "taskId": "1", "passed": true });
    let issue = json!({
        "file": "greeting.txt", "line": 1, "type": "missing-error-handling",
        "description": "nobody is named", "suggestion": "name somebody"
    });
    let failed = json!({ "loopId": "{loop}", "taskId": "1", "passed": false, "issues": [issue] });
    let approval =
        "<spec-review>\n<verdict>APPROVED</verdict>\n<summary>As asked</summary>\n</spec-review>\n";
    Script::new()
        .find("loop", r"completed by Loop (\S+?)\.")
        .rule(
            Rule::named("code again")
                .matching(r"(?s)LOOP REVIEW PHASE.*Your Focus: Code.*## Re-Review")
                .turn(Turn::silent().mcp("set_loop_review_result", passed).usage(used(1400, 30)))
                .turn(Turn::say("REVIEW_COMPLETE").usage(used(1450, 5))),
        )
        .rule(
            Rule::named("code")
                .matching(r"(?s)LOOP REVIEW PHASE.*Your Focus: Code")
                .turn(Turn::silent().mcp("set_loop_review_result", failed).usage(used(1300, 40)))
                .turn(Turn::say("REVIEW_COMPLETE").usage(used(1350, 5))),
        )
        .rule(
            Rule::named("spec")
                .matching(r"(?s)LOOP REVIEW PHASE.*Your Focus: Specification")
                .turn(Turn::silent().read("{cwd}/greeting.txt").usage(used(1200, 20)))
                .turn(Turn::say(approval).usage(used(1250, 25))),
        )
        .rule(
            Rule::named("fix")
                .asked_for("# FIX PHASE")
                .turn(Turn::silent().read("{cwd}/greeting.txt").usage(used(1450, 20)))
                .turn(Turn::silent().write("{cwd}/greeting.txt", "hello Ann\n").usage(used(1500, 60)))
                .turn(Turn::say("Fixed.").usage(used(1550, 10))),
        )
        .rule(
            Rule::named("implement")
                .asked_for("# IMPLEMENT PHASE")
                .turn(Turn::silent().write("{cwd}/greeting.txt", "hello\n").usage(used(1000, 50)))
                .turn(Turn::silent().shell("cat greeting.txt").usage(used(1100, 15)))
                .turn(Turn::say("Done.").usage(used(1150, 10))),
        )
}

fn whole(writer: Cli, reviewers: [Cli; 2]) {
    let team = Team::new(writer, reviewers, script());
    let Team { project, model } = &team;
    project.run(&["add", "Greet people", "-a"]);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert!(worked.to_string().contains("APPROVED after 2 cycles"), "{worked}");
    assert_eq!(project.git("show signoff/task-1-greet-people:greeting.txt"), "hello Ann\n");
    let merged = project.run(&["merge", "1"]);
    assert_eq!(merged.code, Some(0), "{merged}");
    assert_eq!(project.read("greeting.txt"), "hello Ann\n");
    if [writer, reviewers[0], reviewers[1]].into_iter().all(Cli::counts) {
        counted(&team);
    }
    assert!(model.requests_of("implement").len() >= 3);
}

/// What each attempt used is what the model served it.
fn counted(team: &Team) {
    let shown = team.project.run(&["show", "1", "--json"]);
    let shown: serde_json::Value = serde_json::from_str(&shown.stdout).unwrap();
    let attempts = shown["attempts"].as_array().unwrap();
    let of = |role: &str, reviewer: Option<&str>| {
        let is_it = |one: &&serde_json::Value| {
            one["role"] == role && reviewer.is_none_or(|reviewer| one["reviewer"] == reviewer)
        };
        attempts.iter().filter(is_it).fold((0, 0), |(input, output), one| {
            let number = |key: &str| one[key].as_u64().unwrap_or_default();
            (input + number("input_tokens"), output + number("output_tokens"))
        })
    };
    let served = |rules: &[&str]| {
        rules
            .iter()
            .map(|rule| team.model.served(rule))
            .fold((0, 0), |(input, output), one| (input + one.input, output + one.output))
    };
    assert_eq!(of("implement", None), served(&["implement"]), "{shown:#}");
    assert_eq!(of("fix", None), served(&["fix"]), "{shown:#}");
    assert_eq!(of("review", Some("code")), served(&["code", "code again"]), "{shown:#}");
    assert_eq!(of("review", Some("spec")), served(&["spec"]), "{shown:#}");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn claude_code_from_the_task_to_the_landing() {
    whole(Cli::Claude, [Cli::Claude, Cli::Claude]);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn codex_from_the_task_to_the_landing() {
    whole(Cli::Codex, [Cli::Codex, Cli::Codex]);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn gemini_cli_from_the_task_to_the_landing() {
    whole(Cli::Gemini, [Cli::Gemini, Cli::Gemini]);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn opencode_from_the_task_to_the_landing() {
    whole(Cli::Opencode, [Cli::Opencode, Cli::Opencode]);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn opencode_over_the_protocol_from_the_task_to_the_landing() {
    whole(Cli::OpencodeAcp, [Cli::OpencodeAcp, Cli::OpencodeAcp]);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn gemini_cli_over_the_protocol_from_the_task_to_the_landing() {
    whole(Cli::GeminiAcp, [Cli::GeminiAcp, Cli::GeminiAcp]);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn claude_code_writes_codex_and_gemini_review() {
    whole(Cli::Claude, [Cli::Codex, Cli::Gemini]);
}
