//! Short constructors for reviews, findings and policies.

use std::sync::Mutex;

use signoff_core::ids::{AttemptId, Commit, Tree};
use signoff_core::machine::{Head, Policy};
use signoff_core::policy::Bound;
use signoff_core::review::{Finding, Review, ReviewerKind, Severity, Verdict, Violation, ViolationCode};
use signoff_core::workflow::{PhaseKind, preset};

pub fn head(number: u32) -> Head {
    Head { commit: Commit::new(format!("c{number}")), tree: Tree::new(format!("t{number}")) }
}

/// The findings made so far: their ids are slow to compute, and explorations use few findings often.
static FINDINGS: Mutex<Vec<Finding>> = Mutex::new(Vec::new());

pub fn finding(file: &str, severity: Severity) -> Finding {
    let mut known = FINDINGS.lock().expect("no test panics here");
    let same = |finding: &&Finding| finding.file.as_deref() == Some(file) && finding.severity == severity;
    if let Some(finding) = known.iter().find(same) {
        return finding.clone();
    }
    let finding = new_finding(file, severity);
    known.push(finding.clone());
    finding
}

fn new_finding(file: &str, severity: Severity) -> Finding {
    let mut findings = [Finding {
        id: "".into(),
        sources: vec!["someone".into()],
        kind: "bug".into(),
        severity,
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

pub fn review(reviewer: &str, verdict: Verdict, files: &[&str]) -> Review {
    let from = |file: &&str| Finding { sources: vec![reviewer.into()], ..finding(file, Severity::Critical) };
    Review {
        findings: files.iter().map(from).collect(),
        ..Review::new(reviewer.into(), ReviewerKind::General, verdict)
    }
}

pub fn approves(reviewer: &str) -> Review {
    review(reviewer, Verdict::Approved, &[])
}

pub fn objects(reviewer: &str, files: &[&str]) -> Review {
    review(reviewer, Verdict::ChangesRequested, files)
}

pub fn discusses(reviewer: &str) -> Review {
    review(reviewer, Verdict::NeedsDiscussion, &[])
}

pub fn unreadable(reviewer: &str) -> Review {
    let violation = Violation::new(ViolationCode::NoVerdict, 0, "no verdict");
    Review::inconclusive(reviewer.into(), ReviewerKind::General, violation)
}

/// A preset with its gates enabled.
pub fn reviewed(name: &str) -> Policy {
    let mut workflow = preset(name).expect(name);
    for phase in &mut workflow.phases {
        if let PhaseKind::Gate(gate_policy) = &mut phase.kind {
            gate_policy.gate.enabled = true;
        }
    }
    Policy::new(workflow)
}

/// A preset with its gates enabled and bounds small enough to explore all states.
pub fn small(name: &str) -> Policy {
    bounded(reviewed(name), 3, 1)
}

/// Limits a policy to `max_attempts` attempts, and to `fixes` fixes at each gate.
pub fn bounded(mut policy: Policy, max_attempts: u32, fixes: u32) -> Policy {
    let workflow = &mut policy.workflow;
    let limits = &mut workflow.limits;
    (limits.max_attempts, limits.max_passes, limits.max_recoveries, limits.max_conflicts) = (max_attempts, 2, 1, 1);
    limits.max_rate_limits = 1;
    workflow.checkpoint_interval = workflow.checkpoint_interval.map(|_| 2);
    for phase in &mut workflow.phases {
        if let PhaseKind::Agent { researchers, .. } = &mut phase.kind {
            *researchers = (*researchers).min(1);
        }
        if let Some(gate_policy) = phase.policy_mut() {
            gate_policy.gate.bound = match gate_policy.gate.bound {
                Bound::MaxCycles(_) => Bound::MaxCycles(fixes + 1),
                Bound::MaxFixes(_) | Bound::Unlimited => Bound::MaxFixes(fixes),
            };
        }
    }
    policy
}

pub const UNKNOWN_ATTEMPT: AttemptId = AttemptId(9_999);
