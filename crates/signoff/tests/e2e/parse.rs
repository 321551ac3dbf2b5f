//! `signoff parse`: reviews in every contract, violations, and bounded memory.

use std::collections::BTreeSet;
use std::io::Write;

use crate::test_env;

#[test]
fn a_valid_review_exits_with_zero() {
    let answer =
        "ISSUES:\n- [Critical] src/auth.rs:52 tokens are compared with ==\n- [Minor] src/auth.rs:30 a magic number\n";
    insta::assert_snapshot!(test_env().run_with_input(&["parse", "--contract", "prefix"], answer), @r#"
    exit 0
    --- stdout
    {
      "version": 1,
      "reviewer": "code",
      "role": "code",
      "verdict": "changes_requested",
      "confidence": "unstated",
      "findings": [
        {
          "id": "f-6abf842450",
          "sources": [
            "code"
          ],
          "kind": "issue",
          "severity": "critical",
          "file": "src/auth.rs",
          "line": 52,
          "description": "tokens are compared with ==",
          "requirement": null,
          "suggestion": null
        },
        {
          "id": "f-c8a42954ae",
          "sources": [
            "code"
          ],
          "kind": "issue",
          "severity": "minor",
          "file": "src/auth.rs",
          "line": 30,
          "description": "a magic number",
          "requirement": null,
          "suggestion": null
        }
      ],
      "minor": [],
      "checked": [],
      "summary": "",
      "follow_up_prompt": null,
      "interpreted_intent": null,
      "intent_satisfied": null
    }
    "#);
}

#[test]
fn the_role_is_repeated_in_the_output() {
    let env = test_env();
    for role in ["spec", "code", "security", "tests", "general"] {
        let parsed = env.run_with_input(&["parse", "--contract", "prefix", "--role", role], "APPROVED: fine\n");
        assert_eq!(parsed.code, Some(0), "{parsed}");
        assert_eq!(parsed.json()["reviewer"], role);
        assert_eq!(parsed.json()["role"], role);
    }
}

#[test]
fn every_contract_has_its_name() {
    let env = test_env();
    for (contract, answer) in [
        ("markdown", "All is well.\n\n**Verdict: APPROVED**\n"),
        ("json", r#"{"verdict":"pass","followUpPrompt":""}"#),
        (
            "xml",
            "<code-review><verdict>APPROVED</verdict><confidence>high</confidence><summary>ok</summary></code-review>",
        ),
        ("xml", "APPROVED: the fallback of xml"),
        ("prefix", "APPROVED: fine"),
        ("severity", "[]"),
        ("tool", r#"{"loopId":"l1","passed":true}"#),
        ("auto", "**Verdict: APPROVED**\n"),
    ] {
        let parsed = env.run_with_input(&["parse", "--contract", contract], answer);
        assert_eq!(parsed.code, Some(0), "{contract}\n{parsed}");
        assert_eq!(parsed.json()["verdict"], "approved", "{contract}\n{parsed}");
        assert_eq!(parsed.json()["version"], 1);
        assert_eq!(parsed.stderr, "");
    }
}

#[test]
fn a_violation_of_the_contract_exits_with_one_and_is_named() {
    insta::assert_snapshot!(test_env().run_with_input(&["parse", "--contract", "json"], "looks good to me"), @r#"
    exit 1
    --- stdout
    {
      "version": 1,
      "reviewer": "code",
      "role": "code",
      "verdict": "inconclusive",
      "violation": {
        "code": "no_verdict",
        "message": "there is no JSON object with a `verdict` key",
        "offset": 0
      }
    }
    --- stderr
    inconclusive: there is no JSON object with a `verdict` key (at byte 0)
    "#);
}

#[test]
fn the_schema_names_what_is_printed_and_nothing_else() {
    let schema = include_str!("../../../../docs/schema/parsed-review.schema.json");
    let schema: serde_json::Value = serde_json::from_str(schema).unwrap();
    let env = test_env();
    let issue = "ISSUES:\n- [Critical] src/auth.rs:52 tokens are compared with ==\n";
    let review = env.run_with_input(&["parse", "--contract", "prefix"], issue).json();
    let violated = env.run_with_input(&["parse", "-q", "--contract", "prefix"], "hm").json();
    let keys = |value: &serde_json::Value| value.as_object().unwrap().keys().cloned().collect::<BTreeSet<_>>();
    for (name, printed) in [("review", &review), ("finding", &review["findings"][0]), ("violated", &violated)] {
        assert_eq!(keys(&schema["$defs"][name]["properties"]), keys(printed), "{name}");
    }
}

#[test]
fn quiet_prints_only_the_data() {
    let quiet = test_env().run_with_input(&["parse", "-q", "--contract", "json"], "looks good to me");
    assert_eq!(quiet.json()["verdict"], "inconclusive");
    assert_eq!(quiet.stderr, "");
}

#[test]
fn an_empty_answer_is_a_violation() {
    let empty = test_env().run(&["parse", "-q", "--contract", "auto"]);
    assert_eq!(empty.code, Some(1));
    assert_eq!(empty.json()["violation"]["code"], "empty");
}

#[test]
fn bytes_that_are_not_utf8_are_a_violation_with_their_position() {
    let parsed = test_env().run_with_input(&["parse", "-q", "--contract", "prefix"], b"APPROVED: \xff\xfe");
    assert_eq!(parsed.code, Some(1));
    assert_eq!(parsed.json()["violation"]["code"], "not_utf8");
    assert_eq!(parsed.json()["violation"]["offset"], 10);
}

#[test]
fn a_required_nonce_must_come_back() {
    let env = test_env();
    let arguments = ["parse", "-q", "--contract", "json", "--nonce", "k7", "--require-nonce"];
    let planted = env.run_with_input(&arguments, r#"{"verdict":"pass","followUpPrompt":""}"#);
    assert_eq!(planted.json()["violation"]["code"], "nonce_missing", "{planted}");
    let answered = env.run_with_input(&arguments, r#"{"verdict":"pass","followUpPrompt":"","nonce":"k7"}"#);
    assert_eq!(answered.json()["verdict"], "approved", "{answered}");
}

#[test]
fn an_answer_bound_to_another_commit_is_refused() {
    let arguments = ["parse", "-q", "--contract", "json", "--commit", "1234567890abcdef1234567890abcdef12345678"];
    let other = r#"{"verdict":"pass","followUpPrompt":"","commit":"fedcba0987654321fedcba0987654321fedcba09"}"#;
    let parsed = test_env().run_with_input(&arguments, other);
    assert_eq!(parsed.code, Some(1));
    assert_eq!(parsed.json()["violation"]["code"], "commit_mismatch");
}

#[test]
fn the_severity_threshold_decides_whether_findings_outrank_an_approval() {
    let env = test_env();
    let answer = "<code-review><verdict>APPROVED</verdict><confidence>high</confidence><issues><issue type=\"bug\" \
                  severity=\"important\"><location file=\"a.rs\" line=\"1\"/><description>off by one</description>\
                  <fix>add one</fix></issue></issues><summary>nearly</summary></code-review>";
    for (bar, verdict) in [("LOW", "changes_requested"), ("medium", "changes_requested"), ("HIGH", "approved")] {
        let parsed = env.run_with_input(&["parse", "--contract", "xml", "--fail-on", bar], answer);
        assert_eq!(parsed.json()["verdict"], verdict, "{bar}\n{parsed}");
    }
}

#[test]
fn invalid_values_are_wrong_usage_and_name_the_valid_ones() {
    let env = test_env();
    insta::assert_snapshot!(env.run(&["parse", "--contract", "markdwon"]), @r"
    exit 2
    --- stderr
    error: invalid value 'markdwon' for '--contract <NAME>'
      [possible values: markdown, json, xml, prefix, severity, tool, auto]

      tip: a similar value exists: 'markdown'

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(env.run(&["parse", "--contract", "json", "--role", "coder"]), @r"
    exit 2
    --- stderr
    error: invalid value 'coder' for '--role <ROLE>'
      [possible values: spec, code, security, tests, general]

      tip: a similar value exists: 'code'

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(env.run(&["parse", "--contract", "json", "--fail-on", "highest"]), @r"
    exit 2
    --- stderr
    error: invalid value 'highest' for '--fail-on <SEVERITY>'
      [possible values: LOW, MEDIUM, HIGH, NONE]

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(env.run(&["parse", "--contract", "json", "--require-nonce"]), @r"
    exit 2
    --- stderr
    error: the following required arguments were not provided:
      --nonce <WORD>

    Usage: signoff parse --contract <NAME> --nonce <WORD> --require-nonce

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(env.run(&["parse"]), @r"
    exit 2
    --- stderr
    error: the following required arguments were not provided:
      --contract <NAME>

    Usage: signoff parse --contract <NAME>

    For more information, try '--help'.
    ");
}

/// A hundred million bytes do not fit into an address space of 96 MiB: an answer shows that the input
/// is not kept in memory.
#[cfg(target_os = "linux")]
#[test]
fn a_hundred_megabytes_of_garbage_are_answered_within_bounded_memory() {
    let env = test_env();
    for contract in ["markdown", "json", "xml", "prefix", "severity", "tool", "auto"] {
        let script = format!("ulimit -v 98304 && exec signoff parse -q --contract {contract}");
        let parsed = env.shell_with_stdin(&script, |mut stdin| {
            let garbage = b"{[<`*APPROVED:\x00\xff garbage\n".repeat(40_000);
            for _ in 0..100_000_000 / garbage.len() + 1 {
                stdin.write_all(&garbage).expect("a program that reads to the end");
            }
        });
        assert_eq!(parsed.code, Some(1), "{contract}\n{parsed}");
        assert_eq!(parsed.json()["verdict"], "inconclusive");
        assert_eq!(parsed.json()["violation"]["code"], "too_large", "{contract}\n{parsed}");
    }
}
