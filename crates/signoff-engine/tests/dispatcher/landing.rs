//! Landing with a git repository: only approved heads land, and only if everything that comes with them is reviewed.

use signoff_core::command::LoopCommand;
use signoff_core::ids::{Commit, LoopId, RunId};
use signoff_core::machine::{Event, FinalVerdict, OutcomeKind};
use signoff_core::policy::Effort;
use signoff_core::view::RunState;
use signoff_core::wire::{Fact, LoopFact, RecordedFact};
use signoff_engine::error::EngineError;
use signoff_engine::landing::{self, ApprovedRange, DirectLanding, LandingResult};
use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::story::{GitProject, RunLoopEnd, Story};

use crate::dispatcher::groups::{developers, planners};
use crate::dispatcher::scripts::{FEATURE, approves, changes_requested, developer, lines_after, strict_reviewer};

const BRANCH: &str = "signoff/task-1-log-in";

/// One approved task with three commits.
fn approved() -> (Story, GitProject) {
    let (story, project) = Story::with_git("", |script| strict_reviewer(developer(script)));
    story.add("Log in");
    story.work();
    assert_eq!(story.outcome(1), "1 completed approved APPROVED - 3");
    (story, project)
}

/// Lands a commit as task 1, with the task's approved range.
fn land(story: &Story, commit: &Commit) -> Result<LandingResult, EngineError> {
    land_from(story, RunId(1), commit)
}

/// Lands a commit as work of a run.
fn land_from(story: &Story, run_id: RunId, commit: &Commit) -> Result<LandingResult, EngineError> {
    let row = story.task(1);
    let direct = DirectLanding {
        run: run_id,
        what: "task 1".to_owned(),
        name: "task-1".to_owned(),
        commit: commit.clone(),
        message: "Merge task 1: Log in".to_owned(),
        own: ApprovedRange::for_task(&row).filter(|_| row.run_id == Some(run_id.0)),
    };
    let ctx = story.context(1);
    run(async { landing::land(&ctx, direct, &|_| ()).await })
}

/// Lands a run on the default branch.
fn land_run(story: &Story) -> Result<(Commit, bool), EngineError> {
    let (ctx, run_state) = (story.context(1), RunState::from_log(&story.log(RunId(1))));
    run(async { landing::land_run(&ctx, run_state, &|_| ()).await })
}

fn run<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(future)
}

/// The message of a landing that was refused.
fn refusal<T: std::fmt::Debug>(landed: Result<T, EngineError>) -> String {
    landed.expect_err("a refusal").to_string()
}

#[test]
fn approved_work_lands_once() {
    let (story, project) = approved();
    let tip = project.tip(BRANCH);
    let landed = land(&story, &tip).expect("a landing");
    assert!(matches!(landed, LandingResult::Landed { is_new: true, .. }), "{landed:?}");
    assert_eq!(project.file("main", FEATURE), "login\nfixed 1\nfixed 2");
    let again = land(&story, &tip).expect("a landing");
    assert!(matches!(again, LandingResult::Landed { is_new: false, .. }), "{again:?}");
}

#[test]
fn a_commit_after_the_approval_does_not_land() {
    let (story, project) = approved();
    let before = project.tip("main");
    let later = project.commit_on(BRANCH, "evil.txt", "evil\n");
    let message = refusal(land(&story, &later));
    assert!(message.contains("(\"By hand\") came from elsewhere and was not reviewed"), "{message}");
    assert_eq!(project.tip("main"), before);
}

#[test]
fn a_part_of_an_approved_range_does_not_land() {
    let (story, project) = approved();
    let part = project.tip(&format!("{BRANCH}~1"));
    let message = refusal(land(&story, &part));
    assert!(message.contains("was not reviewed"), "{message}");
    assert_eq!(project.file_names("main"), "");
}

#[test]
fn a_commit_that_git_removed_does_not_land() {
    let (story, _project) = approved();
    let message = refusal(land(&story, &Commit::new("0123456789012345678901234567890123456789")));
    assert!(message.contains("no longer exists"), "{message}");
}

/// Merges the default branch, which has a newer commit, into the task's branch.
fn merged(project: &GitProject, evil: bool) -> Commit {
    let newer = project.commit_on("main", "newer.txt", "newer\n");
    project.git(&["update-ref", "refs/heads/main", newer.as_str()]);
    project.git(&["reset", "-q", "--hard", "main"]);
    project.git(&["checkout", "-q", "--detach", BRANCH]);
    project.git(&["merge", "-q", "--no-edit", "main"]);
    if evil {
        project.git(&["rm", "-q", "README.md"]);
        project.git(&["commit", "-q", "--amend", "--no-edit"]);
    }
    let commit = project.tip("HEAD");
    project.git(&["checkout", "-q", "main"]);
    commit
}

#[test]
fn a_merge_of_approved_work_lands_only_if_it_changes_nothing_else() {
    let (story, project) = approved();
    let plain = merged(&project, false);
    let landed = land(&story, &plain).expect("a landing");
    assert!(matches!(landed, LandingResult::Landed { is_new: true, .. }), "{landed:?}");
    assert_eq!(project.file_names("main"), "auth.txt newer.txt");
    let (story, project) = approved();
    let evil = merged(&project, true);
    assert!(refusal(land(&story, &evil)).contains("was not reviewed"));
    assert_eq!(project.file_names("main"), "newer.txt");
}

#[test]
fn work_that_builds_on_a_refused_task_does_not_land() {
    let (story, project) = Story::with_git("", |script| {
        let works = ScriptRule::role("implement").write("{task}.txt", "work\n").say("Done.\n");
        let refuses = ScriptRule::role("review").task("2").say(&changes_requested("no"));
        approves(script.rule(works).rule(ScriptRule::role("fix").append("{task}.txt", "more\n")).rule(refuses))
    });
    story.add("Log in");
    story.add("Log out");
    story.work();
    assert_eq!(story.task(2).outcome, Some(OutcomeKind::Exhausted));
    project.git(&["checkout", "-q", "--detach", BRANCH]);
    project.git(&["merge", "-q", "--no-edit", "signoff/task-2-log-out"]);
    let both = project.tip("HEAD");
    project.git(&["checkout", "-q", "main"]);
    assert_eq!(refusal(land(&story, &both)), "task 1 builds on task 2, which is not approved");
    assert_eq!(project.file_names("main"), "");
}

/// A specification whose final review never approves.
fn refused_run(script: AgentScript) -> AgentScript {
    let refuses = ScriptRule::role("review").phase("final_review").say(&changes_requested("it does not fit"));
    let fixes = ScriptRule::role("fix").phase("final_review").append("glue.txt", "glue\n").say("Fixed.\n");
    approves(developers(planners(script).rule(refuses).rule(fixes)))
}

#[test]
fn a_run_lands_only_if_its_final_review_or_a_person_approves_it() {
    let (story, project) = Story::with_git("", refused_run);
    story.run_spec(Some(Effort::Low), 1);
    assert_eq!(story.run_status(1), "failed");
    let message = refusal(land_run(&story));
    assert_eq!(message, "run 1 cannot land: its final review did not approve it (1 open finding)");
    // Another run that builds on it does not land either.
    let message = refusal(land_from(&story, RunId(2), &project.tip("signoff/task-1-log-in")));
    assert_eq!(message, "run 1 cannot land: its final review did not approve it (1 open finding)");
    assert_eq!(project.file_names("main"), "");
    let (verdict, by, reason) = (FinalVerdict::Approved, "Ann".to_owned(), "it fits".to_owned());
    let head = project.repository().head_of("signoff/run-1").expect("a readable branch");
    story.decide(RunId(1), &LoopId::final_review(), LoopCommand::Edit { verdict, by, reason, head });
    let (_, now) = land_run(&story).expect("a landing");
    assert!(now);
    assert_eq!(project.file_names("main"), "glue.txt task-1.txt task-2.txt task-3.txt");
}

/// Decides about the final review while no process executes the run.
fn decide(story: &Story, command: LoopCommand) {
    story.decide(RunId(1), &LoopId::final_review(), command);
}

fn retry() -> LoopCommand {
    LoopCommand::Retry { by: "Ann".to_owned() }
}

/// Disputes the one finding of the final review.
fn dispute(story: &Story) {
    let state = RunState::from_log(&story.log(RunId(1)));
    let ledger = &state.loops[&LoopId::final_review()].machine.ledger;
    let finding = ledger.entries().first().expect("a finding").finding.id.clone();
    decide(story, LoopCommand::Dispute { finding, by: "Ann".to_owned(), reason: "it does fit".to_owned() });
}

const WHOLE: &str = "glue.txt task-1.txt task-2.txt task-3.txt";

#[test]
fn a_disputed_finding_of_a_final_review_is_reviewed_again_without_a_fix() {
    let (story, project) = Story::with_git("", refused_run);
    story.run_spec(Some(Effort::Low), 1);
    let fixes = story.calls_as("fix").len();
    dispute(&story);
    assert_eq!(refusal(land_run(&story)), "run 1 cannot land: its final review did not approve it");
    story.set_agent(|script| approves(developers(planners(script))));
    decide(&story, retry());
    story.resume();
    assert_eq!((story.run_status(1).as_str(), story.calls_as("fix").len()), ("completed", fixes));
    assert!(land_run(&story).expect("a landing").1);
    assert_eq!(project.file_names("main"), WHOLE);
}

/// The reviewer repeats its finding, which a user disputed.
#[test]
fn a_final_review_overruled_by_a_person_is_not_printed_as_approved_by_reviewers() {
    let (story, _project) = Story::with_git("", refused_run);
    story.run_spec(Some(Effort::Low), 1);
    dispute(&story);
    decide(&story, retry());
    let facts = story.log(RunId(1)).len();
    story.resume();
    let printed = lines_after(&story, facts);
    for line in [
        "Review: APPROVED, 1 finding overruled by a person",
        "✓ Run 1 completed, all approved, the final review by a person: 3 tasks",
    ] {
        assert!(printed.contains(line), "{line}: {printed}");
    }
}

#[test]
fn a_final_review_that_is_retried_lets_the_whole_run_land_once_it_approves() {
    let (story, project) = Story::with_git("", refused_run);
    story.run_spec(Some(Effort::Low), 1);
    let fixes = ScriptRule::role("fix").phase("final_review").append("glue.txt", "more\n").say("Fixed.\n");
    story.set_agent(|script| approves(developers(planners(script).rule(fixes))));
    decide(&story, retry());
    story.resume();
    assert_eq!(story.run_status(1), "completed");
    assert!(land_run(&story).expect("a landing").1);
    assert_eq!(project.file_names("main"), WHOLE);
    assert!(project.file("main", "glue.txt").ends_with("more"));
}

/// The number of recorded facts at each granted landing of the run of all tasks, if nothing kills it.
fn grants_of_undisturbed_run() -> Vec<usize> {
    let (story, _project) = Story::with_git("", |script| approves(developers(planners(script))));
    story.run_spec(None, 1);
    let log = story.log(RunId(1));
    let is_grant =
        |recorded: &RecordedFact| matches!(recorded.fact, Fact::Loop(_, LoopFact::Transitioned(Event::LandingGranted)));
    let grants: Vec<usize> =
        (1..).zip(&log).filter(|(_, recorded)| is_grant(recorded)).map(|(facts, _)| facts).collect();
    assert_eq!(grants.len(), 3, "one for each task");
    grants
}

/// Works the specification until the process is killed. The next process is not.
fn run_killed_after(story: &mut Story, facts: usize) {
    story.kill_after(facts);
    let end = story.try_run_spec(None, 1);
    assert!(matches!(end, RunLoopEnd::Killed), "the run ended before fact {facts}");
    story.never_kill();
}

#[test]
fn a_run_does_not_land_before_its_final_review() {
    let (mut story, project) = Story::with_git("", |script| approves(developers(planners(script))));
    let last_grant = grants_of_undisturbed_run().pop().expect("a landing");
    run_killed_after(&mut story, last_grant);
    assert_eq!(refusal(land_run(&story)), "run 1 cannot land: its final review has not begun");
    assert_eq!(project.file_names("main"), "");
    story.resume();
    assert!(land_run(&story).expect("a landing").1);
    assert_eq!(project.file_names("main"), "task-1.txt task-2.txt task-3.txt");
}

#[test]
fn a_conflict_is_sent_back_until_no_marker_is_left() {
    let same =
        |task: &str| ScriptRule::role("implement").task(task).write("shared.txt", "{task}\n").say("TASK_COMPLETE\n");
    // The first fix leaves the markers.
    let leaves = ScriptRule::role("fix").call(1).write("other.txt", "other\n").say("Fixed.\n");
    let resolves = ScriptRule::role("fix").write("shared.txt", "1\n2\n").say("Both.\n");
    let (story, project) = Story::with_git("", |script| {
        approves(developers(planners(script).rule(same("1")).rule(same("2")).rule(leaves).rule(resolves)))
    });
    story.run_spec(None, 1);
    assert_eq!(story.run_status(1), "completed");
    assert_eq!(project.file("signoff/run-1", "shared.txt"), "1\n2");
    let fixes = story.calls_as("fix");
    assert_eq!(fixes.len(), 2);
    assert!(fixes.iter().all(|call| call.prompt.contains("shared.txt")), "{}", fixes[0].prompt);
}

#[test]
fn a_commit_on_the_branch_is_reviewed_before_it_lands() {
    let gives_up = ScriptRule::role("implement").task("1").say("TASK_STUCK: no such API\n");
    let (story, project) = Story::with_git("", |script| approves(developers(planners(script.rule(gives_up)))));
    story.run_spec(None, 1);
    assert_eq!(story.run_status(1), "blocked");
    let commit = project.commit_on("signoff/task-2-log-out", "by-hand.txt", "mine\n");
    project.git(&["update-ref", "refs/heads/signoff/task-2-log-out", commit.as_str()]);
    story.set_agent(|script| approves(developers(planners(script))));
    story.retry(1);
    story.resume();
    assert_eq!(story.run_status(1), "completed");
    assert_eq!(story.calls_as("review").iter().filter(|call| call.task == "2").count(), 2);
    assert_eq!(project.file_names("signoff/run-1"), "by-hand.txt task-1.txt task-2.txt task-3.txt");
}

#[test]
fn a_landing_resumes_after_a_kill_at_any_fact() {
    // Before the landing, after it is granted, and twice until it is recorded.
    for fact in grants_of_undisturbed_run().into_iter().flat_map(|grant| grant - 1..grant + 3) {
        let (mut story, project) = Story::with_git("", |script| approves(developers(planners(script))));
        run_killed_after(&mut story, fact);
        story.resume();
        assert_eq!(story.run_status(1), "completed", "killed at fact {fact}");
        let subjects = project.git(&["log", "--first-parent", "--format=%s", "main..signoff/run-1"]);
        assert_eq!(subjects, "Merge task 3: Audit log\nMerge task 2: Log out\nMerge task 1: Log in", "fact {fact}");
    }
}
