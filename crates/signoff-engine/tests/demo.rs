//! The demo agent completes both demo tasks, with the real prompts and the real answer parsers.

#![expect(clippy::unwrap_used, reason = "a failed unwrap is a failed test")]

use std::fs;
use std::path::Path;

use signoff_core::contract::{self, Contract, ReviewRequest};
use signoff_core::prompt::{
    self, Depth, DiffContext, FixContext, ImplementContext, ReviewContext, SubjectContext, TaskPromptContext, Work,
};
use signoff_core::review::{FailThreshold, Finding, Review, ReviewerKind, Verdict};
use signoff_engine::builtin::checks::{CheckCommand, run_each};
use signoff_engine::builtin::demo::{self, DemoEnvironment, DemoError, DemoFiles, answer};
use strum::VariantArray as _;

const NONCE: &str = "k7Qm2xVt";

/// One task in the demo repository.
struct DemoRun {
    task: &'static str,
    files: DemoFiles,
}

impl DemoRun {
    fn new(task: usize) -> Self {
        let files = demo::project_files().into_iter().map(|(name, text)| (name, text.to_owned())).collect();
        Self { task: demo::tasks()[task], files }
    }

    fn brief(&self) -> TaskPromptContext<'static> {
        let (title, description) = self.task.split_once('\n').unwrap();
        TaskPromptContext { id: "1", title, description: description.trim(), ..TaskPromptContext::default() }
    }

    /// Runs the agent in a role and keeps its changes.
    fn run_role(&mut self, role: &str, reviewer: &str, prompt: &str) -> String {
        let environment =
            DemoEnvironment { role: role.to_owned(), reviewer: reviewer.to_owned(), nonce: NONCE.to_owned() };
        let answer = answer(prompt, &environment, &self.files).unwrap();
        assert!(role != "review" || answer.changed.is_empty());
        self.files.extend(answer.changed);
        answer.message
    }

    fn implement(&mut self) -> String {
        let prompt = prompt::implement(&ImplementContext {
            instructions: &[],
            opening: None,
            task: self.brief(),
            worktree: "worktree",
            other_loops: &[],
            agents_at_once: 2,
            attempt: 1,
            previous_message: None,
            findings: &[],
            item: None,
            ends_with_marker: false,
            may_stop_picking: false,
        });
        self.run_role("implement", "", &prompt)
    }

    fn review(&mut self, kind: ReviewerKind, contract: Contract) -> Review {
        let ask = review_request(kind);
        let work = Work {
            task: self.brief(),
            worktree: "worktree",
            other_loops: &[],
            agents_at_once: 2,
            diff: DiffContext { base: None, stat: "", diff: "", left_out: &[] },
            item: None,
            author_output: None,
        };
        let prompt = prompt::review(&ReviewContext {
            opening: None,
            contract,
            request: &ask,
            depth: Depth::Standard,
            can_run: true,
            subject: SubjectContext::Task(work),
            noted: &[],
            rereview: None,
            unreadable: None,
        });
        let answer_text = self.run_role("review", kind.into_str(), &prompt);
        let answer = contract::ReviewAnswer { text: answer_text.as_bytes(), tool: None };
        contract::parse(contract, answer, &ask).unwrap_or_else(|error| panic!("{error}\n{answer_text}"))
    }

    fn fix(&mut self, findings: &[&Finding]) -> String {
        let prompt = prompt::fix(&FixContext {
            instructions: &[],
            opening: None,
            rest: None,
            task: self.brief(),
            worktree: "worktree",
            findings,
            results: None,
            conflicts: &[],
            follow_up: None,
            unread_review: None,
            last_review: None,
            guidance: None,
            refused: None,
            earlier: &[],
            settled: &[],
            only_files: &[],
            diff: None,
            may_stop_picking: false,
        });
        self.run_role("fix", "", &prompt)
    }

    /// Runs the project's own check on the current files.
    fn check(&self) -> String {
        let directory = tempfile::tempdir().unwrap();
        for (name, text) in &self.files {
            fs::write(directory.path().join(name), text).unwrap();
        }
        let run = |command: &str| run_in(directory.path(), command);
        run("sh test.sh; echo \"exit $?\"")
    }
}

fn run_in(directory: &Path, command: &str) -> String {
    let check = CheckCommand { name: "test".to_owned(), command: command.to_owned() };
    run_each(&[check], directory).unwrap().remove(0).output
}

/// The strictest request: it requires the nonce and the commit.
fn review_request(kind: ReviewerKind) -> ReviewRequest {
    ReviewRequest {
        reviewer: kind.into_str().into(),
        kind,
        nonce: Some(NONCE.into()),
        require_nonce: true,
        fail_on: FailThreshold::Medium,
        commit: Some("9d1be07".into()),
        loop_id: Some("1".into()),
        task: Some("1".to_owned()),
    }
}

fn summary(review: &Review) -> String {
    let findings = review.findings.iter().map(|finding| {
        let place = format!("{}:{}", finding.file.as_deref().unwrap(), finding.line.unwrap());
        format!("\n- {place} {}", finding.description)
    });
    format!("{}{}", review.verdict.into_str(), findings.collect::<String>())
}

#[test]
fn the_project_passes_its_own_check_before_anything_is_done() {
    assert_eq!(DemoRun::new(0).check(), "exit 0\n");
}

#[test]
fn a_greeting_is_implemented_reviewed_fixed_and_approved() {
    let mut demo = DemoRun::new(0);
    insta::assert_snapshot!(demo.implement(), @"`greet.sh` takes a name now, and `test_greet.sh` checks that it is greeted.");
    assert_eq!(demo.check(), "exit 0\n");

    let spec = demo.review(ReviewerKind::Spec, Contract::Auto);
    insta::assert_snapshot!(summary(&spec), @r"
    changes_requested
    - README.md:5 The README still shows the call without a name
    ");
    let code = demo.review(ReviewerKind::Code, Contract::Xml);
    insta::assert_snapshot!(summary(&code), @r"
    changes_requested
    - greet.sh:3 The name is not checked: called without one, the script prints `Hello, !` and exits 0
    ");
    assert!(code.findings[0].suggestion.is_some());

    let findings: Vec<_> = spec.findings.iter().chain(&code.findings).collect();
    insta::assert_snapshot!(demo.fix(&findings), @r"
    - README.md: fixed. Show `sh greet.sh NAME`
    - greet.sh: fixed. Without a name, print the usage on stderr and exit 2
    ");
    insta::assert_snapshot!(demo.files["greet.sh"], @r#"
    #!/bin/sh
    # Says hello to one person.
    name=$1
    if [ -z "$name" ]; then
        echo "usage: greet.sh NAME" >&2
        exit 2
    fi
    echo "Hello, $name!"
    "#);
    assert_eq!(demo.check(), "exit 0\n");
    assert_eq!(demo.review(ReviewerKind::Spec, Contract::Auto).verdict, Verdict::Approved);
    assert_eq!(demo.review(ReviewerKind::Code, Contract::Xml).verdict, Verdict::Approved);
}

#[test]
fn a_fix_repairs_only_the_given_findings() {
    let mut demo = DemoRun::new(0);
    demo.implement();
    let code = demo.review(ReviewerKind::Code, Contract::Xml);
    demo.fix(&[&code.findings[0]]);
    assert_eq!(demo.review(ReviewerKind::Code, Contract::Xml).verdict, Verdict::Approved);
    assert_eq!(demo.review(ReviewerKind::Spec, Contract::Auto).verdict, Verdict::ChangesRequested);
}

#[test]
fn the_goodbye_task_needs_a_decision_or_lets_the_fixer_decide() {
    let mut demo = DemoRun::new(1);
    demo.implement();
    assert_eq!(demo.check(), "exit 0\n");
    assert_eq!(demo.review(ReviewerKind::Code, Contract::Xml).verdict, Verdict::Approved);
    for contract in [Contract::Auto, Contract::Markdown] {
        let spec = demo.review(ReviewerKind::Spec, contract);
        assert_eq!(spec.verdict, Verdict::NeedsDiscussion);
    }
    // The user answers: go on.
    insta::assert_snapshot!(demo.fix(&[]), @"- bye.sh: fixed. Take the language from LANG, and English where it is not known");
    assert_eq!(demo.check(), "exit 0\n");
    assert_eq!(demo.review(ReviewerKind::Spec, Contract::Auto).verdict, Verdict::Approved);
    assert_eq!(demo.review(ReviewerKind::Code, Contract::Xml).verdict, Verdict::Approved);
}

#[test]
fn every_reviewer_answers_in_the_requested_format() {
    let mut demo = DemoRun::new(0);
    demo.implement();
    for contract in [Contract::Xml, Contract::Markdown, Contract::Auto] {
        for &kind in ReviewerKind::VARIANTS {
            let review = demo.review(kind, contract);
            assert_eq!(review.verdict, Verdict::ChangesRequested, "{kind:?} in {contract:?}");
        }
    }
}

#[test]
fn finished_work_is_not_repeated() {
    let mut demo = DemoRun::new(0);
    demo.implement();
    let findings: Vec<Finding> = demo.review(ReviewerKind::Code, Contract::Xml).findings;
    demo.fix(&[&findings[0]]);
    let before = demo.files.clone();
    demo.implement();
    assert_eq!(demo.files, before);
    demo.fix(&[&findings[0]]);
    assert_eq!(demo.files["greet.sh"], before["greet.sh"]);
}

#[test]
fn unknown_tasks_and_roles_are_errors() {
    let files = DemoRun::new(0).files;
    let environment = DemoEnvironment { role: "implement".to_owned(), ..DemoEnvironment::default() };
    let prompt = "# IMPLEMENT PHASE\n\n## Task\n**Write a compiler**\n\n## Other Loops\n- a greeting\n";
    assert_eq!(answer(prompt, &environment, &files), Err(DemoError::Task));
    let environment = DemoEnvironment { role: "plan".to_owned(), ..environment };
    let prompt = "# PLAN PHASE\n\n## Task\n**Add a greeting by name**\n";
    assert_eq!(answer(prompt, &environment, &files), Err(DemoError::Role("plan".to_owned())));
}

#[test]
fn the_configuration_names_the_agent_and_the_tasks_have_titles() {
    assert!(demo::config().contains("kind = \"demo\""));
    assert!(demo::tasks()[0].starts_with("Add a greeting") && demo::tasks()[1].starts_with("Say goodbye"));
}
