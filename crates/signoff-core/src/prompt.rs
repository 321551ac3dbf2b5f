//! The prompts of all agents.
//!
//! Each prompt has a template in `prompt/templates` and a context with its variables. It starts with an opening, which
//! a person can replace; the sections after it are needed by the loop: the task, the diff, the answer's format. Text
//! from agents, repositories and trackers is fenced and cut to [`CHARACTER_CAP`] characters.

use serde::{Deserialize, Serialize};

pub mod commit_message;
pub mod marker;

mod diff_context;
mod lists;
mod review;
pub(crate) mod template;
mod work;

pub use diff_context::{DiffContext, INLINE_LINES, LeftOutWhy, OmittedFileBrief};
pub use lists::OtherLoop;
pub use review::{
    DocumentContext, DocumentKind, Extent, RereviewContext, ReviewContext, SubjectContext, UnreadableAnswer, Work,
    review,
};
pub use template::{CHARACTER_CAP, Capped, cap, fenced, one_line};
pub use work::{
    AnswerBy, BrainstormContext, ConflictContext, EarlierCycle, EnumerateContext, FixContext, ImplementContext,
    ItemBrief, PlanContext, PlanDocumentContext, PromptTask, ResearchContext, SecondTry, SimplifyContext,
    SynthesisContext, TaskBrief, brainstorm, conflict, enumerate, fix, implement, plan, plan_document, research,
    simplify, synthesis,
};

/// The prompt for an agent that continues its session.
pub fn going_on(prompt: &str) -> String {
    format!("{}\n{prompt}", include_str!("prompt/templates/going_on.md"))
}

/// How thorough a review is. `Ord` goes from quick to thorough; each depth asks for everything that the one before it
/// asks for.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
    strum::EnumString,
    strum::IntoStaticStr,
)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum Depth {
    /// The task, the quality checks, the report.
    Shallow,
    /// And the intent analysis.
    Standard,
    /// And the iron law: no claim without evidence.
    Deep,
    /// And a check requirement by requirement, with the tests run.
    Comprehensive,
}

impl Depth {
    pub const ALL: [Self; 4] = [Self::Shallow, Self::Standard, Self::Deep, Self::Comprehensive];

    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub fn parse(word: &str) -> Option<Self> {
        word.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::Depth;

    #[test]
    fn a_depth_has_one_word_everywhere() {
        for depth in Depth::ALL {
            assert_eq!(Depth::parse(depth.as_str()), Some(depth));
            assert_eq!(serde_json::to_value(depth).unwrap(), depth.as_str());
        }
        assert!(Depth::ALL.is_sorted());
    }
}
