#!/bin/sh
# Builds and passes the tests: installs what is missing (or names it, without root), builds into build/, with
# sanitizers into build-asan/ and, where there is clang, fuzzers into build-fuzz/. Ends with CTest's summary of the release
# build's tests, lints included. Warnings are errors with ROOFSWEEP_WERROR=ON, as in CI: a newer compiler may have more.
set -eu
cd "$(dirname "$0")/.."

jobscripts/install-dependencies.sh tests
# What is built already stays with its own generator.
! command -v ninja >/dev/null || export CMAKE_GENERATOR="${CMAKE_GENERATOR:-Ninja}"

presets="asan+ubsan release"
if echo 'int LLVMFuzzerTestOneInput(void) { return 0; }' |
    clang -fsanitize=fuzzer -x c - -o /dev/null 2>/dev/null; then
    presets="fuzz $presets"
else
    echo "no clang with a fuzzer (packages clang libclang-rt-dev): the fuzzers' seeds are replayed only"
fi
for preset in $presets; do
    began=$(date +%s)
    cmake --preset "$preset" -DROOFSWEEP_WERROR="${ROOFSWEEP_WERROR:-OFF}" -DROOFSWEEP_TESTS=ON
    cmake --build --preset "$preset" --parallel "$(nproc)"
    echo "$preset: built in $(($(date +%s) - began)) s"
    ctest --preset "$preset" --parallel "$(nproc)"
done
