//! Where the parts of a task's page stand: on a served page, or in a file that is kept.

use std::collections::BTreeMap;

use signoff_term::show::LedgerLine;

/// One task's place on a page. Several can stand on one, so all ids begin with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setting {
    pub task: u64,
    /// Tells tasks on one page apart.
    pub key: u64,
    /// Whether there is a server behind the page that links and forms can reach.
    pub is_served: bool,
}

impl Setting {
    pub fn served(task: u64) -> Self {
        Self { task, key: task, is_served: true }
    }

    /// The id of an element.
    pub fn id(self, name: &str) -> String {
        format!("t{}-{name}", self.key)
    }
}

/// Under which id each finding stands.
pub struct Anchors<'a>(BTreeMap<&'a str, String>);

impl<'a> Anchors<'a> {
    /// Ids of findings are plain words, unless they came from elsewhere: those are counted.
    pub fn of(ledger: &'a [LedgerLine], setting: Setting) -> Self {
        let plain = |id: &str| {
            id.starts_with("f-") && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let named = ledger.iter().enumerate().map(|(index, line)| {
            let id = line.finding.id.as_str();
            let name = if plain(id) { setting.id(id) } else { setting.id(&format!("finding-{index}")) };
            (id, name)
        });
        Self(named.collect())
    }

    /// The id of a finding's element; what is added tells its other places.
    pub fn get(&self, finding: &str, place: &str) -> String {
        format!("{}{place}", self.0.get(finding).map(String::as_str).unwrap_or_default())
    }
}
