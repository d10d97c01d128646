#!/bin/sh
# Checks the rooms that all kinds of devices share: words of one vendor stand only in files that vendor_words.txt lists
# with a reason. Prints the number of words.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$here/../src"
found=$(mktemp) allowed=$(mktemp)
trap 'rm -f "$found" "$allowed"' EXIT

# Lists each "FILE: word" once. "mig" counts as a whole word or between underscores, unlike in "might".
find base model manifest ranks results worker/gpu -name '*.[ch]' -exec grep -oiHE \
    'cuda|cudnn|nvml|wgmma|warp|(^|[^a-z])mig([^a-z]|$)' {} + >"$found" || true
grep -oiHE 'cuda|cudnn|nvml|wgmma|warp|(^|[^a-z])mig([^a-z]|$)' ./*.[ch] >>"$found" || true
tr '[:upper:]' '[:lower:]' <"$found" |
    sed 's|^\./||; s/:.*mig.*/: mig/; s/:\([a-z]\)/: \1/; s|^model/workloads/[^:]*|model/workloads|' | sort >"$found.all"
sort -u "$found.all" >"$found"
sed -n 's/^\([^#:]*: [a-z]*\)  *[^ ].*/\1/p' "$here/vendor_words.txt" | sort -u >"$allowed"

new=$(comm -23 "$found" "$allowed")
gone=$(comm -13 "$found" "$allowed")
echo "$(wc -l <"$found.all") vendor words in $(cut -d: -f1 "$found" | sort -u | wc -l) files of the shared rooms"
rm -f "$found.all"
[ -z "$gone" ] || printf 'no longer needed in vendor_words.txt:\n%s\n' "$gone"
[ -z "$new" ] && exit 0
printf 'FAIL: not in vendor_words.txt; ask the row of a table (model/device_kind.h) instead:\n%s\n' "$new"
exit 1
