//! Who plays a role: an agent, with a model of its own where the role is to have another.

use serde_json::{Value as Json, json};

use super::layer::Source;
use super::slot::{Slot, table};
use super::tables::{Prompts, Roles};
use super::value::Text;
use super::{Row, Setting};
use crate::workflow::table::Checked;
use crate::workflow::value::{Value, Written};

/// Who plays a role. Nobody, if it says nothing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Player {
    pub agent: Option<Setting<Text>>,
    pub model: Option<Setting<Text>>,
}

table! {
    /// A role as a table.
    Spelled, "a role" {
        /// The agent; without it that of `implement`.
        agent: Option<Setting<Text>> = None,
        /// Its model in this role.
        model: Option<Setting<Text>> = None,
    }
}

/// What takes the place of a table.
struct Name;

impl Value for Name {
    fn expected(_: &str) -> String {
        "the name of an agent in quotes, or { agent = \"…\", model = \"…\" }".to_owned()
    }

    fn schema(key: &str) -> Json {
        Text::schema(key)
    }

    fn read<'v, 'i>(key: &str, written: &'v Written<'i>) -> Result<Self, &'v Written<'i>> {
        Text::read(key, written).map(|_| Self)
    }
}

impl Slot for Player {
    /// Who names an agent names it without the model that another one had.
    fn lay(&mut self, key: &str, source: &Source<'_>) -> Checked<()> {
        if !source.table.holds_table(key) {
            let agent = source.table.get::<Name>(key)?;
            if agent.is_some() {
                self.agent.lay(key, source)?;
                self.model = None;
            }
            return Ok(());
        }
        let mut spelled = Spelled::default();
        spelled.lay(key, source)?;
        if spelled.agent.is_none() && spelled.model.is_none() {
            let message = format!("`{key}` is an empty table: expected {}", Name::expected(key));
            return Err(source.table.error(key, message));
        }
        if spelled.agent.is_some() {
            *self = Self { agent: spelled.agent, model: spelled.model };
        } else {
            self.model = spelled.model;
        }
        Ok(())
    }

    fn rows(&self, key: &str, rows: &mut Vec<Row>) {
        let agent_key = if self.model.is_some() { format!("{key}.agent") } else { key.to_owned() };
        self.agent.rows(&agent_key, rows);
        self.model.rows(&format!("{key}.model"), rows);
    }

    fn schema(key: &str) -> Json {
        let mut spelled = Spelled::properties().closed();
        spelled["minProperties"] = json!(1);
        json!({ "anyOf": [Text::schema(key), spelled] })
    }
}

impl Roles {
    /// Who was named for a role.
    pub fn of(&self, role: &str) -> Option<&Player> {
        self.all().into_iter().find(|(key, _)| *key == role).map(|(_, player)| player)
    }

    pub fn all(&self) -> [(&'static str, &Player); 7] {
        [
            ("implement", &self.implement),
            ("fix", &self.fix),
            ("review", &self.review),
            ("enumerate", &self.enumerate),
            ("plan", &self.plan),
            ("brainstorm", &self.brainstorm),
            ("simplify", &self.simplify),
        ]
    }
}

impl Prompts {
    /// The prompt for a role.
    pub fn of(&self, role: &str) -> Option<&Setting<Text>> {
        let prompt = match role {
            "implement" => &self.implement,
            "fix" => &self.fix,
            "review" => &self.review,
            "enumerate" => &self.enumerate,
            "plan" => &self.plan,
            "brainstorm" => &self.brainstorm,
            "simplify" => &self.simplify,
            _ => &None,
        };
        prompt.as_ref()
    }
}
