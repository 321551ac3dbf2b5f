//! Workflows: what the presets say, what people may write, and what they are told when it is wrong.

mod effort_and_modes;
mod files;
mod guide;
mod laws;
mod presets;
mod shown;
