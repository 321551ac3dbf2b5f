//! Long answers for the benchmarks: valid reviews, and text crafted to make the parsers slow.

use signoff_core::contract::Contract;

/// Units that look like the start of an answer, to be repeated.
pub const HOSTILE: [(&str, &str); 14] = [
    ("{", "{"),
    ("[", "["),
    ("<", "<"),
    ("`", "`"),
    ("*", "*"),
    ("\"", "\""),
    ("> quotes", "> "),
    ("fences", "```\n"),
    ("{\"a\":", "{\"a\":"),
    ("open verdicts", "{\"verdict\":\"pass\","),
    ("open reviews", "<code-review><verdict>"),
    ("open comments", "<!-- signoff:"),
    ("headings", "\n**Verdict: APPROVED** `"),
    ("list items", "- [Critical] a.rs:1 ["),
];

/// `unit` repeated up to `length` bytes.
pub fn repeated(unit: &str, length: usize) -> Vec<u8> {
    unit.bytes().cycle().take(length).collect()
}

/// A valid answer of about `length` bytes, never more.
pub fn honest(contract: Contract, length: usize) -> Vec<u8> {
    match contract {
        Contract::Markdown | Contract::Auto => listed(
            "I read the whole change.\n\n**Verdict: CHANGES_REQUESTED**\n\n",
            |n| format!("- src/file{}.rs:{} the result of call {n} is dropped\n", n % 97, n % 997 + 1),
            "\nThat is all.\n",
            length,
        ),
        Contract::Json => listed(
            "Here is my answer.\n{\"verdict\": \"drift\", \"followUpPrompt\": \"",
            |n| format!("{n}. In src/file{}.rs handle \\\"none\\\" {{as the task says}}.\\n", n % 97),
            "\"}\n",
            length,
        ),
        Contract::Xml => listed(
            "<code-review><verdict>ISSUES</verdict><confidence>high</confidence><issues>\n",
            |n| {
                format!(
                    "<issue type=\"bug\" severity=\"important\"><location file=\"src/file{}.rs\" line=\"{}\"/>\
                     <description>call {n} is &lt;dropped&gt;</description><fix>keep it</fix></issue>\n",
                    n % 97,
                    n % 997 + 1
                )
            },
            "</issues><summary>Much to do</summary></code-review>\n",
            length,
        ),
        Contract::Prefix => listed(
            "ISSUES:\n",
            |n| format!("- [Important] src/file{}.rs:{} the result of call {n} is dropped\n", n % 97, n % 997 + 1),
            "",
            length,
        ),
        Contract::Severity => listed(
            "[",
            |n| {
                format!(
                    "{}{{\"severity\":\"MEDIUM\",\"message\":\"call {n} is dropped\",\"location\":\"src/f{}.rs:{}\"}}",
                    if n == 0 { "" } else { ",\n" },
                    n % 97,
                    n % 997 + 1
                )
            },
            "]\n",
            length,
        ),
        Contract::Tool => listed(
            "{\"loopId\":\"l1\",\"taskId\":\"29\",\"passed\":false,\"issues\":[",
            |n| {
                format!(
                    "{}{{\"file\":\"src/f{}.rs\",\"line\":{},\"type\":\"dead-code\",\"description\":\"call {n}\"}}",
                    if n == 0 { "" } else { ",\n" },
                    n % 97,
                    n % 997 + 1
                )
            },
            "]}",
            length,
        ),
    }
}

fn listed(head: &str, item: impl Fn(usize) -> String, tail: &str, length: usize) -> Vec<u8> {
    let mut text = head.to_owned();
    for n in 0.. {
        let next = item(n);
        if text.len() + next.len() + tail.len() > length {
            break;
        }
        text.push_str(&next);
    }
    (text + tail).into_bytes()
}
