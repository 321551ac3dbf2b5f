//! Stories of single loops: what each preset's design says happens, told step by step.

mod bounds;
mod landing;
mod loops;
mod people;
mod phases;
mod plan;
mod slots;
mod task;
mod weather;
