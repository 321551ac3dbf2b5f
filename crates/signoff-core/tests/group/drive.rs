//! Drives a run and its loops with both machines, and records their log.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use signoff_core::group::{self, LoopStatus, Run, RunEffect, RunEvent, RunPolicy, RunStage};
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::{self, Event, Loop, Outcome, Policy};
use signoff_core::review::Finding;
use signoff_core::wire::{Fact, LoopFact, RecordedFact, RunFact};

use crate::group::{builders, loop_events};

pub struct Drive {
    pub policy: Policy,
    pub run_policy: RunPolicy,
    pub run: Run,
    pub loops: BTreeMap<LoopId, Loop>,
    pub log: Vec<RecordedFact>,
    /// Number of retries by people that are left.
    pub patience: u32,
}

/// A possible next step.
#[derive(Debug, Clone)]
pub enum Next {
    Run(RunEvent),
    Loop(LoopId, Event),
    /// A loop's checkpoint review has ended. The run may receive its event before or after the loop.
    Checkpoint(LoopId, EventOrder),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventOrder {
    LoopFirst,
    RunFirst,
}

impl Drive {
    pub fn new(policy: Policy, jobs: usize) -> Self {
        let run_policy = RunPolicy { has_planning: true, ..RunPolicy::new(&policy.workflow, jobs) };
        let (run, loops, log) = (Run::default(), BTreeMap::new(), Vec::new());
        let mut drive = Self { policy, run_policy, run, loops, log, patience: 3 };
        let workflow = Box::new(drive.policy.clone());
        drive.record(Fact::Run(RunFact::Opened { policy: drive.run_policy.clone(), workflow }));
        drive
    }

    fn record(&mut self, fact: Fact) {
        let seq = self.log.len() as u64 + 1;
        let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seq as i64);
        self.log.push(RecordedFact { run: RunId(1), seq, at, fact });
    }

    pub fn is_over(&self) -> bool {
        self.run.is_done() && self.loops.values().all(Loop::is_done)
    }

    /// All steps that the outstanding effects of both machines allow.
    pub fn next_steps(&self, groups: &[Vec<LoopId>]) -> Vec<Next> {
        let mut all = match &self.run.stage {
            RunStage::Queued => vec![Next::Run(RunEvent::Started)],
            RunStage::Preparing => vec![Next::Run(RunEvent::GroupsPlanned { groups: groups.to_vec() })],
            RunStage::Reviewing => {
                let outcome = Outcome::Approved { commit: "m".into() };
                vec![Next::Run(RunEvent::FinalReviewEnded { outcome })]
            }
            RunStage::Landing(_) => vec![Next::Run(RunEvent::Landed)],
            RunStage::Working { .. } | RunStage::Blocked { .. } | RunStage::Done(_) => Vec::new(),
        };
        all.extend(group::outstanding(&self.run).into_iter().flat_map(|effect| self.granted(effect)));
        for (loop_id, machine) in &self.loops {
            let answers = loop_events::answers(machine, &self.policy).into_iter();
            all.extend(answers.map(|event| Next::Loop(loop_id.clone(), event)));
        }
        all
    }

    fn granted(&self, effect: RunEffect) -> Vec<Next> {
        let one = |loop_id: LoopId, event| vec![Next::Loop(loop_id, event)];
        let by = || "ann".to_owned();
        match effect {
            RunEffect::Start { loop_id } => one(loop_id, Event::Started { head: builders::head(0) }),
            RunEffect::GrantLanding { loop_id } if self.run.loops[&loop_id] == LoopStatus::Ready => {
                one(loop_id, Event::LandingGranted)
            }
            RunEffect::CancelLoop { loop_id } => one(loop_id, Event::Cancelled { by: by() }),
            RunEffect::ReviewCheckpoint { loops } => {
                let out = loops.into_iter().filter(|loop_id| self.run.checkpoint.waits_for(loop_id));
                out.flat_map(|loop_id| self.checkpoint_steps(loop_id)).collect()
            }
            RunEffect::Block { by: blocking } => {
                let event =
                    if self.patience > 0 { Event::PersonRetried { by: by() } } else { Event::Cancelled { by: by() } };
                blocking.into_iter().flat_map(|loop_id| one(loop_id, event.clone())).collect()
            }
            RunEffect::GrantLanding { .. }
            | RunEffect::Prepare
            | RunEffect::Pick { .. }
            | RunEffect::FinalReview
            | RunEffect::LandRun
            | RunEffect::CloseTask { .. }
            | RunEffect::Finish(_) => Vec::new(),
        }
    }

    /// The next step of a checkpoint review: it begins, then it ends.
    fn checkpoint_steps(&self, loop_id: LoopId) -> Vec<Next> {
        if self.loops[&loop_id].checkpoint.is_none() {
            return vec![Next::Loop(loop_id, Event::CheckpointBegan { number: 1 })];
        }
        [EventOrder::LoopFirst, EventOrder::RunFirst].map(|order| Next::Checkpoint(loop_id.clone(), order)).to_vec()
    }

    pub fn happen(&mut self, next: Next) {
        match next {
            Next::Run(event) => self.run_event(event),
            Next::Loop(loop_id, event) => {
                if matches!(event, Event::PersonRetried { .. }) {
                    self.patience -= 1;
                }
                self.loop_event(&loop_id, event);
            }
            Next::Checkpoint(loop_id, order) => {
                let findings = vec![Finding { sources: vec!["general".into()], ..builders::finding("w.rs") }];
                let reviewed = RunEvent::CheckpointReviewed { loop_id: loop_id.clone() };
                if order == EventOrder::RunFirst {
                    self.run_event(reviewed.clone());
                }
                self.loop_event(&loop_id, Event::CheckpointEnded { findings, number: Some(1) });
                if order == EventOrder::LoopFirst {
                    self.run_event(reviewed);
                }
            }
        }
    }

    fn run_event(&mut self, event: RunEvent) {
        if let RunEvent::GroupsPlanned { groups } = &event {
            for (number, loop_id) in (1..).zip(groups.iter().flatten()) {
                self.loops.insert(loop_id.clone(), Loop::default());
                let (task, title, branch) = (TaskId(number), format!("task {loop_id}"), format!("signoff/{loop_id}"));
                self.record(Fact::Loop(loop_id.clone(), LoopFact::Added { task, title, branch }));
            }
        }
        self.record(Fact::Run(RunFact::Transitioned(event.clone())));
        self.run = group::step(std::mem::take(&mut self.run), event, &self.run_policy).0;
    }

    fn loop_event(&mut self, loop_id: &LoopId, event: Event) {
        self.record(Fact::Loop(loop_id.clone(), LoopFact::Transitioned(event.clone())));
        let machine = self.loops.remove(loop_id).unwrap_or_default();
        let next = machine::step(machine, event, &self.policy).0;
        let status = LoopStatus::for_loop(&next);
        self.loops.insert(loop_id.clone(), next);
        if self.run.loops.get(loop_id) != Some(&status) {
            self.run_event(RunEvent::LoopStatusChanged { loop_id: loop_id.clone(), status });
        }
    }
}
