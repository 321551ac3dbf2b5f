//! The pseudo-terminal of the testkit.
#![cfg(unix)]

use signoff_testkit::TestEnv;
use signoff_testkit::terminal::key;

#[test]
fn input_and_output_pass_through() {
    let env = TestEnv::new("/bin/sh");
    let terminal = env.shell_on_terminal("stty size; printf 'Who? '; read name; echo \"Hello, $name.\"");
    terminal.wait_for("Who?");
    terminal.send("Ann");
    terminal.send(key::ENTER);
    let end = terminal.finish();
    assert_eq!(end.to_string(), "exit 0\n24 80\nWho? Ann\nHello, Ann.");
    assert!(end.sane);
}

#[test]
fn overwritten_text_is_gone() {
    let env = TestEnv::new("/bin/sh");
    let terminal = env.shell_on_terminal("stty -echo; printf 'one\\r\\033[K\\033[?25ltwo'; read x");
    assert_eq!(terminal.wait_for("two").text(), "two");
    terminal.send(key::CTRL_C);
    let end = terminal.finish();
    assert_eq!((end.signal, end.sane), (Some(2), false));
}
