//! Keys, as a person presses them.

/// One key. What a terminal sends for it is the terminal's business.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Press {
    Char(char),
    /// A character of a text that was pasted. It is text wherever text is typed, and nothing anywhere else.
    Pasted(char),
    /// Together with the control key: `Ctrl('c')`.
    Ctrl(char),
    Up,
    Down,
    Left,
    Right,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Esc,
    Tab,
    BackTab,
    Backspace,
    Delete,
}
