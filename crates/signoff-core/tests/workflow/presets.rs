//! Row by row what each preset says, stated by hand. The words are those people write.

use serde_json::{Value, json};
use signoff_core::workflow::{Phase, Workflow, new_project, preset};

fn shipped(name: &str) -> Workflow {
    preset(name).expect("shipped")
}

fn said(phases: &[Phase], name: &str) -> Value {
    let phase = phases.iter().find(|phase| phase.name == name).expect("a phase of this name");
    serde_json::to_value(phase).expect("a phase can be written")
}

fn names(phases: &[Phase]) -> Vec<&str> {
    phases.iter().map(|phase| phase.name.as_str()).collect()
}

fn reviewers(workflow: &Workflow) -> Value {
    serde_json::to_value(&workflow.reviewers).expect("reviewers can be written")
}

/// How tasks are arranged, when one is done, where it lands, and the loop's own bounds.
fn frame(workflow: &Workflow) -> Value {
    let mut frame = serde_json::to_value(workflow).expect("a workflow can be written");
    let fields = frame.as_object_mut().expect("an object");
    for list in ["name", "description", "reviewers", "before", "phases", "after"] {
        fields.remove(list);
    }
    frame
}

fn agent(name: &str, role: &str, timeout: Option<&str>) -> Value {
    json!({
        "name": name, "kind": "agent", "role": role, "timeout": timeout, "researchers": 0,
        "per_item": false, "once": false, "mode": null,
    })
}

/// Rows that are not there where nothing is said.
const SAID_BY_FEW: [&str; 3] = ["number", "called", "prefers"];

/// The same rows with some of them said otherwise.
fn but(mut rows: Value, other: Value) -> Value {
    let (rows_of, other) = (rows.as_object_mut().expect("rows"), other.as_object().expect("rows"));
    for (key, value) in other {
        let said_before = rows_of.insert(key.clone(), value.clone()).is_some();
        assert!(said_before || SAID_BY_FEW.contains(&key.as_str()), "{key} is a row");
    }
    rows
}

#[test]
fn task_is_implement_then_one_reviewer_when_asked_for() {
    let task = shipped("task");
    assert_eq!(names(&task.phases), ["implement", "review"]);
    assert_eq!((task.before.len(), task.after.len()), (0, 0));
    assert_eq!(reviewers(&task), json!({ "general": { "kind": "general", "contract": "markdown" } }));
    assert_eq!(said(&task.phases, "implement"), agent("implement", "implement", Some("1h")));
    assert_eq!(
        said(&task.phases, "review"),
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
        frame(&task),
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
fn slots_shows_the_author_s_output_and_fails_at_the_first_broken_answer() {
    let slots = shipped("slots");
    assert_eq!(names(&slots.phases), ["implement", "review"]);
    assert_eq!((slots.before.len(), slots.after.len()), (0, 0));
    assert_eq!(reviewers(&slots), json!({ "general": { "kind": "general", "contract": "json" } }));
    assert_eq!(said(&slots.phases, "implement"), agent("implement", "implement", Some("1h")));
    assert_eq!(
        said(&slots.phases, "review"),
        json!({
            "name": "review", "kind": "gate", "per_item": false, "once": false, "mode": null,
            "enabled": false,                           // unless --review
            "reviewers": ["general"],
            "fail_on": "LOW",                           // drift
            "on_failure": "mini-loop",
            "max_fixes": 5,
            "on_exhausted": "stop", "exhausted_as": "failed",
            "on_unclear": "fail",                       // no fix is tried
            "on_discussion": "ask",                     // its contract cannot say so
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
        frame(&slots),
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
fn plan_has_two_reviewers_at_once_and_asks_when_in_doubt() {
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
    assert_eq!(said(&plan.phases, "implement"), agent("implement", "implement", None));
    assert_eq!(
        said(&plan.phases, "review"),
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
        frame(&plan),
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
fn loops_gets_stuck_rather_than_failing_and_reviews_the_run_itself() {
    let loops = shipped("loops");
    assert_eq!(names(&loops.before), ["enumerate", "enumerate_review", "plan", "plan_review"]);
    assert_eq!(names(&loops.phases), ["implement", "review"]);
    assert_eq!(names(&loops.after), ["final_review"]);
    assert_eq!(reviewers(&loops), json!({ "general": { "kind": "general", "contract": "auto" } }));
    assert_eq!(said(&loops.phases, "implement"), agent("implement", "implement", Some("1h")));
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
    assert_eq!(said(&loops.phases, "review"), review);
    assert_eq!(
        frame(&loops),
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
        but(but(review.clone(), common), other)
    };
    assert_eq!(said(&loops.before, "enumerate"), agent("enumerate", "enumerate", Some("1h")));
    assert_eq!(said(&loops.before, "plan"), agent("plan", "plan", Some("1h")));
    assert_eq!(
        said(&loops.before, "enumerate_review"),
        of_the_run(json!({ "name": "enumerate_review", "fixer": "enumerate" }))
    );
    let plan = json!({ "name": "plan_review", "fixer": "plan", "restart_to": 2 });
    assert_eq!(said(&loops.before, "plan_review"), of_the_run(plan));
    // No agent implements here.
    let last = json!({ "name": "final_review", "on_implementer_failure": "fail" });
    assert_eq!(said(&loops.after, "final_review"), of_the_run(last));
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
        frame(&phases),
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
    let said = |name: &str| said(&phases, name);
    let numbered = |name, other: Value| but(agent(name, name, Some("1h")), other);
    assert_eq!(said("brainstorm"), numbered("brainstorm", json!({ "number": 1, "researchers": 3 })));
    assert_eq!(said("plan"), numbered("plan", json!({ "number": 2, "researchers": 3 })));
    assert_eq!(said("implement"), numbered("implement", json!({ "number": 4, "per_item": true })));
    assert_eq!(said("simplify"), numbered("simplify", json!({ "number": 7 })));
}

#[test]
fn the_gates_of_phases() {
    let phases = shipped("phases").phases;
    let said = |name: &str| said(&phases, name);
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
    let gate = |other: Value| but(gate.clone(), other);
    assert_eq!(said("plan_review"), gate(json!({ "name": "plan_review", "number": 3, "reviewers": ["plan"] })));
    let code = json!({ "name": "code_review", "number": 5, "reviewers": ["code"], "on_failure": "mini-loop" });
    assert_eq!(said("code_review"), gate(code));
    let last = json!({ "name": "final_review", "number": 8, "reviewers": ["final"] });
    assert_eq!(said("final_review"), gate(last));
    assert_eq!(
        said("codex_final"),
        gate(json!({
            "name": "codex_final", "number": 9, "reviewers": ["codex"], "on_failure": "proceed",
            "mode": "full", "once": true, "prefers": "codex",
        }))
    );
    // Implementing has no gate of its own until one is configured.
    assert_eq!(
        said("implement_review"),
        gate(json!({
            "name": "implement_review", "called": "implement", "reviewers": ["code"], "on_failure": "mini-loop",
            "enabled": false, "per_item": true,
        }))
    );
    // The tests are judged by exit code: no reviewers and no bar; what they say on those is the default.
    assert_eq!(
        said("test"),
        gate(json!({ "name": "test", "number": 6, "kind": "check", "on_unclear": ["retry", "ask"] }))
    );
}

#[test]
fn a_new_project_has_two_reviewers_and_looks_at_the_fix_before_the_whole() {
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
    assert_eq!(said(&new.phases, "implement"), agent("implement", "implement", Some("1h")));
    assert_eq!(
        said(&new.phases, "review"),
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
    assert_eq!(frame(&new), frame(&shipped("task")));
}

#[test]
fn a_name_that_is_no_preset_is_none() {
    for name in ["", "Task", "new_project", "mine"] {
        assert!(preset(name).is_none(), "{name}");
    }
}
