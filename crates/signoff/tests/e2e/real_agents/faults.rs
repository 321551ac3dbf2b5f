//! What a provider does to an agent, told by the agent's own program, and what becomes of the task.

use signoff_testkit::model::{Fault, Rule, Script, Turn};
use signoff_testkit::processes;

use super::{Cli, Team};

/// What goes wrong, and goes on going wrong.
const FAULTS: [&str; 6] = ["500", "429", "401", "cut", "malformed", "hang"];

/// opencode asks again for more than a minute without a word, and nothing can keep it from that.
const AT_ONCE: [&str; 2] = ["401", "malformed"];

fn faulty(fault: &str) -> Turn {
    let turn = Turn::say("Done.");
    match fault {
        "500" => turn.refuse(500),
        "429" => turn.limit(1),
        "401" => turn.refuse(401),
        "cut" => turn.fault(Fault::Cut),
        "malformed" => turn.fault(Fault::Malformed),
        _ => turn.fault(Fault::Hang),
    }
}

fn script(fault: &str) -> Script {
    Script::new().rule(Rule::named("implement").asked_for("# IMPLEMENT PHASE").turn(faulty(fault)))
}

/// opencode takes its time before its first word.
fn limits(cli: Cli) -> String {
    let silence = if matches!(cli, Cli::Opencode | Cli::OpencodeAcp) { "120s" } else { "15s" };
    format!("[limits]\nbackoff = \"0s\"\nmax_rate_limits = 1\nsilence = \"{silence}\"\ngrace = \"2s\"\n")
}

/// For each fault how the attempts ended, and what was said of it.
fn told(cli: Cli, faults: &[&str]) -> String {
    let one = |fault: &str| {
        let team = Team::alone(cli, &limits(cli), script(fault));
        team.project.run(&["add", "Greet people"]);
        let worked = team.project.run(&["work"]);
        assert_eq!(worked.code, Some(1), "{fault}: {worked}");
        let shown = team.project.run(&["show", "1", "--json"]).json();
        let outcomes: Vec<_> = shown["attempts"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["outcome"].as_str().unwrap_or_default())
            .collect();
        let stdout = worked.stdout.replace(team.model.url(), "(model)");
        let said = stdout.lines().find(|line| line.contains("failed: ")).unwrap_or_default();
        assert_eq!(processes::of(team.project.env.root()), Vec::<String>::new(), "{fault}");
        format!("{fault:<9} {}\n          {}", outcomes.join(" "), said.trim())
    };
    faults.iter().map(|fault| one(fault)).collect::<Vec<_>>().join("\n")
}

/// Ctrl-C while the model has stopped in the middle of a word.
fn cancelled(cli: Cli) {
    let team = Team::alone(cli, &limits(cli), script("hang"));
    team.project.run(&["add", "Greet people"]);
    let child = team.project.env.start_group(&["work"]);
    team.model.wait_for("implement", 1);
    processes::signal_group(child.id(), 2);
    let worked = team.project.env.finish(child);
    assert_eq!(worked.code, Some(130), "{worked}");
    assert_eq!(processes::of(team.project.env.root()), Vec::<String>::new());
    assert_eq!(team.project.git("branch --list signoff/*").trim(), "+ signoff/task-1-greet-people");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn claude_code_and_its_provider() {
    insta::assert_snapshot!(told(Cli::Claude, &FAULTS), @"
    500       rate_limited rate_limited
              Implementation failed: its provider refused it 2 times in a row (rate limit)
    429       rate_limited rate_limited
              Implementation failed: its provider refused it 2 times in a row (rate limit)
    401       agent_trouble
              Implementation failed: not logged in: Failed to authenticate. API Error: 401 scripted 401
    cut       agent_trouble
              Implementation failed: the answer of its provider broke off: API Error: Connection to the API was lost (ECONNRESET). This is usually temporary — try again.
    malformed agent_trouble
              Implementation failed: the answer of its provider broke off: API Error: JSON Parse error: Unterminated string
    hang      silent
              Implementation failed: said nothing for too long
    ");
    cancelled(Cli::Claude);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn codex_and_its_provider() {
    insta::assert_snapshot!(told(Cli::Codex, &FAULTS), @"
    500       rate_limited rate_limited
              Implementation failed: its provider refused it 2 times in a row (rate limit)
    429       rate_limited rate_limited
              Implementation failed: its provider refused it 2 times in a row (rate limit)
    401       agent_trouble
              Implementation failed: not logged in: unexpected status 401 Unauthorized: scripted 401, url: (model)/v1/responses
    cut       agent_trouble
              Implementation failed: the answer of its provider broke off: stream disconnected before completion: Transport error: network error: error decoding response body
    malformed agent_trouble
              Implementation failed: the answer of its provider broke off: stream disconnected before completion: stream closed before response.completed
    hang      silent
              Implementation failed: said nothing for too long
    ");
    cancelled(Cli::Codex);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn gemini_cli_and_its_provider() {
    insta::assert_snapshot!(told(Cli::Gemini, &FAULTS), @"
    500       rate_limited rate_limited
              Implementation failed: its provider refused it 2 times in a row (rate limit)
    429       rate_limited rate_limited
              Implementation failed: its provider refused it 2 times in a row (rate limit)
    401       agent_trouble
              Implementation failed: not logged in: scripted 401
    cut       agent_trouble
              Implementation failed: the answer of its provider broke off: terminated
    malformed agent_trouble
              Implementation failed: the answer of its provider broke off: Expected ',' or '}' after property value in JSON at position 67 (line 1 column 68)
    hang      silent
              Implementation failed: said nothing for too long
    ");
    cancelled(Cli::Gemini);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn opencode_and_its_provider() {
    insta::assert_snapshot!(told(Cli::Opencode, &AT_ONCE), @r#"
    401       agent_trouble
              Implementation failed: not logged in: scripted 401
    malformed agent_trouble
              Implementation failed: the answer of its provider broke off: JSON parsing failed: Text: {"id":"chatcmpl_0001_1","object":"chat.completion.chunk","created":0.
    "#);
    cancelled(Cli::Opencode);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn opencode_over_the_protocol_and_its_provider() {
    insta::assert_snapshot!(told(Cli::OpencodeAcp, &["401"]), @"
    401       agent_trouble
              Implementation failed: it ended with an error: Internal error: scripted 401
    ");
    cancelled(Cli::OpencodeAcp);
}
