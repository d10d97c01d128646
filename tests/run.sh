#!/bin/sh
# Builds and passes the tests: installs what is missing (or names it, without root), builds into
# build/ and, with sanitizers, into build-asan/, and ends with CTest's summary of all tests.
set -eu
cd "$(dirname "$0")/.."

jobscripts/install-dependencies.sh
for preset in asan+ubsan release; do
    cmake --preset "$preset" -DROOFSWEEP_WERROR=ON
    cmake --build --preset "$preset" --parallel "$(nproc)"
    ctest --preset "$preset"
done
