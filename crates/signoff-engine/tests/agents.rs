//! Adapters parse recorded output of real agents: a snapshot for each recording, and properties that all of them have.

#[cfg(test)]
mod acp;
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
mod final_message;
#[cfg(test)]
mod gemini;
#[cfg(test)]
mod opencode;
#[cfg(test)]
mod qwen;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod test_spec;
