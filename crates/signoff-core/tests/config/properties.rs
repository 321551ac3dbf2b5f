//! Properties of every configuration, valid or not.

use proptest::prelude::*;
use signoff_core::settings::{ConfigError, Layer, Settings, TaskFlags, read};
use signoff_core::task::{TaskSpec, TaskType};
use signoff_core::workflow::PRESETS;
use strum::VariantArray as _;

use crate::config::{configured, try_configured};

const GUIDE: &str = include_str!("../../../../docs/guide/src/reference/configuration.md");

/// The example with every table.
fn example() -> Vec<&'static str> {
    let blocks = GUIDE.split("```toml file=signoff.toml\n").skip(1);
    let longest = blocks.filter_map(|rest| rest.split("```").next()).max_by_key(|block| block.len());
    longest.expect("an example").lines().collect()
}

/// An error has a line within the file; a valid configuration has a workflow for every task.
fn is_valid_or_has_line(text: &str) -> Result<(), TestCaseError> {
    match try_configured(text) {
        Ok(settings) => check_every_task(&settings),
        Err(ConfigError::File { file, line, message }) => {
            prop_assert_eq!(file, "signoff.toml");
            prop_assert!((1..=text.lines().count().max(1)).contains(&line), "line {} of {}", line, message);
            Ok(())
        }
        Err(error) => Err(TestCaseError::fail(format!("without a line: {error}"))),
    }
}

fn check_every_task(settings: &Settings) -> Result<(), TestCaseError> {
    for preset in settings.workflow_names() {
        for &kind in TaskType::VARIANTS {
            let task = TaskSpec { kind, ..TaskSpec::from_text("Add login") };
            let flags = TaskFlags { preset: Some(preset.to_owned()), ..TaskFlags::default() };
            prop_assert!(settings.task_workflow(&task, &flags).is_ok(), "{} {}", preset, kind.into_str());
        }
    }
    Ok(())
}

#[test]
fn every_preset_serves_every_task() {
    let settings = configured(&example().join("\n"));
    assert!(settings.workflow_names().len() > PRESETS.len());
    check_every_task(&settings).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_is_read_or_refused_with_its_line(text in any::<String>()) {
        is_valid_or_has_line(&text)?;
    }

    /// The example with a line removed, duplicated or moved.
    #[test]
    fn a_damaged_file_is_read_or_refused_with_its_line(
        from in any::<prop::sample::Index>(), to in any::<prop::sample::Index>(), keep in any::<bool>(),
    ) {
        let mut lines = example();
        let line = lines[from.index(lines.len())];
        if !keep {
            lines.remove(from.index(lines.len()));
        }
        lines.insert(to.index(lines.len()), line);
        is_valid_or_has_line(&lines.join("\n"))?;
    }

    /// The later of two layers wins.
    #[test]
    fn a_later_layer_wins_key_by_key(person in prop::option::of(1..9u32), repository in prop::option::of(1..9u32)) {
        let text = |jobs: Option<u32>| jobs.map(|jobs| format!("jobs = {jobs}\n")).unwrap_or_default();
        let layers = [Layer::person("config.toml", text(person)), Layer::repository("signoff.toml", text(repository))];
        let settings = read(&layers, &[], &[]).unwrap();
        prop_assert_eq!(settings.jobs(), repository.or(person).unwrap_or(4));
    }
}
