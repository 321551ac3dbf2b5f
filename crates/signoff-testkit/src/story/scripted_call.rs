//! One call of a scripted agent: which rule applies, and what it says and changes.

use crate::agent_script::ScriptCondition;
use signoff_core::machine::JobKind;
use signoff_core::review::Usage;
use signoff_engine::attempt_spec::AttemptSpec;
use signoff_engine::process::ProcessExit;

/// A call of an agent, as a script sees it.
#[derive(Debug, Clone, Default)]
pub struct ScriptedCall {
    pub role: String,
    pub reviewer: String,
    pub phase: String,
    pub task: String,
    pub loop_id: String,
    pub cycle: u32,
    pub attempt: u64,
    pub nonce: String,
    /// The number among the calls with the same role, reviewer and task, from 1.
    pub call: u32,
    pub agent: String,
    pub model: String,
    pub prompt: String,
}

/// How a call ended.
#[derive(Debug, Clone)]
pub struct ScriptedEnd {
    pub exit: ProcessExit,
    pub stdout: String,
    pub stderr: String,
    pub usage: Usage,
    /// The wait that the agent asks for after a rate limit.
    pub retry_after_seconds: Option<f64>,
}

impl ScriptedCall {
    pub fn new(spec: &AttemptSpec, prompt: String) -> Self {
        let reviewer =
            if let JobKind::Review { reviewer, .. } = &spec.job.kind { reviewer.to_string() } else { String::new() };
        Self {
            role: spec.launch.role.clone(),
            reviewer,
            phase: spec.phase_name().to_owned(),
            task: spec.task_id.map(|task| task.to_string()).unwrap_or_default(),
            loop_id: spec.loop_id.to_string(),
            cycle: spec.cycle(),
            attempt: spec.job.attempt.0,
            nonce: nonce(spec),
            call: 0,
            agent: spec.launch.agent.clone(),
            model: spec.launch.model.clone().unwrap_or_default(),
            prompt,
        }
    }

    /// Whether both are counted together.
    pub fn is_like(&self, other: &Self) -> bool {
        (&self.role, &self.reviewer, &self.task) == (&other.role, &other.reviewer, &other.task)
    }

    pub fn matches(&self, condition: &ScriptCondition) -> bool {
        let same = |wanted: &Option<String>, is: &str| wanted.as_ref().is_none_or(|wanted| wanted == is);
        same(&condition.role, &self.role)
            && same(&condition.reviewer, &self.reviewer)
            && same(&condition.phase, &self.phase)
            && same(&condition.task, &self.task)
            && condition.cycle.is_none_or(|cycle| cycle == self.cycle)
            && condition.call.is_none_or(|call| call == self.call)
            && condition.prompt.as_ref().is_none_or(|words| self.prompt.contains(words))
    }

    /// Replaces the placeholders of a text.
    pub fn fill(&self, text: &str) -> String {
        let (cycle, attempt, call) = (self.cycle.to_string(), self.attempt.to_string(), self.call.to_string());
        [
            ("{role}", &self.role),
            ("{reviewer}", &self.reviewer),
            ("{phase}", &self.phase),
            ("{task}", &self.task),
            ("{loop}", &self.loop_id),
            ("{cycle}", &cycle),
            ("{attempt}", &attempt),
            ("{nonce}", &self.nonce),
            ("{call}", &call),
        ]
        .into_iter()
        .fold(text.to_owned(), |text, (name, value)| text.replace(name, value))
    }
}

/// The word that a reviewer must repeat.
pub fn nonce(spec: &AttemptSpec) -> String {
    format!("nonce-{}-{}", spec.loop_id, spec.job.attempt.0)
}

impl Default for ScriptedEnd {
    fn default() -> Self {
        let (stdout, stderr) = (String::new(), String::new());
        Self { exit: ProcessExit::Code(0), stdout, stderr, usage: Usage::default(), retry_after_seconds: None }
    }
}
