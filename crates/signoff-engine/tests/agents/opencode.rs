//! opencode: recordings of version 1.18.33.

use signoff_core::settings::AgentKind::Opencode;
use signoff_engine::agent::{AccessMode, SandboxBackend};

use crate::agents::replay::{self, Recording, parse_recording, render_lines, render_recording};
use crate::agents::test_spec::TestSpec;

#[test]
fn a_writer_needs_no_permission_and_has_its_own_state() {
    insta::assert_snapshot!(TestSpec { model: Some("anthropic/opus"), ..TestSpec::writer(Opencode) }.shown(), @r#"
    opencode
      run
      --format
      json
      --title
      signoff
      --model
      anthropic/opus
      --auto
    XDG_CONFIG_HOME=/work/attempt/home/.config
    XDG_DATA_HOME=/work/attempt/home/.local/share
    XDG_STATE_HOME=/work/attempt/home/.local/state
    XDG_CACHE_HOME=/work/attempt/home/.cache
    OPENCODE_TEST_HOME=/work/attempt/home
    OPENCODE_PURE=true
    OPENCODE_DISABLE_AUTOUPDATE=true
    OPENCODE_DISABLE_CLAUDE_CODE=true
    OPENCODE_DISABLE_EXTERNAL_SKILLS=true
    OPENCODE_DISABLE_LSP_DOWNLOAD=true
    OPENCODE_DISABLE_MODELS_FETCH=true
    OPENCODE_DISABLE_PROJECT_CONFIG=true
    OPENCODE_DISABLE_SHARE=true
    OPENCODE_DISABLE_TERMINAL_TITLE=true
    without OPENCODE_CONFIG_CONTENT
    without OPENCODE_CONFIG_DIR
    OPENCODE_CONFIG=/work/attempt/home/opencode.json
    /work/attempt/home/.local/share/opencode/auth.json -> /home/ann/.local/share/opencode/auth.json
    /work/attempt/home/.cache/opencode/models.json copied from /home/ann/.cache/opencode/models.json
    /work/attempt/home/opencode.json:
    {
      "autoupdate": false,
      "share": "disabled",
      "snapshot": false
    }
    "#);
}

#[test]
fn a_reviewer_may_read_and_report() {
    insta::assert_snapshot!(TestSpec::reviewer(Opencode).shown(), @r#"
    opencode
      run
      --format
      json
      --title
      signoff
    XDG_CONFIG_HOME=/work/attempt/home/.config
    XDG_DATA_HOME=/work/attempt/home/.local/share
    XDG_STATE_HOME=/work/attempt/home/.local/state
    XDG_CACHE_HOME=/work/attempt/home/.cache
    OPENCODE_TEST_HOME=/work/attempt/home
    HOME=/work/attempt/home
    OPENCODE_PURE=true
    OPENCODE_DISABLE_AUTOUPDATE=true
    OPENCODE_DISABLE_CLAUDE_CODE=true
    OPENCODE_DISABLE_EXTERNAL_SKILLS=true
    OPENCODE_DISABLE_LSP_DOWNLOAD=true
    OPENCODE_DISABLE_MODELS_FETCH=true
    OPENCODE_DISABLE_PROJECT_CONFIG=true
    OPENCODE_DISABLE_SHARE=true
    OPENCODE_DISABLE_TERMINAL_TITLE=true
    OPENCODE_PERMISSION={"edit":"deny","bash":"deny","task":"deny","webfetch":"deny","websearch":"deny","external_directory":"deny","todowrite":"deny","skill":"deny","question":"deny"}
    without OPENCODE_CONFIG_CONTENT
    without OPENCODE_CONFIG_DIR
    OPENCODE_CONFIG=/work/attempt/home/opencode.json
    /work/attempt/home/.local/share/opencode/auth.json -> /home/ann/.local/share/opencode/auth.json
    /work/attempt/home/.cache/opencode/models.json copied from /home/ann/.cache/opencode/models.json
    /work/attempt/home/opencode.json:
    {
      "autoupdate": false,
      "share": "disabled",
      "snapshot": false,
      "mcp": {
        "signoff": {
          "type": "remote",
          "url": "http://127.0.0.1:4321/mcp",
          "headers": {
            "Authorization": "Bearer {env:SIGNOFF_MCP_TOKEN}"
          },
          "enabled": true,
          "oauth": false
        }
      }
    }
    "#);
}

#[test]
fn the_command_line_does_not_depend_on_the_sandbox() {
    let held = |sandbox| TestSpec { sandbox, ..TestSpec::reviewer(Opencode) }.line();
    assert_eq!(held(SandboxBackend::None), held(SandboxBackend::Landlock));
    assert_eq!(held(SandboxBackend::Bubblewrap), held(SandboxBackend::Landlock));
}

#[test]
fn a_session_is_resumed_by_its_id() {
    let line = TestSpec { resumes: Some("ses_1"), ..TestSpec::writer(Opencode) }.line();
    assert_eq!(line.arguments, ["run", "--format", "json", "--session", "ses_1", "--auto"]);
}

#[test]
fn configured_arguments_come_last() {
    let mut spec = TestSpec { access: AccessMode::Read, ..TestSpec::writer(Opencode) };
    spec.agent.command = vec!["nice".to_owned(), "./opencode".to_owned()];
    spec.agent.args = vec!["--variant".to_owned(), "high".to_owned()];
    let line = spec.line();
    assert_eq!(line.program, "nice");
    assert_eq!(line.arguments, ["./opencode", "run", "--format", "json", "--title", "signoff", "--variant", "high"]);
}

#[test]
fn an_answer_without_tools() {
    insta::assert_snapshot!(render_recording(Opencode, "plain"), @"
    This is a plain answer.
    ---
    message: This is a plain answer.
    session: ses_1
    spent by a model: 1000 in (400 cached, 0 written), 50 out, 740 µ$
    ended well
    ");
}

#[test]
fn the_message_is_that_of_the_last_step() {
    insta::assert_snapshot!(render_recording(Opencode, "tools"), @"
    I write a file.
    [write] made.txt
    Now the shell.
    [bash] echo shell-was-here > shell.txt; ls
    All done: made.txt and shell.txt.
    ---
    message: All done: made.txt and shell.txt.
    session: ses_1
    spent by a model: 3600 in (1400 cached, 0 written), 210 out, 2760 µ$
    ended well
    ");
    insta::assert_snapshot!(render_recording(Opencode, "parallel_tools"), @"
    [write] p.txt
    [bash] echo x; exit 3
    Done both.
    ---
    message: Done both.
    session: ses_1
    spent by a model: 2400 in (0 cached, 0 written), 140 out, 2680 µ$
    ended well
    ");
}

#[test]
fn steps_are_added_up() {
    insta::assert_snapshot!(render_recording(Opencode, "two_turns"), @"
    [bash] true
    Second turn.
    ---
    message: Second turn.
    session: ses_1
    spent by a model: 6100 in (3000 cached, 0 written), 77 out, 3554 µ$
    ended well
    ");
}

#[test]
fn reasoning_is_output() {
    insta::assert_snapshot!(render_recording(Opencode, "reasoning"), @"
    With reasoning.
    ---
    message: With reasoning.
    session: ses_1
    spent by a model: 1000 in (400 cached, 0 written), 50 out, 740 µ$
    ended well
    ");
}

#[test]
fn a_resumed_session_counts_from_zero() {
    insta::assert_snapshot!(render_recording(Opencode, "resumed"), @"
    Resumed answer.
    ---
    message: Resumed answer.
    session: ses_1
    spent by a model: 5000 in (4000 cached, 0 written), 55 out, 1510 µ$
    ended well
    ");
    insta::assert_snapshot!(render_recording(Opencode, "resumed_unknown"), @"

    ---
    message: 
    error: its session no longer exists: exit code 1, Error: Session not found (SessionGone)
    ");
}

#[test]
fn a_reviewer_reports() {
    insta::assert_snapshot!(render_recording(Opencode, "reports"), @"
    Reporting.
    [signoff_report_finding]
    Reported one finding.
    ---
    message: Reported one finding.
    session: ses_1
    spent by a model: 4100 in (300 cached, 0 written), 50 out, 3930 µ$
    reached the report server: true
    ended well
    ");
}

#[test]
fn a_missing_report_server_is_not_reported() {
    insta::assert_snapshot!(render_recording(Opencode, "reports_unreachable"), @"
    Reporting.

    [no MCP tool report_finding was offered]
    ---
    message: Reporting.

    [no MCP tool report_finding was offered]
    session: ses_1
    spent by a model: 2000 in (100 cached, 0 written), 20 out, 1950 µ$
    ended well
    ");
}

#[test]
fn a_reviewer_that_tries_to_write() {
    insta::assert_snapshot!(render_recording(Opencode, "reviewer_writes"), @"
    [write] (not allowed)
    Writing.
    [bash] (not allowed)
    Touching.
    [bash] (not allowed)
    Pushing.
    [write] (not allowed)
    Hook.
    Ended after trying.
    ---
    message: Ended after trying.
    session: ses_1
    spent by a model: 50 in (0 cached, 0 written), 5 out, 60 µ$
    denied: write 
    denied: bash 
    denied: bash 
    denied: write 
    ended well
    ");
}

#[test]
fn refusals_of_the_provider() {
    insta::assert_snapshot!(render_recording(Opencode, "400"), @"
    (error: bad request: wrong model)
    ---
    message: 
    session: ses_1
    error: it ended with an error: bad request: wrong model (Other)
    ");
    insta::assert_snapshot!(render_recording(Opencode, "401"), @"
    (error: invalid api key)
    ---
    message: 
    session: ses_1
    error: not logged in: invalid api key (NotLoggedIn)
    ");
    insta::assert_snapshot!(render_recording(Opencode, "404"), @"
    (error: model not found: nope)
    ---
    message: 
    session: ses_1
    error: the model cannot be used: model not found: nope (ModelUnavailable)
    ");
    insta::assert_snapshot!(render_recording(Opencode, "429"), @"
    (error: Rate limit reached. Please retry in 4s.)
    ---
    message: 
    session: ses_1
    error: rate limited: Rate limit reached. Please retry in 4s. (RateLimited { seconds: Some(4) })
    ");
    insta::assert_snapshot!(render_recording(Opencode, "500"), @"
    (error: scripted 500)
    ---
    message: 
    session: ses_1
    error: its provider is overloaded: scripted 500 (Overloaded)
    ");
}

#[test]
fn interrupted_responses_are_errors() {
    insta::assert_snapshot!(render_recording(Opencode, "cut"), @"
    (error: Connection reset by server)
    ---
    message: 
    session: ses_1
    error: the provider's response was incomplete: Connection reset by server (InvalidResponse)
    ");
    // The same fault, detected a moment earlier.
    let closed = r#"{"type":"error","timestamp":1,"sessionID":"ses_1","error":{"name":"APIError","data":{"message":"Cannot connect to API: The socket connection was closed unexpectedly.","isRetryable":true}}}"#;
    insta::assert_snapshot!(render_lines(Opencode, &[closed]), @"
    (error: Cannot connect to API: The socket connection was closed unexpectedly.)
    ---
    message: 
    session: ses_1
    error: the provider's response was incomplete: Cannot connect to API: The socket connection was closed unexpectedly. (InvalidResponse)
    ");
    insta::assert_snapshot!(render_recording(Opencode, "malformed"), @r#"
    (error: JSON parsing failed: Text: {"this is": not JSON.)
    ---
    message: 
    session: ses_1
    error: the provider's response was incomplete: JSON parsing failed: Text: {"this is": not JSON. (InvalidResponse)
    "#);
}

#[test]
fn startup_errors_are_reported() {
    insta::assert_snapshot!(render_recording(Opencode, "wrong_model"), @"
    (error: Unexpected server error. Check server logs for details. (before its first step: `opencode models` lists the available models))
    ---
    message: 
    session: ses_1
    error: it ended with an error: Unexpected server error. Check server logs for details. (before its first step: `opencode models` lists the available models) (Other)
    ");
    insta::assert_snapshot!(render_recording(Opencode, "read_only_home"), @"

    ---
    message: 
    error: it ended without a result: exit code 1, Error: Unexpected error Unknown: FileSystem.open (/work/home/.local/share/opencode/log/opencode.log) (NoResult)
    ");
}

#[test]
fn success_requires_a_closing_line() {
    replay::check_success_requires_a_closing_line(Opencode, |line| line.contains(r#""reason":"stop""#));
}

#[test]
fn any_output_is_parsed() {
    replay::check_any_output_is_parsed(Opencode);
}

/// Edited by hand: the cost and usage fields are malformed.
#[test]
fn a_step_with_malformed_usage_counts() {
    let tools = String::from_utf8(Recording::read(Opencode, "tools").stdout).unwrap();
    let (before, last) = tools.trim_end().rsplit_once('\n').unwrap();
    let known = parse_recording(Opencode, &Recording::from_stdout(&tools));
    for (from, to) in [(r#""input":"#, r#""input":-"#), (r#""cost":"#, r#""cost":null,"price":"#)] {
        let odd = last.replacen(from, to, 1);
        assert_ne!(odd, last);
        let result = parse_recording(Opencode, &Recording::from_stdout(&format!("{before}\n{odd}\n")));
        assert_eq!(result.summary.error, None);
        assert_eq!(result.message, known.message);
        assert_eq!(result.summary.spent[0].tokens.output, known.summary.spent[0].tokens.output);
    }
}
