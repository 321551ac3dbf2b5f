//! The phases preset: mini-loops, restarts, checks and parallel fixes.

use signoff_core::ledger::FindingState;
use signoff_core::machine::{Event, Job, JobKind, Policy};
use signoff_core::policy::{Bound, EscalationPolicy, FailureAction, OnExhausted, OnFailure};
use signoff_core::workflow::preset;

use crate::machine::story::Story;

fn policy() -> Policy {
    let mut policy = Policy::new(preset("phases").expect("shipped"));
    for phase in &mut policy.workflow.phases {
        if let signoff_core::workflow::PhaseKind::Agent { researchers, .. } = &mut phase.kind {
            *researchers = 0;
        }
    }
    policy
}

fn to_code_review(story: Story) -> Story {
    story.works().works().approves("plan").works()
}

#[test]
fn a_whole_iteration_with_a_restart_mini_loops_and_a_failing_test() {
    let story = Story::new(policy()).works().works().objects("plan", &["plan.md"]);
    let story = to_code_review(story).objects("code", &["a.rs"]).works().objects("code", &["a.rs"]).works();
    let story = story.approves("code").check_fails();
    let story = to_code_review(story).approves("code").check_passes().works();
    insta::assert_snapshot!(story.approves("final").approves("codex").transcript(), @"
    started                            → a1 brainstorm [brainstorm]
    the agent completes its work       → a2 plan [plan]
    the agent completes its work       → a3 review 1 of c2 by plan [plan_review]
    plan objects to plan.md            → a4 brainstorm [brainstorm pass 2]
    the agent completes its work       → a5 plan [plan pass 2]
    the agent completes its work       → a6 review 1 of c4 by plan [plan_review pass 2]
    plan approves                      → a7 implement [implement pass 2]
    the agent completes its work       → a8 review 1 of c5 by code [code_review pass 2]
    code objects to a.rs               → a9 fix 1 (a.rs) [code_review pass 2]
    the agent completes its work       → a10 review 2 of c6 by code [code_review pass 2]
    code objects to a.rs               → a11 fix 2 (a.rs) [code_review pass 2]
    the agent completes its work       → a12 review 3 of c7 by code [code_review pass 2]
    code approves                      → a13 check 1 [test pass 2]
    the checks fail                    → a14 brainstorm [brainstorm pass 3]
    the agent completes its work       → a15 plan [plan pass 3]
    the agent completes its work       → a16 review 1 of c9 by plan [plan_review pass 3]
    plan approves                      → a17 implement [implement pass 3]
    the agent completes its work       → a18 review 1 of c10 by code [code_review pass 3]
    code approves                      → a19 check 1 [test pass 3]
    the checks pass                    → a20 simplify [simplify pass 3]
    the agent completes its work       → a21 review 1 of c11 by final [final_review pass 3]
    final approves                     → a22 review 1 of c11 by codex [codex_final pass 3]
    codex approves                     → END approved, APPROVED
    ");
}

#[test]
fn researchers_come_first_and_a_failed_one_is_skipped() {
    let policy = Policy::new(preset("phases").expect("shipped"));
    let story = Story::new(policy).works().writer_fails().writer_fails().works();
    insta::assert_snapshot!(story.works().transcript(), @"
    started                            → a1 research 0 for brainstorm [brainstorm]; a2 research 1 for brainstorm [brainstorm]; a3 research 2 for brainstorm [brainstorm]
    the agent completes its work       → –
    the agent fails                    → a4 research 1 for brainstorm [brainstorm]
    the agent fails                    → –
    the agent completes its work       → a5 brainstorm [brainstorm]
    the agent completes its work       → a6 research 0 for plan [plan]; a7 research 1 for plan [plan]; a8 research 2 for plan [plan]
    ");
}

#[test]
fn the_last_review_notes_its_findings_and_proceeds() {
    let story = to_code_review(Story::new(policy())).approves("code").check_passes().works();
    let transcript = story.approves("final").objects("codex", &["a.rs"]).transcript();
    insta::assert_snapshot!(transcript.lines().last().unwrap_or_default(), @"codex objects to a.rs              → END completed_with_issues (findings_noted), CHANGES_REQUESTED");
}

#[test]
fn lite_mode_has_no_last_review() {
    let lite = policy().workflow.in_mode("lite").expect("a mode");
    let story = to_code_review(Story::new(Policy::new(lite))).approves("code").check_passes().works();
    let transcript = story.approves("final").transcript();
    insta::assert_snapshot!(transcript.lines().last().unwrap_or_default(), @"final approves                     → END approved, APPROVED");
}

#[test]
fn restarts_end_with_the_passes() {
    let mut policy = policy();
    policy.workflow.limits.max_passes = 2;
    let mut story = Story::new(policy);
    for _ in 0..2 {
        story = story.works().works().objects("plan", &["plan.md"]);
    }
    insta::assert_snapshot!(story.transcript(), @"
    started                            → a1 brainstorm [brainstorm]
    the agent completes its work       → a2 plan [plan]
    the agent completes its work       → a3 review 1 of c2 by plan [plan_review]
    plan objects to plan.md            → a4 brainstorm [brainstorm pass 2]
    the agent completes its work       → a5 plan [plan pass 2]
    the agent completes its work       → a6 review 1 of c4 by plan [plan_review pass 2]
    plan objects to plan.md            → END failed (passes_exhausted), CHANGES_REQUESTED
    ");
}

/// The result when the plan review objects once more than its bound on restarts allows.
#[test]
fn the_bound_of_a_gate_counts_the_restarts_it_causes() {
    let end = |bounds_restarts: bool, on_exhausted: OnExhausted| {
        let mut policy = policy();
        policy.workflow.limits.bounds_restarts = bounds_restarts;
        for gate_policy in policy.workflow.phases.iter_mut().filter_map(|phase| phase.policy_mut()) {
            gate_policy.gate.bound = Bound::MaxFixes(1);
            gate_policy.gate.on_exhausted = on_exhausted;
        }
        let mut story = Story::new(policy);
        for _ in 0..2 {
            story = story.works().works().objects("plan", &["plan.md"]);
        }
        story
    };
    let last = |story: Story| {
        let transcript = story.transcript();
        let last = transcript.lines().last().unwrap_or_default();
        last.split_once("→ ").map(|(_, effects)| effects.to_owned()).unwrap_or_default()
    };
    let ways = [OnExhausted::Stop, OnExhausted::Ask, OnExhausted::Restart, OnExhausted::Proceed];
    let transcript: Vec<_> =
        ways.iter().map(|way| format!("{:8} {}", crate::machine::story::text(way), last(end(true, *way)))).collect();
    insta::assert_snapshot!(transcript.join("\n"), @"
    stop     END failed (cycles_exhausted), CHANGES_REQUESTED
    ask      q1 exhausted: continue|proceed|stop|restart
    restart  a7 brainstorm [brainstorm pass 3]
    proceed  a7 implement [implement pass 2]
    ");
    // A person grants one more pass.
    insta::assert_snapshot!(last(end(true, OnExhausted::Stop).retry()), @"a7 brainstorm [brainstorm pass 3]");
    // Runs from logs of earlier versions do not count restarts.
    insta::assert_snapshot!(last(end(false, OnExhausted::Stop)), @"a7 brainstorm [brainstorm pass 3]");
}

#[test]
fn findings_in_three_files_are_fixed_in_parallel() {
    let story = to_code_review(Story::new(policy())).objects("code", &["a.rs", "b.rs", "c.rs"]);
    let story = story.works().works().works().combines();
    let transcript = story.transcript();
    insta::assert_snapshot!(transcript.lines().skip(5).collect::<Vec<_>>().join("\n"), @"
    code objects to a.rs b.rs c.rs     → a6 fix 1 (a.rs) [code_review]; a7 fix 1 (b.rs) [code_review]; a8 fix 1 (c.rs) [code_review]
    the agent completes its work       → –
    the agent completes its work       → –
    the agent completes its work       → a9 combine
    the fixes fit together             → a10 review 2 of c7 by code [code_review]
    ");
}

#[test]
fn overlapping_fixes_are_repeated_sequentially() {
    let story = to_code_review(Story::new(policy())).objects("code", &["a.rs", "b.rs", "c.rs"]);
    let story = story.works().works().works().overlaps(&[0]).works().works();
    let transcript = story.transcript();
    insta::assert_snapshot!(transcript.lines().skip(8).collect::<Vec<_>>().join("\n"), @"
    the agent completes its work       → a9 combine
    the fixes overlap                  → a10 fix 1 (b.rs) [code_review]
    the agent completes its work       → a11 fix 1 (c.rs) [code_review]
    the agent completes its work       → a12 review 2 of c9 by code [code_review]
    ");
}

#[test]
fn each_item_of_the_plan_is_implemented_and_reviewed() {
    let mut policy = policy();
    for phase in policy.workflow.phases.iter_mut().filter(|phase| phase.name == "implement_review") {
        phase.policy_mut().expect("a gate").gate.enabled = true;
    }
    let story = Story::new(policy).works().then("the plan has two items", Event::ItemsPlanned { count: 2 });
    let story = story.works().approves("plan");
    let story = story.works().approves("code").works().objects("code", &["b.rs"]).works().approves("code");
    let transcript = story.transcript();
    insta::assert_snapshot!(transcript.lines().skip(4).collect::<Vec<_>>().join("\n"), @"
    plan approves                      → a4 implement [implement]
    the agent completes its work       → a5 review 1 of c3 by code [implement_review]
    code approves                      → a6 implement [implement]
    the agent completes its work       → a7 review 2 of c4 by code [implement_review]
    code objects to b.rs               → a8 fix 2 (b.rs) [implement_review]
    the agent completes its work       → a9 review 3 of c5 by code [implement_review]
    code approves                      → a10 review 1 of c5 by code [code_review]
    ");
}

#[test]
fn notes_on_one_item_do_not_affect_the_next() {
    let mut policy = policy();
    for phase in policy.workflow.phases.iter_mut().filter(|phase| phase.name == "implement_review") {
        let gate = &mut phase.policy_mut().expect("a gate").gate;
        (gate.enabled, gate.bound, gate.on_exhausted) = (true, Bound::MaxFixes(0), OnExhausted::Proceed);
    }
    let story = Story::new(policy).works().then("the plan has two items", Event::ItemsPlanned { count: 2 });
    let story = story.works().approves("plan").works().objects("code", &["a.rs"]).works();
    let story = story.approves("code");
    let [entry] = story.state.ledger.entries() else { panic!("there is one finding") };
    assert_eq!(entry.state, FindingState::Open, "the review of b.rs does not cover a.rs");
    let transcript = story.transcript();
    insta::assert_snapshot!(transcript.lines().skip(5).collect::<Vec<_>>().join("\n"), @"
    the agent completes its work       → a5 review 1 of c3 by code [implement_review]
    code objects to a.rs               → a6 implement [implement]
    the agent completes its work       → a7 review 2 of c4 by code [implement_review]
    code approves                      → a8 review 1 of c4 by code [code_review]
    ");
}

/// The result at the code review for every `on_failure` and `on_exhausted`, with one fix allowed.
#[test]
fn every_combination_of_failure_and_exhaustion() {
    let mut table = String::new();
    for on_failure in [OnFailure::MiniLoop, OnFailure::Restart, OnFailure::Proceed, OnFailure::Stop] {
        for on_exhausted in [OnExhausted::Stop, OnExhausted::Ask, OnExhausted::Restart, OnExhausted::Proceed] {
            let mut policy = policy();
            for gate_policy in policy.workflow.phases.iter_mut().filter_map(|phase| phase.policy_mut()) {
                gate_policy.gate.on_failure = on_failure;
                gate_policy.gate.on_exhausted = on_exhausted;
                gate_policy.gate.bound = Bound::MaxFixes(1);
            }
            let mut story = to_code_review(Story::new(policy)).objects("code", &["a.rs"]);
            if on_failure == OnFailure::MiniLoop {
                story = story.works().objects("code", &["a.rs"]);
            }
            let transcript = story.transcript();
            let last = transcript.lines().last().and_then(|line| line.split_once(" → ")).map_or("", |(_, what)| what);
            let words = (crate::machine::story::text(&on_failure), crate::machine::story::text(&on_exhausted));
            table.push_str(&format!("{:<10} {:<8} {last}\n", words.0, words.1));
        }
    }
    insta::assert_snapshot!(table, @"
    mini-loop  stop     END failed (cycles_exhausted), CHANGES_REQUESTED
    mini-loop  ask      q1 exhausted: continue|proceed|stop|restart
    mini-loop  restart  a8 brainstorm [brainstorm pass 2]
    mini-loop  proceed  a8 check 1 [test]
    restart    stop     a6 brainstorm [brainstorm pass 2]
    restart    ask      a6 brainstorm [brainstorm pass 2]
    restart    restart  a6 brainstorm [brainstorm pass 2]
    restart    proceed  a6 brainstorm [brainstorm pass 2]
    proceed    stop     a6 check 1 [test]
    proceed    ask      a6 check 1 [test]
    proceed    restart  a6 check 1 [test]
    proceed    proceed  a6 check 1 [test]
    stop       stop     END failed (gate_failed), CHANGES_REQUESTED
    stop       ask      END failed (gate_failed), CHANGES_REQUESTED
    stop       restart  END failed (gate_failed), CHANGES_REQUESTED
    stop       proceed  END failed (gate_failed), CHANGES_REQUESTED
    ");
}

#[test]
fn unlimited_retries_end_with_the_attempts() {
    let mut policy = policy();
    policy.workflow.limits.max_attempts = 4;
    for gate_policy in policy.workflow.phases.iter_mut().filter_map(|phase| phase.policy_mut()) {
        gate_policy.gate.bound = Bound::Unlimited;
    }
    let mut story = to_code_review(Story::new(policy));
    for _ in 0..3 {
        story = story.objects("code", &["a.rs"]).works();
    }
    let transcript = story.objects("code", &["a.rs"]).transcript();
    insta::assert_snapshot!(transcript.lines().last().unwrap_or_default(), @"code objects to a.rs               → END failed (attempts_exhausted), CHANGES_REQUESTED");
}

#[test]
fn repeated_reviews_without_a_fix_end_with_the_attempts() {
    let mut policy = policy();
    policy.workflow.limits.max_attempts = 4;
    for gate_policy in policy.workflow.phases.iter_mut().filter_map(|phase| phase.policy_mut()) {
        gate_policy.gate.bound = Bound::Unlimited;
        gate_policy.gate.on_reviewer_failure = EscalationPolicy::new(&[FailureAction::NotPassed]);
    }
    let mut story = to_code_review(Story::new(policy));
    for _ in 0..5 {
        story = story.times_out("code");
    }
    let story = story.retry().times_out("code").retry().approves("code");
    insta::assert_snapshot!(last(story, 9), @"
    code times out                     → a6 review 2 of c3 by code [code_review]
    code times out                     → a7 review 3 of c3 by code [code_review]
    code times out                     → a8 review 4 of c3 by code [code_review]
    code times out                     → a9 review 5 of c3 by code [code_review]
    code times out                     → END failed (attempts_exhausted), CHANGES_REQUESTED
    a person retries                   → a10 review 6 of c3 by code [code_review]
    code times out                     → END failed (attempts_exhausted), CHANGES_REQUESTED
    a person retries                   → a11 review 7 of c3 by code [code_review]
    code approves                      → a12 check 1 [test]
    ");
}

#[test]
fn a_list_of_tasks_is_made_again_by_one_planner() {
    let mut workflow = preset("loops").expect("shipped");
    workflow.phases = workflow.before.clone();
    for phase in &mut workflow.phases {
        if let Some(gate_policy) = phase.policy_mut() {
            gate_policy.gate.parallel_fixes = true;
        }
    }
    let story = Story::new(Policy::new(workflow)).works();
    let [Job { kind: JobKind::Review { reviewer, .. }, .. }] = &story.jobs()[..] else {
        panic!("no reviewer is at work")
    };
    let reviewer = reviewer.clone();
    let story = story.objects(reviewer.as_str(), &["a.rs", "b.rs", "c.rs"]);
    assert_eq!(story.jobs().len(), 1);
}

/// The last lines of a transcript.
fn last(story: Story, lines: usize) -> String {
    let transcript = story.transcript();
    let all: Vec<_> = transcript.lines().collect();
    all[all.len().saturating_sub(lines)..].join("\n")
}

#[test]
fn many_items_or_parallel_fixes_count_as_one_attempt() {
    let mut policy = policy();
    policy.workflow.limits.max_attempts = 4;
    let mut story = Story::new(policy).works().works();
    story = story.then("a plan of 9 items", Event::ItemsPlanned { count: 9 }).approves("plan");
    for _ in 0..9 {
        story = story.works();
    }
    let files: Vec<String> = (0..20).map(|number| format!("{number}.rs")).collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    // The items were one attempt; each round of fixes is another.
    for _ in 0..3 {
        story = story.objects("code", &files);
        assert_eq!(story.jobs().len(), 8);
        for _ in 0..8 {
            story = story.works();
        }
        story = story.combines();
    }
    let story = story.objects("code", &["a.rs", "b.rs"]);
    assert!(story.state.is_done());
    assert_eq!(story.retry().jobs().len(), 8);
}

#[test]
fn a_fix_that_never_began_is_not_counted() {
    let mut policy = policy();
    policy.workflow.limits.max_attempts = 1;
    let story = to_code_review(Story::new(policy)).objects("code", &["a.rs", "b.rs"]);
    assert_eq!(story.state.counters.fixes, 0);
    let story = story.retry();
    assert_eq!(story.state.counters.fixes, 1);
    assert_eq!(story.jobs().len(), 2);
}

#[test]
fn a_fixer_that_fails_in_parallel_is_retried_after_the_others() {
    let mut policy = policy();
    for gate_policy in policy.workflow.phases.iter_mut().filter_map(|phase| phase.policy_mut()) {
        gate_policy.gate.on_fixer_failure =
            signoff_core::policy::EscalationPolicy::new(&[signoff_core::policy::FailureAction::NextAttempt]);
    }
    let story = to_code_review(Story::new(policy)).objects("code", &["a.rs", "b.rs"]);
    let transcript = last(story.writer_fails().works().combines(), 1);
    assert!(transcript.contains("fix 1 ("), "{transcript}");
}

#[test]
fn another_pass_is_offered_only_if_one_is_left() {
    let question_after = |passes: u32| {
        let mut policy = policy();
        policy.workflow.limits.max_passes = passes;
        last(Story::new(policy).works().works().discusses("plan"), 1)
    };
    assert!(!question_after(1).contains("restart"), "{}", question_after(1));
    assert!(question_after(2).contains("restart"), "{}", question_after(2));
}
