//! `signoff tasks`.

use crate::test_env;

#[test]
fn a_plan_file_that_cannot_be_read_is_named() {
    insta::assert_snapshot!(test_env().run(&["tasks", "missing.md"]), @"");
}
