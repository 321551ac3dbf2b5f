//! What real agents said, recorded once and heard again: a story for each recording, and laws that hold for all of them.

#[cfg(test)]
mod acp;
#[cfg(test)]
mod ask;
#[cfg(test)]
mod claude;
#[cfg(test)]
mod codex;
#[cfg(test)]
mod conversation;
#[cfg(test)]
mod copilot;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod gemini;
#[cfg(test)]
mod last_word;
#[cfg(test)]
mod opencode;
#[cfg(test)]
mod qwen;
#[cfg(test)]
mod replay;
