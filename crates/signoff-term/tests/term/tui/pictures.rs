//! The screenshots of the guide.

use crossterm::event::KeyCode;
use std::fmt::Write as _;
use std::path::Path;

use ratatui::buffer::{Buffer, Cell};
use ratatui::style::{Color, Modifier};
use signoff_core::ids::{AttemptId, RunId};

use super::scene::{Scene, busy, judged, queued};
use crate::story::id;

/// The size of a cell.
const WIDE: usize = 8;
const HIGH: usize = 17;

/// Compares the picture with the stored file; `UPDATE_DOCS=1` updates the file.
#[expect(clippy::disallowed_methods, reason = "UPDATE_DOCS=1 writes the pictures instead of comparing them")]
fn picture(name: &str, buffer: &Buffer) {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/src/images").join(format!("tui-{name}.svg"));
    let drawn = svg(buffer);
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::create_dir_all(path.parent().expect("a directory")).expect("a directory");
        std::fs::write(&path, &drawn).expect("a picture");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(kept == drawn, "tui-{name}.svg is out of date: run this test with UPDATE_DOCS=1");
}

#[test]
fn the_guide_shows_the_list() {
    let mut scene = Scene::new(busy()).with_run(&judged());
    scene.tui.set_queue(queued());
    for (task, line) in [(22, "Reading src/login.rs"), (23, "cargo test login"), (24, "Where are mails sent from?")] {
        scene.tui.add_live_line(RunId(3), &id(task), AttemptId(1), line);
    }
    scene.press(&[KeyCode::Esc, KeyCode::Down, KeyCode::Up]);
    picture("list", &scene.draw((110, 26)));
}

#[test]
fn the_guide_shows_reviews() {
    let mut scene = Scene::new(judged());
    scene.press(&[KeyCode::Esc, KeyCode::Enter, KeyCode::Char('['), KeyCode::Char('[')]);
    picture("reviews", &scene.draw((100, 20)));
}

#[test]
fn the_guide_shows_findings() {
    let mut scene = Scene::new(judged());
    scene.press(&[KeyCode::Esc, KeyCode::Enter, KeyCode::Char('2')]);
    picture("findings", &scene.draw((100, 20)));
}

#[test]
fn the_guide_shows_a_question() {
    let mut scene = Scene::new(judged());
    scene.press(&[KeyCode::Down]);
    picture("question", &scene.draw((100, 22)));
}

/// Renders a screen as SVG; adjacent cells of the same style are one element.
fn svg(buffer: &Buffer) -> String {
    let (columns, lines) = (usize::from(buffer.area.width), usize::from(buffer.area.height));
    let (width, height) = (columns * WIDE + 16, lines * HIGH + 16);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"13\">\n\
         <rect width=\"100%\" height=\"100%\" rx=\"6\" fill=\"#16181d\"/>\n"
    );
    for y in 0..lines {
        for (x, piece, cell) in styled_parts(buffer, y) {
            append_part(&mut svg, (x, y), &piece, cell);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The parts of a line by style, with their first column.
fn styled_parts(buffer: &Buffer, y: usize) -> Vec<(usize, String, &Cell)> {
    let mut pieces: Vec<(usize, String, &Cell)> = Vec::new();
    for x in 0..usize::from(buffer.area.width) {
        let cell = &buffer[(x as u16, y as u16)];
        match pieces.last_mut().filter(|(.., last)| style(last) == style(cell)) {
            Some((_, text, _)) => text.push_str(cell.symbol()),
            None => pieces.push((x, cell.symbol().to_owned(), cell)),
        }
    }
    pieces
}

fn style(cell: &Cell) -> (Color, Modifier) {
    (cell.fg, cell.modifier)
}

fn append_part(svg: &mut String, (x, y): (usize, usize), text: &str, cell: &Cell) {
    let reversed = cell.modifier.contains(Modifier::REVERSED);
    if text.trim().is_empty() && !reversed {
        return;
    }
    let (left, top, wide) = (8 + x * WIDE, 8 + y * HIGH, text.chars().count() * WIDE);
    let ink = if reversed { "#16181d" } else { color(cell.fg) };
    if reversed {
        let _ = writeln!(svg, "<rect x=\"{left}\" y=\"{top}\" width=\"{wide}\" height=\"{HIGH}\" fill=\"#d6d9e0\"/>");
    }
    let bold = if cell.modifier.contains(Modifier::BOLD) { " font-weight=\"bold\"" } else { "" };
    let text = text.trim_end().replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let (length, base) = (text_columns(&text) * WIDE, top + 13);
    let _ = writeln!(
        svg,
        "<text x=\"{left}\" y=\"{base}\" textLength=\"{length}\" fill=\"{ink}\"{bold} xml:space=\"preserve\">{text}</text>"
    );
}

/// The width of an escaped text in columns.
fn text_columns(text: &str) -> usize {
    text.replace("&amp;", "&").replace("&lt;", "<").replace("&gt;", ">").chars().count()
}

/// The colors of the pictures.
const COLOURS: [(Color, &str); 8] = [
    (Color::Red, "#f2777a"),
    (Color::Green, "#99cc99"),
    (Color::Yellow, "#ffcc66"),
    (Color::Blue, "#6699cc"),
    (Color::LightBlue, "#8ab8e6"),
    (Color::Magenta, "#cc99cc"),
    (Color::Cyan, "#66cccc"),
    (Color::DarkGray, "#8b909c"),
];

fn color(color: Color) -> &'static str {
    COLOURS.iter().find(|(known, _)| *known == color).map_or("#d6d9e0", |(_, shown)| shown)
}
