//! Writes pages with sample data to a directory, for viewing: `cargo run -p signoff-serve --example pages DIR`.

use std::path::Path;
use std::{env, fs, io};

use signoff_serve::page;

#[path = "../tests/page/sample.rs"]
mod sample;

fn main() -> io::Result<()> {
    let directory = env::args().nth(1).ok_or_else(|| io::Error::other("name a directory"))?;
    let directory = Path::new(&directory);
    fs::create_dir_all(directory.join("assets"))?;
    for asset in page::ASSETS {
        fs::write(directory.join("assets").join(asset.name), asset.text)?;
    }
    for (name, html) in pages() {
        // Without a server, the assets are in a directory beside the page.
        let html = html.replace("\"/assets/", "\"assets/");
        fs::write(directory.join(format!("{name}.html")), html)?;
    }
    Ok(())
}

fn pages() -> Vec<(&'static str, String)> {
    let task = sample::task();
    vec![
        ("home", page::home(&sample::home(), None)),
        ("crowd", page::home(&sample::home_with_tasks(1000), None)),
        ("run", page::run(&sample::run_page(), None)),
        ("task", page::task(&task, None)),
        ("diff", page::diff(&task)),
        ("transcript", page::transcript(&sample::transcript())),
        ("stats", page::stats("shop", &sample::stats())),
        ("add", page::add(&sample::add(), None)),
        ("error", page::error_page(404, "there is no task 99", Some("the overview lists those there are"))),
        ("report", page::report_file(&sample::report_head(), vec![task.clone(), task])),
    ]
}
