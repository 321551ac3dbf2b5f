//! Runs the dispatcher on an in-memory project with scripted agents and user decisions.

mod agent_workspaces;
mod attempt_files;
mod git_project;
mod memory_agents;
mod memory_repository;
mod memory_workspaces;
mod scripted_attempt;
mod scripted_call;
mod scripted_executor;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use signoff_core::command::{self, LoopCommand};
use signoff_core::group::{LoopStatus, RunEvent, RunPolicy, TaskSource};
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::{self, Loop};
use signoff_core::policy::Effort;
use signoff_core::redact::Secrets;
use signoff_core::sandbox::SandboxBackend;
use signoff_core::settings::{self, Layer, Settings, TaskFlags};
use signoff_core::task::TaskSpec;
use signoff_core::view::{QuestionRow, RunState, TaskRow};
use signoff_core::wire::{Fact, LoopFact, RunFact};
use signoff_engine::attempt::{EngineContext, ReadOnlyGuards, SeenNotes};
use signoff_engine::dispatcher::{Dispatcher, DispatcherNotice, Renderer, RunLoopOptions, RunLoopSummary};
use signoff_engine::executor::Backends;
use signoff_engine::git::{Git, Repository};
use signoff_engine::landing::LatestLandings;
use signoff_engine::layout::Layout;
use signoff_engine::process::SupervisorLauncher;
use signoff_engine::reports::ReportRegistry;
use signoff_engine::sandbox::SandboxSupport;
use signoff_engine::tracker::TrackerOptions;
use signoff_engine::workspace::Workspaces;
use signoff_engine::{clock, start_run};
use signoff_store::{Lease, NewTask, Store};
use tempfile::TempDir;

pub use git_project::GitProject;
pub use memory_repository::{Files, MemoryRepository};
pub use scripted_call::ScriptedCall;
pub use scripted_executor::ScriptedExecutor;

use crate::MemoryStore;
use crate::agent_script::AgentScript;
use attempt_files::AttemptFiles;
use git_project::GitAgents;
use memory_workspaces::MemoryWorkspaces;

/// Time limit of one run loop.
const TIMEOUT: Duration = Duration::from_secs(60);

/// One agent for all roles, which works in the loop's own worktree.
const AGENT: &str = "[agents.scripted]\nkind = \"command\"\ncommand = [\"scripted\"]\n";

/// A project in memory.
pub struct Story {
    /// For locks and reviews.
    directory: TempDir,
    pub store: MemoryStore,
    settings: Settings,
    workspaces: MemoryWorkspaces,
    pub executor: ScriptedExecutor,
    pub notes: Arc<Mutex<Vec<String>>>,
    kill_at: Option<usize>,
    /// The context and the workspaces of a project with a git repository.
    git: Option<(Arc<EngineContext>, Arc<dyn Workspaces>)>,
}

/// How a run loop ended.
#[derive(Debug)]
pub enum RunLoopEnd {
    Ended(RunLoopSummary),
    /// The process was killed.
    Killed,
}

/// The first facts of a new run.
pub type NewRun = Box<dyn FnOnce(RunId) -> Vec<Fact>>;

/// The payload of the panic that kills a run loop.
struct KilledRunLoop;

/// Collects notes, and kills the process after a number of facts.
struct StoryRenderer {
    notes: Arc<Mutex<Vec<String>>>,
    /// The number of facts until the process is killed.
    left: Option<usize>,
}

impl Renderer for StoryRenderer {
    fn show(&mut self, notice: &DispatcherNotice<'_>) {
        match notice {
            DispatcherNotice::Note(note) => self.notes.lock().expect("notes").push((*note).to_owned()),
            DispatcherNotice::Recorded(_) => {
                self.left = self.left.map(|left| left.saturating_sub(1));
                if self.left == Some(0) {
                    resume_unwind(Box::new(KilledRunLoop));
                }
            }
            DispatcherNotice::Replayed(_)
            | DispatcherNotice::Resumed { .. }
            | DispatcherNotice::OutputLine { .. }
            | DispatcherNotice::Stopping => {}
        }
    }
}

/// A repository without commits, for the parts of the context that no story uses.
fn unused_repository() -> Repository {
    static REPOSITORY: OnceLock<(TempDir, Repository)> = OnceLock::new();
    let (_, repository) = REPOSITORY.get_or_init(|| {
        let directory = tempfile::tempdir().expect("a working disk");
        let git = directory.path().join(".git");
        for name in ["objects", "refs"] {
            fs::create_dir_all(git.join(name)).expect("a working disk");
        }
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").expect("a working disk");
        let found = Repository::discover(&Git::new(git_project::environment(directory.path())), directory.path())
            .expect("a repository");
        (directory, found)
    });
    repository.clone()
}

fn read_settings(more: &str) -> Settings {
    let text = format!("sandbox = false\nreview_workspace = \"shared\"\n{more}\n{AGENT}");
    settings::read(&[Layer::repository("signoff.toml", text)], &[], &[]).expect("valid settings")
}

impl Story {
    /// A project whose agents follow this script.
    pub fn new(script: impl FnOnce(AgentScript) -> AgentScript) -> Self {
        Self::configured("", script)
    }

    /// A project with more settings.
    pub fn configured(more: &str, script: impl FnOnce(AgentScript) -> AgentScript) -> Self {
        let (store, settings) = (MemoryStore::new(), read_settings(more));
        let workspaces = MemoryWorkspaces::new(Arc::new(store.clone()));
        let executor = ScriptedExecutor::new(Arc::new(workspaces.clone()), settings.clone());
        let directory = tempfile::tempdir().expect("a working disk");
        let notes = Arc::default();
        let this = Self { directory, store, settings, workspaces, executor, notes, kill_at: None, git: None };
        this.set_agent(script);
        this
    }

    /// A project with a git repository, for stories about landing.
    pub fn with_git(more: &str, script: impl FnOnce(AgentScript) -> AgentScript) -> (Self, GitProject) {
        let mut this = Self::configured(more, |script| script);
        let project = GitProject::new(this.directory.path());
        let ctx = Arc::new(this.new_context(1, project.repository()));
        this.executor = ScriptedExecutor::new(Arc::new(GitAgents::new(ctx.clone())), this.settings.clone());
        this.git = Some((ctx.clone(), ctx));
        this.set_agent(script);
        (this, project)
    }

    /// Like `with_git`, and attempts have files: prompts are complete, and documents are committed. Such a story takes
    /// longer, and cannot be killed.
    pub fn with_files(more: &str, script: impl FnOnce(AgentScript) -> AgentScript) -> (Self, GitProject) {
        let (mut this, project) = Self::with_git(more, |script| script);
        let ctx = this.context(1);
        let (agents, files) = (Arc::new(GitAgents::new(ctx.clone())), AttemptFiles::new(ctx));
        this.executor = ScriptedExecutor::with_files(agents, this.settings.clone(), Some(files));
        this.set_agent(script);
        (this, project)
    }

    /// Replaces the agents' script.
    pub fn set_agent(&self, script: impl FnOnce(AgentScript) -> AgentScript) {
        self.executor.set_script(script(AgentScript::default()));
    }

    /// Replaces the settings.
    pub fn configure(&mut self, more: &str) {
        self.settings = read_settings(more);
        self.executor.set_settings(self.settings.clone());
    }

    /// Adds a task that is reviewed.
    pub fn add(&self, title: &str) -> TaskId {
        self.add_task(TaskSpec { auto_review: Some(true), ..TaskSpec::from_text(title) })
    }

    pub fn add_task(&self, spec: TaskSpec) -> TaskId {
        let expected = self.settings.expected(&spec).expect("valid settings");
        let (auto_review, max_review_cycles) = (expected.auto_review, expected.max_review_cycles);
        let added = self.store.add_tasks(clock::now(), &[NewTask { spec, auto_review, max_review_cycles }]);
        *added.expect("an added task").first().expect("one task")
    }

    /// Works the queue, like `signoff work`.
    pub fn work(&self) -> RunLoopSummary {
        self.work_with(1, RunLoopOptions::default())
    }

    pub fn work_with(&self, jobs: usize, options: RunLoopOptions) -> RunLoopSummary {
        self.ended(self.try_work(jobs, options))
    }

    /// Like `work_with`, and the process may be killed.
    pub fn try_work(&self, jobs: usize, options: RunLoopOptions) -> RunLoopEnd {
        let facts = start_run::queue(&self.settings, jobs, options.no_ask).expect("valid settings");
        let ready = signoff_engine::dispatcher::ready(&self.store, &options.only, 1).expect("a readable store");
        let open: NewRun = Box::new(move |_| facts);
        self.run_process(jobs, options, (!ready.is_empty()).then_some(open))
    }

    /// Plans and works a specification, like `signoff run SPEC.md`.
    pub fn run_spec(&self, effort: Option<Effort>, jobs: usize) -> RunLoopSummary {
        self.ended(self.try_run_spec(effort, jobs))
    }

    /// Like `run_spec`, and lands the run on the default branch, like `signoff run SPEC.md --land`.
    pub fn run_spec_onto_default(&self) -> RunLoopSummary {
        self.ended(self.start_spec(None, 4, true))
    }

    /// Like `run_spec`, and the process may be killed.
    pub fn try_run_spec(&self, effort: Option<Effort>, jobs: usize) -> RunLoopEnd {
        self.start_spec(effort, jobs, false)
    }

    fn start_spec(&self, effort: Option<Effort>, jobs: usize, onto_default: bool) -> RunLoopEnd {
        let mut workflow = self.settings.workflow("loops").expect("a preset");
        if let Some(effort) = effort {
            workflow = workflow.with_effort(effort);
        }
        let (title, description) = ("SPEC.md".to_owned(), "# Accounts\n".to_owned());
        let spec = TaskSpec { title, description, ..TaskSpec::default() };
        let policy = RunPolicy { onto_default, ..RunPolicy::new(&workflow, jobs) };
        let facts = start_run::groups(workflow, policy, &spec, false);
        self.run_process(jobs, RunLoopOptions::default(), Some(Box::new(move |_| facts)))
    }

    /// Works these tasks one after the other on one branch, like `signoff run PLAN.md`.
    pub fn run_plan(&self, titles: &[&str], options: RunLoopOptions) -> RunLoopSummary {
        let workflow = self.settings.workflow("plan").expect("a preset");
        let policy = RunPolicy::new(&workflow, 1);
        let spec = |title: &&str| TaskSpec { auto_review: Some(true), ..TaskSpec::from_text(title) };
        let numbers = self.store.reserve_tasks(titles.len()).expect("numbers");
        let tasks = numbers
            .into_iter()
            .zip(titles.iter().map(spec))
            .map(|(task, spec)| start_run::NumberedTask { task, spec })
            .collect();
        let no_ask = options.no_ask;
        let open = move |run| start_run::chain(run, workflow, policy, tasks, no_ask);
        self.ended(self.run_process(1, options, Some(Box::new(open))))
    }

    /// Works the tasks of the queue in slots, like `signoff run queue`.
    pub fn run_queue(&self, jobs: usize, keep_going: bool, flags: TaskFlags) -> RunLoopSummary {
        let flags = TaskFlags { preset: Some("slots".to_owned()), ..flags };
        let workflow = self.settings.task_workflow(&TaskSpec::default(), &flags).expect("valid settings");
        let (task_source, flags) = (TaskSource::Queue, Box::new(flags));
        let policy = RunPolicy { task_source, flags, keep_going, stop_marker: true, ..RunPolicy::new(&workflow, jobs) };
        let facts = start_run::slots(workflow, policy, false);
        self.ended(self.run_process(jobs, RunLoopOptions::default(), Some(Box::new(move |_| facts))))
    }

    /// Works a task in iterations through the phases, like `signoff iterate`.
    pub fn run_iterations(&self, title: &str, max_iterations: u32) -> RunLoopSummary {
        let mut workflow = self.settings.workflow("phases").expect("a preset").in_mode("full").expect("a mode");
        workflow.limits.max_passes = max_iterations;
        let spec = TaskSpec { auto_review: Some(true), ..TaskSpec::from_text(title) };
        let task = *self.store.reserve_tasks(1).expect("a number").first().expect("a number");
        let branch = spec.branch(task);
        let facts = start_run::single(workflow, task, spec, branch, false);
        self.ended(self.run_process(1, RunLoopOptions::default(), Some(Box::new(move |_| facts))))
    }

    /// Resumes all open runs, like `signoff run --resume`.
    pub fn resume(&self) -> RunLoopSummary {
        self.ended(self.run_process(1, RunLoopOptions::default(), None))
    }

    /// Like `resume`, and the process may be killed.
    pub fn try_resume(&self) -> RunLoopEnd {
        self.run_process(1, RunLoopOptions::default(), None)
    }

    /// Whether no run has recorded anything yet.
    pub fn store_is_empty(&self) -> bool {
        self.store.runs().expect("a readable store").iter().all(|run| self.log(run.id).is_empty())
    }

    /// Kills the next process after this number of recorded facts.
    pub fn kill_after(&mut self, facts: usize) {
        self.kill_at = Some(facts);
    }

    pub fn never_kill(&mut self) {
        self.kill_at = None;
    }

    fn ended(&self, end: RunLoopEnd) -> RunLoopSummary {
        let RunLoopEnd::Ended(summary) = end else { panic!("the process was killed") };
        assert_eq!(self.executor.problems(), [""; 0]);
        assert!(unused_repository().git().processes() <= 1, "only the process that found the repository");
        summary
    }

    /// One process: resumes the open runs, and opens another one.
    pub fn run_process(&self, jobs: usize, options: RunLoopOptions, opened: Option<NewRun>) -> RunLoopEnd {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let mut renderer = StoryRenderer { notes: self.notes.clone(), left: self.kill_at };
        let ctx = self.context(jobs);
        let resumed = self.resumable();
        let process = async {
            let mut dispatcher = Dispatcher::new(ctx, self.backends(), options, &mut renderer);
            for lease in resumed {
                dispatcher.resume_run(lease).expect("a readable log");
            }
            if let Some(first_facts) = opened {
                let lease = self.store.open_run(clock::now()).expect("a run");
                let facts = first_facts(lease.run());
                dispatcher.open(lease, facts).expect("an opened run");
            }
            tokio::select! {
                summary = dispatcher.run() => Some(summary.expect("a run loop without an error")),
                () = self.executor.kill_switch().killed() => None,
            }
        };
        let ended = catch_unwind(AssertUnwindSafe(|| {
            runtime.block_on(async { tokio::time::timeout(TIMEOUT, process).await.expect("a run loop that ends") })
        }));
        drop(runtime);
        match ended {
            Ok(Some(summary)) => RunLoopEnd::Ended(summary),
            Ok(None) => self.killed(),
            Err(payload) if payload.is::<KilledRunLoop>() => self.killed(),
            Err(payload) => resume_unwind(payload),
        }
    }

    fn killed(&self) -> RunLoopEnd {
        self.executor.process_died();
        RunLoopEnd::Killed
    }

    fn backends(&self) -> Backends {
        let in_memory = || -> Arc<dyn Workspaces> { Arc::new(self.workspaces.clone()) };
        let workspaces = self.git.as_ref().map_or_else(in_memory, |(_, workspaces)| workspaces.clone());
        Backends { executor: Arc::new(self.executor.clone()), workspaces }
    }

    fn resumable(&self) -> Vec<Lease> {
        let runs = self.store.open_runs().expect("a readable store");
        runs.iter().map(|run| self.store.acquire(run.id).expect("a free lease")).collect()
    }

    /// The context of the next process.
    pub fn context(&self, jobs: usize) -> Arc<EngineContext> {
        let in_memory = || Arc::new(self.new_context(jobs, unused_repository()));
        self.git.as_ref().map_or_else(in_memory, |(ctx, _)| ctx.clone())
    }

    fn new_context(&self, jobs: usize, repository: Repository) -> EngineContext {
        let layout = Layout::new(self.directory.path(), None);
        EngineContext {
            launcher: SupervisorLauncher {
                program: PathBuf::from("/nowhere"),
                live_dir: layout.live_attempts(),
                user_home: self.directory.path().to_owned(),
                secrets: Vec::new(),
            },
            reports: Arc::new(ReportRegistry::new(layout.root())),
            secrets: Secrets::default(),
            repository,
            layout,
            settings: self.settings.clone(),
            store: Arc::new(self.store.clone()),
            program: PathBuf::from("/nowhere"),
            user_home: self.directory.path().to_owned(),
            variables: std::collections::BTreeSet::new(),
            jobs,
            subject: None,
            base: None,
            tracker_options: TrackerOptions::new(Vec::new(), false, None),
            sandbox_support: SandboxSupport { backend: SandboxBackend::None, landlock: None, missing: None },
            read_guards: ReadOnlyGuards::default(),
            seen_notes: SeenNotes::default(),
            worktree_repair: Mutex::default(),
            latest_landings: LatestLandings::default(),
        }
    }
}

/// Decisions of a user while no process executes the run.
impl Story {
    pub fn answer(&self, task: u64, choice: &str) {
        let command =
            LoopCommand::Answer { question: None, choice: choice.parse().expect("a choice"), by: "Ann".to_owned() };
        self.decide_task(task, command);
    }

    pub fn retry(&self, task: u64) {
        self.decide_task(task, LoopCommand::Retry { by: "Ann".to_owned() });
    }

    pub fn cancel(&self, task: u64) {
        self.decide_task(task, LoopCommand::Cancel { by: "Ann".to_owned() });
    }

    /// Disputes the only finding whose id starts with this prefix.
    pub fn dispute(&self, prefix: &str, reason: &str) {
        let found = self.store.findings(prefix).expect("a readable store");
        let [one] = found.as_slice() else { panic!("{found:?}") };
        let (by, reason) = ("Ann".to_owned(), reason.to_owned());
        let finding = one.finding.clone();
        self.decide(one.run, &one.loop_id, LoopCommand::Dispute { finding, by, reason });
    }

    pub fn edit(&self, task: u64, verdict: &str) {
        let branch = self.task(task).branch;
        let head = branch.and_then(|branch| self.backends().workspaces.head_of(&branch).expect("a readable branch"));
        let verdict = verdict.parse().expect("a verdict");
        let (by, reason) = ("Ann".to_owned(), "it is fine".to_owned());
        self.decide_task(task, LoopCommand::Edit { verdict, by, reason, head });
    }

    fn decide_task(&self, task: u64, command: LoopCommand) {
        let place = self.store.loop_for_task(TaskId(task)).expect("a readable store");
        let (run, loop_id) = place.expect("a started task");
        self.decide(run, &loop_id, command);
    }

    /// Records a decision.
    pub fn decide(&self, run: RunId, loop_id: &LoopId, command: LoopCommand) {
        let facts = self.decision_facts(run, loop_id, command).expect("an accepted decision");
        let lease = self.store.acquire(run).expect("a free lease");
        self.store.append(&lease, clock::now(), &facts).expect("a recorded decision");
    }

    fn decision_facts(
        &self,
        run: RunId,
        loop_id: &LoopId,
        command: LoopCommand,
    ) -> Result<Vec<Fact>, command::CommandRefusal> {
        let state = RunState::from_log(&self.log(run));
        let (loop_state, policy) = (&state.loops[loop_id], state.policy(loop_id).expect("a policy"));
        let event = command::decide(&loop_state.machine, command, policy)?;
        let next = machine::step(Loop::clone(&loop_state.machine), event.clone(), policy).0;
        let mut facts = vec![Fact::Loop(loop_id.clone(), LoopFact::Transitioned(event))];
        let status = LoopStatus::for_loop(&next);
        if status != LoopStatus::for_loop(&loop_state.machine) && loop_id.affects_run_state() {
            let moved = RunEvent::LoopStatusChanged { loop_id: loop_id.clone(), status };
            facts.push(Fact::Run(RunFact::Transitioned(moved)));
        }
        Ok(facts)
    }
}

/// Accessors for assertions.
impl Story {
    pub fn log(&self, run: RunId) -> Vec<signoff_core::wire::RecordedFact> {
        self.store.log(run).expect("a readable log")
    }

    pub fn tasks(&self) -> Vec<TaskRow> {
        self.store.tasks().expect("a readable store")
    }

    pub fn task(&self, task: u64) -> TaskRow {
        self.store.task(TaskId(task)).expect("a readable store").expect("a known task")
    }

    /// Status, outcome, verdict, reason and number of reviews of each task.
    pub fn summary(&self) -> String {
        self.tasks().iter().map(describe).collect::<Vec<_>>().join("\n")
    }

    /// Like `summary`, for one task.
    pub fn outcome(&self, task: u64) -> String {
        describe(&self.task(task))
    }

    pub fn run_status(&self, run: u64) -> String {
        self.store.run(RunId(run)).expect("a readable store").expect("a known run").status.into_str().to_owned()
    }

    pub fn questions(&self) -> Vec<QuestionRow> {
        self.store.questions().expect("a readable store")
    }

    pub fn repository<T>(&self, look: impl FnOnce(&mut MemoryRepository) -> T) -> T {
        look(&mut self.workspaces.repository())
    }

    /// The files of a branch.
    pub fn files(&self, branch: &str) -> Files {
        self.repository(|repository| {
            let tip = repository.tip(branch).expect("a branch");
            repository.files(&tip)
        })
    }

    /// The names of a branch's files, without those of the first commit.
    pub fn file_names(&self, branch: &str) -> String {
        let files = self.files(branch);
        files.keys().filter(|name| *name != "README.md").cloned().collect::<Vec<_>>().join(" ")
    }

    pub fn calls(&self) -> Vec<ScriptedCall> {
        self.executor.calls()
    }

    /// The calls of a role.
    pub fn calls_as(&self, role: &str) -> Vec<ScriptedCall> {
        self.calls().into_iter().filter(|call| call.role == role).collect()
    }

    /// The notes that the process has shown.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().expect("notes").clone()
    }

    /// The content of a stored review.
    pub fn review(&self, name: &str) -> String {
        let path = Layout::new(self.directory.path(), None).reviews().join(name);
        fs::read_to_string(path).expect("a stored review")
    }

    /// The names of the stored reviews.
    pub fn reviews(&self) -> Vec<String> {
        let directory: &Path = &Layout::new(self.directory.path(), None).reviews();
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

fn describe(row: &TaskRow) -> String {
    let outcome = row.outcome.map_or("-", <&str>::from);
    let verdict = row.final_verdict.map_or("-", <&str>::from);
    let reason = row.reason.map_or("-", <&str>::from);
    format!("{} {} {outcome} {verdict} {reason} {}", row.id, row.status.into_str(), row.review_cycle)
}
