//! `[presets.NAME.phase.PHASE]` and `[presets.NAME.tools]`: who does a phase, and how.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::layer::Source;
use super::slot::{Slot, check_name, named_schema, row, table};
use super::value::{Text, Whole};
use super::{ConfigError, Origin, Row, Setting};
use crate::policy::Span;
use crate::workflow::problem::nearest;
use crate::workflow::table::Checked;
use crate::workflow::value::Value as _;
use crate::workflow::{Phase, PhaseKind, Workflow};

/// Whatever the agent uses when it is not told.
const INHERIT: &str = "inherit";

/// No model at all: the project's commands.
const NONE: &str = "none";

/// How many look into a phase where it is only said that several do.
const RESEARCHERS: u32 = 3;

table! {
    /// `[presets.NAME.phase.PHASE]`.
    PhaseSettings, "a phase" {
        /// The agent that does it; of a gate, its reviewers.
        agent: Option<Setting<Text>> = None,
        /// The tool of another program that does it; `tools` says which agent stands for it.
        tool: Option<Setting<Text>> = None,
        /// The model of that agent; "inherit" is its own, "none" that of a check, which needs no model.
        model: Option<Setting<Text>> = None,
        /// The model of the helpers that look into it first; "inherit" is that of the agent.
        parallel_model: Option<Setting<Text>> = None,
        /// `true`: three helpers look into it first, all at once; `false`: nobody does.
        parallel: Option<Setting<bool>> = None,
        /// How many helpers look into it first.
        researchers: Option<Setting<Whole<0, 32>>> = None,
        /// How long one start of its agent may take.
        timeout: Option<Setting<Span>> = None,
    }
}

impl PhaseSettings {
    /// Lays a later layer over this one. Of two keys that say the same the later one is left.
    fn lay_over(&mut self, later: &Self) {
        if later.agent.is_some() || later.tool.is_some() {
            (self.agent, self.tool) = (later.agent.clone(), later.tool.clone());
        }
        if later.parallel.is_some() || later.researchers.is_some() {
            (self.parallel, self.researchers) = (later.parallel.clone(), later.researchers.clone());
        }
        self.at = later.at.clone();
        self.model = later.model.clone().or(self.model.take());
        self.parallel_model = later.parallel_model.clone().or(self.parallel_model.take());
        self.timeout = later.timeout.clone().or(self.timeout.take());
    }

    /// One file says one of two things.
    fn check_rivals(&self, source: &Source<'_>) -> Checked<()> {
        let rivals = [
            ("tool", self.agent.is_some() && self.tool.is_some(), "agent"),
            ("researchers", self.parallel.is_some() && self.researchers.is_some(), "parallel"),
        ];
        match rivals.into_iter().find(|(_, both, _)| *both) {
            Some((key, _, other)) => {
                Err(source.table.error(key, format!("write `{other}` or `{key}`, not both")))
            }
            None => Ok(()),
        }
    }

    fn change(&self, phase: &mut Phase) {
        if self.agent.is_some() || self.tool.is_some() {
            (phase.agent, phase.tool) = (words(&self.agent), words(&self.tool));
        }
        if self.model.is_some() {
            phase.model = words(&self.model).filter(|model| model != INHERIT && model != NONE);
        }
        if self.parallel_model.is_some() {
            phase.parallel_model = words(&self.parallel_model).filter(|model| model != INHERIT);
        }
        if let PhaseKind::Agent { timeout, researchers, .. } = &mut phase.kind {
            *researchers = self.team().unwrap_or(*researchers);
            *timeout = self.timeout.as_ref().map(|set| set.value).or(*timeout);
        }
    }

    fn team(&self) -> Option<u32> {
        let several = |set: &Setting<bool>| if set.value { RESEARCHERS } else { 0 };
        self.researchers.as_ref().map(|set| set.value.small()).or_else(|| self.parallel.as_ref().map(several))
    }

    /// Whether such a phase can have what is said.
    fn check(&self, phase: &Phase) -> Result<(), ConfigError> {
        let wrong = |(key, origin): (&'static str, &Origin)| Some(origin.error(self.refusal(key, phase)?));
        self.written().into_iter().find_map(wrong).map_or(Ok(()), Err)
    }

    /// Why a phase cannot have a key.
    fn refusal(&self, key: &str, phase: &Phase) -> Option<String> {
        let none = key == "model" && self.model.as_ref().is_some_and(|model| model.value.as_str() == NONE);
        let name = &phase.name;
        match &phase.kind {
            PhaseKind::Agent { .. } | PhaseKind::Gate(_) if none => Some(format!(
                "`model` is \"none\", but `{name}` is no check: expected the name of a model or \"inherit\""
            )),
            PhaseKind::Gate(_) if key == "timeout" => Some(format!(
                "`{name}` is a gate and has no `timeout`: write `review_timeout` in its gate's table"
            )),
            PhaseKind::Gate(_) if OF_WORK.contains(&key) => {
                Some(format!("`{name}` is a gate and has no `{key}`: expected it only in agent phases"))
            }
            PhaseKind::Check(_) if !none => Some(format!(
                "`{name}` is a check, which the project's commands judge, no agent: expected no such `{key}`"
            )),
            PhaseKind::Agent { .. } | PhaseKind::Gate(_) | PhaseKind::Check(_) => None,
        }
    }

    /// Every key that says something, with its place.
    pub fn written(&self) -> Vec<(&'static str, &Origin)> {
        let texts = [
            ("agent", &self.agent),
            ("tool", &self.tool),
            ("model", &self.model),
            ("parallel_model", &self.parallel_model),
        ];
        let texts = texts.into_iter().filter_map(|(key, set)| Some((key, &set.as_ref()?.origin)));
        let parallel = self.parallel.as_ref().map(|set| ("parallel", &set.origin));
        let researchers = self.researchers.as_ref().map(|set| ("researchers", &set.origin));
        let timeout = self.timeout.as_ref().map(|set| ("timeout", &set.origin));
        texts.chain(parallel).chain(researchers).chain(timeout).collect()
    }
}

/// The key of a phase that says the same in another way.
pub(super) fn other_key(key: &str) -> Option<&'static str> {
    match key {
        "agent" => Some("tool"),
        "tool" => Some("agent"),
        "parallel" => Some("researchers"),
        "researchers" => Some("parallel"),
        _ => None,
    }
}

/// Keys that only a phase has which does work.
const OF_WORK: [&str; 4] = ["parallel_model", "parallel", "researchers", "timeout"];

fn words(setting: &Option<Setting<Text>>) -> Option<String> {
    setting.as_ref().map(|set| set.value.as_str().to_owned())
}

/// What the layers say about phases, in their order, under the names they use: a phase has a number and a name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct PhaseTables(Vec<Named>);

/// What one layer says about one phase.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    /// Which of the layers it is that say anything.
    layer: usize,
    word: String,
    settings: PhaseSettings,
}

impl PhaseTables {
    /// What is said about one phase, whatever it was called.
    pub fn about(&self, workflow: &Workflow, phase: &Phase) -> PhaseSettings {
        let mut all = PhaseSettings::default();
        for said in self.0.iter().filter(|said| workflow.means(&said.word, phase)) {
            all.lay_over(&said.settings);
        }
        all
    }

    /// Calls every phase as the last layer does that speaks of it.
    pub fn call_alike(&mut self, workflow: &Workflow) {
        for index in 0..self.0.len() {
            let Some(word) = self.0.get(index).map(|said| said.word.clone()) else { continue };
            let last = self.0.iter().rev().find(|said| are_same(workflow, &said.word, &word));
            let word = last.map_or(word, |said| said.word.clone());
            self.0.iter_mut().skip(index).take(1).for_each(|said| said.word.clone_from(&word));
        }
    }

    /// One file calls a phase by its number or by its name.
    fn check_words(&self, workflow: &Workflow) -> Result<(), ConfigError> {
        for (index, said) in self.0.iter().enumerate() {
            let before = self.0.iter().take(index);
            let again = |other: &&Named| {
                other.layer == said.layer
                    && other.word != said.word
                    && are_same(workflow, &other.word, &said.word)
            };
            if let Some(other) = before.rev().find(again) {
                let place = said.settings.at.clone().unwrap_or(Origin::Default);
                return Err(place.error(format!(
                    "`{}` and `{}` are the same phase: write all of it in [presets.{}.phase.{}]",
                    other.word, said.word, workflow.name, other.word
                )));
            }
        }
        Ok(())
    }

    /// Lays what is said over the phases of a workflow.
    pub fn lay_over(&self, workflow: &mut Workflow) {
        let known = workflow.clone();
        let phases = workflow.before.iter_mut().chain(&mut workflow.phases).chain(&mut workflow.after);
        phases.for_each(|phase| self.about(&known, phase).change(phase));
    }

    /// Whether there are such phases, and whether they can have what is said.
    pub fn check(&self, workflow: &Workflow) -> Result<(), ConfigError> {
        self.check_words(workflow)?;
        for Named { word, settings, .. } in &self.0 {
            let phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
            let meant: Vec<_> = phases.filter(|phase| workflow.means(word, phase)).collect();
            if meant.is_empty() {
                let place = settings.at.clone().unwrap_or(Origin::Default);
                return Err(place.error(no_such_phase(workflow, word)));
            }
            meant.into_iter().try_for_each(|phase| settings.check(phase))?;
        }
        Ok(())
    }

    /// The agents that are named.
    pub fn agents(&self) -> impl Iterator<Item = &Setting<Text>> {
        self.0.iter().filter_map(|said| said.settings.agent.as_ref())
    }
}

/// Whether two words mean the same phase.
pub(super) fn are_same(workflow: &Workflow, word: &str, other: &str) -> bool {
    let mut phases = workflow.before.iter().chain(&workflow.phases).chain(&workflow.after);
    word == other || phases.any(|phase| workflow.means(word, phase) && workflow.means(other, phase))
}

fn no_such_phase(workflow: &Workflow, word: &str) -> String {
    let known: Vec<_> = workflow.phases.iter().map(|phase| phase.name.as_str()).collect();
    let numbered = |(index, phase): (usize, &Phase)| match phase.number {
        Some(number) => format!("{number} {}", phase.name),
        None if workflow.phases.iter().any(|other| other.number.is_some()) => phase.name.clone(),
        None => format!("{} {}", index + 1, phase.name),
    };
    let is_number = word.parse::<u32>().is_ok();
    let expected = match nearest(word, &known).filter(|_| !is_number) {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => {
            let all: Vec<_> = workflow.phases.iter().enumerate().map(numbered).collect();
            format!("expected one of {}", all.join(", "))
        }
    };
    format!("workflow `{}` has no phase `{word}`: {expected}", workflow.name)
}

impl Slot for PhaseTables {
    fn lay(&mut self, key: &str, source: &Source<'_>) -> Checked<()> {
        let Some(tables) = source.inside(key)? else { return Ok(()) };
        let layer = self.0.last().map_or(0, |last| last.layer + 1);
        for name in tables.table.names() {
            check_name(name, &tables)?;
            let mut settings = PhaseSettings::default();
            settings.lay(name, &tables)?;
            if let Some(table) = tables.inside(name)? {
                settings.check_rivals(&table)?;
            }
            self.0.push(Named { layer, word: name.to_owned(), settings });
        }
        Ok(())
    }

    fn rows(&self, key: &str, rows: &mut Vec<Row>) {
        let mut merged: BTreeMap<&str, PhaseSettings> = BTreeMap::new();
        for Named { word, settings, .. } in &self.0 {
            merged.entry(word).or_default().lay_over(settings);
        }
        for (word, settings) in merged {
            settings.rows(&format!("{key}.{word}"), rows);
        }
    }

    fn schema(key: &str) -> Json {
        named_schema(PhaseSettings::schema(key))
    }
}

/// `[presets.NAME.tools]`: the agents that stand for the tools of other programs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Tools(BTreeMap<String, Setting<Text>>);

impl Tools {
    pub fn get(&self, tool: &str) -> Option<&Setting<Text>> {
        self.0.get(tool)
    }

    pub fn agents(&self) -> impl Iterator<Item = &Setting<Text>> {
        self.0.values()
    }
}

impl Slot for Tools {
    fn lay(&mut self, key: &str, source: &Source<'_>) -> Checked<()> {
        let Some(table) = source.inside(key)? else { return Ok(()) };
        for name in table.table.names() {
            let mut agent: Option<Setting<Text>> = None;
            agent.lay(name, &table)?;
            self.0.extend(agent.map(|agent| (name.to_owned(), agent)));
        }
        Ok(())
    }

    fn rows(&self, key: &str, rows: &mut Vec<Row>) {
        for (name, agent) in &self.0 {
            rows.push(row(&format!("{key}.{name}"), &agent.value, &agent.origin));
        }
    }

    fn schema(key: &str) -> Json {
        json!({ "type": "object", "additionalProperties": Text::schema(key) })
    }
}
