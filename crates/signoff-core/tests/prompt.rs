//! Every prompt as an agent gets it, and the laws all of them keep.

mod fixture;
mod grid;
mod laws;
mod review;
mod work;
