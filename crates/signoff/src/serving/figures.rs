//! What all runs tell, counted anew no more often than people read numbers.

use jiff::{SignedDuration, Timestamp};
use signoff_core::ids::RunId;
use signoff_serve::page::{Cost, ReviewerFigures, RoleFigures, StatsPage};
use signoff_serve::web::Desk as _;
use signoff_store::Store;
use signoff_term::stats::{ByReviewer, ByRole, Filter, Stats, StatsReport, StopReason};

use super::Serving;
use crate::desk::Desk;
use crate::door;
use crate::failure::Failure;
use crate::look;

/// All logs are read for it.
const STALE: SignedDuration = SignedDuration::from_secs(5);

/// What was counted last.
#[derive(Default)]
pub struct Figures(Option<(Timestamp, StatsPage)>);

impl Serving {
    pub(super) fn seen_figures(&self) -> Result<StatsPage, Failure> {
        // Whoever comes while somebody counts waits for what that gives.
        let mut figures = self.figures.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let now = door::now();
        match &figures.0 {
            Some((at, page)) if now.duration_since(*at) < STALE => Ok(page.clone()),
            Some(_) | None => {
                let page = page(self.project(), &counted()?);
                figures.0 = Some((door::now(), page.clone()));
                Ok(page)
            }
        }
    }
}

fn counted() -> Result<StatsReport, Failure> {
    let mut stats = Stats::new(Filter::default());
    if let Some(desk) = Desk::find()? {
        stats = stats.without(look::all_voided(&desk)?);
        let last = desk.store.last_run()?.map_or(0, |run| run.id.0);
        for run in (1..=last).map(RunId) {
            if desk.store.run(run)?.is_some() {
                stats.take(&desk.store.log(run)?);
            }
        }
    }
    Ok(stats.report())
}

fn page(project: String, report: &StatsReport) -> StatsPage {
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
        raised: one.raised,
        upheld: one.upheld,
        refuted: one.refuted,
        open: one.open + one.pending,
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
