//! Statistics over all runs. Counting a run reads its whole log, so a run is counted again only when its log has grown.

use std::collections::{BTreeMap, BTreeSet};

use signoff_core::ids::{RunId, TaskId};
use signoff_serve::page::{Cost, ReviewerFigures, RoleFigures, StatsPage};
use signoff_serve::web::Backend as _;
use signoff_store::Store;
use signoff_term::show::RunHistory;
use signoff_term::stats::{ByReviewer, ByRole, Filter, StatsCollector, StatsReport, StopReason};

use super::WebBackend;
use super::store_id::StoreId;
use crate::error::CliError;
use crate::project::ReadOnlyProject;
use crate::queries;

/// Cached statistics: for each run, the last counted fact and the numbers.
#[derive(Default)]
pub struct StatsCache {
    /// The store they were counted from.
    store: Option<StoreId>,
    /// The tasks whose approval was void at that time.
    voided: BTreeSet<TaskId>,
    counted: BTreeMap<RunId, (u64, StatsCollector)>,
}

impl WebBackend {
    pub(super) fn stats_page(&self) -> Result<StatsPage, CliError> {
        // Concurrent requests wait for the lock and share the result.
        let mut figures = self.stats.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut stats = StatsCollector::new(Filter::default());
        match ReadOnlyProject::find()? {
            Some(project) => {
                figures.update(&project)?;
                figures.counted.values().for_each(|(_, one)| stats.merge(one));
            }
            None => *figures = StatsCache::default(),
        }
        Ok(page_of(self.project(), &stats.report()))
    }
}

impl StatsCache {
    fn update(&mut self, project: &ReadOnlyProject) -> Result<(), CliError> {
        let (of, voided) =
            (StoreId::of_directory(project.layout().root()), queries::tasks_with_void_approval(project)?);
        if self.store != of || self.voided != voided {
            *self = Self { store: of, voided, ..Self::default() };
        }
        for row in project.store.runs()? {
            let last = project.store.last_seq(row.id)?;
            if self.counted.get(&row.id).is_none_or(|(seq, _)| *seq != last) {
                self.counted.insert(row.id, (last, count_run(project, row.id, &self.voided)?));
            }
        }
        Ok(())
    }
}

fn count_run(project: &ReadOnlyProject, run: RunId, voided: &BTreeSet<TaskId>) -> Result<StatsCollector, CliError> {
    let mut stats = StatsCollector::new(Filter::default()).with_voided(voided.clone());
    let mut folded = RunHistory::default();
    queries::for_each_chunk(&*project.store, run, |part| folded.extend_attempts(part))?;
    stats.add_run(&folded);
    Ok(stats)
}

fn page_of(project: String, report: &StatsReport) -> StatsPage {
    let is_estimated = report.cost.is_estimated;
    StatsPage {
        project,
        reviewers: report.reviewers.iter().map(reviewer).collect(),
        roles: report.roles.iter().map(role).collect(),
        cycles: report.cycles_to_approval.distribution.iter().map(|one| (one.cycles, one.tasks)).collect(),
        stops: report.stop_reasons.iter().map(stop).collect(),
        approved: report.tasks.approved,
        cost_per_approved: report.cost.per_approved_usd.map(|usd| Cost { usd, is_estimated }),
    }
}

fn stop(stop: &StopReason) -> (String, u64) {
    (stop.reason.clone().unwrap_or_else(|| stop.outcome.clone()), stop.tasks)
}

fn reviewer(one: &ByReviewer) -> ReviewerFigures {
    ReviewerFigures {
        name: one.reviewer.clone(),
        upheld: one.upheld,
        refuted: one.refuted,
        out_of_scope: one.out_of_scope,
        open: one.open,
        pending: one.pending,
        cost: Cost { usd: one.cost_usd, is_estimated: one.cost_is_estimated },
    }
}

fn role(one: &ByRole) -> RoleFigures {
    RoleFigures {
        role: one.role.clone(),
        attempts: one.attempts,
        duration_ms: one.duration_ms,
        cost: Cost { usd: one.cost_usd, is_estimated: one.cost_is_estimated },
    }
}
