//! Real agents, real keepers, real signals. What is promised where there is no `/proc` is not tested here.

#![cfg(target_os = "linux")]

mod crash;
mod ending;
mod held;
#[cfg(test)]
mod place;
mod running;
