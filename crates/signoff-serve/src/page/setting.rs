//! Where the parts of a task's page stand: on a served page, or in a file that is kept.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

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

/// Ids made of what things are called and not of where they stand: a list may shift while somebody reads.
pub struct Names {
    setting: Setting,
    kind: &'static str,
    given: BTreeMap<u64, u32>,
}

impl Names {
    pub fn new(setting: Setting, kind: &'static str) -> Self {
        Self { setting, kind, given: BTreeMap::new() }
    }

    /// The id of the next thing that is called so.
    pub fn of(&mut self, called: &str) -> String {
        let mut hasher = DefaultHasher::new();
        called.hash(&mut hasher);
        let hash = hasher.finish();
        let given = self.given.entry(hash).or_default();
        *given += 1;
        let more = if *given > 1 { format!("-{given}") } else { String::new() };
        self.setting.id(&format!("{}-{hash:016x}{more}", self.kind))
    }
}

/// Under which id each finding stands.
pub struct Anchors<'a>(BTreeMap<&'a str, String>);

impl<'a> Anchors<'a> {
    /// Ids of findings are plain words, unless they came from elsewhere.
    pub fn of(ledger: &'a [LedgerLine], setting: Setting) -> Self {
        let plain = |id: &str| {
            id.starts_with("f-") && id.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        };
        let mut names = Names::new(setting, "finding");
        let named = ledger.iter().map(|line| {
            let id = line.finding.id.as_str();
            (id, if plain(id) { setting.id(id) } else { names.of(id) })
        });
        Self(named.collect())
    }

    /// The id of a finding's element; what is added tells its other places.
    pub fn get(&self, finding: &str, place: &str) -> String {
        format!("{}{place}", self.0.get(finding).map(String::as_str).unwrap_or_default())
    }
}
