//! `signoff serve`, started for a test.

use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::process::Child;

use crate::web_client::WebClient;
use crate::{ProgramOutput, TestProject};

/// A running `signoff serve` and an authenticated client. The process is killed on drop.
#[derive(Debug)]
pub struct ServeProcess {
    child: Option<Child>,
    /// The printed URL, with the token.
    pub url: String,
    client: WebClient,
}

impl ServeProcess {
    /// Starts the server on a free port.
    ///
    /// # Panics
    /// If it prints no URL.
    pub fn start(project: &TestProject) -> Self {
        Self::start_with(project, &[])
    }

    /// Starts the server with these environment variables.
    ///
    /// # Panics
    /// If it prints no URL.
    pub fn start_with(project: &TestProject, variables: &[(&str, &str)]) -> Self {
        let mut child = project.env.start_with(&["serve", "--port", "0", "--json"], variables);
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("a piped stdout");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let json: serde_json::Value = serde_json::from_str(&line).expect("where the page is");
        let url = json["url"].as_str().expect("an address").to_owned();
        Self { child: Some(child), client: WebClient::from_url(&url), url }
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// If the signal is invalid.
    #[cfg(unix)]
    pub fn signal(&self, signal: i32) {
        use rustix::process::{Pid, Signal, kill_process};
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("the number of a process");
        kill_process(pid, Signal::from_named_raw(signal).expect("a signal")).expect("a process that is there");
    }

    /// Sends a signal and waits for the process to exit.
    ///
    /// # Panics
    /// If the signal is invalid.
    #[cfg(unix)]
    pub fn end_with_signal(mut self, project: &TestProject, signal: i32) -> ProgramOutput {
        self.signal(signal);
        project.env.finish(self.child.take().expect("a started program"))
    }
}

impl Deref for ServeProcess {
    type Target = WebClient;

    fn deref(&self) -> &WebClient {
        &self.client
    }
}

impl Drop for ServeProcess {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}
