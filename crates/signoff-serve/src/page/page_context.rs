//! The context in which a task is rendered (served page or report file), and the ids of HTML elements.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use signoff_term::show::LedgerLine;

/// The context of one task on a page. A page can hold several tasks, so all element ids start with its key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PageContext {
    pub task: u64,
    /// Unique among the tasks of a page.
    pub key: u64,
    /// Whether a server handles the links and forms of the page.
    pub is_served: bool,
}

impl PageContext {
    pub fn served(task: u64) -> Self {
        Self { task, key: task, is_served: true }
    }

    /// The id of an element of this task.
    pub fn id(self, name: &str) -> String {
        format!("t{}-{name}", self.key)
    }
}

/// Creates element ids from names rather than positions, so that they stay stable when a list shifts.
pub struct ElementIds {
    setting: PageContext,
    kind: &'static str,
    given: BTreeMap<u64, u32>,
}

impl ElementIds {
    pub fn new(setting: PageContext, kind: &'static str) -> Self {
        Self { setting, kind, given: BTreeMap::new() }
    }

    /// The id of the next element with this name.
    pub fn next_id(&mut self, name: &str) -> String {
        let mut hasher = DefaultHasher::new();
        name.hash(&mut hasher);
        let hash = hasher.finish();
        let given = self.given.entry(hash).or_default();
        *given += 1;
        let more = if *given > 1 { format!("-{given}") } else { String::new() };
        self.setting.id(&format!("{}-{hash:016x}{more}", self.kind))
    }
}

/// The element id of each finding.
pub struct Anchors<'a>(BTreeMap<&'a str, String>);

impl<'a> Anchors<'a> {
    /// Uses the ids of findings directly if they are safe in HTML; imported ones may not be.
    pub fn new(ledger: &'a [LedgerLine], setting: PageContext) -> Self {
        let plain =
            |id: &str| id.starts_with("f-") && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-');
        let mut names = ElementIds::new(setting, "finding");
        let named = ledger.iter().map(|line| {
            let id = line.finding.id.as_str();
            (id, if plain(id) { setting.id(id) } else { names.next_id(id) })
        });
        Self(named.collect())
    }

    /// The element id of a finding, with a suffix for its other elements.
    pub fn get(&self, finding: &str, suffix: &str) -> String {
        format!("{}{suffix}", self.0.get(finding).map(String::as_str).unwrap_or_default())
    }
}
