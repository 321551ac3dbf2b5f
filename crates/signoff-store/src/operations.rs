//! The operations of a store, independent of the back end: validation, recording and projection.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use signoff_core::ids::{RunId, TaskId};
use signoff_core::task::{TaskSpec, TrackerRef};
use signoff_core::view::{RunState, Transition};
use signoff_core::wire::{Fact, LoopFact, QUEUE, RecordedFact, TaskFact};

use crate::projection::{Projector, task_row};
use crate::record::{RowWrite, TableName, TableRow};
use crate::transaction::{Counter, TableRows, TaskOwner, Transaction};
use crate::{Lease, NewTask, RebuildStats, StoreError};

/// Receives the transition of every event that a [`RunCache`] applies, in the order of the log.
///
/// The transitions of a run start with its first event. They start again if the cache has dropped the run in between.
pub trait TransitionObserver: Send + Sync {
    fn apply(&self, transition: &Transition);

    /// The cache dropped the run.
    fn forget(&self, run: RunId);
}

/// The number of runs with an observer from which on ended ones are dropped.
const MAX_OBSERVED: usize = 32;

/// The runs that this process has read from their logs, so that it applies each event once. Ended runs are dropped to
/// limit its memory; the events of a dropped run are applied again when it is needed again.
#[derive(Default)]
pub struct RunCache {
    projected: BTreeMap<RunId, ProjectedRun>,
    observer: Option<Arc<dyn TransitionObserver>>,
    /// The run that the current transaction appends to, and its transitions, which the observer gets after the commit.
    appended: Option<(RunId, Vec<Transition>)>,
}

/// A run with its projector.
struct ProjectedRun {
    projector: Projector,
    /// The transitions that [`preload`] keeps for the next [`load`].
    unobserved: Option<Vec<Transition>>,
}

impl RunCache {
    /// Sets the observer. It gets the transitions of the known runs at once.
    pub fn set_observer(&mut self, observer: Arc<dyn TransitionObserver>) {
        self.projected.retain(|_, known| known.unobserved.is_some());
        let unobserved = self.projected.values().flat_map(|known| &known.unobserved).flatten();
        unobserved.for_each(|transition| observer.apply(transition));
        self.observer = Some(observer);
    }

    /// Call this when a transaction has ended. After a failure the appended run is ahead of the log, and is dropped.
    pub fn end_transaction(&mut self, committed: bool) {
        let Some((run, transitions)) = self.appended.take() else { return };
        if committed {
            transitions.iter().for_each(|transition| self.observe(transition));
        } else {
            self.remove(|known, _| known == run);
        }
    }

    /// Drops finished runs except `keep`, to limit the memory of a process that executes many runs.
    fn remove_finished(&mut self, keep: Option<RunId>) {
        self.remove(|run, is_over| is_over && Some(run) != keep);
    }

    /// Drops the runs that `is_removed` selects by their id and whether they are over.
    fn remove(&mut self, is_removed: impl Fn(RunId, bool) -> bool) {
        let observer = self.observer.as_deref();
        self.projected.retain(|run, known| {
            let removed = is_removed(*run, known.projector.is_over());
            observer.filter(|_| removed).into_iter().for_each(|observer| observer.forget(*run));
            !removed
        });
    }

    /// Takes the projection of a run out of the cache, and applies at most `limit` of the events that it does not have.
    fn take(&mut self, tx: &dyn Transaction, run: RunId, limit: usize) -> Result<ProjectedRun, StoreError> {
        if self.observer.is_some() && self.projected.len() >= MAX_OBSERVED && !self.projected.contains_key(&run) {
            self.remove_finished(None);
        }
        let known = self.projected.remove(&run);
        let mut known = known.unwrap_or_else(|| ProjectedRun { projector: Projector::new(run), unobserved: None });
        replay(tx, &mut known.projector, limit, &mut |transition| {
            self.observe(&transition);
            known.unobserved.iter_mut().for_each(|unobserved| unobserved.push(transition.clone()));
        })?;
        Ok(known)
    }

    fn observe(&self, transition: &Transition) {
        self.observer.iter().for_each(|observer| observer.apply(transition));
    }
}

/// Facts to append, and their time.
#[derive(Clone, Copy)]
pub struct NewFacts<'a> {
    pub at: Timestamp,
    pub facts: &'a [Fact],
}

pub fn reserve(tx: &mut dyn Transaction, count: usize) -> Result<Vec<TaskId>, StoreError> {
    let last = tx.counter(Counter::Task)?;
    let next = last.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
    tx.set_counter(Counter::Task, next)?;
    Ok((last..next).map(|number| TaskId(number + 1)).collect())
}

pub fn add_tasks(tx: &mut dyn Transaction, at: Timestamp, tasks: &[NewTask]) -> Result<Vec<TaskId>, StoreError> {
    let ids = reserve(tx, tasks.len())?;
    check_tracked_claims(tx, tasks.iter().map(|task| &task.spec))?;
    let added = |task: &NewTask| TaskFact::Added {
        spec: Box::new(task.spec.clone()),
        auto_review: task.auto_review,
        max_review_cycles: task.max_review_cycles,
    };
    let facts: Vec<_> = ids.iter().zip(tasks).map(|(id, task)| (*id, added(task))).collect();
    queue(tx, at, facts)?;
    Ok(ids)
}

pub fn withdraw(tx: &mut dyn Transaction, at: Timestamp, task: TaskId, by: &str) -> Result<(), StoreError> {
    match tx.task_owner(task)? {
        None => Err(StoreError::NoTask(task)),
        Some(TaskOwner::Run(_)) => Err(StoreError::TaskTaken(task)),
        Some(TaskOwner::Withdrawn) => Ok(()),
        Some(TaskOwner::Queued) => queue(tx, at, vec![(task, TaskFact::Withdrawn { by: by.to_owned() })]),
    }
}

/// Appends facts to the queue's log.
fn queue(tx: &mut dyn Transaction, at: Timestamp, facts: Vec<(TaskId, TaskFact)>) -> Result<(), StoreError> {
    for (seq, (task, fact)) in (tx.last_seq(QUEUE)? + 1..).zip(facts) {
        let row = task_row(QUEUE, at, task, &fact);
        tx.record(&RecordedFact { run: QUEUE, seq, at, fact: Fact::Task(task, fact) })?;
        tx.put(&row)?;
    }
    Ok(())
}

pub fn new_run(tx: &mut dyn Transaction, cache: &mut RunCache, at: Timestamp) -> Result<RunId, StoreError> {
    cache.remove_finished(None);
    let run = RunId(tx.counter(Counter::Run)? + 1);
    tx.set_counter(Counter::Run, run.0)?;
    tx.new_run(run, at)?;
    Ok(run)
}

/// Increments the fence for a new holder.
pub fn next_fence(tx: &mut dyn Transaction, cache: &mut RunCache, run: RunId) -> Result<u64, StoreError> {
    cache.remove_finished(Some(run));
    let fence = tx.fence(run)?.ok_or(StoreError::NoRun(run))? + 1;
    tx.set_fence(run, fence)?;
    Ok(fence)
}

/// The state of a run, for a caller that only reads it. Only events that the cache does not have are applied.
pub fn run_state(tx: &dyn Transaction, cache: &mut RunCache, run: RunId) -> Result<RunState, StoreError> {
    check_run_exists(tx, run)?;
    let known = cache.take(tx, run, usize::MAX)?;
    let run_state = known.projector.run_state().clone();
    cache.projected.insert(run, known);
    Ok(run_state)
}

/// Applies at most `limit` of the events that the cache does not have. Returns whether it has all of them now.
pub fn advance(tx: &dyn Transaction, cache: &mut RunCache, run: RunId, limit: usize) -> Result<bool, StoreError> {
    let known = cache.take(tx, run, limit)?;
    let is_complete = known.projector.run_state().seq == tx.last_seq(run)?;
    cache.projected.insert(run, known);
    Ok(is_complete)
}

/// The state of a run, for a caller that may execute it next. The caller of the next [`load`] gets the transitions.
pub fn preload(tx: &dyn Transaction, cache: &mut RunCache, run: RunId) -> Result<RunState, StoreError> {
    check_run_exists(tx, run)?;
    if cache.observer.is_none() {
        let new = || ProjectedRun { projector: Projector::new(run), unobserved: Some(Vec::new()) };
        cache.projected.entry(run).or_insert_with(new);
    }
    run_state(tx, cache, run)
}

/// The state of a run. `observe` gets the transition of each event.
pub fn load(
    tx: &dyn Transaction,
    cache: &mut RunCache,
    run: RunId,
    observe: &mut dyn FnMut(&Transition),
) -> Result<RunState, StoreError> {
    check_run_exists(tx, run)?;
    let known = cache.projected.contains_key(&run).then(|| cache.take(tx, run, usize::MAX)).transpose()?;
    let (projector, unobserved) = known.map(|known| (known.projector, known.unobserved)).unzip();
    let projector = match (projector, unobserved.flatten()) {
        (Some(projector), Some(unobserved)) => {
            unobserved.iter().for_each(observe);
            projector
        }
        _ => {
            let mut projector = Projector::new(run);
            replay(tx, &mut projector, usize::MAX, &mut |transition| {
                cache.observe(&transition);
                observe(&transition);
            })?;
            projector
        }
    };
    let run_state = projector.run_state().clone();
    cache.projected.insert(run, ProjectedRun { projector, unobserved: None });
    Ok(run_state)
}

/// Applies at most `limit` of the events that the projector of a run does not have.
fn replay(
    tx: &dyn Transaction,
    projector: &mut Projector,
    limit: usize,
    observe: &mut dyn FnMut(Transition),
) -> Result<(), StoreError> {
    let RunState { run, seq, .. } = *projector.run_state();
    if tx.last_seq(run)? == seq {
        return Ok(());
    }
    projector.set_question_ids(tx.question_ids(run)?);
    // Questions without an id are in no table yet; a rebuild assigns their ids.
    let mut last_question = tx.last_question()?;
    for recorded in tx.log_page(run, seq, limit)? {
        observe(projector.apply(recorded, &mut last_question));
    }
    projector.changed_rows();
    Ok(())
}

/// Replaces a state. Specifications from the queue are in no log of the run, so they stay.
pub fn reset(state: &mut RunState, new: RunState) {
    let specs = std::mem::replace(state, new).specs;
    state.specs.extend(specs);
}

/// Appends facts to a run's log.
pub fn append(
    tx: &mut dyn Transaction,
    cache: &mut RunCache,
    lease: &Lease,
    new: NewFacts<'_>,
    state: &mut RunState,
) -> Result<Vec<Transition>, StoreError> {
    let run = lease.run();
    if tx.fence(run)? != Some(lease.fence()) {
        return Err(StoreError::Fenced(run));
    }
    check_claims(tx, run, new.facts)?;
    let last = tx.last_seq(run)?;
    let mut known = cache.take(tx, run, usize::MAX)?;
    if state.seq != last {
        reset(state, known.projector.run_state().clone());
    }
    let mut last_question = tx.last_question()?;
    let mut transitions = Vec::with_capacity(new.facts.len());
    for (seq, fact) in (last + 1..).zip(new.facts) {
        let recorded = RecordedFact { run, seq, at: new.at, fact: fact.clone() };
        tx.record(&recorded)?;
        let transition = known.projector.apply(recorded, &mut last_question);
        state.apply_transition(&transition);
        transitions.push(transition);
    }
    for row in known.projector.changed_rows() {
        tx.put(&row)?;
    }
    if let Some(unobserved) = &mut known.unobserved {
        unobserved.extend(transitions.iter().cloned());
    }
    cache.projected.insert(run, known);
    cache.appended = Some((run, transitions.clone()));
    Ok(transitions)
}

/// Fails unless `run` is the queue or an existing run.
pub fn check_run_exists(tx: &dyn Transaction, run: RunId) -> Result<(), StoreError> {
    let exists = run == QUEUE || tx.fence(run)?.is_some();
    exists.then_some(()).ok_or(StoreError::NoRun(run))
}

pub fn unknown_request(request: u64) -> StoreError {
    StoreError::Other(format!("there is no request {request}"))
}

/// Checks that every task the facts add is new, and that every task they claim is free.
fn check_claims(tx: &mut dyn Transaction, run: RunId, facts: &[Fact]) -> Result<(), StoreError> {
    let mut own = BTreeSet::new();
    check_tracked_claims(tx, facts.iter().filter_map(added_spec))?;
    for fact in facts {
        match fact {
            Fact::Task(task, TaskFact::Added { .. }) => {
                if tx.task_owner(*task)?.is_some() || !own.insert(*task) {
                    return Err(StoreError::TaskTaken(*task));
                }
            }
            Fact::Loop(_, LoopFact::Added { task, .. }) if !own.contains(task) => match tx.task_owner(*task)? {
                None => return Err(StoreError::NoTask(*task)),
                Some(TaskOwner::Queued) => {}
                Some(TaskOwner::Run(owner)) if owner == run => {}
                Some(TaskOwner::Run(_) | TaskOwner::Withdrawn) => return Err(StoreError::TaskTaken(*task)),
            },
            Fact::Task(..) | Fact::Run(_) | Fact::Loop(..) => {}
        }
    }
    // Ids that were used without a reservation must not be assigned again.
    let highest = own.last().map_or(0, |task| task.0);
    if highest > tx.counter(Counter::Task)? {
        tx.set_counter(Counter::Task, highest)?;
    }
    Ok(())
}

/// The specification in a fact that adds a task.
fn added_spec(fact: &Fact) -> Option<&TaskSpec> {
    match fact {
        Fact::Task(_, TaskFact::Added { spec, .. }) => Some(spec),
        Fact::Task(_, TaskFact::Withdrawn { .. }) | Fact::Run(_) | Fact::Loop(..) => None,
    }
}

/// Checks that a tracker issue becomes at most one task, also with concurrent processes.
fn check_tracked_claims<'a>(tx: &dyn Transaction, specs: impl Iterator<Item = &'a TaskSpec>) -> Result<(), StoreError> {
    let mut own = BTreeSet::new();
    for TrackerRef { tracker, id, reopened, .. } in specs.filter_map(|spec| spec.tracker.as_ref()) {
        let claims = tx.claims(tracker, Some(id))?;
        if let Some(by) = claims.get(id).filter(|by| reopened.as_ref() != Some(by)) {
            return Err(StoreError::IssueClaimed { id: id.clone(), by: *by });
        }
        if !own.insert((tracker, id)) {
            return Err(StoreError::Other(format!("{id} cannot be two tasks")));
        }
    }
    Ok(())
}

/// The projection of all logs.
#[derive(Default)]
struct FullProjection {
    runs: BTreeMap<RunId, Projector>,
    last_question: u64,
    queue: Vec<TableRow>,
    facts: usize,
}

impl FullProjection {
    fn apply(&mut self, recorded: RecordedFact) {
        self.facts += 1;
        if recorded.run == QUEUE {
            if let Fact::Task(task, fact) = &recorded.fact {
                self.queue.push(task_row(QUEUE, recorded.at, *task, fact));
            }
            return;
        }
        let run = recorded.run;
        let projector = self.runs.entry(run).or_insert_with(|| Projector::new(run));
        projector.apply(recorded, &mut self.last_question);
    }

    fn rows(self) -> Vec<TableRow> {
        let mut rows = self.queue;
        rows.extend(self.runs.into_values().flat_map(|mut projector| projector.changed_rows()));
        rows.sort_by_key(TableRow::write_order);
        rows
    }
}

pub fn rebuild(tx: &mut dyn Transaction) -> Result<RebuildStats, StoreError> {
    let mut projection = FullProjection::default();
    tx.for_each_fact(&mut |recorded| {
        projection.apply(recorded?);
        Ok(())
    })?;
    let rebuilt = RebuildStats { runs: projection.runs.len(), facts: projection.facts };
    tx.clear()?;
    for row in projection.rows() {
        tx.put(&row)?;
    }
    Ok(rebuilt)
}

/// Finds errors in the log, and rows that differ from it.
pub fn check(tx: &dyn Transaction) -> Result<Vec<String>, StoreError> {
    let mut problems = Vec::new();
    let mut projection = FullProjection::default();
    let mut last: BTreeMap<RunId, u64> = BTreeMap::new();
    tx.for_each_fact(&mut |recorded| {
        match recorded {
            Ok(recorded) => {
                let seq = last.entry(recorded.run).or_default();
                if recorded.seq != *seq + 1 {
                    problems.push(format!("run {}: event {} is missing", recorded.run, *seq + 1));
                }
                *seq = recorded.seq;
                projection.apply(recorded);
            }
            Err(StoreError::Unreadable { run, seq, message }) => {
                last.insert(run, seq);
                problems.push(StoreError::Unreadable { run, seq, message }.to_string());
            }
            Err(other) => return Err(other),
        }
        Ok(())
    })?;
    // With facts missing, the expected rows are unknown.
    if problems.is_empty() {
        let mut expected: BTreeMap<TableName, TableRows> = BTreeMap::new();
        projection.rows().iter().for_each(|row| write_row(&mut expected, row));
        for &table in TableName::ALL {
            let should = expected.remove(&table).unwrap_or_default();
            problems.extend(differences(table, &should, &tx.rows(table)?));
        }
    }
    Ok(problems)
}

fn differences(table: TableName, expected: &TableRows, actual: &TableRows) -> Vec<String> {
    let keys: BTreeSet<_> = expected.keys().chain(actual.keys()).collect();
    let differ = keys.into_iter().filter(|key| expected.get(*key) != actual.get(*key)).count();
    let name = table.into_str();
    match differ {
        0 => Vec::new(),
        1 => vec![format!("table {name}: 1 row differs from the log: rebuild the tables")],
        _ => vec![format!("table {name}: {differ} rows differ from the log: rebuild the tables")],
    }
}

/// Writes a row into in-memory tables.
pub fn write_row(tables: &mut BTreeMap<TableName, TableRows>, row: &TableRow) {
    let rows = tables.entry(row.table).or_default();
    let columns = row.columns.iter().map(|(name, cell)| ((*name).to_owned(), cell.clone()));
    match row.mode {
        RowWrite::Put => {
            rows.insert(row.key.clone(), columns.collect());
        }
        RowWrite::Insert => {
            rows.entry(row.key.clone()).or_insert_with(|| columns.collect());
        }
        RowWrite::Update => {
            if let Some(there) = rows.get_mut(&row.key) {
                there.extend(columns);
            }
        }
    }
}
