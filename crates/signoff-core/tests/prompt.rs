//! Every prompt as an agent gets it, and the laws all of them keep.

#[path = "prompt/fixture.rs"]
mod fixture;
#[path = "prompt/grid.rs"]
mod grid;
#[path = "prompt/laws.rs"]
mod laws;
#[path = "prompt/review.rs"]
mod review;
#[path = "prompt/work.rs"]
mod work;
