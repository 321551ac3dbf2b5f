//! What an agent may do that asks.

use agent_client_protocol::v1::schema::{
    PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest, SelectedPermissionOutcome,
    ToolKind,
};

use crate::agent::SERVER;

/// Whether it may. Who writes may do anything once; who reads may look, think, and report.
pub fn is_allowed(request: &RequestPermissionRequest, reads: bool) -> bool {
    let kind = request.tool_call.fields.kind.unwrap_or_default();
    !reads || matches!(kind, ToolKind::Read | ToolKind::Search | ToolKind::Think) || is_report(request, kind)
}

/// Whether it asks for our own tool. A command can be called anything, but not by these names, and is of another kind.
fn is_report(request: &RequestPermissionRequest, kind: ToolKind) -> bool {
    let id = request.tool_call.tool_call_id.0.as_ref();
    let title = request.tool_call.fields.title.as_deref().unwrap_or_default();
    kind == ToolKind::Other
        && (id.starts_with(&format!("mcp_{SERVER}_"))
            || title.starts_with(&format!("{SERVER}_"))
            || title.ends_with(&format!("({SERVER} MCP Server)")))
}

/// The answer, in the words that the agent offers: never for longer than this once if that is among them.
pub fn answer(request: &RequestPermissionRequest, allowed: bool) -> RequestPermissionOutcome {
    let kinds = if allowed {
        [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways]
    } else {
        [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways]
    };
    let option = kinds.iter().find_map(|kind| request.options.iter().find(|option| option.kind == *kind));
    match option {
        Some(option) => {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
        }
        None => RequestPermissionOutcome::Cancelled,
    }
}
