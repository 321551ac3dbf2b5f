//! Formats messages for Slack and compatible chats.

use serde_json::{Value, json};
use signoff_core::notify::{NotificationKind, NotificationMessage};

/// Maximum length of a text block, in characters.
const LONGEST: usize = 2900;

pub fn body(message: &NotificationMessage) -> Value {
    let title = format!("{} {}", sign(message), escaped(&message.title));
    let mut blocks = vec![section(&format!("*{}*\n{}", unstarred(&title), escaped(&message.text)))];
    blocks.extend(message.next.as_ref().map(|next| section(&format!("`{}`", unquoted(next)))));
    let place = format!("{} · run {}", message.project, message.run_id);
    let place = format!("{place} · ${:.2}", message.cost_usd);
    blocks.push(json!({ "type": "context", "elements": [text(&escaped(&place))] }));
    json!({ "text": without_mentions(&format!("{title}: {}", escaped(&message.text))), "blocks": blocks })
}

fn sign(message: &NotificationMessage) -> &'static str {
    match message.event {
        NotificationKind::Done => match message.outcome.as_deref() {
            None | Some("approved" | "accepted") => "✅",
            Some("failed" | "stuck") => "⛔",
            Some(_) => "⚠️",
        },
        NotificationKind::Stuck => "⛔",
        NotificationKind::Question => "❓",
        NotificationKind::Budget => "⏸️",
    }
}

fn section(markdown: &str) -> Value {
    json!({ "type": "section", "text": text(markdown) })
}

/// A text block without automatic mentions and link previews.
fn text(markdown: &str) -> Value {
    let bounded: String = markdown.chars().take(LONGEST).collect();
    json!({ "type": "mrkdwn", "text": bounded, "verbatim": true })
}

/// Escapes `<` and `>`, which mark mentions, links and commands.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// Inserts invisible characters that prevent mentions and Markdown links in chats that ignore blocks.
fn without_mentions(text: &str) -> String {
    text.replace('@', "@\u{200b}").replace("](", "]\u{200b}(").replace("://", ":\u{200b}//")
}

/// Replaces stars, which would end the bold text.
fn unstarred(text: &str) -> String {
    text.replace('*', "∗")
}

fn unquoted(text: &str) -> String {
    escaped(text).replace('`', "'")
}
