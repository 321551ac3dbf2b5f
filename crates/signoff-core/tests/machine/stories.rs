//! Stories of single loops: the behaviour of each preset, step by step.

mod bounds;
mod claims;
mod inherited;
mod interruptions;
mod landing;
mod loops;
mod nothing_to_review;
mod people;
mod phases;
mod plan;
mod slots;
mod task;
mod unclear;
