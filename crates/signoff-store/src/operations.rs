//! The operations of a store, independent of the back end: validation, recording and projection.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use signoff_core::ids::{RunId, TaskId};
use signoff_core::task::{TaskSpec, TrackerRef};
use signoff_core::view::{RunState, Transition};
use signoff_core::wire::{Fact, LoopFact, QUEUE, RecordedFact, TaskFact};

use crate::projection::{Projector, QuestionIds, task_row};
use crate::record::{RowWrite, TableName, TableRow};
use crate::transaction::{Counter, TableRows, TaskOwner, Transaction};
use crate::{Lease, NewTask, RebuildStats, StoreError};

/// The projectors of the runs that this process drives, each with the fence it was created under.
pub type Projectors = BTreeMap<RunId, (u64, Projector)>;

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
    match tx.holder(task)? {
        None => Err(StoreError::NoTask(task)),
        Some(TaskOwner::Run(_)) => Err(StoreError::Taken(task)),
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

pub fn new_run(tx: &mut dyn Transaction, projectors: &mut Projectors, at: Timestamp) -> Result<RunId, StoreError> {
    remove_finished(projectors);
    let run = RunId(tx.counter(Counter::Run)? + 1);
    tx.set_counter(Counter::Run, run.0)?;
    tx.new_run(run, at)?;
    Ok(run)
}

/// Increments the fence for a new holder.
pub fn next_fence(tx: &mut dyn Transaction, projectors: &mut Projectors, run: RunId) -> Result<u64, StoreError> {
    remove_finished(projectors);
    let fence = tx.fence(run)?.ok_or(StoreError::NoRun(run))? + 1;
    tx.set_fence(run, fence)?;
    Ok(fence)
}

/// Removes the projectors of finished runs, to limit the memory of a process that drives many runs.
fn remove_finished(projectors: &mut Projectors) {
    projectors.retain(|_, (_, projector)| !projector.is_over());
}

/// The state of a run, from its log.
pub fn load(
    tx: &dyn Transaction,
    projectors: &mut Projectors,
    lease: &Lease,
    observe: &mut dyn FnMut(&Transition),
) -> Result<RunState, StoreError> {
    let mut state = RunState::new(lease.run());
    let projector = replay(tx, lease, &mut state, observe)?;
    projectors.insert(lease.run(), (lease.fence(), projector));
    Ok(state)
}

/// Applies a run's log to `state`, and creates the projector of the run.
fn replay(
    tx: &dyn Transaction,
    lease: &Lease,
    state: &mut RunState,
    observe: &mut dyn FnMut(&Transition),
) -> Result<Projector, StoreError> {
    let run = lease.run();
    reset(state, run);
    let mut projector = Projector::new(run, tx.question_ids(run)?);
    // Questions without an id are in no table yet; a rebuild assigns their ids.
    let mut last_question = tx.last_question()?;
    for recorded in tx.log_after(run, 0)? {
        let transition = state.apply(recorded);
        projector.apply(&transition, &mut last_question);
        observe(&transition);
    }
    projector.changed_rows();
    Ok(projector)
}

/// Takes all facts back. Specifications from the queue are in no log of the run, so they stay.
pub fn reset(state: &mut RunState, run: RunId) {
    let specs = std::mem::take(&mut state.specs);
    *state = RunState::new(run);
    state.specs = specs;
}

/// Appends facts to a run's log.
pub fn append(
    tx: &mut dyn Transaction,
    projectors: &mut Projectors,
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
    // After an append that failed, the projector is ahead of the log.
    let known = projectors.remove(&run);
    let known = known.filter(|(fence, projector)| *fence == lease.fence() && projector.seq() == last);
    let mut projector = match known {
        Some((_, projector)) if state.seq == last => projector,
        Some(_) | None => replay(tx, lease, state, &mut |_| {})?,
    };
    let mut last_question = tx.last_question()?;
    let mut transitions = Vec::with_capacity(new.facts.len());
    for (seq, fact) in (last + 1..).zip(new.facts) {
        let recorded = RecordedFact { run, seq, at: new.at, fact: fact.clone() };
        tx.record(&recorded)?;
        let transition = state.apply(recorded);
        projector.apply(&transition, &mut last_question);
        transitions.push(transition);
    }
    for row in projector.changed_rows() {
        tx.put(&row)?;
    }
    projectors.insert(run, (lease.fence(), projector));
    Ok(transitions)
}

/// Fails unless `run` is the queue or an existing run.
pub fn check_run_exists(tx: &dyn Transaction, run: RunId) -> Result<(), StoreError> {
    let exists = run == QUEUE || tx.fence(run)?.is_some();
    exists.then_some(()).ok_or(StoreError::NoRun(run))
}

pub fn no_request(request: u64) -> StoreError {
    StoreError::Other(format!("there is no request {request}"))
}

/// Checks that every task the facts add is new, and that every task they claim is free.
fn check_claims(tx: &mut dyn Transaction, run: RunId, facts: &[Fact]) -> Result<(), StoreError> {
    let mut own = BTreeSet::new();
    check_tracked_claims(tx, facts.iter().filter_map(added_spec))?;
    for fact in facts {
        match fact {
            Fact::Task(task, TaskFact::Added { .. }) => {
                if tx.holder(*task)?.is_some() || !own.insert(*task) {
                    return Err(StoreError::Taken(*task));
                }
            }
            Fact::Loop(_, LoopFact::Added { task, .. }) if !own.contains(task) => match tx.holder(*task)? {
                None => return Err(StoreError::NoTask(*task)),
                Some(TaskOwner::Queued) => {}
                Some(TaskOwner::Run(holder)) if holder == run => {}
                Some(TaskOwner::Run(_) | TaskOwner::Withdrawn) => return Err(StoreError::Taken(*task)),
            },
            Fact::Task(..) | Fact::Run(_) | Fact::Loop(..) => {}
        }
    }
    // Ids that were used without a reservation must not be assigned again.
    let most = own.last().map_or(0, |task| task.0);
    if most > tx.counter(Counter::Task)? {
        tx.set_counter(Counter::Task, most)?;
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
            return Err(StoreError::Claimed { id: id.clone(), by: *by });
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
    runs: BTreeMap<RunId, (RunState, Projector)>,
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
        let known = self.runs.entry(run);
        let (state, projector) = known.or_insert_with(|| (RunState::new(run), Projector::new(run, QuestionIds::new())));
        projector.apply(&state.apply(recorded), &mut self.last_question);
    }

    fn rows(self) -> Vec<TableRow> {
        let mut rows = self.queue;
        rows.extend(self.runs.into_values().flat_map(|(_, mut projector)| projector.changed_rows()));
        rows.sort_by_key(TableRow::write_order);
        rows
    }
}

pub fn rebuild(tx: &mut dyn Transaction) -> Result<RebuildStats, StoreError> {
    let mut fold = FullProjection::default();
    tx.for_each_fact(&mut |recorded| {
        fold.apply(recorded?);
        Ok(())
    })?;
    let rebuilt = RebuildStats { runs: fold.runs.len(), facts: fold.facts };
    tx.clear()?;
    for row in fold.rows() {
        tx.put(&row)?;
    }
    Ok(rebuilt)
}

/// Finds errors in the log, and rows that differ from it.
pub fn check(tx: &dyn Transaction) -> Result<Vec<String>, StoreError> {
    let mut problems = Vec::new();
    let mut fold = FullProjection::default();
    let mut last: BTreeMap<RunId, u64> = BTreeMap::new();
    tx.for_each_fact(&mut |recorded| {
        match recorded {
            Ok(recorded) => {
                let seq = last.entry(recorded.run).or_default();
                if recorded.seq != *seq + 1 {
                    problems.push(format!("run {}: fact {} is missing", recorded.run, *seq + 1));
                }
                *seq = recorded.seq;
                fold.apply(recorded);
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
        fold.rows().iter().for_each(|row| write_row(&mut expected, row));
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
    let name = table.name();
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
