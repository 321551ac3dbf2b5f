//! An attempt that times out is retried, resumes its session, and completes.

use signoff_testkit::model::{Fault, ModelRule, ModelScript, ModelTurn, TokenUsage};

use super::{Cli, Team};

fn used(input: u64, output: u64) -> TokenUsage {
    TokenUsage { input, output, ..TokenUsage::default() }
}

fn script() -> ModelScript {
    let goes_on = r"(?s)You continue an earlier session.*# IMPLEMENT PHASE";
    ModelScript::new()
        .rule(
            ModelRule::named("again")
                .matching(goes_on)
                .turn(ModelTurn::silent().write("{cwd}/second.txt", "two\n").usage(used(2000, 40)))
                .turn(ModelTurn::say("Done.").usage(used(2100, 15))),
        )
        .rule(
            ModelRule::named("implement")
                .prompt_contains("# IMPLEMENT PHASE")
                .turn(ModelTurn::silent().write("{cwd}/first.txt", "one\n").usage(used(1000, 50)))
                .turn(ModelTurn::say("Done.").fault(Fault::Hang)),
        )
}

fn goes_on(cli: Cli) {
    let team = Team::alone(cli, "[limits]\nsilence = \"15s\"\ngrace = \"2s\"\n", script());
    let Team { project, model } = &team;
    project.run(&["add", "Greet people"]);
    let worked = project.run(&["work"]);
    assert_eq!(worked.code, Some(1), "{worked}");
    team.settled();
    project.run(&["retry", "1"]);
    let worked = project.env.run_with(&["work"], &[("SIGNOFF_LIMITS_SILENCE", "10m")]);
    assert_eq!(worked.code, Some(0), "{worked}");
    assert_eq!(project.git("show signoff/task-1-greet-people:second.txt"), "two\n");
    team.settled();
    let shown = team.shown();
    let attempts = shown["attempts"].as_array().unwrap();
    let [first, second] = attempts.as_slice() else { panic!("two attempts: {shown:#}") };
    assert_eq!((&first["outcome"], &second["outcome"]), (&"silent".into(), &"complete".into()));
    assert_eq!(second["resumes"], "a1");
    assert_eq!(first["session"], second["session"]);
    let seen = &model.replies_of_rule("again");
    assert!(!seen.is_empty(), "the model got a request in the same session");
    let tokens = |attempt: &serde_json::Value| (attempt["input_tokens"].as_u64(), attempt["output_tokens"].as_u64());
    let served = model.rule_usage("again");
    assert_eq!(tokens(second), (Some(served.input), Some(served.output)), "{shown:#}");
    assert_eq!(tokens(first).0, Some(model.rule_usage("implement").input), "{shown:#}");
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn claude_code_goes_on() {
    goes_on(Cli::Claude);
}

#[test]
#[ignore = "needs real agents: scripts/agents slow"]
fn codex_goes_on() {
    goes_on(Cli::Codex);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn gemini_cli_goes_on() {
    goes_on(Cli::Gemini);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn opencode_goes_on() {
    goes_on(Cli::Opencode);
}
