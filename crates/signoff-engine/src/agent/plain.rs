//! Agents that say what they mean: stdout is the final message, the exit code tells how it ended.

use signoff_core::heard::Said;

use super::{Account, Closing, Listener};

/// Shows every line. What it came to is read from the files as they are.
pub struct Plain;

impl Listener for Plain {
    fn line(&mut self, line: &[u8]) -> Vec<Said> {
        vec![Said::Text(String::from_utf8_lossy(line).into_owned())]
    }

    fn ended(&mut self, _: &Closing<'_>) -> Account {
        Account::default()
    }
}
