//! The dispatcher, landing and recovery, in process: agents follow a script, and the store and the repository are in
//! memory. Only stories about landing, documents and complete prompts use a git repository.

mod checkpoints;
mod gates;
mod groups;
mod iterations;
mod landing;
mod limits;
mod parallel_fixes;
mod phases;
mod plans;
mod properties;
mod questions;
mod recovery;
mod reviews;
mod scripts;
mod slots;
mod workflows;
