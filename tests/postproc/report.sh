#!/bin/sh
# `roofsweep-post report` writes a page that needs no network; check_report.py opens it in headless Chromium.
. "$(dirname "$0")/../mpi/lib.sh"
. "$here/../postproc/samples.sh"
python 'import plotly' 2>/dev/null || {
    echo "skipped: no plotly (package python3-plotly)"
    exit 77
}
# A report works on a file without rows, on a file of roofs, and on several files.
rowless "$root/tests/data/node_4xh200.nc" roofs.nc
for files in golden.nc alone.nc "golden.nc node.nc" roofs.nc; do
    # shellcheck disable=SC2086 # one file or two
    expect 0 script report $files --output page.html
    says page.html
    [ "$(wc -c <page.html)" -lt 6000000 ] || fail "a report of $files is large"
done
# int8 roofs count operations.
python '
import sys
import roofsweep_post as post
from roofsweep_post.report import content
data = post.load(sys.argv[1])
roofs = content.summary_of([data], post.rows(data, measured=False).assign(file=0))["devices"]["rows"][0][3]
assert "fp16 tensor 887.2 TFLOP/s" in roofs and "int8 tensor 1.939 POP/s" in roofs, roofs
' "$root/tests/data/node_4xh200.nc" || fail "units of roofs"
refused "none.nc: No such file" report none.nc
refused "cannot write nowhere/page.html: No such" report golden.nc --output nowhere/page.html
# A report never replaces a result file, not even through a link.
kept golden.nc "cannot write golden.nc: it is an input file; --output must name another" report golden.nc -o golden.nc
kept golden.nc "cannot write ./golden.nc: it is an input file" report node.nc "$work/golden.nc" --output ./golden.nc
kept node.nc "cannot write node.nc: it exists and is a NetCDF file; --output must name another" report golden.nc -o node.nc
cp golden.nc named.html
kept named.html "cannot write named.html: it is an input file" report named.html
file "$root/tests/postproc/check_report.py" "$root/tests/data/paper_h100.nc" roofs.nc
