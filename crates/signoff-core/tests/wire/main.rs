//! The recorded log: its JSON, which is an interface, and what people see of it.

mod broken;
mod examples;
mod forms;
mod stories;
