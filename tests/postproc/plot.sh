#!/bin/sh
# Tests `roofsweep-post plot` and `export` with a file of the quick start: figures have the values of the file, errors
# are clear, and every recipe of postproc/README.md works.
. "$(dirname "$0")/../mpi/lib.sh"
python 'import matplotlib' 2>/dev/null || {
    echo "skipped: no matplotlib (package python3-matplotlib)"
    exit 77
}
unset DISPLAY
. "$here/../postproc/samples.sh"
script() { # with warnings of matplotlib allowed
    served plot "$@"
}
paper=$root/tests/data/paper_h100.nc
four=$root/tests/data/node_4xh200.nc
"$ROOFSWEEP_PYTHON" "$root/postproc/roofsweep-post" merge --any-settings "$root/tests/data/loops_h200.nc" \
    "$root/tests/data/conv2d_batch_h200.nc" --output two.nc >output 2>&1 || fail "a file of two sessions"
file "$root/tests/postproc/check_figures.py" "$paper" "$four" golden.nc two.nc \
    "$root/tests/data/algorithms_h200.nc" "$root/tests/data/paper_h200.nc" || fail "a figure differs from its file"
# Every figure of the gallery is readable.
expect 0 file "$root/tests/postproc/check_gallery.py" "$root"

# The sweep measures roofs only with `condition = alone`: roofs together need a common start, which a busy machine may
# miss.
sed 's/^device = auto/device = cpu/; s/^implementation = auto.*/implementation = plain/' "$root/sweeps/quickstart.ini" >quickstart.ini
printf '[peaks]\ncondition = alone\n' >>quickstart.ini
expect 0 run 2 quickstart.ini
doctored quickstart.nc again.nc 'data["time_median"][:] *= 1.02'

# Draws all kinds of figures of a CPU's file in all formats. Text in SVG and PDF stays text.
cat >kinds.py <<'PY'
import shlex, sys
from roofsweep_post import cli
h200, four = sys.argv[1:]
for words in [
    *(f"four quickstart.nc --labels filters --output figure.{format}" for format in ("pdf", "svg", "png")),
    "four quickstart.nc --labels filters --width page --output page.pdf",
    *(f"{kind} quickstart.nc --labels filters --by filters --output {kind}.svg"
      for kind in ("classic", "complexity", "time", "bars")),
    "classic quickstart.nc again.nc --series file --labels shape --by hidden --output two.svg",
    "strip quickstart.nc again.nc --output strip.svg",
    f"history {h200} {h200} --output history.svg",
    f"map {four} --where condition=alone --output map.svg",
]:
    assert cli.run(cli.arguments(["plot", *shlex.split(words)])) == 0, words
PY
expect 0 file kinds.py "$paper" "$four"
for format in pdf svg png; do says "figure.$format"; done
# Names that look like TeX, and names that are longer than a page.
doctored node.nc names.nc 'data["device_model"][:] = numpy.full(4, "$x_{", dtype=object)
data["device_hostname"][:] = numpy.full(4, "a" * 100000, dtype=object)'
for kind in classic map; do expect 0 script plot "$kind" names.nc --output names.png; done
# Figures are as wide as a journal's column or page (72 points an inch). PDFs embed all fonts as TrueType.
if command -v pdffonts >/dev/null; then
    for page in figure:252 page:518.4; do
        pdfinfo "${page%:*}.pdf" | grep -q "^Page size: *${page#*:} x" || fail "${page%:*}.pdf is of another width"
        pdffonts "${page%:*}.pdf" | awk 'NR > 2 { ++fonts; if (!/TrueType/ || $(NF-4) != "yes") exit 1 }
            END { exit fonts == 0 }' || { pdffonts "${page%:*}.pdf"; fail "fonts of ${page%:*}.pdf"; }
    done
fi
head -c 5 figure.pdf | grep -q '%PDF-' || fail "figure.pdf is no PDF"
grep -q "compute time" figure.svg || fail "figure.svg has no text"
python '
from PIL import Image
image = Image.open("figure.png")
assert abs(image.width - 3.5 * 300) < 2, image.size
' || fail "figure.png is of another width"
# If one parameter determines all others that vary (vary = zip), lines join points in its order; else there are no
# lines.
python '
import roofsweep_post as post
from roofsweep_post.figures.scene import swept
data = post.load("quickstart.nc")
table = post.rows(data)
table = table[table.label == "filters"]
by = lambda channels: swept(table.assign(channels=channels), [data])
found = by(32), by(2 * table.filters), by(table["pass"] == "forward")
assert found == ("filters", "channels", None), found
' || fail "another parameter orders the points"

python '
import roofsweep_post as post, sys
from roofsweep_post.selection import choose
table = post.rows(post.load(sys.argv[1]))
count = lambda *terms: len(choose(table, terms))
assert count("precision=fp16") + count("precision=fp32") == len(table) == count("precision=fp16,fp32")
assert count("batch>=32") + count("batch<32") == len(table) and count("batch=16.0") == count("batch=16")
assert count("label=conv2d-filters", "pass!=forward") == sum("conv2d-filters" in l for l in
    table[table["pass"] != "forward"].label)
assert 0 < count("kernel=3") < len(table)
assert count("time_median>0.1 ms") + count("time_median<=1e-4") == len(table) == count("roof_fraction<200%")
' "$paper" || fail "other rows are chosen"

expect 0 script export quickstart.nc --columns configuration,time_median,paper_bound --output rows.csv
python '
import pandas, xarray
data, rows = xarray.open_dataset("quickstart.nc"), pandas.read_csv("rows.csv")
assert list(rows.configuration) == list(data.configuration.values)
assert max(abs(rows.time_median / data.time_median.values - 1)) < 1e-12
assert set(rows.paper_bound) <= {"compute", "bandwidth", "overhead", "unknown"}
' || fail "an exported table differs from the file"

# h5netcdf is used if netCDF4 is missing; without both there is a clear error.
cat >reader.py <<'PY'
import importlib.util, sys
import numpy as np
import roofsweep_post as post
from roofsweep_post import dataset
there = importlib.util.find_spec
one = post.load("quickstart.nc")
if there("h5netcdf"):
    importlib.util.find_spec = lambda name: None if name == "netCDF4" else there(name)
    assert dataset.back_end() == "h5netcdf"
    other = post.load("quickstart.nc")
    for name in one.variables:
        a, b = one[name].values, other[name].values
        same = np.array_equal(a, b, equal_nan=True) if a.dtype.kind == "f" else (a == b).all()
        assert same, (name, a, b)
    assert one.attrs["manifest"] == other.attrs["manifest"]
importlib.util.find_spec = lambda name: None
try:
    post.load("quickstart.nc")
    sys.exit("load() works without a module")
except post.Refused as refused:
    assert "python3-netcdf4" in str(refused), refused
PY
file reader.py || fail "modules that read NetCDF"

# Wrong files and arguments: status 2 and one sentence, no traceback. All cases run in one process, because imports take
# seconds.
echo "no netcdf" >text.nc
head -c 20000 quickstart.nc >torn.nc
python 'import xarray; xarray.Dataset({"a": ("x", [1, 2])}).to_netcdf("other.nc")'
cp "$root/tests/data/conv2d_batch_h200.nc" batch.nc
cat >refused.py <<'PY'
import contextlib, io, shlex, sys
from roofsweep_post import cli
wrong = """\
no row has label=nope; there are: filters, shape | plot four quickstart.nc --labels nope
no variable 'nope' | plot four quickstart.nc --by nope
no variable 'xyzzy'; there are: accuracy, algorithm, | plot four quickstart.nc --where xyzzy=1
no variable 'filtres'; did you mean filters | plot four quickstart.nc --where filtres=1
'filters' is no condition | plot four quickstart.nc --where filters
no memory level 'l9'; there are: dram, | plot four quickstart.nc --level l9
its name ends in none of pdf, svg, png | plot four quickstart.nc --output figure.txt
cannot write nowhere/figure.pdf: No such folder | plot four quickstart.nc --output nowhere/figure.pdf
alone.nc: it has roofs but no configurations; `plot map` and `plot history` draw | plot four alone.nc
alone.nc: it has roofs but no configurations | plot four alone.nc --labels filters
alone.nc: history needs two sessions or more of one device | plot history alone.nc
did you mean precision | plot four quickstart.nc --where precison=fp32
'batch>=x': 'x' is no number | plot four quickstart.nc --where batch>=x
'pass>=3': pass is no number; = and != | plot four quickstart.nc --where pass>=3
no row has batch=e; there are: | plot four quickstart.nc --where batch=e
no row has time_median<1ns; there are: | plot four quickstart.nc --where 'time_median<1ns'
no configuration was measured on two devices | plot strip golden.nc
'fp16' has two rows with batch=16, the second with pass=| plot bars batch.nc --series precision"""
lines = [[part.strip() for part in line.split("|")] for line in wrong.splitlines()]
for command in ("plot four", "compare", "roofs", "export", "rows", "report", "check --targets /dev/null"):
    for text, file in [("none.nc: No such file", "none.nc"), ("text.nc: no NetCDF file", "text.nc"),
                       ("torn.nc: ", "torn.nc"), ("no result file of roofsweep", "other.nc")]:
        lines.append([text, f"{command} {file}"])
for text, words in lines:
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
            status = cli.run(cli.arguments(shlex.split(words)))
    assert status == 2 and said.getvalue().startswith("roofsweep-post: ") and text in said.getvalue(), (words, said.getvalue())
PY
file refused.py || fail "a wrong file or word"
ln -s golden.nc golden.pdf
kept golden.nc "cannot write golden.pdf: it is an input file; --output must" plot four golden.nc -o golden.pdf
cp node.nc four.pdf
kept four.pdf "cannot write four.pdf: it exists and is a NetCDF file; --output must" plot four golden.nc
refused_option "put FILE before any --where, --labels, --series: it takes" plot four --labels filters golden.nc
expect 0 script plot --help
says "complexity"
expect 2 script plot nothing quickstart.nc
says "invalid choice"

# recipes LANGUAGE: writes the README's code blocks of this language to the file `recipes`. They must have a line for
# each of ten questions; CDO cannot answer all.
recipes() {
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/!p}" "$root/postproc/README.md" >recipes
    for question in 1 3 4 5 6 7 8 9 $([ "$1" = cdo ] || echo 2 10); do
        grep -Eq "# $question(:|\$)" recipes || fail "the README has no line of $1 for question $question"
    done
}
ln -s "$root/postproc" postproc
recipes python
expect 0 file recipes
says "conv2d_"
# The cells of the notebook run in order, without a kernel of Jupyter.
mkdir docs
ln -s "$root/tests" tests
python '
import json, sys
cells = json.load(open(sys.argv[1]))["cells"]
open("docs/cells.py", "w").write("\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"))
' "$root/docs/notebook.ipynb"
cd docs
expect 0 file cells.py
python 'import json, sys
text = "".join(json.load(open(sys.argv[1]))["cells"][3]["outputs"][0]["text"])
assert " ".join(text.split()) in " ".join(open("output").read().split()), text' "$root/docs/notebook.ipynb" || fail "the notebook"
cd ..
recipes sh
expect 0 sh -eu recipes
says "manifest = "
! grep "CDMS error" output || fail "ncdump prints errors"
for tool in nco:ncks cdo:cdo; do
    command -v "${tool#*:}" >/dev/null || { echo "recipes of ${tool%:*} not tried: it is not installed"; continue; }
    recipes "${tool%:*}"
    expect 0 sh -eu recipes
    [ "$tool" != nco:ncks ] || says ": manifest, size"
done
