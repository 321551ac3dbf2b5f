//! Properties of the final message, for all kinds of agents. The transcripts are generated from turns, in the format of
//! each agent.

use proptest::prelude::*;
use serde_json::{Value, json};
use signoff_core::contract::{Contract, MAX_BYTES, ReviewAnswer, ReviewRequest, parse_split};
use signoff_core::review::{FailThreshold, ReviewerKind};
use signoff_core::settings::AgentKind::{
    self, Acp, Checks, Claude, Codex, Command, Copilot, Demo, Gemini, Opencode, Qwen,
};
use signoff_engine::agent::AgentResult;

use crate::agents::replay::{Recording, parse_recording};

const KINDS: [AgentKind; 7] = [Acp, Claude, Codex, Copilot, Gemini, Opencode, Qwen];

/// One response of a model: a text and a tool request. A response without a tool request is the last one.
#[derive(Debug, Clone)]
struct AnswerTurn {
    says: String,
    /// The tool request is denied.
    denied: bool,
}

fn turn(text: &str) -> AnswerTurn {
    AnswerTurn { says: text.to_owned(), denied: false }
}

/// Generates a transcript. All turns but the last use a tool.
fn transcript(kind: AgentKind, turns: &[AnswerTurn]) -> Vec<Value> {
    let (last, before) = turns.split_last().unwrap();
    let mut lines = start_lines(kind);
    for (number, turn) in before.iter().enumerate() {
        lines.extend(tool_turn_lines(kind, turn, number));
    }
    lines.extend(end_lines(kind, &last.says, before.last().map_or("", |turn| &turn.says)));
    lines.retain(|line| !line.is_null());
    lines
}

fn start_lines(kind: AgentKind) -> Vec<Value> {
    match kind {
        Acp => vec![json!({"type": "session", "id": "s"})],
        Claude => vec![json!({"type": "system", "subtype": "init", "session_id": "s"})],
        Codex => vec![json!({"type": "thread.started", "thread_id": "s"}), json!({"type": "turn.started"})],
        Gemini => vec![json!({"type": "init", "session_id": "s"})],
        Qwen => vec![json!({"type": "system", "subtype": "init", "session_id": "s"})],
        Copilot | Opencode | Command | Demo | Checks => Vec::new(),
    }
}

/// Returns the line, or `Null` if the text is empty.
fn unless_empty(text: &str, line: Value) -> Value {
    if text.is_empty() { Value::Null } else { line }
}

fn tool_turn_lines(kind: AgentKind, turn: &AnswerTurn, number: usize) -> Vec<Value> {
    let AnswerTurn { says: text, denied } = turn;
    let id = number.to_string();
    match kind {
        Acp => {
            let tool = if *denied { "denied" } else { "tool" };
            let used = json!({"type": tool, "name": "shell", "tool": "shell", "about": "ls"});
            vec![unless_empty(text, json!({"type": "text", "text": text, "begins": true})), used]
        }
        Claude => {
            let block = |block: Value| json!({"type": "assistant", "message": {"id": id, "content": [block]}});
            let answer = if *denied { "No such tool available" } else { "a" };
            let result = json!({"type": "tool_result", "tool_use_id": id, "is_error": denied, "content": answer});
            vec![
                unless_empty(text, block(json!({"type": "text", "text": text}))),
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
            let text =
                unless_empty(text, json!({"type": "item.completed", "item": {"type": "agent_message", "text": text}}));
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
                unless_empty(text, json!({"type": "message", "role": "assistant", "content": text})),
                json!({"type": "tool_use", "tool_name": "read_file", "tool_id": id, "parameters": {}}),
                json!({"type": "tool_result", "tool_id": id, "status": status, "error": error}),
            ]
        }
        Opencode => {
            let error = if *denied { "The user rejected permission to use it" } else { "" };
            let part = |kind: &str, part: Value| json!({"type": kind, "sessionID": "s", "part": part});
            vec![
                part("step_start", json!({})),
                unless_empty(text, part("text", json!({"text": text}))),
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
                unless_empty(text, block(json!({"type": "text", "text": text}))),
                block(json!({"type": "tool_use", "id": id, "name": "glob", "input": {}})),
                json!({"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": id}]}}),
            ]
        }
        Command | Demo | Checks => panic!("{kind:?} has no transcript"),
    }
}

/// Generates the last turn and the closing line. An agent that repeats its message also repeats the text `before` it.
fn end_lines(kind: AgentKind, text: &str, before: &str) -> Vec<Value> {
    match kind {
        Acp => vec![
            unless_empty(text, json!({"type": "text", "text": text, "begins": true})),
            json!({"type": "end", "reason": "end_turn"}),
        ],
        Claude => {
            let result =
                |text: &str| json!({"type": "result", "subtype": "success", "is_error": false, "result": text});
            let block = json!({"type": "text", "text": text});
            let says = json!({"type": "assistant", "message": {"id": "last", "content": [block]}});
            vec![result(before), unless_empty(text, says), result(text)]
        }
        Codex => vec![
            unless_empty(text, json!({"type": "item.completed", "item": {"type": "agent_message", "text": text}})),
            json!({"type": "turn.completed", "usage": {"input_tokens": 1, "output_tokens": 1}}),
        ],
        Copilot => vec![
            unless_empty(text, json!({"type": "assistant.message", "data": {"content": text, "toolRequests": []}})),
            json!({"type": "result", "sessionId": "s", "exitCode": 0}),
        ],
        Gemini => vec![
            unless_empty(text, json!({"type": "message", "role": "assistant", "content": text})),
            json!({"type": "result", "status": "success", "stats": {"total_tokens": 2, "input_tokens": 1, "output_tokens": 1}}),
        ],
        Opencode => {
            let part = |kind: &str, part: Value| json!({"type": kind, "sessionID": "s", "part": part});
            vec![
                part("step_start", json!({})),
                unless_empty(text, part("text", json!({"text": text}))),
                part("step_finish", json!({"reason": "stop"})),
            ]
        }
        Qwen => {
            let says = json!({"type": "assistant", "message": {"content": [{"type": "text", "text": text}],
                "usage": {"input_tokens": 1, "output_tokens": 1}}});
            let last = if text.is_empty() { before } else { text };
            vec![
                unless_empty(text, says),
                json!({"type": "result", "subtype": "success", "is_error": false, "result": last}),
            ]
        }
        Command | Demo | Checks => panic!("{kind:?} has no transcript"),
    }
}

fn parse_turns(kind: AgentKind, turns: &[AnswerTurn]) -> AgentResult {
    let lines: Vec<String> = transcript(kind, turns).iter().map(Value::to_string).collect();
    parse_recording(kind, &Recording::from_stdout(&lines.join("\n")))
}

/// Text before the last tool use is no review.
#[test]
fn text_before_a_tool_is_no_answer() {
    for kind in KINDS {
        let result = parse_turns(kind, &[turn("APPROVED: looks fine so far"), turn("")]);
        assert_eq!(result.message, "", "{kind:?}");
        assert_eq!(result.summary.error, None, "{kind:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Property: the message is exactly the text after the last tool use.
    #[test]
    fn the_message_is_the_text_after_the_last_tool(texts in prop::collection::vec("[a-z]{0,6}", 1..5), denied: bool) {
        let turns: Vec<AnswerTurn> = texts.iter().map(|text| AnswerTurn { says: text.clone(), denied }).collect();
        for kind in KINDS {
            prop_assert_eq!(&parse_turns(kind, &turns).message, texts.last().unwrap(), "{:?}", kind);
        }
    }
}

#[test]
fn a_lone_surrogate_loses_no_text() {
    for kind in KINDS {
        let lines: Vec<String> =
            transcript(kind, &[turn("look"), turn("Done @ half")]).iter().map(Value::to_string).collect();
        let result = parse_recording(kind, &Recording::from_stdout(&lines.join("\n").replace('@', r"\ud83d")));
        assert_eq!(result.message, "Done \u{fffd} half", "{kind:?}");
        assert_eq!(result.summary.error, None, "{kind:?}");
    }
}

#[test]
fn messages_and_denied_tools_are_bounded() {
    for kind in KINDS {
        let refused = vec![AnswerTurn { says: String::new(), denied: true }; 2500];
        let long = turn(&"x".repeat(MAX_BYTES + 10));
        let result = parse_turns(kind, &[refused, vec![long]].concat());
        assert!((MAX_BYTES + 1..MAX_BYTES + 4).contains(&result.message.len()), "{kind:?}");
        let most = if kind == Qwen { 0 } else { 1000 };
        assert_eq!(result.summary.denied.len(), most, "{kind:?}");
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
        let mut lines: Vec<String> = transcript(kind, &[turn("")]).iter().map(Value::to_string).collect();
        let end = lines.pop().unwrap();
        lines.extend(vec![part.to_string(); 5]);
        lines.push(end);
        let message = parse_recording(kind, &Recording::from_stdout(&lines.join("\n"))).message;
        assert!((MAX_BYTES + 1..MAX_BYTES + 4).contains(&message.len()), "{kind:?}: {}", message.len());
    }
}

/// Generates the lines between two blocks of one answer: thinking is no tool use.
fn thinking_lines(kind: AgentKind) -> Vec<Value> {
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

/// Parses an answer that comes in several blocks or messages after the last tool use.
fn parse_blocks(kind: AgentKind, blocks: &[&str]) -> AgentResult {
    let mut lines = transcript(kind, &[turn("I look."), turn("")]);
    let end = lines.pop().unwrap();
    for block in blocks {
        // The last turn as one block, without the closing line.
        let mut block_lines = end_lines(kind, block, "");
        block_lines.pop();
        block_lines.retain(|line| !line.is_null() && line["type"] != "result");
        lines.extend(block_lines);
        lines.extend(thinking_lines(kind));
    }
    if kind == Opencode {
        lines.push(json!({"type": "step_finish", "sessionID": "s", "part": {"reason": "stop"}}));
    }
    // A closing line that repeats the message repeats only the last block.
    let mut end = end;
    if end.get("result").is_some() {
        end["result"] = json!(blocks.last());
    }
    lines.push(end);
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    parse_recording(kind, &Recording::from_stdout(&lines.join("\n")))
}

const NONCE: &str = "k7Qd2mZx";

fn review_request() -> ReviewRequest {
    ReviewRequest {
        reviewer: "code".into(),
        kind: ReviewerKind::Code,
        nonce: Some(NONCE.into()),
        require_nonce: true,
        fail_on: FailThreshold::Medium,
        commit: None,
        loop_id: None,
        task: None,
    }
}

fn approves(result: &AgentResult) -> bool {
    let answer = ReviewAnswer { text: result.message.as_bytes(), tool: None };
    let others = result.alternatives.iter().map(String::as_bytes);
    parse_split(Contract::Markdown, answer, others, &review_request()).is_ok_and(|review| review.verdict.approves())
}

const APPROVAL: &str = "<!-- signoff:k7Qd2mZx -->\n\n**Verdict: APPROVED**";
const REFUSAL: &str =
    "<!-- signoff:k7Qd2mZx -->\n\n[Critical] src/cart.py:6 loses cents\n\n**Verdict: CHANGES_REQUESTED**";

#[test]
fn a_refusal_in_an_earlier_block_is_part_of_the_answer() {
    for kind in KINDS {
        assert!(approves(&parse_blocks(kind, &[APPROVAL])), "{kind:?}");
        assert!(approves(&parse_blocks(kind, &["All files are read.\n\n", APPROVAL])), "{kind:?}");
        for blocks in [[REFUSAL, APPROVAL], [APPROVAL, REFUSAL], ["[Critical] it loses cents", APPROVAL]] {
            let result = parse_blocks(kind, &blocks);
            assert!(!approves(&result), "{kind:?}: {}", result.message);
        }
    }
}

/// Parses a transcript that ends with an approval, with `spoilt` lines inserted before its last message.
fn parse_with_inserted(kind: AgentKind, spoilt: &[u8]) -> AgentResult {
    let lines: Vec<String> =
        transcript(kind, &[turn("I look."), turn(APPROVAL)]).iter().map(Value::to_string).collect();
    let at = lines.iter().rposition(|line| line.contains("APPROVED") && !line.contains(r#""result""#)).unwrap();
    let (before, after) = lines.split_at(at);
    let stdout = [before.join("\n").as_bytes(), spoilt, after.join("\n").as_bytes()].join(&b'\n');
    parse_recording(kind, &Recording { stdout, ..Recording::from_stdout("") })
}

/// Returns the transcript line that contains the text.
fn line_with(kind: AgentKind, text: &str) -> String {
    let lines = transcript(kind, &[turn("I look."), turn(text)]);
    lines.iter().map(Value::to_string).find(|line| line.contains("CHANGES_REQUESTED")).unwrap()
}

/// Returns whether this is an approval without an unreadable part.
fn is_approval(result: &AgentResult) -> bool {
    result.summary.unread_line.is_none() && approves(result)
}

#[test]
fn an_invalid_byte_hides_no_refusal() {
    for kind in KINDS {
        let line = line_with(kind, &REFUSAL.replacen("loses", "@", 1));
        let bytes: Vec<u8> = line.bytes().map(|byte| if byte == b'@' { 0xe9 } else { byte }).collect();
        let result = parse_with_inserted(kind, &bytes);
        assert_eq!(result.summary.error, None, "{kind:?}");
        assert!(result.message.contains("CHANGES_REQUESTED") && !is_approval(&result), "{kind:?}");
    }
}

/// Property: a message with an unreadable part is no approval, wherever it is cut or malformed.
#[test]
fn an_unreadable_message_before_an_approval_is_no_approval() {
    for kind in KINDS {
        let line = line_with(kind, REFUSAL);
        let cuts = (2..line.len()).filter_map(|end| line.get(..end)).map(str::to_owned);
        for cut in cuts.chain([format!("Warning: old version {line}")]) {
            let result = parse_with_inserted(kind, cut.as_bytes());
            assert!(!is_approval(&result), "{kind:?}: {cut}");
        }
        let text = Value::from(REFUSAL).to_string();
        for odd in [format!("[{text}]"), "5".to_owned(), format!("{{\"a\":{text}}}"), "null".to_owned()] {
            let line = line.replace(&text, &odd);
            assert!(!is_approval(&parse_with_inserted(kind, line.as_bytes())), "{kind:?}: {line}");
        }
    }
}

#[test]
fn a_message_of_an_unknown_form_before_an_approval_counts() {
    let lines = [
        (Claude, json!({"type": "assistant", "message": {"id": 5, "content": [{"type": "text", "text": REFUSAL}]}})),
        (Claude, json!({"type": "assistant", "message": {"id": "q", "content": REFUSAL}})),
        (Claude, json!({"type": "assistant", "message": {"content": [{"type": "note", "text": REFUSAL}]}})),
        (Codex, json!({"type": "item.completed", "item": {"type": "agent_message", "status": 5, "text": REFUSAL}})),
        (Codex, json!({"type": "item.updated", "item": {"type": "agent_message", "text": REFUSAL}})),
        (Codex, json!({"type": "item.completed", "item": {"type": "note", "text": REFUSAL}})),
        (Gemini, json!({"type": "message", "role": "model", "content": REFUSAL})),
        (Opencode, json!({"type": "note", "sessionID": "s", "part": {"text": REFUSAL}})),
        (Qwen, json!({"type": "assistant", "message": {"content": [{"type": "note", "text": REFUSAL}]}})),
    ];
    for (kind, line) in lines {
        assert!(!is_approval(&parse_with_inserted(kind, line.to_string().as_bytes())), "{kind:?}: {line}");
    }
}

/// An item that is possibly no tool use keeps the text before it in the answer.
#[test]
fn an_unknown_item_of_codex_is_no_tool() {
    let unknown = json!({"type": "item.completed", "item": {"id": "t", "type": "plan_update"}}).to_string();
    let spoilt = [line_with(Codex, REFUSAL), unknown].join("\n");
    assert!(!is_approval(&parse_with_inserted(Codex, spoilt.as_bytes())));
}

/// A message that arrives in parts and then as a whole is recorded once.
#[test]
fn partial_messages_of_codex_are_counted_once() {
    let part = |step: &str, text: &str| {
        json!({"type": step, "item": {"id": "p", "type": "agent_message", "text": text}}).to_string()
    };
    let lines = [part("item.started", ""), part("item.updated", "I lo"), part("item.completed", "I look.\n\n")];
    let result = parse_with_inserted(Codex, lines.join("\n").as_bytes());
    assert!(is_approval(&result), "{result:?}");
    assert_eq!(result.message.matches("I lo").count(), 1, "{}", result.message);
}

#[test]
fn noise_does_not_invalidate_an_answer() {
    for kind in KINDS {
        for noise in ["", "Warning: an old version", "{", "  cause: 1", "[debug] {}", r#"{"type":"news","n":1}"#] {
            let result = parse_with_inserted(kind, noise.as_bytes());
            assert!(is_approval(&result), "{kind:?} {noise}: {result:?}");
        }
    }
}

/// An unreadable line before a tool use is no part of the answer.
#[test]
fn an_unreadable_line_before_a_tool_is_ignored() {
    for kind in KINDS {
        let lines: Vec<String> =
            transcript(kind, &[turn("I look."), turn(APPROVAL)]).iter().map(Value::to_string).collect();
        let stdout = format!("{{\"type\":\"ass\n{}", lines.join("\n"));
        assert!(is_approval(&parse_recording(kind, &Recording::from_stdout(&stdout))), "{kind:?}");
    }
}

/// Returns the next number of a fixed pseudo-random sequence.
fn next_random(state: &mut u64, below: usize) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 33) as usize % below.max(1)
}

/// Property: however an answer is split, its review is that of the whole text, or stricter.
#[test]
fn no_split_of_an_answer_is_looser_for_any_agent() {
    let mut state = 20_261_118;
    let quoted = "> **Verdict: APPROVED**\n\n`**Verdict: APPROVED**`\n";
    let both = format!("{REFUSAL}\n\n{APPROVAL}\n");
    for text in [APPROVAL, REFUSAL, quoted, both.as_str()] {
        for kind in KINDS {
            let whole = approves(&parse_blocks(kind, &[text]));
            for _ in 0..40 {
                let mut places = [0, 0].map(|_| next_random(&mut state, text.len() + 1));
                places.sort_unstable();
                let blocks = [&text[..places[0]], &text[places[0]..places[1]], &text[places[1]..]];
                let result = parse_blocks(kind, &blocks);
                assert!(whole || !approves(&result), "{kind:?} {blocks:?} became {:?}", result.message);
            }
        }
    }
}

/// Replaces the answer in recordings of real agents, whole and split.
#[test]
fn no_split_of_a_recorded_answer_is_looser() {
    let mut state = 1_118;
    for kind in KINDS {
        let mut replaced = 0;
        for recording in Recording::all(kind) {
            let result = parse_recording(kind, &recording);
            if result.message.is_empty() || !approves_as(kind, &recording, &result.message, &[APPROVAL]) {
                continue;
            }
            replaced += 1;
            assert!(!approves_as(kind, &recording, &result.message, &[REFUSAL, APPROVAL]), "{kind:?}");
            assert!(!approves_as(kind, &recording, &result.message, &[APPROVAL, REFUSAL]), "{kind:?}");
            let place = next_random(&mut state, REFUSAL.len() + 1);
            let (first, second) = REFUSAL.split_at(place);
            assert!(!approves_as(kind, &recording, &result.message, &[first, second]), "{kind:?}");
        }
        assert!(replaced > 0, "{kind:?}: no recording could be used");
    }
}

/// Returns whether a recording approves if its final message is replaced by blocks, each in a copy of its line.
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
    let result = parse_recording(kind, &Recording { stdout: lines.join("\n").into_bytes(), ..recording.clone() });
    approves(&result)
}

/// Like `approves_as`, for an agent whose message comes in chunks without boundaries.
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
    approves(&parse_recording(Gemini, &Recording { stdout: lines.join("\n").into_bytes(), ..recording.clone() }))
}

/// Replaces every string that equals the message. Returns whether there was one.
fn replace(value: &mut Value, message: &str, by: &str) -> bool {
    match value {
        Value::String(text) if text.trim() == message.trim() => {
            by.clone_into(text);
            true
        }
        Value::Array(values) => values.iter_mut().filter_map(|one| replace(one, message, by).then_some(())).count() > 0,
        Value::Object(keys) => keys.values_mut().filter_map(|one| replace(one, message, by).then_some(())).count() > 0,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
