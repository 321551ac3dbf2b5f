//! Selection of the rule and the turn that answer a request.

use serde_json::{Value, json};
use signoff_testkit::model::{ModelRule, ModelScript, ModelTurn, ScriptedModel};

use crate::model::client::{dialects, post};

fn script() -> ModelScript {
    ModelScript::new()
        .find("nonce", "nonce is `([^`]+)`")
        .rule(ModelRule::named("build").matching(r"build (?P<what>\w+)").say("First {what}.").say("Then {what}."))
        .rule(ModelRule::named("fix").prompt_contains("fix").say("Fixed with {nonce} in {cwd} by {model}; {other} {}."))
        .rule(ModelRule::named("small").model("mini").say("So small."))
        .otherwise(ModelTurn::say("What?"))
}

/// Returns the model's reply to messages, each with a role and a text.
fn reply_to(model: &ScriptedModel, messages: &[(&str, &str)]) -> String {
    reply_to_body(model, json!({ "model": "m", "messages": conversation(messages), "tools": tools() }))
}

fn reply_to_body(model: &ScriptedModel, body: Value) -> String {
    let answer = post(model, "/v1/chat/completions", &body).json();
    answer["choices"][0]["message"]["content"].as_str().expect("a text").to_owned()
}

fn conversation(messages: &[(&str, &str)]) -> Value {
    messages.iter().map(|(role, text)| json!({ "role": role, "content": text })).collect()
}

fn tools() -> Value {
    json!([{ "type": "function", "function": { "name": "bash", "parameters": {} } }])
}

#[test]
fn the_turn_is_derived_from_the_request() {
    let model = ScriptedModel::start(script());
    let mut messages = vec![("system", "You may build things"), ("user", "Please build boats")];
    assert_eq!(reply_to(&model, &messages), "First boats.");
    assert_eq!(reply_to(&model, &messages), "First boats.", "a retry is answered as before");
    messages.extend([("assistant", "First boats."), ("tool", "done"), ("user", "(a reminder)")]);
    assert_eq!(reply_to(&model, &messages), "Then boats.");
    messages.extend([("assistant", "Then boats."), ("tool", "done")]);
    assert_eq!(reply_to(&model, &messages), "Then boats.", "the last turn repeats");
    messages.extend([("assistant", "Then boats."), ("user", "Now build cars")]);
    assert_eq!(reply_to(&model, &messages), "First cars.", "a resumed session begins anew");
    let turns: Vec<_> = model.replies_of_rule("build").iter().map(|reply| reply.turn).collect();
    assert_eq!(turns, [0, 0, 1, 2, 0]);
}

#[test]
fn consecutive_items_of_one_answer_are_one_turn() {
    let model = ScriptedModel::start(script());
    let input = json!([
        { "type": "message", "role": "user", "content": [{ "type": "input_text", "text": "build it" }] },
        { "type": "reasoning", "summary": [] },
        { "type": "message", "role": "assistant", "content": [{ "type": "output_text", "text": "First it." }] },
        { "type": "function_call", "name": "a", "arguments": "{}", "call_id": "1" },
        { "type": "function_call", "name": "a", "arguments": "{}", "call_id": "2" },
        { "type": "function_call_output", "call_id": "1", "output": "x" },
        { "type": "function_call_output", "call_id": "2", "output": "y" },
    ]);
    let tools = json!([{ "type": "function", "name": "a", "parameters": {} }]);
    post(&model, "/v1/responses", &json!({ "input": input, "tools": tools }));
    let reply = model.replies_of_rule("build").remove(0);
    assert_eq!((reply.turn, reply.result.as_str()), (1, "x\ny"));
}

#[test]
fn turns_are_counted_in_each_dialect() {
    let model = ScriptedModel::start(script());
    let anthropic = json!({ "tools": [{ "name": "Bash" }], "messages": [
        { "role": "user", "content": [{ "type": "text", "text": "a reminder" }, { "type": "text", "text": "build it" }] },
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "1", "name": "Bash", "input": {} }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "1", "content": "x" }] },
    ] });
    post(&model, "/v1/messages", &anthropic);
    let gemini = json!({ "tools": [{ "functionDeclarations": [{ "name": "a" }] }], "contents": [
        { "role": "user", "parts": [{ "text": "a reminder" }, { "text": "build it" }] },
        { "role": "model", "parts": [{ "functionCall": { "name": "a", "args": {} } }] },
        { "role": "user", "parts": [{ "functionResponse": { "name": "a", "response": { "output": "x" } } }] },
    ] });
    post(&model, "/v1beta/models/m:generateContent", &gemini);
    let calls: Vec<_> = model.replies_of_rule("build").into_iter().map(|reply| (reply.turn, reply.result)).collect();
    assert_eq!(calls, [(1, "x".to_owned()), (1, "x".to_owned())]);
}

#[test]
fn placeholders_are_filled_from_the_request() {
    let model = ScriptedModel::start(script());
    let messages = [("system", "Working directory: /a b/c\nBe good."), ("user", "fix it; your nonce is `n1`")];
    assert_eq!(reply_to(&model, &messages), "Fixed with n1 in /a b/c by m; {other} {}.");
}

#[test]
fn the_working_directory_is_found_in_each_prompt_format() {
    let words = [
        "<env>\n  Working directory: /w\n  Workspace root folder: /",
        " - Primary working directory: /w\n - Is a git repository: true",
        "<environment_context>\n  <cwd>/w</cwd>\n  <shell>bash</shell>",
        "temporary directory is: /tmp/x\n- **Workspace Directories:**\n  - /w\n- **Directory Structure:**",
    ];
    for words in words {
        let model = ScriptedModel::start(script());
        assert!(reply_to(&model, &[("user", words), ("user", "fix it")]).contains("in /w by"), "{words}");
    }
}

#[test]
fn rules_without_text_condition_come_last() {
    let model = ScriptedModel::start(script());
    let body =
        |text: &str| json!({ "model": "mini", "messages": [{ "role": "user", "content": text }], "tools": tools() });
    assert_eq!(reply_to_body(&model, body("build it")), "First it.");
    assert_eq!(reply_to_body(&model, body("hello")), "So small.");
    assert_eq!(reply_to(&model, &[("user", "hello")]), "What?");
}

#[test]
fn a_request_without_tools_is_a_side_request() {
    let model = ScriptedModel::start(
        script().rule(ModelRule::named("talk").prompt_contains("talk").toolless().say("Talking.")),
    );
    let body = |text: &str| json!({ "model": "m", "messages": [{ "role": "user", "content": text }] });
    assert_eq!(reply_to_body(&model, body("A title for: build it")), "What?");
    assert_eq!(reply_to_body(&model, body("talk")), "Talking.");
    let sides: Vec<_> = model.requests().iter().map(|seen| seen.reply().unwrap().side).collect();
    assert_eq!(sides, [true, false]);
    assert_eq!((model.rule_usage("build").requests, model.rule_usage("talk").requests), (0, 1));
    assert_eq!(model.default_usage().requests, 1);
}

#[test]
fn a_side_request_for_data_gets_data() {
    let model = ScriptedModel::start(script());
    let schema = json!({
        "type": "object",
        "properties": { "title": { "type": "string" }, "sure": { "type": "boolean" }, "why": { "type": ["string", "null"] } },
        "required": ["title", "sure"],
    });
    let format = json!({ "type": "json_schema", "json_schema": { "schema": schema } });
    let body = json!({ "messages": conversation(&[("user", "build it")]), "response_format": format });
    insta::assert_snapshot!(reply_to_body(&model, body), @r#"{"title":"scripted","sure":false}"#);
}

#[test]
fn credentials_are_recorded_but_not_serialized() {
    let model = ScriptedModel::start(script());
    let [(path, body), ..] = dialects();
    post(&model, path, &body);
    let seen = model.wait_for_request(1);
    assert_eq!(seen.authorization.as_ref().unwrap().value, "Bearer key");
    assert!(!serde_json::to_string(&seen).unwrap().contains("Bearer"));
}

#[test]
fn tests_can_wait_for_a_request() {
    let model = ScriptedModel::start(script());
    std::thread::scope(|scope| {
        scope.spawn(|| reply_to(&model, &[("user", "build it")]));
        model.wait_for("build", 1);
    });
    assert_eq!(model.rule_usage("build").requests, 1);
}
