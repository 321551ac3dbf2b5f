//! What real agents said, recorded once and heard again: a story for each recording, and laws that hold for all of them.

mod acp;
mod ask;
mod conversation;
mod opencode;
mod replay;
