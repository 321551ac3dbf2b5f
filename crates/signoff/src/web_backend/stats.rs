//! Statistics over all runs. A run is counted again only when its log has grown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use signoff_core::ids::{RunId, TaskId};
use signoff_store::{Store, StoredRun};
use signoff_term::show::RunHistory;
use signoff_term::stats::{Filter, StatsCollector, StatsReport};

use super::{StoreId, WebBackend, find_project};
use crate::{ReadOnlyProject, Result, queries};

/// Cached statistics of each run.
#[derive(Default)]
pub struct StatsCache {
    /// The store they were counted from.
    store: Option<StoreId>,
    /// The tasks whose approval was void at that time.
    voided: BTreeSet<TaskId>,
    counted: BTreeMap<RunId, CountedRun>,
}

/// The statistics of one run, up to a fact of its log.
#[derive(Default)]
struct CountedRun {
    last_seq: u64,
    stats: StatsCollector,
}

impl WebBackend {
    pub(super) fn stats_report(&self) -> Result<StatsReport> {
        // Concurrent requests wait for the lock and share the result.
        let mut cache = self.stats.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut stats = StatsCollector::new(Filter::default());
        match find_project(&self.store)? {
            Some(project) => {
                cache.update(&project)?;
                cache.counted.values().for_each(|run| stats.merge(&run.stats));
            }
            None => *cache = StatsCache::default(),
        }
        Ok(stats.report())
    }
}

impl StatsCache {
    fn update(&mut self, project: &ReadOnlyProject) -> Result<()> {
        let (store_id, voided) =
            (StoreId::from_directory(project.layout().root()), queries::tasks_with_void_approval(project)?);
        if self.store != store_id || self.voided != voided {
            *self = Self { store: store_id, voided, ..Self::default() };
        }
        for row in project.store.runs()? {
            let last = project.store.last_seq(row.id)?;
            let counted = self.counted.entry(row.id).or_default();
            if counted.last_seq != last {
                counted.update(project, &row, &self.voided)?;
            }
        }
        Ok(())
    }
}

impl CountedRun {
    /// Counts a run. The log of an ended run without a history is read for this only, without building one.
    fn update(&mut self, project: &ReadOnlyProject, row: &StoredRun, voided: &BTreeSet<TaskId>) -> Result<()> {
        let run = row.id;
        let known =
            project.histories.as_ref().filter(|histories| row.ended_at.is_none() || histories.cached(run).is_some());
        let history = match known {
            Some(histories) => histories.get(&*project.store, run)?,
            None => {
                let mut history = RunHistory::default();
                queries::for_each_chunk(&*project.store, run, 0, |part| history.extend_attempts(&part))?;
                Arc::new(history)
            }
        };
        self.stats = StatsCollector::new(Filter::default()).with_voided(voided.clone());
        self.stats.add_run(&history);
        self.last_seq = history.state.seq;
        Ok(())
    }
}
