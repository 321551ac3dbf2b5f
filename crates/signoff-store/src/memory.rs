//! A store that lives as long as the program: for trials, and as the plainest reading of what a store does.

mod book;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use signoff_core::command::Command;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::task::TaskSpec;
use signoff_core::view::{QuestionRow, TaskRow};
use signoff_core::wire::{Fact, Recorded, TaskFact};

use crate::book::{Book, Holder};
use crate::journal::{self, Tellers};
use crate::{
    Claims, FindingPlace, Lease, NewTask, QuestionPlace, Rebuilt, Request, RunRow, Store, StoreError,
};
use book::Shelf;

/// Clones share one store, as programs share one database.
#[derive(Clone, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<Inner>>,
}

#[derive(Default)]
struct Inner {
    shelf: Shelf,
    tellers: Tellers,
    /// Who holds which run, by fence.
    held: BTreeMap<RunId, u64>,
    requests: Vec<Posted>,
    writes: u64,
}

struct Posted {
    run: RunId,
    loop_id: LoopId,
    command: Command,
    answer: Option<Result<(), String>>,
}

/// Gives the lease back, unless somebody took it over.
struct Guard {
    inner: Arc<Mutex<Inner>>,
    run: RunId,
    fence: u64,
}

impl Drop for Guard {
    fn drop(&mut self) {
        let mut inner = lock(&self.inner);
        if inner.held.get(&self.run) == Some(&self.fence) {
            inner.held.remove(&self.run);
        }
    }
}

fn lock(inner: &Mutex<Inner>) -> MutexGuard<'_, Inner> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// Loses all leases, as a host does whose lock files are deleted: others can take the runs over.
    pub fn lose_leases(&self) {
        lock(&self.inner).held.clear();
    }

    fn write<T>(&self, write: impl FnOnce(&mut Inner) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut inner = lock(&self.inner);
        inner.writes += 1;
        write(&mut inner)
    }

    fn lease(&self, run: RunId, fence: u64) -> Lease {
        Lease::new(run, fence, Guard { inner: Arc::clone(&self.inner), run, fence })
    }
}

impl Store for MemoryStore {
    fn add_tasks(&self, at: Timestamp, tasks: &[NewTask]) -> Result<Vec<TaskId>, StoreError> {
        self.write(|inner| journal::add_tasks(&mut inner.shelf, at, tasks))
    }

    fn withdraw(&self, at: Timestamp, task: TaskId, by: &str) -> Result<(), StoreError> {
        self.write(|inner| journal::withdraw(&mut inner.shelf, at, task, by))
    }

    fn reserve_tasks(&self, count: usize) -> Result<Vec<TaskId>, StoreError> {
        self.write(|inner| journal::reserve(&mut inner.shelf, count))
    }

    fn open_run(&self, at: Timestamp) -> Result<Lease, StoreError> {
        let run = self.write(|inner| {
            let run = journal::new_run(&mut inner.shelf, at)?;
            inner.held.insert(run, 1);
            Ok(run)
        })?;
        Ok(self.lease(run, 1))
    }

    fn acquire(&self, run: RunId) -> Result<Lease, StoreError> {
        let fence = self.write(|inner| {
            if inner.held.contains_key(&run) {
                return Err(StoreError::Held(run));
            }
            let fence = journal::next_fence(&mut inner.shelf, run)?;
            inner.held.insert(run, fence);
            Ok(fence)
        })?;
        Ok(self.lease(run, fence))
    }

    fn is_held(&self, run: RunId) -> Result<bool, StoreError> {
        Ok(lock(&self.inner).held.contains_key(&run))
    }

    fn append(&self, lease: &Lease, at: Timestamp, facts: &[Fact]) -> Result<Vec<Recorded>, StoreError> {
        if facts.is_empty() {
            return Ok(Vec::new());
        }
        self.write(|inner| {
            let (recorded, teller) = journal::append(&mut inner.shelf, &mut inner.tellers, lease, at, facts)?;
            journal::keep(&mut inner.tellers, lease, teller);
            Ok(recorded)
        })
    }

    fn log_after(&self, run: RunId, seq: u64) -> Result<Vec<Recorded>, StoreError> {
        let inner = lock(&self.inner);
        journal::known(&inner.shelf, run)?;
        inner.shelf.log_after(run, seq)
    }

    fn log_part(&self, run: RunId, seq: u64, most: usize) -> Result<Vec<Recorded>, StoreError> {
        let mut log = self.log_after(run, seq)?;
        log.truncate(most);
        Ok(log)
    }

    fn log_of_loop(&self, run: RunId, loop_id: &LoopId) -> Result<Vec<Recorded>, StoreError> {
        let mut log = self.log(run)?;
        log.retain(|recorded| match &recorded.fact {
            Fact::Loop(of, _) => of == loop_id,
            Fact::Run(_) | Fact::Task(..) => true,
        });
        Ok(log)
    }

    fn last_seq(&self, run: RunId) -> Result<u64, StoreError> {
        lock(&self.inner).shelf.last_seq(run)
    }

    fn runs(&self) -> Result<Vec<RunRow>, StoreError> {
        lock(&self.inner).shelf.runs()
    }

    fn open_runs(&self) -> Result<Vec<RunRow>, StoreError> {
        lock(&self.inner).shelf.open_runs()
    }

    fn run(&self, run: RunId) -> Result<Option<RunRow>, StoreError> {
        lock(&self.inner).shelf.run(run)
    }

    fn failed_runs(&self) -> Result<Vec<RunRow>, StoreError> {
        let mut runs = lock(&self.inner).shelf.runs()?;
        runs.retain(|run| run.status == "failed" && run.groups.is_some());
        Ok(runs)
    }

    fn last_run(&self) -> Result<Option<RunRow>, StoreError> {
        lock(&self.inner).shelf.last_run()
    }

    fn tasks(&self) -> Result<Vec<TaskRow>, StoreError> {
        lock(&self.inner).shelf.tasks()
    }

    fn task(&self, task: TaskId) -> Result<Option<TaskRow>, StoreError> {
        lock(&self.inner).shelf.task(task)
    }

    fn task_spec(&self, task: TaskId) -> Result<Option<TaskSpec>, StoreError> {
        let inner = lock(&self.inner);
        let spec = inner.shelf.events.iter().find_map(|recorded| match &recorded.fact {
            Fact::Task(id, TaskFact::Added { spec, .. }) if *id == task => Some((**spec).clone()),
            Fact::Task(..) | Fact::Run(_) | Fact::Loop(..) => None,
        });
        Ok(spec)
    }

    fn queued(&self, after: TaskId, most: usize) -> Result<Vec<(TaskId, Vec<TaskId>)>, StoreError> {
        let inner = lock(&self.inner);
        let mut queued = BTreeMap::new();
        for recorded in &inner.shelf.events {
            if let Fact::Task(task, TaskFact::Added { spec, .. }) = &recorded.fact
                && *task > after
                && inner.shelf.holder(*task)? == Some(Holder::Nobody)
            {
                queued.entry(*task).or_insert_with(|| spec.depends_on.clone());
            }
        }
        Ok(queued.into_iter().take(most).collect())
    }

    fn claims(&self, tracker: &str) -> Result<Claims, StoreError> {
        lock(&self.inner).shelf.claims(tracker, None)
    }

    fn loop_of(&self, task: TaskId) -> Result<Option<(RunId, LoopId)>, StoreError> {
        Ok(lock(&self.inner).shelf.loop_of(task))
    }

    fn questions(&self) -> Result<Vec<QuestionRow>, StoreError> {
        lock(&self.inner).shelf.questions()
    }

    fn question(&self, number: u64) -> Result<Option<QuestionPlace>, StoreError> {
        lock(&self.inner).shelf.question(number)
    }

    fn findings(&self, prefix: &str) -> Result<Vec<FindingPlace>, StoreError> {
        lock(&self.inner).shelf.findings(prefix)
    }

    fn post(&self, run: RunId, loop_id: &LoopId, command: &Command) -> Result<u64, StoreError> {
        self.write(|inner| {
            if inner.shelf.fence(run)?.is_none() {
                return Err(StoreError::NoRun(run));
            }
            let (loop_id, command) = (loop_id.clone(), command.clone());
            inner.requests.push(Posted { run, loop_id, command, answer: None });
            Ok(inner.requests.len() as u64)
        })
    }

    fn requests(&self, run: RunId) -> Result<Vec<Request>, StoreError> {
        let inner = lock(&self.inner);
        let open = (1..).zip(&inner.requests).filter(|(_, one)| one.run == run && one.answer.is_none());
        let request = |(id, one): (u64, &Posted)| Request {
            id,
            loop_id: one.loop_id.clone(),
            command: one.command.clone(),
        };
        Ok(open.map(request).collect())
    }

    fn settle(&self, request: u64, refusal: Option<&str>) -> Result<(), StoreError> {
        self.write(|inner| {
            let index = usize::try_from(request).unwrap_or(0).checked_sub(1);
            let posted = index.and_then(|index| inner.requests.get_mut(index));
            let posted = posted.ok_or_else(|| journal::no_request(request))?;
            posted.answer = Some(refusal.map_or(Ok(()), |why| Err(why.to_owned())));
            Ok(())
        })
    }

    fn answer(&self, request: u64) -> Result<Option<Result<(), String>>, StoreError> {
        let inner = lock(&self.inner);
        let index = usize::try_from(request).unwrap_or(0).checked_sub(1);
        let posted = index.and_then(|index| inner.requests.get(index));
        Ok(posted.ok_or_else(|| journal::no_request(request))?.answer.clone())
    }

    fn version(&self) -> Result<u64, StoreError> {
        Ok(lock(&self.inner).writes)
    }

    fn rebuild(&self) -> Result<Rebuilt, StoreError> {
        self.write(|inner| journal::rebuild(&mut inner.shelf))
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        journal::check(&lock(&self.inner).shelf)
    }
}
