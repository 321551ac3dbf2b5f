pub mod checks {
    pub fn run(_: &std::path::Path) -> std::process::ExitCode {
        std::process::ExitCode::FAILURE
    }
}
pub mod demo {
    pub fn run() -> std::process::ExitCode {
        std::process::ExitCode::FAILURE
    }
    pub fn tasks() -> Vec<&'static str> {
        vec![]
    }
    pub fn project() -> Vec<(&'static str, &'static str)> {
        vec![]
    }
    pub fn config() -> &'static str {
        ""
    }
}
