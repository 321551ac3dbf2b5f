//! What a script wants done, as a call of a tool that the client declared.

use serde_json::{Map, Value, json};

use super::reply::{Call, Input};
use super::request::{Form, Request, Tool};
use super::sample::sample;
use super::script::Action;

/// What no declared tool can do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Undeclared(pub String);

// Names of arguments, and parts of tools' names, best first.
const PATH: &[&str] =
    &["file_path", "filePath", "filepath", "absolute_path", "path", "filename", "target_file"];
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

/// The call that does this for this client.
pub(super) fn call(action: &Action, request: &Request, cwd: Option<&str>) -> Result<Call, Undeclared> {
    let tools = request.tools.as_slice();
    match action {
        Action::Write { path, content } => write(tools, &absolute(path, cwd), content),
        Action::Read { path } => read(tools, &absolute(path, cwd)),
        Action::Shell { command } => {
            shell(tools, command).ok_or_else(|| Undeclared(format!("shell: {command}")))
        }
        Action::Mcp { tool, args } => mcp(request, tool, args),
        Action::Exact { name, args } => {
            let tool = tools.iter().find(|tool| tool.name == *name);
            tool.map(|tool| with(tool, args)).ok_or_else(|| Undeclared(name.clone()))
        }
        Action::Insist { name, args } => {
            let unknown = Tool { name: name.clone(), ..Tool::default() };
            Ok(with(tools.iter().find(|tool| tool.name == *name).unwrap_or(&unknown), args))
        }
    }
}

/// Clients want whole paths.
fn absolute(path: &str, cwd: Option<&str>) -> String {
    match cwd {
        Some(cwd) if !path.starts_with('/') => format!("{}/{path}", cwd.trim_end_matches('/')),
        _ => path.to_owned(),
    }
}

fn write(tools: &[Tool], path: &str, content: &str) -> Result<Call, Undeclared> {
    let known = [(PATH, path), (CONTENT, content)];
    named(tools, WRITERS, &known)
        .or_else(|| patch(tools, path, content))
        .or_else(|| {
            shell(tools, &format!("cat > {} <<'SCRIPTED'\n{}SCRIPTED\n", quoted(path), lines(content)))
        })
        .ok_or_else(|| Undeclared(format!("write: {path}")))
}

fn read(tools: &[Tool], path: &str) -> Result<Call, Undeclared> {
    named(tools, READERS, &[(PATH, path)])
        .or_else(|| shell(tools, &format!("cat {}", quoted(path))))
        .ok_or_else(|| Undeclared(format!("read: {path}")))
}

fn shell(tools: &[Tool], command: &str) -> Option<Call> {
    named(tools, SHELLS, &[(COMMAND, command)])
}

/// A file made anew by `apply_patch`, which wants whole lines.
fn patch(tools: &[Tool], path: &str, content: &str) -> Option<Call> {
    let tool = tools.iter().find(|tool| tool.name == "apply_patch")?;
    let added: String = lines(content).lines().map(|line| format!("+{line}\n")).collect();
    let patch = format!("*** Begin Patch\n*** Add File: {path}\n{added}*** End Patch\n");
    let name = ["input", "patch", "patchText"].into_iter().find(|name| tool.property(name).is_some());
    let input = match tool.form {
        Form::Freeform => Input::Text(patch),
        Form::Json | Form::Search => Input::Json(json!({ (name.unwrap_or("input")): patch })),
    };
    Some(Call { tool: tool.clone(), input })
}

/// Clients name a server's tools after the server: `mcp__server__tool`, `mcp_server_tool`, `server_tool`,
/// `server-tool`, or within a namespace.
fn mcp(request: &Request, name: &str, args: &Value) -> Result<Call, Undeclared> {
    let is_decorated = |tool: &&Tool| {
        tool.name.strip_suffix(name).is_some_and(|prefix| prefix.ends_with(|c: char| !c.is_alphanumeric()))
    };
    let exactly = request.tools.iter().find(|tool| tool.name == name);
    if let Some(tool) = exactly.or_else(|| request.tools.iter().find(is_decorated)) {
        return Ok(with(tool, args));
    }
    let search = request.tools.iter().find(|tool| tool.form == Form::Search && !request.searched);
    let search = search.ok_or_else(|| Undeclared(format!("mcp: {name}")))?;
    arguments(search, &[(&["query"], name)])
        .map(|args| Call { tool: search.clone(), input: Input::Json(args) })
        .ok_or_else(|| Undeclared(format!("mcp: {name}")))
}

fn with(tool: &Tool, args: &Value) -> Call {
    let input = match (tool.form, args) {
        (Form::Freeform, Value::String(text)) => Input::Text(text.clone()),
        (Form::Freeform, other) => Input::Text(other.to_string()),
        (Form::Json | Form::Search, Value::Null) => Input::Json(json!({})),
        (Form::Json | Form::Search, args) => Input::Json(args.clone()),
    };
    Call { tool: tool.clone(), input }
}

/// The first tool that has one of these names and takes all that is known.
fn named(tools: &[Tool], names: &[&str], known: &[(&[&str], &str)]) -> Option<Call> {
    let each = names.iter().flat_map(|name| tools.iter().filter(|tool| tool.name.eq_ignore_ascii_case(name)));
    each.filter(|tool| tool.form == Form::Json)
        .find_map(|tool| Some(Call { tool: tool.clone(), input: Input::Json(arguments(tool, known)?) }))
}

/// Arguments under the names that the schema has for them; what else is required gets some value.
fn arguments(tool: &Tool, known: &[(&[&str], &str)]) -> Option<Value> {
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
