//! The prompt templates (`templates/*.md`) and their rendering.
//!
//! In a template, every section starts with a blank line and ends with its last line. `templates/parts` holds sections
//! that several prompts share. Values are inserted as they are and never parsed as template text.

use std::sync::LazyLock;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, UndefinedBehavior};
use serde::Serialize;

use crate::prompt::material;

macro_rules! sources {
    ($($name:literal,)*) => {
        &[$(($name, include_str!(concat!("templates/", $name)))),*]
    };
}

/// Name and text of each template.
const SOURCES: &[(&str, &str)] = sources![
    "brainstorm.md",
    "conflict.md",
    "enumerate.md",
    "fix.md",
    "implement.md",
    "plan.md",
    "plan_document.md",
    "research.md",
    "review.md",
    "review_document.md",
    "simplify.md",
    "synthesis.md",
    "parts/assignment.md",
    "parts/diff.md",
    "parts/item.md",
    "parts/last_pass.md",
    "parts/report.md",
    "parts/reports.md",
    "parts/reviewed_before.md",
    "parts/second_try.md",
    "parts/task.md",
    "parts/task_under_review.md",
];

static ENVIRONMENT: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = Environment::new();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).keep_trailing_newline(true).build();
    environment.set_syntax(syntax.unwrap_or_default());
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_auto_escape_callback(|_| AutoEscape::None);
    environment.add_filter("fenced", |text: &str, language: Option<&str>| {
        material::fenced(text, language.unwrap_or_default())
    });
    environment.add_filter("one_line", material::one_line);
    environment.add_filter("plain", material::plain);
    environment.add_filter("title", material::title);
    environment.add_filter("trim_end", |text: &str| text.trim_end().to_owned());
    for (name, source) in SOURCES {
        let added = environment.add_template(name, source);
        debug_assert!(added.is_ok(), "template {name}: {added:?}");
    }
    environment
});

/// Renders a template with the fields of a context as its variables.
///
/// Templates and contexts are both part of the program, so an error is a bug in it. The tests render every template
/// with every combination of optional fields, and there an error panics. A released program hands the error to the
/// agent, whose answer then contains neither a nonce nor a verdict.
pub(super) fn render(name: &str, context: impl Serialize) -> String {
    let template = ENVIRONMENT.get_template(name);
    let rendered = template.and_then(|template| template.render(Serde(context)));
    debug_assert!(rendered.is_ok(), "template {name}: {rendered:?}");
    rendered
        .unwrap_or_else(|error| format!("The prompt `{name}` could not be rendered: {error}. Stop and report this."))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::prompt::TaskBrief;

    fn task(title: &str, description: &str) -> String {
        let task = TaskBrief { title, description, ..TaskBrief::default() };
        render("parts/assignment.md", minijinja::context! { task => Serde(task) })
    }

    #[test]
    fn every_template_compiles() {
        assert_eq!(ENVIRONMENT.templates().count(), SOURCES.len());
    }

    #[test]
    fn a_value_that_looks_like_template_text_stays_as_it_is() {
        insta::assert_snapshot!(task("{{ description }}", "{{ title }} }} {{ {% include 'x' %} {# no #}"), @r"
        ## Task
        **{{ description }}**
        {{ title }} }} {{ {% include 'x' %} {# no #}
        ");
    }

    proptest! {
        #[test]
        fn values_come_out_as_they_went_in(value in "x[a-z{}%# ]{0,20}x") {
            prop_assert_eq!(task("T", &value), format!("## Task\n**T**\n{value}\n"));
        }
    }
}
