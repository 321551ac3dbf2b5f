//! The task, findings and diff that all prompt tests use.

use signoff_core::contract::{Contract, ReviewRequest};
use signoff_core::ids::FindingId;
use signoff_core::ledger::{DecidedBy, FindingDecision, FindingState, LedgerEntry};
use signoff_core::prompt::{
    Depth, DiffContext, OmissionReason, OmittedFileContext, OtherLoop, ReviewContext, SubjectContext,
    TaskPromptContext, Work,
};
use signoff_core::review::{FailThreshold, Finding, ReviewerKind, Severity};
use signoff_core::view::TaskStatus;

pub const CONTRACTS: [(&str, Contract); 7] = [
    ("markdown", Contract::Markdown),
    ("json", Contract::Json),
    ("xml", Contract::Xml),
    ("prefix", Contract::Prefix),
    ("severity", Contract::Severity),
    ("tool", Contract::Tool),
    ("auto", Contract::Auto),
];

pub const TASK: TaskPromptContext<'_> = TaskPromptContext {
    id: "29",
    title: "Add user authentication",
    description: "Users log in with OAuth 2.0.\nA session ends after 30 minutes without a request.",
    status: "in_progress",
    priority: "1",
    plan: None,
    design_file: "",
    plan_file: "",
};

pub const PLAN: &str = "# Login Implementation Plan\n\n1. `begin_flow` redirects\n2. the session expires\n";

pub const OTHERS: [OtherLoop<'_>; 2] = [
    OtherLoop { name: "A", status: TaskStatus::Completed, title: "User authentication endpoints", iteration: 2 },
    OtherLoop { name: "C", status: TaskStatus::InProgress, title: "Database migrations", iteration: 3 },
];

pub const DIFF: DiffContext<'_> = DiffContext {
    base: Some("4f2a91c"),
    stat: " src/auth.ts | 3 ++-\n 1 file changed, 2 insertions(+), 1 deletion(-)\n",
    diff: "diff --git a/src/auth.ts b/src/auth.ts\n--- a/src/auth.ts\n+++ b/src/auth.ts\n@@ -44,2 +44,3 @@\n function login() {\n-  return null\n+  const user = find()\n+  return user.name\n",
    left_out: &[OmittedFileContext { path: "assets/logo.png", reason: OmissionReason::Binary }],
};

pub const WORKTREE: &str = "/home/ada/shop/.signoff/worktrees/task-29";

pub fn review_request(kind: ReviewerKind) -> ReviewRequest {
    ReviewRequest {
        reviewer: kind.into_str().into(),
        kind,
        nonce: Some("k7Qm2xVt".into()),
        require_nonce: false,
        fail_on: FailThreshold::Medium,
        commit: Some("9d1be07".into()),
        loop_id: Some("B".into()),
        task: Some("29".to_owned()),
    }
}

pub fn work() -> Work<'static> {
    Work {
        task: TASK,
        worktree: WORKTREE,
        other_loops: &OTHERS,
        agents_at_once: 1,
        diff: DIFF,
        author_output: None,
        item: None,
    }
}

pub fn review(request: &ReviewRequest) -> ReviewContext<'_> {
    ReviewContext {
        opening: None,
        contract: Contract::Markdown,
        request,
        depth: Depth::Standard,
        can_run: true,
        subject: SubjectContext::Task(work()),
        noted: &[],
        rereview: None,
        unreadable: None,
    }
}

pub fn spec_finding() -> Finding {
    Finding {
        id: FindingId::new("f-oauth"),
        sources: vec!["spec".into()],
        kind: "missing_requirement".to_owned(),
        severity: Severity::Critical,
        file: Some("src/auth.ts".to_owned()),
        line: Some(45),
        description: "Missing OAuth flow implementation".to_owned(),
        requirement: Some("Support OAuth 2.0 login".to_owned()),
        suggestion: None,
    }
}

pub fn code_finding() -> Finding {
    Finding {
        id: FindingId::new("f-null"),
        sources: vec!["code".into()],
        kind: "bug".to_owned(),
        severity: Severity::Important,
        file: Some("src/auth.ts".to_owned()),
        line: Some(46),
        description: "`find()` can return null.\nThen `user.name` throws.".to_owned(),
        requirement: None,
        suggestion: Some("Answer 401 when there is no user".to_owned()),
    }
}

/// A refuted finding.
pub fn refuted() -> LedgerEntry {
    LedgerEntry {
        finding: Finding {
            id: FindingId::new("f-race"),
            description: "Two logins at once share a session".to_owned(),
            ..code_finding()
        },
        state: FindingState::Refuted,
        seen: Vec::new(),
        claims: Vec::new(),
        decisions: vec![FindingDecision {
            state: FindingState::Refuted,
            by: DecidedBy::Person("ada".to_owned()),
            commit: None,
            evidence: "sessions are keyed by a fresh id, src/session.ts:12".to_owned(),
        }],
    }
}
