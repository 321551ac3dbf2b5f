//! Gemini CLI (`kind = "gemini"`): recordings and command lines.

use std::fs;

use signoff_core::agent_output::AgentErrorKind;
use signoff_core::settings::AgentKind::Gemini;
use signoff_engine::agent::SandboxBackend;

use crate::agents::replay::{
    Recording, check_any_output_is_parsed, check_success_requires_a_closing_line, parse_recording, render_recording,
};
use crate::agents::test_spec::TestSpec;

#[test]
fn an_answer() {
    insta::assert_snapshot!(render_recording(Gemini, "plain"), @"
    This is a plain answer.
    ---
    message: This is a plain answer.
    session: 60e213b7-d54d-48e8-91e0-a6d916239760
    spent by gemini-2.5-pro: 1000 in (400 cached, 0 written), 50 out
    ended well
    ");
}

#[test]
fn a_writer() {
    insta::assert_snapshot!(render_recording(Gemini, "tools"), @"
    I write a file.
    [write_file] /work/repo/made.txt
    Now the shell.
    [run_shell_command] echo shell-was-here > shell.txt; ls
    All done: made.txt and shell.txt.
    ---
    message: All done: made.txt and shell.txt.
    session: 9f1ca457-6e1a-4589-a357-8de437a15595
    spent by gemini-2.5-pro: 3600 in (1400 cached, 0 written), 210 out
    ended well
    ");
}

#[test]
fn tools_side_by_side() {
    insta::assert_snapshot!(render_recording(Gemini, "parallel"), @"
    [write_file] /work/repo/p.txt
    [run_shell_command] echo x; exit 3
    Done both.
    ---
    message: Done both.
    session: 0bbe31e1-3c33-4a08-9bd4-f5bd68fe4148
    spent by gemini-2.5-pro: 2400 in (0 cached, 0 written), 140 out
    ended well
    ");
}

#[test]
fn thinking_tokens_are_counted() {
    insta::assert_snapshot!(render_recording(Gemini, "thoughts"), @"
    With reasoning.
    ---
    message: With reasoning.
    session: 2bb08117-521d-45e5-be21-0ea0dc5820f7
    spent by gemini-2.5-pro: 1000 in (400 cached, 0 written), 75 out
    ended well
    ");
}

#[test]
fn two_turns() {
    insta::assert_snapshot!(render_recording(Gemini, "two_turns"), @"
    [run_shell_command] true
    Second turn.
    ---
    message: Second turn.
    session: 27d9370a-c437-44c2-9c1e-db3f863264a3
    spent by gemini-2.5-pro: 6100 in (3000 cached, 0 written), 77 out
    ended well
    ");
}

#[test]
fn a_reviewer_that_reports() {
    insta::assert_snapshot!(render_recording(Gemini, "reports"), @"
    Reporting.
    [mcp_signoff_report_finding] bug
    Reported one finding.
    ---
    message: Reported one finding.
    session: 07b5fab0-d7e4-470a-a0e7-792ee418d79b
    spent by gemini-2.5-pro: 4100 in (300 cached, 0 written), 50 out
    reached the report server: true
    ended well
    ");
}

#[test]
fn a_reviewer_that_tries_to_write() {
    insta::assert_snapshot!(render_recording(Gemini, "evil"), @"
    Writing.
    [write_file] /work/repo/evil.txt
    [write_file] /work/repo/evil.txt (not allowed)
    Touching.
    [run_shell_command] touch evil-touch.txt
    [run_shell_command] touch evil-touch.txt (not allowed)
    Pushing.
    [run_shell_command] git push origin HEAD
    [run_shell_command] git push origin HEAD (not allowed)
    Hook.
    [write_file] /work/repo/.git/hooks/pre-commit
    [write_file] /work/repo/.git/hooks/pre-commit (not allowed)
    Ended after trying.
    ---
    message: Ended after trying.
    session: 14f5c294-4e9a-47db-841e-97b1c879b0ae
    spent by gemini-2.5-pro: 50 in (0 cached, 0 written), 5 out
    denied: write_file /work/repo/evil.txt
    denied: run_shell_command touch evil-touch.txt
    denied: run_shell_command git push origin HEAD
    denied: write_file /work/repo/.git/hooks/pre-commit
    ended well
    ");
}

#[test]
fn a_reviewer_that_tries_to_leave_plan_mode() {
    insta::assert_snapshot!(render_recording(Gemini, "escape"), @"
    Plan.
    [write_file] plan.md
    [write_file] plan.md (not allowed)
    Exit.
    [exit_plan_mode]
    [exit_plan_mode] (not allowed)
    Evil.
    [write_file] /work/repo/evil.txt
    [write_file] /work/repo/evil.txt (not allowed)
    Shell.
    [run_shell_command] touch evil-touch.txt
    [run_shell_command] touch evil-touch.txt (not allowed)
    Tried.
    ---
    message: Tried.
    session: db753fc9-b1cc-4d99-9298-4bf1bbcf8540
    spent by gemini-2.5-pro: 50 in (0 cached, 0 written), 5 out
    denied: write_file plan.md
    denied: exit_plan_mode 
    denied: write_file /work/repo/evil.txt
    denied: run_shell_command touch evil-touch.txt
    ended well
    ");
}

#[test]
fn a_reviewer_restricted_by_plan_mode_alone() {
    insta::assert_snapshot!(render_recording(Gemini, "evil_plan"), @"
    Writing.
    [write_file] /work/repo/evil.txt
    [write_file] /work/repo/evil.txt (not allowed)
    Touching.
    [run_shell_command] touch evil-touch.txt
    [run_shell_command] touch evil-touch.txt (not allowed)
    Pushing.
    [run_shell_command] git push origin HEAD
    [run_shell_command] git push origin HEAD (not allowed)
    Hook.
    [write_file] /work/repo/.git/hooks/pre-commit
    [write_file] /work/repo/.git/hooks/pre-commit (not allowed)
    Ended after trying.
    ---
    message: Ended after trying.
    session: 36039729-659a-4475-b150-b3c3cdf19db9
    spent by gemini-2.5-pro: 50 in (0 cached, 0 written), 5 out
    denied: write_file /work/repo/evil.txt
    denied: run_shell_command touch evil-touch.txt
    denied: run_shell_command git push origin HEAD
    denied: write_file /work/repo/.git/hooks/pre-commit
    ended well
    ");
}

#[test]
fn a_missing_report_server_is_reported() {
    insta::assert_snapshot!(render_recording(Gemini, "server_unreachable"), @"
    Reporting.
    [no MCP tool report_finding was offered]
    ---
    message: Reporting.

    [no MCP tool report_finding was offered]
    session: baf67ceb-fb8d-4661-9d76-8698ff512200
    spent by gemini-2.5-pro: 2000 in (100 cached, 0 written), 20 out
    reached the report server: false
    ended well
    ");
}

#[test]
fn a_bad_request() {
    insta::assert_snapshot!(render_recording(Gemini, "status_400"), @r#"
    (error: [API Error: {"error":{"code":400,"message":"bad request: wrong model","status":"INVALID_ARGUMENT"}}])
    ---
    message: 
    session: ba37fe73-d4cc-41a3-aa2c-616a1bdc3ed1
    error: it ended with an error: bad request: wrong model (Other)
    "#);
}

#[test]
fn a_wrong_key() {
    insta::assert_snapshot!(render_recording(Gemini, "status_401"), @r#"
    (error: [API Error: {"error":{"code":401,"message":"invalid api key","status":"UNAUTHENTICATED"}}])
    ---
    message: 
    session: 286fae08-e95a-46bd-beb9-7eae1c756e56
    error: not logged in: invalid api key (NotLoggedIn)
    "#);
}

#[test]
fn a_key_without_rights() {
    insta::assert_snapshot!(render_recording(Gemini, "status_403"), @r#"
    (error: [API Error: {"error":{"code":403,"message":"permission denied","status":"PERMISSION_DENIED"}}])
    ---
    message: 
    session: 4ca3a9c5-5f90-4259-be94-7632751d0d27
    error: not logged in: permission denied (NotLoggedIn)
    "#);
}

#[test]
fn an_unknown_model() {
    insta::assert_snapshot!(render_recording(Gemini, "status_404"), @"
    (error: [API Error: model not found: nope])
    ---
    message: 
    session: 93af0cfe-34cc-4494-a451-d01cd8f93edc
    error: the model cannot be used: model not found: nope (ModelUnavailable)
    ");
}

#[test]
fn too_many_requests() {
    insta::assert_snapshot!(render_recording(Gemini, "status_429"), @"
    (error: [API Error: Rate limit reached. Please retry in 4s.
    Suggested retry after 4s.]
    Please wait and try again later. To increase your limits, request a quota increase through AI Studio, or switch to another /auth method)
    ---
    message: 
    session: 91f6f813-c236-4bb8-9c31-7899f098a676
    error: rate limited: Rate limit reached. Please retry in 4s. (RateLimited { seconds: Some(4) })
    ");
}

#[test]
fn too_many_requests_for_long() {
    insta::assert_snapshot!(render_recording(Gemini, "status_429_long"), @"
    (error: [API Error: You exceeded your current quota. Please retry in 3600s.
    Suggested retry after 3600s.]
    Please wait and try again later. To increase your limits, request a quota increase through AI Studio, or switch to another /auth method)
    ---
    message: 
    session: 0b7c0370-fb9c-447a-853e-6fb0e81a128d
    error: rate limited: You exceeded your current quota. Please retry in 3600s. (RateLimited { seconds: Some(3600) })
    ");
}

#[test]
fn too_many_requests_without_a_delay() {
    insta::assert_snapshot!(render_recording(Gemini, "status_429_bare"), @"
    (error: [API Error: Too many requests]
    Please wait and try again later. To increase your limits, request a quota increase through AI Studio, or switch to another /auth method)
    ---
    message: 
    session: 1b458c0b-1b4e-406c-b9a0-cdbddf294528
    error: rate limited: Too many requests (RateLimited { seconds: None })
    ");
}

#[test]
fn a_failing_provider() {
    insta::assert_snapshot!(render_recording(Gemini, "status_500"), @r#"
    (error: [API Error: {"error":{"code":500,"message":"scripted 500","status":"INTERNAL"}}])
    ---
    message: 
    session: c714a65b-87e0-4d27-a3ac-d1de1495a1c0
    error: its provider is overloaded: scripted 500 (Overloaded)
    "#);
}

#[test]
fn an_overloaded_provider() {
    insta::assert_snapshot!(render_recording(Gemini, "status_503"), @"
    (error: [API Error: The model is overloaded. Please try again later.])
    ---
    message: 
    session: 13cd60ef-6bd9-48dd-b606-6302a11c11d8
    error: its provider is overloaded: The model is overloaded. Please try again later. (Overloaded)
    ");
}

#[test]
fn an_interrupted_response() {
    insta::assert_snapshot!(render_recording(Gemini, "cut"), @"
    This answer is c
    (error: [API Error: terminated])
    ---
    message: 
    session: 4facf50b-db42-4d23-ad1b-49261390cd83
    error: the provider's response was incomplete: terminated (InvalidResponse)
    ");
}

#[test]
fn a_provider_that_hangs_up() {
    insta::assert_snapshot!(render_recording(Gemini, "drop"), @"
    (error: [API Error: exception TypeError: fetch failed sending request])
    ---
    message: 
    session: f2e70d31-57d0-4227-83b9-17d1d166cd36
    error: the provider's response was incomplete: exception TypeError: fetch failed sending request (InvalidResponse)
    ");
}

#[test]
fn a_malformed_response() {
    insta::assert_snapshot!(render_recording(Gemini, "malformed"), @r#"
    This answer
    (error: [API Error: Unexpected token 'o', "{"this is": not JSON" is not valid JSON])
    ---
    message: 
    session: 44c34075-80cc-4b7e-910a-5c862271f93f
    error: the provider's response was incomplete: Unexpected token 'o', "{"this is": not JSON" is not valid JSON (InvalidResponse)
    "#);
}

#[test]
fn a_bound_on_turns() {
    insta::assert_snapshot!(render_recording(Gemini, "max_turns"), @"
    [run_shell_command] true
    [run_shell_command] true
    (error: Reached max session turns for this session. Increase the number of turns by specifying maxSessionTurns in settings.json.)
    ---
    message: 
    session: 542fd506-717c-4219-88be-bb42c48d5e9e
    spent by gemini-2.5-pro: 20 in (0 cached, 0 written), 2 out
    error: it reached its own turn or cost limit: Reached max session turns for this session. Increase the number of turns by specifying maxSessionTurns in settings.json. (OwnLimit)
    ");
}

#[test]
fn no_key() {
    insta::assert_snapshot!(render_recording(Gemini, "no_key"), @"

    ---
    message: 
    error: not logged in: When using Gemini API, you must specify the GEMINI_API_KEY environment variable. (NotLoggedIn)
    ");
}

#[test]
fn no_login() {
    insta::assert_snapshot!(render_recording(Gemini, "no_login"), @"

    ---
    message: 
    error: not logged in: Please set an Auth method in your /work/home/.gemini/settings.json or specify one of the following environment variables before running: GEMINI_API_KEY, GOOGLE_GENAI_USE_VERTEXAI, GOOGLE_GENAI_USE_GCA (NotLoggedIn)
    ");
}

#[test]
fn not_trusted() {
    insta::assert_snapshot!(render_recording(Gemini, "untrusted"), @"

    ---
    message: 
    error: it ended without a result: exit code 55, Gemini CLI is not running in a trusted directory. To proceed, either use `--skip-trust`, set the `GEMINI_CLI_TRUST_WORKSPACE=true` environment variable, or trust this directory in interactive mode. For more details, see https://geminicli.com/docs/cli/trusted-folders/#headless-and-automated-environments (NoResult)
    ");
}

#[test]
fn a_session_begins() {
    insta::assert_snapshot!(render_recording(Gemini, "session_first"), @"
    This is a plain answer.
    ---
    message: This is a plain answer.
    session: 7e383881-3c1f-4ea0-a178-558dc2348b48
    spent by gemini-2.5-pro: 1000 in (400 cached, 0 written), 50 out
    ended well
    ");
}

#[test]
fn a_session_is_resumed() {
    insta::assert_snapshot!(render_recording(Gemini, "session_resumed"), @"
    Resumed answer.
    ---
    message: Resumed answer.
    session: 7e383881-3c1f-4ea0-a178-558dc2348b48
    spent by gemini-2.5-pro: 5000 in (4000 cached, 0 written), 55 out
    ended well
    ");
}

#[test]
fn an_unknown_session() {
    insta::assert_snapshot!(render_recording(Gemini, "session_unknown"), @r#"

    ---
    message: 
    error: its session no longer exists: Error resuming session: Invalid session identifier "00000000-0000-4000-8000-000000000000". (SessionGone)
    "#);
}

#[test]
fn another_version() {
    insta::assert_snapshot!(render_recording(Gemini, "unknown_flag"), @"

    ---
    message: 
    error: it does not understand its command line: Unknown arguments: such-flag, suchFlag (Version)
    ");
}

#[test]
fn no_prompt() {
    insta::assert_snapshot!(render_recording(Gemini, "no_prompt"), @"

    ---
    message: 
    error: it ended without a result: exit code 42, No input provided via stdin. Input can be provided by piping data into gemini or using the --prompt option. (NoResult)
    ");
}

#[test]
fn ended_by_a_signal() {
    insta::assert_snapshot!(render_recording(Gemini, "terminated"), @"

    ---
    message: 
    session: 11196fb3-47c3-4a81-b7d7-047d79602996
    error: it ended without a result: exit code 0 (NoResult)
    ");
}

#[test]
fn success_without_a_message() {
    insta::assert_snapshot!(render_recording(Gemini, "too_long"), @"

    ---
    message: 
    session: 31fcbb03-c636-465a-b05f-d14f7ff04a47
    error: the prompt is too long for the model: Warning: stdin input truncated to 8388608 bytes. (PromptTooLong)
    ");
}

#[test]
fn retries_of_the_agent_itself_are_no_error() {
    insta::assert_snapshot!(render_recording(Gemini, "waited"), @"
    Healed.
    ---
    message: Healed.
    session: 5cf345ac-f1be-44e2-9a5b-ae5a79e96de5
    spent by gemini-2.5-pro: 100 in (0 cached, 0 written), 5 out
    ended well
    ");
}

#[test]
fn the_command_line_of_a_writer() {
    insta::assert_snapshot!(TestSpec::writer(Gemini).shown(), @r#"
    gemini
      -e
      none
      --approval-mode
      yolo
      --skip-trust
      -o
      stream-json
    GEMINI_CLI_HOME=/work/attempt/home
    GEMINI_CLI_NO_RELAUNCH=true
    GEMINI_CLI_TRUST_WORKSPACE=
    NO_COLOR=1
    GEMINI_API_KEY=
    GOOGLE_API_KEY=
    GOOGLE_GEMINI_BASE_URL=
    GOOGLE_VERTEX_BASE_URL=
    GOOGLE_GENAI_USE_VERTEXAI=
    GOOGLE_GENAI_USE_GCA=
    GOOGLE_GENAI_API_VERSION=
    GOOGLE_CLOUD_PROJECT=
    GOOGLE_CLOUD_PROJECT_ID=
    GOOGLE_CLOUD_LOCATION=
    GOOGLE_CLOUD_ACCESS_TOKEN=
    GOOGLE_APPLICATION_CREDENTIALS=
    CODE_ASSIST_ENDPOINT=https://cloudcode-pa.googleapis.com
    CODE_ASSIST_API_VERSION=
    GEMINI_API_KEY_AUTH_MECHANISM=
    GEMINI_CLI_CUSTOM_HEADERS=
    GEMINI_CLI_SYSTEM_SETTINGS_PATH=
    GEMINI_CLI_SYSTEM_DEFAULTS_PATH=
    GEMINI_MODEL=
    GEMINI_SYSTEM_MD=
    GEMINI_WRITE_SYSTEM_MD=
    GEMINI_SANDBOX=
    GEMINI_SANDBOX_PROXY_COMMAND=
    GEMINI_TELEMETRY_ENABLED=false
    GEMINI_CLI_IDE_SERVER_STDIO_COMMAND=
    HTTPS_PROXY=
    https_proxy=
    HTTP_PROXY=
    http_proxy=
    NODE_OPTIONS=
    NODE_TLS_REJECT_UNAUTHORIZED=
    NODE_EXTRA_CA_CERTS=
    LD_PRELOAD=
    BASH_ENV=
    ENV=
    LD_AUDIT=
    LD_LIBRARY_PATH=
    GIT_CONFIG_COUNT=0
    GIT_SSH_COMMAND=ssh
    /work/attempt/home/.gemini/settings.json:
    {
      "privacy": {
        "usageStatisticsEnabled": false
      },
      "telemetry": {
        "enabled": false
      },
      "general": {
        "enableAutoUpdate": false,
        "enableAutoUpdateNotification": false,
        "maxAttempts": 2
      },
      "hooksConfig": {
        "enabled": false
      },
      "skills": {
        "enabled": false
      },
      "experimental": {
        "enableAgents": false
      },
      "advanced": {
        "ignoreLocalEnv": true
      },
      "context": {
        "fileFiltering": {
          "enableRecursiveFileSearch": false
        }
      }
    }

    /work/attempt/home/.gemini/oauth_creds.json copied from /home/ann/.gemini/oauth_creds.json
    /work/attempt/home/.gemini/google_accounts.json copied from /home/ann/.gemini/google_accounts.json
    /work/attempt/home/.gemini/gemini-credentials.json copied from /home/ann/.gemini/gemini-credentials.json
    "#);
}

#[test]
fn the_command_line_of_a_reviewer() {
    insta::assert_snapshot!(TestSpec::reviewer(Gemini).shown(), @r#"
    gemini
      -e
      none
      --policy
      /work/attempt/home/.gemini/signoff.toml
      --approval-mode
      plan
      --skip-trust
      -o
      stream-json
    GEMINI_CLI_HOME=/work/attempt/home
    GEMINI_CLI_NO_RELAUNCH=true
    GEMINI_CLI_TRUST_WORKSPACE=
    NO_COLOR=1
    GEMINI_API_KEY=
    GOOGLE_API_KEY=
    GOOGLE_GEMINI_BASE_URL=
    GOOGLE_VERTEX_BASE_URL=
    GOOGLE_GENAI_USE_VERTEXAI=
    GOOGLE_GENAI_USE_GCA=
    GOOGLE_GENAI_API_VERSION=
    GOOGLE_CLOUD_PROJECT=
    GOOGLE_CLOUD_PROJECT_ID=
    GOOGLE_CLOUD_LOCATION=
    GOOGLE_CLOUD_ACCESS_TOKEN=
    GOOGLE_APPLICATION_CREDENTIALS=
    CODE_ASSIST_ENDPOINT=https://cloudcode-pa.googleapis.com
    CODE_ASSIST_API_VERSION=
    GEMINI_API_KEY_AUTH_MECHANISM=
    GEMINI_CLI_CUSTOM_HEADERS=
    GEMINI_CLI_SYSTEM_SETTINGS_PATH=
    GEMINI_CLI_SYSTEM_DEFAULTS_PATH=
    GEMINI_MODEL=
    GEMINI_SYSTEM_MD=
    GEMINI_WRITE_SYSTEM_MD=
    GEMINI_SANDBOX=
    GEMINI_SANDBOX_PROXY_COMMAND=
    GEMINI_TELEMETRY_ENABLED=false
    GEMINI_CLI_IDE_SERVER_STDIO_COMMAND=
    HTTPS_PROXY=
    https_proxy=
    HTTP_PROXY=
    http_proxy=
    NODE_OPTIONS=
    NODE_TLS_REJECT_UNAUTHORIZED=
    NODE_EXTRA_CA_CERTS=
    LD_PRELOAD=
    BASH_ENV=
    ENV=
    LD_AUDIT=
    LD_LIBRARY_PATH=
    GIT_CONFIG_COUNT=0
    GIT_SSH_COMMAND=ssh
    /work/attempt/home/.gemini/settings.json:
    {
      "privacy": {
        "usageStatisticsEnabled": false
      },
      "telemetry": {
        "enabled": false
      },
      "general": {
        "enableAutoUpdate": false,
        "enableAutoUpdateNotification": false,
        "maxAttempts": 2
      },
      "hooksConfig": {
        "enabled": false
      },
      "skills": {
        "enabled": false
      },
      "experimental": {
        "enableAgents": false
      },
      "advanced": {
        "ignoreLocalEnv": true
      },
      "context": {
        "fileFiltering": {
          "enableRecursiveFileSearch": false
        }
      },
      "mcpServers": {
        "signoff": {
          "httpUrl": "http://127.0.0.1:4321/mcp",
          "headers": {
            "Authorization": "Bearer $SIGNOFF_MCP_TOKEN"
          },
          "trust": true,
          "timeout": 30000
        }
      }
    }

    /work/attempt/home/.gemini/signoff.toml:
    [[rule]]
    toolName = ["read_file", "read_many_files", "list_directory", "glob", "grep_search", "update_topic"]
    decision = "allow"
    priority = 900

    [[rule]]
    mcpName = "signoff"
    toolName = "*"
    decision = "allow"
    priority = 900

    [[rule]]
    toolName = ["exit_plan_mode", "enter_plan_mode", "write_file", "replace", "run_shell_command", "invoke_agent", "activate_skill", "save_memory", "ask_user", "google_web_search", "web_fetch"]
    decision = "deny"
    priority = 950
    denyMessage = "You may only read here."

    [[rule]]
    toolName = "*"
    decision = "deny"
    priority = 1
    denyMessage = "You may only read here."

    /work/attempt/home/.gemini/oauth_creds.json copied from /home/ann/.gemini/oauth_creds.json
    /work/attempt/home/.gemini/google_accounts.json copied from /home/ann/.gemini/google_accounts.json
    /work/attempt/home/.gemini/gemini-credentials.json copied from /home/ann/.gemini/gemini-credentials.json
    "#);
}

#[test]
fn session_model_and_configured_arguments() {
    let mut spec = TestSpec { model: Some("big"), resumes: Some("a-session"), ..TestSpec::writer(Gemini) };
    spec.agent.command = vec!["npx".to_owned(), "the-agent".to_owned()];
    spec.agent.args = vec!["--more".to_owned()];
    let line = spec.line();
    let words: Vec<&str> = [&line.program].into_iter().chain(&line.arguments).map(String::as_str).collect();
    insta::assert_snapshot!(words.join(" "), @"npx the-agent -e none --approval-mode yolo --skip-trust -o stream-json -m big --resume a-session --more");
}

#[test]
fn the_command_line_does_not_depend_on_the_sandbox() {
    for spec in [TestSpec::writer(Gemini), TestSpec::reviewer(Gemini)] {
        for sandbox in [SandboxBackend::None, SandboxBackend::Bubblewrap, SandboxBackend::Landlock] {
            assert_eq!(TestSpec { sandbox, ..spec.clone() }.line(), spec.line());
        }
    }
}

#[test]
fn a_configured_key_is_not_overwritten() {
    let mut spec = TestSpec::writer(Gemini);
    spec.agent.env = [("GEMINI_API_KEY".to_owned(), "a-key".to_owned())].into();
    spec.inherits = &["GOOGLE_GEMINI_BASE_URL"];
    let shown = spec.shown();
    assert!(shown.contains(r#""selectedType": "gemini-api-key""#), "{shown}");
    assert!(!shown.contains("GEMINI_API_KEY=") && !shown.contains("GOOGLE_GEMINI_BASE_URL="), "{shown}");
}

#[test]
fn an_inherited_key_is_used_unless_another_login_is_selected() {
    let selects = |inherits| TestSpec { inherits, ..TestSpec::writer(Gemini) }.shown().contains("gemini-api-key");
    assert!(selects(&["GEMINI_API_KEY"]));
    assert!(!selects(&[]));
    assert!(!selects(&["GEMINI_API_KEY", "GOOGLE_GENAI_USE_VERTEXAI"]));
}

#[test]
fn the_selected_login_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join(".gemini");
    fs::create_dir(&directory).unwrap();
    let settings = r#"{ "security": { "auth": { "selectedType": "oauth-personal" } }, "mcpServers": { "mine": {} } }"#;
    fs::write(directory.join("settings.json"), settings).unwrap();
    fs::write(directory.join(".env"), "GEMINI_API_KEY=a-key\nPATH=/elsewhere\n").unwrap();
    let mut spec = TestSpec { user_home: home.path().to_owned(), ..TestSpec::writer(Gemini) };
    let shown = spec.shown();
    assert!(shown.contains(r#""selectedType": "oauth-personal""#) && !shown.contains("mine"), "{shown}");
    assert!(shown.contains("\nGEMINI_API_KEY=a-key\n") && !shown.contains("elsewhere"), "{shown}");
    spec.agent.env = [("GEMINI_API_KEY".to_owned(), "another".to_owned())].into();
    assert!(spec.shown().contains("gemini-api-key"));
}

#[test]
fn success_requires_a_closing_line() {
    check_success_requires_a_closing_line(Gemini, |line| line.contains(r#""type":"result""#));
}

#[test]
fn any_output_is_parsed() {
    check_any_output_is_parsed(Gemini);
}

/// Edits a recording: adds an error line, then closes with this status.
fn with_error(name: &str, error: &str, status: &str) -> Recording {
    let lines = String::from_utf8(Recording::read(Gemini, name).stdout).unwrap();
    let (before, result) = lines.trim_end().rsplit_once('\n').unwrap();
    let result = result.replace(r#""status":"success""#, &format!(r#""status":"{status}""#));
    Recording::from_stdout(&format!("{before}\n{error}\n{result}\n"))
}

#[test]
fn an_agent_that_gives_up_did_not_succeed() {
    let end = |error: &str, status: &str| {
        let result = parse_recording(Gemini, &with_error("tools", error, status));
        result.summary.error.map_or(result.message, |error| format!("{error} ({:?})", error.kind))
    };
    let warning = |words: &str| format!(r#"{{"type":"error","severity":"warning","message":"{words}"}}"#);
    let error = |words: &str| format!(r#"{{"type":"error","severity":"error","message":"{words}"}}"#);
    let ends = [
        end(&warning("Loop detected, stopping execution"), "success"),
        end(&error("Maximum session turns exceeded"), "success"),
        end(&warning("Agent execution blocked: by a hook"), "success"),
        end(&error("The model response was blocked due to safety settings."), "error"),
        end(&error("The model returned an empty response with no text or thoughts."), "error"),
        end(&error("Model response was truncated because it exceeded the token limit."), "error"),
        end(&warning("A tool is slow"), "success"),
    ];
    insta::assert_snapshot!(ends.join("\n"), @"
    it reached its own turn or cost limit: Loop detected, stopping execution (OwnLimit)
    it reached its own turn or cost limit: Maximum session turns exceeded (OwnLimit)
    it ended with an error: Agent execution blocked: by a hook (Other)
    it ended with an error: The model response was blocked due to safety settings. (Other)
    the provider's response was incomplete: The model returned an empty response with no text or thoughts. (InvalidResponse)
    it reached its own turn or cost limit: Model response was truncated because it exceeded the token limit. (OwnLimit)
    All done: made.txt and shell.txt.
    ");
}

#[test]
fn an_error_is_cleared_by_later_progress() {
    let error = r#"{"type":"error","severity":"warning","message":"Agent execution blocked: look again"}"#;
    let says = r#"{"type":"message","role":"assistant","content":"I looked again.","delta":true}"#;
    let result = parse_recording(Gemini, &with_error("tools", &format!("{error}\n{says}"), "success"));
    assert_eq!(result.summary.error, None);
    assert!(result.message.ends_with("I looked again."));
}

#[test]
fn output_after_the_result_needs_another_result() {
    let tools = String::from_utf8(Recording::read(Gemini, "tools").stdout).unwrap();
    let again = tools.trim_end().rsplit_once('\n').unwrap().0;
    let result =
        parse_recording(Gemini, &Recording { code: Some(1), ..Recording::from_stdout(&format!("{tools}{again}\n")) });
    assert_eq!(result.message, "");
    assert_eq!(result.summary.error.unwrap().kind, AgentErrorKind::NoResult);
}

/// Edited by hand: Google's message for an exhausted per-minute quota.
#[test]
fn a_per_minute_limit_is_a_rate_limit() {
    let lines = String::from_utf8(Recording::read(Gemini, "status_429").stdout).unwrap();
    let (before, _) = lines.trim_end().rsplit_once('\n').unwrap();
    let error = r#"{"type":"result","status":"error","error":{"type":"Error","message":"[API Error: You exceeded your current quota, please check your plan and billing details.\n* Quota exceeded for metric: generativelanguage.googleapis.com/generate_content_free_tier_requests, limit: 10\nPlease retry in 3.2s.]"}}"#;
    let result = parse_recording(Gemini, &Recording::from_stdout(&format!("{before}\n{error}\n")));
    assert_eq!(result.summary.error.unwrap().kind, AgentErrorKind::RateLimited { seconds: Some(4) });
}

#[test]
fn usage_of_a_killed_agent_is_read_from_its_session_files() {
    insta::assert_snapshot!(render_recording(Gemini, "killed"), @"
    one
    [write_file] /work/repo/half.txt
    two
    [read_file] /work/repo/a.txt
    ---
    message: 
    session: eeb34418-9289-4457-9c91-fa0892cb9bc5
    spent by gemini-2.5-pro: 2100 in (800 cached, 0 written), 110 out
    error: it ended without a result: ended by a signal (NoResult)
    ");
}
