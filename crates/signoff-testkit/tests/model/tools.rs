//! Maps script actions to the tools that the real programs declare.
//!
//! `testdata/tools` holds the declared tools without their descriptions: of writers, of reviewers, and for models that
//! get other tools.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use signoff_testkit::model::{Dialect, ModelRule, ModelScript, ModelTurn, ScriptedModel};

use crate::model::client::post;

fn declared(name: &str) -> Value {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("testdata/tools/{name}.json"));
    serde_json::from_slice(&fs::read(file).expect("a recording")).expect("JSON")
}

/// A request with these tools, from a client whose working directory is `/w`.
fn request(declared: &Value) -> (&'static str, Value) {
    let (prompt, tools) = ("Primary working directory: /w\nDo it", &declared["tools"]);
    let messages = json!([{ "role": "user", "content": prompt }]);
    match declared["dialect"].as_str().expect("a name") {
        "anthropic" => ("/v1/messages", json!({ "messages": messages, "tools": tools })),
        "responses" => ("/v1/responses", json!({ "input": prompt, "tools": tools })),
        "chat" => ("/v1/chat/completions", json!({ "messages": messages, "tools": tools })),
        _ => {
            let contents = json!([{ "role": "user", "parts": [{ "text": prompt }] }]);
            ("/v1beta/models/m:generateContent", json!({ "contents": contents, "tools": tools }))
        }
    }
}

/// Lists the tool call for each action, or that no tool fits.
fn table(name: &str) -> String {
    let actions = [
        ModelTurn::silent().write("a.txt", "one\n{two}"),
        ModelTurn::silent().read("/etc/it's"),
        ModelTurn::silent().shell("git push"),
        ModelTurn::silent().mcp("set_loop_review_result", json!({ "passed": true })),
        ModelTurn::silent().exact("Nonsense", json!({})),
        ModelTurn::silent().insist("Nonsense", json!({ "deep": ["{cwd}"] })),
    ];
    let lines = actions.map(|turn| {
        let model = ScriptedModel::start(ModelScript::new().rule(ModelRule::named("do").turn(turn)));
        let (path, body) = request(&declared(name));
        assert_eq!(post(&model, path, &body).status, 200);
        let reply = model.replies_of_rule("do").remove(0);
        let calls = reply.calls.iter().map(|(tool, input)| format!("{tool} {input}"));
        let missing = reply.undeclared.iter().map(|what| format!("undeclared: {what}"));
        calls.chain(missing).collect::<Vec<_>>().join("\n")
    });
    lines.join("\n")
}

#[test]
fn claude() {
    insta::assert_snapshot!(table("claude"), @r#"
    Write {"file_path":"/w/a.txt","content":"one\n{two}"}
    Read {"file_path":"/etc/it's"}
    Bash {"command":"git push"}
    mcp__signoff__set_loop_review_result {"passed":true}
    undeclared: Nonsense
    Nonsense {"deep":["/w"]}
    "#);
}

#[test]
fn claude_as_reviewer() {
    insta::assert_snapshot!(table("claude-reviewer"), @r#"
    undeclared: write: /w/a.txt
    Read {"file_path":"/etc/it's"}
    undeclared: shell: git push
    mcp__signoff__set_loop_review_result {"passed":true}
    undeclared: Nonsense
    Nonsense {"deep":["/w"]}
    "#);
}

#[test]
fn claude_that_defers_tools() {
    insta::assert_snapshot!(table("claude-deferring"), @r#"
    Write {"file_path":"/w/a.txt","content":"one\n{two}"}
    Read {"file_path":"/etc/it's"}
    Bash {"command":"git push"}
    ToolSearch {"query":"set_loop_review_result","max_results":1}
    undeclared: Nonsense
    Nonsense {"deep":["/w"]}
    "#);
}

#[test]
fn codex() {
    insta::assert_snapshot!(table("codex"), @r#"
    exec_command {"cmd":"cat > '/w/a.txt' <<'SCRIPTED'\none\n{two}\nSCRIPTED\n"}
    exec_command {"cmd":"cat '/etc/it'\\''s'"}
    exec_command {"cmd":"git push"}
    mcp__signoff/set_loop_review_result {"passed":true}
    undeclared: Nonsense
    Nonsense {"deep":["/w"]}
    "#);
}

#[test]
fn codex_with_patches_and_deferred_tools() {
    insta::assert_snapshot!(table("codex-patching"), @r#"
    apply_patch {"input":"*** Begin Patch\n*** Add File: /w/a.txt\n+one\n+{two}\n*** End Patch\n"}
    exec_command {"cmd":"cat '/etc/it'\\''s'"}
    exec_command {"cmd":"git push"}
    tool_search {"query":"set_loop_review_result"}
    undeclared: Nonsense
    Nonsense {"deep":["/w"]}
    "#);
}

#[test]
fn gemini() {
    insta::assert_snapshot!(table("gemini"), @r#"
    write_file {"file_path":"/w/a.txt","content":"one\n{two}"}
    read_file {"file_path":"/etc/it's"}
    run_shell_command {"command":"git push"}
    mcp_signoff_set_loop_review_result {"passed":true}
    undeclared: Nonsense
    Nonsense {"deep":["/w"]}
    "#);
}

#[test]
fn gemini_with_a_newer_model() {
    insta::assert_snapshot!(table("gemini-3"), @r#"
    write_file {"file_path":"/w/a.txt","content":"one\n{two}"}
    read_file {"file_path":"/etc/it's"}
    run_shell_command {"command":"git push"}
    mcp_signoff_set_loop_review_result {"passed":true}
    undeclared: Nonsense
    Nonsense {"deep":["/w"]}
    "#);
}

#[test]
fn gemini_that_plans() {
    insta::assert_snapshot!(table("gemini-plan"), @r#"
    write_file {"file_path":"/w/a.txt","content":"one\n{two}"}
    read_file {"file_path":"/etc/it's"}
    undeclared: shell: git push
    undeclared: mcp: set_loop_review_result
    undeclared: Nonsense
    Nonsense {"deep":["/w"]}
    "#);
}

#[test]
fn opencode() {
    insta::assert_snapshot!(table("opencode"), @r#"
    write {"filePath":"/w/a.txt","content":"one\n{two}"}
    read {"filePath":"/etc/it's"}
    bash {"command":"git push"}
    signoff_set_loop_review_result {"passed":true}
    undeclared: Nonsense
    Nonsense {"deep":["/w"]}
    "#);
}

#[test]
fn opencode_as_reviewer() {
    insta::assert_snapshot!(table("opencode-reviewer"), @r#"
    undeclared: write: /w/a.txt
    read {"filePath":"/etc/it's"}
    undeclared: shell: git push
    signoff_set_loop_review_result {"passed":true}
    undeclared: Nonsense
    Nonsense {"deep":["/w"]}
    "#);
}

/// An old form of codex's shell tool, with other required arguments.
#[test]
fn lists_and_further_arguments_are_filled() {
    let shell = json!({
        "type": "object",
        "properties": {
            "command": { "type": "array", "items": { "type": "string" } },
            "description": { "type": "string" },
            "mode": { "enum": ["fast", "slow"] },
        },
        "required": ["command", "description", "mode"],
    });
    let model =
        ScriptedModel::start(ModelScript::new().rule(ModelRule::named("do").turn(ModelTurn::silent().shell("ls"))));
    let tools = json!([{ "type": "function", "name": "shell", "parameters": shell }]);
    let answer = post(&model, "/v1/responses", &json!({ "input": "Do it", "tools": tools })).json();
    insta::assert_snapshot!(answer["output"][0]["arguments"].as_str().unwrap(), @r#"{"command":["bash","-lc","ls"],"description":"scripted","mode":"fast"}"#);
}

#[test]
fn a_deferred_tool_is_searched_once_and_the_search_is_no_turn() {
    let script = ModelScript::new().rule(
        ModelRule::named("report")
            .turn(ModelTurn::say("Reporting.").mcp("set_loop_review_result", json!({ "passed": true })))
            .say("Reported."),
    );
    let model = ScriptedModel::start(script);
    let tools = declared("codex-patching")["tools"].clone();
    let found = json!([{ "type": "namespace", "name": "mcp__signoff", "tools": [
        { "type": "function", "name": "set_loop_review_result", "parameters": {} }
    ] }]);
    let prompt = json!({ "role": "user", "content": "Do it" });
    let search = json!({ "type": "tool_search_call", "call_id": "1" });
    let ask = |found: &Value| {
        let output = json!({ "type": "tool_search_output", "call_id": "1", "tools": found });
        let body = json!({ "input": [prompt, search, output], "tools": tools });
        post(&model, "/v1/responses", &body);
    };
    post(&model, "/v1/responses", &json!({ "input": [prompt], "tools": tools }));
    ask(&found);
    ask(&json!([]));
    let replies = model.replies_of_rule("report");
    let calls: Vec<_> =
        replies.iter().map(|reply| (reply.turn, reply.calls.clone(), reply.undeclared.clone())).collect();
    insta::assert_snapshot!(serde_json::to_string_pretty(&calls).unwrap(), @r#"
    [
      [
        0,
        [
          [
            "tool_search",
            {
              "query": "set_loop_review_result"
            }
          ]
        ],
        []
      ],
      [
        0,
        [
          [
            "mcp__signoff/set_loop_review_result",
            {
              "passed": true
            }
          ]
        ],
        []
      ],
      [
        0,
        [],
        [
          "mcp: set_loop_review_result"
        ]
      ]
    ]
    "#);
    assert!(replies.iter().all(|reply| reply.dialect == Dialect::Responses));
}
