//! Each way to go wrong, in each language.

use serde_json::Value;
use signoff_testkit::model::{Fault, Refusal, Rule, Script, ScriptedModel, Turn, Usage};

use crate::client::{ask, dialects, post, streamed};

fn model(turn: Turn) -> ScriptedModel {
    ScriptedModel::start(Script::new().rule(Rule::named("build").asked_for("build").turn(turn)))
}

fn in_each_language(turn: &Turn, stream: bool) -> String {
    let answers = dialects().map(|(path, body)| {
        let (path, body) = if stream { streamed((path, body)) } else { (path.to_owned(), body) };
        post(&model(turn.clone()), &path, &body).to_string()
    });
    answers.join("\n\n")
}

#[test]
fn a_limit_says_how_long_to_wait() {
    insta::assert_snapshot!(in_each_language(&Turn::say("Here").limit(3), true));
}

#[test]
fn errors_are_told_in_each_languages_own_form() {
    let mut told = String::new();
    for status in [400, 401, 403, 404, 500, 503, 529] {
        for (path, body) in dialects() {
            let answer = post(&model(Turn::say("Here").refuse(status)), path, &body);
            told.push_str(&format!("{} {}\n", answer.status, answer.body));
        }
    }
    insta::assert_snapshot!(told);
}

#[test]
fn an_error_can_come_within_a_stream() {
    let refusal = Refusal { message: Some("Overloaded".to_owned()), ..Refusal::new(529) };
    insta::assert_snapshot!(in_each_language(&Turn::say("Here").fault(Fault::Told(refusal)), true));
}

#[test]
fn an_error_within_a_stream_that_is_none_is_an_error() {
    let turn = Turn::say("Here").fault(Fault::Told(Refusal::new(529)));
    for (path, body) in dialects() {
        assert_eq!(post(&model(turn.clone()), path, &body).status, 529);
    }
}

#[test]
fn a_stream_can_be_cut() {
    insta::assert_snapshot!(in_each_language(&Turn::say("Here").fault(Fault::Cut), true));
}

#[test]
fn an_answer_can_be_cut() {
    for (path, body) in dialects() {
        let answer = post(&model(Turn::say("Here").fault(Fault::Cut)), path, &body);
        assert!(!answer.is_whole, "{answer}");
    }
}

#[test]
fn what_comes_can_be_no_json() {
    insta::assert_snapshot!(in_each_language(&Turn::say("Here").fault(Fault::Malformed), true));
    for (path, body) in dialects() {
        let answer = post(&model(Turn::say("Here").fault(Fault::Malformed)), path, &body);
        assert!(answer.is_whole);
        assert!(serde_json::from_str::<Value>(&answer.body).is_err(), "{answer}");
    }
}

#[test]
fn one_that_hangs_does_so_until_the_model_ends() {
    for asked in dialects() {
        let (path, body) = streamed(asked);
        let model = model(Turn::say("Here").fault(Fault::Hang));
        let mut asked = ask(&model, "POST", &path, &body.to_string());
        asked.wait_for("data:");
        drop(model);
        assert!(!asked.answer().is_whole);
    }
}

#[test]
fn a_late_reply_is_a_reply() {
    let model = model(Turn::say("Here").fault(Fault::Delay(1)).usage(Usage::new(5, 1)));
    let [(path, body), ..] = dialects();
    assert_eq!(post(&model, path, &body).status, 200);
    assert_eq!(model.served("build").input, 5);
}

#[test]
fn a_fault_heals_after_its_times() {
    let model = model(Turn::say("Here").refuse(500).times(2).usage(Usage::new(5, 1)));
    let [(path, body), ..] = dialects();
    let statuses = [(); 4].map(|()| post(&model, path, &body).status);
    assert_eq!(statuses, [500, 500, 200, 200]);
    let expected = Usage { requests: 2, ..Usage::new(10, 2) };
    assert_eq!(model.served("build"), expected, "only what came is served");
    assert_eq!(model.requests_of("build").len(), 4);
}

#[test]
fn what_broke_off_is_told_apart() {
    let turn = Turn::say("Here").usage(Usage::new(5, 1));
    let faults =
        [Fault::Cut, Fault::Malformed, Fault::Told(Refusal::new(500)), Fault::Status(Refusal::new(500))];
    let told = faults.map(|fault| {
        let model = model(turn.clone().fault(fault));
        let (path, body) = streamed(dialects()[0].clone());
        post(&model, &path, &body);
        (model.served("build").requests, model.broken("build").input)
    });
    assert_eq!(told, [(0, 5), (0, 5), (0, 5), (0, 0)]);
}
