//! The kinds of agents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What speaks to an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[derive(strum::EnumString, strum::IntoStaticStr, strum::VariantNames)]
#[strum(serialize_all = "lowercase")]
pub enum AgentKind {
    Claude,
    Codex,
    Gemini,
    Opencode,
    Qwen,
    Copilot,
    /// Any agent that speaks the Agent Client Protocol.
    Acp,
    /// Any program: the prompt on stdin, the final message on stdout.
    Command,
    /// The project's own commands, as a reviewer without a model.
    Checks,
    /// Plays its part without any model.
    Demo,
}

impl AgentKind {
    pub fn as_str(self) -> &'static str {
        self.into()
    }

    pub fn parse(word: &str) -> Option<Self> {
        word.parse().ok()
    }

    /// Whether agents of this kind are known to copy a nonce from their prompt. A custom program may not.
    pub fn echoes_nonces(self) -> bool {
        match self {
            Self::Claude | Self::Codex | Self::Gemini | Self::Opencode | Self::Qwen | Self::Copilot | Self::Acp => true,
            Self::Command | Self::Checks | Self::Demo => false,
        }
    }

    /// The provider of an agent that names none. A custom program is its own provider.
    pub(super) fn provider(self, name: &str) -> String {
        match self {
            Self::Claude | Self::Codex | Self::Gemini | Self::Opencode | Self::Qwen | Self::Copilot => {
                self.as_str().to_owned()
            }
            Self::Acp | Self::Command | Self::Checks | Self::Demo => name.to_owned(),
        }
    }

    /// Whether `command` must name the program to start.
    pub(super) fn needs_command(self) -> bool {
        matches!(self, Self::Acp | Self::Command)
    }

    /// Whether it can change the work, or read it and give an opinion.
    pub(super) fn is_a_model(self) -> bool {
        self != Self::Checks
    }
}
