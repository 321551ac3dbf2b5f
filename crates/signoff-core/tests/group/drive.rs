//! A run with real loops: both machines, and the log they leave.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use signoff_core::group::{self, Run, RunEffect, RunEvent, RunPolicy, RunStage, Standing};
use signoff_core::ids::{LoopId, RunId, TaskId};
use signoff_core::machine::{self, Event, Loop, Outcome, Policy};
use signoff_core::review::Finding;
use signoff_core::wire::{Fact, LoopFact, Recorded, RunFact};

use crate::{say, world};

pub struct Drive {
    pub policy: Policy,
    pub run_policy: RunPolicy,
    pub run: Run,
    pub loops: BTreeMap<LoopId, Loop>,
    pub log: Vec<Recorded>,
    /// How often people still try again.
    pub patience: u32,
}

/// Something that can happen next.
#[derive(Debug, Clone)]
pub enum Next {
    Run(RunEvent),
    Loop(LoopId, Event),
    /// A loop's checkpoint review is in; the run may hear of it before the loop does.
    Checkpoint(LoopId, Told),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    LoopFirst,
    RunFirst,
}

impl Drive {
    pub fn new(policy: Policy, jobs: usize) -> Self {
        let run_policy = RunPolicy { before: true, ..RunPolicy::of(&policy.workflow, jobs) };
        let (run, loops, log) = (Run::default(), BTreeMap::new(), Vec::new());
        let mut this = Self { policy, run_policy, run, loops, log, patience: 3 };
        let workflow = Box::new(this.policy.clone());
        this.record(Fact::Run(RunFact::Opened { policy: this.run_policy.clone(), workflow }));
        this
    }

    fn record(&mut self, fact: Fact) {
        let seq = self.log.len() as u64 + 1;
        let at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seq as i64);
        self.log.push(Recorded { run: RunId(1), seq, at, fact });
    }

    pub fn is_over(&self) -> bool {
        self.run.is_done() && self.loops.values().all(Loop::is_done)
    }

    /// Everything that the wishes of both machines can lead to.
    pub fn nexts(&self, groups: &[Vec<LoopId>]) -> Vec<Next> {
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
        all.extend(group::outstanding(&self.run).into_iter().flat_map(|wish| self.granted(wish)));
        for (loop_id, this) in &self.loops {
            let answers = world::answers(this, &self.policy).into_iter();
            all.extend(answers.map(|event| Next::Loop(loop_id.clone(), event)));
        }
        all
    }

    fn granted(&self, wish: RunEffect) -> Vec<Next> {
        let one = |loop_id: LoopId, event| vec![Next::Loop(loop_id, event)];
        let by = || "ann".to_owned();
        match wish {
            RunEffect::Start { loop_id } => one(loop_id, Event::Started { head: say::head(0) }),
            RunEffect::GrantLanding { loop_id } if self.run.loops[&loop_id] == Standing::Ready => {
                one(loop_id, Event::LandingGranted)
            }
            RunEffect::CancelLoop { loop_id } => one(loop_id, Event::Cancelled { by: by() }),
            RunEffect::ReviewCheckpoint { loops } => {
                let out = loops.into_iter().filter(|loop_id| self.run.checkpoint.waits_for(loop_id));
                out.flat_map(|loop_id| self.looked_at(loop_id)).collect()
            }
            RunEffect::Block { by: blocking } => {
                let event = if self.patience > 0 {
                    Event::PersonRetried { by: by() }
                } else {
                    Event::Cancelled { by: by() }
                };
                blocking.into_iter().flat_map(|loop_id| one(loop_id, event.clone())).collect()
            }
            RunEffect::GrantLanding { .. }
            | RunEffect::Prepare
            | RunEffect::Pick { .. }
            | RunEffect::ReviewWhole
            | RunEffect::LandWhole
            | RunEffect::CloseTask { .. }
            | RunEffect::Finish(_) => Vec::new(),
        }
    }

    /// A checkpoint review begins, then it ends.
    fn looked_at(&self, loop_id: LoopId) -> Vec<Next> {
        if self.loops[&loop_id].checkpoint.is_none() {
            return vec![Next::Loop(loop_id, Event::CheckpointBegan { number: 1 })];
        }
        [Told::LoopFirst, Told::RunFirst].map(|told| Next::Checkpoint(loop_id.clone(), told)).to_vec()
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
            Next::Checkpoint(loop_id, told) => {
                let findings = vec![Finding { sources: vec!["general".into()], ..say::finding("w.rs") }];
                let reviewed = RunEvent::CheckpointReviewed { loop_id: loop_id.clone() };
                if told == Told::RunFirst {
                    self.run_event(reviewed.clone());
                }
                self.loop_event(&loop_id, Event::CheckpointEnded { findings, number: Some(1) });
                if told == Told::LoopFirst {
                    self.run_event(reviewed);
                }
            }
        }
    }

    fn run_event(&mut self, event: RunEvent) {
        if let RunEvent::GroupsPlanned { groups } = &event {
            for (number, loop_id) in (1..).zip(groups.iter().flatten()) {
                self.loops.insert(loop_id.clone(), Loop::default());
                let (task, title, branch) =
                    (TaskId(number), format!("task {loop_id}"), format!("signoff/{loop_id}"));
                self.record(Fact::Loop(loop_id.clone(), LoopFact::Added { task, title, branch }));
            }
        }
        self.record(Fact::Run(RunFact::Moved(event.clone())));
        self.run = group::step(std::mem::take(&mut self.run), event, &self.run_policy).0;
    }

    fn loop_event(&mut self, loop_id: &LoopId, event: Event) {
        self.record(Fact::Loop(loop_id.clone(), LoopFact::Moved(event.clone())));
        let this = self.loops.remove(loop_id).unwrap_or_default();
        let next = machine::step(this, event, &self.policy).0;
        let standing = Standing::of(&next);
        self.loops.insert(loop_id.clone(), next);
        if self.run.loops.get(loop_id) != Some(&standing) {
            self.run_event(RunEvent::LoopMoved { loop_id: loop_id.clone(), standing });
        }
    }
}
