#!/bin/sh
# Runs every test_*.sh. A test that fails prints FILE:LINE: MESSAGE.
failed=0
for test in test_*.sh; do
    sh "$test" || failed=1
done
exit $failed
