//! Computes the exit code from the result of an invocation.

use signoff_core::view::inbox::{InvocationSummary, TaskResult};

/// 0 everything requested is approved, 1 something failed, 3 a person is needed, 130 interrupted.
pub fn code(invocation: &InvocationSummary) -> u8 {
    match invocation.result() {
        _ if invocation.interrupted => 130,
        TaskResult::Failed => 1,
        TaskResult::Attention => 3,
        TaskResult::Done => 0,
    }
}
