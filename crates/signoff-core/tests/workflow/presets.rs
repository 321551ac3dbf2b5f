//! Each preset's settings, written out by hand.

use serde_json::{Value, json};
use signoff_core::workflow::{Phase, Workflow, new_project, preset};

fn shipped(name: &str) -> Workflow {
    preset(name).expect("shipped")
}

fn phase_json(phases: &[Phase], name: &str) -> Value {
    let phase = phases.iter().find(|phase| phase.name == name).expect("a phase of this name");
    serde_json::to_value(phase).expect("a phase can be written")
}

fn names(phases: &[Phase]) -> Vec<&str> {
    phases.iter().map(|phase| phase.name.as_str()).collect()
}

fn reviewers(workflow: &Workflow) -> Value {
    serde_json::to_value(&workflow.reviewers).expect("reviewers can be written")
}

/// The settings of the whole workflow: arrangement, completion, landing, and the loop's limits.
fn workflow_settings(workflow: &Workflow) -> Value {
    let mut workflow_settings = serde_json::to_value(workflow).expect("a workflow can be written");
    let fields = workflow_settings.as_object_mut().expect("an object");
    for list in ["name", "description", "reviewers", "before", "phases", "after"] {
        fields.remove(list);
    }
    workflow_settings
}

fn agent(name: &str, role: &str, timeout: Option<&str>) -> Value {
    json!({
        "name": name, "kind": "agent", "role": role, "timeout": timeout, "researchers": 0,
        "per_item": false, "once": false, "mode": null,
    })
}

/// Keys that are omitted when unset.
const OPTIONAL_KEYS: [&str; 3] = ["number", "called", "prefers"];

/// The same rows with some values replaced.
fn with_overrides(mut rows: Value, other: Value) -> Value {
    let (rows_of, other) = (rows.as_object_mut().expect("rows"), other.as_object().expect("rows"));
    for (key, value) in other {
        let is_known = rows_of.insert(key.clone(), value.clone()).is_some();
        assert!(is_known || OPTIONAL_KEYS.contains(&key.as_str()), "unknown row: {key}");
    }
    rows
}

#[test]
fn task_has_one_reviewer_that_is_off_by_default() {
    let task = shipped("task");
    assert_eq!(names(&task.phases), ["implement", "review"]);
    assert_eq!((task.before.len(), task.after.len()), (0, 0));
    assert_eq!(reviewers(&task), json!({ "general": { "kind": "general", "contract": "markdown" } }));
    assert_eq!(phase_json(&task.phases, "implement"), agent("implement", "implement", Some("1h")));
    assert_eq!(
        phase_json(&task.phases, "review"),
        json!({
            "name": "review", "kind": "gate", "per_item": false, "once": false, "mode": null,
            "enabled": false,                           // unless auto_review
            "reviewers": ["general"],
            "fail_on": "LOW",                           // any change requested
            "on_failure": "mini-loop",
            "max_cycles": 3,
            "on_exhausted": "stop", "exhausted_as": "attention",
            "on_unclear": ["retry", "request-changes"],
            "on_discussion": "stop",
            "author_output": false,
            "on_implementer_failure": "fail", "on_reviewer_failure": "fail", "on_fixer_failure": "fail",
            "review_timeout": "10m", "fix_timeout": "30m",
            "rereview": "full",
            "parallel_fixes": false, "fixer": "fix", "restart_to": 0,
            "require_nonce": null, "depth": "standard",
            "max_same_finding": null, "max_noop_fixes": null,
        })
    );
    assert_eq!(
        workflow_settings(&task),
        json!({
            "arrangement": "queue",                     // `jobs` tasks at once
            "completion": "exit",
            "landing": "none",                          // it ends in the task's own branch
            "max_attempts": 50, "max_passes": 10, "max_recoveries": 5, "max_conflicts": 3, "max_rate_limits": 20, "bounds_restarts": true,
            "attempts_exhausted_as": "failed", "checkpoint_interval": null, "modes": [],
        })
    );
}

#[test]
fn slots_shows_the_author_output_and_fails_on_an_unclear_review() {
    let slots = shipped("slots");
    assert_eq!(names(&slots.phases), ["implement", "review"]);
    assert_eq!((slots.before.len(), slots.after.len()), (0, 0));
    assert_eq!(reviewers(&slots), json!({ "general": { "kind": "general", "contract": "json" } }));
    assert_eq!(phase_json(&slots.phases, "implement"), agent("implement", "implement", Some("1h")));
    assert_eq!(
        phase_json(&slots.phases, "review"),
        json!({
            "name": "review", "kind": "gate", "per_item": false, "once": false, "mode": null,
            "enabled": false,                           // unless --review
            "reviewers": ["general"],
            "fail_on": "LOW",                           // drift
            "on_failure": "mini-loop",
            "max_fixes": 5,
            "on_exhausted": "stop", "exhausted_as": "failed",
            "on_unclear": "fail",                       // no fix is tried
            "on_discussion": "ask",                     // its contract has no such verdict
            "author_output": true,
            "on_implementer_failure": "fail", "on_reviewer_failure": "fail", "on_fixer_failure": "fail",
            "review_timeout": "1h", "fix_timeout": "1h",
            "rereview": "full",
            "parallel_fixes": false, "fixer": "fix", "restart_to": 0,
            "require_nonce": null, "depth": "standard",
            "max_same_finding": null, "max_noop_fixes": null,
        })
    );
    assert_eq!(
        workflow_settings(&slots),
        json!({
            "arrangement": "slots",
            "completion": "exit",
            "landing": "each",                          // into the run's branch
            "max_attempts": 50, "max_passes": 10, "max_recoveries": 5, "max_conflicts": 3, "max_rate_limits": 20, "bounds_restarts": true,
            "attempts_exhausted_as": "failed", "checkpoint_interval": null, "modes": [],
        })
    );
}

#[test]
fn plan_has_two_reviewers_and_asks_if_a_review_is_unclear() {
    let plan = shipped("plan");
    assert_eq!(names(&plan.phases), ["implement", "review"]);
    assert_eq!((plan.before.len(), plan.after.len()), (0, 0));
    assert_eq!(
        reviewers(&plan),
        json!({
            "spec": { "kind": "spec", "contract": "xml" },
            "code": { "kind": "code", "contract": "xml" },
        })
    );
    assert_eq!(phase_json(&plan.phases, "implement"), agent("implement", "implement", None));
    assert_eq!(
        phase_json(&plan.phases, "review"),
        json!({
            "name": "review", "kind": "gate", "per_item": false, "once": false, "mode": null,
            "enabled": true,
            "reviewers": ["spec", "code"],
            "fail_on": "MEDIUM",
            "on_failure": "mini-loop",
            "max_cycles": 3,
            "on_exhausted": "ask", "exhausted_as": "failed",
            "on_unclear": ["retry", "ask"],
            "on_discussion": "ask",
            "author_output": false,
            "on_implementer_failure": "ask",
            "on_reviewer_failure": ["retry", "ask"],
            "on_fixer_failure": "ask",
            "review_timeout": "3m", "fix_timeout": null,
            "rereview": "full",                         // by both
            "parallel_fixes": false, "fixer": "fix", "restart_to": 0,
            "require_nonce": null, "depth": "standard",
            "max_same_finding": null, "max_noop_fixes": null,
        })
    );
    assert_eq!(
        workflow_settings(&plan),
        json!({
            "arrangement": "chain",                     // one task at a time
            "completion": "exit",
            "landing": "none",                          // one branch, task after task
            "max_attempts": 50, "max_passes": 10, "max_recoveries": 5, "max_conflicts": 3, "max_rate_limits": 20, "bounds_restarts": true,
            "attempts_exhausted_as": "failed", "checkpoint_interval": null, "modes": [],
        })
    );
}

#[test]
fn loops_ends_as_stuck_and_reviews_the_run() {
    let loops = shipped("loops");
    assert_eq!(names(&loops.before), ["enumerate", "enumerate_review", "plan", "plan_review"]);
    assert_eq!(names(&loops.phases), ["implement", "review"]);
    assert_eq!(names(&loops.after), ["final_review"]);
    assert_eq!(reviewers(&loops), json!({ "general": { "kind": "general", "contract": "auto" } }));
    assert_eq!(phase_json(&loops.phases, "implement"), agent("implement", "implement", Some("1h")));
    let review = json!({
        "name": "review", "kind": "gate", "per_item": false, "once": false, "mode": null,
        "enabled": true,
        "reviewers": ["general"],
        "fail_on": "LOW",                               // not passed
        "on_failure": "mini-loop",
        "max_fixes": 3,                                 // effort medium
        "on_exhausted": "stop", "exhausted_as": "stuck",
        "on_unclear": ["retry", "not-passed"],
        "on_discussion": "ask",
        "author_output": false,
        "on_implementer_failure": "next-attempt",
        "on_reviewer_failure": ["retry", "not-passed"],
        "on_fixer_failure": "next-attempt",
        "review_timeout": "1h", "fix_timeout": "1h",
        "rereview": "full",
        "parallel_fixes": false, "fixer": "fix", "restart_to": 0,
        "require_nonce": null, "depth": "standard",
        "max_same_finding": null, "max_noop_fixes": null,
    });
    assert_eq!(phase_json(&loops.phases, "review"), review);
    assert_eq!(
        workflow_settings(&loops),
        json!({
            "arrangement": "groups",                    // all loops of the group at once
            "completion": "marker",
            "landing": "group",                         // group by group into the run's branch
            "checkpoint_interval": 5,                   // effort medium
            "max_attempts": 50, "max_passes": 10, "max_recoveries": 5, "max_conflicts": 3, "max_rate_limits": 20, "bounds_restarts": true,
            "attempts_exhausted_as": "stuck", "modes": [],
        })
    );
    run_level_reviews_of_loops(&loops, &review);
}

/// A failing review of the run's own work runs that planner again, and in the end fails the run.
fn run_level_reviews_of_loops(loops: &Workflow, review: &Value) {
    let of_the_run = |other: Value| {
        let common = json!({ "exhausted_as": "failed", "on_implementer_failure": ["retry", "stop"] });
        with_overrides(with_overrides(review.clone(), common), other)
    };
    assert_eq!(phase_json(&loops.before, "enumerate"), agent("enumerate", "enumerate", Some("1h")));
    assert_eq!(phase_json(&loops.before, "plan"), agent("plan", "plan", Some("1h")));
    assert_eq!(
        phase_json(&loops.before, "enumerate_review"),
        of_the_run(json!({ "name": "enumerate_review", "fixer": "enumerate" }))
    );
    let plan = json!({ "name": "plan_review", "fixer": "plan", "restart_to": 2 });
    assert_eq!(phase_json(&loops.before, "plan_review"), of_the_run(plan));
    // No agent implements here.
    let last = json!({ "name": "final_review", "on_implementer_failure": "fail" });
    assert_eq!(phase_json(&loops.after, "final_review"), of_the_run(last));
}

#[test]
fn phases_restarts_at_most_gates_and_loops_at_the_code_review() {
    let phases = shipped("phases");
    assert_eq!((phases.before.len(), phases.after.len()), (0, 0));
    assert_eq!(
        names(&phases.phases),
        [
            "brainstorm",
            "plan",
            "plan_review",
            "implement",
            "implement_review",
            "code_review",
            "test",
            "simplify",
            "final_review",
            "codex_final",
        ]
    );
    assert_eq!(
        reviewers(&phases),
        json!({
            "plan": { "kind": "general", "contract": "severity" },
            "code": { "kind": "code", "contract": "severity" },
            "final": { "kind": "general", "contract": "severity" },
            "codex": { "kind": "general", "contract": "severity" },
        })
    );
    assert_eq!(
        workflow_settings(&phases),
        json!({
            "arrangement": "chain", "completion": "exit",
            "landing": "none",                          // one branch
            "max_passes": 10,
            "max_attempts": 50, "max_recoveries": 5, "max_conflicts": 3, "max_rate_limits": 20, "bounds_restarts": true,
            "attempts_exhausted_as": "failed", "checkpoint_interval": null,
            "modes": ["full", "lite"], "tools_in": "full",
        })
    );
}

#[test]
fn the_agents_of_phases() {
    let phases = shipped("phases").phases;
    let phase_json = |name: &str| phase_json(&phases, name);
    let numbered = |name, other: Value| with_overrides(agent(name, name, Some("1h")), other);
    assert_eq!(phase_json("brainstorm"), numbered("brainstorm", json!({ "number": 1, "researchers": 3 })));
    assert_eq!(phase_json("plan"), numbered("plan", json!({ "number": 2, "researchers": 3 })));
    assert_eq!(phase_json("implement"), numbered("implement", json!({ "number": 4, "per_item": true })));
    assert_eq!(phase_json("simplify"), numbered("simplify", json!({ "number": 7 })));
}

#[test]
fn the_gates_of_phases() {
    let phases = shipped("phases").phases;
    let phase_json = |name: &str| phase_json(&phases, name);
    let gate = json!({
        "name": "", "kind": "gate", "per_item": false, "once": false, "mode": null,
        "enabled": true,
        "reviewers": [],
        "fail_on": "LOW",
        "on_failure": "restart",
        "max_fixes": 10,
        "on_exhausted": "stop", "exhausted_as": "failed",
        "on_unclear": ["retry", "stop"],
        "on_discussion": "ask",
        "author_output": false,
        "on_implementer_failure": ["retry", "ask"],
        "on_reviewer_failure": ["retry", "stop"],
        "on_fixer_failure": ["retry", "ask"],
        "review_timeout": "1h", "fix_timeout": "1h",
        "rereview": "full",
        "parallel_fixes": true,                         // one fixer for each independent group of findings
        "fixer": "fix",
        "restart_to": 0,                                // the first phase
        "require_nonce": null, "depth": "standard",
        "max_same_finding": null, "max_noop_fixes": null,
    });
    let gate = |other: Value| with_overrides(gate.clone(), other);
    assert_eq!(phase_json("plan_review"), gate(json!({ "name": "plan_review", "number": 3, "reviewers": ["plan"] })));
    let code = json!({ "name": "code_review", "number": 5, "reviewers": ["code"], "on_failure": "mini-loop" });
    assert_eq!(phase_json("code_review"), gate(code));
    let last = json!({ "name": "final_review", "number": 8, "reviewers": ["final"] });
    assert_eq!(phase_json("final_review"), gate(last));
    assert_eq!(
        phase_json("codex_final"),
        gate(json!({
            "name": "codex_final", "number": 9, "reviewers": ["codex"], "on_failure": "proceed",
            "mode": "full", "once": true, "prefers": "codex",
        }))
    );
    // The gate after `implement` is off until one is configured.
    assert_eq!(
        phase_json("implement_review"),
        gate(json!({
            "name": "implement_review", "called": "implement", "reviewers": ["code"], "on_failure": "mini-loop",
            "enabled": false, "per_item": true,
        }))
    );
    // Tests are judged by exit code, without reviewers and threshold; these keys have their defaults.
    assert_eq!(
        phase_json("test"),
        gate(json!({ "name": "test", "number": 6, "kind": "check", "on_unclear": ["retry", "ask"] }))
    );
}

#[test]
fn a_new_project_has_two_reviewers_and_scoped_rereviews() {
    let new = new_project().expect("shipped");
    assert_eq!(new.name, "task");
    assert_eq!(names(&new.phases), ["implement", "review"]);
    assert_eq!(
        reviewers(&new),
        json!({
            "spec": { "kind": "spec", "contract": "auto" },
            "code": { "kind": "code", "contract": "auto" },
        })
    );
    assert_eq!(phase_json(&new.phases, "implement"), agent("implement", "implement", Some("1h")));
    assert_eq!(
        phase_json(&new.phases, "review"),
        json!({
            "name": "review", "kind": "gate", "per_item": false, "once": false, "mode": null,
            "enabled": true,
            "reviewers": ["spec", "code"],
            "fail_on": "MEDIUM",
            "on_failure": "mini-loop",
            "max_cycles": 3,
            "rereview": "scoped",                       // and one full review before approval
            "on_exhausted": "stop", "exhausted_as": "attention",
            "on_unclear": ["retry", "ask"],
            "on_discussion": "stop",
            "author_output": false,
            "on_implementer_failure": "fail",
            "on_reviewer_failure": ["retry", "ask"],
            "on_fixer_failure": "fail",
            "review_timeout": "10m", "fix_timeout": "30m",
            "parallel_fixes": false, "fixer": "fix", "restart_to": 0,
            "require_nonce": null, "depth": "standard",
            "max_same_finding": 3, "max_noop_fixes": 1, // convergence is guarded
        })
    );
    assert_eq!(workflow_settings(&new), workflow_settings(&shipped("task")));
}

#[test]
fn an_unknown_preset_is_none() {
    for name in ["", "Task", "new_project", "mine"] {
        assert!(preset(name).is_none(), "{name}");
    }
}
