# Sourced by the other scripts: finds the Rust toolchain, even if HOME differs from the home it was installed in, and a
# fast directory for the tests' files.

# Prints the user's home directory from the system's user database, ignoring HOME.
system_home() {
    { getent passwd "$(id -un)" || grep "^$(id -un):" /etc/passwd; } 2>/dev/null | cut -d: -f6 | head -n 1
}

# Uses one cargo home: its programs, and the rustup home beside it.
use_cargo_home() {
    case ":$PATH:" in
        *":$1/bin:"*) ;;
        *) PATH="$1/bin:$PATH" ;;
    esac
    export PATH CARGO_HOME="${CARGO_HOME:-$1}"
    [ ! -d "${1%/*}/.rustup" ] || export RUSTUP_HOME="${RUSTUP_HOME:-${1%/*}/.rustup}"
}

find_toolchain() {
    found=$(command -v cargo || true)
    if cargo --version >/dev/null 2>&1; then
        # Use the cargo home that already has packages, so that the build needs no network.
        [ -d "${CARGO_HOME:-${HOME:-}/.cargo}/registry" ] || [ ! -d "${found%/bin/cargo}/registry" ] ||
            use_cargo_home "${found%/bin/cargo}"
        return
    fi
    for candidate in "${found%/bin/cargo}" "${CARGO_HOME:-}" "${HOME:-}/.cargo" "$(system_home)/.cargo"; do
        [ -n "$candidate" ] && [ -x "$candidate/bin/cargo" ] || continue
        if (use_cargo_home "$candidate" && cargo --version) >/dev/null 2>&1; then
            use_cargo_home "$candidate"
            return
        fi
    done
    return 1
}

if ! find_toolchain; then
    echo 'No working Rust toolchain: put `cargo` on PATH, or set CARGO_HOME and RUSTUP_HOME.' >&2
    echo 'It is installed as https://rustup.rs describes.' >&2
    exit 1
fi

# Tests create and remove many small files, which takes far less time in memory than on a disk. Uses /dev/shm if it has
# two gigabytes of free memory and programs in it can be started. A TMPDIR that is set is kept.
use_memory_for_tests() {
    [ -z "${TMPDIR:-}" ] || return 0
    free=$(df -Pk /dev/shm 2>/dev/null | awk 'NR == 2 { print $4 }')
    [ "${free:-0}" -ge 2000000 ] || return 0
    probe=$(mktemp /dev/shm/signoff-probe.XXXXXX 2>/dev/null) || return 0
    printf '#!/bin/sh\n' >"$probe" && chmod 700 "$probe"
    if "$probe" 2>/dev/null; then
        TMPDIR=/dev/shm
        export TMPDIR
    fi
    rm -f "$probe"
}
