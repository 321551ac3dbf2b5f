//! A complete loop with each program: implement, two parallel reviewers, a fix, approval, landing.

use jiff::Timestamp;
use serde_json::{Value, json};
use signoff_testkit::TestProject;
use signoff_testkit::model::{ModelRule, ModelScript, ModelTurn, TokenUsage};

use super::{Cli, Team};

/// Half of the input is read from a cache, a tenth is written to it.
fn used(input: u64, output: u64) -> TokenUsage {
    TokenUsage::new(input, output).with_cached(input / 2).with_written(input / 10)
}

/// The model's answers to each agent. One reviewer finds something once; both approve the fix.
fn script() -> ModelScript {
    let passed = json!({ "loopId": "{loop}", "taskId": "1", "passed": true });
    let issue = json!({
        "file": "greeting.txt", "line": 1, "type": "missing-error-handling",
        "description": "nobody is named", "suggestion": "name somebody"
    });
    let failed = json!({ "loopId": "{loop}", "taskId": "1", "passed": false, "issues": [issue] });
    let approval =
        "<spec-review nonce=\"{nonce}\">\n<verdict>APPROVED</verdict>\n<summary>As asked</summary>\n</spec-review>\n";
    ModelScript::new()
        .find("loop", r"completed by Loop (\S+?)\.")
        .find("nonce", r#"nonce="([^"]+)""#)
        .rule(
            ModelRule::named("code again")
                .matching(r"(?s)LOOP REVIEW PHASE.*Your Focus: Code.*## Re-Review")
                .turn(ModelTurn::silent().mcp("set_loop_review_result", passed).usage(used(1400, 30)))
                .turn(ModelTurn::say("REVIEW_COMPLETE").usage(used(1450, 5))),
        )
        .rule(
            ModelRule::named("code")
                .matching(r"(?s)LOOP REVIEW PHASE.*Your Focus: Code")
                .turn(ModelTurn::silent().mcp("set_loop_review_result", failed).usage(used(1300, 40)))
                .turn(ModelTurn::say("REVIEW_COMPLETE").usage(used(1350, 5))),
        )
        .rule(
            ModelRule::named("spec again")
                .matching(r"(?s)LOOP REVIEW PHASE.*Your Focus: Specification.*## Re-Review")
                .turn(ModelTurn::say(approval).usage(used(1280, 35))),
        )
        .rule(
            ModelRule::named("spec")
                .matching(r"(?s)LOOP REVIEW PHASE.*Your Focus: Specification")
                .turn(ModelTurn::silent().read("{cwd}/greeting.txt").usage(used(1200, 20)))
                .turn(ModelTurn::say(approval).usage(used(1250, 25))),
        )
        .rule(
            ModelRule::named("fix")
                .prompt_contains("# FIX PHASE")
                .turn(ModelTurn::silent().read("{cwd}/greeting.txt").usage(used(1450, 20)))
                .turn(ModelTurn::silent().write("{cwd}/greeting.txt", "hello Ann\n").usage(used(1500, 60)))
                .turn(ModelTurn::say("Fixed.").usage(used(1550, 10))),
        )
        .rule(
            ModelRule::named("implement")
                .prompt_contains("# IMPLEMENT PHASE")
                .turn(ModelTurn::silent().write("{cwd}/greeting.txt", "hello\n").usage(used(1000, 50)))
                .turn(ModelTurn::silent().shell("cat greeting.txt").usage(used(1100, 15)))
                .turn(ModelTurn::say("Done.").usage(used(1150, 10))),
        )
}

pub fn full_loop(writer: Cli, reviewers: [Cli; 2]) {
    let team = Team::new(writer, reviewers, script());
    let Team { project, model } = &team;
    project.run(&["add", "Greet people", "-a"]);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert!(worked.to_string().contains("APPROVED after 2 cycles"), "{worked}");
    assert_eq!(project.git("show signoff/task-1-greet-people:greeting.txt"), "hello Ann\n");
    team.settled();
    let merged = project.run(&["merge", "1"]);
    assert_eq!(merged.code, Some(0), "{merged}");
    assert_eq!(project.read("greeting.txt"), "hello Ann\n");
    team.settled();
    assert!(model.replies_of_rule("implement").len() >= 3);
    let shown = team.shown();
    let attempts = shown["attempts"].as_array().unwrap();
    let [code, spec] = reviewers;
    at_once(attempts);
    for (place, cli, rule) in [
        (("implement", None, 0), writer, "implement"),
        (("review", Some("code"), 1), code, "code"),
        (("review", Some("spec"), 1), spec, "spec"),
        (("fix", None, 1), writer, "fix"),
        (("review", Some("code"), 2), code, "code again"),
        (("review", Some("spec"), 2), spec, "spec again"),
    ] {
        let (role, reviewer, cycle) = place;
        let is_it = |row: &&Value| row["role"] == role && row["reviewer"].as_str() == reviewer && row["cycle"] == cycle;
        let attempt: Vec<_> = attempts.iter().filter(is_it).collect();
        let [attempt] = attempt.as_slice() else { panic!("{rule}: one attempt: {shown:#}") };
        counted(attempt, cli, model.rule_usage(rule));
        if cli == Cli::Claude {
            assert_eq!(micros(&attempt["cost_usd"]), printed(project, attempt), "{attempt:#}");
        }
    }
}

/// The reviewers of a round ran in parallel.
fn at_once(attempts: &[Value]) {
    let reviews = |reviewer: &str, cycle: u64| {
        let is_it = |row: &&Value| row["reviewer"] == reviewer && row["cycle"] == cycle;
        let attempt = attempts.iter().find(is_it).unwrap();
        ["started_at", "ended_at"].map(|key| attempt[key].as_str().unwrap().parse::<Timestamp>().unwrap())
    };
    for cycle in [1, 2] {
        let ([began, ended], [other_began, other_ended]) = (reviews("code", cycle), reviews("spec", cycle));
        assert!(began < other_ended && other_began < ended, "cycle {cycle}: {attempts:#?}");
    }
}

fn micros(dollars: &Value) -> u64 {
    (dollars.as_f64().unwrap() * 1e6).round() as u64
}

/// The cost that Claude Code printed.
fn printed(project: &TestProject, attempt: &Value) -> u64 {
    let id = attempt["id"].as_str().unwrap();
    let stdout = project.read(&format!(".signoff/runs/1/1/{id}/stdout"));
    let lines = stdout.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let costs: Vec<Value> = lines.map(|line| line["total_cost_usd"].clone()).filter(Value::is_number).collect();
    micros(costs.last().unwrap())
}

/// The usage of an attempt equals what the model served, and its cost follows from the price.
fn counted(attempt: &Value, cli: Cli, served: TokenUsage) {
    let number = |key: &str| attempt[key].as_u64().unwrap();
    if cli.counts() {
        let recorded = (number("input_tokens"), number("output_tokens"));
        assert_eq!(recorded, (served.input, served.output), "{attempt:#}");
    }
    let [fresh, cached, written, output] = cli.price();
    let from_cache = if cli.reports_cached_tokens() { served.cached_input } else { 0 };
    let into_cache = served.written_input;
    let input = served.input - from_cache - into_cache;
    let thousandths = input * fresh + from_cache * cached + into_cache * written + served.output * output;
    let cost = micros(&attempt["cost_usd"]);
    assert!((cost * 1000).abs_diff(thousandths) <= 500, "{thousandths}: {attempt:#}");
    assert_eq!(attempt["cost_is_estimated"] == true, !cli.reports_cost(), "{attempt:#}");
    assert!(served.input > 0, "{attempt:#}");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn claude_code_from_the_task_to_the_landing() {
    full_loop(Cli::Claude, [Cli::Claude, Cli::Claude]);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn codex_from_the_task_to_the_landing() {
    full_loop(Cli::Codex, [Cli::Codex, Cli::Codex]);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn gemini_cli_from_the_task_to_the_landing() {
    full_loop(Cli::Gemini, [Cli::Gemini, Cli::Gemini]);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn opencode_from_the_task_to_the_landing() {
    full_loop(Cli::Opencode, [Cli::Opencode, Cli::Opencode]);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn gemini_cli_over_the_protocol_from_the_task_to_the_landing() {
    full_loop(Cli::GeminiAcp, [Cli::GeminiAcp, Cli::GeminiAcp]);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn claude_code_writes_codex_and_gemini_review() {
    full_loop(Cli::Claude, [Cli::Codex, Cli::Gemini]);
}
