//! The names of the keys that code looks up by name. Each is taken from a field, so that it exists.

use super::agents::PriceTable;
use super::file::{AgentTable, CapsTable, LimitKeys, ReviewerTable, RoleTable, RoleValues, SettingsFile};
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
        PRICES = prices,
        PROMPTS = prompts,
        REVIEWERS = reviewers,
        ROLES = roles,
        SANDBOX = sandbox,
        SANDBOX_NETWORK = sandbox_network,
        SANDBOX_WRITE = sandbox_write,
        SANDBOX_WRITERS = sandbox_writers,
        STORE = store,
        WORKFLOWS = workflows,
    }
    RoleValues<()> { IMPLEMENT = implement, REVIEW = review }
    // Phases and reviewers have these keys too.
    RoleTable { AGENT = agent, MODEL = model }
    AgentTable { ENV = env, FALLBACK = fallback }
    ReviewerTable { CONTRACT = contract, PROMPT = prompt }
    LimitKeys { ATTEMPT = attempt, RUN = run }
    CapsTable { MAX_COST_USD = max_cost_usd, MAX_MINUTES = max_minutes, MAX_TOKENS = max_tokens }
    PriceTable { INPUT = input, OUTPUT = output }
    PresetKeys { EFFORT = effort, GATES = gates, PHASE = phase, TOOLS = tools }
    PhaseTable { PARALLEL = parallel, RESEARCHERS = researchers, TIMEOUT = timeout, TOOL = tool }
    NotifyTable { CHANNELS = channels }
    ChannelTable { COMMAND = command, FORMAT = format, HEADERS = headers, URL = url }
    DefinitionKeys { BEFORE = before, PHASES = phases, AFTER = after, MODES = modes }
    CommonKeys { KIND = kind, NAME = name }
}
