//! What all runs tell. Counting a run takes reading all of its log, so each is counted anew only when its log has grown.

use std::collections::{BTreeMap, BTreeSet};

use signoff_core::ids::{RunId, TaskId};
use signoff_serve::page::{Cost, ReviewerFigures, RoleFigures, StatsPage};
use signoff_serve::web::Desk as _;
use signoff_store::Store;
use signoff_term::show::Folded;
use signoff_term::stats::{ByReviewer, ByRole, Filter, Stats, StatsReport, StopReason};

use super::Serving;
use super::same::Same;
use crate::desk::Desk;
use crate::failure::Failure;
use crate::look;

/// What was counted last: of each run its last fact then, and its numbers.
#[derive(Default)]
pub struct Figures {
    /// Of which store.
    of: Option<Same>,
    /// The tasks whose approval was void then.
    voided: BTreeSet<TaskId>,
    counted: BTreeMap<RunId, (u64, Stats)>,
}

impl Serving {
    pub(super) fn seen_figures(&self) -> Result<StatsPage, Failure> {
        // Whoever comes while somebody counts waits for what that gives.
        let mut figures = self.figures.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut stats = Stats::new(Filter::default());
        match Desk::find()? {
            Some(desk) => {
                figures.bring_up_to_date(&desk)?;
                figures.counted.values().for_each(|(_, one)| stats.add(one));
            }
            None => *figures = Figures::default(),
        }
        Ok(page(self.project(), &stats.report()))
    }
}

impl Figures {
    fn bring_up_to_date(&mut self, desk: &Desk) -> Result<(), Failure> {
        let (of, voided) = (Same::of(desk.layout().root()), look::all_voided(desk)?);
        if self.of != of || self.voided != voided {
            *self = Self { of, voided, ..Self::default() };
        }
        for row in desk.store.runs()? {
            let last = desk.store.last_seq(row.id)?;
            if self.counted.get(&row.id).is_none_or(|(seq, _)| *seq != last) {
                self.counted.insert(row.id, (last, counted(desk, row.id, &self.voided)?));
            }
        }
        Ok(())
    }
}

fn counted(desk: &Desk, run: RunId, voided: &BTreeSet<TaskId>) -> Result<Stats, Failure> {
    let mut stats = Stats::new(Filter::default()).without(voided.clone());
    let mut folded = Folded::default();
    look::in_parts(&*desk.store, run, |part| folded.go_on_counting(part))?;
    stats.take_run(&folded);
    Ok(stats)
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
