//! The names of the keys that code looks up by name. Each is taken from a field, so that it exists.

use super::file::{AgentTable, ReviewerTable, RoleTable, RoleValues, SettingsFile};
use super::notify::{ChannelTable, NotifyTable};
use super::preset::{PhaseTable, PresetKeys};
use super::rules::key_name;
use crate::workflow::keys::{CommonKeys, DefinitionKeys};

macro_rules! keys {
    ($($table:ty { $($name:ident = $key:ident),* $(,)? })*) => {
        $($(pub(crate) const $name: &str = key_name!($table, $key);)*)*
    };
}

keys! {
    SettingsFile {
        AGENTS = agents,
        DEFAULTS = defaults,
        GATE = gate,
        LIMITS = limits,
        NOTIFY = notify,
        PRESET = preset,
        PRESETS = presets,
        PROMPTS = prompts,
        REVIEWERS = reviewers,
        ROLES = roles,
        SANDBOX = sandbox,
        STORE = store,
        WORKFLOWS = workflows,
    }
    RoleValues<()> { IMPLEMENT = implement, REVIEW = review }
    // Phases and reviewers have these keys too.
    RoleTable { AGENT = agent, MODEL = model }
    AgentTable { ENV = env, FALLBACK = fallback }
    ReviewerTable { PROMPT = prompt }
    PresetKeys { GATES = gates, PHASE = phase, TOOLS = tools }
    PhaseTable { PARALLEL = parallel, RESEARCHERS = researchers, TIMEOUT = timeout, TOOL = tool }
    NotifyTable { CHANNELS = channels }
    ChannelTable { COMMAND = command, FORMAT = format, HEADERS = headers, URL = url }
    DefinitionKeys { BEFORE = before, PHASES = phases, AFTER = after, MODES = modes }
    CommonKeys { KIND = kind, NAME = name }
}
