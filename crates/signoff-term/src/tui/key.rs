//! Keys of the terminal UI.

/// One key, independent of the terminal's escape sequences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TuiKey {
    Char(char),
    /// A character of pasted text. It is inserted into text fields and ignored everywhere else.
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
