//! A message as Slack takes it, and other chats that take the same.

use serde_json::{Value, json};
use signoff_core::notify::{Message, Occasion};

/// Nothing longer is taken in one block.
const LONGEST: usize = 2900;

pub fn body(message: &Message) -> Value {
    let title = format!("{} {}", sign(message), escaped(&message.title));
    let mut blocks = vec![section(&format!("*{}*\n{}", unstarred(&title), escaped(&message.text)))];
    blocks.extend(message.next.as_ref().map(|next| section(&format!("`{}`", unquoted(next)))));
    let place = format!("{} · run {}", message.project, message.run_id);
    let place = format!("{place} · ${:.2}", message.cost_usd);
    blocks.push(json!({ "type": "context", "elements": [text(&escaped(&place))] }));
    json!({ "text": tame(&format!("{title}: {}", escaped(&message.text))), "blocks": blocks })
}

fn sign(message: &Message) -> &'static str {
    match message.event {
        Occasion::Done => match message.outcome.as_deref() {
            None | Some("approved" | "accepted") => "✅",
            Some("failed" | "stuck") => "⛔",
            Some(_) => "⚠️",
        },
        Occasion::Stuck => "⛔",
        Occasion::Question => "❓",
        Occasion::Budget => "⏸️",
    }
}

fn section(markdown: &str) -> Value {
    json!({ "type": "section", "text": text(markdown) })
}

/// Names and addresses in it stay what they are: nobody is called, nothing is unfolded.
fn text(markdown: &str) -> Value {
    let bounded: String = markdown.chars().take(LONGEST).collect();
    json!({ "type": "mrkdwn", "text": bounded, "verbatim": true })
}

/// What calls people, links or commands is written between `<` and `>`; escaped it is only text.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Chats that read no blocks call people where they see an `@`, and read Markdown: a character that nobody sees keeps
/// them from both.
fn tame(text: &str) -> String {
    text.replace('@', "@\u{200b}").replace("](", "]\u{200b}(").replace("://", ":\u{200b}//")
}

/// Stars within would end the bold text.
fn unstarred(text: &str) -> String {
    text.replace('*', "∗")
}

fn unquoted(text: &str) -> String {
    escaped(text).replace('`', "'")
}
