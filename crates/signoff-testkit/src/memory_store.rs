//! An in-memory store for tests, and the reference implementation of `Store`.

mod tables;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;
use signoff_core::command::LoopCommand;
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::task::TaskSpec;
use signoff_core::view::{QuestionRow, RunState, RunStatus, TaskRow, Transition};
use signoff_core::wire::{Fact, RecordedFact, TaskFact};

use signoff_store::backend::{self, NewFacts, RunCache, TaskOwner, Transaction as _};
use signoff_store::{
    CommandRequest, DeliveryRecord, FindingRef, Lease, NewTask, QuestionRef, RebuildStats, Store, StoreError,
    StoredRun, TrackerClaims,
};
use tables::MemoryTables;

/// An in-memory store. Clones share their state, as processes share a database.
#[derive(Clone, Default)]
pub struct MemoryStore {
    inner: Arc<Mutex<MemoryState>>,
}

#[derive(Default)]
struct MemoryState {
    tables: MemoryTables,
    cache: RunCache,
    /// The fence of the current holder of each run.
    held: BTreeMap<RunId, u64>,
    requests: Vec<PostedRequest>,
    deliveries: Vec<DeliveryRecord>,
    writes: u64,
}

struct PostedRequest {
    run: RunId,
    loop_id: LoopId,
    command: LoopCommand,
    answer: Option<Result<(), String>>,
}

/// Releases the lease on drop, unless another holder took it over.
struct LeaseGuard {
    inner: Arc<Mutex<MemoryState>>,
    run: RunId,
    fence: u64,
}

impl Drop for LeaseGuard {
    fn drop(&mut self) {
        let mut inner = lock(&self.inner);
        if inner.held.get(&self.run) == Some(&self.fence) {
            inner.held.remove(&self.run);
        }
    }
}

fn lock(inner: &Mutex<MemoryState>) -> MutexGuard<'_, MemoryState> {
    inner.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MemoryStore {
    pub fn new() -> Self {
        Self::default()
    }

    /// Drops all leases, as if the lock files were deleted, so that other holders can take over the runs.
    pub fn lose_leases(&self) {
        lock(&self.inner).held.clear();
    }

    fn write<T>(&self, write: impl FnOnce(&mut MemoryState) -> Result<T, StoreError>) -> Result<T, StoreError> {
        let mut inner = lock(&self.inner);
        inner.writes += 1;
        let result = write(&mut inner);
        inner.cache.end_transaction(result.is_ok());
        result
    }

    fn lease(&self, run: RunId, fence: u64) -> Lease {
        Lease::new(run, fence, LeaseGuard { inner: self.inner.clone(), run, fence })
    }
}

impl Store for MemoryStore {
    fn add_tasks(&self, at: Timestamp, tasks: &[NewTask]) -> Result<Vec<TaskId>, StoreError> {
        self.write(|inner| backend::add_tasks(&mut inner.tables, at, tasks))
    }

    fn withdraw(&self, at: Timestamp, task: TaskId, by: &str) -> Result<(), StoreError> {
        self.write(|inner| backend::withdraw(&mut inner.tables, at, task, by))
    }

    fn reserve_tasks(&self, count: usize) -> Result<Vec<TaskId>, StoreError> {
        self.write(|inner| backend::reserve(&mut inner.tables, count))
    }

    fn open_run(&self, at: Timestamp) -> Result<Lease, StoreError> {
        let run = self.write(|inner| {
            let run = backend::new_run(&mut inner.tables, &mut inner.cache, at)?;
            inner.held.insert(run, 1);
            Ok(run)
        })?;
        Ok(self.lease(run, 1))
    }

    fn acquire(&self, run: RunId) -> Result<Lease, StoreError> {
        let fence = self.write(|inner| {
            if inner.held.contains_key(&run) {
                return Err(StoreError::LeaseHeld(run));
            }
            let fence = backend::next_fence(&mut inner.tables, &mut inner.cache, run)?;
            inner.held.insert(run, fence);
            Ok(fence)
        })?;
        Ok(self.lease(run, fence))
    }

    fn is_held(&self, run: RunId) -> Result<bool, StoreError> {
        Ok(lock(&self.inner).held.contains_key(&run))
    }

    fn load(&self, run: RunId, observe: &mut dyn FnMut(&Transition)) -> Result<RunState, StoreError> {
        let inner = &mut *lock(&self.inner);
        backend::load(&inner.tables, &mut inner.cache, run, observe)
    }

    fn preload(&self, run: RunId) -> Result<RunState, StoreError> {
        let inner = &mut *lock(&self.inner);
        backend::preload(&inner.tables, &mut inner.cache, run)
    }

    fn run_state(&self, run: RunId) -> Result<RunState, StoreError> {
        let inner = &mut *lock(&self.inner);
        backend::run_state(&inner.tables, &mut inner.cache, run)
    }

    fn append_to(
        &self,
        state: &mut RunState,
        lease: &Lease,
        at: Timestamp,
        facts: &[Fact],
    ) -> Result<Vec<Transition>, StoreError> {
        if facts.is_empty() {
            return Ok(Vec::new());
        }
        let new = NewFacts { at, facts };
        self.write(|inner| backend::append(&mut inner.tables, &mut inner.cache, lease, new, state))
    }

    fn log_after(&self, run: RunId, seq: u64) -> Result<Vec<RecordedFact>, StoreError> {
        self.log_page(run, seq, usize::MAX)
    }

    fn log_page(&self, run: RunId, seq: u64, limit: usize) -> Result<Vec<RecordedFact>, StoreError> {
        let inner = lock(&self.inner);
        backend::check_run_exists(&inner.tables, run)?;
        inner.tables.log_page(run, seq, limit)
    }

    fn loop_log(&self, run: RunId, loop_id: &LoopId) -> Result<Vec<RecordedFact>, StoreError> {
        let mut log = self.log(run)?;
        log.retain(|recorded| match &recorded.fact {
            Fact::Loop(of, _) => of == loop_id,
            Fact::Run(_) | Fact::Task(..) => true,
        });
        Ok(log)
    }

    fn last_seq(&self, run: RunId) -> Result<u64, StoreError> {
        lock(&self.inner).tables.last_seq(run)
    }

    fn runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        lock(&self.inner).tables.runs()
    }

    fn open_runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        lock(&self.inner).tables.open_runs()
    }

    fn run(&self, run: RunId) -> Result<Option<StoredRun>, StoreError> {
        lock(&self.inner).tables.run(run)
    }

    fn failed_runs(&self) -> Result<Vec<StoredRun>, StoreError> {
        let mut runs = lock(&self.inner).tables.runs()?;
        runs.retain(|run| run.status == RunStatus::Failed && run.groups.is_some());
        Ok(runs)
    }

    fn last_run(&self) -> Result<Option<StoredRun>, StoreError> {
        lock(&self.inner).tables.last_run()
    }

    fn tasks(&self) -> Result<Vec<TaskRow>, StoreError> {
        lock(&self.inner).tables.tasks()
    }

    fn task(&self, task: TaskId) -> Result<Option<TaskRow>, StoreError> {
        lock(&self.inner).tables.task(task)
    }

    fn task_spec(&self, task: TaskId) -> Result<Option<TaskSpec>, StoreError> {
        let inner = lock(&self.inner);
        let spec = inner.tables.events.iter().find_map(|recorded| match &recorded.fact {
            Fact::Task(id, TaskFact::Added { spec, .. }) if *id == task => Some((**spec).clone()),
            Fact::Task(..) | Fact::Run(_) | Fact::Loop(..) => None,
        });
        Ok(spec)
    }

    fn queued(&self, after: TaskId, limit: usize) -> Result<Vec<(TaskId, Vec<TaskId>)>, StoreError> {
        let inner = lock(&self.inner);
        let mut queued = BTreeMap::new();
        for recorded in &inner.tables.events {
            if let Fact::Task(task, TaskFact::Added { spec, .. }) = &recorded.fact
                && *task > after
                && inner.tables.task_owner(*task)? == Some(TaskOwner::Queued)
            {
                queued.entry(*task).or_insert_with(|| spec.depends_on.clone());
            }
        }
        Ok(queued.into_iter().take(limit).collect())
    }

    fn claims(&self, tracker: &str) -> Result<TrackerClaims, StoreError> {
        lock(&self.inner).tables.claims(tracker, None)
    }

    fn loop_for_task(&self, task: TaskId) -> Result<Option<(RunId, LoopId)>, StoreError> {
        Ok(lock(&self.inner).tables.loop_of(task))
    }

    fn questions(&self) -> Result<Vec<QuestionRow>, StoreError> {
        lock(&self.inner).tables.questions()
    }

    fn question(&self, number: u64) -> Result<Option<QuestionRef>, StoreError> {
        lock(&self.inner).tables.question(number)
    }

    fn findings(&self, prefix: &str) -> Result<Vec<FindingRef>, StoreError> {
        lock(&self.inner).tables.findings(prefix)
    }

    fn post_request(&self, run: RunId, loop_id: &LoopId, command: &LoopCommand) -> Result<u64, StoreError> {
        self.write(|inner| {
            if inner.tables.fence(run)?.is_none() {
                return Err(StoreError::NoRun(run));
            }
            let (loop_id, command) = (loop_id.clone(), command.clone());
            inner.requests.push(PostedRequest { run, loop_id, command, answer: None });
            Ok(inner.requests.len() as u64)
        })
    }

    fn pending_requests(&self, run: RunId) -> Result<Vec<CommandRequest>, StoreError> {
        let inner = lock(&self.inner);
        let open = (1..).zip(&inner.requests).filter(|(_, one)| one.run == run && one.answer.is_none());
        let request = |(id, one): (u64, &PostedRequest)| CommandRequest {
            id,
            loop_id: one.loop_id.clone(),
            command: one.command.clone(),
        };
        Ok(open.map(request).collect())
    }

    fn answer_request(&self, request: u64, refusal: Option<&str>) -> Result<(), StoreError> {
        self.write(|inner| {
            let index = usize::try_from(request).unwrap_or(0).checked_sub(1);
            let posted = index.and_then(|index| inner.requests.get_mut(index));
            let posted = posted.ok_or_else(|| backend::unknown_request(request))?;
            posted.answer = Some(refusal.map_or(Ok(()), |refusal| Err(refusal.to_owned())));
            Ok(())
        })
    }

    fn request_answer(&self, request: u64) -> Result<Option<Result<(), String>>, StoreError> {
        let inner = lock(&self.inner);
        let index = usize::try_from(request).unwrap_or(0).checked_sub(1);
        let posted = index.and_then(|index| inner.requests.get(index));
        Ok(posted.ok_or_else(|| backend::unknown_request(request))?.answer.clone())
    }

    fn record_delivery(&self, record: &DeliveryRecord) -> Result<(), StoreError> {
        self.write(|inner| {
            let open: Vec<_> = inner.tables.open_runs()?.into_iter().map(|run| run.id).collect();
            let oldest = record.at - DeliveryRecord::RETENTION;
            inner.deliveries.retain(|known| known.at >= oldest || known.delivered && open.contains(&known.message.run));
            let same =
                |known: &&mut DeliveryRecord| (&known.message, &known.channel) == (&record.message, &record.channel);
            match inner.deliveries.iter_mut().find(same) {
                Some(known) if record.delivered => *known = record.clone(),
                Some(_) => {}
                None => inner.deliveries.push(record.clone()),
            }
            inner.deliveries.sort_by_key(|known| (known.message.run, known.message.seq, known.channel.clone()));
            Ok(())
        })
    }

    fn deliveries(&self, now: Timestamp) -> Result<Vec<DeliveryRecord>, StoreError> {
        let mut deliveries = lock(&self.inner).deliveries.clone();
        deliveries.retain(|known| known.delivered || known.at >= now - DeliveryRecord::RETENTION);
        Ok(deliveries)
    }

    fn version(&self) -> Result<u64, StoreError> {
        Ok(lock(&self.inner).writes)
    }

    fn rebuild(&self) -> Result<RebuildStats, StoreError> {
        self.write(|inner| backend::rebuild(&mut inner.tables))
    }

    fn check(&self) -> Result<Vec<String>, StoreError> {
        backend::check(&lock(&self.inner).tables)
    }
}
