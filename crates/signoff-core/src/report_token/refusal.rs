//! Why a report call is refused, with a message that an agent can act on.

use super::{ReportTool, clip};
use crate::ids::{Commit, LoopId};

/// Why a report call is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportRefusal {
    #[error("this token is not known: send the one in SIGNOFF_MCP_TOKEN as `Authorization: Bearer TOKEN`")]
    UnknownToken,
    #[error("the attempt that this token was given to has ended: nothing can be reported with it any more")]
    Ended,
    #[error("the result of this review was reported already, and counts: nothing more is to be reported")]
    AlreadyReported,
    #[error("this token is for {granted}, not for {said}: call {granted}", granted = granted.as_str())]
    WrongTool { said: String, granted: ReportTool },
    #[error("this token is for loop {granted}, not {said}: call {tool} with loopId \"{granted}\"", tool = tool.as_str())]
    WrongLoop { said: String, granted: LoopId, tool: ReportTool },
    #[error("this token is for task {granted}, not {said}: send taskId \"{granted}\", or none")]
    WrongTask { said: String, granted: String },
    #[error("this token is for commit {granted}, not {said}: send commit \"{granted}\", or none")]
    WrongCommit { said: String, granted: Commit },
    #[error("{message}. Nothing was recorded: call {tool} again with that put right", tool = tool.as_str())]
    Malformed { tool: ReportTool, message: String },
    #[error("{message}. It is recorded that this review did not pass: call {tool} again with that put right", tool = tool.as_str())]
    Unreadable { tool: ReportTool, message: String },
    /// The report could not be written to disk.
    #[error("the report could not be kept: {message}. Nothing was recorded: try again")]
    NotStored { message: String },
}

impl ReportRefusal {
    pub(super) fn wrong_tool(said: &str, granted: ReportTool) -> Self {
        Self::WrongTool { said: clip(said), granted }
    }
}
