//! Faults of a provider as the real agents report them, and their effect on the task.

use std::io::{BufRead, BufReader};

use jiff::Timestamp;
use signoff_testkit::model::{Fault, ModelError, ModelRule, ModelScript, ModelTurn};
use signoff_testkit::processes;

use super::{Cli, Team, read_only};

/// Persistent faults.
const FAULTS: [&str; 5] = ["500", "429", "401", "cut", "malformed"];

const INT: i32 = 2;

/// The retry delay that the provider states, in seconds: longer than the default backoff.
const DELAY: u64 = 3;

fn faulty(fault: &str) -> ModelTurn {
    let turn = ModelTurn::say("Done.");
    match fault {
        "500" => turn.fail(500),
        "429" => turn.rate_limit(1),
        "429 later" => turn.rate_limit(DELAY),
        "429 in words" => turn.fault(Fault::InStream(ModelError {
            message: Some(format!("Rate limit reached for this model. Please try again in {DELAY}s.")),
            ..ModelError::new(429)
        })),
        "401" => turn.fail(401),
        "cut" => turn.fault(Fault::Cut),
        "malformed" => turn.fault(Fault::Malformed),
        _ => turn.fault(Fault::Hang),
    }
}

fn script(fault: &str) -> ModelScript {
    ModelScript::new().rule(ModelRule::named("implement").prompt_contains("# IMPLEMENT PHASE").turn(faulty(fault)))
}

/// Only the test of a hang has a short silence limit: on a busy machine other agents can be silent, too.
fn limits(fault: &str, refusals: u32) -> String {
    let silence = if fault == "hang" { "20s" } else { "10m" };
    format!("[limits]\nbackoff = \"1s\"\nmax_rate_limits = {refusals}\nsilence = \"{silence}\"\ngrace = \"5s\"\n")
}

fn outcomes(team: &Team) -> String {
    let shown = team.shown();
    let attempts = shown["attempts"].as_array().unwrap();
    let outcomes: Vec<_> = attempts.iter().map(|attempt| attempt["outcome"].as_str().unwrap_or_default()).collect();
    outcomes.join(" ")
}

/// For each fault the outcomes of the attempts and the error message.
pub fn fault_report(cli: Cli, faults: &[&str]) -> String {
    let line = |fault: &str| {
        let team = Team::alone(cli, &limits(fault, 1), script(fault));
        team.project.run(&["add", "Greet people"]);
        let worked = team.project.run(&["work"]);
        assert_eq!(worked.code, Some(1), "{fault}: {worked}");
        team.settled();
        assert!(!team.model.replies_of_rule("implement").is_empty(), "{fault}: the model was not asked");
        let message = worked.stdout.lines().find(|line| line.contains("failed: ")).unwrap_or_default();
        format!("{fault:<9} {}\n          {}", outcomes(&team), normalized(message.trim(), team.model.url()))
    };
    faults.iter().map(|fault| line(fault)).collect::<Vec<_>>().join("\n")
}

/// The message without what varies: the model's address, and the exact position of a cut line or connection.
fn normalized(message: &str, url: &str) -> String {
    let message = message.replace(url, "(model)");
    let ends = [
        " If it persists, check",
        ": Unterminated string",
        ": Expected ':'",
        ": Connection reset by server",
        ": Cannot connect to API",
    ];
    let end = ends.iter().filter_map(|end| message.find(end)).min();
    message[..end.unwrap_or(message.len())].to_owned()
}

/// Whether the wait has the provider's delay or the default backoff. `status` shows the same.
pub fn waits(cli: Cli, fault: &str) -> &'static str {
    let team = Team::alone(cli, &limits(fault, 9), script(fault));
    team.project.run(&["add", "Greet people"]);
    let mut child = team.project.env.start_group(&["work"]);
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("Rate limited") && line.contains("waiting until")));
    // Whatever it does in the meantime, it ends with a wait.
    processes::signal_group(child.id(), INT);
    let left: Vec<String> = lines.collect();
    let worked = team.project.env.finish(child);
    assert_eq!(worked.code, Some(130), "{left:?} {worked}");
    team.settled();
    let task = &team.project.run(&["status", "--json"]).json()["tasks"][0];
    assert_eq!(task["reason"], "rate_limited", "{task:#}");
    let shown = team.shown();
    let moment = |value: &serde_json::Value| value.as_str().unwrap().parse::<Timestamp>().unwrap();
    let ended = moment(&shown["attempts"].as_array().unwrap().last().unwrap()["ended_at"]);
    let wait = moment(&task["wait"]["until"]).duration_since(ended).as_secs_f64();
    // The default backoff is between half a second and one second, twice as long after the first; a stated delay is
    // extended by one second at most.
    if wait > 2.5 && wait < 4.5 { "as stated" } else { "our own choice" }
}

/// Ctrl-C while the model has stopped in the middle of a word, and again to stop the agent.
pub fn cancelled(cli: Cli) {
    let team = Team::alone(cli, &limits("", 1), script("hang"));
    team.project.run(&["add", "Greet people"]);
    let mut child = team.project.env.start_group(&["work"]);
    team.model.wait_for("implement", 1);
    let mut line = String::new();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    processes::signal_group(child.id(), INT);
    errors.read_line(&mut line).unwrap();
    assert_eq!(line, "waiting for the running agents; press Ctrl-C again to stop them\n");
    processes::signal_group(child.id(), INT);
    let worked = team.project.env.finish(child);
    assert_eq!(worked.code, Some(130), "{worked}");
    team.settled();
    assert_eq!(outcomes(&team), "interrupted");
    assert_eq!(team.project.git("branch --list signoff/*").trim(), "+ signoff/task-1-greet-people");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn claude_code_and_its_provider() {
    insta::assert_snapshot!(fault_report(Cli::Claude, &FAULTS), @"
    500       rate_limited rate_limited
              Implementation failed: its provider rate-limited it 2 times in a row (its provider is overloaded: API Error: 500 scripted 500. This is a server-side issue, usually temporary — try again in a moment.
    429       rate_limited rate_limited
              Implementation failed: its provider rate-limited it 2 times in a row (rate limited: API Error: Request rejected (429) · scripted 429)
    401       agent_trouble
              Implementation failed: not logged in: Failed to authenticate. API Error: 401 scripted 401
    cut       agent_trouble
              Implementation failed: the provider's response was incomplete: API Error: Connection to the API was lost (ECONNRESET). This is usually temporary — try again.
    malformed agent_trouble
              Implementation failed: the provider's response was incomplete: API Error: JSON Parse error
    ");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn codex_and_its_provider() {
    insta::assert_snapshot!(fault_report(Cli::Codex, &FAULTS), @"
    500       rate_limited rate_limited
              Implementation failed: its provider rate-limited it 2 times in a row (its provider is overloaded: We’re currently experiencing high demand, which may cause temporary errors.)
    429       rate_limited rate_limited
              Implementation failed: its provider rate-limited it 2 times in a row (rate limited: exceeded retry limit, last status: 429 Too Many Requests)
    401       agent_trouble
              Implementation failed: not logged in: unexpected status 401 Unauthorized: scripted 401, url: (model)/v1/responses
    cut       agent_trouble
              Implementation failed: the provider's response was incomplete: stream disconnected before completion: Transport error: network error: error decoding response body
    malformed agent_trouble
              Implementation failed: the provider's response was incomplete: stream disconnected before completion: stream closed before response.completed
    ");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn gemini_cli_and_its_provider() {
    insta::assert_snapshot!(fault_report(Cli::Gemini, &FAULTS), @"
    500       rate_limited rate_limited
              Implementation failed: its provider rate-limited it 2 times in a row (its provider is overloaded: scripted 500)
    429       rate_limited rate_limited
              Implementation failed: its provider rate-limited it 2 times in a row (rate limited: scripted 429)
    401       agent_trouble
              Implementation failed: not logged in: scripted 401
    cut       agent_trouble
              Implementation failed: the provider's response was incomplete: terminated
    malformed agent_trouble
              Implementation failed: the provider's response was incomplete: Expected ',' or '}' after property value in JSON at position 67 (line 1 column 68)
    ");
}

/// It retries for a minute where others give up; the other faults are in `slow`.
#[test]
#[ignore = "needs real agents: scripts/agents"]
fn opencode_and_its_provider() {
    insta::assert_snapshot!(fault_report(Cli::Opencode, &["401", "malformed"]), @r#"
    401       agent_trouble
              Implementation failed: not logged in: scripted 401
    malformed agent_trouble
              Implementation failed: the provider's response was incomplete: JSON parsing failed: Text: {"id":"chatcmpl_0001_1","object":"chat.completion.chunk","created":0.
    "#);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn claude_code_is_cancelled_and_waits() {
    cancelled(Cli::Claude);
    assert_eq!(waits(Cli::Claude, "429 later"), "as stated");
}

/// It obeys a delay without reporting it, but repeats the provider's message.
#[test]
#[ignore = "needs real agents: scripts/agents"]
fn codex_is_cancelled_and_waits() {
    cancelled(Cli::Codex);
    assert_eq!(waits(Cli::Codex, "429 later"), "our own choice");
    assert_eq!(waits(Cli::Codex, "429 in words"), "as stated");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn gemini_cli_is_cancelled_and_waits() {
    cancelled(Cli::Gemini);
    assert_eq!(waits(Cli::Gemini, "429 later"), "as stated");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn opencode_is_cancelled() {
    cancelled(Cli::Opencode);
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn claude_code_hangs() {
    insta::assert_snapshot!(fault_report(Cli::Claude, &["hang"]), @"
    hang      silent
              Implementation failed: printed nothing for too long
    ");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn codex_hangs() {
    insta::assert_snapshot!(fault_report(Cli::Codex, &["hang"]), @"
    hang      silent
              Implementation failed: printed nothing for too long
    ");
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn gemini_cli_hangs() {
    insta::assert_snapshot!(fault_report(Cli::Gemini, &["hang"]), @"
    hang      silent
              Implementation failed: printed nothing for too long
    ");
}

/// Work whose reviewer's answer was cut off is not approved, whatever the other reviewers say.
fn never_passes(cli: Cli) -> String {
    let script = read_only::script([faulty("malformed")]);
    let team = Team::new(Cli::Claude, [Cli::Claude, cli], script);
    team.project.run(&["add", "Greet people", "-a"]);
    let worked = team.project.run(&["work"]);
    assert_eq!(worked.code, Some(1), "{worked}");
    team.settled();
    let shown = team.shown();
    assert_eq!(shown["approved_commit"], serde_json::Value::Null, "{shown:#}");
    assert_eq!(team.project.git("show signoff/task-1-greet-people:greeting.txt"), "hello\n");
    let attempts = shown["attempts"].as_array().unwrap().iter().filter(|attempt| attempt["reviewer"] == "spec");
    let outcomes: Vec<_> = attempts.map(|attempt| attempt["outcome"].as_str().unwrap_or_default()).collect();
    format!("{}: {} of {}\n", cli.name(), shown["task"]["status"], outcomes.join(" "))
}

#[test]
#[ignore = "needs real agents: scripts/agents"]
fn a_reviewer_whose_answer_is_cut_off_approves_nothing() {
    let all = [Cli::Claude, Cli::Codex, Cli::Gemini, Cli::Opencode].map(never_passes).concat();
    insta::assert_snapshot!(all, @r#"
    claude: "failed" of agent_trouble
    codex: "failed" of agent_trouble
    gemini: "failed" of agent_trouble
    opencode: "failed" of agent_trouble
    "#);
}
