#!/bin/sh
# An agent that takes no time: the first review requests a change, the second approves.
# ANSWER names a file to print as the first review; SLEEP_code and SLEEP_spec delay the reviewers, in seconds.
case "$SIGNOFF_ROLE-$SIGNOFF_CYCLE" in
    implement-*) echo work >>work.txt && echo Done. ;;
    fix-*) echo fixed >>work.txt && echo Fixed. ;;
    review-1)
        case "$SIGNOFF_REVIEWER" in
            code) [ -z "${SLEEP_code:-}" ] || sleep "$SLEEP_code" ;;
            spec) [ -z "${SLEEP_spec:-}" ] || sleep "$SLEEP_spec" ;;
        esac
        if [ -n "${ANSWER:-}" ]; then
            exec cat "$ANSWER"
        fi
        printf -- '- work.txt:1 the work is too short\n\n**Verdict: CHANGES_REQUESTED**\n'
        ;;
    review-*) printf 'All is well.\n\n**Verdict: APPROVED**\n' ;;
esac
