//! What an agent says it used.

use signoff_core::review::Usage;

use super::conclude::start_of;
use crate::process::{AttemptDir, Ended};

#[derive(serde::Deserialize, Default)]
#[serde(default)]
struct Told {
    cost_usd: f64,
    input_tokens: u64,
    output_tokens: u64,
}

/// What the agent says it used, and how long it took.
pub fn usage(dir: &AttemptDir, ended: &Ended) -> Usage {
    Usage { duration_ms: ended.duration_ms, ..told_usage(dir) }
}

/// What the agent says it used.
pub fn told_usage(dir: &AttemptDir) -> Usage {
    let text = start_of(&dir.usage(), 64 * 1024);
    let told: Told = serde_json::from_slice(&text).unwrap_or_default();
    // A negative or absurd price counts as none.
    let cost = if told.cost_usd.is_finite() { (told.cost_usd * 1e6).clamp(0.0, 1e15) } else { 0.0 };
    Usage {
        cost_micro_usd: cost as u64,
        input_tokens: told.input_tokens,
        output_tokens: told.output_tokens,
        duration_ms: 0,
    }
}
