//! The program is killed at its failpoints and started again: the result equals that of an undisturbed run.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use signoff_testkit::agent_script::{AgentScript, ScriptRule};
use signoff_testkit::calls::AgentCall;
use signoff_testkit::processes::{self, wait_until};
use signoff_testkit::{ProgramOutput, TestProject};

use crate::PROGRAM;

/// A set of commands and tasks that is killed on the way.
#[derive(Clone, Copy)]
struct Story {
    begin: &'static [&'static str],
    resume: &'static [&'static str],
    tasks: usize,
}

/// Five tasks of the queue, two at a time.
const QUEUE: Story = Story { begin: &["work", "-j", "2"], resume: &["work", "-j", "2"], tasks: 5 };

/// Three tasks of a plan, one after the other.
const PLAN: Story = Story { begin: &["run", "plan.md"], resume: &["run", "--resume"], tasks: 3 };

/// Three groups of three tasks; two tasks change the same file.
const GROUPS: Story =
    Story { begin: &["run", "SPEC.md", "-j", "3"], resume: &["run", "--resume", "-j", "3"], tasks: 9 };

/// The failpoints at which the program is killed.
const PLACES: [&str; 16] = [
    "append",
    "appended",
    "artifact",
    "branched",
    "commit",
    "committed",
    "exit",
    "marked",
    "owned",
    "phase",
    "phased",
    "place",
    "prepare",
    "registered",
    "spawn",
    "workspace_created",
];

/// Further failpoints that are passed while work lands.
const LANDING: [&str; 6] =
    ["landed", "landing_lock", "merged", "rejected_branch_moved", "rejection_recorded", "target_moved"];

const REVIEWERS: &str = r#"
[reviewers.spec]
kind = "spec"
contract = "markdown"
[reviewers.code]
kind = "code"
contract = "markdown"
[gate]
reviewers = ["spec", "code"]
"#;

/// Every other task needs a fix. Every action is idempotent.
fn agent(script: AgentScript) -> AgentScript {
    let refused = "- file.txt:1 [HIGH] task {task} lacks a check\n\n**Verdict: CHANGES_REQUESTED**\n";
    let refuses = |task| ScriptRule::role("review").reviewer("code").cycle(1).task(task).say(refused);
    script
        .rule(ScriptRule::role("implement").write("task-{task}.txt", "work\n").say("Done.\n"))
        .rule(ScriptRule::role("fix").write("task-{task}-fix-{cycle}.txt", "fixed\n").say("Fixed.\n"))
        .rule(refuses("1"))
        .rule(refuses("3"))
        .rule(refuses("5"))
        .rule(ScriptRule::role("review").say("All is well.\n\n**Verdict: APPROVED**\n"))
}

/// The same for a specification: tasks 1 and 2 write one file, so the second to land has a conflict.
fn team(script: AgentScript) -> AgentScript {
    let ids = |group: u32| (1..=3).map(move |number| format!("\"t{}\"", 3 * group + number));
    let task = |id: String| format!("{{\"id\": {id}, \"title\": \"Part {}\"}}", &id[2..id.len() - 1]);
    let tasks: Vec<String> = (0..3).flat_map(ids).map(task).collect();
    let groups: Vec<String> = (0..3).map(|group| format!("[{}]", ids(group).collect::<Vec<_>>().join(", "))).collect();
    let shared = |task| {
        let rule = ScriptRule::role("implement").task(task).write("shared.txt", "task {task}\n");
        rule.write("task-{task}.txt", "work\n").say("TASK_COMPLETE\n")
    };
    let resolves = ScriptRule::role("fix")
        .prompt_contains("shared.txt")
        .shell("sed -i '/^<<<<<<</d;/^|||||||/d;/^=======/d;/^>>>>>>>/d' shared.txt");
    let script = script
        .rule(ScriptRule::role("enumerate").say(&format!("{{\"tasks\": [{}]}}\n", tasks.join(", "))))
        .rule(ScriptRule::role("plan").say(&format!("{{\"groups\": [{}]}}\n", groups.join(", "))))
        .rule(shared("1"))
        .rule(shared("2"))
        .rule(resolves.say("Both.\n"))
        .rule(ScriptRule::role("implement").write("task-{task}.txt", "work\n").say("TASK_COMPLETE\n"));
    agent(script)
}

/// Two reviewers for the tasks; the plan and the final review have one.
const TEAM: &str = r#"
[reviewers.spec]
kind = "spec"
contract = "markdown"
[reviewers.code]
kind = "code"
contract = "markdown"
[presets.loops.gates.review]
reviewers = ["spec", "code"]
"#;

impl Story {
    fn set_up(self) -> TestProject {
        if self.begin == GROUPS.begin {
            let project = TestProject::with_agent(PROGRAM, team);
            project.configure(TEAM);
            project.env.write("SPEC.md", "# Nine parts\n");
            project.commit("Specify");
            return project;
        }
        let project = TestProject::with_agent(PROGRAM, agent);
        project.configure(REVIEWERS);
        if self.begin == QUEUE.begin {
            for number in 1..=self.tasks {
                assert_eq!(project.run(&["add", &format!("Part {number}"), "-a"]).code, Some(0));
            }
        } else {
            let tasks = (1..=self.tasks).map(|number| format!("### Task {number}: Part {number}\n\nDo it.\n\n"));
            project.env.write("plan.md", format!("# Plan\n\n{}", tasks.collect::<String>()));
            project.commit("Plan");
        }
        project
    }

    /// Resumes until the work is done. If nothing was recorded before the kill, starts again.
    fn go_on(self, project: &TestProject, variables: &[(&str, &str)]) -> ProgramOutput {
        let status = project.run(&["status", "--json"]).json();
        let any = |key: &str| status[key].as_array().is_some_and(|rows| !rows.is_empty());
        let begun = any("tasks") || any("runs");
        project.env.run_with(if begun { self.resume } else { self.begin }, variables)
    }

    /// How often each failpoint is passed without kills, and the result.
    fn undisturbed(self) -> (BTreeMap<String, u64>, Ending) {
        let project = self.set_up();
        let log = project.env.root().join("passed");
        let variables = [("SIGNOFF_FAILPOINTS", log.to_str().unwrap())];
        let output = project.env.run_with(self.begin, &variables);
        assert_eq!(output.code, Some(0), "{output}");
        let mut passed = BTreeMap::new();
        for name in fs::read_to_string(&log).unwrap().lines() {
            *passed.entry(name.to_owned()).or_default() += 1;
        }
        (passed, Ending::from_project(&project))
    }

    /// Killed at these failpoints one after the other, then left undisturbed.
    fn killed_at(self, places: &[(&str, u64)], undisturbed: &Ending) {
        let project = self.set_up();
        let before = project.checkout();
        for (number, (place, count)) in places.iter().enumerate() {
            let trap = format!("{place}:{count}");
            let variables = [("SIGNOFF_FAILPOINT", trap.as_str())];
            let output = if number == 0 {
                project.env.run_with(self.begin, &variables)
            } else {
                self.go_on(&project, &variables)
            };
            assert_eq!(output.signal, Some(9), "killed at {trap}: {output}");
        }
        let output = self.go_on(&project, &[]);
        assert_eq!(output.code, Some(0), "after a kill at {places:?}: {output}");
        assert_eq!(&Ending::from_project(&project), undisturbed, "after a kill at {places:?}");
        assert_eq!(finished_twice(&project), Vec::<String>::new(), "after a kill at {places:?}");
        wait_until("nothing of ours runs", || processes::with_root(project.env.root()).is_empty());
        let doctor = project.run(&["doctor"]);
        assert_eq!(doctor.code, Some(0), "after a kill at {places:?}: {doctor}");
        assert_eq!(project.checkout(), before, "after a kill at {places:?}");
    }
}

/// Everything that must be equal however often the program was killed.
#[derive(Debug, PartialEq)]
struct Ending {
    status: String,
    /// Each signoff branch with its commits and its changes.
    branches: Vec<String>,
    /// The reviews, without the date in their names.
    artifacts: BTreeMap<String, String>,
    /// The jobs that were done.
    jobs: BTreeSet<[String; 5]>,
}

impl Ending {
    fn from_project(project: &TestProject) -> Self {
        let names = project.git("for-each-ref --format='%(refname:short)' refs/heads/signoff");
        let branch = |name: &str| {
            let changes = project.git(&format!("diff main {name}"));
            let made = project.git(&format!("log --reverse --first-parent --format=%s main..{name}"));
            format!("{name}\n{made}{changes}")
        };
        Self {
            status: project.run(&["status"]).stdout,
            branches: names.lines().map(branch).collect(),
            artifacts: artifacts(project),
            jobs: project.calls().all().iter().map(job).collect(),
        }
    }
}

pub fn artifacts(project: &TestProject) -> BTreeMap<String, String> {
    let names = project.list(".signoff/reviews");
    let file = |name: String| {
        let text = project.read(&format!(".signoff/reviews/{name}"));
        (name.get(9..).unwrap_or(&name).to_owned(), text)
    };
    names.into_iter().map(file).collect()
}

fn job(call: &AgentCall) -> [String; 5] {
    let start = call.start.clone();
    [start.role, start.reviewer, start.task, start.phase, start.cycle]
}

/// Jobs that an agent completed more than once.
fn finished_twice(project: &TestProject) -> Vec<String> {
    let mut finished = BTreeSet::new();
    let calls = project.calls();
    let own = calls.all().iter().filter(|call| call.end.is_some() && ended_by_itself(project, call));
    own.map(job).filter(|job| !finished.insert(job.clone())).map(|job| job.join(" ")).collect()
}

/// An agent may be about to exit when the program is killed: then it was ended by the kill, even if it has already
/// logged its end.
pub fn ended_by_itself(project: &TestProject, call: &AgentCall) -> bool {
    let runs = project.env.work().join(".signoff/runs");
    let dirs = fs::read_dir(runs).unwrap().flatten();
    let serves = if call.start.phase == "final_review" { "final" } else { "plan" };
    let name = if call.start.task.is_empty() { serves } else { &call.start.task };
    let dir = |run: PathBuf| run.join(name).join(format!("a{}", call.start.attempt));
    let result = dirs.map(|run| dir(run.path()).join("result.json")).find(|path| path.exists());
    result.is_some_and(|path| exit(&path).get("code").is_some())
}

fn exit(result: &Path) -> serde_json::Value {
    let ended: serde_json::Value = serde_json::from_slice(&fs::read(result).unwrap()).unwrap();
    ended["exit"].clone()
}

/// The first passing of a failpoint, one in the middle, and the last.
fn first_middle_last(count: u64) -> BTreeSet<u64> {
    [1, count / 2 + 1, count].into()
}

fn all_passes(count: u64) -> BTreeSet<u64> {
    (1..=count).collect()
}

fn every_third_pass(count: u64) -> BTreeSet<u64> {
    (1..=count).step_by(3).collect()
}

fn killed_at(story: Story, places: &[&str], counts: fn(u64) -> BTreeSet<u64>) {
    let (passed, undisturbed) = story.undisturbed();
    for place in places {
        for count in counts(passed[*place]) {
            story.killed_at(&[(place, count)], &undisturbed);
        }
    }
}

#[test]
fn undisturbed_every_failpoint_is_passed() {
    let (passed, undisturbed) = QUEUE.undisturbed();
    assert_eq!(passed.keys().map(String::as_str).collect::<Vec<_>>(), PLACES);
    insta::assert_snapshot!(undisturbed.status, @"
    ✓ 1. implement Part 1    completed  APPROVED (2 cycles)
    ✓ 2. implement Part 2    completed  APPROVED (1 cycle)
    ✓ 3. implement Part 3    completed  APPROVED (2 cycles)
    ✓ 4. implement Part 4    completed  APPROVED (1 cycle)
    ✓ 5. implement Part 5    completed  APPROVED (2 cycles)
    ");
    insta::assert_snapshot!(undisturbed.branches[0], @"
    signoff/task-1-part-1
    Part 1 - initial implementation
    Address review feedback (cycle 1)
    diff --git a/task-1-fix-1.txt b/task-1-fix-1.txt
    new file mode 100644
    index 0000000..eaaa2f8
    --- /dev/null
    +++ b/task-1-fix-1.txt
    @@ -0,0 +1 @@
    +fixed
    diff --git a/task-1.txt b/task-1.txt
    new file mode 100644
    index 0000000..b8f99f5
    --- /dev/null
    +++ b/task-1.txt
    @@ -0,0 +1 @@
    +work
    ");
    assert_eq!((undisturbed.artifacts.len(), undisturbed.jobs.len()), (24, 24));
}

#[test]
fn killed_while_an_event_is_recorded() {
    killed_at(QUEUE, &["append", "appended"], first_middle_last);
}

#[test]
fn killed_while_a_worktree_is_created() {
    killed_at(QUEUE, &["place", "branched", "registered", "marked", "owned", "workspace_created"], first_middle_last);
}

#[test]
fn killed_around_an_agent() {
    killed_at(QUEUE, &["prepare", "spawn", "exit", "phase", "phased"], first_middle_last);
}

#[test]
fn killed_while_work_is_committed() {
    killed_at(QUEUE, &["commit", "committed", "artifact"], first_middle_last);
}

#[test]
fn a_plan_resumes_after_a_kill_at_any_failpoint() {
    killed_at(PLAN, &PLACES, |count| [count / 2 + 1].into());
}

#[test]
fn a_run_of_groups_passes_every_failpoint_and_lands_everything() {
    let (passed, undisturbed) = GROUPS.undisturbed();
    let mut places: Vec<&str> = PLACES.iter().chain(&LANDING).copied().collect();
    places.sort_unstable();
    assert_eq!(passed.keys().map(String::as_str).collect::<Vec<_>>(), places);
    insta::assert_snapshot!(undisturbed.status, @"
    ✓ 1. implement Part 1    completed  APPROVED (2 cycles)
    ✓ 2. implement Part 2    completed  APPROVED (2 cycles)
    ✓ 3. implement Part 3    completed  APPROVED (2 cycles)
    ✓ 4. implement Part 4    completed  APPROVED (1 cycle)
    ✓ 5. implement Part 5    completed  APPROVED (2 cycles)
    ✓ 6. implement Part 6    completed  APPROVED (1 cycle)
    ✓ 7. implement Part 7    completed  APPROVED (1 cycle)
    ✓ 8. implement Part 8    completed  APPROVED (1 cycle)
    ✓ 9. implement Part 9    completed  APPROVED (1 cycle)
    ");
    insta::assert_snapshot!(undisturbed.branches[0], @"
    signoff/run-1
    Merge task 1: Part 1
    Merge task 3: Part 3
    Merge task 2: Part 2
    Merge task 4: Part 4
    Merge task 5: Part 5
    Merge task 6: Part 6
    Merge task 7: Part 7
    Merge task 8: Part 8
    Merge task 9: Part 9
    diff --git a/shared.txt b/shared.txt
    new file mode 100644
    index 0000000..7e6e8d9
    --- /dev/null
    +++ b/shared.txt
    @@ -0,0 +1,2 @@
    +task 2
    +task 1
    diff --git a/task-1-fix-1.txt b/task-1-fix-1.txt
    new file mode 100644
    index 0000000..eaaa2f8
    --- /dev/null
    +++ b/task-1-fix-1.txt
    @@ -0,0 +1 @@
    +fixed
    diff --git a/task-1.txt b/task-1.txt
    new file mode 100644
    index 0000000..b8f99f5
    --- /dev/null
    +++ b/task-1.txt
    @@ -0,0 +1 @@
    +work
    diff --git a/task-2.txt b/task-2.txt
    new file mode 100644
    index 0000000..b8f99f5
    --- /dev/null
    +++ b/task-2.txt
    @@ -0,0 +1 @@
    +work
    diff --git a/task-3-fix-1.txt b/task-3-fix-1.txt
    new file mode 100644
    index 0000000..eaaa2f8
    --- /dev/null
    +++ b/task-3-fix-1.txt
    @@ -0,0 +1 @@
    +fixed
    diff --git a/task-3.txt b/task-3.txt
    new file mode 100644
    index 0000000..b8f99f5
    --- /dev/null
    +++ b/task-3.txt
    @@ -0,0 +1 @@
    +work
    diff --git a/task-4.txt b/task-4.txt
    new file mode 100644
    index 0000000..b8f99f5
    --- /dev/null
    +++ b/task-4.txt
    @@ -0,0 +1 @@
    +work
    diff --git a/task-5-fix-1.txt b/task-5-fix-1.txt
    new file mode 100644
    index 0000000..eaaa2f8
    --- /dev/null
    +++ b/task-5-fix-1.txt
    @@ -0,0 +1 @@
    +fixed
    diff --git a/task-5.txt b/task-5.txt
    new file mode 100644
    index 0000000..b8f99f5
    --- /dev/null
    +++ b/task-5.txt
    @@ -0,0 +1 @@
    +work
    diff --git a/task-6.txt b/task-6.txt
    new file mode 100644
    index 0000000..b8f99f5
    --- /dev/null
    +++ b/task-6.txt
    @@ -0,0 +1 @@
    +work
    diff --git a/task-7.txt b/task-7.txt
    new file mode 100644
    index 0000000..b8f99f5
    --- /dev/null
    +++ b/task-7.txt
    @@ -0,0 +1 @@
    +work
    diff --git a/task-8.txt b/task-8.txt
    new file mode 100644
    index 0000000..b8f99f5
    --- /dev/null
    +++ b/task-8.txt
    @@ -0,0 +1 @@
    +work
    diff --git a/task-9.txt b/task-9.txt
    new file mode 100644
    index 0000000..b8f99f5
    --- /dev/null
    +++ b/task-9.txt
    @@ -0,0 +1 @@
    +work
    ");
}

#[test]
fn a_run_of_groups_resumes_after_a_kill_at_any_failpoint() {
    killed_at(GROUPS, &PLACES, |count| [count / 2 + 1].into());
}

#[test]
fn a_run_of_groups_resumes_after_a_kill_while_it_lands() {
    killed_at(GROUPS, &LANDING, first_middle_last);
}

#[test]
fn a_run_of_groups_resumes_after_a_kill_while_it_is_planned() {
    let (_, undisturbed) = GROUPS.undisturbed();
    for place in ["append", "appended", "prepare", "spawn", "exit", "workspace_created", "registered"] {
        GROUPS.killed_at(&[(place, 2)], &undisturbed);
    }
}

#[test]
fn killed_again_while_it_recovers() {
    let (_, undisturbed) = QUEUE.undisturbed();
    QUEUE.killed_at(&[("exit", 3), ("append", 1), ("append", 2), ("commit", 1)], &undisturbed);
    QUEUE.killed_at(&[("spawn", 2), ("spawn", 1), ("spawn", 1), ("appended", 1)], &undisturbed);
    QUEUE.killed_at(&[("artifact", 2), ("artifact", 1), ("artifact", 1), ("workspace_created", 1)], &undisturbed);
}

#[test]
#[ignore = "takes minutes: scripts/soak"]
fn killed_at_every_place_every_time() {
    killed_at(QUEUE, &PLACES, all_passes);
}

#[test]
#[ignore = "takes minutes: scripts/soak"]
fn a_plan_killed_at_every_place_every_time() {
    killed_at(PLAN, &PLACES[1..], all_passes);
    killed_at(PLAN, &["append"], |count| (2..=count).collect());
}

#[test]
#[ignore = "takes minutes: scripts/soak"]
fn a_run_of_groups_killed_at_every_place_every_third_time() {
    killed_at(GROUPS, &LANDING, all_passes);
    // Killed before its first event it becomes another run, and before its tasks are recorded they get other numbers:
    // then the results are equivalent, but not equal.
    assert_eq!(PLACES[0], "append");
    killed_at(GROUPS, &PLACES[1..], every_third_pass);
}

#[test]
fn a_plan_killed_before_it_was_recorded_is_started_again() {
    let project = PLAN.set_up();
    let killed = project.env.run_with(PLAN.begin, &[("SIGNOFF_FAILPOINT", "append:1")]);
    assert_eq!(killed.signal, Some(9));
    assert_eq!(project.calls().all().len(), 0);
    let resumed = project.run(PLAN.resume);
    insta::assert_snapshot!(resumed, @"
    exit 0
    --- stderr
    No run to resume
    ");
    assert_eq!(project.run(PLAN.begin).code, Some(0));
    let status = project.run(&["status"]).stdout;
    assert_eq!(status.matches("APPROVED").count(), 3, "{status}");
    assert_eq!(project.run(&["doctor"]).code, Some(0));
}

/// Agents that hang until a file exists, so that the program can be killed while they run.
fn hanging() -> TestProject {
    let project = TestProject::with_agent(PROGRAM, |script| {
        script
            .rule(ScriptRule::role("implement").call(1).write("half.txt", "half\n").daemon("{task}.daemon").hang())
            .rule(ScriptRule::role("implement").write("all.txt", "all\n").say("Done.\n"))
    });
    for title in ["One", "Two"] {
        project.run(&["add", title]);
    }
    project
}

#[test]
fn agents_end_with_the_program_that_is_killed() {
    let project = hanging();
    let mut program = project.start(&["work", "-j", "2"]);
    let daemons =
        ["task-1/1.daemon", "task-2/2.daemon"].map(|name| project.env.work().join(".signoff/worktrees").join(name));
    wait_until("both agents hang", || daemons.iter().all(|path| path.exists()));
    program.kill().unwrap();
    program.wait().unwrap();
    wait_until("nothing of ours runs", || processes::with_root(project.env.root()).is_empty());

    assert_eq!(project.run(&["work"]).code, Some(0));
    let story = project.calls().summary();
    let mut lines: Vec<&str> = story.lines().collect();
    lines.sort_unstable();
    insta::assert_snapshot!(lines.join("\n"), @"
    implement task 1 cycle 0: did not end
    implement task 1 cycle 0: exit 0
    implement task 2 cycle 0: did not end
    implement task 2 cycle 0: exit 0
    ");
    insta::assert_snapshot!(project.git("diff --stat main signoff/task-1-one"), @"
    1.daemon | 1 +
    all.txt  | 1 +
    half.txt | 1 +
    3 files changed, 3 insertions(+)
    ");
}
