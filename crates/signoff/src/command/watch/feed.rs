//! What there is to watch: facts, the queue, and what agents say.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use signoff_core::group::RunStage;
use signoff_core::ids::{AttemptId, LoopId, RunId};
use signoff_core::view::{RunView, TaskRow};
use signoff_core::wire::{QUEUE, Recorded};
use signoff_engine::layout::DIRECTORY;
use signoff_engine::transcript::Transcript;
use signoff_store::Store;
use signoff_term::attention::{Scene, Sorted};
use signoff_term::tui::Standings;

use crate::command::status::driven;
use crate::desk::Desk;
use crate::door;
use crate::failure::Failure;
use crate::follow::Follow;
use crate::look::{self, Kinds};
use crate::screen::{Standing, Teller, is_queued};
use crate::serving::Same;

/// How often agents are listened to.
const LISTENING: SignedDuration = SignedDuration::from_millis(300);

/// How much of the end of a transcript is read to find its last line.
const TAIL: u64 = 16 * 1024;

/// One attempt of one loop.
type Speaker = (RunId, LoopId, AttemptId);

/// What other programs record, as they do.
pub struct Feed {
    root: PathBuf,
    run: Option<RunId>,
    /// None as long as nothing was ever kept here.
    open: Option<Open>,
    /// The store that was watched is gone, and nobody was told yet.
    gone: bool,
    listened_at: Option<Timestamp>,
    speakers: BTreeMap<Speaker, Transcript>,
}

struct Open {
    same: Option<Same>,
    desk: Desk,
    follow: Follow,
    kinds: Kinds,
    views: BTreeMap<RunId, RunView>,
    /// What was recorded of the run before it was watched.
    before: Vec<Recorded>,
    queue: Option<Vec<TaskRow>>,
    standing: Standing,
}

impl Open {
    fn new((desk, same): (Desk, Option<Same>), run: Option<RunId>) -> Result<Self, Failure> {
        let before = match run {
            // Another store may have none of that number.
            Some(run) if desk.store.runs()?.iter().any(|row| row.id == run) => desk.store.log(run)?,
            Some(_) | None => Vec::new(),
        };
        let mut seen: BTreeMap<_, _> = before.last().map(|last| (last.run, last.seq)).into_iter().collect();
        if run.is_none() {
            seen.extend(troubled(&desk)?.into_iter().map(|run| (run, 0)));
        }
        let follow = Follow::new(desk.store.clone(), seen)?;
        let kinds = Kinds::of(&desk);
        let (views, standing) = (BTreeMap::new(), Standing::default());
        Ok(Self { same, desk, follow, kinds, views, before, queue: None, standing })
    }
}

impl Feed {
    pub fn new(root: PathBuf, run: Option<RunId>) -> Result<Self, Failure> {
        if let Some(run) = run {
            known(Desk::at(root.clone())?.as_ref(), run)?;
        }
        Ok(Self { root, run, open: None, gone: false, listened_at: None, speakers: BTreeMap::new() })
    }

    /// Somebody may begin to keep something here at any time, take it away, or put another store there.
    fn open(&mut self) -> Result<(), Failure> {
        let same = Same::of(&self.root.join(DIRECTORY));
        if self.open.take_if(|open| open.same != same).is_some() {
            self.gone = true;
            self.speakers.clear();
        }
        // What is being made at this moment is there with the next look.
        if self.open.is_none()
            && same.is_some()
            && let Some(desk) = Desk::at(self.root.clone())?
        {
            self.open = Some(Open::new((desk, same), self.run)?);
        }
        Ok(())
    }

    /// Whether what was told so far is not there any more. Told once.
    pub fn begins_anew(&mut self) -> Result<bool, Failure> {
        self.open()?;
        Ok(std::mem::take(&mut self.gone))
    }

    /// What the open runs hold already; it is not news then.
    pub fn so_far(&mut self) -> Result<Vec<(RunId, Vec<Recorded>)>, Failure> {
        let mut runs: BTreeMap<RunId, Vec<Recorded>> = BTreeMap::new();
        for recorded in self.news()? {
            runs.entry(recorded.run).or_default().push(recorded);
        }
        Ok(runs.into_iter().collect())
    }

    /// What was recorded since it was last asked.
    pub fn news(&mut self) -> Result<Vec<Recorded>, Failure> {
        if self.open.is_none() {
            self.open()?;
        }
        let Some(open) = &mut self.open else { return Ok(Vec::new()) };
        let mut news = std::mem::take(&mut open.before);
        news.extend(open.follow.news()?);
        news.retain(|recorded| self.run.is_none_or(|run| run == recorded.run));
        for recorded in news.iter().filter(|recorded| recorded.run != QUEUE) {
            open.views.entry(recorded.run).or_default().apply(recorded);
        }
        Ok(news)
    }

    /// The tasks that no run has taken up, where they are others than before. One run has no queue.
    pub fn queue(&mut self, moved: bool) -> Result<Option<Vec<TaskRow>>, Failure> {
        let Some(open) = self.open.as_mut().filter(|open| moved || open.queue.is_none()) else {
            return Ok(None);
        };
        let tasks = if self.run.is_some() { Vec::new() } else { open.desk.store.tasks()? };
        let tasks: Vec<TaskRow> = tasks.into_iter().filter(is_queued).collect();
        let same = open.queue.as_ref() == Some(&tasks);
        open.queue = Some(tasks.clone());
        Ok((!same).then_some(tasks))
    }

    /// How things stand beyond what is recorded, where that has changed. What was recorded must be read after this.
    pub fn standings(&mut self) -> Result<Option<Standings>, Failure> {
        let Some(open) = &mut self.open else { return Ok(None) };
        match open.standing.news(&open.desk) {
            // It is being taken away.
            Err(_) if Same::of(&self.root.join(DIRECTORY)) != open.same => Ok(None),
            looked => looked,
        }
    }

    /// Whether the run that is watched is over.
    pub fn is_over(&self) -> bool {
        let view = self.open.as_ref().zip(self.run).and_then(|(open, run)| open.views.get(&run));
        view.is_some_and(|view| matches!(view.stage(), RunStage::Done(_)))
    }

    /// Tells the last line of every agent at work, where it is a new one.
    pub fn say(&mut self, teller: &Teller) {
        let now = door::now();
        if self.listened_at.is_some_and(|at| now.duration_since(at).abs() < LISTENING) {
            return;
        }
        self.listened_at = Some(now);
        let Some(open) = &self.open else { return };
        let at_work = at_work(&open.views);
        self.speakers.retain(|speaker, _| at_work.contains(speaker));
        for speaker in at_work {
            let (run, loop_id, attempt) = &speaker;
            let transcript = self.speakers.entry(speaker.clone()).or_insert_with(|| {
                let dir = look::attempt(&open.desk, (*run, loop_id), *attempt);
                let view = open.views.get(run);
                let kind = view.and_then(|view| open.kinds.kind(view, loop_id, *attempt));
                Transcript::tail(&dir, kind, TAIL)
            });
            // Of what is said faster than anybody reads, the end is enough.
            transcript.keep_up(TAIL);
            // What cannot be read is not shown; it may be written later.
            let lines = transcript.more().unwrap_or_default();
            if let Some(line) = lines.iter().rev().find(|line| !line.trim().is_empty()) {
                teller.said((*run, loop_id), *attempt, line, &Arc::default());
            }
        }
    }
}

/// The runs of the tasks that somebody has to do something about, also where nothing more happens in them.
fn troubled(desk: &Desk) -> Result<BTreeSet<RunId>, Failure> {
    let (tasks, runs) = (desk.tasks()?, desk.runs()?);
    let driven = driven(&*desk.store, &tasks, &runs)?;
    let sorted = Sorted::of(&Scene { tasks: &tasks, runs: &runs, driven: &driven });
    Ok(sorted.troubled.iter().filter_map(|task| task.run_id).map(RunId).collect())
}

/// The attempts under way, of all runs.
fn at_work(views: &BTreeMap<RunId, RunView>) -> Vec<Speaker> {
    let mut found = Vec::new();
    for (run, view) in views.iter().filter(|(_, view)| !matches!(view.stage(), RunStage::Done(_))) {
        for loop_id in view.loop_ids() {
            let attempts = look::under_way(view, loop_id);
            found.extend(attempts.into_iter().map(|attempt| (*run, loop_id.clone(), attempt)));
        }
    }
    found
}

/// A run that is asked for must have been begun.
pub fn known(desk: Option<&Desk>, run: RunId) -> Result<(), Failure> {
    let runs = desk.map_or(Ok(Vec::new()), |desk| desk.store.runs())?;
    if runs.iter().any(|row| row.id == run) {
        return Ok(());
    }
    let hint = match runs.as_slice() {
        [] => "nothing was run here yet: `signoff work` works the queue".to_owned(),
        [one] => format!("the only one is run {}", one.id),
        [first, .., last] => format!("there are runs {} to {}", first.id, last.id),
    };
    Err(Failure::usage(format!("there is no run {run}")).hint(hint))
}
