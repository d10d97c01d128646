#!/bin/sh
# postproc/ on a file of the quick start: figures and tables that say something, clear errors, and every
# recipe of its README.
. "$(dirname "$0")/../mpi/lib.sh"
python 'import matplotlib' 2>/dev/null || {
    echo "skipped: no matplotlib (package python3-matplotlib)"
    exit 77
}
unset DISPLAY
export MPLCONFIGDIR="$work"
script() {
    name=$1
    shift
    "$ROOFSWEEP_PYTHON" -W error::FutureWarning "$root/postproc/$name" "$@"
}
# Roofs alone: those of all ranks together have a common start, which a busy machine may miss.
sed 's/^device = auto/device = cpu/' "$root/sweeps/quickstart.ini" >quickstart.ini
printf '[peaks]\ncondition = alone\n' >>quickstart.ini
expect 0 run 2 quickstart.ini
expect 0 run 2 --output again.nc quickstart.ini

# drawn FILE: a PNG of some content: not one colour, and several colours of curves.
drawn() {
    [ "$(wc -c <"$1")" -gt 10000 ] || fail "$1 is small"
    python '
import sys
from matplotlib import pyplot
pixels = (pyplot.imread(sys.argv[1])[:, :, :3] * 255).astype(int).reshape(-1, 3)
coloured = pixels[pixels.max(axis=1) - pixels.min(axis=1) > 60]
assert len(coloured) > 2000, f"{len(coloured)} coloured pixels"
assert len(pixels) - len(pixels[pixels.min(axis=1) > 250]) < 0.5 * len(pixels), "mostly dark"
' "$1" || fail "$1 shows nothing"
}
expect 0 script roofline.py quickstart.nc --output figure.png
says figure-filters.png
drawn figure-filters.png
drawn figure-shape.png
expect 0 script roofline.py quickstart.nc --label shape --by hidden --output one.png
drawn one.png
expect 0 script roofline.py quickstart.nc
head -c 5 quickstart.pdf | grep -q '%PDF-' || fail "quickstart.pdf is none"
h200=$root/tests/data/paper_h200.nc
expect 0 script roofline.py "$h200" --label lstm-sequence --output h200.png
drawn h200.png
# Every memory level that has a roof.
PYTHONPATH=$root/postproc python '
import sys
import results, roofline
data = results.load(sys.argv[1])
table = results.frame(data)
figure = roofline.draw(data, table[table.label.str.contains("conv2d-batch")], "conv2d-batch", "batch")
texts = {text.get_text() for text in figure.axes[0].texts}
drawn = set(zip(data.memory_level_name.values, data.device_peak_bandwidth.values[0]))
drawn = {"%s %.4g TB/s" % (level, 1e-12 * value) for level, value in drawn if value > 0}
assert len(drawn) == 3 and drawn <= texts, (drawn, texts)
' "$h200" || fail "a memory level is not drawn"
# A figure is by the parameter that the others follow, as with vary = zip, or by none.
PYTHONPATH=$root/postproc python '
import results, roofline
data = results.load("quickstart.nc")
table = results.frame(data)
table = table[table.label == "filters"]
by = lambda channels: roofline.choose_by(table.assign(channels=channels), data, None)
found = by(32), by(2 * table.filters), by(table["pass"] == "forward")
assert found == ("filters", "channels", None), found
' || fail "a figure is by another parameter"

# Wrong files and wrong words: status 2 and a sentence, no traceback.
refused() {
    text=$1
    shift
    expect 2 script "$@"
    says "$text"
    ! grep -q Traceback output || { cat output; fail "a traceback"; }
}
echo "no netcdf" >text.nc
head -c 20000 quickstart.nc >torn.nc
python 'import xarray; xarray.Dataset({"a": ("x", [1, 2])}).to_netcdf("other.nc")'
name=roofline.py
expect 0 script "$name" --help
refused "none.nc: No such file" "$name" none.nc
refused "text.nc: no NetCDF file" "$name" text.nc
refused "torn.nc: " "$name" torn.nc
refused "no result file of roofsweep" "$name" other.nc
refused "there are: filters, shape" roofline.py quickstart.nc --label nope
refused "no parameter 'nope'" roofline.py quickstart.nc --by nope
refused "neither .png nor .pdf" roofline.py quickstart.nc --output figure.txt
refused "cannot write" roofline.py quickstart.nc --output nowhere/figure.pdf

# recipes LANGUAGE: the README's blocks of it, in one file.
recipes() {
    sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/!p}" "$root/postproc/README.md" >recipes
    [ -s recipes ] || fail "the README has no recipes in $1"
}
recipes python
ln -s "$root/postproc" postproc
expect 0 "$ROOFSWEEP_PYTHON" -W error recipes
says "im2col+gemm"
says "launches: conv2d_"
recipes sh
expect 0 sh -eu recipes
says "manifest = "
if command -v ncks >/dev/null; then
    recipes nco
    expect 0 sh -eu recipes
fi
