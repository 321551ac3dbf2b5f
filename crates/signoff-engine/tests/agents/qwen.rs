//! Qwen Code (`kind = "qwen"`): recordings and command lines.

use std::fs;

use signoff_core::agent_output::AgentErrorKind;
use signoff_core::settings::AgentKind::Qwen;
use signoff_engine::agent::SandboxBackend;

use crate::agents::replay::{
    Recording, check_any_output_is_parsed, check_success_requires_a_closing_line, parse_recording, render_recording,
};
use crate::agents::test_spec::TestSpec;

#[test]
fn two_turns() {
    insta::assert_snapshot!(render_recording(Qwen, "two_turns"), @"
    [run_shell_command] true
    Second turn.
    ---
    message: Second turn.
    session: 3650d2b7-d729-4fa2-82c3-8187edf5b7eb
    spent by m1: 6100 in (3000 cached, 0 written), 77 out
    reached the report server: true
    ended well
    ");
}

#[test]
fn a_writer() {
    insta::assert_snapshot!(render_recording(Qwen, "tools"), @"
    I write a file.
    [write_file] /work/repo/made.txt
    Now the shell.
    [run_shell_command] echo shell-was-here > shell.txt; ls
    All done: made.txt and shell.txt.
    ---
    message: All done: made.txt and shell.txt.
    session: f60e95d5-efa6-41da-bad1-afa1af81f5ba
    spent by m1: 3600 in (1400 cached, 0 written), 210 out
    reached the report server: true
    ended well
    ");
}

#[test]
fn a_reviewer_that_reports() {
    insta::assert_snapshot!(render_recording(Qwen, "reports"), @"
    Reporting.
    [mcp__signoff__report_finding] bug
    Reported one finding.
    ---
    message: Reported one finding.
    session: a088253d-f2fa-46c8-9839-f57d99eabd16
    spent by m1: 4100 in (300 cached, 0 written), 50 out
    reached the report server: true
    ended well
    ");
}

#[test]
fn a_reviewer_that_tries_to_write() {
    insta::assert_snapshot!(render_recording(Qwen, "evil"), @"
    Writing.
    [write_file] /work/repo/evil.txt
    Touching.
    [run_shell_command] touch evil-touch.txt
    Pushing.
    [run_shell_command] git push origin HEAD
    Hook.
    [write_file] /work/repo/.git/hooks/pre-commit
    Ended after trying.
    [write_file] /work/repo/evil.txt (not allowed)
    [run_shell_command] touch evil-touch.txt (not allowed)
    [run_shell_command] git push origin HEAD (not allowed)
    [write_file] /work/repo/.git/hooks/pre-commit (not allowed)
    ---
    message: Ended after trying.
    session: 43dc8d6b-5ee1-4df7-97b1-c9b9c8334b6f
    spent by m1: 50 in (0 cached, 0 written), 5 out
    denied: write_file /work/repo/evil.txt
    denied: run_shell_command touch evil-touch.txt
    denied: run_shell_command git push origin HEAD
    denied: write_file /work/repo/.git/hooks/pre-commit
    reached the report server: true
    ended well
    ");
}

#[test]
fn usage_of_subagents_is_counted() {
    insta::assert_snapshot!(render_recording(Qwen, "subagent"), @"
    Sub.
    [agent] look
    After sub.
    After sub.
    ---
    message: After sub.

    After sub.
    session: e8260fd7-4353-4bf6-8f9f-f958e466f505
    spent by m1: 1030 in (400 cached, 0 written), 53 out
    ended well
    ");
}

#[test]
fn a_reviewer_that_tries_every_tool() {
    insta::assert_snapshot!(render_recording(Qwen, "evil_more"), @"
    Tree.
    [enter_worktree]
    Agent.
    [agent] x
    Skill.
    [skill]
    Cron.
    [cron_create]
    Exit.
    [exit_plan_mode]
    Mem.
    [save_memory]
    Write.
    [write_file] /work/repo/evil.txt
    Shell.
    [run_shell_command] touch evil-touch.txt
    Tried all.
    [enter_worktree] (not allowed)
    [agent] x (not allowed)
    [skill] (not allowed)
    [cron_create] (not allowed)
    [exit_plan_mode] (not allowed)
    [save_memory] (not allowed)
    [write_file] /work/repo/evil.txt (not allowed)
    [run_shell_command] touch evil-touch.txt (not allowed)
    ---
    message: Tried all.
    session: 23557d72-3cfb-48ef-9910-09071c6af1bd
    spent by m1: 90 in (0 cached, 0 written), 9 out
    denied: enter_worktree 
    denied: agent x
    denied: skill 
    denied: cron_create 
    denied: exit_plan_mode 
    denied: save_memory 
    denied: write_file /work/repo/evil.txt
    denied: run_shell_command touch evil-touch.txt
    reached the report server: true
    ended well
    ");
}

#[test]
fn a_reviewer_that_tries_to_leave_plan_mode() {
    insta::assert_snapshot!(render_recording(Qwen, "escape"), @"
    Plan.
    [write_file] plan.md
    Exit.
    [exit_plan_mode]
    Evil.
    [write_file] /work/repo/evil.txt
    Shell.
    [run_shell_command] touch evil-touch.txt
    Tried.
    [write_file] plan.md (not allowed)
    [write_file] /work/repo/evil.txt (not allowed)
    [run_shell_command] touch evil-touch.txt (not allowed)
    ---
    message: Tried.
    session: 4b97418c-ff67-4c67-9f8d-fd256e6429bb
    spent by m1: 50 in (0 cached, 0 written), 5 out
    denied: write_file plan.md
    denied: write_file /work/repo/evil.txt
    denied: run_shell_command touch evil-touch.txt
    reached the report server: true
    ended well
    ");
}

#[test]
fn a_missing_report_server_is_reported() {
    insta::assert_snapshot!(render_recording(Qwen, "server_unreachable"), @"
    Reporting.

    [no MCP tool report_finding was offered]
    ---
    message: Reporting.

    [no MCP tool report_finding was offered]
    session: ce6902a0-1374-46a4-905b-14cc8a5ce35a
    spent by m1: 2000 in (100 cached, 0 written), 20 out
    reached the report server: false
    ended well
    ");
}

#[test]
fn a_report_server_that_refuses_is_reported() {
    insta::assert_snapshot!(render_recording(Qwen, "server_refuses"), @"
    Reporting.

    [no MCP tool report_finding was offered]
    ---
    message: Reporting.

    [no MCP tool report_finding was offered]
    session: f68de508-bd7d-4a8d-8659-164f0efb2917
    spent by m1: 2000 in (100 cached, 0 written), 20 out
    reached the report server: false
    ended well
    ");
}

#[test]
fn a_bad_request() {
    insta::assert_snapshot!(render_recording(Qwen, "status_400"), @"
    [API Error: 400 bad request: wrong model]
    (error: [API Error: 400 bad request: wrong model])
    ---
    message: 
    session: 3a2511b4-3ea8-43fd-89cc-439aaaad4376
    reached the report server: true
    error: it ended with an error: 400 bad request: wrong model (Other)
    ");
}

#[test]
fn a_wrong_key() {
    insta::assert_snapshot!(render_recording(Qwen, "status_401"), @"
    [API Error: 401 invalid api key]
    (error: [API Error: 401 invalid api key])
    ---
    message: 
    session: 05ad8df0-ea27-4b17-98ea-35ee142f3174
    reached the report server: true
    error: not logged in: 401 invalid api key (NotLoggedIn)
    ");
}

#[test]
fn too_many_requests() {
    insta::assert_snapshot!(render_recording(Qwen, "status_429"), @"
    [API Error: 429 Rate limit reached. Please retry in 4s.]
    Possible quota limitations in place or slow response times detected. Please wait and try again later.
    (error: [API Error: 429 Rate limit reached. Please retry in 4s.]
    Possible quota limitations in place or slow response times detected. Please wait and try again later.)
    ---
    message: 
    session: 1bd16e51-614d-438e-b88d-cbecce1ac38a
    reached the report server: true
    error: rate limited: 429 Rate limit reached. Please retry in 4s. (RateLimited { seconds: Some(4) })
    ");
}

#[test]
fn a_failing_provider() {
    insta::assert_snapshot!(render_recording(Qwen, "status_500"), @"
    [API Error: 500 scripted 500]
    (error: [API Error: 500 scripted 500])
    ---
    message: 
    session: 6177032d-a35f-43b1-90e2-1e85cabaf0ba
    reached the report server: true
    error: its provider is overloaded: 500 scripted 500 (Overloaded)
    ");
}

#[test]
fn an_interrupted_response() {
    insta::assert_snapshot!(render_recording(Qwen, "cut"), @"
    (waits: retrying the provider)
    (waits: retrying the provider)
    (waits: retrying the provider)
    This answer is cut in the middle.This answer is cut in the middle.This answer is cut in the middle.This answer is cut in the middle.[API Error: terminated (cause: UND_ERR_SOCKET: other side closed)]
    (error: [API Error: terminated (cause: UND_ERR_SOCKET: other side closed)])
    ---
    message: 
    session: a25bfec2-210a-4c53-a6bd-71451d5013d7
    reached the report server: true
    error: the provider's response was incomplete: terminated (cause: UND_ERR_SOCKET: other side closed) (InvalidResponse)
    ");
}

#[test]
fn a_malformed_response() {
    insta::assert_snapshot!(render_recording(Qwen, "malformed"), @r#"
    This answer is malformed.[API Error: Unexpected token 'o', "{"this is": not JSON" is not valid JSON]
    (error: [API Error: Unexpected token 'o', "{"this is": not JSON" is not valid JSON])
    ---
    message: 
    session: ed7bebed-affe-4340-89a0-5397cf60c32f
    reached the report server: true
    error: the provider's response was incomplete: Unexpected token 'o', "{"this is": not JSON" is not valid JSON (InvalidResponse)
    "#);
}

#[test]
fn no_key() {
    insta::assert_snapshot!(render_recording(Qwen, "no_key"), @"
    (error: Missing API key for OpenAI-compatible auth. Set settings.security.auth.apiKey, or set the 'OPENAI_API_KEY' environment variable.)
    ---
    message: 
    session: 1a826a30-0a30-43e8-9d18-83f100e6fbe5
    error: not logged in: Missing API key for OpenAI-compatible auth. Set settings.security.auth.apiKey, or set the 'OPENAI_API_KEY' environment variable. (NotLoggedIn)
    ");
}

#[test]
fn a_bound_on_turns() {
    insta::assert_snapshot!(render_recording(Qwen, "max_turns"), @"
    [run_shell_command] true
    [run_shell_command] true
    ---
    message: 
    session: 3d094fe2-e291-4a9c-92be-364dc99c23f1
    spent by m1: 20 in (0 cached, 0 written), 2 out
    reached the report server: true
    error: it reached its own turn or cost limit: Reached max session turns for this session. Increase the number of turns by specifying maxSessionTurns in settings.json. (OwnLimit)
    ");
}

#[test]
fn a_bound_on_time() {
    insta::assert_snapshot!(render_recording(Qwen, "wall_time"), @"

    ---
    message: 
    session: 3e972979-2ff3-4d52-ae00-aaadc073dec8
    error: it reached its own turn or cost limit: Run aborted: wall-clock budget of 8s exceeded (--max-wall-time). (OwnLimit)
    ");
}

#[test]
fn a_session_begins() {
    insta::assert_snapshot!(render_recording(Qwen, "session_first"), @"
    [run_shell_command] true
    Second turn.
    ---
    message: Second turn.
    session: e29c035f-06dc-4091-817a-7f7d97feabf2
    spent by m1: 6100 in (3000 cached, 0 written), 77 out
    ended well
    ");
}

#[test]
fn a_session_is_resumed() {
    insta::assert_snapshot!(render_recording(Qwen, "session_resumed"), @"
    Resumed answer.
    ---
    message: Resumed answer.
    session: e29c035f-06dc-4091-817a-7f7d97feabf2
    spent by m1: 5000 in (4000 cached, 0 written), 55 out
    ended well
    ");
}

#[test]
fn ended_by_a_signal() {
    insta::assert_snapshot!(render_recording(Qwen, "terminated"), @"
    This hangs.
    ---
    message: 
    session: 40fc5e30-fd29-447f-9ef9-d3a3dc733a2f
    reached the report server: true
    error: it ended without a result: ended by a signal, Operation cancelled. (NoResult)
    ");
}

#[test]
fn a_prompt_that_is_too_long() {
    insta::assert_snapshot!(render_recording(Qwen, "too_long"), @"
    [API Error: Context is too large to send safely after automatic compression. Estimated prompt tokens: 301701; hard limit: 177000; compression status: NOOP. Start a new session or reduce the resumed history before continuing.]
    (error: [API Error: Context is too large to send safely after automatic compression. Estimated prompt tokens: 301701; hard limit: 177000; compression status: NOOP. Start a new session or reduce the resumed history before continuing.])
    ---
    message: 
    session: 10a14771-6410-49e0-bd96-0df1645b9507
    reached the report server: false
    error: the prompt is too long for the model: Context is too large to send safely after automatic compression. Estimated prompt tokens: 301701; hard limit: 177000; compression status: NOOP. Start a new session or reduce the resumed history before continuing. (PromptTooLong)
    ");
}

#[test]
fn an_unwritable_home_is_reported() {
    insta::assert_snapshot!(render_recording(Qwen, "read_only"), @"

    ---
    message: 
    error: it ended without a result: exit code 1, Error: EROFS: read-only file system, chmod '/work/home/.qwen/extension-store' (NoResult)
    ");
}

#[test]
fn the_command_line_of_a_writer() {
    insta::assert_snapshot!(TestSpec::writer(Qwen).shown(), @r#"
    qwen
      -o
      stream-json
      --approval-mode
      yolo
    QWEN_HOME=/work/attempt/home/.qwen
    QWEN_CODE_SYSTEM_SETTINGS_PATH=/work/attempt/home/.qwen/system.json
    QWEN_CODE_NO_RELAUNCH=true
    QWEN_CODE_SUPPRESS_YOLO_WARNING=1
    NO_COLOR=1
    OPENAI_BASE_URL=https://api.openai.com/v1
    ANTHROPIC_BASE_URL=https://api.anthropic.com
    NODE_TLS_REJECT_UNAUTHORIZED=1
    QWEN_TLS_INSECURE=0
    QWEN_SYSTEM_MD=0
    QWEN_WRITE_SYSTEM_MD=0
    QWEN_SANDBOX=false
    QWEN_TELEMETRY_ENABLED=false
    QWEN_CODE_UNATTENDED_RETRY=false
    GIT_CONFIG_COUNT=0
    GIT_SSH_COMMAND=ssh
    /work/attempt/home/.qwen/system.json:
    {
      "privacy": {
        "usageStatisticsEnabled": false
      },
      "telemetry": {
        "enabled": false
      },
      "general": {
        "enableAutoUpdate": false
      },
      "model": {
        "generationConfig": {
          "maxRetries": 0
        }
      },
      "tools": {
        "toolSearch": {
          "enabled": false
        }
      },
      "memory": {
        "enableManagedAutoMemory": false,
        "enableManagedAutoDream": false,
        "enableAutoSkill": false
      },
      "disableAllHooks": true,
      "skills": {
        "disabledLevels": [
          "project",
          "user",
          "extension",
          "bundled"
        ]
      },
      "mcp": {
        "allowed": [
          "signoff"
        ]
      },
      "context": {
        "fileName": [
          "SIGNOFF-NONE.md"
        ],
        "fileFiltering": {
          "enableRecursiveFileSearch": false
        }
      },
      "agents": {
        "crossSessionMessaging": false
      }
    }

    /work/attempt/home/.qwen/oauth_creds.json -> /home/ann/.qwen/oauth_creds.json
    /work/attempt/home/.qwen/.env copied from /home/ann/.qwen/.env
    "#);
}

#[test]
fn the_command_line_of_a_reviewer() {
    insta::assert_snapshot!(TestSpec::reviewer(Qwen).shown(), @r#"
    qwen
      -o
      stream-json
      --approval-mode
      plan
    QWEN_HOME=/work/attempt/home/.qwen
    QWEN_CODE_SYSTEM_SETTINGS_PATH=/work/attempt/home/.qwen/system.json
    QWEN_CODE_NO_RELAUNCH=true
    QWEN_CODE_SUPPRESS_YOLO_WARNING=1
    NO_COLOR=1
    OPENAI_BASE_URL=https://api.openai.com/v1
    ANTHROPIC_BASE_URL=https://api.anthropic.com
    NODE_TLS_REJECT_UNAUTHORIZED=1
    QWEN_TLS_INSECURE=0
    QWEN_SYSTEM_MD=0
    QWEN_WRITE_SYSTEM_MD=0
    QWEN_SANDBOX=false
    QWEN_TELEMETRY_ENABLED=false
    QWEN_CODE_UNATTENDED_RETRY=false
    GIT_CONFIG_COUNT=0
    GIT_SSH_COMMAND=ssh
    /work/attempt/home/.qwen/system.json:
    {
      "privacy": {
        "usageStatisticsEnabled": false
      },
      "telemetry": {
        "enabled": false
      },
      "general": {
        "enableAutoUpdate": false
      },
      "model": {
        "generationConfig": {
          "maxRetries": 0
        }
      },
      "tools": {
        "toolSearch": {
          "enabled": false
        }
      },
      "memory": {
        "enableManagedAutoMemory": false,
        "enableManagedAutoDream": false,
        "enableAutoSkill": false
      },
      "disableAllHooks": true,
      "skills": {
        "disabledLevels": [
          "project",
          "user",
          "extension",
          "bundled"
        ]
      },
      "mcp": {
        "allowed": [
          "signoff"
        ]
      },
      "context": {
        "fileName": [
          "SIGNOFF-NONE.md"
        ],
        "fileFiltering": {
          "enableRecursiveFileSearch": false
        }
      },
      "agents": {
        "crossSessionMessaging": false
      },
      "permissions": {
        "deny": [
          "write_file",
          "edit",
          "notebook_edit",
          "run_shell_command",
          "monitor",
          "agent",
          "send_message",
          "skill",
          "enter_worktree",
          "exit_worktree",
          "record_artifact",
          "report_findings",
          "loop_wakeup",
          "update_goal",
          "cron_create",
          "cron_delete",
          "task_stop",
          "save_memory",
          "exit_plan_mode",
          "ask_user_question",
          "web_fetch",
          "web_search"
        ]
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

    /work/attempt/home/.qwen/oauth_creds.json -> /home/ann/.qwen/oauth_creds.json
    /work/attempt/home/.qwen/.env copied from /home/ann/.qwen/.env
    "#);
}

#[test]
fn session_model_and_configured_arguments() {
    let mut spec = TestSpec { model: Some("big"), resumes: Some("a-session"), ..TestSpec::writer(Qwen) };
    spec.agent.command = vec!["npx".to_owned(), "the-agent".to_owned()];
    spec.agent.args = vec!["--more".to_owned()];
    let line = spec.line();
    let words: Vec<&str> = [&line.program].into_iter().chain(&line.arguments).map(String::as_str).collect();
    insta::assert_snapshot!(words.join(" "), @"npx the-agent -o stream-json --approval-mode yolo -m big --resume a-session --more");
}

#[test]
fn the_command_line_does_not_depend_on_the_sandbox() {
    for spec in [TestSpec::writer(Qwen), TestSpec::reviewer(Qwen)] {
        for sandbox in [SandboxBackend::None, SandboxBackend::Bubblewrap, SandboxBackend::Landlock] {
            assert_eq!(TestSpec { sandbox, ..spec.clone() }.line(), spec.line());
        }
    }
}

#[test]
fn a_configured_key_is_not_overwritten() {
    let mut spec = TestSpec::writer(Qwen);
    spec.agent.env = [("OPENAI_API_KEY".to_owned(), "a-key".to_owned())].into();
    spec.inherits = &["OPENAI_BASE_URL"];
    let shown = spec.shown();
    assert!(shown.contains(r#""selectedType": "openai""#), "{shown}");
    assert!(!shown.contains("OPENAI_BASE_URL="), "{shown}");
}

#[test]
fn the_selected_login_is_kept() {
    let home = tempfile::tempdir().unwrap();
    let directory = home.path().join(".qwen");
    fs::create_dir(&directory).unwrap();
    let settings = r#"{
        "security": { "auth": { "selectedType": "openai", "baseUrl": "https://model.example/v1" } },
        "modelProviders": { "openai": [{ "id": "m", "envKey": "A_KEY" }] },
        "env": { "A_KEY": "a-key" },
        "mcpServers": { "mine": {} }
    }"#;
    fs::write(directory.join("settings.json"), settings).unwrap();
    let spec = TestSpec { user_home: home.path().to_owned(), ..TestSpec::writer(Qwen) };
    let shown = spec.shown();
    assert!(shown.contains(r#""selectedType": "openai""#) && !shown.contains("mine"), "{shown}");
    assert!(shown.contains(r#""envKey": "A_KEY""#) && shown.contains(r#""A_KEY": "a-key""#), "{shown}");
    assert!(shown.contains("\nOPENAI_BASE_URL=https://model.example/v1\n"), "{shown}");
}

#[test]
fn success_requires_a_closing_line() {
    check_success_requires_a_closing_line(Qwen, |line| line.contains(r#""type":"result""#));
}

#[test]
fn any_output_is_parsed() {
    check_any_output_is_parsed(Qwen);
}

#[test]
fn a_provider_that_never_answers_is_an_error() {
    insta::assert_snapshot!(render_recording(Qwen, "unanswered"), @"
    APPROVED: looks fine so far
    [read_file] /work/repo/a.txt
    (waits: retrying the provider)
    (waits: retrying the provider)
    (waits: retrying the provider)
    (waits: retrying the provider)
    (waits: retrying the provider)
    (waits: retrying the provider)
    (waits: retrying the provider)
    (waits: retrying the provider)
    ---
    message: 
    session: c35d8160-81de-4c49-8629-b836ad4a4fc3
    spent by m1: 6940 in (0 cached, 0 written), 25 out
    error: the provider's response was incomplete: all retries failed (InvalidResponse)
    ");
}

#[test]
fn output_after_the_result_needs_another_result() {
    let tools = String::from_utf8(Recording::read(Qwen, "tools").stdout).unwrap();
    let again = tools.trim_end().rsplit_once('\n').unwrap().0;
    let result =
        parse_recording(Qwen, &Recording { code: Some(1), ..Recording::from_stdout(&format!("{tools}{again}\n")) });
    assert_eq!(result.message, "");
    assert_eq!(result.summary.error.unwrap().kind, AgentErrorKind::NoResult);
}
