#!/bin/sh
# Checks the source without running it.
#
# Usage: tests/lint.sh [format|tidy|shell|python|documents|rooms]... [--build FOLDER] [--all]
#
# Without a name, all checks run. `tidy` checks changed files; with --all it checks every file. A check without its tool
# is skipped; with CI=true it fails. Exit status: 0; 1 if a check fails; 77 if none fails and one was skipped.
set -eu
cd "$(dirname "$0")/.."
build=build
every=${ROOFSWEEP_TIDY:-}

# files PATTERN...: prints the files of the project whose names match.
files() {
    for pattern in "$@"; do
        find . \( -name 'build*' -o -name .git -o -name __pycache__ \) -prune -o -type f -name "$pattern" -print
    done | sort
}

# skip WHAT: WHAT is missing. Returns 77, or 1 in CI.
skip() {
    echo "skipped: no $*"
    [ "${CI:-}" = true ] && return 1
    return 77
}

# version_14 PROGRAM: sets `program` to version 14, that of Debian 12. Other versions format differently and warn of more.
version_14() {
    for program in "$1-14" "$1"; do
        case $($program --version 2>/dev/null || true) in
        *"version 14."*) return ;;
        esac
    done
    skip "$1 of version 14 (package $1 of Debian 12)"
}

check_format() {
    version_14 clang-format || return
    status=0
    files '*.c' '*.h' '*.cpp' '*.cu' '*.cuh' | xargs "$program" --dry-run -Werror || status=1
    # clang-format breaks neither strings nor comments in macros.
    files '*.c' '*.h' '*.cpp' '*.cu' '*.cuh' | xargs awk 'length > 100 {
        print FILENAME ":" FNR ": " length " columns; at most 100"; long = 1 } END { exit long }' || status=1
    return "$status"
}

check_tidy() {
    version_14 clang-tidy || return
    [ -f "$build/compile_commands.json" ] || { skip "$build/compile_commands.json; cmake --preset release"; return; }
    # shellcheck disable=SC2086 # a word or nothing
    python3 tests/lint_tidy.py "$program" "$build" $every
}

check_shell() {
    command -v shellcheck >/dev/null || { skip "shellcheck (package shellcheck)"; return; }
    { files '*.sh'; echo ./.ci/run; } | xargs shellcheck
}

# jobscripts/install-dependencies.sh installs a fixed version of ruff into build/tools/.
check_python() {
    ruff=build/tools/bin/ruff
    [ -x "$ruff" ] || ruff=$(command -v ruff) || { skip "ruff (jobscripts/install-dependencies.sh tests)"; return; }
    status=0
    files '*.py' roofsweep-post | xargs "$ruff" check --quiet --output-format concise || status=1
    files '*.py' roofsweep-post | xargs "$ruff" format --quiet --diff || status=1
    return "$status"
}

# Rows of tables have no limit, because they cannot be broken.
check_documents() {
    files '*.md' | python3 -c '
import pathlib, sys
long = [f"{path}:{number}: {len(line)} columns; at most 120"
        for path in sys.stdin.read().split()
        for number, line in enumerate(pathlib.Path(path).read_text().splitlines(), 1)
        if len(line) > 120 and not line.startswith("|")]
print(*long, sep="\n", end="\n" if long else "")
sys.exit(bool(long))' || return 1
    python3 tests/lint_prose.py
}

check_rooms() {
    python3 tests/rooms.py && tests/vendor_words.sh
}

all="format tidy shell python documents rooms"
checks=""
while [ $# -gt 0 ]; do
    case $1 in
    --build)
        build=$2
        shift
        ;;
    --all) every=--all ;;
    *) checks="$checks $1" ;;
    esac
    shift
done

failed="" skipped=""
for check in ${checks:-$all}; do
    case " $all " in
    *" $check "*) ;;
    *)
        echo "unknown check '$check'; there are: $all" >&2
        exit 2
        ;;
    esac
    status=0
    "check_$check" || status=$?
    case $status in
    0) echo "lint $check: ok" ;;
    77) skipped="$skipped $check" ;;
    *)
        echo "lint $check: FAILED"
        failed="$failed $check"
        ;;
    esac
done
[ -z "$failed" ] || exit 1
[ -z "$skipped" ] || exit 77
