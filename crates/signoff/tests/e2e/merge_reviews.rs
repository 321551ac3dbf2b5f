//! `signoff merge-reviews`: merged reviews in every format, and invalid input.

use signoff_testkit::TestEnv;

use crate::test_env;

const SPEC: &str = r#"<spec-review>
  <verdict>ISSUES</verdict>
  <confidence>high</confidence>
  <issues>
    <issue type="missing_requirement" severity="critical">
      <location file="src/login.rs" line="45"/>
      <description>Logging out does not end the session</description>
      <requirement>"A logout ends every session of the user"</requirement>
    </issue>
  </issues>
  <checked><item>Login</item><item>Logout</item></checked>
  <summary>Logout is missing</summary>
</spec-review>
"#;

const CODE: &str = r#"<code-review>
  <verdict>APPROVED_WITH_MINOR</verdict>
  <confidence>medium</confidence>
  <minor>
    <note><location file="src/login.rs" line="30"/><description>A magic number</description></note>
  </minor>
  <checked><item>Error handling</item></checked>
  <summary>Sound</summary>
</code-review>
"#;

/// Two parsed reviews, `spec.json` and `code.json`.
fn reviewed() -> TestEnv {
    let env = test_env();
    for (role, answer) in [("spec", SPEC), ("code", CODE)] {
        let parsed = env.run_with_input(&["parse", "--contract", "xml", "--role", role], answer);
        assert_eq!(parsed.code, Some(0), "{parsed}");
        env.write(&format!("{role}.json"), parsed.stdout);
    }
    env
}

#[test]
fn as_text() {
    insta::assert_snapshot!(reviewed().run(&["merge-reviews", "--spec", "spec.json", "--code", "code.json"]), @r#"
    exit 0
    --- stdout
    Review Results:
      Spec Review: ISSUES (high confidence)
      Code Review: APPROVED_WITH_MINOR (medium confidence)

    Issues to Fix (1):

      1. [Spec Critical] src/login.rs:45
         Logging out does not end the session
         Requirement: "A logout ends every session of the user"

    Minor Notes (1):
      - src/login.rs:30 - A magic number

    Action: Fix issues and re-run reviews
    "#);
}

#[test]
fn in_every_format() {
    let env = reviewed();
    let merge = ["merge-reviews", "--spec", "spec.json", "--code", "code.json", "--format"];
    insta::assert_snapshot!(env.run(&[&merge[..], &["json"]].concat()), @r#"
    exit 0
    --- stdout
    {
      "version": 1,
      "overall_verdict": "SPEC_CRITICAL",
      "action": "FIX_AND_REREVIEW",
      "reviews": [
        {
          "reviewer": "spec",
          "role": "spec",
          "verdict": "changes_requested",
          "confidence": "high",
          "summary": "Logout is missing",
          "reason": null
        },
        {
          "reviewer": "code",
          "role": "code",
          "verdict": "approved_with_minor",
          "confidence": "medium",
          "summary": "Sound",
          "reason": null
        }
      ],
      "issues": [
        {
          "id": "f-8cbcf0248f",
          "aliases": [],
          "sources": [
            "spec"
          ],
          "priority": 1,
          "kind": "missing_requirement",
          "severity": "critical",
          "file": "src/login.rs",
          "line": 45,
          "description": "Logging out does not end the session",
          "requirement": "\"A logout ends every session of the user\"",
          "suggestion": null,
          "group": null
        }
      ],
      "groups": [],
      "minor": [
        {
          "source": "code",
          "file": "src/login.rs",
          "line": 30,
          "description": "A magic number"
        }
      ],
      "conflicts": []
    }
    "#);
    insta::assert_snapshot!(env.run(&[&merge[..], &["xml"]].concat()), @r#"
    exit 0
    --- stdout
    <merged-review>
      <overall-verdict>SPEC_CRITICAL</overall-verdict>
      <spec-result verdict="ISSUES" confidence="high"/>
      <code-result verdict="APPROVED_WITH_MINOR" confidence="medium"/>
      <issues>
        <issue source="spec" priority="1" type="missing_requirement" severity="critical" file="src/login.rs" line="45" id="f-8cbcf0248f">
          <description>Logging out does not end the session</description>
          <requirement>"A logout ends every session of the user"</requirement>
        </issue>
      </issues>
      <minor>
        <note source="code" priority="5" file="src/login.rs" line="30">
          <description>A magic number</description>
        </note>
      </minor>
      <action>FIX_AND_REREVIEW</action>
    </merged-review>
    "#);
    insta::assert_snapshot!(env.run(&[&merge[..], &["markdown"]].concat()), @r#"
    exit 0
    --- stdout
    # Review

    **Verdict: CHANGES_REQUESTED**

    - Spec Review: ISSUES (high confidence)

      Logout is missing
    - Code Review: APPROVED_WITH_MINOR (medium confidence)

      Sound

    ## Issues to Fix (1)

    1. [Spec Critical] `src/login.rs:45` (missing_requirement)

       Logging out does not end the session

       Requirement: "A logout ends every session of the user"

    ## Minor Notes (1)

    - `src/login.rs:30` - A magic number (code)

    Overall: SPEC_CRITICAL. Action: Fix issues and re-run reviews.
    "#);
    insta::assert_snapshot!(env.run(&[&merge[..], &["sarif"]].concat()), @r#"
    exit 0
    --- stdout
    {
      "$schema": "https://json.schemastore.org/sarif-2.1.0.json",
      "version": "2.1.0",
      "runs": [
        {
          "tool": {
            "driver": {
              "name": "signoff",
              "version": "0.1.0",
              "rules": [
                {
                  "id": "missing_requirement"
                },
                {
                  "id": "note"
                }
              ]
            }
          },
          "invocations": [
            {
              "executionSuccessful": true,
              "toolExecutionNotifications": []
            }
          ],
          "results": [
            {
              "ruleId": "missing_requirement",
              "level": "error",
              "message": {
                "text": "Logging out does not end the session"
              },
              "locations": [
                {
                  "physicalLocation": {
                    "artifactLocation": {
                      "uri": "src/login.rs"
                    },
                    "region": {
                      "startLine": 45
                    }
                  }
                }
              ],
              "partialFingerprints": {
                "signoff/v1": "f-8cbcf0248f"
              },
              "properties": {
                "sources": [
                  "spec"
                ],
                "priority": 1,
                "group": null
              }
            },
            {
              "ruleId": "note",
              "level": "note",
              "message": {
                "text": "A magic number"
              },
              "locations": [
                {
                  "physicalLocation": {
                    "artifactLocation": {
                      "uri": "src/login.rs"
                    },
                    "region": {
                      "startLine": 30
                    }
                  }
                }
              ],
              "properties": {
                "sources": [
                  "code"
                ],
                "priority": 5
              }
            }
          ],
          "properties": {
            "overallVerdict": "SPEC_CRITICAL",
            "action": "FIX_AND_REREVIEW"
          }
        }
      ]
    }
    "#);
}

#[test]
fn the_json_flag_means_the_json_format() {
    let env = reviewed();
    let merge = ["merge-reviews", "--spec", "spec.json", "--code", "code.json"];
    let flag = env.run(&[&merge[..], &["--json"]].concat());
    assert_eq!(flag, env.run(&[&merge[..], &["--format", "json"]].concat()));
    assert_eq!(flag.json()["overall_verdict"], "SPEC_CRITICAL");
}

#[test]
fn other_reviewers_keep_their_own_name() {
    let env = reviewed();
    let issue = "ISSUES:\n- [Critical] src/login.rs:90 passwords are logged\n";
    let parsed = env.run_with_input(&["parse", "--contract", "prefix", "--role", "security"], issue);
    env.write("security.json", parsed.stdout);
    let merged = env.run(&["merge-reviews", "--code", "code.json", "--reviewer", "ada=security.json", "--json"]);
    assert_eq!(merged.json()["overall_verdict"], "CODE_CRITICAL", "{merged}");
    assert!(merged.stdout.contains("\"ada\""), "{merged}");
    assert!(!merged.stdout.contains("\"sources\": [\n        \"security\""), "{merged}");
}

#[test]
fn an_inconclusive_review_is_merged_as_such() {
    let env = reviewed();
    let parsed = env.run_with_input(&["parse", "-q", "--contract", "json", "--role", "code"], "no idea");
    env.write("unclear.json", parsed.stdout);
    let merged = env.run(&["merge-reviews", "--spec", "spec.json", "--code", "unclear.json", "--json"]);
    assert_eq!(merged.code, Some(0), "{merged}");
    assert_eq!(merged.json()["overall_verdict"], "INCONCLUSIVE");
}

#[test]
fn one_review_may_come_from_stdin() {
    let env = reviewed();
    let piped = env.shell("signoff merge-reviews --spec spec.json --code - < code.json");
    assert_eq!(piped, env.run(&["merge-reviews", "--spec", "spec.json", "--code", "code.json"]));
    insta::assert_snapshot!(env.run(&["merge-reviews", "--spec", "-", "--code", "-"]), @r"
    exit 2
    --- stderr
    error: stdin can be read only once
    hint: use `-` for one reviewer, files for the others
    ");
}

#[test]
fn the_flag_decides_which_review_it_is() {
    let env = reviewed();
    insta::assert_snapshot!(env.run(&["merge-reviews", "--spec", "code.json"]), @r"
    exit 0
    --- stdout
    Review Results:
      Spec Review: APPROVED_WITH_MINOR (medium confidence)

    Minor Notes (1):
      - src/login.rs:30 - A magic number

    Action: Proceed with notes
    --- stderr
    warning: code.json was parsed with --role code; it counts as the spec review
    ");
}

#[test]
fn files_that_are_not_reviews_are_errors_with_their_position() {
    let env = test_env();
    env.write("broken.json", "{\n  \"version\": 1,\n  oops\n}\n");
    env.write("other.json", "{\n  \"name\": \"something else\"\n}\n");
    env.write("empty.json", "");
    insta::assert_snapshot!(env.run(&["merge-reviews", "--spec", "missing.json"]), @r"
    exit 2
    --- stderr
    error: cannot read missing.json: No such file or directory (os error 2)
      --> missing.json
    hint: name an output of `signoff parse`, or `-` for stdin
    ");
    insta::assert_snapshot!(env.run(&["merge-reviews", "--code", "broken.json"]), @r"
    exit 2
    --- stderr
    error: broken.json is not an output of `signoff parse`: key must be a string
      --> broken.json:3:3
    hint: run `signoff parse --contract NAME < answer > FILE` and merge that FILE
    ");
    insta::assert_snapshot!(env.run(&["merge-reviews", "--code", "other.json"]), @r"
    exit 2
    --- stderr
    error: other.json is not an output of `signoff parse`: missing field `version`
      --> other.json:3:1
    hint: run `signoff parse --contract NAME < answer > FILE` and merge that FILE
    ");
    insta::assert_snapshot!(env.run(&["merge-reviews", "--code", "empty.json"]), @r"
    exit 2
    --- stderr
    error: empty.json is not an output of `signoff parse`: EOF while parsing a value
      --> empty.json:1:1
    hint: run `signoff parse --contract NAME < answer > FILE` and merge that FILE
    ");
    insta::assert_snapshot!(env.run(&["merge-reviews", "--code", "."]), @r"
    exit 2
    --- stderr
    error: cannot read .: Is a directory (os error 21)
      --> .
    hint: name an output of `signoff parse`, or `-` for stdin
    ");
}

#[test]
fn wrong_usage_says_what_was_expected() {
    let env = test_env();
    insta::assert_snapshot!(env.run(&["merge-reviews"]), @r"
    exit 2
    --- stderr
    error: no reviews to merge
    hint: name at least one with --spec FILE, --code FILE or --reviewer NAME=FILE
    ");
    insta::assert_snapshot!(env.run(&["merge-reviews", "--reviewer", "security.json"]), @r"
    exit 2
    --- stderr
    error: invalid value 'security.json' for '--reviewer <NAME=FILE>': expected NAME=FILE, as in security=security.json

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(env.run(&["merge-reviews", "--spec", "spec.json", "--format", "txt"]), @r"
    exit 2
    --- stderr
    error: invalid value 'txt' for '--format <FORMAT>'
      [possible values: text, xml, json, markdown, sarif]

      tip: a similar value exists: 'text'

    For more information, try '--help'.
    ");
    insta::assert_snapshot!(env.run(&["merge-reviews", "--spec", "spec.json", "--reviewer", "spec=code.json"]), @r"
    exit 2
    --- stderr
    error: two reviewers are called spec
    hint: give each --reviewer a name of its own
    ");
}
