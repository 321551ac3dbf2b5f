//! Real agents that cannot work: the reported error, no approval, and no lost work.

use serde_json::json;
use signoff_testkit::ProgramOutput;
use signoff_testkit::model::{Fault, ModelError, ModelRule, ModelScript, ModelTurn};

use super::{Cli, Team};

const ALL: [Cli; 4] = [Cli::Claude, Cli::Codex, Cli::Gemini, Cli::Opencode];

/// A port without a listener.
const NOWHERE: &str = "http://127.0.0.1:9";

/// An implementation that succeeds, and this review.
fn script(review: ModelTurn) -> ModelScript {
    ModelScript::new()
        .find("loop", r"completed by Loop (\S+?)\.")
        .rule(ModelRule::named("code").prompt_contains("LOOP REVIEW PHASE").turn(review).say("REVIEW_COMPLETE"))
        .rule(
            ModelRule::named("implement")
                .prompt_contains("# IMPLEMENT PHASE")
                .turn(ModelTurn::silent().write("{cwd}/greeting.txt", "hello\n"))
                .say("Done."),
        )
        .rule(ModelRule::named("trial").prompt_contains("Answer with the one word").say("ready"))
}

fn reports() -> ModelTurn {
    let passed = json!({ "loopId": "{loop}", "taskId": "1", "passed": true });
    ModelTurn::silent().mcp("set_loop_review_result", passed)
}

/// One program writes and reviews; the reviewer reports with a tool, without retries.
fn team(cli: Cli, review: ModelTurn) -> Team {
    let more = "[gate]\nreviewers = [\"code\"]\non_reviewer_failure = [\"stop\"]\non_unclear = [\"stop\"]\n\n\
                [reviewers.code]\nkind = \"code\"\ncontract = \"tool\"\n\n\
                [limits]\nbackoff = \"0s\"\nmax_rate_limits = 1\nsilence = \"120s\"\ngrace = \"2s\"\n";
    Team::alone(cli, more, script(review))
}

/// Changes the configuration.
fn set(team: &Team, changes: &[(&str, &str)]) {
    let mut text = team.project.read("signoff.toml");
    for (old, new) in changes {
        assert!(text.contains(old), "{old}\n{text}");
        text = text.replace(old, new);
    }
    team.project.env.write("signoff.toml", text);
    team.project.commit("Set up otherwise");
}

/// The error and the hint of a failed task; checks that all commands agree on the hint.
fn failure(team: &Team, cli: Cli, worked: &ProgramOutput) -> String {
    assert_eq!(worked.code, Some(1), "{worked}");
    let shown = team.project.run(&["show", "1", "--json"]).json();
    assert_eq!(shown["task"]["status"], "failed", "{worked}");
    let attempts = shown["attempts"].as_array().unwrap();
    let last = attempts.last().unwrap();
    let hint = last["hint"].as_str().unwrap_or("none");
    for place in [&worked.stdout, &team.project.run(&["show", "1"]).stdout] {
        assert_eq!(place.contains(&format!("hint: {hint}")), hint != "none", "{place}");
    }
    let failed = |line: &&str| line.contains("failed: ") || line.contains("Review: ");
    let message = worked.stdout.lines().find(failed).unwrap_or_default().replace(team.model.url(), "(model)");
    let outcome = last["outcome"].as_str().unwrap_or_default();
    format!("{}: {outcome}\n  {}\n  hint: {hint}\n", cli.name(), message.trim())
}

/// The work is on its branch and in its worktree.
fn kept(team: &Team) {
    assert_eq!(team.project.git("show signoff/task-1-greet-people:greeting.txt"), "hello\n");
    assert_eq!(team.project.read(".signoff/worktrees/task-1/greeting.txt"), "hello\n");
}

fn work(team: &Team, env: &[(&str, &str)]) -> ProgramOutput {
    team.project.run(&["add", "Greet people", "-a"]);
    team.project.env.run_with(&["work", "--no-ask"], env)
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn a_missing_key() {
    let none = |cli: Cli| {
        let team = team(cli, reports());
        set(
            &team,
            &[match cli {
                Cli::Claude => ("ANTHROPIC_API_KEY = \"sk-ant-scripted-key\", ", ""),
                Cli::Codex => ("env = { OPENAI_API_KEY = \"sk-scripted-key\" }\n", ""),
                Cli::Gemini => (", GEMINI_API_KEY = \"scripted-key-of-gemini\"", ""),
                Cli::Opencode | Cli::GeminiAcp | Cli::OpencodeAcp | Cli::Qwen | Cli::Copilot => {
                    ("\"scripted/m1\"", "\"anthropic/claude-sonnet-4-5\"")
                }
            }],
        );
        let worked = work(&team, &[]);
        let warned: String = worked.stderr.lines().filter(|line| line.contains("warning")).collect();
        assert_eq!(team.project.git("log --format=%s main..signoff/task-1-greet-people"), "");
        assert!(team.project.env.work().join(".signoff/worktrees/task-1").is_dir());
        let warned = if warned.is_empty() { "(no warning)" } else { &warned };
        format!("{}  {warned}\n", failure(&team, cli, &worked))
    };
    insta::assert_snapshot!(ALL.map(none).concat(), @"
    claude: agent_trouble
      [1/3] Implementation failed: not logged in: Not logged in · Please run /login
      hint: log in with the agent itself, or give it its key; then `signoff agents --check claude`
      warning: agent claude is probably not logged in; `signoff agents --check claude` checks it
    codex: agent_trouble
      [1/3] Implementation failed: not logged in: Missing environment variable: `OPENAI_API_KEY`.
      hint: log in with the agent itself, or give it its key; then `signoff agents --check codex`
      (no warning)
    gemini: agent_trouble
      [1/3] Implementation failed: not logged in: exit code 41, Invalid auth method selected.
      hint: log in with the agent itself, or give it its key; then `signoff agents --check gemini`
      warning: agent gemini is probably not logged in; `signoff agents --check gemini` checks it
    opencode: agent_trouble
      [1/3] Implementation failed: it ended with an error: Unexpected server error. Check server logs for details. (before its first step: `opencode models` lists the available models)
      hint: `signoff agents --check opencode` tries it by itself
      (no warning)
    ");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn a_model_unknown_to_the_provider() {
    let unknown = |cli: Cli| {
        // Each provider has its own message.
        let message = match cli {
            Cli::Claude => "model: nope",
            Cli::Codex | Cli::Opencode | Cli::OpencodeAcp | Cli::Qwen | Cli::Copilot => {
                "The model `nope` does not exist or you do not have access to it."
            }
            Cli::Gemini | Cli::GeminiAcp => "models/nope is not found for API version v1beta",
        };
        let refusal = ModelError { message: Some(message.to_owned()), ..ModelError::new(404) };
        let team = team(cli, ModelTurn::say("").fault(Fault::Status(refusal)));
        let worked = work(&team, &[]);
        kept(&team);
        failure(&team, cli, &worked)
    };
    insta::assert_snapshot!(ALL.map(unknown).concat(), @"
    claude: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: the model cannot be used: There's an issue with the selected model (claude-sonnet-4-5). It ma…
      hint: `[agents.claude] model` names the model
    codex: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: the model cannot be used: The model `nope` does not exist or you do not have access to it.
      hint: `[agents.codex] model` names the model
    gemini: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: the model cannot be used: models/nope is not found for API version v1beta
      hint: `[agents.gemini] model` names the model
    opencode: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: the model cannot be used: The model `nope` does not exist or you do not have access to it.
      hint: `[agents.opencode] model` names the model
    ");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn a_model_unknown_to_the_program() {
    let team = team(Cli::Opencode, reports());
    set(&team, &[("\"scripted/m1\"", "\"scripted/none\"")]);
    let worked = work(&team, &[]);
    insta::assert_snapshot!(failure(&team, Cli::Opencode, &worked), @"
    opencode: agent_trouble
      [1/3] Implementation failed: it ended with an error: Unexpected server error. Check server logs for details. (before its first step: `opencode models` lists the available models)
      hint: `signoff agents --check opencode` tries it by itself
    ");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn an_unreachable_report_server() {
    let unreached = |cli: Cli| {
        let team = team(cli, reports());
        let worked = work(&team, &[("SIGNOFF_TEST_REPORTS", "http://127.0.0.1:9/mcp")]);
        kept(&team);
        failure(&team, cli, &worked)
    };
    insta::assert_snapshot!(ALL.map(unreached).concat(), @r#"
    claude: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: it could not reach the server for reports: [no tool was declared for mcp: set_loop_review_res…
      hint: the agent must reach 127.0.0.1; with `contract = "markdown"` it needs no server
    codex: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: it could not reach the server for reports: required MCP servers failed to initialize: Client…
      hint: the agent must reach 127.0.0.1; with `contract = "markdown"` it needs no server
    gemini: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: it could not reach the server for reports: [no tool was declared for mcp: set_loop_review_res…
      hint: the agent must reach 127.0.0.1; with `contract = "markdown"` it needs no server
    opencode: agent_trouble
      [1/3] Review: INCONCLUSIVE - code: it could not reach the server for reports: [no tool was declared for mcp: set_loop_review_res…
      hint: the agent must reach 127.0.0.1; with `contract = "markdown"` it needs no server
    "#);
}

/// A proxy in the environment is not used between an agent and this machine.
#[test]
#[ignore = "needs real agents: scripts/agents"]
fn a_proxy_is_not_used_for_the_loopback_interface() {
    for cli in ALL {
        let team = team(cli, reports());
        let proxies = ["HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY"];
        let proxies: Vec<_> = proxies.into_iter().map(|name| (name, NOWHERE)).collect();
        let worked = work(&team, &proxies);
        assert_eq!(worked.code, Some(0), "{}: {worked}", cli.name());
        assert!(worked.stdout.contains("Review: APPROVED"), "{worked}");
    }
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn a_check_of_each_program() {
    for cli in ALL {
        let team = team(cli, reports());
        let checked = team.project.run(&["agents", "--check", "--json"]);
        assert_eq!(checked.code, Some(0), "{checked}");
        let report = checked.json();
        let agent = &report["agents"][0];
        assert_eq!((&agent["name"], &agent["check"]["works"]), (&cli.name().into(), &true.into()));
        assert_eq!(agent["check"]["message"], "ready", "{checked}");
        assert!(agent["program_version"].is_string(), "{checked}");
    }
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn a_check_that_the_provider_rejects() {
    let refused = |cli: Cli| {
        let refusal =
            ModelRule::named("trial").prompt_contains("Answer with the one word").turn(ModelTurn::say("").fail(401));
        let team = Team::alone(cli, "", ModelScript::new().rule(refusal));
        let checked = team.project.run(&["agents", "--check", "--json"]);
        assert_eq!(checked.code, Some(1), "{checked}");
        assert!(!checked.stdout.contains("scripted-key"), "{checked}");
        let check = checked.json()["agents"][0]["check"].clone();
        let message = check["message"].as_str().unwrap().replace(team.model.url(), "(model)");
        format!("{}: {message}\n  {}\n", cli.name(), check["hint"].as_str().unwrap_or("none"))
    };
    insta::assert_snapshot!(ALL.map(refused).concat(), @"
    claude: not logged in: Failed to authenticate. API Error: 401 scripted 401
      log in with the agent itself, or give it its key; then `signoff agents --check claude`
    codex: not logged in: unexpected status 401 Unauthorized: scripted 401, url: (model)/v1/responses
      log in with the agent itself, or give it its key; then `signoff agents --check codex`
    gemini: not logged in: scripted 401
      log in with the agent itself, or give it its key; then `signoff agents --check gemini`
    opencode: not logged in: scripted 401
      log in with the agent itself, or give it its key; then `signoff agents --check opencode`
    ");
}
