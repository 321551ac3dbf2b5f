//! `signoff tasks`.

use crate::test_env;

#[test]
fn a_plan_file_that_cannot_be_read_is_named() {
    insta::assert_snapshot!(test_env().run(&["tasks", "missing.md"]), @r"
    exit 2
    --- stderr
    error: cannot read missing.md: No such file or directory (os error 2)
      --> missing.md
    hint: name a file that holds tasks
    ");
}
