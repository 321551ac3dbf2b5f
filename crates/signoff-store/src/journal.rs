//! What each call of a store does, whatever the back end: what is checked, what is recorded, what is told.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use signoff_core::ids::{RunId, TaskId};
use signoff_core::task::{TaskSpec, Tracked};
use signoff_core::wire::{Fact, LoopFact, QUEUE, Recorded, TaskFact};

use crate::book::{Book, Counter, Holder, Rows};
use crate::record::{Row, Table, Write};
use crate::teller::{Numbered, Teller, task_row};
use crate::{Lease, NewTask, Rebuilt, StoreError};

/// The tellers of the runs this program drives, each with the fence it was made under.
pub(crate) type Tellers = BTreeMap<RunId, (u64, Teller)>;

pub(crate) fn reserve(book: &mut dyn Book, count: usize) -> Result<Vec<TaskId>, StoreError> {
    let last = book.counter(Counter::Task)?;
    let next = last.saturating_add(u64::try_from(count).unwrap_or(u64::MAX));
    book.set_counter(Counter::Task, next)?;
    Ok((last..next).map(|number| TaskId(number + 1)).collect())
}

pub(crate) fn add_tasks(
    book: &mut dyn Book,
    at: Timestamp,
    tasks: &[NewTask],
) -> Result<Vec<TaskId>, StoreError> {
    let ids = reserve(book, tasks.len())?;
    claim_tracked(book, tasks.iter().map(|task| &task.spec))?;
    let added = |task: &NewTask| TaskFact::Added {
        spec: Box::new(task.spec.clone()),
        auto_review: task.auto_review,
        max_review_cycles: task.max_review_cycles,
    };
    let facts: Vec<_> = ids.iter().zip(tasks).map(|(id, task)| (*id, added(task))).collect();
    queue(book, at, facts)?;
    Ok(ids)
}

pub(crate) fn withdraw(book: &mut dyn Book, at: Timestamp, task: TaskId, by: &str) -> Result<(), StoreError> {
    match book.holder(task)? {
        None => Err(StoreError::NoTask(task)),
        Some(Holder::Run(_)) => Err(StoreError::Taken(task)),
        Some(Holder::Withdrawn) => Ok(()),
        Some(Holder::Nobody) => queue(book, at, vec![(task, TaskFact::Withdrawn { by: by.to_owned() })]),
    }
}

/// Records facts in the log of the queue.
fn queue(book: &mut dyn Book, at: Timestamp, facts: Vec<(TaskId, TaskFact)>) -> Result<(), StoreError> {
    for (seq, (task, fact)) in (book.last_seq(QUEUE)? + 1..).zip(facts) {
        let row = task_row(QUEUE, at, task, &fact);
        book.record(&Recorded { run: QUEUE, seq, at, fact: Fact::Task(task, fact) })?;
        book.put(&row)?;
    }
    Ok(())
}

pub(crate) fn new_run(book: &mut dyn Book, at: Timestamp) -> Result<RunId, StoreError> {
    let run = RunId(book.counter(Counter::Run)? + 1);
    book.set_counter(Counter::Run, run.0)?;
    book.new_run(run, at)?;
    Ok(run)
}

/// The fence of a new holder.
pub(crate) fn next_fence(book: &mut dyn Book, run: RunId) -> Result<u64, StoreError> {
    let fence = book.fence(run)?.ok_or(StoreError::NoRun(run))? + 1;
    book.set_fence(run, fence)?;
    Ok(fence)
}

/// Records facts of a run. The teller that comes back is to be kept if the transaction is committed.
pub(crate) fn append(
    book: &mut dyn Book,
    tellers: &mut Tellers,
    lease: &Lease,
    at: Timestamp,
    facts: &[Fact],
) -> Result<(Vec<Recorded>, Teller), StoreError> {
    let run = lease.run();
    if book.fence(run)? != Some(lease.fence()) {
        return Err(StoreError::Fenced(run));
    }
    claim(book, run, facts)?;
    let last = book.last_seq(run)?;
    let known = tellers.remove(&run);
    let known = known.filter(|(fence, teller)| *fence == lease.fence() && teller.seq() == last);
    let mut teller = match known {
        Some((_, teller)) => teller,
        None => retell(book, run)?,
    };
    let mut asked = book.last_question()?;
    let mut recorded = Vec::with_capacity(facts.len());
    for (seq, fact) in (last + 1..).zip(facts) {
        let one = Recorded { run, seq, at, fact: fact.clone() };
        book.record(&one)?;
        teller.take(&one, &mut asked);
        recorded.push(one);
    }
    for row in teller.settle() {
        book.put(&row)?;
    }
    Ok((recorded, teller))
}

/// Keeps a teller for the next facts, as long as there will be some.
pub(crate) fn keep(tellers: &mut Tellers, lease: &Lease, teller: Teller) {
    if !teller.is_over() {
        tellers.insert(lease.run(), (lease.fence(), teller));
    }
}

/// The queue, or a run that was opened.
pub(crate) fn known(book: &dyn Book, run: RunId) -> Result<(), StoreError> {
    let known = run == QUEUE || book.fence(run)?.is_some();
    known.then_some(()).ok_or(StoreError::NoRun(run))
}

pub(crate) fn no_request(request: u64) -> StoreError {
    StoreError::Other(format!("there is no request {request}"))
}

/// Sees to it that every task the facts add is new, and every task they take is free.
fn claim(book: &mut dyn Book, run: RunId, facts: &[Fact]) -> Result<(), StoreError> {
    let mut own = BTreeSet::new();
    claim_tracked(book, facts.iter().filter_map(spec))?;
    for fact in facts {
        match fact {
            Fact::Task(task, TaskFact::Added { .. }) => {
                if book.holder(*task)?.is_some() || !own.insert(*task) {
                    return Err(StoreError::Taken(*task));
                }
            }
            Fact::Loop(_, LoopFact::Added { task, .. }) if !own.contains(task) => {
                match book.holder(*task)? {
                    None => return Err(StoreError::NoTask(*task)),
                    Some(Holder::Nobody) => {}
                    Some(Holder::Run(holder)) if holder == run => {}
                    Some(Holder::Run(_) | Holder::Withdrawn) => return Err(StoreError::Taken(*task)),
                }
            }
            Fact::Task(..) | Fact::Run(_) | Fact::Loop(..) => {}
        }
    }
    // Numbers that nobody reserved must not be given to somebody else later.
    let most = own.last().map_or(0, |task| task.0);
    if most > book.counter(Counter::Task)? {
        book.set_counter(Counter::Task, most)?;
    }
    Ok(())
}

/// What is asked for, in a fact that adds a task.
fn spec(fact: &Fact) -> Option<&TaskSpec> {
    match fact {
        Fact::Task(_, TaskFact::Added { spec, .. }) => Some(spec),
        Fact::Task(_, TaskFact::Withdrawn { .. }) | Fact::Run(_) | Fact::Loop(..) => None,
    }
}

/// Sees to it that what a tracker knows becomes one task, whoever else is about to take it.
fn claim_tracked<'a>(book: &dyn Book, specs: impl Iterator<Item = &'a TaskSpec>) -> Result<(), StoreError> {
    let mut own = BTreeSet::new();
    for Tracked { tracker, id, reopened, .. } in specs.filter_map(|spec| spec.tracked.as_ref()) {
        let claims = book.claims(tracker, Some(id))?;
        if let Some(by) = claims.get(id).filter(|by| reopened.as_ref() != Some(by)) {
            return Err(StoreError::Claimed { id: id.clone(), by: *by });
        }
        if !own.insert((tracker, id)) {
            return Err(StoreError::Other(format!("{id} cannot be two tasks")));
        }
    }
    Ok(())
}

/// The teller of a run's log as it stands.
fn retell(book: &dyn Book, run: RunId) -> Result<Teller, StoreError> {
    let mut teller = Teller::new(run, book.numbered(run)?);
    // Questions without a number were never told; they get theirs when the tables are rebuilt.
    let mut asked = book.last_question()?;
    for recorded in book.log(run)? {
        teller.take(&recorded, &mut asked);
    }
    teller.settle();
    Ok(teller)
}

/// All logs folded at once.
#[derive(Default)]
struct Fold {
    tellers: BTreeMap<RunId, Teller>,
    asked: u64,
    queue: Vec<Row>,
    facts: usize,
}

impl Fold {
    fn take(&mut self, recorded: &Recorded) {
        self.facts += 1;
        if recorded.run == QUEUE {
            if let Fact::Task(task, fact) = &recorded.fact {
                self.queue.push(task_row(QUEUE, recorded.at, *task, fact));
            }
            return;
        }
        let teller = self.tellers.entry(recorded.run);
        teller.or_insert_with(|| Teller::new(recorded.run, Numbered::new())).take(recorded, &mut self.asked);
    }

    fn rows(self) -> Vec<Row> {
        let mut rows = self.queue;
        rows.extend(self.tellers.into_values().flat_map(|mut teller| teller.settle()));
        rows.sort_by_key(Row::rank);
        rows
    }
}

pub(crate) fn rebuild(book: &mut dyn Book) -> Result<Rebuilt, StoreError> {
    let mut fold = Fold::default();
    book.all(&mut |recorded| {
        fold.take(&recorded?);
        Ok(())
    })?;
    let rebuilt = Rebuilt { runs: fold.tellers.len(), facts: fold.facts };
    book.clear()?;
    for row in fold.rows() {
        book.put(&row)?;
    }
    Ok(rebuilt)
}

/// What is wrong with the log, and where the tables say something else.
pub(crate) fn check(book: &dyn Book) -> Result<Vec<String>, StoreError> {
    let mut wrong = Vec::new();
    let mut fold = Fold::default();
    let mut last: BTreeMap<RunId, u64> = BTreeMap::new();
    book.all(&mut |recorded| {
        match recorded {
            Ok(recorded) => {
                let seq = last.entry(recorded.run).or_default();
                if recorded.seq != *seq + 1 {
                    wrong.push(format!("run {}: fact {} is missing", recorded.run, *seq + 1));
                }
                *seq = recorded.seq;
                fold.take(&recorded);
            }
            Err(StoreError::Unreadable { run, seq, message }) => {
                last.insert(run, seq);
                wrong.push(StoreError::Unreadable { run, seq, message }.to_string());
            }
            Err(other) => return Err(other),
        }
        Ok(())
    })?;
    // What the tables should say is not known where facts are.
    if wrong.is_empty() {
        let mut told: BTreeMap<Table, Rows> = BTreeMap::new();
        fold.rows().iter().for_each(|row| write(&mut told, row));
        for table in Table::ALL {
            let should = told.remove(&table).unwrap_or_default();
            wrong.extend(differences(table, &should, &book.rows(table)?));
        }
    }
    Ok(wrong)
}

fn differences(table: Table, should: &Rows, is: &Rows) -> Vec<String> {
    let keys: BTreeSet<_> = should.keys().chain(is.keys()).collect();
    let differ = keys.into_iter().filter(|key| should.get(*key) != is.get(*key)).count();
    let name = table.name();
    match differ {
        0 => Vec::new(),
        1 => vec![format!("table {name}: 1 row differs from the log: rebuild the tables")],
        _ => vec![format!("table {name}: {differ} rows differ from the log: rebuild the tables")],
    }
}

/// Writes a row into tables that are held in memory.
pub(crate) fn write(tables: &mut BTreeMap<Table, Rows>, row: &Row) {
    let rows = tables.entry(row.table()).or_default();
    let columns = row.columns().into_iter().map(|(name, cell)| (name.to_owned(), cell));
    let key = row.key();
    match row.write() {
        Write::Put => {
            rows.insert(key, columns.collect());
        }
        Write::Insert => {
            rows.entry(key).or_insert_with(|| columns.collect());
        }
        Write::Update => {
            if let Some(there) = rows.get_mut(&key) {
                there.extend(columns);
            }
        }
    }
}
