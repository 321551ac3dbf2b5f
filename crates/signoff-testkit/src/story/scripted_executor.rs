//! Runs attempts by a script in memory: no processes, no git, no files.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::agent_script::{AgentScript, ScriptRule, ScriptStep};
use signoff_core::machine::JobKind;
use signoff_core::review::Usage;
use signoff_core::settings::Settings;
use signoff_core::view::{AttemptStart, RunState};
use signoff_engine::attempt_spec::AttemptSpec;
use signoff_engine::clock;
use signoff_engine::error::EngineError;
use signoff_engine::executor::{AttemptKey, AttemptResult, AttemptSink, Executor, FoundAttempt, RunLandingSink};
use signoff_engine::process::{ProcessExit, ProcessResult, StopRequest};
use tokio::sync::Notify;

use super::agent_workspaces::{AgentFileChange, AgentWorkspaces};
use super::attempt_files::AttemptFiles;
use super::scripted_attempt;
use super::scripted_call::{ScriptedCall, ScriptedEnd};

/// The poll interval of a waiting agent.
const POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Agents that follow a script. Clones share their state.
#[derive(Clone)]
pub struct ScriptedExecutor {
    shared: Arc<SharedState>,
}

struct SharedState {
    workspaces: Arc<dyn AgentWorkspaces>,
    /// If attempts have files.
    attempt_files: Option<AttemptFiles>,
    settings: Mutex<Settings>,
    script: Mutex<AgentScript>,
    calls: Mutex<Vec<ScriptedCall>>,
    /// Started attempts, with their end if they have ended.
    attempts: Mutex<BTreeMap<AttemptKey, Option<ScriptedEnd>>>,
    /// The usage that running attempts have reported.
    usage: Mutex<BTreeMap<AttemptKey, Usage>>,
    /// Files outside of all worktrees, by which agents wait for each other.
    shared_files: Mutex<BTreeSet<String>>,
    /// The number of running agents, and the maximum so far.
    running: Mutex<(usize, usize)>,
    /// Unsupported steps of the scripts.
    problems: Mutex<Vec<String>>,
    kill: KillSwitch,
}

/// Kills the process of the story when a number of attempts have ended and before they are reported.
#[derive(Debug, Default)]
pub struct KillSwitch {
    left: Mutex<Option<usize>>,
    pulled: Notify,
}

impl KillSwitch {
    /// Kills the process after this number of ends.
    pub fn arm(&self, ends: usize) {
        *lock(&self.left) = Some(ends);
    }

    pub fn disarm(&self) {
        *lock(&self.left) = None;
    }

    /// Returns when the process is to be killed.
    pub async fn killed(&self) {
        self.pulled.notified().await;
    }

    /// Counts an end. Never returns if the process is killed.
    async fn pass(&self) {
        let is_last = {
            let mut left = lock(&self.left);
            *left = left.map(|left| left.saturating_sub(1));
            left.take_if(|left| *left == 0).is_some()
        };
        if is_last {
            self.pulled.notify_one();
            std::future::pending::<()>().await;
        }
    }
}

fn lock<T>(state: &Mutex<T>) -> MutexGuard<'_, T> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

impl ScriptedExecutor {
    pub fn new(workspaces: Arc<dyn AgentWorkspaces>, settings: Settings) -> Self {
        Self::with_files(workspaces, settings, None)
    }

    pub fn with_files(
        workspaces: Arc<dyn AgentWorkspaces>,
        settings: Settings,
        attempt_files: Option<AttemptFiles>,
    ) -> Self {
        Self {
            shared: Arc::new(SharedState {
                workspaces,
                attempt_files,
                settings: Mutex::new(settings),
                script: Mutex::default(),
                calls: Mutex::default(),
                attempts: Mutex::default(),
                usage: Mutex::default(),
                shared_files: Mutex::default(),
                running: Mutex::default(),
                problems: Mutex::default(),
                kill: KillSwitch::default(),
            }),
        }
    }

    pub fn set_script(&self, script: AgentScript) {
        *lock(&self.shared.script) = script;
    }

    pub fn set_settings(&self, settings: Settings) {
        *lock(&self.shared.settings) = settings;
    }

    pub fn calls(&self) -> Vec<ScriptedCall> {
        lock(&self.shared.calls).clone()
    }

    /// The maximum number of agents that ran at the same time.
    pub fn max_concurrent(&self) -> usize {
        lock(&self.shared.running).1
    }

    pub fn problems(&self) -> Vec<String> {
        lock(&self.shared.problems).clone()
    }

    pub fn kill_switch(&self) -> &KillSwitch {
        &self.shared.kill
    }

    /// The process of the story was killed with all its agents.
    pub fn process_died(&self) {
        lock(&self.shared.running).0 = 0;
        self.shared.kill.disarm();
    }
}

impl Executor for ScriptedExecutor {
    fn start(&self, spec: AttemptSpec, sink: AttemptSink) {
        let this = self.clone();
        tokio::spawn(async move {
            let result = match &spec.job.kind {
                JobKind::Land | JobKind::Combine { .. } => this.shared.workspaces.run_own_job(&spec, &sink),
                JobKind::Work { .. }
                | JobKind::Research { .. }
                | JobKind::Review { .. }
                | JobKind::Check
                | JobKind::Fix { .. } => this.run_agent(&spec, &sink).await,
            };
            this.shared.kill.pass().await;
            if let Some(result) = result {
                sink.ended(result);
            }
        });
    }

    fn find(&self, attempt: &AttemptKey) -> Result<FoundAttempt, EngineError> {
        Ok(match lock(&self.shared.attempts).get(attempt) {
            None => FoundAttempt::NotStarted,
            Some(None) => FoundAttempt::Lost,
            Some(Some(end)) => FoundAttempt::Ended(Box::new(process_result(end))),
        })
    }

    fn finish(&self, spec: AttemptSpec, _ended: ProcessResult, sink: AttemptSink) {
        let end = lock(&self.shared.attempts).get(&AttemptKey::from(&spec)).cloned().flatten();
        sink.ended(self.finish(&spec, &end.unwrap_or_default()));
    }

    fn save_work(&self, _spec: AttemptSpec) {}

    fn lost_session(&self, _attempt: &AttemptKey, _start: &AttemptStart) -> Option<String> {
        None
    }

    fn reported_usage(&self, attempt: &AttemptKey, _model: Option<&str>) -> Usage {
        lock(&self.shared.usage).get(attempt).copied().unwrap_or_default()
    }

    fn land_run(&self, run_state: RunState, sink: RunLandingSink) {
        self.shared.workspaces.land_run(run_state, sink);
    }
}

impl ScriptedExecutor {
    /// Returns `None` if the result is reported already.
    async fn run_agent(&self, spec: &AttemptSpec, sink: &AttemptSink) -> Option<AttemptResult> {
        let (key, stop) = (AttemptKey::from(spec), StopRequest::new().expect("a pipe"));
        lock(&self.shared.attempts).insert(key.clone(), None);
        sink.stoppable(stop.stopper());
        let settings = lock(&self.shared.settings).clone();
        let prompt = match self.prepare(spec, &settings) {
            Ok(prompt) => prompt,
            Err(result) => return Some(*result),
        };
        let call = self.record_call(ScriptedCall::new(spec, prompt));
        self.count_running(true);
        let end = match scripted_attempt::built_in(spec, &settings) {
            Some(end) => end,
            None => self.run_script(spec, &call, &stop).await,
        };
        self.count_running(false);
        lock(&self.shared.attempts).insert(key, Some(end.clone()));
        for line in end.stdout.lines() {
            sink.line(line.to_owned(), Arc::default());
        }
        if let Some(files) = &self.shared.attempt_files {
            files.finish(spec, &end, process_result(&end), sink.clone()).await;
            return None;
        }
        Some(self.finish(spec, &end))
    }

    /// The prompt of an attempt, or the result of an attempt that cannot start.
    fn prepare(&self, spec: &AttemptSpec, settings: &Settings) -> Result<String, Box<AttemptResult>> {
        if let Some(files) = &self.shared.attempt_files {
            return files.prepare(spec);
        }
        if scripted_attempt::is_writer(spec) {
            self.shared.workspaces.ensure_worktree(spec);
        }
        Ok(scripted_attempt::prompt(spec, settings))
    }

    fn finish(&self, spec: &AttemptSpec, end: &ScriptedEnd) -> AttemptResult {
        let settings = lock(&self.shared.settings).clone();
        scripted_attempt::finish(spec, end, &settings, &*self.shared.workspaces)
    }

    fn record_call(&self, mut call: ScriptedCall) -> ScriptedCall {
        let mut calls = lock(&self.shared.calls);
        let earlier = calls.iter().filter(|other| other.is_like(&call)).count();
        call.call = u32::try_from(earlier + 1).unwrap_or(u32::MAX);
        calls.push(call.clone());
        call
    }

    fn count_running(&self, starts: bool) {
        let mut running = lock(&self.shared.running);
        running.0 = if starts { running.0 + 1 } else { running.0.saturating_sub(1) };
        running.1 = running.1.max(running.0);
    }

    async fn run_script(&self, spec: &AttemptSpec, call: &ScriptedCall, stop: &StopRequest) -> ScriptedEnd {
        let rules = lock(&self.shared.script).rules.clone();
        let Some(rule) = rules.into_iter().find(|rule| call.matches(&rule.when)) else {
            return self.unsupported(format!("no rule for {} {} task {}", call.role, call.reviewer, call.task));
        };
        self.run_rule(spec, call, rule, stop).await
    }

    async fn run_rule(
        &self,
        spec: &AttemptSpec,
        call: &ScriptedCall,
        rule: ScriptRule,
        stop: &StopRequest,
    ) -> ScriptedEnd {
        let mut end = ScriptedEnd::default();
        for step in &rule.steps {
            match step {
                ScriptStep::Say(text) => end.stdout.push_str(&call.fill(text)),
                ScriptStep::Complain(text) => end.stderr.push_str(&call.fill(text)),
                ScriptStep::Write { path, text } => {
                    self.change(spec, &call.fill(path), AgentFileChange::Write(call.fill(text)))
                }
                ScriptStep::Append { path, text } => {
                    self.change(spec, &call.fill(path), AgentFileChange::Append(call.fill(text)))
                }
                ScriptStep::Delete(path) => self.change(spec, &call.fill(path), AgentFileChange::Delete),
                ScriptStep::Usage(usage) => {
                    end.usage = scripted_attempt::usage(usage);
                    end.retry_after_seconds = usage["retry_after_seconds"].as_f64();
                    lock(&self.shared.usage).insert(AttemptKey::from(spec), end.usage);
                }
                ScriptStep::WaitFor(path) => {
                    let path = call.fill(path);
                    if !wait_until(stop, || lock(&self.shared.shared_files).contains(&path)).await {
                        return ScriptedEnd { exit: ProcessExit::Stopped, ..end };
                    }
                }
                // A short limit is over at once.
                ScriptStep::Hang if self.has_short_limit(spec) => {
                    return ScriptedEnd { exit: ProcessExit::TimedOut, ..end };
                }
                ScriptStep::Hang => {
                    wait_until(stop, || false).await;
                    return ScriptedEnd { exit: ProcessExit::Stopped, ..end };
                }
                ScriptStep::Commit(_) | ScriptStep::IgnoreTerm => {}
                ScriptStep::Die(signal) => return ScriptedEnd { exit: ProcessExit::Signal(*signal), ..end },
                ScriptStep::Exit(code) => return ScriptedEnd { exit: ProcessExit::Code(i32::from(*code)), ..end },
                ScriptStep::Shell(_)
                | ScriptStep::Tool { .. }
                | ScriptStep::Flood(_)
                | ScriptStep::Daemon { .. }
                | ScriptStep::LeaveIndexLock
                | ScriptStep::Plant { .. } => return self.unsupported(format!("{step:?} needs a process")),
            }
        }
        end
    }

    /// Whether the agent's time is limited to a second.
    fn has_short_limit(&self, spec: &AttemptSpec) -> bool {
        let settings = lock(&self.shared.settings);
        scripted_attempt::time_limit(spec, &settings).is_some_and(|limit| limit.seconds <= 1)
    }

    /// Changes a file of the worktree. An absolute path is a file outside, by which agents wait for each other.
    fn change(&self, spec: &AttemptSpec, path: &str, change: AgentFileChange) {
        if path.starts_with('/') {
            lock(&self.shared.shared_files).insert(path.to_owned());
        } else {
            self.shared.workspaces.change(spec, path, change);
        }
    }

    fn unsupported(&self, problem: String) -> ScriptedEnd {
        lock(&self.shared.problems).push(problem);
        ScriptedEnd { exit: ProcessExit::Code(96), ..ScriptedEnd::default() }
    }
}

/// Waits until a condition holds. Returns false if the agent is stopped first.
async fn wait_until(stop: &StopRequest, holds: impl Fn() -> bool) -> bool {
    loop {
        if holds() {
            return true;
        }
        if stop.is_requested() {
            return false;
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

fn process_result(end: &ScriptedEnd) -> ProcessResult {
    let now = clock::now();
    ProcessResult {
        exit: end.exit.clone(),
        started_at: now,
        ended_at: now,
        duration_ms: 1,
        stdout_bytes: end.stdout.len() as u64,
        stderr_bytes: end.stderr.len() as u64,
        strays_ended: 0,
        supervisor_cpu_us: 0,
    }
}
