//! No process of a channel outlives signoff, however signoff ends.

use signoff_testkit::processes::{self, wait_until};

use super::*;

/// One of its processes also leaves its process group.
const HANGS: &str = "[notify]\nquestion = [\"hang\"]\n[notify.channels.hang]\nkind = \"command\"\n\
                     command = [\"sh\", \"-c\", \"sleep 1000 & setsid sleep 1000 & : > \\\"$HOME/begun\\\"; sleep 1000\"]\n";

#[test]
fn a_signal_ends_the_processes_of_channels_too() {
    let (int, kill, term) = (2, 9, 15);
    for (words, signal) in [
        (["notify", "hang"].as_slice(), int),
        (&["notify", "hang"], term),
        (&["notify", "hang"], kill),
        (&["work"], kill),
    ] {
        let project = project(HANGS);
        let program = project.env.start_group(words);
        let begun = project.env.root().join("home/begun");
        wait_until("the channel has the message", || begun.exists());
        let sleeps =
            || processes::with_root(project.env.root()).iter().filter(|words| words.contains("sleep 1000")).count();
        wait_until("all its processes are there", || sleeps() >= 3);
        processes::signal_group(program.id(), signal);
        assert_eq!(project.env.finish(program).code, None, "{words:?} {signal}");
        wait_until("nothing is left", || processes::with_root(project.env.root()).is_empty());
    }
}
