//! No program of a channel outlives signoff, however that ends.

use signoff_testkit::processes::{self, until};

use super::*;

/// It leaves the group it was started in as well.
const HANGS: &str = "[notify]\nquestion = [\"hang\"]\n[notify.channels.hang]\nkind = \"command\"\n\
                     command = [\"sh\", \"-c\", \"sleep 1000 & setsid sleep 1000 & : > \\\"$HOME/begun\\\"; sleep 1000\"]\n";

#[test]
fn who_is_ended_by_a_signal_takes_the_programs_of_its_channels_along() {
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
        until("the channel is told", || begun.exists());
        let sleeps =
            || processes::of(project.env.root()).iter().filter(|words| words.contains("sleep 1000")).count();
        until("all its processes are there", || sleeps() >= 3);
        processes::signal_group(program.id(), signal);
        assert_eq!(project.env.finish(program).code, None, "{words:?} {signal}");
        until("nothing is left", || processes::of(project.env.root()).is_empty());
    }
}
