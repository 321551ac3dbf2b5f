//! Agent Client Protocol: replays conversations with opencode 1.18.33 and gemini-cli 0.61.0. The agent's messages come
//! from `testdata/agents/acp/NAME.conversation`.
//!
//! The output of `__acp` is stored beside each conversation as a recording, and the adapter parses it like any other.
//! After an intended change, `UPDATE_RECORDINGS=1` rewrites these recordings.

use signoff_core::settings::AgentKind::{self, Acp};
use signoff_engine::agent::{AccessMode, AgentFile, SandboxBackend};
use signoff_engine::builtin::acp::AcpArgs;

use crate::agents::conversation::replay_conversation;
use crate::agents::replay;
use crate::agents::test_spec::TestSpec;

fn acp_spec(command: &[&str]) -> TestSpec {
    let mut spec = TestSpec::writer(Acp);
    spec.agent.command = command.iter().map(|word| (*word).to_owned()).collect();
    spec
}

fn writer() -> AcpArgs {
    AcpArgs::default()
}

fn reader() -> AcpArgs {
    let report = Some(("http://127.0.0.1:4321/mcp".to_owned(), "t0ken".to_owned()));
    AcpArgs { read_only: true, report, ..AcpArgs::default() }
}

#[test]
fn any_acp_agent_runs_behind_the_acp_subcommand() {
    let mut spec = TestSpec { model: Some("large"), resumes: Some("s1"), ..acp_spec(&["./agent", "--acp"]) };
    spec.agent.args = vec!["--fast".to_owned()];
    insta::assert_snapshot!(spec.shown(), @"
    /usr/bin/signoff
      __acp
      --resume
      s1
      --model
      large
      --
      /work/repo/./agent
      --acp
      --fast
    ");
}

#[test]
fn a_known_agent_gets_its_usual_configuration() {
    let mut spec = acp_spec(&["opencode", "acp"]);
    let writer = spec.line();
    spec = TestSpec { access: AccessMode::Read, reports: true, sandbox: SandboxBackend::Landlock, ..spec };
    insta::assert_snapshot!(spec.shown(), @r#"
    /usr/bin/signoff
      __acp
      --read
      --report
      http://127.0.0.1:4321/mcp
      SIGNOFF_MCP_TOKEN
      --
      opencode
      acp
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
      "snapshot": false
    }
    "#);
    assert!(writer.environment.iter().all(|(name, _)| name != "OPENCODE_PERMISSION"));
}

#[test]
fn gemini_gets_its_policy_and_model_as_arguments() {
    let spec = TestSpec { model: Some("gemini-2.5-pro"), ..acp_spec(&["gemini", "--acp"]) };
    let writer = spec.line().arguments;
    let reader = TestSpec { access: AccessMode::Read, reports: true, ..spec }.line();
    let all_denied = |file: &AgentFile| matches!(file, AgentFile::Text { text, .. } if text.contains("toolName = \"*\"\ndecision = \"deny\""));
    assert!(!reader.files.iter().any(all_denied), "our own tool would be denied with it");
    assert!(TestSpec::reviewer(AgentKind::Gemini).line().files.iter().any(all_denied));
    let reader = reader.arguments;
    insta::assert_snapshot!(writer.join(" "), @"__acp -- gemini --acp --skip-trust -e none -m gemini-2.5-pro");
    insta::assert_snapshot!(reader.join(" "), @"__acp --read --report http://127.0.0.1:4321/mcp SIGNOFF_MCP_TOKEN -- gemini --acp --skip-trust -e none --policy /work/attempt/home/.gemini/signoff.toml -m gemini-2.5-pro");
}

#[test]
fn the_arguments_of_the_acp_subcommand_round_trip() {
    let words = ["--read", "--report", "http://h/mcp", "T", "--resume", "s", "--model", "m", "--", "a", "-x"];
    let read = |words: &[&str]| {
        let token = |name: &str| (name == "T").then(|| "t0ken".to_owned());
        AcpArgs::parse(words.iter().map(|word| (*word).to_owned()), &token).map_err(|error| error.to_string())
    };
    insta::assert_debug_snapshot!(read(&words), @r#"
    Ok(
        AcpArgs {
            read_only: true,
            report: Some(
                (
                    "http://h/mcp",
                    "t0ken",
                ),
            ),
            resume_session: Some(
                "s",
            ),
            model: Some(
                "m",
            ),
            program: "a",
            arguments: [
                "-x",
            ],
        },
    )
    "#);
    let bad: [&[&str]; 4] = [&["a"], &["--read"], &["--report", "u", "U", "--", "a"], &["--"]];
    insta::assert_debug_snapshot!(bad.map(read), @r#"
    [
        Err(
            "a is not a flag of `__acp`",
        ),
        Err(
            "`__acp` needs `-- COMMAND`",
        ),
        Err(
            "the variable U with the token is not set",
        ),
        Err(
            "`__acp` needs `-- COMMAND`",
        ),
    ]
    "#);
}

#[test]
fn a_writer_of_opencode() {
    insta::assert_snapshot!(replay_conversation("opencode_tools", writer()), @r#"
    session/new {"cwd":"/work/repo","mcpServers":[]}
    ---
    I write a file.
    [edit] write made.txt
    Now the shell.
    [execute] echo shell-was-here > shell.txt; ls
    All done: made.txt and shell.txt.
    ---
    message: All done: made.txt and shell.txt.
    session: ses_1
    spent by a model: 1300 in (600 cached, 0 written), 80 out, 2760 µ$
    ended well
    "#);
}

#[test]
fn a_writer_of_gemini_is_allowed_each_thing_once() {
    insta::assert_snapshot!(replay_conversation("gemini_tools", writer()), @r#"
    session/new {"cwd":"/work/repo","mcpServers":[]}
    answers "proceed_once"
    answers "proceed_once"
    ---
    I write a file.
    [edit] Writing to made.txt
    Now the shell.
    [execute] echo shell-was-here > shell.txt; ls
    All done: made.txt and shell.txt.
    ---
    message: All done: made.txt and shell.txt.
    session: session-1
    spent by gemini-2.5-pro: 3600 in (0 cached, 0 written), 210 out
    ended well
    "#);
}

#[test]
fn reviewers_report() {
    insta::assert_snapshot!(replay_conversation("opencode_reports", reader()), @r#"
    session/new {"cwd":"/work/repo","mcpServers":[{"type":"http","name":"signoff","url":"http://127.0.0.1:4321/mcp","headers":[{"name":"Authorization","value":"Bearer t0ken"}]}]}
    ---
    Reporting.
    [tool] signoff_report_finding
    Reported one finding.
    ---
    message: Reported one finding.
    session: ses_1
    spent by a model: 2100 in (200 cached, 0 written), 30 out, 3930 µ$
    reached the report server: true
    ended well
    "#);
    insta::assert_snapshot!(replay_conversation("gemini_reports", reader()), @r#"
    session/new {"cwd":"/work/repo","mcpServers":[{"type":"http","name":"signoff","url":"http://127.0.0.1:4321/mcp","headers":[{"name":"Authorization","value":"Bearer t0ken"}]}]}
    answers "proceed_once"
    ---
    Reporting.
    [tool] report_finding (signoff MCP Server)
    Reported one finding.
    ---
    message: Reported one finding.
    session: session-1
    spent by gemini-2.5-pro: 4100 in (0 cached, 0 written), 50 out
    reached the report server: true
    ended well
    "#);
}

#[test]
fn reviewers_that_try_to_write() {
    insta::assert_snapshot!(replay_conversation("opencode_reviewer_writes", reader()), @r#"
    session/new {"cwd":"/work/repo","mcpServers":[{"type":"http","name":"signoff","url":"http://127.0.0.1:4321/mcp","headers":[{"name":"Authorization","value":"Bearer t0ken"}]}]}
    ---
    Writing.
    [write] (not allowed)
    Touching.
    [bash] (not allowed)
    Pushing.
    [bash] (not allowed)
    Hook.
    [write] (not allowed)
    Ended after trying.
    ---
    message: Ended after trying.
    session: ses_1
    spent by a model: 10 in (0 cached, 0 written), 1 out, 60 µ$
    denied: write 
    denied: bash 
    denied: bash 
    denied: write 
    ended well
    "#);
    insta::assert_snapshot!(replay_conversation("gemini_reviewer_writes", reader()), @r#"
    session/new {"cwd":"/work/repo","mcpServers":[{"type":"http","name":"signoff","url":"http://127.0.0.1:4321/mcp","headers":[{"name":"Authorization","value":"Bearer t0ken"}]}]}
    answers "cancel"
    answers "cancel"
    ---
    Writing.
    [edit] Writing to evil.txt
    Touching.
    [execute] touch evil-touch.txt (not allowed)
    Pushing.
    [execute] git push origin HEAD (not allowed)
    Hook.
    [edit] Path not in workspace: Attempted path "/work/repo/.git/hooks/pre-commit" resolves outside the allowed workspace directories: /work/repo or the project temp dire… (not allowed)
    Ended after trying.
    ---
    message: Ended after trying.
    session: session-1
    spent by gemini-2.5-pro: 50 in (0 cached, 0 written), 5 out
    denied: execute touch evil-touch.txt
    denied: execute git push origin HEAD
    denied: edit Path not in workspace: Attempted path "/work/repo/.git/hooks/pre-commit" resolves outside the allowed workspace directories: /work/repo or the project temp dire…
    ended well
    "#);
}

#[test]
fn replayed_messages_of_a_resumed_session_are_ignored() {
    let args = AcpArgs { resume_session: Some("ses_1".to_owned()), ..writer() };
    insta::assert_snapshot!(replay_conversation("opencode_resumed", args), @r#"
    session/load {"mcpServers":[],"cwd":"/work/repo","sessionId":"ses_1"}
    ---
    Resumed answer.
    ---
    message: Resumed answer.
    session: ses_1
    spent by a model: 5000 in (4000 cached, 0 written), 55 out
    ended well
    "#);
}

#[test]
fn a_session_that_cannot_be_found() {
    let args = AcpArgs { resume_session: Some("session-1".to_owned()), ..writer() };
    insta::assert_snapshot!(replay_conversation("gemini_not_resumed", args), @r#"
    session/load {"mcpServers":[],"cwd":"/work/repo","sessionId":"session-1"}
    ---
    (error: Invalid session identifier "session-1".
      Searched for sessions in /work/home/.gemini/tmp/repo/chats.
      Use --list-sessions to see available sessions, then use --resume {number}, --resume {uuid}, or --resume latest.)
    ---
    message: 
    error: it ended with an error: Invalid session identifier "session-1". (Other)
    "#);
}

/// The conversations are written by hand. They mimic `cat`, `git --version` and programs that never answer.
#[test]
fn a_program_without_the_protocol_is_reported_with_its_first_output() {
    insta::assert_snapshot!(replay_conversation("unspoken_echo", writer()), @"
    ---

    ---
    message: 
    error: it does not speak the Agent Client Protocol: it echoes its input (Protocol)
    ");
    insta::assert_snapshot!(replay_conversation("unspoken_words", writer()), @"
    ---

    ---
    message: 
    error: it does not speak the Agent Client Protocol: git version 2.53.0 (Protocol)
    ");
    insta::assert_snapshot!(replay_conversation("unspoken_ended", writer()), @"
    ---

    ---
    message: 
    error: it does not speak the Agent Client Protocol: it printed nothing (Protocol)
    ");
    insta::assert_snapshot!(replay_conversation("unspoken_failed", writer()), @"
    ---

    ---
    message: 
    error: it ended without a result: exit code 127, env: 'node': No such file or directory (NoResult)
    ");
    insta::assert_snapshot!(replay_conversation("unspoken_silent", writer()), @"
    ---

    ---
    message: 
    error: it does not speak the Agent Client Protocol: it did not complete the handshake within 0s (Protocol)
    ");
}

#[test]
fn refusals_of_the_provider() {
    insta::assert_snapshot!(replay_conversation("opencode_400", writer()), @r#"
    session/new {"cwd":"/work/repo","mcpServers":[]}
    ---
    (error: Internal error: bad request: wrong model)
    ---
    message: 
    session: ses_1
    error: it ended with an error: Internal error: bad request: wrong model (Other)
    "#);
    insta::assert_snapshot!(replay_conversation("opencode_401", writer()), @r#"
    session/new {"cwd":"/work/repo","mcpServers":[]}
    ---
    (error: Internal error: invalid api key)
    ---
    message: 
    session: ses_1
    error: not logged in: Internal error: invalid api key (NotLoggedIn)
    "#);
    insta::assert_snapshot!(replay_conversation("opencode_401_bare", writer()), @r#"
    session/new {"cwd":"/work/repo","mcpServers":[]}
    ---
    (error: Internal error: scripted 401)
    ---
    message: 
    session: ses_1
    error: not logged in: Internal error: scripted 401 (NotLoggedIn)
    "#);
    insta::assert_snapshot!(replay_conversation("gemini_401", writer()), @r#"
    session/new {"cwd":"/work/repo","mcpServers":[]}
    ---
    (error: invalid api key)
    ---
    message: 
    session: session-1
    error: not logged in: invalid api key (NotLoggedIn)
    "#);
    insta::assert_snapshot!(replay_conversation("gemini_429", writer()), @r#"
    session/new {"cwd":"/work/repo","mcpServers":[]}
    ---
    (error: You exceeded your current quota. Please retry in 3600s.
    Suggested retry after 3600s.)
    ---
    message: 
    session: session-1
    error: rate limited: You exceeded your current quota. Please retry in 3600s. (RateLimited { seconds: Some(3600) })
    "#);
}

#[test]
fn a_cancelled_session_did_not_succeed() {
    insta::assert_snapshot!(replay_conversation("opencode_cancelled", writer()), @r#"
    session/new {"cwd":"/work/repo","mcpServers":[]}
    session/cancel {"sessionId":"ses_1"}
    ---
    This hangs.
    ---
    message: 
    session: ses_1
    error: it ended with an error: it stopped: cancelled (Other)
    "#);
}

#[test]
fn an_agent_that_goes_away() {
    insta::assert_snapshot!(replay_conversation("gemini_terminated", writer()), @r#"
    session/new {"cwd":"/work/repo","mcpServers":[]}
    ---
    This
    ---
    message: 
    session: session-1
    error: it ended without a result: exit code 0 (NoResult)
    "#);
}

#[test]
fn success_requires_a_closing_line() {
    replay::check_success_requires_a_closing_line(Acp, |line| line.contains(r#""end_turn""#));
}

#[test]
fn any_output_is_parsed() {
    replay::check_any_output_is_parsed(Acp);
}
