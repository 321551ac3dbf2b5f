//! Converts script actions to calls of the tools that the client declared.

use serde_json::{Map, Value, json};

use super::reply::{ToolCall, ToolInput};
use super::request::{ModelRequest, ToolDefinition, ToolForm};
use super::sample::sample;
use super::script::ModelAction;

/// An action that no declared tool supports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct UndeclaredTool(pub String);

// Known names of arguments and tools, in order of preference.
const PATH: &[&str] = &["file_path", "filePath", "filepath", "absolute_path", "path", "filename", "target_file"];
const CONTENT: &[&str] = &["content", "file_text", "contents", "text"];
const COMMAND: &[&str] = &["command", "cmd", "script"];
const WRITERS: &[&str] = &["write", "write_file", "create", "create_file", "write_to_file"];
const READERS: &[&str] = &["read", "read_file", "view", "view_file"];
const SHELLS: &[&str] = &[
    "bash",
    "run_shell_command",
    "shell",
    "exec_command",
    "shell_command",
    "local_shell",
    "execute_command",
    "terminal",
];

/// The tool call for an action with this client's tools.
pub(super) fn call(
    action: &ModelAction,
    request: &ModelRequest,
    cwd: Option<&str>,
) -> Result<ToolCall, UndeclaredTool> {
    let tools = request.tools.as_slice();
    match action {
        ModelAction::Write { path, content } => write(tools, &absolute(path, cwd), content),
        ModelAction::Read { path } => read(tools, &absolute(path, cwd)),
        ModelAction::Shell { command } => {
            shell(tools, command).ok_or_else(|| UndeclaredTool(format!("shell: {command}")))
        }
        ModelAction::Mcp { tool, args } => mcp(request, tool, args),
        ModelAction::Exact { name, args } => {
            let tool = tools.iter().find(|tool| tool.name == *name);
            tool.map(|tool| call_with(tool, args)).ok_or_else(|| UndeclaredTool(name.clone()))
        }
        ModelAction::Insist { name, args } => {
            let unknown = ToolDefinition { name: name.clone(), ..ToolDefinition::default() };
            Ok(call_with(tools.iter().find(|tool| tool.name == *name).unwrap_or(&unknown), args))
        }
    }
}

/// Clients require absolute paths.
fn absolute(path: &str, cwd: Option<&str>) -> String {
    match cwd {
        Some(cwd) if !path.starts_with('/') => format!("{}/{path}", cwd.trim_end_matches('/')),
        _ => path.to_owned(),
    }
}

fn write(tools: &[ToolDefinition], path: &str, content: &str) -> Result<ToolCall, UndeclaredTool> {
    let known = [(PATH, path), (CONTENT, content)];
    call_by_name(tools, WRITERS, &known)
        .or_else(|| patch(tools, path, content))
        .or_else(|| shell(tools, &format!("cat > {} <<'SCRIPTED'\n{}SCRIPTED\n", quoted(path), lines(content))))
        .ok_or_else(|| UndeclaredTool(format!("write: {path}")))
}

fn read(tools: &[ToolDefinition], path: &str) -> Result<ToolCall, UndeclaredTool> {
    call_by_name(tools, READERS, &[(PATH, path)])
        .or_else(|| shell(tools, &format!("cat {}", quoted(path))))
        .ok_or_else(|| UndeclaredTool(format!("read: {path}")))
}

fn shell(tools: &[ToolDefinition], command: &str) -> Option<ToolCall> {
    call_by_name(tools, SHELLS, &[(COMMAND, command)])
}

/// Creates a file with `apply_patch`, which requires complete lines.
fn patch(tools: &[ToolDefinition], path: &str, content: &str) -> Option<ToolCall> {
    let tool = tools.iter().find(|tool| tool.name == "apply_patch")?;
    let added: String = lines(content).lines().map(|line| format!("+{line}\n")).collect();
    let patch = format!("*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n");
    let name = ["input", "patch", "patchText"].into_iter().find(|name| tool.property(name).is_some());
    let input = match tool.form {
        ToolForm::Freeform => ToolInput::Text(patch),
        ToolForm::Json | ToolForm::Search => ToolInput::Json(json!({ (name.unwrap_or("input")): patch })),
    };
    Some(ToolCall { tool: tool.clone(), input })
}

/// Finds an MCP tool. Clients add the server to its name: `mcp__server__tool`, `mcp_server_tool`, `server_tool`,
/// `server-tool`, or a namespace.
fn mcp(request: &ModelRequest, name: &str, args: &Value) -> Result<ToolCall, UndeclaredTool> {
    let is_decorated = |tool: &&ToolDefinition| {
        tool.name.strip_suffix(name).is_some_and(|prefix| prefix.ends_with(|c: char| !c.is_alphanumeric()))
    };
    let exactly = request.tools.iter().find(|tool| tool.name == name);
    if let Some(tool) = exactly.or_else(|| request.tools.iter().find(is_decorated)) {
        return Ok(call_with(tool, args));
    }
    let search = request.tools.iter().find(|tool| tool.form == ToolForm::Search && !request.searched);
    let search = search.ok_or_else(|| UndeclaredTool(format!("mcp: {name}")))?;
    arguments(search, &[(&["query"], name)])
        .map(|args| ToolCall { tool: search.clone(), input: ToolInput::Json(args) })
        .ok_or_else(|| UndeclaredTool(format!("mcp: {name}")))
}

fn call_with(tool: &ToolDefinition, args: &Value) -> ToolCall {
    let input = match (tool.form, args) {
        (ToolForm::Freeform, Value::String(text)) => ToolInput::Text(text.clone()),
        (ToolForm::Freeform, other) => ToolInput::Text(other.to_string()),
        (ToolForm::Json | ToolForm::Search, Value::Null) => ToolInput::Json(json!({})),
        (ToolForm::Json | ToolForm::Search, args) => ToolInput::Json(args.clone()),
    };
    ToolCall { tool: tool.clone(), input }
}

/// The first tool with one of these names that accepts all given arguments.
fn call_by_name(tools: &[ToolDefinition], names: &[&str], known: &[(&[&str], &str)]) -> Option<ToolCall> {
    let each = names.iter().flat_map(|name| tools.iter().filter(|tool| tool.name.eq_ignore_ascii_case(name)));
    each.filter(|tool| tool.form == ToolForm::Json)
        .find_map(|tool| Some(ToolCall { tool: tool.clone(), input: ToolInput::Json(arguments(tool, known)?) }))
}

/// The arguments under the names of the tool's schema. Other required arguments get a sample value.
fn arguments(tool: &ToolDefinition, known: &[(&[&str], &str)]) -> Option<Value> {
    let mut args = Map::new();
    for (aliases, value) in known {
        let (name, schema) = aliases.iter().find_map(|name| Some((*name, tool.property(name)?)))?;
        let is_list = schema["type"] == "array";
        args.insert(name.to_owned(), if is_list { json!(["bash", "-lc", value]) } else { json!(value) });
    }
    for name in tool.required() {
        if !args.contains_key(name) {
            args.insert(name.to_owned(), sample(&tool.schema["properties"][name]));
        }
    }
    Some(Value::Object(args))
}

fn lines(content: &str) -> String {
    if content.is_empty() || content.ends_with('\n') { content.to_owned() } else { format!("{content}\n") }
}

fn quoted(path: &str) -> String {
    format!("'{}'", path.replace('\'', r"'\''"))
}
