//! GitHub Copilot CLI: recordings of version 1.0.102.

use std::fs;

use signoff_core::settings::AgentKind::Copilot;
use signoff_engine::agent::{AgentFile, SandboxBackend};

use crate::agents::replay::{self, render_recording};
use crate::agents::test_spec::TestSpec;

#[test]
fn a_writer_may_use_every_tool() {
    insta::assert_snapshot!(TestSpec { model: Some("gpt-5"), ..TestSpec::writer(Copilot) }.shown(), @"
    copilot
      --output-format
      json
      --no-ask-user
      --no-custom-instructions
      --disable-builtin-mcps
      --disable-client-telemetry
      --usage-output-file
      /work/attempt/home/copilot-usage.json
      --allow-all-tools
      --model
      gpt-5
    COPILOT_HOME=/work/attempt/home/copilot
    COPILOT_AUTO_UPDATE=false
    NO_COLOR=1
    ");
}

#[test]
fn a_reviewer_may_read_and_report() {
    insta::assert_snapshot!(TestSpec::reviewer(Copilot).shown(), @r#"
    copilot
      --output-format
      json
      --no-ask-user
      --no-custom-instructions
      --disable-builtin-mcps
      --disable-client-telemetry
      --usage-output-file
      /work/attempt/home/copilot-usage.json
      --available-tools=view
      --available-tools=grep
      --available-tools=glob
      --available-tools=signoff-set_loop_review_result
      --available-tools=signoff-set_review_result
      --available-tools=signoff-write_task
      --available-tools=signoff-add_plan_group
      --deny-tool=write
      --deny-tool=shell
      --deny-tool=url
      --allow-tool=signoff
      --additional-mcp-config
      @/work/attempt/home/copilot-mcp.json
    COPILOT_HOME=/work/attempt/home/copilot
    COPILOT_AUTO_UPDATE=false
    NO_COLOR=1
    COPILOT_PKG_CACHE_HOME=/work/attempt/home/copilot-packages
    /work/attempt/home/copilot-mcp.json:
    {
      "mcpServers": {
        "signoff": {
          "type": "http",
          "url": "http://127.0.0.1:4321/mcp",
          "headers": {
            "Authorization": "Bearer ${SIGNOFF_MCP_TOKEN}"
          },
          "tools": [
            "*"
          ]
        }
      }
    }
    "#);
}

#[test]
fn a_reviewer_without_a_server() {
    let line = TestSpec { reports: false, ..TestSpec::reviewer(Copilot) }.line();
    assert!(line.arguments.iter().all(|word| !word.contains("signoff")), "{:?}", line.arguments);
    assert!(line.files.is_empty());
}

#[test]
fn a_sandboxed_agent_links_the_unpacked_package() {
    let home = tempfile::tempdir().unwrap();
    let version = home.path().join(".cache/copilot/pkg/linux-x64/1.0.102");
    fs::create_dir_all(&version).unwrap();
    let linked = |sandbox| {
        let line = TestSpec { sandbox, user_home: home.path().to_owned(), ..TestSpec::reviewer(Copilot) }.line();
        let packages = line.environment.iter().any(|(name, _)| name == "COPILOT_PKG_CACHE_HOME");
        let links: Vec<AgentFile> =
            line.files.into_iter().filter(|file| matches!(file, AgentFile::Link { .. })).collect();
        (packages, links)
    };
    let path = "/work/attempt/home/copilot-packages/pkg/linux-x64/1.0.102".into();
    let link = AgentFile::Link { path, source: version.clone() };
    for sandbox in [SandboxBackend::Landlock, SandboxBackend::Bubblewrap] {
        assert_eq!(linked(sandbox), (true, vec![link.clone()]));
    }
    assert_eq!(linked(SandboxBackend::None), (false, Vec::new()));
}

#[test]
fn configured_arguments_come_last() {
    let mut spec = TestSpec { resumes: Some("s1"), ..TestSpec::writer(Copilot) };
    spec.agent.command = vec!["npx".to_owned(), "copilot".to_owned()];
    spec.agent.args = vec!["--effort".to_owned(), "high".to_owned()];
    let line = spec.line();
    assert_eq!(line.program, "npx");
    assert_eq!(line.arguments.first().map(String::as_str), Some("copilot"));
    assert_eq!(line.arguments[line.arguments.len() - 4..], ["--resume", "s1", "--effort", "high"]);
}

#[test]
fn an_answer_without_tools() {
    insta::assert_snapshot!(render_recording(Copilot, "plain"), @"
    This is a plain answer.
    ---
    message: This is a plain answer.
    session: 00000011-0000-4000-8000-000000000000
    spent by m1: 1000 in (400 cached, 0 written), 50 out
    ended well
    ");
}

#[test]
fn the_message_is_the_last_one_without_a_tool_request() {
    insta::assert_snapshot!(render_recording(Copilot, "tools"), @"
    I write a file.
    [create] /work/repo/made.txt
    Now the shell.
    [bash] echo shell-was-here > shell.txt; ls
    All done: made.txt and shell.txt.
    ---
    message: All done: made.txt and shell.txt.
    session: 00000025-0000-4000-8000-000000000000
    spent by m1: 3600 in (1400 cached, 0 written), 210 out
    ended well
    ");
}

#[test]
fn a_resumed_session_counts_only_new_usage() {
    insta::assert_snapshot!(render_recording(Copilot, "resumed"), @"
    Resumed answer.
    ---
    message: Resumed answer.
    session: 00000011-0000-4000-8000-000000000000
    spent by m1: 5000 in (4000 cached, 0 written), 50 out
    ended well
    ");
}

#[test]
fn reviewers_report() {
    insta::assert_snapshot!(render_recording(Copilot, "reports"), @"
    Reporting.
    [signoff-report_finding] bug
    Reported one finding.
    ---
    message: Reported one finding.
    session: 00000020-0000-4000-8000-000000000000
    spent by m1: 4100 in (300 cached, 0 written), 50 out
    reached the report server: true
    ended well
    ");
    insta::assert_snapshot!(render_recording(Copilot, "reports_unreachable"), @"
    Reporting.

    [no MCP tool report_finding was offered]
    ---
    message: Reporting.

    [no MCP tool report_finding was offered]
    session: 00000013-0000-4000-8000-000000000000
    spent by m1: 2000 in (100 cached, 0 written), 20 out
    reached the report server: false
    ended well
    ");
    insta::assert_snapshot!(render_recording(Copilot, "reports_refused"), @"
    Reporting.

    [no MCP tool report_finding was offered]
    ---
    message: Reporting.

    [no MCP tool report_finding was offered]
    session: 00000019-0000-4000-8000-000000000000
    spent by m1: 2000 in (100 cached, 0 written), 20 out
    reached the report server: false
    ended well
    ");
}

#[test]
fn a_reviewer_that_tries_to_write() {
    insta::assert_snapshot!(render_recording(Copilot, "reviewer_writes"), @"
    Writing.
    [create] /work/repo/evil.txt
    [create] /work/repo/evil.txt (not allowed)
    Touching.
    [bash] touch evil-touch.txt
    [bash] touch evil-touch.txt (not allowed)
    Pushing.
    [bash] git push origin HEAD
    [bash] git push origin HEAD (not allowed)
    Hook.
    [create] /work/repo/.git/hooks/pre-commit
    [create] /work/repo/.git/hooks/pre-commit (not allowed)
    Ended after trying.
    ---
    message: Ended after trying.
    session: 00000041-0000-4000-8000-000000000000
    spent by m1: 50 in (0 cached, 0 written), 5 out
    denied: create /work/repo/evil.txt
    denied: bash touch evil-touch.txt
    denied: bash git push origin HEAD
    denied: create /work/repo/.git/hooks/pre-commit
    reached the report server: true
    ended well
    ");
}

#[test]
fn refusals_of_the_provider() {
    insta::assert_snapshot!(render_recording(Copilot, "400"), @"
    (error: 400 bad request: wrong model)
    ---
    message: 
    session: 00000010-0000-4000-8000-000000000000
    error: it ended with an error: 400 bad request: wrong model (Other)
    ");
    insta::assert_snapshot!(render_recording(Copilot, "401"), @"
    (waits: transient_auth_error)
    (waits: transient_auth_error)
    (error: Authentication failed with provider at http://127.0.0.1:18600/v1 (HTTP 401). Check your COPILOT_PROVIDER_API_KEY, COPILOT_PROVIDER_API_KEY_COMMAND, or COPILOT_PROVIDER_BEARER_TOKEN.)
    ---
    message: 
    session: 00000014-0000-4000-8000-000000000000
    error: not logged in: Authentication failed with provider at http://127.0.0.1:18600/v1 (HTTP 401). Check your COPILOT_PROVIDER_API_KEY, COPILOT_PROVIDER_API_KEY_COMMAND, or COPILOT_PROVIDER_BEARER_TOKEN. (NotLoggedIn)
    ");
    insta::assert_snapshot!(render_recording(Copilot, "404"), @"
    (error: Model 'm1' not found on provider at http://127.0.0.1:18600/v1 (HTTP 404). Check that the model is available on your provider.)
    ---
    message: 
    session: 00000010-0000-4000-8000-000000000000
    error: the model cannot be used: Model 'm1' not found on provider at http://127.0.0.1:18600/v1 (HTTP 404). Check that the model is available on your provider. (ModelUnavailable)
    ");
    insta::assert_snapshot!(render_recording(Copilot, "429"), @"
    (waits: rate_limit)
    (waits: rate_limit)
    (waits: rate_limit)
    (waits: rate_limit)
    (waits: rate_limit)
    (error: Failed to get response from the AI model; retried 5 times (total retry wait time: 22.23 seconds) Last error: 429 Rate limit reached. Please retry in 4s.)
    ---
    message: 
    session: 00000020-0000-4000-8000-000000000000
    error: rate limited: Failed to get response from the AI model; retried 5 times (total retry wait time: 22.23 seconds) Last error: 429 Rate limit reached. Please retry in 4s. (RateLimited { seconds: Some(4) })
    ");
    insta::assert_snapshot!(render_recording(Copilot, "429_long"), @"
    (error: 429 You exceeded your current quota. Please retry in 3600s.)
    ---
    message: 
    session: 00000010-0000-4000-8000-000000000000
    error: rate limited: 429 You exceeded your current quota. Please retry in 3600s. (RateLimited { seconds: Some(3600) })
    ");
    insta::assert_snapshot!(render_recording(Copilot, "500"), @"
    (waits: api_error)
    (waits: api_error)
    (waits: api_error)
    (waits: api_error)
    (waits: api_error)
    (error: Failed to get response from the AI model; retried 5 times (total retry wait time: 16.73 seconds) Last error: 500 scripted 500)
    ---
    message: 
    session: 00000020-0000-4000-8000-000000000000
    error: its provider is overloaded: Failed to get response from the AI model; retried 5 times (total retry wait time: 16.73 seconds) Last error: 500 scripted 500 (Overloaded)
    ");
    insta::assert_snapshot!(render_recording(Copilot, "too_long"), @"
    (error: Request exceeds the model's prompt budget after reserving output (210389 tokens; limit 128000). Reduce context or compact before continuing.)
    ---
    message: 
    session: 00000009-0000-4000-8000-000000000000
    error: the prompt is too long for the model: Request exceeds the model's prompt budget after reserving output (210389 tokens; limit 128000). Reduce context or compact before continuing. (PromptTooLong)
    ");
}

#[test]
fn interrupted_responses_are_errors() {
    insta::assert_snapshot!(render_recording(Copilot, "cut"), @"
    (waits: streaming_error)
    (waits: streaming_error)
    (waits: streaming_error)
    (waits: streaming_error)
    (waits: streaming_error)
    (error: Failed to get response from the AI model; retried 5 times (total retry wait time: 5.00 seconds) Last error: Failed native model HTTP request: error decoding response body: error reading a body from connection: unexpected EOF during chunk size line)
    ---
    message: 
    session: 00000020-0000-4000-8000-000000000000
    error: the provider's response was incomplete: Failed to get response from the AI model; retried 5 times (total retry wait time: 5.00 seconds) Last error: Failed native model HTTP request: error decoding response body: error reading a body from connection: unexpected EOF during chunk size line (InvalidResponse)
    ");
    insta::assert_snapshot!(render_recording(Copilot, "malformed"), @"
    (waits: streaming_error)
    (waits: streaming_error)
    (waits: streaming_error)
    (waits: streaming_error)
    (waits: streaming_error)
    (error: Failed to get response from the AI model; retried 5 times (total retry wait time: 5.00 seconds) Last error: Failed to parse chat-completions stream chunk: expected ident at line 1 column 14)
    ---
    message: 
    session: 00000020-0000-4000-8000-000000000000
    error: the provider's response was incomplete: Failed to get response from the AI model; retried 5 times (total retry wait time: 5.00 seconds) Last error: Failed to parse chat-completions stream chunk: expected ident at line 1 column 14 (InvalidResponse)
    ");
}

#[test]
fn a_missing_login_is_reported() {
    insta::assert_snapshot!(render_recording(Copilot, "no_login"), @"

    ---
    message: 
    error: not logged in: Error: No authentication information found. (NotLoggedIn)
    ");
}

#[test]
fn the_closing_line_of_a_killed_agent_does_not_count() {
    insta::assert_snapshot!(render_recording(Copilot, "terminated"), @"

    ---
    message: 
    session: 00000008-0000-4000-8000-000000000000
    error: it ended with an error: the answer was aborted (Other)
    ");
}

#[test]
fn success_requires_a_closing_line() {
    replay::check_success_requires_a_closing_line(Copilot, |line| line.contains(r#""type":"result""#));
}

#[test]
fn any_output_is_parsed() {
    replay::check_any_output_is_parsed(Copilot);
}
