# Sourced by the shell tests: TAP, and the program under test. Each test works in a folder of its own.
# shellcheck shell=sh disable=SC2034 # the tests use them

set -u
fader=${FADER_BUILDDIR:?run by make check}/fader
work=$(mktemp -d "${TMPDIR:-/tmp}/fader-cli.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 1' HUP INT TERM
cd "$work" || exit 1
unset POSIXLY_CORRECT
LC_ALL=C.UTF-8
export LC_ALL
count=0
# Set by `run`.
out=
err=
status=0

ok() { # NAME STATUS
    count=$((count + 1))
    if [ "$2" -eq 0 ]; then
        echo "ok $count - $1"
    else
        echo "not ok $count - $1"
    fi
}

# Runs a command; $out, $err and $status are what came of it. Standard input is empty unless piped.
run() {
    "$@" >"$work/out" 2>"$work/err" </dev/null
    status=$?
    out=$(cat "$work/out")
    err=$(cat "$work/err")
}

run_with() { # FILE COMMAND...: standard input from FILE
    input=$1
    shift
    "$@" >"$work/out" 2>"$work/err" <"$input"
    status=$?
    out=$(cat "$work/out")
    err=$(cat "$work/err")
}

is() { # NAME GOT EXPECTED
    if [ "$2" = "$3" ]; then
        ok "$1" 0
    else
        ok "$1" 1
        printf 'got:      %s\nexpected: %s\n' "$2" "$3" | sed 's/^/# /'
    fi
}

like() { # NAME TEXT PATTERN (grep -E)
    if printf '%s\n' "$2" | grep -Eq -- "$3"; then
        ok "$1" 0
    else
        ok "$1" 1
        printf 'got:     %s\npattern: %s\n' "$2" "$3" | sed 's/^/# /'
    fi
}

same_file() { # NAME FILE FILE
    if cmp -s "$2" "$3"; then
        ok "$1" 0
    else
        ok "$1" 1
        cmp "$2" "$3" | sed 's/^/# /'
    fi
}

# The numbers of one key in the JSON lines of a file, one a line.
numbers_of() { # KEY FILE
    sed -n "s/.*\"$1\":\\(-\\{0,1\\}[0-9][0-9.e+-]*\\).*/\\1/p" "$2"
}

# Ends the test as skipped where the model is not there; as failed where it must be.
need_model() {
    model=${XDG_CACHE_HOME:-$HOME/.cache}/fader/models/SmolLM2-135M-Instruct.Q4_1.gguf
    if [ -f "$model" ]; then
        return
    fi
    if [ "${FADER_REQUIRE_MODEL:-}" = 1 ]; then
        ok "the model is at $model" 1
        done_testing
    fi
    if [ "$count" -gt 0 ]; then # what needs none has been done
        ok "the rest # SKIP no model at $model" 0
        done_testing
    fi
    echo "1..0 # SKIP no model at $model"
    exit 0
}

done_testing() {
    echo "1..$count"
    exit 0
}
