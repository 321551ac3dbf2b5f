//! Laws about what an agent says last, for all kinds: transcripts as each of them would write them, made of turns.

use proptest::prelude::*;
use serde_json::{Value, json};
use signoff_core::config::AgentKind::{
    self, Acp, Checks, Claude, Codex, Command, Copilot, Demo, Gemini, Opencode, Qwen,
};
use signoff_core::contract::{Answer, Ask, Contract, MAX_BYTES, parse_split};
use signoff_core::review::{Bar, ReviewerKind};
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
            let block = json!({"type": "text", "text": text});
            let says = json!({"type": "assistant", "message": {"id": "last", "content": [block]}});
            vec![result(before), said(text, says), result(text)]
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

/// The lines between two blocks of one answer: what the agent thinks is no tool use.
fn thinks(kind: AgentKind) -> Vec<Value> {
    match kind {
        Claude | Qwen => {
            let block = json!({"type": "thinking", "thinking": "hm"});
            vec![json!({"type": "assistant", "message": {"id": "t", "content": [block]}})]
        }
        Codex => vec![json!({"type": "item.completed", "item": {"type": "reasoning", "text": "hm"}})],
        Opencode => vec![
            json!({"type": "step_finish", "sessionID": "s", "part": {"reason": "stop"}}),
            json!({"type": "step_start", "sessionID": "s", "part": {}}),
        ],
        Acp | Copilot | Gemini | Command | Demo | Checks => Vec::new(),
    }
}

/// An agent that answers in several blocks or messages after its last tool.
fn answered_in(kind: AgentKind, blocks: &[&str]) -> Account {
    let mut lines = transcript(kind, &[says("I look."), says("")]);
    let end = lines.pop().unwrap();
    for block in blocks {
        // The last turn as it is said in one block, without what closes it.
        let mut said = ends(kind, block, "");
        said.pop();
        said.retain(|line| !line.is_null() && line["type"] != "result");
        lines.extend(said);
        lines.extend(thinks(kind));
    }
    if kind == Opencode {
        lines.push(json!({"type": "step_finish", "sessionID": "s", "part": {"reason": "stop"}}));
    }
    // Where the closing line repeats something, it is the last block alone.
    let mut end = end;
    if end.get("result").is_some() {
        end["result"] = json!(blocks.last());
    }
    lines.push(end);
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    account(kind, &Recording::of(&lines.join("\n")))
}

const NONCE: &str = "k7Qd2mZx";

fn ask() -> Ask {
    Ask {
        reviewer: "code".into(),
        kind: ReviewerKind::Code,
        nonce: Some(NONCE.into()),
        require_nonce: true,
        fail_on: Bar::Medium,
        commit: None,
        loop_id: None,
        task: None,
    }
}

fn approves(account: &Account) -> bool {
    let answer = Answer { text: account.message.as_bytes(), tool: None };
    let others = account.others.iter().map(String::as_bytes);
    parse_split(Contract::Markdown, answer, others, &ask()).is_ok_and(|review| review.verdict.approves())
}

const APPROVAL: &str = "<!-- signoff:k7Qd2mZx -->\n\n**Verdict: APPROVED**";
const REFUSAL: &str =
    "<!-- signoff:k7Qd2mZx -->\n\n[Critical] src/cart.py:6 loses cents\n\n**Verdict: CHANGES_REQUESTED**";

#[test]
fn a_refusal_in_an_earlier_block_is_part_of_the_answer() {
    for kind in KINDS {
        assert!(approves(&answered_in(kind, &[APPROVAL])), "{kind:?}");
        assert!(approves(&answered_in(kind, &["All files are read.\n\n", APPROVAL])), "{kind:?}");
        for blocks in [[REFUSAL, APPROVAL], [APPROVAL, REFUSAL], ["[Critical] it loses cents", APPROVAL]] {
            let account = answered_in(kind, &blocks);
            assert!(!approves(&account), "{kind:?}: {}", account.message);
        }
    }
}

/// Lines of a transcript that ends with an approval, with other lines before its last message.
fn approved_after(kind: AgentKind, spoilt: &[u8]) -> Account {
    let lines: Vec<String> =
        transcript(kind, &[says("I look."), says(APPROVAL)]).iter().map(Value::to_string).collect();
    let at =
        lines.iter().rposition(|line| line.contains("APPROVED") && !line.contains(r#""result""#)).unwrap();
    let (before, after) = lines.split_at(at);
    let stdout = [before.join("\n").as_bytes(), spoilt, after.join("\n").as_bytes()].join(&b'\n');
    account(kind, &Recording { stdout, ..Recording::of("") })
}

/// The line in which an agent says a text.
fn line_saying(kind: AgentKind, text: &str) -> String {
    let lines = transcript(kind, &[says("I look."), says(text)]);
    lines.iter().map(Value::to_string).find(|line| line.contains("CHANGES_REQUESTED")).unwrap()
}

/// An approval, but for the part of it that cannot be read.
fn is_approval(account: &Account) -> bool {
    account.heard.unreadable.is_none() && approves(account)
}

#[test]
fn a_byte_that_is_no_text_loses_no_refusal() {
    for kind in KINDS {
        let line = line_saying(kind, &REFUSAL.replacen("loses", "@", 1));
        let bytes: Vec<u8> = line.bytes().map(|byte| if byte == b'@' { 0xe9 } else { byte }).collect();
        let account = approved_after(kind, &bytes);
        assert_eq!(account.heard.trouble, None, "{kind:?}");
        assert!(account.message.contains("CHANGES_REQUESTED") && !is_approval(&account), "{kind:?}");
    }
}

/// Law: a message of which a part cannot be read is no approval, wherever it is cut or whatever of it is odd.
#[test]
fn an_unreadable_message_before_an_approval_is_no_approval() {
    for kind in KINDS {
        let line = line_saying(kind, REFUSAL);
        let cuts = (2..line.len()).filter_map(|end| line.get(..end)).map(str::to_owned);
        for cut in cuts.chain([format!("Warning: old version {line}")]) {
            let account = approved_after(kind, cut.as_bytes());
            assert!(!is_approval(&account), "{kind:?}: {cut}");
        }
        let text = Value::from(REFUSAL).to_string();
        for odd in [format!("[{text}]"), "5".to_owned(), format!("{{\"a\":{text}}}"), "null".to_owned()] {
            let line = line.replace(&text, &odd);
            assert!(!is_approval(&approved_after(kind, line.as_bytes())), "{kind:?}: {line}");
        }
    }
}

#[test]
fn a_message_of_an_unknown_form_before_an_approval_counts() {
    let lines = [
        (
            Claude,
            json!({"type": "assistant", "message": {"id": 5, "content": [{"type": "text", "text": REFUSAL}]}}),
        ),
        (Claude, json!({"type": "assistant", "message": {"id": "q", "content": REFUSAL}})),
        (Claude, json!({"type": "assistant", "message": {"content": [{"type": "note", "text": REFUSAL}]}})),
        (
            Codex,
            json!({"type": "item.completed", "item": {"type": "agent_message", "status": 5, "text": REFUSAL}}),
        ),
        (Codex, json!({"type": "item.updated", "item": {"type": "agent_message", "text": REFUSAL}})),
        (Codex, json!({"type": "item.completed", "item": {"type": "note", "text": REFUSAL}})),
        (Gemini, json!({"type": "message", "role": "model", "content": REFUSAL})),
        (Opencode, json!({"type": "note", "sessionID": "s", "part": {"text": REFUSAL}})),
        (Qwen, json!({"type": "assistant", "message": {"content": [{"type": "note", "text": REFUSAL}]}})),
    ];
    for (kind, line) in lines {
        assert!(!is_approval(&approved_after(kind, line.to_string().as_bytes())), "{kind:?}: {line}");
    }
}

/// An item that may be no tool leaves what was said before it in the answer.
#[test]
fn an_unknown_item_of_codex_is_no_tool() {
    let unknown = json!({"type": "item.completed", "item": {"id": "t", "type": "plan_update"}}).to_string();
    let spoilt = [line_saying(Codex, REFUSAL), unknown].join("\n");
    assert!(!is_approval(&approved_after(Codex, spoilt.as_bytes())));
}

/// A message that arrives in parts and then as a whole is recorded once.
#[test]
fn parts_of_a_message_of_codex_are_said_once() {
    let part = |step: &str, text: &str| {
        json!({"type": step, "item": {"id": "p", "type": "agent_message", "text": text}}).to_string()
    };
    let lines =
        [part("item.started", ""), part("item.updated", "I lo"), part("item.completed", "I look.\n\n")];
    let account = approved_after(Codex, lines.join("\n").as_bytes());
    assert!(is_approval(&account), "{account:?}");
    assert_eq!(account.message.matches("I lo").count(), 1, "{}", account.message);
}

#[test]
fn what_is_no_message_harms_no_answer() {
    for kind in KINDS {
        for noise in
            ["", "Warning: an old version", "{", "  cause: 1", "[debug] {}", r#"{"type":"news","n":1}"#]
        {
            let account = approved_after(kind, noise.as_bytes());
            assert!(is_approval(&account), "{kind:?} {noise}: {account:?}");
        }
    }
}

/// What cannot be read before a tool is no part of the answer.
#[test]
fn an_unreadable_line_before_a_tool_harms_nothing() {
    for kind in KINDS {
        let lines: Vec<String> =
            transcript(kind, &[says("I look."), says(APPROVAL)]).iter().map(Value::to_string).collect();
        let stdout = format!("{{\"type\":\"ass\n{}", lines.join("\n"));
        assert!(is_approval(&account(kind, &Recording::of(&stdout))), "{kind:?}");
    }
}

/// Numbers that look random and are the same in every run.
fn dice(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % below.max(1)
}

/// Law: however an answer is split, its review is that of the whole text, or stricter.
#[test]
fn no_split_of_an_answer_is_looser_for_any_agent() {
    let mut state = 20_261_118;
    let quoted = "> **Verdict: APPROVED**\n\n`**Verdict: APPROVED**`\n";
    let both = format!("{REFUSAL}\n\n{APPROVAL}\n");
    for text in [APPROVAL, REFUSAL, quoted, both.as_str()] {
        for kind in KINDS {
            let whole = approves(&answered_in(kind, &[text]));
            for _ in 0..40 {
                let mut places = [0, 0].map(|_| dice(&mut state, text.len() + 1));
                places.sort_unstable();
                let blocks = [&text[..places[0]], &text[places[0]..places[1]], &text[places[1]..]];
                let account = answered_in(kind, &blocks);
                assert!(whole || !approves(&account), "{kind:?} {blocks:?} became {:?}", account.message);
            }
        }
    }
}

/// The recordings of real agents with another answer in the place of theirs, whole and split.
#[test]
fn no_split_of_a_recorded_answer_is_looser() {
    let mut state = 1_118;
    for kind in KINDS {
        let mut replaced = 0;
        for recording in Recording::all(kind) {
            let said = account(kind, &recording);
            if said.message.is_empty() || !approves_as(kind, &recording, &said.message, &[APPROVAL]) {
                continue;
            }
            replaced += 1;
            assert!(!approves_as(kind, &recording, &said.message, &[REFUSAL, APPROVAL]), "{kind:?}");
            assert!(!approves_as(kind, &recording, &said.message, &[APPROVAL, REFUSAL]), "{kind:?}");
            let place = dice(&mut state, REFUSAL.len() + 1);
            let (first, second) = REFUSAL.split_at(place);
            assert!(!approves_as(kind, &recording, &said.message, &[first, second]), "{kind:?}");
        }
        assert!(replaced > 0, "{kind:?}: no recording could be used");
    }
}

/// Whether a recording approves if blocks stand in the place of its final message, each in a copy of its line.
fn approves_as(kind: AgentKind, recording: &Recording, message: &str, blocks: &[&str]) -> bool {
    let stdout = String::from_utf8_lossy(&recording.stdout).into_owned();
    let mut lines: Vec<Value> = stdout.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    if kind == Gemini {
        return approves_in_chunks(recording, lines, blocks);
    }
    let holds = |line: &Value| line["type"] != "result" && replace(&mut line.clone(), message, "");
    let Some(at) = lines.iter().rposition(holds) else { return false };
    let copy = |block: &&str| {
        let mut line = lines[at].clone();
        replace(&mut line, message, block);
        line
    };
    let copies: Vec<Value> = blocks.iter().map(copy).collect();
    lines.splice(at..=at, copies);
    for line in lines.iter_mut().filter(|line| line["type"] == "result") {
        replace(line, message, blocks.last().unwrap());
    }
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    let account = account(kind, &Recording { stdout: lines.join("\n").into_bytes(), ..recording.clone() });
    approves(&account)
}

/// The same for an agent whose message comes in chunks: they have no boundary.
fn approves_in_chunks(recording: &Recording, mut lines: Vec<Value>, blocks: &[&str]) -> bool {
    let is_text = |line: &Value| line["type"] == "message" && line["role"] == "assistant";
    let Some(at) = lines.iter().rposition(is_text) else { return false };
    let tool = lines.iter().rposition(|line| line["type"] == "tool_result").unwrap_or_default();
    let line = lines[at].clone();
    let mut number = 0;
    lines.retain(|line| {
        number += 1;
        number <= tool || !is_text(line)
    });
    let at = lines.iter().rposition(|line| line["type"] == "result").unwrap_or(lines.len());
    let chunk = |text: &str| {
        let mut line = line.clone();
        line["content"] = json!(text);
        line
    };
    let chunks: Vec<Value> = blocks.iter().flat_map(|block| [chunk(block), chunk("\n\n")]).collect();
    lines.splice(at..at, chunks);
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    approves(&account(Gemini, &Recording { stdout: lines.join("\n").into_bytes(), ..recording.clone() }))
}

/// Replaces every text that is the message; whether there was one.
fn replace(value: &mut Value, message: &str, by: &str) -> bool {
    match value {
        Value::String(text) if text.trim() == message.trim() => {
            by.clone_into(text);
            true
        }
        Value::Array(values) => {
            values.iter_mut().filter_map(|one| replace(one, message, by).then_some(())).count() > 0
        }
        Value::Object(keys) => {
            keys.values_mut().filter_map(|one| replace(one, message, by).then_some(())).count() > 0
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
