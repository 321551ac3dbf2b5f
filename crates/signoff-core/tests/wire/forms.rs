//! The JSON of every kind. These words are an interface: logs of today are read by programs of tomorrow.

use signoff_core::wire::{Fact, RunFact, from_json, to_json};

use crate::examples;

#[test]
fn every_fact_comes_back_as_it_was() {
    for recorded in examples::all().into_iter().chain(examples::inner()) {
        let line = to_json(&recorded).to_string();
        let value = serde_json::from_str(&line).expect("a line is JSON");
        assert_eq!(from_json(&value), Ok(recorded), "{line}");
    }
}

#[test]
fn a_line_carries_version_place_time_and_kind() {
    let recorded = examples::all().pop().expect("an example");
    insta::assert_snapshot!(to_json(&recorded), @r#"{"at":"1970-01-01T00:00:00Z","body":{"by":"ann"},"kind":"task.withdrawn","run_id":3,"seq":17,"task_id":29,"version":1}"#);
}

#[test]
fn every_kind_has_its_name_and_keys() {
    let form = |recorded: &signoff_core::wire::Recorded| {
        let value = to_json(recorded);
        let opened = matches!(recorded.fact, Fact::Run(RunFact::Opened { .. }));
        let body = if opened { "…".to_owned() } else { value["body"].to_string() };
        format!("{} {body}", value["kind"].as_str().unwrap_or_default())
    };
    let forms: Vec<_> = examples::all().iter().map(form).collect();
    insta::assert_snapshot!(forms.join("\n"), @r#"
    run.opened …
    run.specified {"name":"SPEC.md","text":"Two endpoints.\n"}
    run.started null
    run.preparation_ended {"outcome":"completed_with_issues"}
    run.groups_planned {"groups":[["a","b"],["c"]]}
    run.task_picked {"loop_id":"a"}
    run.nothing_to_pick null
    run.picking_stopped null
    run.task_closed {"loop_id":"a"}
    run.loop_moved {"loop_id":"a","standing":{"ended":{"approved":{"commit":"c1"}}}}
    run.attempt_spent {"since_checkpoint":{"a":5}}
    run.checkpoint_reviewed {"loop_id":"a"}
    run.final_review_ended {"outcome":{"accepted":{"by":"ann"}}}
    run.landed null
    run.cancelled {"by":"ann"}
    loop.added {"branch":"signoff/task-29","task":29,"title":"Parse the header"}
    loop.governed {"policy":{"no_ask":false,"workflow":{"after":[],"arrangement":"queue","attempts_exhausted_as":"failed","before":[],"checkpoint_interval":null,"completion":"exit","description":"one task: implement, review, improve until approved","landing":"none","max_attempts":50,"max_conflicts":3,"max_passes":10,"max_rate_limits":20,"max_recoveries":5,"modes":[],"name":"task","phases":[{"kind":"agent","mode":null,"name":"implement","once":false,"per_item":false,"researchers":0,"role":"implement","timeout":"1h"},{"author_output":false,"depth":"standard","enabled":false,"exhausted_as":"attention","fail_on":"LOW","fix_timeout":"30m","fixer":"fix","kind":"gate","max_cycles":3,"max_noop_fixes":null,"max_same_finding":null,"mode":null,"name":"review","on_discussion":"stop","on_exhausted":"stop","on_failure":"mini-loop","on_fixer_failure":"fail","on_implementer_failure":"fail","on_reviewer_failure":"fail","on_unclear":"request-changes","once":false,"parallel_fixes":false,"per_item":false,"require_nonce":false,"rereview":"full","restart_to":0,"review_timeout":"10m","reviewers":["general"]}],"reviewers":{"general":{"contract":"markdown","kind":"general"}}}}}
    loop.checkpoint_reviewed {"review":{"checked":[],"confidence":"unstated","findings":[],"follow_up_prompt":null,"intent_satisfied":"unstated","interpreted_intent":null,"judged":{"commit":null,"diff_digest":null},"kind":"code","minor":[],"raw":null,"reviewer":"code","summary":"","usage":{"cost_micro_usd":0,"duration_ms":0,"input_tokens":0,"output_tokens":0},"verdict":"changes_requested"}}
    loop.placed {"base":"c1","worktree":".signoff/worktrees/task-29"}
    loop.attempt_started {"attempt":4,"launch":{"agent":"claude","cycle":0,"hold":"landlock","model":null,"phase":"","reviewer":null,"role":""}}
    loop.used {"attempt":4,"usage":{"cost_micro_usd":1,"duration_ms":4,"input_tokens":2,"output_tokens":3}}
    loop.session {"attempt":4,"session":"0195-a1"}
    loop.said {"attempt":4,"line":"Reading src/a.rs"}
    loop.noted {"attempt":4,"note":"your checkout changed"}
    loop.answered {"answer":{"groups":[["a","b"]]},"attempt":4}
    loop.started {"head":{"commit":"c1","tree":"t1"}}
    loop.imported {"at":{"item":0,"pass":2,"phase":3},"earlier":[{"findings":[{"description":"the error is thrown away","file":"src/a.rs","id":"f1","kind":"bug","line":7,"requirement":null,"severity":"important","sources":["code"],"suggestion":null}],"pass":1,"phase":3}],"findings":[{"description":"the error is thrown away","file":"src/a.rs","id":"f1","kind":"bug","line":7,"requirement":null,"severity":"important","sources":["code"],"suggestion":null}],"fixes":1,"gates":[{"end":{"noted":{"reason":"cycles_exhausted"}},"item":0,"phase":1}],"head":{"commit":"c1","tree":"t1"}}
    loop.items_planned {"count":2}
    loop.work_ended {"attempt":4,"report":{"complete":{"head":{"commit":"c1","tree":"t1"}}}}
    loop.check_ended {"attempt":4,"report":{"failed":{"findings":[{"description":"the error is thrown away","file":"src/a.rs","id":"f1","kind":"bug","line":7,"requirement":null,"severity":"important","sources":["code"],"suggestion":null}]}}}
    loop.review_arrived {"attempt":4,"review":{"checked":[],"confidence":"unstated","findings":[],"follow_up_prompt":null,"intent_satisfied":"unstated","interpreted_intent":null,"judged":{"commit":null,"diff_digest":null},"kind":"code","minor":[],"raw":null,"reviewer":"code","summary":"","usage":{"cost_micro_usd":0,"duration_ms":0,"input_tokens":0,"output_tokens":0},"verdict":"approved_with_minor"}}
    loop.fixes_combined {"attempt":4,"head":{"commit":"c1","tree":"t1"}}
    loop.fixes_overlapped {"attempt":4,"head":{"commit":"c1","tree":"t1"},"kept":[0,2]}
    loop.landing_ended {"attempt":4,"report":{"landed":{"commit":"m"}}}
    loop.attempt_failed {"attempt":4,"failure":{"exit":{"code":1}}}
    loop.attempt_lost {"attempt":4,"loss":"crashed"}
    loop.rate_limited {"attempt":4,"plan":{"wait_until":"1970-01-01T00:00:00Z"}}
    loop.budget_reached null
    loop.budget_refused {"attempt":4}
    loop.resumed {"hold":{"rate_limit":{"until":"1970-01-01T00:00:00Z"}}}
    loop.checkpoint_ended {"findings":[]}
    loop.landing_granted null
    loop.head_moved {"head":{"commit":"c1","tree":"t1"}}
    loop.person_answered {"by":"ann","choice":"continue","question":1}
    loop.person_retried {"by":"ann"}
    loop.person_edited {"by":"ann","reason":"enough","verdict":"MAX_CYCLES_REACHED"}
    loop.finding_decided {"decision":{"by":{"person":"ann"},"commit":"c1","evidence":"not asked for","state":"out_of_scope"},"finding":"f1"}
    loop.cancelled {"by":"ann"}
    task.added {"auto_review":true,"max_review_cycles":3,"spec":{"answers":null,"auto_review":null,"continues":null,"depends_on":[],"description":"Parse the header","effort":null,"first_review":null,"guidance":null,"max_review_cycles":null,"model":null,"origin":null,"plan":null,"prompt":null,"title":"Parse the header","type":"implement"}}
    task.withdrawn {"by":"ann"}
    "#);
}

#[test]
fn what_can_stand_inside_has_its_words() {
    let form = |recorded: &signoff_core::wire::Recorded| to_json(recorded)["body"].to_string();
    let forms: Vec<_> = examples::inner().iter().map(form).collect();
    insta::assert_snapshot!(forms.join("\n"), @r#"
    {"attempt":4,"failure":{"signal":{"number":9}}}
    {"attempt":4,"failure":"timed_out"}
    {"attempt":4,"failure":"silent"}
    {"attempt":4,"failure":{"not_started":{"message":"no such file"}}}
    {"attempt":4,"failure":{"rate_limited":{"times":21}}}
    {"attempt":4,"failure":{"rate_limited":{"times":1,"too_long":true,"why":{"kind":"overloaded","message":"529 Overloaded"}}}}
    {"attempt":4,"report":{"incomplete":{"head":{"commit":"c1","tree":"t1"}}}}
    {"attempt":4,"report":{"stuck":{"head":{"commit":"c1","tree":"t1"},"reason":"no way"}}}
    {"attempt":4,"report":"passed"}
    {"attempt":4,"report":"nothing_to_check"}
    {"attempt":4,"report":{"sent_back":{"findings":[{"description":"the error is thrown away","file":"src/a.rs","id":"f1","kind":"bug","line":7,"requirement":null,"severity":"important","sources":["code"],"suggestion":null}],"head":{"commit":"c1","tree":"t1"}}}}
    {"attempt":4,"loss":"interrupted"}
    {"attempt":4,"loss":"session_gone"}
    {"attempt":4,"plan":"fall_back","why":{"kind":"overloaded","message":"529 Overloaded"}}
    {"hold":"budget"}
    {"hold":"checkpoint"}
    {"by":"ann","reason":"ann","verdict":"APPROVED"}
    {"by":"ann","reason":"ann","verdict":"CHANGES_REQUESTED"}
    {"by":"ann","reason":"ann","verdict":"MAX_CYCLES_REACHED"}
    {"by":"ann","reason":"ann","verdict":"NEEDS_DISCUSSION"}
    {"by":"ann","choice":"retry","question":1}
    {"by":"ann","choice":"proceed","question":1}
    {"by":"ann","choice":"skip","question":1}
    {"by":"ann","choice":"continue","question":1}
    {"by":"ann","choice":"fix","question":1}
    {"by":"ann","choice":"restart","question":1}
    {"by":"ann","choice":"stop","question":1}
    {"loop_id":"a","standing":"queued"}
    {"loop_id":"a","standing":"active"}
    {"loop_id":"a","standing":"at_checkpoint"}
    {"loop_id":"a","standing":"waiting"}
    {"loop_id":"a","standing":"ready"}
    {"loop_id":"a","standing":"landing"}
    {"loop_id":"a","standing":{"ended":"unreviewed"}}
    {"loop_id":"a","standing":{"ended":"exhausted"}}
    {"loop_id":"a","standing":{"ended":"discussion"}}
    {"loop_id":"a","standing":{"ended":"failed"}}
    {"loop_id":"a","standing":{"ended":"stuck"}}
    {"loop_id":"a","standing":{"ended":"cancelled"}}
    "#);
}

#[test]
fn a_run_opens_with_all_that_holds_for_it() {
    let opened = to_json(&examples::all()[0]);
    let keys = |value: &serde_json::Value| {
        value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>().join(" ")
    };
    let body = &opened["body"];
    let parts = [body, &body["policy"], &body["workflow"], &body["workflow"]["workflow"]];
    insta::assert_snapshot!(parts.map(keys).join("\n"), @"
    policy workflow
    after arrangement before checkpoint_interval jobs keep_going landing onto_default stop_marker supply
    no_ask workflow
    after arrangement attempts_exhausted_as before checkpoint_interval completion description landing max_attempts max_conflicts max_passes max_rate_limits max_recoveries modes name phases reviewers
    ");
}
