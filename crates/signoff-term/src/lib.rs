mod fit;
pub mod line;
mod round;
mod words;
