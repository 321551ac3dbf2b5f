//! What signoff's tests share: a hermetic place to run the program in, output a person can read, and the
//! examples of the documentation.

pub mod console_example;
mod output;
mod test_env;

pub use output::Output;
pub use test_env::TestEnv;
