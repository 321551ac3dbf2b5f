//! Codex: recordings of 0.166.0, and of 0.100.0 where named.

use signoff_core::agent_output::AgentErrorKind;
use signoff_core::settings::AgentKind;
use signoff_engine::agent::{AccessMode, SandboxBackend};

use crate::agents::replay::{self, Recording, parse_recording, render_lines, render_recording};
use crate::agents::test_spec::TestSpec;

const KIND: AgentKind = AgentKind::Codex;

#[test]
fn writes() {
    insta::assert_snapshot!(render_recording(KIND, "work"), @"
    I will write the file.
    [patch] /work/repo/out.txt
    Now the shell.
    [shell] touch shell-ran.txt; ls
    Done: wrote out.txt.
    ---
    message: Done: wrote out.txt.
    session: 01a1e2bd-ffee-7ce0-a42f-b073d19c4a09
    spent by gpt-5.5: 3300 in (0 cached, 0 written), 180 out
    ended well
    ");
}

#[test]
fn reports() {
    insta::assert_snapshot!(render_recording(KIND, "report"), @"
    Reporting.
    [submit_review] signoff
    Review submitted.
    ---
    message: Review submitted.
    session: 01a1e2c1-0ba5-79c0-a88f-3e1efc1bb469
    spent by a model: 2200 in (0 cached, 0 written), 120 out
    reached the report server: true
    ended well
    ");
}

#[test]
fn usage_of_subagents_is_counted() {
    insta::assert_snapshot!(render_recording(KIND, "subagents"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    sp
    waiting
    [shell] sleep 1; echo waited
    spawn done
    ---
    message: spawn done
    session: 01a1e2bb-d592-7a81-97f0-5d7395e0d12a
    spent by scripted-1: 4000 in (0 cached, 0 written), 200 out
    ended well
    ");
}

#[test]
fn cached_tokens_are_counted() {
    insta::assert_snapshot!(render_recording(KIND, "cached"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    one
    [shell] echo one
    two
    ---
    message: two
    session: 01a1e2b1-99aa-7172-aafe-60879c944164
    spent by scripted-1: 3300 in (3000 cached, 0 written), 110 out
    ended well
    ");
}

#[test]
fn a_resumed_session_counts_from_zero() {
    insta::assert_snapshot!(render_recording(KIND, "resumed"), @"
    Second answer.
    ---
    message: Second answer.
    session: 01a1e2bd-ffee-7ce0-a42f-b073d19c4a09
    spent by gpt-5.5: 2000 in (0 cached, 0 written), 80 out
    ended well
    ");
}

#[test]
fn an_older_version_is_understood() {
    insta::assert_snapshot!(render_recording(KIND, "version-0.100.0"), @"
    I will write the file.
    [shell] cat > './out.txt' <<'SCRIPT_EOF'
    Now the shell.
    [shell] touch shell-ran.txt; ls
    Done: wrote out.txt.
    ---
    message: Done: wrote out.txt.
    session: 01a1e2bd-f155-7182-8622-37845668c288
    spent by a model: 3300 in (0 cached, 0 written), 180 out
    ended well
    ");
}

#[test]
fn denied_tools_of_a_reviewer_are_reported() {
    insta::assert_snapshot!(render_recording(KIND, "denied"), @"
    writing
    [patch] /work/repo/evil.txt
    [patch] /work/repo/evil.txt (not allowed)
    touching
    [shell] touch evil-touch.txt
    [shell] touch evil-touch.txt (not allowed)
    pushing
    [shell] git push origin HEAD:refs/heads/evil
    [shell] git push origin HEAD:refs/heads/evil (not allowed)
    hooking
    [shell] echo evil > .git/hooks/pre-commit
    [shell] echo evil > .git/hooks/pre-commit (not allowed)
    hooking2
    [patch] /work/repo/.git/hooks/pre-commit
    [patch] /work/repo/.git/hooks/pre-commit (not allowed)
    All attempts done.
    ---
    message: All attempts done.
    session: 01a1e2c1-1ae1-7392-9ad2-6c7ac33cd5a1
    spent by gpt-5.5: 6000 in (0 cached, 0 written), 300 out
    denied: patch ./evil.txt
    denied: shell touch evil-touch.txt
    denied: shell git push origin HEAD:refs/heads/evil
    denied: shell echo evil > .git/hooks/pre-commit
    denied: patch ./.git/hooks/pre-commit
    ended well
    ");
    insta::assert_snapshot!(render_recording(KIND, "denied-unseen"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    writing
    touching
    pushing
    [shell] git push origin HEAD:refs/heads/evil
    [shell] git push origin HEAD:refs/heads/evil (not allowed)
    hooking
    hooking2
    All attempts done.
    ---
    message: hookinghooking2

    All attempts done.
    session: 01a1e2b5-6313-7cd2-b61d-133f7bc53d9b
    spent by scripted-1: 6000 in (0 cached, 0 written), 300 out
    denied: shell cat > './evil.txt' <<'SCRIPT_EOF'
    denied: shell touch evil-touch.txt
    denied: shell git push origin HEAD:refs/heads/evil
    denied: shell echo evil > .git/hooks/pre-commit
    denied: shell cat > './.git/hooks/pre-commit' <<'SCRIPT_EOF'
    ended well
    ");
    insta::assert_snapshot!(render_recording(KIND, "not-approved"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    Reporting.
    [submit_review] signoff
    [submit_review] signoff (not allowed)
    Review submitted.
    ---
    message: Review submitted.
    session: 01a1e2b5-5b12-72f1-8801-105ff424c958
    spent by a model: 2200 in (0 cached, 0 written), 120 out
    denied: submit_review signoff
    ended well
    ");
}

#[test]
fn a_missing_report_server_is_reported() {
    insta::assert_snapshot!(render_recording(KIND, "reports-down"), @"

    ---
    message: 
    reached the report server: false
    error: it could not reach the server for reports: required MCP servers failed to initialize: Client error: HTTP request failed: http/request failed: error sending request for url (http://127.0.0.1:18799/mcp), when send initialize request (code -32603) (ReportServer)
    ");
    insta::assert_snapshot!(render_recording(KIND, "reports-refused"), @"

    ---
    message: 
    reached the report server: false
    error: it could not reach the server for reports: required MCP servers failed to initialize: Auth required, when send initialize request (code -32603) (ReportServer)
    ");
    insta::assert_snapshot!(render_recording(KIND, "reports-hang"), @"

    ---
    message: 
    reached the report server: false
    error: it could not reach the server for reports: required MCP servers failed to initialize: signoff: timed out handshaking with MCP server after 3s (code -32603) (ReportServer)
    ");
}

#[test]
fn a_rate_limit_is_reported_with_its_delay() {
    insta::assert_snapshot!(render_recording(KIND, "status-429"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (waits: exceeded retry limit, last status: 429 Too Many Requests)
    (error: exceeded retry limit, last status: 429 Too Many Requests)
    ---
    message: 
    session: 01a1e2b0-f6b9-7692-b671-da60c3930b2b
    error: rate limited: exceeded retry limit, last status: 429 Too Many Requests (RateLimited { seconds: None })
    ");
    insta::assert_snapshot!(render_recording(KIND, "limit-with-delay"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (waits: rate limit exceeded: Rate limit reached for gpt in organization org on tokens per min (TPM): Limit 1, Used 1, Requested 1. Please try again in 4.5s.)
    (error: rate limit exceeded: Rate limit reached for gpt in organization org on tokens per min (TPM): Limit 1, Used 1, Requested 1. Please try again in 4.5s.)
    ---
    message: 
    session: 01a1e2b1-6dc2-7643-9453-bdab410ecad9
    error: rate limited: rate limit exceeded: Rate limit reached for gpt in organization org on tokens per min (TPM): Limit 1, Used 1, Requested 1. Please try again in 4.5s. (RateLimited { seconds: Some(5) })
    ");
    insta::assert_snapshot!(render_recording(KIND, "subscription-limit"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (error: You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or try again at 4:56 AM.)
    ---
    message: 
    session: 01a1e2b1-8f8d-7eb0-8d5f-7e4db2a0d401
    error: rate limited: You’ve hit your usage limit. Upgrade to Pro (https://chatgpt.com/explore/pro), visit https://chatgpt.com/settings/usage to purchase more credits or try again at 4:56 AM. (RateLimited { seconds: None })
    ");
}

#[test]
fn an_overloaded_provider_is_reported() {
    insta::assert_snapshot!(render_recording(KIND, "status-500"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (waits: We’re currently experiencing high demand, which may cause temporary errors.)
    (error: We’re currently experiencing high demand, which may cause temporary errors.)
    ---
    message: 
    session: 01a1e2b0-e6be-7d52-9085-08a8bdb6b5c8
    error: its provider is overloaded: We’re currently experiencing high demand, which may cause temporary errors. (Overloaded)
    ");
    insta::assert_snapshot!(render_recording(KIND, "status-503"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (waits: unexpected status 503 Service Unavailable: scripted 503, url: http://127.0.0.1:18701/v1/responses)
    (error: unexpected status 503 Service Unavailable: scripted 503, url: http://127.0.0.1:18701/v1/responses)
    ---
    message: 
    session: 01a1e2b0-ef66-7c10-81c3-6687c648bfb5
    error: its provider is overloaded: unexpected status 503 Service Unavailable: scripted 503, url: http://127.0.0.1:18701/v1/responses (Overloaded)
    ");
    insta::assert_snapshot!(render_recording(KIND, "status-529"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (waits: unexpected status 529 <unknown status code>: Overloaded, url: http://127.0.0.1:18701/v1/responses)
    (error: unexpected status 529 <unknown status code>: Overloaded, url: http://127.0.0.1:18701/v1/responses)
    ---
    message: 
    session: 01a1e2b1-1d02-7703-8dbd-8147ac243076
    error: its provider is overloaded: unexpected status 529 <unknown status code>: Overloaded, url: http://127.0.0.1:18701/v1/responses (Overloaded)
    ");
}

#[test]
fn access_errors_are_reported() {
    insta::assert_snapshot!(render_recording(KIND, "status-401"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (waits: unexpected status 401 Unauthorized: invalid x-api-key, url: http://127.0.0.1:18701/v1/responses)
    (error: unexpected status 401 Unauthorized: invalid x-api-key, url: http://127.0.0.1:18701/v1/responses)
    ---
    message: 
    session: 01a1e2b1-0763-74f0-b445-52439fe91d9b
    error: not logged in: unexpected status 401 Unauthorized: invalid x-api-key, url: http://127.0.0.1:18701/v1/responses (NotLoggedIn)
    ");
    insta::assert_snapshot!(render_recording(KIND, "status-403"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (waits: unexpected status 403 Forbidden: forbidden, url: http://127.0.0.1:18701/v1/responses)
    (error: unexpected status 403 Forbidden: forbidden, url: http://127.0.0.1:18701/v1/responses)
    ---
    message: 
    session: 01a1e2b1-0cae-7b60-bac9-ccaff69d3af3
    error: not logged in: unexpected status 403 Forbidden: forbidden, url: http://127.0.0.1:18701/v1/responses (NotLoggedIn)
    ");
    insta::assert_snapshot!(render_recording(KIND, "no-login"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (error: Missing environment variable: `OPENAI_API_KEY`.)
    ---
    message: 
    session: 01a1e2b2-7148-7e92-b8cf-4db4e8ece030
    error: not logged in: Missing environment variable: `OPENAI_API_KEY`. (NotLoggedIn)
    ");
    insta::assert_snapshot!(render_recording(KIND, "no-quota"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (error: Quota exceeded. Check your plan and billing details.)
    ---
    message: 
    session: 01a1e2b1-8a23-7362-938f-32b55a784eaf
    error: the account has no credit: Quota exceeded. Check your plan and billing details. (OutOfCredit)
    ");
    insta::assert_snapshot!(render_recording(KIND, "status-404"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (waits: unexpected status 404 Not Found: model: scripted-9, url: http://127.0.0.1:18701/v1/responses)
    (error: unexpected status 404 Not Found: model: scripted-9, url: http://127.0.0.1:18701/v1/responses)
    ---
    message: 
    session: 01a1e2b1-172a-7a41-b8ad-2d99ace46af8
    error: the model cannot be used: unexpected status 404 Not Found: model: scripted-9, url: http://127.0.0.1:18701/v1/responses (ModelUnavailable)
    ");
    insta::assert_snapshot!(render_recording(KIND, "status-400"), @r#"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (error: {"error": {"message": "model: scripted-9 is not supported", "type": "server_error", "code": "server_error"}})
    ---
    message: 
    session: 01a1e2b1-122a-7810-a9f2-fb92ddd5055a
    error: the model cannot be used: {"error": {"message": "model: scripted-9 is not supported", "type": "server_error", "code": "server_error"}} (ModelUnavailable)
    "#);
    insta::assert_snapshot!(render_recording(KIND, "unknown-model"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (error: The requested model 'scripted-9' does not exist.)
    ---
    message: 
    session: 01a1e2b1-946a-7662-804d-48fd5ac27817
    error: the model cannot be used: The requested model 'scripted-9' does not exist. (ModelUnavailable)
    ");
}

#[test]
fn the_prompt_is_too_long() {
    insta::assert_snapshot!(render_recording(KIND, "too-long"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (error: Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying.)
    ---
    message: 
    session: 01a1e2b1-848e-77b1-ace5-9af4bd4b78f2
    error: the prompt is too long for the model: Codex ran out of room in the model's context window. Start a new thread or clear earlier history before retrying. (PromptTooLong)
    ");
    insta::assert_snapshot!(render_recording(KIND, "prompt-too-big"), @r#"

    ---
    message: 
    session: 01a1e2b2-7e50-7fa0-8737-77ae3fee4f6a
    error: the prompt is too long for the model: Error: turn/start: turn/start failed: Input exceeds the maximum length of 1048576 characters. (code -32602), data: {"input_error_code":"input_too_large","max_chars":1048576,"actual_chars":1200007} (PromptTooLong)
    "#);
}

#[test]
fn an_interrupted_response_is_an_error() {
    insta::assert_snapshot!(render_recording(KIND, "cut"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (waits: stream disconnected before completion: Transport error: network error: error decoding response body)
    (error: stream disconnected before completion: Transport error: network error: error decoding response body)
    ---
    message: 
    session: 01a1e2b1-24b2-7443-9ef6-0e2ee1e92342
    error: the provider's response was incomplete: stream disconnected before completion: Transport error: network error: error decoding response body (InvalidResponse)
    ");
    insta::assert_snapshot!(render_recording(KIND, "cut-later"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    first
    [shell] echo one
    (waits: stream disconnected before completion: Transport error: network error: error decoding response body)
    (error: stream disconnected before completion: Transport error: network error: error decoding response body)
    ---
    message: 
    session: 01a1e2b1-2ad7-72c1-8bd9-ed97c27abd06
    spent by scripted-1: 1000 in (0 cached, 0 written), 50 out
    error: the provider's response was incomplete: stream disconnected before completion: Transport error: network error: error decoding response body (InvalidResponse)
    ");
    insta::assert_snapshot!(render_recording(KIND, "refused-connection"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (waits: Connection failed: error sending request)
    (error: Connection failed: error sending request)
    ---
    message: 
    session: 01a1e2bd-f5f3-7191-96fa-2afcb98c0637
    error: the provider's response was incomplete: Connection failed: error sending request (InvalidResponse)
    ");
    insta::assert_snapshot!(render_recording(KIND, "silent-provider"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    (waits: stream disconnected before completion: idle timeout waiting for SSE)
    (error: stream disconnected before completion: idle timeout waiting for SSE)
    ---
    message: 
    session: 01a1e2b3-010c-7843-bf68-326067b27dfc
    error: the provider's response was incomplete: stream disconnected before completion: idle timeout waiting for SSE (InvalidResponse)
    ");
}

#[test]
fn a_killed_agent_did_not_succeed() {
    insta::assert_snapshot!(render_recording(KIND, "interrupted"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    ---
    message: 
    session: 01a1e2b2-1be1-74f2-8df2-d3bb3207cb8e
    error: it ended without a result: exit code 1 (NoResult)
    ");
    insta::assert_snapshot!(render_recording(KIND, "terminated"), @"
    (error: Model metadata for `scripted-1` not found. Defaulting to fallback metadata; this can degrade performance and cause issues.)
    sleeping
    [shell] while :; do sleep 43.21; done
    ---
    message: 
    session: 01a1e2c1-2271-70e1-bd4b-50fa8b299c31
    spent by scripted-1: 1000 in (0 cached, 0 written), 50 out
    error: it ended without a result: ended by a signal (NoResult)
    ");
}

#[test]
fn startup_errors_are_reported() {
    insta::assert_snapshot!(render_recording(KIND, "no-session"), @"

    ---
    message: 
    error: its session no longer exists: Error: thread/resume: thread/resume failed: no rollout found for thread id 01a1e2b0-0000-7b82-be3d-a3b300b4da3f (code -32600) (SessionGone)
    ");
    insta::assert_snapshot!(render_recording(KIND, "too-old"), @"

    ---
    message: 
    error: it does not understand its command line: error: unexpected argument '--ignore-rules' found (Version)
    ");
}

/// Codex writes the limits of the subscription to its session file.
#[test]
fn an_exhausted_subscription_reports_its_reset_time() {
    let home = tempfile::tempdir().unwrap();
    let day = home.path().join("codex/sessions/2026/01/29");
    std::fs::create_dir_all(&day).unwrap();
    let limits = r#"{"timestamp":"2026-01-29T12:01:00Z","type":"event_msg","payload":{"type":"token_count","rate_limits":{"primary":{"used_percent":100.0,"window_minutes":300,"resets_at":1769692200},"secondary":{"used_percent":40.0,"window_minutes":10080,"resets_at":1769999999}}}}"#;
    std::fs::write(day.join("rollout-x.jsonl"), format!("{limits}\n")).unwrap();
    let recording = Recording { home: home.path().to_owned(), ..Recording::read(KIND, "subscription-limit") };
    let error = replay::parse_recording(KIND, &recording).summary.error.unwrap();
    assert_eq!(error.kind, AgentErrorKind::RateLimited { seconds: Some(3600) });
}

#[test]
fn a_second_turn_needs_its_own_end() {
    let (begins, ends) = (r#"{"type":"turn.started"}"#, r#"{"type":"turn.completed"}"#);
    insta::assert_snapshot!(render_lines(KIND, &[begins, ends, begins]), @"

    ---
    message: 
    error: it ended without a result: exit code 0 (NoResult)
    ");
}

#[test]
fn success_requires_a_closing_line() {
    replay::check_success_requires_a_closing_line(KIND, |line| line.contains("\"turn.completed\""));
}

#[test]
fn any_output_is_parsed() {
    replay::check_any_output_is_parsed(KIND);
}

#[test]
fn a_writer_may_use_all_tools() {
    insta::assert_snapshot!(TestSpec::writer(KIND).shown(), @r#"
    codex
      exec
      --json
      --ignore-rules
      -c
      sandbox_mode="danger-full-access"
      -c
      projects={ "/work/repo" = { trust_level = "untrusted" }, "/work/repo/.signoff/worktrees/t1" = { trust_level = "untrusted" } }
      -c
      project_doc_max_bytes=0
      -c
      skills.include_instructions=false
      -c
      shell_environment_policy.ignore_default_excludes=false
      -c
      analytics.enabled=false
      -c
      features.apps=false
      -c
      features.hooks=false
      -c
      features.multi_agent=false
      -c
      features.plugins=false
      -c
      features.shell_snapshot=false
      -c
      features.unbounded_connection_retries=false
      -
    CODEX_HOME=/work/attempt/home/codex
    /work/attempt/home/codex/auth.json -> /home/ann/.codex/auth.json
    "#);
}

#[test]
fn a_writer_that_reports_gets_the_report_server() {
    let planner = TestSpec { reports: true, model: Some("big"), ..TestSpec::writer(KIND) };
    insta::assert_snapshot!(planner.shown(), @r#"
    codex
      exec
      --json
      --ignore-rules
      -m
      big
      -c
      sandbox_mode="danger-full-access"
      -c
      projects={ "/work/repo" = { trust_level = "untrusted" }, "/work/repo/.signoff/worktrees/t1" = { trust_level = "untrusted" } }
      -c
      project_doc_max_bytes=0
      -c
      skills.include_instructions=false
      -c
      shell_environment_policy.ignore_default_excludes=false
      -c
      analytics.enabled=false
      -c
      features.apps=false
      -c
      features.hooks=false
      -c
      features.multi_agent=false
      -c
      features.plugins=false
      -c
      features.shell_snapshot=false
      -c
      features.unbounded_connection_retries=false
      -c
      mcp_servers.signoff={ bearer_token_env_var = "SIGNOFF_MCP_TOKEN", default_tools_approval_mode = "approve", omit_tools_from = ["deferred", "code_mode"], required = true, startup_timeout_sec = 10, url = "http://127.0.0.1:4321/mcp" }
      -
    CODEX_HOME=/work/attempt/home/codex
    /work/attempt/home/codex/auth.json -> /home/ann/.codex/auth.json
    "#);
}

#[test]
fn a_reviewer_is_read_only() {
    insta::assert_snapshot!(TestSpec::reviewer(KIND).shown(), @r#"
    codex
      exec
      --json
      --ignore-rules
      -c
      sandbox_mode="danger-full-access"
      -c
      projects={ "/work/repo" = { trust_level = "untrusted" }, "/work/repo/.signoff/worktrees/t1" = { trust_level = "untrusted" } }
      -c
      project_doc_max_bytes=0
      -c
      skills.include_instructions=false
      -c
      shell_environment_policy.ignore_default_excludes=false
      -c
      analytics.enabled=false
      -c
      features.apps=false
      -c
      features.hooks=false
      -c
      features.multi_agent=false
      -c
      features.plugins=false
      -c
      features.shell_snapshot=false
      -c
      features.unbounded_connection_retries=false
      -c
      mcp_servers.signoff={ bearer_token_env_var = "SIGNOFF_MCP_TOKEN", default_tools_approval_mode = "approve", omit_tools_from = ["deferred", "code_mode"], required = true, startup_timeout_sec = 10, url = "http://127.0.0.1:4321/mcp" }
      -
    CODEX_HOME=/work/attempt/home/codex
    /work/attempt/home/codex/auth.json -> /home/ann/.codex/auth.json
    "#);
}

#[test]
fn a_reviewer_that_answers_in_text_gets_no_report_server() {
    let reviewer = TestSpec { reports: false, ..TestSpec::reviewer(KIND) };
    assert!(!reviewer.shown().contains("SIGNOFF_MCP_TOKEN"), "{}", reviewer.shown());
}

#[test]
fn codex_sandboxes_a_reviewer_except_inside_landlock() {
    let mode = |access, sandbox| {
        let line = TestSpec { access, sandbox, ..TestSpec::reviewer(KIND) }.line();
        line.arguments.into_iter().find(|word| word.starts_with("sandbox_mode")).unwrap()
    };
    let holds = [SandboxBackend::None, SandboxBackend::Bubblewrap, SandboxBackend::Landlock];
    let modes = holds.map(|sandbox| {
        format!("{sandbox:?}: write {}, read {}", mode(AccessMode::Write, sandbox), mode(AccessMode::Read, sandbox))
    });
    insta::assert_snapshot!(modes.join("\n"), @r#"
    None: write sandbox_mode="danger-full-access", read sandbox_mode="read-only"
    Bubblewrap: write sandbox_mode="danger-full-access", read sandbox_mode="read-only"
    Landlock: write sandbox_mode="danger-full-access", read sandbox_mode="danger-full-access"
    "#);
}

#[test]
fn a_session_is_resumed() {
    let resumed = TestSpec { resumes: Some("11111111-2222-4333-8444-555555555555"), ..TestSpec::writer(KIND) };
    insta::assert_snapshot!(resumed.shown(), @r#"
    codex
      exec
      --json
      resume
      --ignore-rules
      -c
      sandbox_mode="danger-full-access"
      -c
      projects={ "/work/repo" = { trust_level = "untrusted" }, "/work/repo/.signoff/worktrees/t1" = { trust_level = "untrusted" } }
      -c
      project_doc_max_bytes=0
      -c
      skills.include_instructions=false
      -c
      shell_environment_policy.ignore_default_excludes=false
      -c
      analytics.enabled=false
      -c
      features.apps=false
      -c
      features.hooks=false
      -c
      features.multi_agent=false
      -c
      features.plugins=false
      -c
      features.shell_snapshot=false
      -c
      features.unbounded_connection_retries=false
      11111111-2222-4333-8444-555555555555
      -
    CODEX_HOME=/work/attempt/home/codex
    /work/attempt/home/codex/auth.json -> /home/ann/.codex/auth.json
    "#);
}

#[test]
fn configured_arguments_come_last() {
    let mut spec = TestSpec::writer(KIND);
    spec.agent.command = vec!["npx".to_owned(), "@openai/codex".to_owned()];
    spec.agent.args = vec!["--verbose".to_owned(), "a word".to_owned()];
    let line = spec.line();
    assert_eq!((line.program.as_str(), line.arguments[0].as_str()), ("npx", "@openai/codex"));
    assert!(line.arguments.ends_with(&["--verbose", "a word", "-"].map(str::to_owned)), "{line:?}");
}

/// Edited by hand: the turn fails after it completed, with an unknown error message.
#[test]
fn a_turn_that_fails_after_completion_failed() {
    let work = String::from_utf8(Recording::read(KIND, "work").stdout).unwrap();
    for error in ["", r#","error":"boom""#, r#","error":{"code":1}"#] {
        let lines = format!("{work}{{\"type\":\"turn.failed\"{error}}}\n");
        let result = parse_recording(KIND, &Recording::from_stdout(&lines));
        assert!(result.summary.error.is_some(), "{error}");
        assert_eq!(result.message, "", "{error}");
    }
}

/// Codex closes its to-do list at the end of the turn. This is no tool use.
#[test]
fn closing_the_todo_list_keeps_the_message() {
    let item = |step: &str, item: &str| format!(r#"{{"type":"item.{step}","item":{item}}}"#);
    let list = r#"{"id":"item_1","type":"todo_list","items":[]}"#;
    let message = r#"{"id":"item_2","type":"agent_message","text":"Done."}"#;
    let end = r#"{"type":"turn.completed","usage":{"input_tokens":1,"output_tokens":1}}"#.to_owned();
    let final_message = |lines: &[String]| parse_recording(KIND, &Recording::from_stdout(&lines.join("\n"))).message;
    let (begins, closes, says) = (item("started", list), item("completed", list), item("completed", message));
    assert_eq!(final_message(&[begins.clone(), says.clone(), closes.clone(), end.clone()]), "Done.");
    assert_eq!(final_message(&[says, begins, closes, end]), "");
}
