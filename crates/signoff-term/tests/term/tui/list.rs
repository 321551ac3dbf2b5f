use super::scene::{LARGE, SMALL, Scene, TINY, busy, queued};

#[test]
fn what_needs_a_person_comes_first() {
    let mut scene = Scene::new(busy());
    scene.tui.queue(queued());
    println!("{}", scene.text(SMALL));
    scene.press(&[signoff_term::tui::Press::Esc]);
    println!("{}", scene.text(SMALL));
    println!("{}", scene.text(LARGE));
    println!("{}", scene.text(TINY));
    println!("{}", scene.text((1, 1)));
    println!("{}", scene.text((40, 10)));
}
