//! The same reply in each API dialect, as one response and streamed.

use serde_json::Value;
use signoff_testkit::model::{ModelRule, ModelScript, ModelTurn, ScriptedModel, TokenUsage};

use crate::model::client::{dialects, get, post, streamed};

fn model() -> ScriptedModel {
    let usage = TokenUsage::new(100, 7).with_cached(60).with_written(10);
    let turn = ModelTurn::say("Here it is.").write("/w/a.txt", "hi\n").usage(usage);
    ScriptedModel::start(ModelScript::new().rule(ModelRule::named("build").prompt_contains("build").turn(turn)))
}

fn full_reply(at: usize) -> String {
    let (path, body) = &dialects()[at];
    pretty(post(&model(), path, body).json())
}

fn pretty(value: Value) -> String {
    serde_json::to_string_pretty(&value).expect("JSON")
}

fn stream(at: usize) -> String {
    let (path, body) = streamed(dialects()[at].clone());
    post(&model(), &path, &body).to_string()
}

#[test]
fn anthropic() {
    insta::assert_snapshot!("anthropic_at_once", full_reply(0));
    insta::assert_snapshot!("anthropic_streamed", stream(0));
}

#[test]
fn responses() {
    insta::assert_snapshot!("responses_at_once", full_reply(1));
    insta::assert_snapshot!("responses_streamed", stream(1));
}

#[test]
fn chat() {
    insta::assert_snapshot!("chat_at_once", full_reply(2));
    insta::assert_snapshot!("chat_streamed", stream(2));
}

#[test]
fn gemini() {
    insta::assert_snapshot!("gemini_at_once", full_reply(3));
    insta::assert_snapshot!("gemini_streamed", stream(3));
}

#[test]
fn side_requests_are_answered() {
    let model = model();
    insta::assert_snapshot!(pretty(get(&model, "/v1/models").json()), @r#"
    {
      "object": "list",
      "has_more": false,
      "data": [
        {
          "id": "scripted",
          "object": "model",
          "type": "model",
          "display_name": "scripted",
          "created_at": "2026-01-01T00:00:00Z"
        }
      ],
      "models": [
        {
          "name": "models/scripted",
          "slug": "scripted"
        }
      ]
    }
    "#);
    let [(_, body), _, _, _] = dialects();
    insta::assert_snapshot!(post(&model, "/v1/messages/count_tokens", &body).body, @r#"{"input_tokens":64}"#);
    insta::assert_snapshot!(post(&model, "/v1/responses/input_tokens", &body).body, @r#"{"object":"response.input_tokens","input_tokens":64}"#);
    insta::assert_snapshot!(post(&model, "/v1beta/models/m:countTokens", &body).body, @r#"{"totalTokens":64}"#);
    insta::assert_snapshot!(get(&model, "/v1/responses"), @r#"
    404
    content-type: application/json

    {"error":{"message":"/v1/responses is not served here"}}
    "#);
    insta::assert_snapshot!(post(&model, "/api/event_logging/batch", &body), @r#"
    404
    content-type: application/json

    {"error":{"message":"/api/event_logging/batch is not served here"}}
    "#);
    let kinds: Vec<_> = model.requests().iter().map(|seen| format!("{} {}", seen.path, kind(seen))).collect();
    insta::assert_snapshot!(kinds.join("\n"), @r#"
    /v1/models "models"
    /v1/messages/count_tokens "count"
    /v1/responses/input_tokens "count"
    /v1beta/models/m:countTokens "count"
    /v1/responses "unknown"
    /api/event_logging/batch "unknown"
    "#);
    assert_eq!(model.default_usage(), TokenUsage::default());
}

fn kind(seen: &signoff_testkit::model::RecordedModelRequest) -> String {
    serde_json::to_value(seen).expect("JSON")["kind"].to_string()
}

#[test]
fn invalid_json_is_refused() {
    let model = model();
    let answer = crate::model::client::ask(&model, "POST", "/v1/messages", "{").answer();
    assert_eq!(answer.status, 400);
}
