//! Messages for errors that a file of the corpus cannot contain.

use std::fmt::Write;

use signoff_core::settings::{Flag, Layer, MAX_FILE_BYTES, SettingVariable, read, variables};

use crate::config::try_configured;

#[test]
fn a_file_that_is_too_long_is_refused_at_once() {
    let text = "a = 1 # padding\n".repeat(5_000_000 / 16);
    insta::assert_snapshot!(try_configured(&text).unwrap_err(), @"signoff.toml:1: the file has 5000000 bytes: expected at most 1000000");
    assert!(text.len() > MAX_FILE_BYTES);
}

/// The line lookup stays fast for a file full of keys.
#[test]
fn a_file_full_of_keys_is_read() {
    let mut text = "[checks]\n".to_owned();
    for number in 0.. {
        if text.len() + 20 > MAX_FILE_BYTES {
            break;
        }
        writeln!(text, "c{number} = \"x\"").unwrap();
    }
    let settings = try_configured(&text).unwrap();
    let rows = settings.origins();
    let last = rows.iter().rfind(|row| row.key.starts_with("checks.")).unwrap();
    assert_eq!(last.origin.to_string(), format!("signoff.toml:{}", text.lines().count()));
}

#[test]
fn deep_nesting_is_an_error_like_any_other() {
    let text = format!("x = {}1{}\n", "[".repeat(10_000), "]".repeat(10_000));
    let error = try_configured(&text).unwrap_err().to_string();
    assert!(error.starts_with("signoff.toml:1: this is not TOML"), "{error}");
}

#[test]
fn an_error_outside_files_names_its_origin() {
    let environment =
        |name: &str, value: &str| read(&[], &[(name.to_owned(), value.to_owned())], &[]).unwrap_err().to_string();
    insta::assert_snapshot!(environment("SIGNOFF_JOBS", "many"), @r#"SIGNOFF_JOBS: `jobs` is "many": expected a whole number from 1 to 1000"#);
    insta::assert_snapshot!(environment("SIGNOFF_JOBS", "0"), @"SIGNOFF_JOBS: `jobs` is 0: expected a whole number from 1 to 1000");
    insta::assert_snapshot!(environment("SIGNOFF_JOBS", "4\npreset = \"plan\""), @r#"SIGNOFF_JOBS: `jobs` is "4\npreset = \"plan\"": expected a whole number from 1 to 1000"#);
    insta::assert_snapshot!(environment("SIGNOFF_JOB", "4"), @"SIGNOFF_JOB: no such setting: did you mean `SIGNOFF_JOBS`?");
    insta::assert_snapshot!(environment("SIGNOFF_PRESET", "3"), @r#"SIGNOFF_PRESET: `preset` is "3", which is not a workflow: expected one of task, slots, plan, loops, phases"#);
    insta::assert_snapshot!(environment("SIGNOFF_NO_ASK", "maybe"), @r#"SIGNOFF_NO_ASK: `no_ask` is "maybe": expected true or false"#);
    let flag = Flag { name: "--jobs", key: "jobs", value: "0".to_owned() };
    insta::assert_snapshot!(read(&[], &[], &[flag]).unwrap_err(), @"--jobs: `jobs` is 0: expected a whole number from 1 to 1000");
}

#[test]
fn the_file_with_the_error_is_named() {
    let person = Layer::person("config.toml", "[agents.claude]\n[roles]\nimplement = \"cluade\"\n");
    let repository = Layer::repository("signoff.toml", "jobs = 2\n");
    insta::assert_snapshot!(read(&[person, repository], &[], &[]).unwrap_err(), @"config.toml:3: `implement` names the agent `cluade`, which is not configured: did you mean `claude`?");
}

/// Every variable is named after its key, and the message for a bad value names the variable and what to write.
#[test]
fn every_variable_is_checked_like_a_line_of_a_file() {
    let mut out = String::new();
    for SettingVariable { name, key } in variables().iter().cloned() {
        assert_eq!(name, format!("SIGNOFF_{}", key.to_uppercase().replace('.', "_")));
        let variable = |value: &str| vec![(name.to_owned(), value.to_owned())];
        let error = read(&[], &variable("nonsense, \"of\" course"), &[]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{name}: ")), "{error}");
        writeln!(out, "{error}").unwrap();
        let good = ["7", "true", "7m", "sqlite", "merge", "copy", "fresh", "plan"];
        let taken = good.iter().find_map(|value| read(&[], &variable(value), &[]).ok());
        let rows = taken.unwrap_or_else(|| panic!("{name} takes nothing")).origins();
        let row = rows.iter().find(|row| row.key == key).unwrap_or_else(|| panic!("{key}"));
        assert_eq!(row.origin.to_string(), name);
    }
    insta::assert_snapshot!(out);
}

#[test]
fn variables_win_over_files_and_lose_against_flags() {
    let file = Layer::repository("signoff.toml", "[limits]\nmax_cost_usd = 5.0\nsilence = \"1m\"\n");
    let variables = [
        ("SIGNOFF_LIMITS_MAX_COST_USD".to_owned(), "2.50".to_owned()),
        ("SIGNOFF_LIMITS_RUN_MAX_TOKENS".to_owned(), "1000".to_owned()),
        ("SIGNOFF_LIMITS_SILENCE".to_owned(), "90s".to_owned()),
        ("SIGNOFF_DEFAULTS_AUTO_REVIEW".to_owned(), "1".to_owned()),
        // Variables that agents get set nothing.
        ("SIGNOFF_ATTEMPT".to_owned(), "3".to_owned()),
    ];
    let flag = Flag { name: "--max-cost", key: "limits.max_cost_usd", value: "1".to_owned() };
    let limits = |flags: &[Flag]| read(std::slice::from_ref(&file), &variables, flags).unwrap().limits();
    assert_eq!(limits(&[]).task.max_cost_micro_usd, Some(2_500_000));
    assert_eq!(limits(&[]).run.max_tokens, Some(1000));
    assert_eq!(limits(&[]).silence.seconds, 90);
    assert_eq!(limits(&[flag]).task.max_cost_micro_usd, Some(1_000_000));
}
