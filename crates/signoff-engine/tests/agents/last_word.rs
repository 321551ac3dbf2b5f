//! Laws about what an agent says last, for all kinds: transcripts as each of them would write them, made of turns.

use proptest::prelude::*;
use serde_json::{Value, json};
use signoff_core::config::AgentKind::{
    self, Acp, Checks, Claude, Codex, Command, Copilot, Demo, Gemini, Opencode, Qwen,
};
use signoff_core::contract::MAX_BYTES;
use signoff_engine::agent::Account;

use crate::replay::{Recording, account};

const KINDS: [AgentKind; 7] = [Acp, Claude, Codex, Copilot, Gemini, Opencode, Qwen];

/// What a model answers: words, and a tool that it asks for. Whoever asks for none is done.
#[derive(Debug, Clone)]
struct Turn {
    says: String,
    /// The tool may not be used.
    denied: bool,
}

fn says(text: &str) -> Turn {
    Turn { says: text.to_owned(), denied: false }
}

/// All turns but the last use a tool.
fn transcript(kind: AgentKind, turns: &[Turn]) -> Vec<Value> {
    let (last, before) = turns.split_last().unwrap();
    let mut lines = begins(kind);
    for (number, turn) in before.iter().enumerate() {
        lines.extend(works(kind, turn, number));
    }
    lines.extend(ends(kind, &last.says, before.last().map_or("", |turn| &turn.says)));
    lines.retain(|line| !line.is_null());
    lines
}

fn begins(kind: AgentKind) -> Vec<Value> {
    match kind {
        Acp => vec![json!({"type": "session", "id": "s"})],
        Claude => vec![json!({"type": "system", "subtype": "init", "session_id": "s"})],
        Codex => vec![json!({"type": "thread.started", "thread_id": "s"}), json!({"type": "turn.started"})],
        Gemini => vec![json!({"type": "init", "session_id": "s"})],
        Qwen => vec![json!({"type": "system", "subtype": "init", "session_id": "s"})],
        Copilot | Opencode | Command | Demo | Checks => Vec::new(),
    }
}

/// A line, unless there is nothing to say.
fn said(text: &str, line: Value) -> Value {
    if text.is_empty() { Value::Null } else { line }
}

fn works(kind: AgentKind, turn: &Turn, number: usize) -> Vec<Value> {
    let Turn { says: text, denied } = turn;
    let id = number.to_string();
    match kind {
        Acp => {
            let tool = if *denied { "denied" } else { "tool" };
            let used = json!({"type": tool, "name": "shell", "tool": "shell", "about": "ls"});
            vec![said(text, json!({"type": "text", "text": text, "begins": true})), used]
        }
        Claude => {
            let block =
                |block: Value| json!({"type": "assistant", "message": {"id": id, "content": [block]}});
            let answer = if *denied { "No such tool available" } else { "a" };
            let result =
                json!({"type": "tool_result", "tool_use_id": id, "is_error": denied, "content": answer});
            vec![
                said(text, block(json!({"type": "text", "text": text}))),
                block(json!({"type": "tool_use", "id": id, "name": "Bash", "input": {"command": "ls"}})),
                json!({"type": "user", "message": {"content": [result]}}),
            ]
        }
        Codex => {
            let (output, status) = if *denied { ("Permission denied", "failed") } else { ("a", "completed") };
            let item = |step: &str| {
                json!({"type": step, "item": {
                    "id": id, "type": "command_execution", "command": "ls", "aggregated_output": output, "status": status,
                }})
            };
            let text = said(
                text,
                json!({"type": "item.completed", "item": {"type": "agent_message", "text": text}}),
            );
            vec![text, item("item.started"), item("item.completed")]
        }
        Copilot => {
            let error = if *denied { json!({"code": "denied"}) } else { json!({}) };
            vec![
                json!({"type": "assistant.message", "data": {"content": text, "toolRequests": [{"toolCallId": id}]}}),
                json!({"type": "tool.execution_start", "data": {"toolCallId": id, "toolName": "bash"}}),
                json!({"type": "tool.execution_complete", "data": {"toolCallId": id, "error": error}}),
            ]
        }
        Gemini => {
            let error = denied.then(|| json!({"type": "policy_violation", "message": "no"}));
            let status = if *denied { "error" } else { "success" };
            vec![
                said(text, json!({"type": "message", "role": "assistant", "content": text})),
                json!({"type": "tool_use", "tool_name": "read_file", "tool_id": id, "parameters": {}}),
                json!({"type": "tool_result", "tool_id": id, "status": status, "error": error}),
            ]
        }
        Opencode => {
            let error = if *denied { "The user rejected permission to use it" } else { "" };
            let part = |kind: &str, part: Value| json!({"type": kind, "sessionID": "s", "part": part});
            vec![
                part("step_start", json!({})),
                said(text, part("text", json!({"text": text}))),
                part("tool_use", json!({"tool": "bash", "state": {"title": "ls", "error": error}})),
                part("step_finish", json!({"reason": "tool-calls"})),
            ]
        }
        Qwen => {
            let block = |block: Value| {
                json!({"type": "assistant", "parent_tool_use_id": null, "message": {"content": [block],
                    "usage": {"input_tokens": 1, "output_tokens": 1}}})
            };
            vec![
                said(text, block(json!({"type": "text", "text": text}))),
                block(json!({"type": "tool_use", "id": id, "name": "glob", "input": {}})),
                json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": id}]}}),
            ]
        }
        Command | Demo | Checks => panic!("{kind:?} has no transcript"),
    }
}

/// The last turn, and the closing line. Where the agent repeats what it said, it repeats what stands before that too.
fn ends(kind: AgentKind, text: &str, before: &str) -> Vec<Value> {
    match kind {
        Acp => vec![
            said(text, json!({"type": "text", "text": text, "begins": true})),
            json!({"type": "end", "reason": "end_turn"}),
        ],
        Claude => {
            let result = |text: &str| json!({"type": "result", "subtype": "success", "is_error": false, "result": text});
            vec![result(before), result(text)]
        }
        Codex => vec![
            said(text, json!({"type": "item.completed", "item": {"type": "agent_message", "text": text}})),
            json!({"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}),
        ],
        Copilot => vec![
            said(text, json!({"type": "assistant.message", "data": {"content": text, "toolRequests": []}})),
            json!({"type": "result", "sessionId": "s", "exitCode": 0}),
        ],
        Gemini => vec![
            said(text, json!({"type": "message", "role": "assistant", "content": text})),
            json!({"type": "result", "status": "success", "stats": {"total_tokens": 2, "input_tokens": 1, "output_tokens": 1}}),
        ],
        Opencode => {
            let part = |kind: &str, part: Value| json!({"type": kind, "sessionID": "s", "part": part});
            vec![
                part("step_start", json!({})),
                said(text, part("text", json!({"text": text}))),
                part("step_finish", json!({"reason": "stop"})),
            ]
        }
        Qwen => {
            let says = json!({"type": "assistant", "message": {"content": [{"type": "text", "text": text}],
                "usage": {"input_tokens": 1, "output_tokens": 1}}});
            let last = if text.is_empty() { before } else { text };
            vec![
                said(text, says),
                json!({"type": "result", "subtype": "success", "is_error": false, "result": last}),
            ]
        }
        Command | Demo | Checks => panic!("{kind:?} has no transcript"),
    }
}

fn heard(kind: AgentKind, turns: &[Turn]) -> Account {
    let lines: Vec<String> = transcript(kind, turns).iter().map(Value::to_string).collect();
    account(kind, &Recording::of(&lines.join("\n")))
}

/// What the reviewer's model said before it looked is no review.
#[test]
fn what_was_said_before_a_tool_is_no_answer() {
    for kind in KINDS {
        let account = heard(kind, &[says("APPROVED: looks fine so far"), says("")]);
        assert_eq!(account.message, "", "{kind:?}");
        assert_eq!(account.heard.trouble, None, "{kind:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Law: the message is what was said after the last tool, and nothing else.
    #[test]
    fn the_message_is_the_last_word(texts in prop::collection::vec("[a-z]{0,6}", 1..5), denied: bool) {
        let turns: Vec<Turn> = texts.iter().map(|text| Turn { says: text.clone(), denied }).collect();
        for kind in KINDS {
            prop_assert_eq!(&heard(kind, &turns).message, texts.last().unwrap(), "{:?}", kind);
        }
    }
}

#[test]
fn half_of_a_pair_loses_nothing() {
    for kind in KINDS {
        let lines: Vec<String> =
            transcript(kind, &[says("look"), says("Done @ half")]).iter().map(Value::to_string).collect();
        let account = account(kind, &Recording::of(&lines.join("\n").replace('@', r"\ud83d")));
        assert_eq!(account.message, "Done \u{fffd} half", "{kind:?}");
        assert_eq!(account.heard.trouble, None, "{kind:?}");
    }
}

#[test]
fn however_much_is_said_a_message_and_refusals_are_bounded() {
    for kind in KINDS {
        let refused = vec![Turn { says: String::new(), denied: true }; 2500];
        let long = says(&"x".repeat(MAX_BYTES + 10));
        let account = heard(kind, &[refused, vec![long]].concat());
        assert!((MAX_BYTES + 1..MAX_BYTES + 4).contains(&account.message.len()), "{kind:?}");
        let most = if kind == Qwen { 0 } else { 1000 };
        assert_eq!(account.heard.denied.len(), most, "{kind:?}");
    }
}

#[test]
fn texts_of_one_answer_are_bounded_together() {
    let text = "x".repeat(MAX_BYTES / 4);
    let parts: [(AgentKind, Value); 3] = [
        (Acp, json!({"type": "text", "text": text, "begins": false})),
        (Gemini, json!({"type": "message", "role": "assistant", "content": text})),
        (Opencode, json!({"type": "text", "sessionID": "s", "part": {"text": text}})),
    ];
    for (kind, part) in parts {
        let mut lines: Vec<String> = transcript(kind, &[says("")]).iter().map(Value::to_string).collect();
        let end = lines.pop().unwrap();
        lines.extend(vec![part.to_string(); 5]);
        lines.push(end);
        let message = account(kind, &Recording::of(&lines.join("\n"))).message;
        assert!((MAX_BYTES + 1..MAX_BYTES + 4).contains(&message.len()), "{kind:?}: {}", message.len());
    }
}
