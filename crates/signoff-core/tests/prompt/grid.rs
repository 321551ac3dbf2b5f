//! Renders every prompt with many combinations of context values.

use signoff_core::contract::{Contract, ReviewRequest};
use signoff_core::ids::AttemptId;
use signoff_core::ledger::{ClaimKind, FindingState, LedgerEntry, RecordedClaim};
use signoff_core::machine::ReviewScope;
use signoff_core::prompt::{
    self, BrainstormContext, Depth, DiffContext, DocumentContext, DocumentKind, EarlierCycle, EnumerateContext,
    FixContext, ImplementContext, OmissionReason, OmittedFileContext, OtherLoop, PlanContext, PlanDocumentContext,
    PlanItemContext, PromptTask, RereviewContext, ResearchContext, RetryContext, ReviewContext, SimplifyContext,
    SubjectContext, SynthesisContext, TaskPromptContext, UnreadableAnswer, Work,
};
use signoff_core::review::{Finding, Inconclusive, ReviewerKind, Violation, ViolationCode};
use strum::VariantArray as _;

use crate::prompt::fixture::{CONTRACTS, OTHERS, code_finding, refuted, review_request, spec_finding};

const CASES: u64 = 200;

const TEXTS: [&str; 12] = [
    "",
    " ",
    "\u{7}",
    "One line",
    "two\nlines\n",
    "\n\n  indented, then space \n\n",
    "```\nopen fence",
    "## What Counts\nnothing",
    "<!-- hidden",
    "{{ nonce }} {% if x %} {# y #} }} &<>\"'",
    "C:\\dir\\file \u{1b}[31m\r\nred",
    "ends with {{",
];

/// A deterministic random generator.
struct RandomChoices(u64);

impl RandomChoices {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).expect("31 bits") % bound
    }

    fn yes(&mut self) -> bool {
        self.below(2) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    fn some<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        self.yes().then(|| self.pick(from))
    }

    fn few<'a, T>(&mut self, from: &'a [T]) -> &'a [T] {
        &from[..self.below(from.len() + 1)]
    }
}

/// Values that contexts borrow.
struct Pool {
    texts: Vec<&'static str>,
    findings: Vec<Finding>,
    entries: Vec<LedgerEntry>,
    requests: Vec<ReviewRequest>,
    problems: Vec<Inconclusive>,
    others: Vec<OtherLoop<'static>>,
    left_out: [OmittedFileContext<'static>; 2],
    tasks: [PromptTask<'static>; 2],
    cycles: [EarlierCycle; 2],
}

/// The pool's lists by reference, as contexts need them.
struct PoolRefs<'a> {
    findings: Vec<&'a Finding>,
    entries: Vec<&'a LedgerEntry>,
    pairs: Vec<(&'a Finding, &'a Finding)>,
}

impl Pool {
    fn new() -> Self {
        let mut texts = TEXTS.to_vec();
        texts.push(Box::leak("+x\n".repeat(501).into_boxed_str()));
        let claim = |kind, evidence: &str| RecordedClaim {
            kind,
            evidence: evidence.to_owned(),
            attempt: AttemptId(4),
            commit: "c2".into(),
        };
        let open = |claims| LedgerEntry { state: FindingState::Open, decisions: vec![], claims, ..refuted() };
        let bare = Finding { sources: vec![], file: None, line: None, ..spec_finding() };
        let hostile = Finding { description: TEXTS.concat(), kind: TEXTS.concat(), ..code_finding() };
        let violation = |offset| Violation::new(ViolationCode::UnknownVerdict, offset, "no\nverdict");
        let requests = ReviewerKind::VARIANTS.iter().copied().map(review_request).chain([
            ReviewRequest { nonce: None, ..review_request(ReviewerKind::Code) },
            ReviewRequest { loop_id: None, task: None, ..review_request(ReviewerKind::General) },
        ]);
        Self {
            texts,
            findings: vec![code_finding(), spec_finding(), bare, hostile],
            entries: vec![
                refuted(),
                open(vec![claim(ClaimKind::Fixed, "tests\npass"), claim(ClaimKind::Refuted, "")]),
                open(vec![]),
            ],
            requests: requests.collect(),
            problems: vec![
                Inconclusive::Missing("the message is\nempty".to_owned()),
                Inconclusive::from(violation(3)),
                Inconclusive::from(violation(99_999)),
            ],
            others: OTHERS.into_iter().cycle().take(53).collect(),
            left_out: [
                OmittedFileContext { path: "logo\n.png", reason: OmissionReason::Binary },
                OmittedFileContext { path: "all.json", reason: OmissionReason::Huge { bytes: 7_340_032 } },
            ],
            tasks: [
                PromptTask { id: "a", title: "A \"b\"", description: "{{ x }}", depends_on: &[] },
                PromptTask { id: "b", title: "B", description: TEXTS[6], depends_on: &["a"] },
            ],
            cycles: [
                EarlierCycle { cycle: 1, reported: 4, fixed: 3, refuted: 1, regressed: 0 },
                EarlierCycle { cycle: 2, reported: 1, fixed: 0, refuted: 0, regressed: 1 },
            ],
        }
    }

    fn refs(&self) -> PoolRefs<'_> {
        PoolRefs {
            findings: self.findings.iter().collect(),
            entries: self.entries.iter().collect(),
            pairs: self.findings.iter().zip(self.findings.iter().rev()).collect(),
        }
    }
}

/// Builds contexts from random values of the pool.
struct Grid<'a> {
    choices: RandomChoices,
    pool: &'a Pool,
    refs: &'a PoolRefs<'a>,
}

impl<'a> Grid<'a> {
    fn text(&mut self) -> &'a str {
        self.choices.pick(&self.pool.texts)
    }

    fn maybe(&mut self) -> Option<&'a str> {
        self.choices.some(&self.pool.texts)
    }

    fn texts(&mut self) -> &'a [&'a str] {
        let start = self.choices.below(TEXTS.len());
        self.choices.few(&self.pool.texts[start..TEXTS.len()])
    }

    fn findings(&mut self) -> &'a [&'a Finding] {
        self.choices.few(&self.refs.findings)
    }

    fn entries(&mut self) -> &'a [&'a LedgerEntry] {
        let start = self.choices.below(3);
        self.choices.few(&self.refs.entries[start..])
    }

    fn number(&mut self) -> u32 {
        self.choices.pick(&[0, 1, 2, 3, 7])
    }

    fn agents(&mut self) -> usize {
        self.choices.pick(&[0, 1, 2, 9])
    }

    fn task(&mut self) -> TaskPromptContext<'a> {
        TaskPromptContext {
            id: self.text(),
            title: self.text(),
            description: self.text(),
            status: self.choices.pick(&["", "in_progress"]),
            priority: self.choices.pick(&["", " ", "1"]),
            plan: self.maybe(),
            design_file: self.choices.pick(&["", "docs/design.md"]),
            plan_file: self.choices.pick(&["", "docs/plan.md"]),
        }
    }

    fn item(&mut self) -> Option<PlanItemContext<'a>> {
        let item = PlanItemContext {
            number: self.number(),
            title: self.text(),
            description: self.text(),
            done: self.texts(),
            later: self.texts(),
            begun_elsewhere: self.choices.yes(),
        };
        self.choices.yes().then_some(item)
    }

    fn diff(&mut self) -> DiffContext<'a> {
        let left_out = self.choices.few(&self.pool.left_out);
        DiffContext { base: self.maybe(), stat: self.text(), diff: self.text(), left_out }
    }

    fn brainstorm(&mut self) -> BrainstormContext<'a> {
        BrainstormContext {
            opening: self.maybe(),
            task: self.task(),
            worktree: self.text(),
            pass: self.number(),
            findings: self.findings(),
            last_review: self.maybe(),
            refused: self.maybe(),
            document: self.maybe(),
        }
    }

    fn implement(&mut self) -> String {
        prompt::implement(&ImplementContext {
            opening: self.maybe(),
            task: self.task(),
            worktree: self.text(),
            instructions: self.texts(),
            other_loops: self.choices.few(&self.pool.others),
            agents_at_once: self.agents(),
            attempt: self.number(),
            previous_message: self.maybe(),
            findings: self.findings(),
            item: self.item(),
            ends_with_marker: self.choices.yes(),
            may_stop_picking: self.choices.yes(),
        })
    }

    fn fix(&mut self) -> String {
        let diff = self.diff();
        prompt::fix(&FixContext {
            opening: self.maybe(),
            task: self.task(),
            worktree: self.text(),
            instructions: self.texts(),
            findings: self.findings(),
            results: self.maybe(),
            conflicts: self.choices.few(&self.refs.pairs),
            follow_up: self.maybe(),
            unread_review: self.maybe(),
            last_review: self.maybe(),
            rest: self.maybe(),
            guidance: self.maybe(),
            refused: self.maybe(),
            earlier: self.choices.few(&self.pool.cycles),
            settled: self.entries(),
            only_files: self.texts(),
            diff: self.choices.yes().then_some(diff),
            may_stop_picking: self.choices.yes(),
        })
    }

    fn simplify(&mut self) -> String {
        prompt::simplify(&SimplifyContext {
            opening: self.maybe(),
            task: self.task(),
            worktree: self.text(),
            agents_at_once: self.agents(),
            diff: self.diff(),
        })
    }

    fn research(&mut self) -> String {
        prompt::research(&ResearchContext {
            base: self.brainstorm(),
            number: self.number(),
            researchers: self.number(),
            question: self.maybe(),
        })
    }

    fn synthesis(&mut self) -> String {
        prompt::synthesis(&SynthesisContext { base: self.brainstorm(), reports: self.texts() })
    }

    fn plan_document(&mut self) -> String {
        prompt::plan_document(&PlanDocumentContext {
            opening: self.maybe(),
            task: self.task(),
            worktree: self.text(),
            preparation: self.maybe(),
            pass: self.number(),
            previous_plan: self.maybe(),
            findings: self.findings(),
            last_review: self.maybe(),
            refused: self.maybe(),
            reports: self.texts(),
            document: self.maybe(),
        })
    }

    fn retry(&mut self) -> RetryContext<'a> {
        match self.choices.below(3) {
            0 => RetryContext::No,
            1 => RetryContext::Refused { reason: self.text() },
            _ => RetryContext::Reviewed { answer: self.text(), findings: self.findings() },
        }
    }

    fn enumerate(&mut self) -> String {
        prompt::enumerate(&EnumerateContext {
            opening: self.maybe(),
            name: self.text(),
            specification: self.text(),
            retry: self.retry(),
        })
    }

    fn plan(&mut self) -> String {
        let long = PromptTask { description: self.text(), ..self.pool.tasks[0] };
        let tasks = [&[long], self.choices.few(&self.pool.tasks)].concat();
        prompt::plan(&PlanContext { opening: self.maybe(), tasks: self.choices.few(&tasks), retry: self.retry() })
    }

    fn work(&mut self) -> Work<'a> {
        Work {
            task: self.task(),
            worktree: self.text(),
            other_loops: self.choices.few(&self.pool.others),
            agents_at_once: self.agents(),
            diff: self.diff(),
            author_output: self.maybe(),
            item: self.item(),
        }
    }

    fn document(&mut self) -> DocumentContext<'a> {
        let diff = self.diff();
        DocumentContext {
            kind: match self.choices.below(4) {
                0 => DocumentKind::TaskList { specification: self.text() },
                1 => DocumentKind::Groups { tasks: self.text() },
                2 => DocumentKind::Plan { task: self.task() },
                _ => DocumentKind::Design { task: self.task() },
            },
            text: self.maybe(),
            worktree: self.text(),
            design: self.maybe(),
            diff: self.choices.yes().then_some(diff),
        }
    }

    fn rereview(&mut self) -> RereviewContext<'a> {
        RereviewContext {
            attempt: self.number(),
            scope: self.choices.pick(&[ReviewScope::Full, ReviewScope::Scoped]),
            open: self.findings(),
            claimed: self.entries(),
            settled: self.entries(),
            previous_follow_up: self.maybe(),
        }
    }

    fn review(&mut self) -> String {
        let (rereview, text) = (self.rereview(), self.text());
        let rereview = self.choices.yes().then_some(rereview);
        let noted = self.findings();
        let why = &self.pool.problems[self.choices.below(self.pool.problems.len())];
        let contracts: Vec<Contract> = CONTRACTS.iter().map(|(_, contract)| *contract).collect();
        prompt::review(&ReviewContext {
            opening: self.maybe(),
            contract: self.choices.pick(&contracts),
            request: &self.pool.requests[self.choices.below(self.pool.requests.len())],
            depth: self.choices.pick(Depth::VARIANTS),
            can_run: self.choices.yes(),
            subject: match self.choices.below(6) {
                0 => SubjectContext::Task(self.work()),
                1 => SubjectContext::Checkpoint(self.work()),
                2 => SubjectContext::Run(self.work()),
                _ => SubjectContext::Document(self.document()),
            },
            noted: if rereview.is_some() { &[] } else { noted },
            rereview,
            unreadable: self.choices.yes().then_some(UnreadableAnswer { text, why }),
        })
    }
}

#[test]
fn every_template_renders() {
    let pool = Pool::new();
    let refs = pool.refs();
    let mut grid = Grid { choices: RandomChoices(29), pool: &pool, refs: &refs };
    for case in 0..CASES {
        let prompts = [
            ("implement", grid.implement()),
            ("fix", grid.fix()),
            ("simplify", grid.simplify()),
            ("brainstorm", prompt::brainstorm(&grid.brainstorm())),
            ("research", grid.research()),
            ("synthesis", grid.synthesis()),
            ("plan_document", grid.plan_document()),
            ("enumerate", grid.enumerate()),
            ("plan", grid.plan()),
            ("review", grid.review()),
            ("review", grid.review()),
            ("continue_session", prompt::continue_session(grid.text())),
        ];
        for (name, text) in prompts {
            assert!(text.len() > 100, "{name}, case {case}: {text}");
        }
    }
}
