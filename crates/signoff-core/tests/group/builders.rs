//! Short constructors for reviews, findings and policies.

use signoff_core::ids::{Commit, Tree};
use signoff_core::machine::{Head, Policy};
use signoff_core::policy::Bound;
use signoff_core::review::{Finding, Review, ReviewerKind, Severity, Verdict, Violation, ViolationCode};
use signoff_core::workflow::{PhaseKind, preset};

pub fn head(number: u32) -> Head {
    Head { commit: Commit::new(format!("c{number}")), tree: Tree::new(format!("t{number}")) }
}

pub fn finding(file: &str) -> Finding {
    let mut findings = [Finding {
        id: "".into(),
        sources: vec!["someone".into()],
        kind: "bug".into(),
        severity: Severity::Critical,
        file: Some(file.to_owned()),
        line: Some(7),
        description: format!("the error of the call in {file} is thrown away"),
        requirement: None,
        suggestion: None,
    }];
    signoff_core::similarity::assign_ids(&mut findings);
    let [finding] = findings;
    finding
}

pub fn review(reviewer: &str, verdict: Verdict) -> Review {
    Review::new(reviewer.into(), ReviewerKind::General, verdict)
}

pub fn objects(reviewer: &str, file: &str) -> Review {
    let finding = Finding { sources: vec![reviewer.into()], ..finding(file) };
    Review { findings: vec![finding], ..review(reviewer, Verdict::ChangesRequested) }
}

pub fn unreadable(reviewer: &str) -> Review {
    let violation = Violation::new(ViolationCode::NoVerdict, 0, "no verdict");
    Review::inconclusive(reviewer.into(), ReviewerKind::General, violation)
}

/// A preset with its gates enabled and bounds small enough to explore.
pub fn small(name: &str) -> Policy {
    let mut workflow = preset(name).expect(name);
    let limits = &mut workflow.limits;
    (limits.max_attempts, limits.max_passes, limits.max_recoveries, limits.max_conflicts) = (6, 2, 1, 1);
    workflow.checkpoint_interval = workflow.checkpoint_interval.map(|_| 2);
    for phase in &mut workflow.phases {
        if let PhaseKind::Gate(gate_policy) = &mut phase.kind {
            gate_policy.gate.enabled = true;
        }
        if let Some(gate_policy) = phase.policy_mut() {
            gate_policy.gate.bound = match gate_policy.gate.bound {
                Bound::MaxCycles(_) => Bound::MaxCycles(3),
                Bound::MaxFixes(_) | Bound::Unlimited => Bound::MaxFixes(2),
            };
        }
    }
    Policy::new(workflow)
}
