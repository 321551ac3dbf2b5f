//! The marker lines with which an implementer reports the result of an attempt.

/// The marker in an implementer's final message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Marker {
    Complete,
    IterationDone,
    Stuck(String),
    /// No marker on the last line: another attempt follows.
    None,
}

/// Reads the last line that is not blank. A marker elsewhere, for example in a quotation, does not count.
pub fn read(final_message: &str) -> Marker {
    let last = final_message.lines().map(str::trim_end).rfind(|line| !line.is_empty());
    match last.unwrap_or_default() {
        "TASK_COMPLETE" => Marker::Complete,
        "ITERATION_DONE" => Marker::IterationDone,
        line => line.strip_prefix("TASK_STUCK:").map_or(Marker::None, stuck),
    }
}

fn stuck(reason: &str) -> Marker {
    match reason.trim() {
        "" => Marker::None,
        reason => Marker::Stuck(reason.to_owned()),
    }
}

/// Whether the message reports that the tracker has no work left: `no_beads_available`, alone on a line.
pub fn stops_picking(final_message: &str) -> bool {
    final_message.lines().any(|line| line.trim_end() == "no_beads_available")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_last_line_decides() {
        let stuck = |reason: &str| Marker::Stuck(reason.to_owned());
        for (message, marker) in [
            ("All done.\n\nTASK_COMPLETE", Marker::Complete),
            ("TASK_COMPLETE\r\n\r\n", Marker::Complete),
            ("TASK_COMPLETE  \n \t\n", Marker::Complete),
            ("half\nITERATION_DONE\n", Marker::IterationDone),
            ("TASK_COMPLETE\nITERATION_DONE", Marker::IterationDone),
            ("TASK_STUCK: no database here \n", stuck("no database here")),
            ("TASK_STUCK: TASK_COMPLETE", stuck("TASK_COMPLETE")),
        ] {
            assert_eq!(read(message), marker, "{message:?}");
        }
    }

    #[test]
    fn anything_else_is_no_marker() {
        for message in [
            "",
            "\n\n",
            "TASK_COMPLETE\nbut see below",
            "This is TASK_COMPLETE",
            "TASK_COMPLETE.",
            "**TASK_COMPLETE**",
            "`TASK_COMPLETE`",
            "```\nTASK_COMPLETE\n```",
            "task_complete",
            " TASK_COMPLETE",
            "> TASK_COMPLETE",
            "TASK_COMPLETED",
            "TASK_STUCK",
            "TASK_STUCK:",
            "I am TASK_STUCK: no",
        ] {
            assert_eq!(read(message), Marker::None, "{message:?}");
        }
    }

    #[test]
    fn the_stop_marker_is_a_line_of_its_own() {
        for (message, stops) in [
            ("no_beads_available", true),
            ("Nothing left.\nno_beads_available \r\nBye.", true),
            ("It printed no_beads_available.", false),
            ("`no_beads_available`", false),
            ("    no_beads_available", false),
            ("", false),
        ] {
            assert_eq!(stops_picking(message), stops, "{message:?}");
        }
    }

    proptest! {
        #[test]
        fn only_the_last_line_counts(before in any::<String>()) {
            prop_assert_eq!(read(&format!("{before}\nTASK_COMPLETE\n")), Marker::Complete);
            prop_assert_eq!(read(&format!("{before}\nTASK_COMPLETE\n.\n")), Marker::None);
        }
    }
}
