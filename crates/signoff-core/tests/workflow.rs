//! Workflows: the presets, valid files, and error messages.

mod effort_and_modes;
mod files;
mod guide;
mod presets;
mod properties;
mod shown;
