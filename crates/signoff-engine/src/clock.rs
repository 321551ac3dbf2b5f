//! The clock.

use jiff::Timestamp;

/// The current time.
#[expect(clippy::disallowed_methods, reason = "the only place that reads the clock")]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// A date as used in artifact names: `20260129`, UTC.
pub fn day(at: Timestamp) -> String {
    at.strftime("%Y%m%d").to_string()
}
