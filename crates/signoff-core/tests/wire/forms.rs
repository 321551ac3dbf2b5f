//! The JSON form of every kind of fact. It is a stable format: later versions must read existing logs.

use signoff_core::wire::{Fact, RunFact, from_json, to_json};

use crate::wire::examples;

#[test]
fn every_fact_round_trips_through_json() {
    for recorded in examples::all().into_iter().chain(examples::inner()) {
        let line = to_json(&recorded).to_string();
        let value = serde_json::from_str(&line).expect("a line is JSON");
        assert_eq!(from_json(&value), Ok(recorded), "{line}");
    }
}

#[test]
fn a_line_has_version_position_time_and_kind() {
    let recorded = examples::all().pop().expect("an example");
    insta::assert_snapshot!(to_json(&recorded), @r#"{"version":1,"run_id":3,"seq":17,"at":"1970-01-01T00:00:00Z","kind":"task.withdrawn","task_id":29,"body":{"by":"ann"}}"#);
}

#[test]
fn every_kind_has_its_name_and_keys() {
    let form = |recorded: &signoff_core::wire::RecordedFact| {
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
    loop.added {"task":29,"title":"Parse the header","branch":"signoff/task-29"}
    loop.governed {"policy":{"workflow":{"name":"task","description":"one task: implement, review, improve until approved","completion":"exit","landing":"none","arrangement":"queue","checkpoint_interval":null,"max_attempts":50,"max_passes":10,"max_recoveries":5,"max_conflicts":3,"max_rate_limits":20,"bounds_restarts":true,"attempts_exhausted_as":"failed","modes":[],"reviewers":{"general":{"kind":"general","contract":"markdown"}},"before":[],"phases":[{"name":"implement","kind":"agent","role":"implement","timeout":"1h","researchers":0,"per_item":false,"once":false,"mode":null},{"name":"review","kind":"gate","enabled":false,"reviewers":["general"],"fail_on":"LOW","on_failure":"mini-loop","max_cycles":3,"on_exhausted":"stop","exhausted_as":"attention","on_unclear":["retry","request-changes"],"on_reviewer_failure":"fail","on_fixer_failure":"fail","on_implementer_failure":"fail","on_discussion":"stop","author_output":false,"parallel_fixes":false,"require_nonce":null,"review_timeout":"10m","fix_timeout":"30m","rereview":"full","depth":"standard","max_same_finding":null,"max_noop_fixes":null,"restart_to":0,"fixer":"fix","per_item":false,"once":false,"mode":null}],"after":[]},"no_ask":false,"fix_needs_review":true}}
    loop.checkpoint_reviewed {"review":{"reviewer":"code","kind":"code","verdict":"changes_requested","confidence":"unstated","findings":[],"minor":[],"checked":[],"summary":"","follow_up_prompt":null,"interpreted_intent":null,"intent_satisfied":"unstated","usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":0},"judged":{"commit":null,"diff_digest":null},"raw":null}}
    loop.placed {"base":"c1","worktree":".signoff/worktrees/task-29"}
    loop.attempt_started {"attempt":4,"launch":{"agent":"claude","model":null,"role":"","reviewer":null,"phase":"","cycle":0,"hold":"landlock"}}
    loop.used {"attempt":4,"usage":{"cost_micro_usd":1,"input_tokens":2,"output_tokens":3,"duration_ms":4}}
    loop.session {"attempt":4,"session":"0195-a1"}
    loop.said {"attempt":4,"line":"Reading src/a.rs"}
    loop.noted {"attempt":4,"note":"your checkout changed"}
    loop.answered {"attempt":4,"answer":{"groups":[["a","b"]]}}
    loop.started {"head":{"commit":"c1","tree":"t1"}}
    loop.base_set {"tree":"t0"}
    loop.findings_inherited {"left":{"entries":[{"finding":{"id":"f1","sources":["code"],"kind":"bug","severity":"important","file":"src/a.rs","line":7,"description":"the error is thrown away","requirement":null,"suggestion":null},"state":"open","seen":[{"pass":1,"phase":1,"cycle":2,"commit":"c1","task":1}],"decisions":[]}],"said":{"f1":[["code","f1"]]}}}
    loop.imported {"head":{"commit":"c1","tree":"t1"},"at":{"pass":2,"phase":3,"item":0},"fixes":1,"findings":[{"id":"f1","sources":["code"],"kind":"bug","severity":"important","file":"src/a.rs","line":7,"description":"the error is thrown away","requirement":null,"suggestion":null}],"earlier":[{"pass":1,"phase":3,"findings":[{"id":"f1","sources":["code"],"kind":"bug","severity":"important","file":"src/a.rs","line":7,"description":"the error is thrown away","requirement":null,"suggestion":null}]}],"gates":[{"phase":1,"item":0,"end":{"noted":{"reason":"cycles_exhausted"}}}]}
    loop.items_planned {"count":2}
    loop.work_ended {"attempt":4,"report":{"complete":{"head":{"commit":"c1","tree":"t1"}}}}
    loop.findings_claimed {"attempt":4,"commit":"c1","claims":[{"finding":"f1","kind":"refuted","evidence":"a macro uses it"}]}
    loop.check_ended {"attempt":4,"report":{"failed":{"findings":[{"id":"f1","sources":["code"],"kind":"bug","severity":"important","file":"src/a.rs","line":7,"description":"the error is thrown away","requirement":null,"suggestion":null}]}}}
    loop.review_arrived {"attempt":4,"review":{"reviewer":"code","kind":"code","verdict":"approved_with_minor","confidence":"unstated","findings":[],"minor":[],"checked":[],"summary":"","follow_up_prompt":null,"interpreted_intent":null,"intent_satisfied":"unstated","usage":{"cost_micro_usd":0,"input_tokens":0,"output_tokens":0,"duration_ms":0},"judged":{"commit":null,"diff_digest":null},"raw":null}}
    loop.fixes_combined {"attempt":4,"head":{"commit":"c1","tree":"t1"}}
    loop.fixes_overlapped {"attempt":4,"kept":[0,2],"head":{"commit":"c1","tree":"t1"}}
    loop.landing_ended {"attempt":4,"report":{"landed":{"commit":"m"}}}
    loop.attempt_failed {"attempt":4,"failure":{"exit":{"code":1}}}
    loop.attempt_lost {"attempt":4,"loss":"crashed"}
    loop.rate_limited {"attempt":4,"plan":{"wait_until":"1970-01-01T00:00:00Z"}}
    loop.budget_reached null
    loop.budget_refused {"attempt":4}
    loop.resumed {"hold":{"rate_limit":{"until":"1970-01-01T00:00:00Z"}}}
    loop.checkpoint_began {"number":2}
    loop.checkpoint_ended {"findings":[],"number":2}
    loop.landing_granted null
    loop.head_moved {"head":{"commit":"c1","tree":"t1"}}
    loop.person_answered {"question":1,"choice":"continue","by":"ann"}
    loop.person_retried {"by":"ann"}
    loop.person_edited {"verdict":"MAX_CYCLES_REACHED","by":"ann","reason":"enough"}
    loop.finding_decided {"finding":"f1","decision":{"state":"out_of_scope","by":{"person":"ann"},"commit":"c1","evidence":"not asked for"}}
    loop.cancelled {"by":"ann"}
    task.added {"spec":{"title":"Parse the header","description":"Parse the header","type":"implement","auto_review":null,"max_review_cycles":null,"effort":null,"model":null,"depends_on":[],"plan":null,"prompt":null,"continues":null,"first_review":null,"answers":null,"guidance":null,"origin":null},"auto_review":true,"max_review_cycles":3}
    task.withdrawn {"by":"ann"}
    "#);
}

#[test]
fn nested_values_have_stable_names() {
    let form = |recorded: &signoff_core::wire::RecordedFact| to_json(recorded)["body"].to_string();
    let forms: Vec<_> = examples::inner().iter().map(form).collect();
    insta::assert_snapshot!(forms.join("\n"), @r#"
    {"attempt":4,"failure":{"signal":{"number":9}}}
    {"attempt":4,"failure":"timed_out"}
    {"attempt":4,"failure":"silent"}
    {"attempt":4,"failure":{"not_started":{"message":"no such file"}}}
    {"attempt":4,"failure":{"rate_limited":{"times":21}}}
    {"attempt":4,"failure":{"rate_limited":{"times":1,"why":{"kind":"overloaded","message":"529 Overloaded"},"too_long":true}}}
    {"attempt":4,"report":{"incomplete":{"head":{"commit":"c1","tree":"t1"}}}}
    {"attempt":4,"report":{"stuck":{"head":{"commit":"c1","tree":"t1"},"reason":"no way"}}}
    {"attempt":4,"report":"passed"}
    {"attempt":4,"report":"nothing_to_check"}
    {"attempt":4,"report":{"sent_back":{"head":{"commit":"c1","tree":"t1"},"findings":[{"id":"f1","sources":["code"],"kind":"bug","severity":"important","file":"src/a.rs","line":7,"description":"the error is thrown away","requirement":null,"suggestion":null}]}}}
    {"attempt":4,"loss":"interrupted"}
    {"attempt":4,"loss":"session_gone"}
    {"attempt":4,"plan":"fall_back","why":{"kind":"overloaded","message":"529 Overloaded"},"turn":{"free":"1970-01-01T00:00:00Z","next":1}}
    {"hold":"budget"}
    {"hold":"checkpoint"}
    {"verdict":"APPROVED","by":"ann","reason":"ann"}
    {"verdict":"CHANGES_REQUESTED","by":"ann","reason":"ann"}
    {"verdict":"MAX_CYCLES_REACHED","by":"ann","reason":"ann"}
    {"verdict":"NEEDS_DISCUSSION","by":"ann","reason":"ann"}
    {"question":1,"choice":"retry","by":"ann"}
    {"question":1,"choice":"proceed","by":"ann"}
    {"question":1,"choice":"skip","by":"ann"}
    {"question":1,"choice":"continue","by":"ann"}
    {"question":1,"choice":"fix","by":"ann"}
    {"question":1,"choice":"restart","by":"ann"}
    {"question":1,"choice":"stop","by":"ann"}
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
fn the_first_fact_of_a_run_contains_its_policy_and_workflow() {
    let opened = to_json(&examples::all()[0]);
    let keys =
        |value: &serde_json::Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>().join(" ");
    let body = &opened["body"];
    let parts = [body, &body["policy"], &body["workflow"], &body["workflow"]["workflow"]];
    insta::assert_snapshot!(parts.map(keys).join("\n"), @"
    policy workflow
    arrangement landing jobs checkpoint_interval keep_going supply stop_marker before after onto_default
    workflow no_ask fix_needs_review
    name description completion landing arrangement checkpoint_interval max_attempts max_passes max_recoveries max_conflicts max_rate_limits bounds_restarts attempts_exhausted_as modes reviewers before phases after
    ");
}
