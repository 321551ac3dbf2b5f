//! The instructions that ask for each contract: the templates in `text`, with the nonce and the commit filled in.

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::{AutoEscape, Environment, UndefinedBehavior, context};
use quick_xml::escape::escape;

use super::{Contract, ReviewRequest};
use crate::review::ReviewerKind;

/// Name and text of each template.
const TEMPLATES: [(&str, &str); 9] = [
    ("markdown", include_str!("text/markdown.md")),
    ("json", include_str!("text/json.md")),
    ("xml_spec", include_str!("text/xml_spec.md")),
    ("xml_code", include_str!("text/xml_code.md")),
    ("prefix", include_str!("text/prefix.md")),
    ("severity", include_str!("text/severity.md")),
    ("tool_loop", include_str!("text/tool_loop.md")),
    ("tool_run", include_str!("text/tool_run.md")),
    ("auto", include_str!("text/auto.md")),
];

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    environment.set_syntax(SyntaxConfig::builder().keep_trailing_newline(true).build().unwrap_or_default());
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.add_filter("quoted", |text: &str| serde_json::Value::from(text).to_string());
    environment.add_filter("escaped", |text: &str| escape(text).into_owned());
    for (name, source) in TEMPLATES {
        let added = environment.add_template(name, source);
        debug_assert!(added.is_ok(), "template {name}: {added:?}");
    }
    environment
});

/// Returns the instructions that ask a reviewer for this contract. Templates are part of the program, so an error is a bug in it: a test panics,
/// and a released program hands the error to the reviewer, whose answer then contains no verdict.
pub fn instructions(contract: Contract, ask: &ReviewRequest) -> String {
    let name = match contract {
        Contract::Xml if ask.kind == ReviewerKind::Spec => "xml_spec",
        Contract::Xml => "xml_code",
        Contract::Tool if ask.loop_id.is_some() => "tool_loop",
        Contract::Tool => "tool_run",
        Contract::Markdown | Contract::Json | Contract::Prefix | Contract::Severity | Contract::Auto => {
            contract.as_str()
        }
    };
    let is_auto = contract == Contract::Auto;
    let values = context! {
        nonce => ask.nonce.as_ref().map(|nonce| nonce.as_str()),
        commit => ask.commit.as_ref().map(|commit| commit.as_str()),
        loop_id => ask.loop_id.as_ref().map(|loop_id| loop_id.as_str()),
        task => ask.task.as_deref(),
        has_minor => ask.kind != ReviewerKind::Spec,
        tool => is_auto.then(|| instructions(Contract::Tool, ask)),
        markdown => is_auto.then(|| instructions(Contract::Markdown, ask)),
    };
    let rendered = ENVIRONMENT.get_template(name).and_then(|template| template.render(values));
    debug_assert!(rendered.is_ok(), "template {name}: {rendered:?}");
    rendered.unwrap_or_else(|error| format!("The instructions could not be rendered: {error}. Stop and report this."))
}
