//! Sample data for pages: tasks in every state, findings, attempts and statistics.

use std::collections::BTreeSet;

use jiff::Timestamp;
use signoff_core::group::RunStageKind;
use signoff_core::ledger::{ClaimKind, FindingState};
use signoff_core::machine::{FinalVerdict, OutcomeKind, Reason, ReviewScope};
use signoff_core::merge::merge;
use signoff_core::review::{
    Confidence, FailThreshold, Finding, Note, Review, ReviewerKind, Severity, Usage, Verdict, VerdictKind,
};
use signoff_core::sandbox::SandboxBackend;
use signoff_core::view::inbox::{NextStep, ProjectSnapshot};
use signoff_core::view::{QuestionRow, RunRow, RunStatus, TaskRow, TaskStatus};
use signoff_serve::page::{AddPage, DiffText, HomePage, ReportHead, RunPage, TaskPage, TranscriptPage, TranscriptTail};
use signoff_term::show::{
    AttemptOutcome, AttemptRow, ClaimLine, Cycle, DeciderKind, FindingLine, LedgerLine, PersonDecision,
    PersonDecisionKind, ReviewReport, RoundVerdict, Sighting, StateChange, TaskReport,
};
use signoff_term::stats::{
    Convergence, CostTotals, CycleCount, CyclesToApproval, ReviewerStats, RoleStats, StatsCollector, StatsReport,
    StopReason, TaskCounts,
};

pub fn now() -> Timestamp {
    "2026-01-29T12:00:00Z".parse().expect("a time")
}

/// A task of run 3 that started at ten.
pub fn row(id: u64, title: &str, status: TaskStatus) -> TaskRow {
    TaskRow {
        run_id: Some(3).filter(|_| status != TaskStatus::Pending),
        max_review_cycles: Some(3),
        branch: Some(format!("signoff/task-{id}")),
        base: Some("c0ffee5eed0123456789".into()).filter(|_| status != TaskStatus::Pending),
        iteration: 1,
        cost_usd: 0.36,
        input_tokens: 27_000,
        output_tokens: 2_400,
        added_at: "2026-01-29T09:58:00Z".into(),
        started_at: Some("2026-01-29T10:00:00Z".into()).filter(|_| status != TaskStatus::Pending),
        ..TaskRow::new(id, title, status)
    }
}

/// Marks a task as ended.
pub fn ended(task: TaskRow, outcome: &str, verdict: &str, reason: &str) -> TaskRow {
    TaskRow {
        outcome: outcome.parse::<OutcomeKind>().ok(),
        final_verdict: verdict.parse::<FinalVerdict>().ok(),
        reason: reason.parse::<Reason>().ok(),
        review_cycle: 2,
        ended_at: Some("2026-01-29T10:12:30Z".into()),
        ..task
    }
}

pub fn run() -> RunRow {
    RunRow {
        id: 3,
        preset: "groups".into(),
        specification: Some("SPEC.md".into()),
        status: RunStatus::Running,
        stage: RunStageKind::Working,
        group: Some(2),
        groups: Some(4),
        branch: Some("signoff/run-3".into()),
        cost_usd: 4.71,
        cost_is_estimated: true,
    }
}

pub fn question() -> QuestionRow {
    QuestionRow {
        id: "q4".into(),
        run_id: 3,
        task_id: Some(31),
        text: "code gave no usable review; the others did. Retry, proceed without, or stop?".into(),
        choices: ["retry", "proceed", "stop"].map(str::to_owned).to_vec(),
    }
}

pub fn home() -> HomePage {
    let at_review = TaskRow {
        review_cycle: 2,
        phase: Some("review".into()),
        open_findings: 2,
        ..row(32, "Rate limits for the login endpoint", TaskStatus::InProgress)
    };
    let waiting = TaskRow {
        review_cycle: 1,
        phase: Some("review".into()),
        ..row(31, "Store sessions in Redis", TaskStatus::Waiting)
    };
    let exhausted = ended(
        row(28, "Migrate the users table", TaskStatus::Completed),
        "exhausted",
        "MAX_CYCLES_REACHED",
        "cycles_exhausted",
    );
    HomePage {
        project: "shop".into(),
        tasks: vec![
            ended(row(27, "Rename the package", TaskStatus::Completed), "approved", "APPROVED", ""),
            exhausted,
            ended(row(29, "Add user authentication", TaskStatus::Completed), "approved", "APPROVED", ""),
            ended(row(30, "Send a mail after sign-up", TaskStatus::Stuck), "stuck", "", "task_stuck"),
            waiting,
            at_review,
            TaskRow { phase: Some("implement".into()), ..row(33, "Log out everywhere", TaskStatus::InProgress) },
            TaskRow { depends_on: vec![33], ..row(34, "Show where one is logged in", TaskStatus::Pending) },
            row(35, "Two-factor authentication with an app that the person already has", TaskStatus::Pending),
        ],
        runs: vec![run()],
        questions: vec![question()],
        driven: [3].into(),
        all: false,
        now: now(),
    }
}

/// An overview with `number` tasks, most of them done.
pub fn home_with_tasks(number: u64) -> HomePage {
    let task = |id: u64| match id % 25 {
        0 => ended(row(id, "Send a mail after sign-up", TaskStatus::Stuck), "stuck", "", "task_stuck"),
        1 => TaskRow { review_cycle: 2, ..row(id, "Rate limits for the login endpoint", TaskStatus::InProgress) },
        2 => row(id, "Two-factor authentication", TaskStatus::Pending),
        _ => ended(row(id, "Add user authentication", TaskStatus::Completed), "approved", "APPROVED", ""),
    };
    HomePage { tasks: (1..=number).map(task).collect(), ..home() }
}

fn finding_line(id: &str, severity: Severity, place: (&str, u32), text: &str) -> FindingLine {
    FindingLine {
        id: id.to_owned(),
        severity,
        kind: "bug".into(),
        file: Some(place.0.to_owned()),
        line: Some(place.1),
        description: text.to_owned(),
        requirement: None,
        suggestion: None,
        sources: vec!["code".into()],
    }
}

fn seen(cycle: u32) -> Sighting {
    Sighting { pass: 1, phase: "review".into(), cycle, commit: Some(commit(cycle)) }
}

fn commit(cycle: u32) -> String {
    format!("{cycle}a7b3c9d2e{cycle}f4051627")
}

fn settled(state: FindingState, cycle: u32) -> StateChange {
    let text = if state == FindingState::Open { "reported again" } else { "approved without reporting it again" };
    StateChange {
        state,
        by_kind: DeciderKind::Reviewer,
        by: "code".into(),
        commit: Some(commit(cycle)),
        evidence: format!("{text} in cycle {cycle} of pass 1"),
    }
}

const MISSING: &str = "missing input validation: an empty password is accepted";
const RACE: &str = "two logins at once make two sessions";
const LOCK: &str = "the lock is held while the mail is sent";

/// One open and three settled findings; two of them are about the same lines.
pub fn ledger() -> Vec<LedgerLine> {
    let by_ann = |state, cycle, why: &str| StateChange {
        state,
        by_kind: DeciderKind::Person,
        by: "ann".into(),
        commit: Some(commit(cycle)),
        evidence: why.to_owned(),
    };
    vec![
        LedgerLine {
            finding: FindingLine {
                requirement: Some("R3: no empty passwords".into()),
                suggestion: Some("Refuse it before hashing.".into()),
                sources: vec!["code".into(), "spec".into()],
                ..finding_line("f-84289c36aa", Severity::Critical, ("src/auth.rs", 12), MISSING)
            },
            state: FindingState::Open,
            blocks: true,
            seen: vec![seen(1), seen(3)],
            decisions: vec![settled(FindingState::Fixed, 2), settled(FindingState::Open, 3)],
            claims: vec![claimed()],
        },
        LedgerLine {
            finding: finding_line("f-3848bab3b9", Severity::Important, ("src/auth.rs", 14), RACE),
            state: FindingState::Fixed,
            blocks: false,
            seen: vec![seen(1), seen(2)],
            decisions: vec![settled(FindingState::Fixed, 3)],
            claims: Vec::new(),
        },
        LedgerLine {
            finding: finding_line("f-77aa01bb02", Severity::Important, ("src/mail.rs", 40), LOCK),
            state: FindingState::Refuted,
            blocks: false,
            seen: vec![seen(2)],
            decisions: vec![by_ann(FindingState::Refuted, 2, "the mail is queued, not sent")],
            claims: Vec::new(),
        },
        LedgerLine {
            finding: FindingLine {
                file: None,
                line: None,
                ..finding_line("f-0123456789", Severity::Minor, ("", 0), "the new endpoint is in no document")
            },
            state: FindingState::Deferred,
            blocks: false,
            seen: vec![seen(1)],
            decisions: vec![by_ann(FindingState::Deferred, 1, "when the endpoint is stable")],
            claims: Vec::new(),
        },
    ]
}

fn claimed() -> ClaimLine {
    ClaimLine {
        claim: ClaimKind::Fixed,
        evidence: "tests/auth.rs: empty_password".into(),
        attempt: "a6".into(),
        commit: "5f0c1d2e3a4b".into(),
    }
}

/// A review with these findings.
fn review(name: &str, verdict: Verdict, found: &[&FindingLine]) -> Review {
    let findings = found.iter().map(|line| Finding {
        id: line.id.as_str().into(),
        file: line.file.clone(),
        line: line.line,
        ..Finding::new(&name.into(), "bug", line.severity, &line.description)
    });
    let kind = name.parse::<ReviewerKind>().unwrap_or(ReviewerKind::General);
    Review { findings: findings.collect(), usage: Usage::default(), ..Review::new(name.into(), kind, verdict) }
}

fn review_line(review: &Review, summary: &str) -> ReviewReport {
    let findings = review.findings.iter().map(|finding| FindingLine {
        id: finding.id.to_string(),
        severity: finding.severity,
        kind: finding.kind.clone(),
        file: finding.file.clone(),
        line: finding.line,
        description: finding.description.clone(),
        requirement: None,
        suggestion: None,
        sources: vec![review.reviewer.to_string()],
    });
    ReviewReport {
        reviewer: review.reviewer.to_string(),
        kind: review.kind.into_str(),
        verdict: VerdictKind::from(&review.verdict),
        reason: None,
        confidence: Confidence::High,
        findings: findings.collect(),
        minor: Vec::new(),
        checked: vec!["cargo test".into()],
        summary: summary.to_owned(),
        follow_up_prompt: None,
        interpreted_intent: None,
        intent_satisfied: None,
        raw: None,
        duration_ms: 41_000,
        cost_usd: 0.12,
        cost_is_estimated: false,
        input_tokens: 9_000,
        output_tokens: 800,
    }
}

fn cycle(n: u32, convergence: Convergence, reviews: &[(Review, &str)]) -> Cycle {
    let all: Vec<Review> = reviews.iter().map(|(review, _)| review.clone()).collect();
    Cycle {
        n,
        phase: "review".into(),
        pass: 1,
        scope: if n == 2 { ReviewScope::Scoped } else { ReviewScope::Full },
        commit: commit(n),
        ended_at: "2026-01-29T10:03:20Z".into(),
        verdict: RoundVerdict::ChangesRequested,
        reviews: reviews.iter().map(|(review, summary)| review_line(review, summary)).collect(),
        merged: merge(&all, FailThreshold::Low),
        convergence,
    }
}

fn cycles(ledger: &[LedgerLine]) -> Vec<Cycle> {
    let [missing, race, lock, document] = ledger else { panic!("four findings") };
    let (missing, race) = (&missing.finding, &race.finding);
    let asks = Verdict::ChangesRequested;
    let first = [
        (review("spec", asks.clone(), &[missing]), "One requirement is not met."),
        (review("code", asks.clone(), &[missing, race, &document.finding]), "Good, but for two things."),
        (review("security", Verdict::Approved, &[]), "Nothing an attacker could use."),
    ];
    let second = [
        (review("spec", Verdict::Approved, &[]), "All requirements are met."),
        (review("code", asks.clone(), &[race, &lock.finding]), "The race is still there."),
    ];
    let third = [
        (review("spec", Verdict::Approved, &[]), ""),
        (review("code", asks, &[missing]), "The validation is gone again."),
    ];
    let mut cycles = vec![
        cycle(1, Convergence { new: 3, ..Convergence::default() }, &first),
        cycle(2, Convergence { new: 1, carried: 1, fixed: 1, ..Convergence::default() }, &second),
        cycle(3, Convergence { fixed: 1, regressed: 1, ..Convergence::default() }, &third),
    ];
    let note = Note { file: Some("src/auth.rs".into()), line: Some(30), description: "a magic number".into() };
    if let Some(review) = cycles.first_mut().and_then(|cycle| cycle.reviews.first_mut()) {
        review.minor.push(note);
    }
    cycles
}

pub fn attempt(id: &str, role: &str, reviewer: Option<&str>, cycle: u32) -> AttemptRow {
    AttemptRow {
        id: id.to_owned(),
        role: role.to_owned(),
        reviewer: reviewer.map(str::to_owned),
        agent: "claude".into(),
        model: Some("large".into()),
        phase: if role == "implement" { "implement" } else { "review" }.into(),
        cycle,
        sandbox: Some(SandboxBackend::Landlock),
        session: None,
        resumes: None,
        started_at: "2026-01-29T10:01:10Z".into(),
        ended_at: Some("2026-01-29T10:03:20Z".into()),
        outcome: Some(if role == "review" { AttemptOutcome::Reviewed } else { AttemptOutcome::Complete }),
        detail: None,
        hint: None,
        notes: Vec::new(),
        duration_ms: if role == "review" { 41_000 } else { 212_000 },
        cost_usd: if role == "review" { 0.12 } else { 0.55 },
        cost_is_estimated: false,
        input_tokens: 9_000,
        output_tokens: 800,
    }
}

fn attempts() -> Vec<AttemptRow> {
    vec![
        attempt("a1", "implement", None, 0),
        attempt("a2", "review", Some("spec"), 1),
        attempt("a3", "review", Some("code"), 1),
        attempt("a4", "review", Some("security"), 1),
        attempt("a5", "fix", None, 1),
        attempt("a6", "review", Some("spec"), 2),
        AttemptRow {
            outcome: Some(AttemptOutcome::TimedOut),
            detail: Some("timed out".into()),
            hint: Some("`[limits] attempt` sets the timeout".into()),
            ..attempt("a7", "review", Some("code"), 2)
        },
        attempt("a8", "review", Some("code"), 2),
    ]
}

pub const PATCH: &str = "\
diff --git a/src/auth.rs b/src/auth.rs
index 1111111..2222222 100644
--- a/src/auth.rs
+++ b/src/auth.rs
@@ -8,7 +8,10 @@ impl Login {
     /// Checks who a person is.
     pub fn login(&self, name: &str, password: &str) -> Result<Session, Refused> {
         let user = self.users.find(name)?;
-        Ok(Session::new(user))
+        let hash = Hash::of(password);
+        if user.hash != hash {
+            return Err(Refused::WrongPassword);
+        }
+        self.sessions.open(user)
     }
 }
 
@@ -40,2 +43,3 @@
 const LONGEST: usize = 64;
+const SHORTEST: usize = 8;
 
diff --git a/src/mail.rs b/src/mail.rs
new file mode 100644
--- /dev/null
+++ b/src/mail.rs
@@ -0,0 +1,2 @@
+//! Mails.
+pub fn send() {}
\\ No newline at end of file
diff --git a/logo.png b/logo.png
index 3333333..4444444 100644
Binary files a/logo.png and b/logo.png differ
diff --git \"a/docs/\\303\\274ber.md\" \"b/docs/about.md\"
similarity index 100%
rename from \"docs/\\303\\274ber.md\"
rename to docs/about.md
";

/// What to do next about a task that no process works on.
pub fn next_step(task: &TaskRow) -> NextStep {
    NextStep::for_task(task, &ProjectSnapshot { tasks: &[], runs: &[], driven: &BTreeSet::new() })
}

/// A task that reached its maximum number of review cycles.
pub fn task() -> TaskPage {
    let ledger = ledger();
    let task = TaskRow {
        open_findings: 1,
        cost_usd: 2.06,
        ..ended(
            row(29, "Add user authentication", TaskStatus::Completed),
            "exhausted",
            "MAX_CYCLES_REACHED",
            "cycles_exhausted",
        )
    };
    let decision = PersonDecision {
        at: "2026-01-29T10:08:30Z".into(),
        by: "ann".into(),
        what: PersonDecisionKind::Dispute,
        choice: Some("f-77aa01bb02".into()),
        reason: Some("the mail is queued, not sent".into()),
    };
    let next = next_step(&task);
    TaskPage {
        project: "shop".into(),
        report: TaskReport {
            version: 1,
            task,
            cycles: cycles(&ledger),
            ledger,
            attempts: attempts(),
            artifacts: vec![".signoff/reviews/20260129-task-29-review-1.md".into()],
            decisions: vec![decision],
            approved_commit: None,
            voided: None,
            question: None,
            is_being_written: false,
        },
        spec: "Add user authentication\n\nWith a password of at least 8 characters (R3: no empty passwords).\nSessions are kept in memory.".into(),
        diff: Some(DiffText {
            patch: PATCH.to_owned(),
            stat: "4 files changed, 8 insertions(+), 1 deletion(-)".into(),
            ..DiffText::default()
        }),
        changes: None,
        transcripts: vec![TranscriptTail {
            attempt: "a1".into(),
            tail: "Reading src/auth.rs\nRunning cargo test\nDone.\n".into(),
            left_out: 2048,
        }],
        next,
        driven: false,
        now: now(),
    }
}

pub fn run_page() -> RunPage {
    let HomePage { project, tasks, questions, .. } = home();
    let tasks = tasks.into_iter().filter(|task| task.run_id == Some(3)).collect();
    RunPage { project, run: run(), tasks, questions, driven: true, now: now() }
}

pub fn transcript() -> TranscriptPage {
    let TaskPage { project, transcripts, report, .. } = task();
    let transcript = transcripts.into_iter().next().expect("one");
    let attempt = attempt("a1", "implement", None, 0);
    TranscriptPage { project, task: 29, title: report.task.title, attempt, transcript }
}

pub fn stats() -> StatsReport {
    let reviewer = |name: &str, [upheld, refuted, open, pending]: [u64; 4], cost_usd| ReviewerStats {
        reviewer: name.to_owned(),
        raised: upheld + refuted + refuted / 2 + open,
        upheld,
        refuted,
        out_of_scope: refuted / 2,
        open,
        pending,
        cost_usd,
        ..ReviewerStats::default()
    };
    let role = |role: &str, attempts, minutes: u64, cost_usd| RoleStats {
        role: role.to_owned(),
        attempts,
        duration_ms: minutes * 60_000,
        cost_usd,
        ..RoleStats::default()
    };
    let none = StatsCollector::default().report();
    let distribution = [(1, 6), (2, 11), (3, 4)].map(|(cycles, tasks)| CycleCount { cycles, tasks });
    let stops = [(Reason::CyclesExhausted, 3), (Reason::TaskStuck, 1), (Reason::Budget, 1)];
    let stop =
        |(reason, tasks): (Reason, u64)| StopReason { outcome: Some(OutcomeKind::Stuck), reason: Some(reason), tasks };
    StatsReport {
        reviewers: vec![
            reviewer("spec", [14, 1, 2, 0], 3.2),
            reviewer("code", [31, 6, 4, 3], 5.9),
            reviewer("security", [3, 2, 0, 0], 2.4),
        ],
        roles: vec![
            role("implement", 24, 190, 14.1),
            role("review", 88, 96, 11.5),
            role("fix", 31, 84, 6.02),
            role("check", 40, 52, 0.0),
        ],
        cycles_to_approval: CyclesToApproval { distribution: distribution.to_vec(), ..none.cycles_to_approval },
        stop_reasons: stops.map(stop).to_vec(),
        tasks: TaskCounts { approved: 21, ..none.tasks },
        cost: CostTotals { per_approved_usd: Some(1.51), ..none.cost },
        ..none
    }
}

pub fn add() -> AddPage {
    AddPage { project: "shop".into(), kind: "implement".into(), auto_review: true, ..AddPage::default() }
}

pub fn report_head() -> ReportHead {
    let (section, parts, roles) = Default::default();
    ReportHead { project: "shop".into(), run: Some(run()), section, parts, roles, made_at: now() }
}
