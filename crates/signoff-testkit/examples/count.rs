//! Prints the size of the program: code lines, files, the longest functions, types that share a name.

use std::collections::BTreeMap;
use std::path::PathBuf;

use signoff_testkit::source_code::{ItemVisibility, SourceFile, source_files, workspace_root};

fn main() {
    let root = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let all = source_files(&root.map_or_else(workspace_root, PathBuf::from));
    let product: Vec<&SourceFile> = all.iter().filter(|file| file.is_product()).collect();
    let lines = |files: &[&SourceFile]| files.iter().map(|file| file.code_lines).sum::<usize>();
    println!("code lines without tests, blanks and comments: {}", lines(&product));
    println!("files: {}", product.len());
    let mut crates: BTreeMap<&str, Vec<&SourceFile>> = BTreeMap::new();
    for file in &product {
        crates.entry(file.path.split('/').nth(1).unwrap_or_default()).or_default().push(file);
    }
    for (name, files) in &crates {
        println!("  {name}: {} lines, {} files", lines(files), files.len());
    }
    let rest: Vec<&SourceFile> = all.iter().filter(|file| !file.is_product()).collect();
    println!("code lines of tests, benchmarks, examples and the testkit: {}", lines(&rest));
    functions(&product);
    types(&product);
}

fn functions(files: &[&SourceFile]) {
    let mut all: Vec<_> =
        files.iter().flat_map(|file| file.functions.iter().map(move |function| (*file, function))).collect();
    all.sort_by_key(|(_, function)| std::cmp::Reverse(function.lines.clone().count()));
    let longest = all.iter().take(3).map(|(file, function)| {
        format!(
            "{} lines ({} at {}:{})",
            function.lines.clone().count(),
            function.name,
            file.path,
            function.lines.start()
        )
    });
    println!("longest functions: {}", longest.collect::<Vec<_>>().join(", "));
    let tuples: usize = all.iter().map(|(_, function)| function.tuple_parameters).sum();
    println!("tuple parameters: {tuples}");
    if std::env::args().any(|argument| argument == "--names") {
        for (file, function) in all.iter().filter(|(_, function)| function.tuple_parameters > 0) {
            println!("  {} at {}:{}", function.name, file.path, function.lines.start());
        }
    }
    println!("functions with more than five parameters: {}", all.iter().filter(|(_, one)| one.parameters > 5).count());
}

fn types(files: &[&SourceFile]) {
    let mut names: BTreeMap<&str, Vec<(String, ItemVisibility)>> = BTreeMap::new();
    for file in files {
        for one in &file.types {
            names.entry(&one.name).or_default().push((format!("{}:{}", file.path, one.line), one.visibility));
        }
    }
    let all: usize = names.values().map(Vec::len).sum();
    let shared: usize = names.values().filter(|places| places.len() > 1).map(Vec::len).sum();
    println!("types: {all}, sharing a name: {shared}");
    let public = |places: &Vec<(String, ItemVisibility)>| {
        places.iter().filter(|(_, visibility)| *visibility != ItemVisibility::Private).count()
    };
    let all: usize = names.values().map(public).sum();
    let shared: usize = names.values().map(public).filter(|count| *count > 1).sum();
    println!("types visible outside of their module: {all}, sharing a name: {shared}");
    if std::env::args().any(|argument| argument == "--names") {
        for (name, places) in names.iter().filter(|(_, places)| public(places) > 1) {
            let places: Vec<_> = places.iter().map(|(place, _)| place.as_str()).collect();
            println!("  {name}: {}", places.join(" "));
        }
    }
}
