//! Stories of single loops: what each preset's design says happens, told step by step.

mod bounds;
mod claims;
mod inherited;
mod landing;
mod loops;
mod nothing_to_review;
mod people;
mod phases;
mod plan;
mod slots;
mod task;
mod unclear;
mod weather;
