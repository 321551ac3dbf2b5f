//! Every prompt as an agent gets it, and properties of all of them.

mod fixture;
mod grid;
mod properties;
mod review;
mod work;
