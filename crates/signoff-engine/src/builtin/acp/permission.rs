//! Decides an agent's permission requests.

use agent_client_protocol::v1::schema::{
    PermissionOptionKind, RequestPermissionOutcome, RequestPermissionRequest, SelectedPermissionOutcome, ToolKind,
};

use crate::agent::REPORT_SERVER;

/// Whether a request is granted. A writer may do anything; a reader may read, search, think and report.
pub fn is_allowed(request: &RequestPermissionRequest, read_only: bool) -> bool {
    let kind = request.tool_call.fields.kind.unwrap_or_default();
    !read_only || matches!(kind, ToolKind::Read | ToolKind::Search | ToolKind::Think) || is_report(request, kind)
}

/// Whether the request is for our report tool. Commands have another kind, so they cannot imitate its names.
fn is_report(request: &RequestPermissionRequest, kind: ToolKind) -> bool {
    let id = request.tool_call.tool_call_id.0.as_ref();
    let title = request.tool_call.fields.title.as_deref().unwrap_or_default();
    kind == ToolKind::Other
        && (id.starts_with(&format!("mcp_{REPORT_SERVER}_"))
            || title.starts_with(&format!("{REPORT_SERVER}_"))
            || title.ends_with(&format!("({REPORT_SERVER} MCP Server)")))
}

/// The response, selected from the options the agent offers. Prefers the option for this one call.
pub fn answer(request: &RequestPermissionRequest, allowed: bool) -> RequestPermissionOutcome {
    let kinds = if allowed {
        [PermissionOptionKind::AllowOnce, PermissionOptionKind::AllowAlways]
    } else {
        [PermissionOptionKind::RejectOnce, PermissionOptionKind::RejectAlways]
    };
    let option = kinds.iter().find_map(|kind| request.options.iter().find(|option| option.kind == *kind));
    match option {
        Some(option) => RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone())),
        None => RequestPermissionOutcome::Cancelled,
    }
}
