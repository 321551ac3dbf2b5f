//! What was asked, in the order in which it came.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde::{Serialize, Serializer};
use serde_json::Value;

use super::dialect::Dialect;
use super::fault::{End, Fault};
use super::usage::Usage;

/// One request, and what was made of it.
#[derive(Debug, Clone, Serialize)]
pub struct Seen {
    /// From 1.
    pub number: usize,
    pub method: String,
    pub path: String,
    /// What the client calls itself.
    pub agent: String,
    pub authorization: Option<Authorization>,
    #[serde(flatten)]
    pub kind: Kind,
}

/// What a client showed to be let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Authorization {
    pub header: String,
    /// For tests to look at, and for no log.
    #[serde(skip)]
    pub value: String,
}

/// What was asked for.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Kind {
    /// A reply.
    Reply(Box<Replied>),
    /// How many tokens a text has.
    Count,
    /// Which models there are.
    Models,
    /// Something that is not served here.
    Unknown,
}

/// A reply that was asked for.
#[derive(Debug, Clone, Serialize)]
pub struct Replied {
    pub dialect: Dialect,
    pub model: String,
    pub stream: bool,
    /// The rule that it was answered by. Without one it was the script's default, or a side request.
    pub rule: Option<String>,
    /// Which of the rule's turns, from 0.
    pub turn: usize,
    /// Whether the client declared no tools, as for titles and summaries.
    pub side: bool,
    #[serde(serialize_with = "shortened")]
    pub system: String,
    /// The newest message of the user.
    #[serde(serialize_with = "shortened")]
    pub prompt: String,
    /// The newest results of tools.
    #[serde(serialize_with = "shortened")]
    pub result: String,
    /// The names of the tools declared; nested ones as `namespace/name`.
    pub tools: Vec<String>,
    /// The tools called, with what.
    pub calls: Vec<(String, Value)>,
    /// What the script wanted done and no declared tool could do.
    pub undeclared: Vec<String>,
    pub fault: Option<Fault>,
    pub end: End,
    /// What the reply says that it used, if it comes to its end.
    pub usage: Usage,
}

impl Seen {
    pub fn reply(&self) -> Option<&Replied> {
        match &self.kind {
            Kind::Reply(reply) => Some(reply),
            Kind::Count | Kind::Models | Kind::Unknown => None,
        }
    }

    /// Whether it was answered by this rule.
    pub fn is_of(&self, rule: &str) -> bool {
        self.reply().is_some_and(|reply| reply.rule.as_deref() == Some(rule))
    }
}

/// A test that waits in vain must end.
const PATIENCE: Duration = Duration::from_secs(60);

/// All requests so far.
#[derive(Debug, Default)]
pub(super) struct Records {
    seen: Mutex<Vec<Seen>>,
    more: Condvar,
}

impl Records {
    /// Adds a request, which gets its number, and gives this.
    pub fn add(&self, make: impl FnOnce(usize) -> Seen) -> usize {
        let mut seen = self.lock();
        let number = seen.len() + 1;
        let record = make(number);
        seen.push(record);
        self.more.notify_all();
        number
    }

    pub fn all(&self) -> Vec<Seen> {
        self.lock().clone()
    }

    /// Waits for the request with this number, however long it takes.
    pub fn wait(&self, number: usize) -> Seen {
        let mut seen = self.lock();
        loop {
            if let Some(found) = seen.get(number - 1) {
                return found.clone();
            }
            seen = self.more.wait(seen).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Waits until so many requests are like this. `None`: they did not come.
    pub fn wait_for(&self, count: usize, fits: impl Fn(&Seen) -> bool) -> Option<Vec<Seen>> {
        let few = |seen: &mut Vec<Seen>| seen.iter().filter(|seen| fits(seen)).count() < count;
        let waited = self.more.wait_timeout_while(self.lock(), PATIENCE, few);
        let (seen, end) = waited.unwrap_or_else(PoisonError::into_inner);
        (!end.timed_out()).then(|| seen.iter().filter(|seen| fits(seen)).cloned().collect())
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The end of a text, which is where the news are.
fn shortened<S: Serializer>(text: &str, serializer: S) -> Result<S::Ok, S::Error> {
    let count = text.chars().count();
    serializer.collect_str(&text.chars().skip(count.saturating_sub(300)).collect::<String>())
}
