//! Each fault in each API dialect.

use serde_json::Value;
use signoff_testkit::model::{Fault, ModelError, ModelRule, ModelScript, ModelTurn, ScriptedModel, TokenUsage};

use crate::model::client::{ask, dialects, post, streamed};

fn model(turn: ModelTurn) -> ScriptedModel {
    ScriptedModel::start(ModelScript::new().rule(ModelRule::named("build").prompt_contains("build").turn(turn)))
}

fn in_each_language(turn: &ModelTurn, stream: bool) -> String {
    let answers = dialects().map(|(path, body)| {
        let (path, body) = if stream { streamed((path, body)) } else { (path.to_owned(), body) };
        post(&model(turn.clone()), &path, &body).to_string()
    });
    answers.join("\n\n")
}

#[test]
fn a_limit_says_how_long_to_wait() {
    insta::assert_snapshot!(in_each_language(&ModelTurn::say("Here").rate_limit(3), true));
}

#[test]
fn errors_have_the_form_of_each_protocol() {
    let mut answers = String::new();
    for status in [400, 401, 403, 404, 500, 503, 529] {
        for (path, body) in dialects() {
            let answer = post(&model(ModelTurn::say("Here").fail(status)), path, &body);
            answers.push_str(&format!("{} {}\n", answer.status, answer.body));
        }
    }
    insta::assert_snapshot!(answers);
}

#[test]
fn an_error_can_come_within_a_stream() {
    let refusal = ModelError { message: Some("Overloaded".to_owned()), ..ModelError::new(529) };
    insta::assert_snapshot!(in_each_language(&ModelTurn::say("Here").fault(Fault::InStream(refusal)), true));
}

#[test]
fn a_stream_error_without_streaming_is_an_error_status() {
    let turn = ModelTurn::say("Here").fault(Fault::InStream(ModelError::new(529)));
    for (path, body) in dialects() {
        assert_eq!(post(&model(turn.clone()), path, &body).status, 529);
    }
}

#[test]
fn a_stream_can_be_cut() {
    insta::assert_snapshot!(in_each_language(&ModelTurn::say("Here").fault(Fault::Cut), true));
}

#[test]
fn an_answer_can_be_cut() {
    for (path, body) in dialects() {
        let answer = post(&model(ModelTurn::say("Here").fault(Fault::Cut)), path, &body);
        assert!(!answer.is_complete, "{answer}");
    }
}

#[test]
fn what_comes_can_be_no_json() {
    insta::assert_snapshot!(in_each_language(&ModelTurn::say("Here").fault(Fault::Malformed), true));
    for (path, body) in dialects() {
        let answer = post(&model(ModelTurn::say("Here").fault(Fault::Malformed)), path, &body);
        assert!(answer.is_complete);
        assert!(serde_json::from_str::<Value>(&answer.body).is_err(), "{answer}");
    }
}

#[test]
fn a_hanging_reply_hangs_until_the_model_ends() {
    for asked in dialects() {
        let (path, body) = streamed(asked);
        let model = model(ModelTurn::say("Here").fault(Fault::Hang));
        let mut asked = ask(&model, "POST", &path, &body.to_string());
        asked.wait_for("data:");
        drop(model);
        assert!(!asked.answer().is_complete);
    }
}

#[test]
fn a_delayed_reply_is_served() {
    let model = model(ModelTurn::say("Here").fault(Fault::Delay(1)).usage(TokenUsage::new(5, 1)));
    let [(path, body), ..] = dialects();
    assert_eq!(post(&model, path, &body).status, 200);
    assert_eq!(model.rule_usage("build").input, 5);
}

#[test]
fn a_fault_ends_after_its_count() {
    let model = model(ModelTurn::say("Here").fail(500).times(2).usage(TokenUsage::new(5, 1)));
    let [(path, body), ..] = dialects();
    let statuses = [(); 4].map(|()| post(&model, path, &body).status);
    assert_eq!(statuses, [500, 500, 200, 200]);
    let expected = TokenUsage { requests: 2, ..TokenUsage::new(10, 2) };
    assert_eq!(model.rule_usage("build"), expected, "only what came is served");
    assert_eq!(model.replies_of_rule("build").len(), 4);
}

#[test]
fn interrupted_replies_are_counted_separately() {
    let turn = ModelTurn::say("Here").usage(TokenUsage::new(5, 1));
    let faults =
        [Fault::Cut, Fault::Malformed, Fault::InStream(ModelError::new(500)), Fault::Status(ModelError::new(500))];
    let counts = faults.map(|fault| {
        let model = model(turn.clone().fault(fault));
        let (path, body) = streamed(dialects()[0].clone());
        post(&model, &path, &body);
        (model.rule_usage("build").requests, model.interrupted_usage("build").input)
    });
    assert_eq!(counts, [(0, 5), (0, 5), (0, 5), (0, 0)]);
}
