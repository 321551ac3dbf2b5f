//! Measures the word rule on pairs of review comments: one JSON object `{a, b, same}` per line.

use std::io::{BufRead, BufReader};
use std::process::ExitCode;

use serde::Deserialize;
use signoff_core::similarity::Signature;

#[derive(Deserialize)]
struct Pair {
    a: String,
    b: String,
    same: bool,
}

#[derive(Default)]
struct Count {
    both: u32,
    only_rule: u32,
    only_label: u32,
    neither: u32,
}

fn main() -> ExitCode {
    let Some(path) = std::env::args().nth(1) else {
        eprintln!("usage: dedupe FILE.jsonl");
        return ExitCode::from(2);
    };
    match measure(&path) {
        Ok(count) => {
            println!("{}", report(&count));
            ExitCode::SUCCESS
        }
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn measure(path: &str) -> Result<Count, String> {
    let file = std::fs::File::open(path).map_err(|error| format!("{path}: {error}"))?;
    let mut count = Count::default();
    for (index, line) in BufReader::new(file).lines().enumerate() {
        let line = line.map_err(|error| format!("{path}:{}: {error}", index + 1))?;
        if line.trim().is_empty() {
            continue;
        }
        let pair: Pair = serde_json::from_str(&line).map_err(|error| format!("{path}:{}: {error}", index + 1))?;
        let seat = match (Signature::new(&pair.a).alike(&Signature::new(&pair.b)), pair.same) {
            (true, true) => &mut count.both,
            (true, false) => &mut count.only_rule,
            (false, true) => &mut count.only_label,
            (false, false) => &mut count.neither,
        };
        *seat += 1;
    }
    Ok(count)
}

fn report(count: &Count) -> String {
    let share = |part: u32, whole: u32| f64::from(part) / f64::from(whole.max(1));
    let said = count.both + count.only_rule;
    let labelled = count.both + count.only_label;
    format!(
        "pairs {}  same {labelled}  said same {said}\nprecision {:.4}\nrecall {:.4}\nF1 {:.4}",
        said + count.only_label + count.neither,
        share(count.both, said),
        share(count.both, labelled),
        share(2 * count.both, said + labelled),
    )
}
