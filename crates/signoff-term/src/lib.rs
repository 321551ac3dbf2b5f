//! What people see: renderers over the view and the recorded facts. Nothing here reads or writes anything.
