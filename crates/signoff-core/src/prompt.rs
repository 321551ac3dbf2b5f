//! What agents are told. Values in, text out; the words themselves live in `prompt/text/*.md`.
//!
//! Every prompt begins with the role's opening, which a person may replace, and goes on with what the
//! loop depends on: the task, the diff, how to answer. Text from agents, repositories and trackers is
//! fenced and called material, cut to [`CHARACTER_CAP`] characters.

use serde::{Deserialize, Serialize};

pub mod commit_message;
pub mod marker;

mod brainstorm;
mod conflict;
mod diff_context;
mod finding_list;
mod fix;
mod implement;
mod item;
pub(crate) mod material;
mod other_loops;
mod pieces;
mod plan_document;
mod planner;
mod review;
mod simplify;
mod task_brief;
mod text;

pub use brainstorm::{BrainstormContext, ResearchContext, SynthesisContext, brainstorm, research, synthesis};
pub use conflict::{ConflictContext, conflict};
pub use diff_context::{DiffContext, INLINE_LINES, LeftOut, LeftOutWhy};
pub use fix::{EarlierCycle, FixContext, fix};
pub use implement::{ImplementContext, implement};
pub use item::Item;
pub use material::{CHARACTER_CAP, Capped, cap, fenced, one_line};
pub use other_loops::{OtherLoop, summary as other_loops_summary};
pub use plan_document::{PlanDocumentContext, plan_document};
pub use planner::{AnswerBy, EnumerateContext, PlanContext, PlannedTask, SecondTry, enumerate, plan};
pub use review::{
    Document, DocumentKind, Extent, Rereview, ReviewContext, Subject, UnreadableAnswer, Work, review,
};
pub use simplify::{SimplifyContext, simplify};
pub use task_brief::TaskBrief;

/// A prompt for an agent that goes on in a session.
pub fn going_on(prompt: &str) -> String {
    format!("{}\n\n{prompt}", text::GOING_ON)
}

/// How thoroughly a reviewer is told to look. `Ord` goes from quick to thorough; each depth asks for
/// everything the one before it asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
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

    pub fn word(self) -> &'static str {
        match self {
            Self::Shallow => "shallow",
            Self::Standard => "standard",
            Self::Deep => "deep",
            Self::Comprehensive => "comprehensive",
        }
    }

    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|depth| depth.word() == word)
    }
}

#[cfg(test)]
mod tests {
    use super::Depth;

    #[test]
    fn a_depth_has_one_word_everywhere() {
        for depth in Depth::ALL {
            assert_eq!(Depth::from_word(depth.word()), Some(depth));
            assert_eq!(serde_json::to_value(depth).unwrap(), depth.word());
        }
        assert!(Depth::ALL.is_sorted());
    }
}
