//! The engine's one door to the time of day.

use jiff::Timestamp;

/// The time of day.
#[expect(clippy::disallowed_methods, reason = "the engine's one door to the clock")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// A day as artifacts carry it in their names: `20260129`, UTC.
pub fn day(at: Timestamp) -> String {
    at.strftime("%Y%m%d").to_string()
}
