//! The input of `signoff watch`: new facts, the queue and the last lines of the agents.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use signoff_core::group::RunStage;
use signoff_core::ids::RunId;
use signoff_core::view::inbox::{InboxTasks, ProjectSnapshot};
use signoff_core::view::{RunState, TaskRow, Transition};
use signoff_core::wire::RecordedFact;
use signoff_engine::executor::AttemptKey;
use signoff_engine::layout::DIRECTORY;
use signoff_engine::transcript::TranscriptReader;
use signoff_store::Store;
use signoff_term::tui::InboxHints;

use crate::command::status::driven;
use crate::log_follower::LogFollower;
use crate::queries::{self, AgentKinds};
use crate::screen::{InboxWatcher, ScreenSender, is_queued};
use crate::web_backend::StoreId;
use crate::{CliError, ReadOnlyProject, host};

/// Poll interval for the output of agents.
const OUTPUT_INTERVAL: SignedDuration = SignedDuration::from_millis(300);

/// Number of bytes at the end of a transcript that are searched for its last line.
const TAIL: u64 = 16 * 1024;

/// Polls the store and the transcripts for changes by other processes.
pub struct Feed {
    root: PathBuf,
    run: Option<RunId>,
    /// `None` as long as there is no store.
    open: Option<WatchedStore>,
    /// The watched store was deleted or replaced, and the caller does not know it yet.
    gone: bool,
    output_read_at: Option<Timestamp>,
    transcripts: BTreeMap<AttemptKey, TranscriptReader>,
}

struct WatchedStore {
    id: Option<StoreId>,
    project: ReadOnlyProject,
    follower: LogFollower,
    kinds: AgentKinds,
    states: BTreeMap<RunId, RunState>,
    /// The facts that were read and not applied yet.
    unapplied: VecDeque<RecordedFact>,
    queue: Option<Vec<TaskRow>>,
    inbox: InboxWatcher,
}

impl WatchedStore {
    fn new(project: ReadOnlyProject, same: Option<StoreId>, run: Option<RunId>) -> Result<Self, CliError> {
        let before = match run {
            // A replaced store may not have a run with this number.
            Some(run) if project.store.runs()?.iter().any(|row| row.id == run) => project.store.log(run)?,
            Some(_) | None => Vec::new(),
        };
        let mut seen: BTreeMap<_, _> = before.last().map(|last| (last.run, last.seq)).into_iter().collect();
        if run.is_none() {
            seen.extend(runs_needing_attention(&project)?.into_iter().map(|run| (run, 0)));
        }
        let follow = LogFollower::new(project.store.clone(), seen)?;
        let kinds = AgentKinds::load(&project);
        let (states, inbox) = (BTreeMap::new(), InboxWatcher::default());
        Ok(Self { id: same, project, follower: follow, kinds, states, unapplied: before.into(), queue: None, inbox })
    }
}

impl Feed {
    pub fn new(root: PathBuf, run: Option<RunId>) -> Result<Self, CliError> {
        if let Some(run) = run {
            check_run_exists(ReadOnlyProject::open_at(root.clone())?.as_ref(), run)?;
        }
        Ok(Self { root, run, open: None, gone: false, output_read_at: None, transcripts: BTreeMap::new() })
    }

    /// Opens the store if there is one. A store may be created, deleted or replaced at any time.
    fn open(&mut self) -> Result<(), CliError> {
        let same = StoreId::of_directory(&self.root.join(DIRECTORY));
        if self.open.take_if(|open| open.id != same).is_some() {
            self.gone = true;
            self.transcripts.clear();
        }
        // A store that is just being created is opened by the next poll.
        if self.open.is_none()
            && same.is_some()
            && let Some(project) = ReadOnlyProject::open_at(self.root.clone())?
        {
            self.open = Some(WatchedStore::new(project, same, self.run)?);
        }
        Ok(())
    }

    /// Whether the store was deleted or replaced since the last call.
    pub fn was_replaced(&mut self) -> Result<bool, CliError> {
        self.open()?;
        Ok(std::mem::take(&mut self.gone))
    }

    /// Reads the facts recorded since the last call; first those of the open runs or of the watched run.
    pub fn poll(&mut self) -> Result<(), CliError> {
        if self.open.is_none() {
            self.open()?;
        }
        let Some(open) = &mut self.open else { return Ok(()) };
        let mut news = open.follower.poll()?;
        news.retain(|recorded| self.run.is_none_or(|run| run == recorded.run));
        open.unapplied.extend(news);
        Ok(())
    }

    /// The facts that were read and not applied yet.
    pub fn unapplied(&mut self) -> &[RecordedFact] {
        self.open.as_mut().map_or(&[], |open| open.unapplied.make_contiguous())
    }

    /// Whether `next_transition` has more.
    pub fn has_unapplied(&self) -> bool {
        self.open.as_ref().is_some_and(|open| !open.unapplied.is_empty())
    }

    /// Applies the next fact.
    pub fn next_transition(&mut self) -> Option<Transition> {
        let open = self.open.as_mut()?;
        let recorded = open.unapplied.pop_front()?;
        Some(open.states.entry(recorded.run).or_default().apply(recorded))
    }

    /// Returns the queued tasks if they changed. The queue is empty if only one run is watched.
    pub fn queue(&mut self, moved: bool) -> Result<Option<Vec<TaskRow>>, CliError> {
        let Some(open) = self.open.as_mut().filter(|open| moved || open.queue.is_none()) else {
            return Ok(None);
        };
        let tasks = if self.run.is_some() { Vec::new() } else { open.project.store.tasks()? };
        let tasks: Vec<TaskRow> = tasks.into_iter().filter(is_queued).collect();
        let same = open.queue.as_ref() == Some(&tasks);
        open.queue = Some(tasks.clone());
        Ok((!same).then_some(tasks))
    }

    /// Returns the state of all tasks and runs if it changed. Call `poll` only after it.
    pub fn inbox(&mut self) -> Result<Option<InboxHints>, CliError> {
        let Some(open) = &mut self.open else { return Ok(None) };
        match open.inbox.poll(&open.project) {
            // The store is being deleted.
            Err(_) if StoreId::of_directory(&self.root.join(DIRECTORY)) != open.id => Ok(None),
            looked => looked,
        }
    }

    /// Whether the run that is watched is over.
    pub fn is_over(&self) -> bool {
        let state = self.open.as_ref().zip(self.run).and_then(|(open, run)| open.states.get(&run));
        state.is_some_and(|state| matches!(state.stage(), RunStage::Done(_)))
    }

    /// Sends the last line of every running agent if it is new.
    pub fn send_agent_lines(&mut self, sender: &ScreenSender) {
        let now = host::now();
        if self.output_read_at.is_some_and(|at| now.duration_since(at).abs() < OUTPUT_INTERVAL) {
            return;
        }
        self.output_read_at = Some(now);
        let Some(open) = &self.open else { return };
        let at_work = running_attempts(&open.states);
        self.transcripts.retain(|speaker, _| at_work.contains(speaker));
        for speaker in at_work {
            let transcript = self.transcripts.entry(speaker.clone()).or_insert_with(|| {
                let dir = queries::attempt_dir(&open.project, &speaker);
                let state = open.states.get(&speaker.run);
                let kind = state.and_then(|state| open.kinds.kind(state, &speaker.loop_id, speaker.attempt));
                TranscriptReader::tail(&dir, kind, TAIL)
            });
            // If an agent writes faster than this polls, skip to the end.
            transcript.skip_to_tail(TAIL);
            // A file that cannot be read may be written later.
            let lines = transcript.read_more().unwrap_or_default();
            if let Some(line) = lines.iter().rev().find(|line| !line.trim().is_empty()) {
                sender.agent_line(speaker, line, &Arc::default());
            }
        }
    }
}

/// The runs with tasks that need the user, including finished runs.
fn runs_needing_attention(project: &ReadOnlyProject) -> Result<BTreeSet<RunId>, CliError> {
    let (tasks, runs) = (project.tasks()?, project.runs()?);
    let driven = driven(&*project.store, &tasks, &runs)?;
    let sorted = InboxTasks::new(&ProjectSnapshot { tasks: &tasks, runs: &runs, driven: &driven });
    Ok(sorted.needs_attention.iter().filter_map(|task| task.run_id).map(RunId).collect())
}

/// The running attempts of all runs.
fn running_attempts(states: &BTreeMap<RunId, RunState>) -> Vec<AttemptKey> {
    let mut found = Vec::new();
    for (run, state) in states.iter().filter(|(_, state)| !matches!(state.stage(), RunStage::Done(_))) {
        for loop_id in state.loop_ids() {
            let attempts = queries::running_attempts(state, loop_id);
            found.extend(attempts.into_iter().map(|attempt| AttemptKey::new(*run, loop_id, attempt)));
        }
    }
    found
}

/// Fails if the run does not exist.
pub fn check_run_exists(project: Option<&ReadOnlyProject>, run: RunId) -> Result<(), CliError> {
    let runs = project.map_or(Ok(Vec::new()), |project| project.store.runs())?;
    if runs.iter().any(|row| row.id == run) {
        return Ok(());
    }
    let hint = match runs.as_slice() {
        [] => "nothing was run here yet: `signoff work` works the queue".to_owned(),
        [one] => format!("the only one is run {}", one.id),
        [first, .., last] => format!("there are runs {} to {}", first.id, last.id),
    };
    Err(CliError::usage(format!("there is no run {run}")).hint(hint))
}
