//! `signoff serve`, started for a test.

use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::process::Child;

use crate::visitor::Visitor;
use crate::{Output, Project};

/// A page that is served, with somebody who may look at it. It ends with the test.
#[derive(Debug)]
pub struct Served {
    child: Option<Child>,
    /// With the token, as it was printed.
    pub url: String,
    visitor: Visitor,
}

impl Served {
    /// Starts to serve on a free port.
    ///
    /// # Panics
    /// If no address is printed.
    pub fn start(project: &Project) -> Self {
        Self::start_with(project, &[])
    }

    /// The same with these variables in its environment.
    ///
    /// # Panics
    /// If no address is printed.
    pub fn start_with(project: &Project, variables: &[(&str, &str)]) -> Self {
        let mut child = project.env.start_with(&["serve", "--port", "0", "--json"], variables);
        let mut line = String::new();
        let stdout = child.stdout.as_mut().expect("a piped stdout");
        BufReader::new(stdout).read_line(&mut line).expect("a line");
        let told: serde_json::Value = serde_json::from_str(&line).expect("where the page is");
        let url = told["url"].as_str().expect("an address").to_owned();
        Self { child: Some(child), visitor: Visitor::of(&url), url }
    }

    pub fn pid(&self) -> u32 {
        self.child.as_ref().map_or(0, Child::id)
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// If there is no such signal.
    #[cfg(unix)]
    pub fn signal(&self, signal: i32) {
        use rustix::process::{Pid, Signal, kill_process};
        let pid = i32::try_from(self.pid()).ok().and_then(Pid::from_raw).expect("the number of a process");
        kill_process(pid, Signal::from_named_raw(signal).expect("a signal"))
            .expect("a process that is there");
    }

    /// Sends a signal, and waits for the end.
    ///
    /// # Panics
    /// If there is no such signal.
    #[cfg(unix)]
    pub fn end_by(mut self, project: &Project, signal: i32) -> Output {
        self.signal(signal);
        project.env.finish(self.child.take().expect("a started program"))
    }
}

impl Deref for Served {
    type Target = Visitor;

    fn deref(&self) -> &Visitor {
        &self.visitor
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Some(mut child) = self.child.take() {
            child.kill().ok();
            child.wait().ok();
        }
    }
}
