#!/bin/sh
# Checks the variables and conventions (CF, ACDD) of the golden file and of a new file of this CPU. The last part needs
# the IOOS compliance checker ($COMPLIANCE_CHECKER, or compliance-checker in the path), and is skipped without it.
. "$(dirname "$0")/../mpi/lib.sh"
. "$here/../postproc/samples.sh"

# The file of a sweep with all workloads has at most 130 variables, and a header of 600 lines.
ncdump -h "$root/tests/data/paper_h100.nc" >header
[ "$(grep -cE "^	(double|string|int64|byte) " header)" -le 130 ] || fail "a file has too many variables"
[ "$(wc -l <header)" -le 600 ] || fail "the header of a file is too long"

# Files with a different format version, and files whose rows another tool has joined, are refused.
for version in 2 99; do
    doctored golden.nc old.nc "data.format_version = $version"
    [ $version -lt 3 ] && says="an earlier roofsweep wrote it" || says="format version 99"
    refused "$says" rows old.nc
done
doctored golden.nc joined.nc 'data["uuid"][2] = "GPU-of-another-file"'
refused "roofsweep-post merge" rows joined.nc

cat >fresh.ini <<'INI'
[sweep]
output = fresh.nc
device = cpu
[measure]
iterations = 20
cache = cold
[peaks]
memory = dram
compute = fp32
[lstm l]
sequence = 2
INI
expect 0 run 1 fresh.ini
# A file of a CPU lacks variables that it cannot have, such as counted values and reasons of failures.
python '
import numpy, xarray
data = xarray.open_dataset("fresh.nc", decode_times=False)
empty = []
for name, variable in data.variables.items():
    words = variable.attrs.get("flag_meanings", "").split()
    if "flag_values" in variable.attrs:
        none = words[-1] == "unknown" and bool((variable.values == len(words) - 1).all())
    elif variable.dtype.kind in "OU":
        none = all(text == "" for text in variable.values.ravel())
    else:
        none = bool(numpy.isnan(variable.values.astype(float)).all())
    empty += [name] if none else []
print(len(data.variables), "variables, without a value:", *empty)
assert len(empty) <= 3, empty
' || fail "a file of a CPU has variables that it cannot fill"

checker=${COMPLIANCE_CHECKER:-compliance-checker}
command -v "$checker" >/dev/null || { echo "skipped: no compliance-checker (pip install compliance-checker)"; exit 77; }
for file in golden.nc fresh.nc; do
    # The exit status is ignored: version 6.1 always ends with 1, because it does not accept texts as coordinates.
    "$checker" -t cf:1.11 -c strict "$file" >report || true
    grep -q "All tests passed" report || { cat report; fail "$file: CF"; }
    "$checker" -t acdd:1.3 -c strict -f json -o acdd.json "$file" >/dev/null || true
    # These findings of ACDD are accepted: standard names, geographic places, facts that only people know, and
    # coverage_content_type, which would be one more attribute of each variable.
    python '
import json, re, sys
expected = """coverage_content_type standard_name geospatial_ creator_ publisher_ contributor_ institution license
acknowledg naming_authority _vocabulary metadata_link program time_coverage_resolution time_coverage_extents variable
date_ Metadata""".split()
report = json.load(open("acdd.json"))["acdd:1.3"]
left = [text for level in ("high", "medium", "low") for text in
        [message for check in report[f"{level}_priorities"] for message in check["msgs"]]]
others = [text for text in left if not any(word in text for word in [*expected, "units"])]
print(f"{sys.argv[1]}: {len(left)} remarks of ACDD, all of them expected" if not others else others)
sys.exit(1 if others else 0)
' "$file" || fail "$file: ACDD"
done
