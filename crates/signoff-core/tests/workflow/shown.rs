//! What `signoff workflow show` prints.

use signoff_core::workflow::{preset, render};

fn shown(name: &str) -> String {
    render(&preset(name).expect("shipped"))
}

#[test]
fn task() {
    insta::assert_snapshot!(shown("task"), @"
    task — one task: implement, review, improve until approved
      arrangement             queue: independent tasks, several at once
      completion              exit: the task is done when its agent exits successfully
      landing                 none: signed-off work stays on its branch
      max_attempts            50, then failed
      max_passes              10
      max_recoveries          5
      max_conflicts           3

    phases
      1. implement — agent (implement)
           timeout                 1h
      2. review — gate, off unless switched on
           reviewers               general (general, markdown)
           fail_on                 LOW
           on_failure              mini-loop
           max_cycles              3 (3 reviews, 2 fixes)
           on_exhausted            stop, as attention
           on_unclear              retry, request-changes
           on_reviewer_failure     fail
           on_fixer_failure        fail
           on_implementer_failure  fail
           on_discussion           stop
           author_output           no
           parallel_fixes          no
           review_timeout          10m
           fix_timeout             30m
           rereview                full
           depth                   standard
           max_same_finding        off
           max_noop_fixes          off
    ");
}

#[test]
fn slots() {
    insta::assert_snapshot!(shown("slots"), @"
    slots — up to N tasks at once from a tracker, each reviewed and fixed in its slot
      arrangement             slots: tasks are picked while slots are free
      completion              exit: the task is done when its agent exits successfully
      landing                 each: signed-off work joins the run's branch at once
      max_attempts            50, then failed
      max_passes              10
      max_recoveries          5
      max_conflicts           3

    phases
      1. implement — agent (implement)
           timeout                 1h
      2. review — gate, off unless switched on
           reviewers               general (general, json)
           fail_on                 LOW
           on_failure              mini-loop
           max_fixes               5 (6 reviews, 5 fixes)
           on_exhausted            stop, as failed
           on_unclear              fail
           on_reviewer_failure     fail
           on_fixer_failure        fail
           on_implementer_failure  fail
           on_discussion           ask
           author_output           yes
           parallel_fixes          no
           review_timeout          1h
           fix_timeout             1h
           rereview                full
           depth                   standard
           max_same_finding        off
           max_noop_fixes          off
           restart_to              implement
    ");
}

#[test]
fn plan() {
    insta::assert_snapshot!(shown("plan"), @"
    plan — the tasks of a plan in order, each reviewed against the spec and for its code at once
      arrangement             chain: one task after the other, each on top of the one before
      completion              exit: the task is done when its agent exits successfully
      landing                 none: signed-off work stays on its branch
      max_attempts            50, then failed
      max_passes              10
      max_recoveries          5
      max_conflicts           3

    phases
      1. implement — agent (implement)
      2. review — gate
           reviewers               spec (spec, xml) ∥ code (code, xml)
           fail_on                 MEDIUM
           on_failure              mini-loop
           max_cycles              3 (3 reviews, 2 fixes)
           on_exhausted            ask
           on_unclear              retry, ask
           on_reviewer_failure     retry, ask
           on_fixer_failure        ask
           on_implementer_failure  ask
           on_discussion           ask
           author_output           no
           parallel_fixes          no
           review_timeout          3m
           rereview                full
           depth                   standard
           max_same_finding        off
           max_noop_fixes          off
           restart_to              implement
    ");
}

#[test]
fn loops() {
    insta::assert_snapshot!(shown("loops"), @"
    loops — a specification split into groups of tasks, all loops of a group at once, each with its reviewer
      arrangement             groups: all tasks of a group at once, group after group
      completion              marker: the last line of the agent's final message says whether its task is done
      landing                 group: a group's work joins the run's branch when all of it is signed off
      max_attempts            50, then stuck
      max_passes              10
      max_recoveries          5
      max_conflicts           3
      checkpoint_interval     5: review all loops every 5 attempts

    before the tasks
      1. enumerate — agent (enumerate)
           timeout                 1h
      2. enumerate_review — gate
           reviewers               general (general, auto)
           fail_on                 LOW
           on_failure              mini-loop
           max_fixes               3 (4 reviews, 3 fixes)
           on_exhausted            stop, as failed
           on_unclear              retry, not-passed
           on_reviewer_failure     retry, not-passed
           on_fixer_failure        next-attempt
           on_implementer_failure  retry, stop
           on_discussion           ask
           author_output           no
           parallel_fixes          no
           review_timeout          1h
           fix_timeout             1h
           rereview                full
           depth                   standard
           max_same_finding        off
           max_noop_fixes          off
           restart_to              enumerate
           fixer                   enumerate
      3. plan — agent (plan)
           timeout                 1h
      4. plan_review — gate
           reviewers               general (general, auto)
           fail_on                 LOW
           on_failure              mini-loop
           max_fixes               3 (4 reviews, 3 fixes)
           on_exhausted            stop, as failed
           on_unclear              retry, not-passed
           on_reviewer_failure     retry, not-passed
           on_fixer_failure        next-attempt
           on_implementer_failure  retry, stop
           on_discussion           ask
           author_output           no
           parallel_fixes          no
           review_timeout          1h
           fix_timeout             1h
           rereview                full
           depth                   standard
           max_same_finding        off
           max_noop_fixes          off
           restart_to              plan
           fixer                   plan

    phases
      1. implement — agent (implement)
           timeout                 1h
      2. review — gate
           reviewers               general (general, auto)
           fail_on                 LOW
           on_failure              mini-loop
           max_fixes               3 (4 reviews, 3 fixes)
           on_exhausted            stop, as stuck
           on_unclear              retry, not-passed
           on_reviewer_failure     retry, not-passed
           on_fixer_failure        next-attempt
           on_implementer_failure  next-attempt
           on_discussion           ask
           author_output           no
           parallel_fixes          no
           review_timeout          1h
           fix_timeout             1h
           rereview                full
           depth                   standard
           max_same_finding        off
           max_noop_fixes          off
           restart_to              implement

    after the tasks
      1. final_review — gate
           reviewers               general (general, auto)
           fail_on                 LOW
           on_failure              mini-loop
           max_fixes               3 (4 reviews, 3 fixes)
           on_exhausted            stop, as failed
           on_unclear              retry, not-passed
           on_reviewer_failure     retry, not-passed
           on_fixer_failure        next-attempt
           on_implementer_failure  fail
           on_discussion           ask
           author_output           no
           parallel_fixes          no
           review_timeout          1h
           fix_timeout             1h
           rereview                full
           depth                   standard
           max_same_finding        off
           max_noop_fixes          off
    ");
}

#[test]
fn phases() {
    insta::assert_snapshot!(shown("phases"), @"
    phases — think, plan, have the plan reviewed, implement, review, test, simplify, review the whole
      arrangement             chain: one task after the other, each on top of the one before
      completion              exit: the task is done when its agent exits successfully
      landing                 none: signed-off work stays on its branch
      max_attempts            50, then failed
      max_passes              10
      max_recoveries          5
      max_conflicts           3
      modes                   full, lite
      tools_in                full: in other modes no phase uses a tool of another program

    phases
      1. brainstorm — agent (brainstorm)
           timeout                 1h
           researchers             3
      2. plan — agent (plan)
           timeout                 1h
           researchers             3
      3. plan_review — gate
           reviewers               plan (general, severity)
           fail_on                 LOW
           on_failure              restart
           max_fixes               10
           on_exhausted            stop, as failed
           on_unclear              retry, stop
           on_reviewer_failure     retry, stop
           on_fixer_failure        retry, ask
           on_implementer_failure  retry, ask
           on_discussion           ask
           author_output           no
           parallel_fixes          yes
           review_timeout          1h
           fix_timeout             1h
           rereview                full
           depth                   standard
           max_same_finding        off
           max_noop_fixes          off
           restart_to              brainstorm
      4. implement — agent (implement), for each item
           timeout                 1h
       + implement_review — gate, off unless switched on, for each item
           reviewers               code (code, severity)
           fail_on                 LOW
           on_failure              mini-loop
           max_fixes               10 (11 reviews, 10 fixes)
           on_exhausted            stop, as failed
           on_unclear              retry, stop
           on_reviewer_failure     retry, stop
           on_fixer_failure        retry, ask
           on_implementer_failure  retry, ask
           on_discussion           ask
           author_output           no
           parallel_fixes          yes
           review_timeout          1h
           fix_timeout             1h
           rereview                full
           depth                   standard
           max_same_finding        off
           max_noop_fixes          off
           restart_to              brainstorm
      5. code_review — gate
           reviewers               code (code, severity)
           fail_on                 LOW
           on_failure              mini-loop
           max_fixes               10 (11 reviews, 10 fixes)
           on_exhausted            stop, as failed
           on_unclear              retry, stop
           on_reviewer_failure     retry, stop
           on_fixer_failure        retry, ask
           on_implementer_failure  retry, ask
           on_discussion           ask
           author_output           no
           parallel_fixes          yes
           review_timeout          1h
           fix_timeout             1h
           rereview                full
           depth                   standard
           max_same_finding        off
           max_noop_fixes          off
           restart_to              brainstorm
      6. test — check
           on_failure              restart
           max_fixes               10
           on_exhausted            stop, as failed
           on_reviewer_failure     retry, stop
           on_fixer_failure        retry, ask
           on_implementer_failure  retry, ask
           parallel_fixes          yes
           review_timeout          1h
           fix_timeout             1h
           max_same_finding        off
           max_noop_fixes          off
           restart_to              brainstorm
      7. simplify — agent (simplify)
           timeout                 1h
      8. final_review — gate
           reviewers               final (general, severity)
           fail_on                 LOW
           on_failure              restart
           max_fixes               10
           on_exhausted            stop, as failed
           on_unclear              retry, stop
           on_reviewer_failure     retry, stop
           on_fixer_failure        retry, ask
           on_implementer_failure  retry, ask
           on_discussion           ask
           author_output           no
           parallel_fixes          yes
           review_timeout          1h
           fix_timeout             1h
           rereview                full
           depth                   standard
           max_same_finding        off
           max_noop_fixes          off
           restart_to              brainstorm
      9. codex_final — gate, once, only in mode full
           prefers                 an agent of kind codex
           reviewers               codex (general, severity)
           fail_on                 LOW
           on_failure              proceed
           max_fixes               10
           on_exhausted            stop, as failed
           on_unclear              retry, stop
           on_reviewer_failure     retry, stop
           on_fixer_failure        retry, ask
           on_implementer_failure  retry, ask
           on_discussion           ask
           author_output           no
           parallel_fixes          yes
           review_timeout          1h
           fix_timeout             1h
           rereview                full
           depth                   standard
           max_same_finding        off
           max_noop_fixes          off
           restart_to              brainstorm
    ");
}
