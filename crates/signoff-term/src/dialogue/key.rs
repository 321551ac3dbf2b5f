//! The keys of the dialogue.

/// A key with a meaning in the dialogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DialogueKey {
    Up,
    Down,
    Digit(usize),
    Enter,
    Esc,
}
