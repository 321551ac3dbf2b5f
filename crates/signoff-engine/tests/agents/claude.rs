//! Claude Code: recordings of 2.1.325, and of 2.0.0 where named.

use signoff_core::agent_output::AgentErrorKind;
use signoff_core::settings::AgentKind;
use signoff_engine::agent::{AccessMode, SandboxBackend};

use crate::agents::replay::{self, Recording, parse_recording, render_lines, render_recording};
use crate::agents::test_spec::TestSpec;

const KIND: AgentKind = AgentKind::Claude;

#[test]
fn writes() {
    insta::assert_snapshot!(render_recording(KIND, "work"), @"
    I will write the file.
    [Write] /work/repo/out.txt
    Now the shell.
    [Bash] touch shell-ran.txt; ls
    Done: wrote out.txt.
    ---
    message: Done: wrote out.txt.
    session: ec11a360-3ca0-41c2-bf4c-94f56fc774fb
    spent by claude-sonnet-4-5: 3300 in (0 cached, 0 written), 180 out, 12600 µ$
    reached the report server: false
    ended well
    ");
}

#[test]
fn reports() {
    insta::assert_snapshot!(render_recording(KIND, "report"), @"
    Reporting.
    [mcp__signoff__submit_review]
    Review submitted.
    ---
    message: Review submitted.
    session: e5870175-1e7a-4c19-a667-5588e3e13f47
    spent by claude-sonnet-4-5: 2200 in (0 cached, 0 written), 120 out, 8400 µ$
    reached the report server: true
    ended well
    ");
}

#[test]
fn usage_of_subagents_is_counted() {
    insta::assert_snapshot!(render_recording(KIND, "subagents"), @"
    delegating
    [Agent] sub
    delegated
    delegated
    ---
    message: delegateddelegated
    session: 31c54b13-62d5-48a0-9523-85a0689aae87
    spent by claude-sonnet-4-5: 4000 in (0 cached, 0 written), 200 out, 15000 µ$
    reached the report server: false
    ended well
    ");
    insta::assert_snapshot!(render_recording(KIND, "subagents-in-turn"), @"
    delegating
    [Agent] sub
    delegated
    ---
    message: delegated
    session: bd072e27-cbda-46d3-99f7-3ce2e3061f30
    spent by claude-sonnet-4-5: 3000 in (0 cached, 0 written), 150 out, 11250 µ$
    reached the report server: false
    ended well
    ");
}

#[test]
fn cached_tokens_are_counted() {
    insta::assert_snapshot!(render_recording(KIND, "cached"), @"
    one
    [Bash] echo one
    two
    ---
    message: two
    session: a1276d6e-045f-490f-baea-cee3b6e5859f
    spent by claude-sonnet-4-5: 3610 in (3000 cached, 310 written), 110 out, 4613 µ$
    reached the report server: false
    ended well
    ");
}

#[test]
fn a_resumed_session_counts_from_zero() {
    insta::assert_snapshot!(render_recording(KIND, "resumed"), @"
    Second answer.
    ---
    message: Second answer.
    session: 11111111-2222-4333-8444-555555555555
    spent by claude-sonnet-4-5: 2000 in (0 cached, 0 written), 80 out, 7200 µ$
    reached the report server: false
    ended well
    ");
}

#[test]
fn an_older_version_is_understood() {
    insta::assert_snapshot!(render_recording(KIND, "version-2.0.0"), @"
    I will write the file.
    [Write] /work/repo/out.txt
    Now the shell.
    [Bash] touch shell-ran.txt; ls
    Done: wrote out.txt.
    ---
    message: Done: wrote out.txt.
    session: 14d97039-493e-4097-ae78-df363e3e8422
    spent by claude-sonnet-4-5: 3300 in (0 cached, 0 written), 180 out, 12688 µ$
    reached the report server: false
    ended well
    ");
}

#[test]
fn denied_tools_of_a_reviewer_are_reported() {
    insta::assert_snapshot!(render_recording(KIND, "denied"), @"
    t
    [Write] /work/repo/evil.txt
    [Write] /work/repo/evil.txt (not allowed)
    t
    [Bash] touch evil-touch.txt
    [Bash] touch evil-touch.txt (not allowed)
    t
    [Bash] git push origin HEAD:refs/heads/evil
    [Bash] git push origin HEAD:refs/heads/evil (not allowed)
    t
    [Bash] echo evil > .git/hooks/pre-commit
    [Bash] echo evil > .git/hooks/pre-commit (not allowed)
    t
    [Write] /work/repo/.git/hooks/pre-commit
    [Write] /work/repo/.git/hooks/pre-commit (not allowed)
    t
    [Bash] git log --oneline -1; git diff HEAD
    t
    [Bash] ls
    t
    [Bash] git -c core.fsmonitor='touch evil-fs' status
    [Bash] git -c core.fsmonitor='touch evil-fs' status (not allowed)
    t
    [Bash] cargo test
    [Bash] cargo test (not allowed)
    t
    [Bash] git diff --output=evil-diff HEAD
    [Bash] git diff --output=evil-diff HEAD (not allowed)
    t
    [Bash] cat /etc/passwd | head -1
    [Bash] cat /etc/passwd | head -1 (not allowed)
    t
    [Read] /etc/hostname
    [Read] /etc/hostname (not allowed)
    t
    [Agent] sub
    All attempts done.
    [Write] /work/repo/out.txt
    [Write] /work/repo/out.txt (not allowed)
    [Bash] touch shell-ran.txt; ls
    [Bash] touch shell-ran.txt; ls (not allowed)
    All attempts done.
    ---
    message: All attempts done.

    All attempts done.
    session: bebc114e-795d-4f87-a974-82f8c3c04f7c
    spent by claude-sonnet-4-5: 18300 in (0 cached, 0 written), 930 out, 68850 µ$
    denied: Write /work/repo/evil.txt
    denied: Bash touch evil-touch.txt
    denied: Bash git push origin HEAD:refs/heads/evil
    denied: Bash echo evil > .git/hooks/pre-commit
    denied: Write /work/repo/.git/hooks/pre-commit
    denied: Bash git -c core.fsmonitor='touch evil-fs' status
    denied: Bash cargo test
    denied: Bash git diff --output=evil-diff HEAD
    denied: Bash cat /etc/passwd | head -1
    denied: Read /etc/hostname
    denied: Write /work/repo/out.txt
    denied: Bash touch shell-ran.txt; ls
    reached the report server: true
    ended well
    ");
    insta::assert_snapshot!(render_recording(KIND, "no-such-tool"), @"
    writing
    [Write] /work/repo/evil.txt
    [Write] /work/repo/evil.txt (not allowed)
    touching
    [Bash] touch evil-touch.txt
    [Bash] touch evil-touch.txt (not allowed)
    editing
    [Edit] /work/repo/a.txt
    [Edit] /work/repo/a.txt (not allowed)
    All attempts done.
    ---
    message: All attempts done.
    session: b5c5ecd3-6769-4aad-b14c-a732b386ee73
    spent by claude-sonnet-4-5: 4000 in (0 cached, 0 written), 200 out, 15000 µ$
    denied: Write /work/repo/evil.txt
    denied: Bash touch evil-touch.txt
    denied: Edit /work/repo/a.txt
    reached the report server: true
    ended well
    ");
}

#[test]
fn a_missing_report_server_is_reported() {
    insta::assert_snapshot!(render_recording(KIND, "reports-down"), @"
    Reporting.

    [no MCP tool submit_review was offered]
    ---
    message: Reporting.

    [no MCP tool submit_review was offered]
    session: 834a7979-e324-40b2-87eb-f9616d33f55c
    spent by claude-sonnet-4-5: 1000 in (0 cached, 0 written), 50 out, 3750 µ$
    reached the report server: false
    ended well
    ");
    insta::assert_snapshot!(render_recording(KIND, "reports-pending"), @"
    Reporting.

    [no MCP tool submit_review was offered]
    ---
    message: Reporting.

    [no MCP tool submit_review was offered]
    session: 4db9d15a-2f5b-45e0-ba66-448385b7d28f
    spent by claude-sonnet-4-5: 1000 in (0 cached, 0 written), 50 out, 3750 µ$
    reached the report server: false
    ended well
    ");
    insta::assert_snapshot!(render_recording(KIND, "reports-misconfigured"), @"

    ---
    message: 
    error: it could not reach the server for reports: exit code 1, Error: Invalid MCP configuration: MCP config file not found: /work/nope.json (ReportServer)
    ");
}

#[test]
fn a_rate_limit_is_reported_with_its_delay() {
    insta::assert_snapshot!(render_recording(KIND, "status-429"), @"
    (waits 3 s: rate limit, status 429)
    (error: API Error: Request rejected (429) · scripted 429)
    ---
    message: 
    session: 5f035f5c-9119-484f-a297-504078774025
    reached the report server: false
    error: rate limited: API Error: Request rejected (429) · scripted 429 (RateLimited { seconds: Some(3) })
    ");
    insta::assert_snapshot!(render_recording(KIND, "status-429-long"), @"
    (error: API Error: Request rejected (429) · scripted 429)
    ---
    message: 
    session: 30647002-d3ad-45a2-9fbc-4dd1e65b23a7
    reached the report server: false
    error: rate limited: API Error: Request rejected (429) · scripted 429 (RateLimited { seconds: None })
    ");
    insta::assert_snapshot!(render_recording(KIND, "subscription-limit"), @"
    (waits: five hour limit of the subscription)
    (error: You've hit your 5-hour limit · resets 6:20am (UTC))
    ---
    message: 
    session: 1e73786c-38e1-4fa8-9552-341047a490b8
    reached the report server: false
    error: rate limited: You've hit your 5-hour limit · resets 6:20am (UTC) (RateLimited { seconds: Some(3600) })
    ");
}

#[test]
fn a_rate_limit_warning_is_no_error() {
    insta::assert_snapshot!(render_recording(KIND, "subscription-warning"), @"
    ok
    ---
    message: ok
    session: fba8a688-9335-48b5-a8f9-4352bf17b648
    spent by claude-sonnet-4-5: 1000 in (0 cached, 0 written), 50 out, 3750 µ$
    reached the report server: false
    ended well
    ");
}

#[test]
fn an_overloaded_provider_is_reported() {
    insta::assert_snapshot!(render_recording(KIND, "status-500"), @"
    (waits 1 s: server error, status 500)
    (error: API Error: 500 scripted 500. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:18701).)
    ---
    message: 
    session: 06160e1a-bfc4-4cfa-8baf-8a7661fa7b30
    reached the report server: false
    error: its provider is overloaded: API Error: 500 scripted 500. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:18701). (Overloaded)
    ");
    insta::assert_snapshot!(render_recording(KIND, "status-529"), @"
    (waits 1 s: overloaded, status 529)
    (error: API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:18701).)
    ---
    message: 
    session: 923a4758-efdd-4203-aed8-cf9305bf6758
    reached the report server: false
    error: its provider is overloaded: API Error: 529 Overloaded. This is a server-side issue, usually temporary — try again in a moment. If it persists, check your inference gateway (127.0.0.1:18701). (Overloaded)
    ");
}

#[test]
fn access_errors_are_reported() {
    insta::assert_snapshot!(render_recording(KIND, "status-401"), @"
    (waits 1 s: authentication failed, status 401)
    (error: Invalid API key · Fix external API key)
    ---
    message: 
    session: 8bbbbc1f-88bb-4e47-9464-e98ddbdd1175
    reached the report server: false
    error: not logged in: Invalid API key · Fix external API key (NotLoggedIn)
    ");
    insta::assert_snapshot!(render_recording(KIND, "status-403"), @"
    (error: Failed to authenticate. API Error: 403 forbidden)
    ---
    message: 
    session: 0c5f599b-8bf0-4fcd-8c80-0e41d0a64f50
    reached the report server: false
    error: not logged in: Failed to authenticate. API Error: 403 forbidden (NotLoggedIn)
    ");
    insta::assert_snapshot!(render_recording(KIND, "no-login"), @"
    (error: Not logged in · Please run /login)
    ---
    message: 
    session: 72091523-5d32-45ca-be32-8d8523f989ff
    reached the report server: false
    error: not logged in: Not logged in · Please run /login (NotLoggedIn)
    ");
    insta::assert_snapshot!(render_recording(KIND, "no-credit"), @"
    (error: Credit balance is too low)
    ---
    message: 
    session: c385b7b2-3d6c-4798-be29-9b7182800fe8
    reached the report server: false
    error: the account has no credit: Credit balance is too low (OutOfCredit)
    ");
    insta::assert_snapshot!(render_recording(KIND, "status-404"), @"
    (error: There's an issue with the selected model (claude-sonnet-4-5). It may not exist or you may not have access to it. Run --model to pick a different model.)
    ---
    message: 
    session: 91d9976b-1f82-4b6a-aa14-9f5b7b07996f
    reached the report server: false
    error: the model cannot be used: There's an issue with the selected model (claude-sonnet-4-5). It may not exist or you may not have access to it. Run --model to pick a different model. (ModelUnavailable)
    ");
    insta::assert_snapshot!(render_recording(KIND, "status-400"), @"
    (error: API Error: 400 model: scripted-9 is not supported)
    ---
    message: 
    session: c82e947f-cf88-48ed-8771-c5971e43cf6b
    reached the report server: false
    error: the model cannot be used: API Error: 400 model: scripted-9 is not supported (ModelUnavailable)
    ");
}

#[test]
fn the_prompt_is_too_long() {
    insta::assert_snapshot!(render_recording(KIND, "too-long"), @"
    (error: Prompt is too long · the request is ~250000 tokens (limit 200000) but this conversation is only ~2606 tokens — the rest is system prompt, tool definitions, and attachment content. A single-exchange conversation cannot be compacted; reduce attached files/tools or start with less context.)
    ---
    message: 
    session: 7bdd08ac-b8b7-429e-abbe-4d7ed519a93b
    reached the report server: false
    error: the prompt is too long for the model: Prompt is too long · the request is ~250000 tokens (limit 200000) but this conversation is only ~2606 tokens — the rest is system prompt, tool definitions, and attachment content. A single-exchange conversation cannot be compacted; reduce attached files/tools or start with less context. (PromptTooLong)
    ");
    insta::assert_snapshot!(render_recording(KIND, "prompt-too-big"), @"

    ---
    message: 
    error: the prompt is too long for the model: exit code 1, Error: piped stdin input exceeds 10MB. Pass large content as a file path in your prompt instead. (PromptTooLong)
    ");
}

#[test]
fn an_interrupted_response_is_an_error() {
    insta::assert_snapshot!(render_recording(KIND, "cut"), @"
    (waits 1 s: unknown)
    (error: API Error: Connection to the API was lost (ECONNRESET). This is usually temporary — try again.)
    ---
    message: 
    session: 55e1ddfa-03c4-49eb-9e97-19422fcddfbd
    spent by claude-sonnet-4-5: 1000 in (0 cached, 0 written), 1 out, 3015 µ$
    reached the report server: false
    error: the provider's response was incomplete: API Error: Connection to the API was lost (ECONNRESET). This is usually temporary — try again. (InvalidResponse)
    ");
    insta::assert_snapshot!(render_recording(KIND, "malformed"), @"
    (error: API Error: JSON Parse error: Property name must be a string literal)
    ---
    message: 
    session: 550832fe-41e1-4ceb-b4d4-cef1ba3552b7
    reached the report server: false
    error: the provider's response was incomplete: API Error: JSON Parse error: Property name must be a string literal (InvalidResponse)
    ");
    insta::assert_snapshot!(render_recording(KIND, "refused-connection"), @"
    (waits 1 s: unknown)
    (error: API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED))
    ---
    message: 
    session: af32014d-3ffa-4cd7-8f51-39d6f5f61342
    reached the report server: false
    error: its provider could not be reached: API Error: Connection refused — a firewall or proxy may be blocking it (ECONNREFUSED) (InvalidResponse)
    ");
}

#[test]
fn the_limits_of_the_agent_itself_are_reported() {
    insta::assert_snapshot!(render_recording(KIND, "max-turns"), @"
    again
    [Bash] echo again
    again
    [Bash] echo again
    ---
    message: 
    session: 977aa349-2ea0-4b53-a227-e032b2e3b3b8
    spent by claude-sonnet-4-5: 2000 in (0 cached, 0 written), 100 out, 7500 µ$
    reached the report server: false
    error: it reached its own turn or cost limit: Reached maximum number of turns (2) (OwnLimit)
    ");
    insta::assert_snapshot!(render_recording(KIND, "max-budget"), @"
    again
    [Bash] echo again
    again
    [Bash] echo again
    again
    [Bash] echo again
    ---
    message: 
    session: eb1b5b6d-01d7-43e5-8714-6ee903ada9f4
    spent by claude-sonnet-4-5: 3000 in (0 cached, 0 written), 150 out, 11250 µ$
    reached the report server: false
    error: it reached its own turn or cost limit: Reached maximum budget ($0.01) (OwnLimit)
    ");
}

#[test]
fn a_killed_agent_did_not_succeed() {
    insta::assert_snapshot!(render_recording(KIND, "interrupted"), @"
    partial text
    ---
    message: 
    session: eed71b87-0ba9-4524-a911-d49f4d24835b
    reached the report server: false
    error: it ended with an error: aborted_streaming (Other)
    ");
    insta::assert_snapshot!(render_recording(KIND, "terminated"), @"
    sleeping
    [Bash] while :; do sleep 43.21; done
    ---
    message: 
    session: 6055c64c-0fcb-4599-be55-018418759402
    spent by claude-sonnet-4-5: 1000 in (0 cached, 0 written), 1 out
    reached the report server: false
    error: it ended without a result: exit code 143 (NoResult)
    ");
}

#[test]
fn startup_errors_are_reported() {
    insta::assert_snapshot!(render_recording(KIND, "no-session"), @"

    ---
    message: 
    session: 99999999-2222-4333-8444-555555555555
    error: its session no longer exists: No conversation found with session ID: 99999999-2222-4333-8444-555555555555 (SessionGone)
    ");
    insta::assert_snapshot!(render_recording(KIND, "too-old"), @"

    ---
    message: 
    error: it does not understand its command line: exit code 1, error: option '--permission-mode <mode>' argument 'dontAsk' is invalid. Allowed choices are acceptEdits, bypassPermissions, default, plan. (Version)
    ");
    insta::assert_snapshot!(render_recording(KIND, "root"), @"

    ---
    message: 
    error: it ended without a result: exit code 1, --dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons (NoResult)
    ");
}

/// A closing line counts even if its other fields are malformed.
#[test]
fn malformed_token_counts_do_not_hide_other_fields() {
    let odd = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done.","total_cost_usd":"much","usage":[],"model_usage_since_last_result":{"m":{"inputTokens":-1}},"permission_denials":7}"#;
    insta::assert_snapshot!(render_lines(KIND, &[odd]), @"

    ---
    message: Done.
    ended well
    ");
}

#[test]
fn output_after_the_result_needs_another_result() {
    let begins = r#"{"type":"system","subtype":"init","session_id":"s","mcp_servers":[]}"#;
    let ends = r#"{"type":"result","subtype":"success","is_error":false,"result":"Done."}"#;
    insta::assert_snapshot!(render_lines(KIND, &[begins, ends, begins]), @"

    ---
    message: 
    session: s
    reached the report server: false
    error: it ended without a result: exit code 0 (NoResult)
    ");
}

#[test]
fn older_versions_report_errors_as_text() {
    let end = |words: &str| {
        let line = format!(r#"{{"type":"result","subtype":"success","is_error":true,"result":"{words}"}}"#);
        render_lines(KIND, &[&line]).lines().last().unwrap_or_default().to_owned()
    };
    let words = [
        "Claude AI usage limit reached|1769692200",
        "API Error: 529 {\\\"type\\\":\\\"overloaded_error\\\"}",
        "API Error: 429 {}",
        "Invalid API key · Please run /login",
        "Prompt is too long",
    ];
    insta::assert_snapshot!(words.map(end).join("\n"), @r#"
    error: rate limited: Claude AI usage limit reached|1769692200 (RateLimited { seconds: Some(3600) })
    error: its provider is overloaded: API Error: 529 {"type":"overloaded_error"} (Overloaded)
    error: rate limited: API Error: 429 {} (RateLimited { seconds: None })
    error: not logged in: Invalid API key · Please run /login (NotLoggedIn)
    error: the prompt is too long for the model: Prompt is too long (PromptTooLong)
    "#);
}

#[test]
fn success_requires_a_closing_line() {
    replay::check_success_requires_a_closing_line(KIND, |line| line.contains("\"type\":\"result\""));
}

#[test]
fn any_output_is_parsed() {
    replay::check_any_output_is_parsed(KIND);
}

#[test]
fn a_writer_may_use_all_tools() {
    insta::assert_snapshot!(TestSpec::writer(KIND).shown(), @"
    claude
      -p
      --output-format
      stream-json
      --verbose
      --setting-sources
      user
      --strict-mcp-config
      --dangerously-skip-permissions
    CLAUDE_CONFIG_DIR=/work/attempt/home/claude
    CLAUDE_SECURESTORAGE_CONFIG_DIR=/home/ann/.claude
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
    CLAUDE_CODE_DISABLE_AUTO_MEMORY=1
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1
    CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK=1
    ENABLE_TOOL_SEARCH=false
    MCP_TIMEOUT=10000
    without CLAUDECODE
    without CLAUDE_CODE_ENTRYPOINT
    ");
}

#[test]
fn a_writer_that_reports_gets_the_report_server() {
    let planner = TestSpec { reports: true, model: Some("big"), ..TestSpec::writer(KIND) };
    insta::assert_snapshot!(planner.shown(), @r#"
    claude
      -p
      --output-format
      stream-json
      --verbose
      --setting-sources
      user
      --strict-mcp-config
      --dangerously-skip-permissions
      --mcp-config
      /work/attempt/home/mcp.json
      --allowedTools
      mcp__signoff
      --model
      big
    CLAUDE_CONFIG_DIR=/work/attempt/home/claude
    CLAUDE_SECURESTORAGE_CONFIG_DIR=/home/ann/.claude
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
    CLAUDE_CODE_DISABLE_AUTO_MEMORY=1
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1
    CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK=1
    ENABLE_TOOL_SEARCH=false
    MCP_TIMEOUT=10000
    without CLAUDECODE
    without CLAUDE_CODE_ENTRYPOINT
    /work/attempt/home/mcp.json:
    {"mcpServers":{"signoff":{"type":"http","url":"http://127.0.0.1:4321/mcp","headers":{"Authorization":"Bearer ${SIGNOFF_MCP_TOKEN}"}}}}
    "#);
}

#[test]
fn a_reviewer_is_read_only() {
    insta::assert_snapshot!(TestSpec::reviewer(KIND).shown(), @r#"
    claude
      -p
      --output-format
      stream-json
      --verbose
      --setting-sources
      user
      --strict-mcp-config
      --tools
      Read,Grep,Glob,Bash
      --permission-mode
      dontAsk
      --mcp-config
      /work/attempt/home/mcp.json
      --allowedTools
      mcp__signoff
    CLAUDE_CONFIG_DIR=/work/attempt/home/claude
    CLAUDE_SECURESTORAGE_CONFIG_DIR=/home/ann/.claude
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
    CLAUDE_CODE_DISABLE_AUTO_MEMORY=1
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1
    CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK=1
    ENABLE_TOOL_SEARCH=false
    MCP_TIMEOUT=10000
    without CLAUDECODE
    without CLAUDE_CODE_ENTRYPOINT
    /work/attempt/home/mcp.json:
    {"mcpServers":{"signoff":{"type":"http","url":"http://127.0.0.1:4321/mcp","headers":{"Authorization":"Bearer ${SIGNOFF_MCP_TOKEN}"}}}}
    "#);
}

#[test]
fn a_reviewer_that_answers_in_text_gets_no_report_server() {
    let reviewer = TestSpec { reports: false, ..TestSpec::reviewer(KIND) };
    assert!(!reviewer.shown().contains("SIGNOFF_MCP_TOKEN"), "{}", reviewer.shown());
}

#[test]
fn as_root_the_agent_is_marked_as_sandboxed() {
    let root = TestSpec { root: true, ..TestSpec::writer(KIND) };
    assert!(root.shown().contains("IS_SANDBOX=1"));
    assert!(!TestSpec { access: AccessMode::Read, ..root }.shown().contains("IS_SANDBOX"));
}

#[test]
fn the_command_line_does_not_depend_on_the_sandbox() {
    let line = |sandbox| TestSpec { sandbox, ..TestSpec::reviewer(KIND) }.line();
    assert_eq!(line(SandboxBackend::None), line(SandboxBackend::Landlock));
    assert_eq!(line(SandboxBackend::None), line(SandboxBackend::Bubblewrap));
}

#[test]
fn a_session_is_resumed() {
    let resumed = TestSpec { resumes: Some("11111111-2222-4333-8444-555555555555"), ..TestSpec::writer(KIND) };
    insta::assert_snapshot!(resumed.shown(), @"
    claude
      -p
      --output-format
      stream-json
      --verbose
      --setting-sources
      user
      --strict-mcp-config
      --dangerously-skip-permissions
      --resume
      11111111-2222-4333-8444-555555555555
    CLAUDE_CONFIG_DIR=/work/attempt/home/claude
    CLAUDE_SECURESTORAGE_CONFIG_DIR=/home/ann/.claude
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1
    CLAUDE_CODE_DISABLE_AUTO_MEMORY=1
    CLAUDE_CODE_DISABLE_BACKGROUND_TASKS=1
    CLAUDE_CODE_DISABLE_NONSTREAMING_FALLBACK=1
    ENABLE_TOOL_SEARCH=false
    MCP_TIMEOUT=10000
    without CLAUDECODE
    without CLAUDE_CODE_ENTRYPOINT
    ");
}

#[test]
fn configured_arguments_come_last() {
    let mut spec = TestSpec::writer(KIND);
    spec.agent.command = vec!["npx".to_owned(), "@anthropic-ai/claude-code".to_owned()];
    spec.agent.args = vec!["--verbose".to_owned(), "a word".to_owned()];
    let line = spec.line();
    assert_eq!((line.program.as_str(), line.arguments[0].as_str()), ("npx", "@anthropic-ai/claude-code"));
    assert!(line.arguments.ends_with(&spec.agent.args), "{line:?}");
}

#[test]
fn usage_of_a_killed_agent_is_read_from_its_session_files() {
    // Edited by hand: adds a message of the previous session and a subagent.
    insta::assert_snapshot!(render_recording(KIND, "killed"), @"
    one
    [Write] /work/repo/half.txt
    two
    [Read] /work/repo/a.txt
    three
    ---
    message: 
    session: db7104c0-fc88-4950-bf81-579bb10a9ce8
    spent by claude-sonnet-4-5: 4300 in (1200 cached, 0 written), 161 out
    reached the report server: false
    error: it ended without a result: ended by a signal (NoResult)
    ");
}

#[test]
fn a_full_context_window_is_reported() {
    insta::assert_snapshot!(render_recording(KIND, "context-window"), @"
    [Bash] echo half > half.txt
    I am in the midd
    I am in the midd
    I am in the midd
    I am in the midd
    (error: API Error: The model has reached its context window limit.)
    ---
    message: 
    session: 57f90d77-2e16-452b-b13b-afd2c537e2e3
    spent by claude-sonnet-4-5: 500 in (0 cached, 0 written), 100 out, 3000 µ$
    reached the report server: false
    error: the prompt is too long for the model: API Error: The model has reached its context window limit. (PromptTooLong)
    ");
}

/// Edited by hand: a model without a known price.
#[test]
fn an_estimated_cost_is_ignored() {
    let known = Recording::read(KIND, "work");
    let guessed = String::from_utf8(known.stdout.clone()).unwrap();
    let guessed = guessed.replace(r#""costBasis":"list""#, r#""costBasis":"unknown""#);
    let costs = |recording: &Recording| {
        parse_recording(KIND, recording).summary.spent.iter().map(|spent| spent.cost_micro_usd).collect::<Vec<_>>()
    };
    assert_eq!(costs(&known), [Some(12_600)]);
    assert_eq!(costs(&Recording::from_stdout(&guessed)), [None]);
}

/// Edited by hand: the last result is malformed.
#[test]
fn the_last_result_counts_even_if_it_is_malformed() {
    let work = String::from_utf8(Recording::read(KIND, "work").stdout).unwrap();
    let result =
        parse_recording(KIND, &Recording::from_stdout(&format!("{work}{{\"type\":\"result\",\"is_error\":null}}\n")));
    assert_eq!(result.message, "");
    assert_eq!(result.summary.error.unwrap().kind, AgentErrorKind::NoResult);
}
