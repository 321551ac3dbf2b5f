//! Statistics over all runs. Counting a run reads its whole log, so a run is counted again only when its log has grown.

use std::collections::{BTreeMap, BTreeSet};

use signoff_core::group::RunStage;
use signoff_core::ids::{RunId, TaskId};
use signoff_store::Store;
use signoff_term::show::RunHistory;
use signoff_term::stats::{Filter, StatsCollector, StatsReport};

use super::{StoreId, WebBackend};
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
    /// Kept while the run goes on, to continue from there. A finished run that goes on after all is read again.
    history: Option<RunHistory>,
    stats: StatsCollector,
}

impl WebBackend {
    pub(super) fn stats_report(&self) -> Result<StatsReport> {
        // Concurrent requests wait for the lock and share the result.
        let mut cache = self.stats.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut stats = StatsCollector::new(Filter::default());
        match ReadOnlyProject::find()? {
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
                counted.update(project, row.id, &self.voided)?;
            }
        }
        Ok(())
    }
}

impl CountedRun {
    /// Reads the facts recorded since the last update.
    fn update(&mut self, project: &ReadOnlyProject, run: RunId, voided: &BTreeSet<TaskId>) -> Result<()> {
        let mut history = self.history.take().unwrap_or_default();
        queries::for_each_chunk(&*project.store, run, history.state.seq, |part| history.extend_attempts(&part))?;
        self.stats = StatsCollector::new(Filter::default()).with_voided(voided.clone());
        self.stats.add_run(&history);
        self.last_seq = history.state.seq;
        let is_over = matches!(history.state.stage(), RunStage::Done(_));
        self.history = Some(history).filter(|_| !is_over);
        Ok(())
    }
}
