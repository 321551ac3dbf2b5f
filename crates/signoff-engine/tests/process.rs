//! Process supervision with real processes and real signals. Systems without `/proc` are not tested here.

#![cfg(target_os = "linux")]

mod crash;
mod ending;
#[cfg(test)]
mod fixture;
mod running;
#[cfg(test)]
mod sandbox;
