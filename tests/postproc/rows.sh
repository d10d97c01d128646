#!/bin/sh
# Tests `roofsweep-post rows`: the table of configurations, and advice. Each rule of advice is tested with an invented
# row, all rules with the files of tests/data.
. "$(dirname "$0")/../mpi/lib.sh"
. "$here/../postproc/samples.sh"
h200=$root/tests/data/paper_h100.nc

# roofsweep-post uses the first python3 that has the needed packages. If no python3 has them, it says what to install.
mkdir bare packed
printf '#!/bin/sh\nexec "%s" -I -S "$@"\n' "$ROOFSWEEP_PYTHON" >bare/python3
ln -s "$ROOFSWEEP_PYTHON" packed/python3
chmod +x bare/python3
expect 0 env PYTHONPATH= PATH="$work/bare:$work/packed:$PATH" "$root/postproc/roofsweep-post" rows golden.nc
says "batch batch=16 kernel=3 precision=fp16"
python '
import roofsweep_post as post
from roofsweep_post.naming import computed
rows = post.rows(post.load("golden.nc"), measured=False)  # roofsweep-post computes the names that roofsweep wrote
assert computed(rows["label"], rows["configuration"]) == list(rows["name"]), rows["name"]
' || fail "names"
sed 's/inside_kernels 96 %/memory_latency 46 %/' "$root/tests/data/golden.cdl" | ncgen -4 -o parts.nc
expect 0 "$root/postproc/roofsweep-post" rows parts.nc
says "memory_latency 46 %"
row "^lstm " "inside_kernels\|kernel" "preempted"
doctored parts.nc chased.nc 'data.createVariable("device_latency", "f8", ("device", "memory_level"))[:] = 1e-6'
expect 0 script rows chased.nc --advice
says "are in flight at dram, and its roof needs"
expect 2 bare/python3 -c 'import runpy, sys
start = runpy.run_path(sys.argv[1])["start"]
start.__globals__["complete"] = lambda python: False
start()' "$root/postproc/roofsweep-post"
says "lacks numpy, pandas, xarray, matplotlib, netCDF4, and no python3 in the path has all"
says "apt install python3-xarray"

python '
import json, re, sys
import roofsweep_post as post
from roofsweep_post.advice import advise, sections, sentence, tries

def flat(row):  # bytes_counted as one column for each level, as in rows()
    levels = {f"{key}_{level}": value for key, found in row.items() if isinstance(found, dict) for level, value in found.items()}
    return {key: found for key, found in row.items() if not isinstance(found, dict)} | levels

def rules(row, limiter):
    return list(tries(flat(row) | {"limited_by": limiter}))

examples = json.load(open(sys.argv[1]))
names = [name for kind, name, _ in sections() if kind == "try"]
assert set(names) == {example["rule"] for example in examples} - {None}, "a rule without an example"
for example in examples:
    row, limiter = example["row"], example["limiter"]
    assert sentence(flat(row) | {"limited_by": limiter}) == example["sentence"], example
    if not example["rule"]:
        continue
    assert example["rule"] in rules(row, limiter), example
    assert example["rule"] not in rules(row | example["without"], limiter), example
    assert example["rule"] not in rules(row, "unknown" if limiter != "unknown" else "compute"), example

limiters = {name.split()[0] for kind, name, _ in sections() if kind == "cause"}
texts = [keys.get(key, "") for _, _, keys in sections() for key in ("when", "of")]
texts += [hole for _, _, keys in sections() for hole in re.findall(r"{([^}:]*)", keys.get("text", ""))]
texts = [re.sub(r"!?=.*", "", term) for text in texts for term in text.split("&")]
used = set(re.findall(r"[a-z]\w*", " ".join(texts))) - {name for kind, name, _ in sections() if kind == "constant"}
for path in sys.argv[2:]:
    data = post.load(path)
    table = post.rows(data)
    used -= {*data.variables, *table}
    assert set(table["limited_by"]) <= limiters, limiters
    for text in advise(table):
        assert text.endswith(".") and "nan" not in text and "(- of" not in text, text
assert not used, f"no file has {used}"
' "$root/tests/data/advice_examples.json" "$h200" golden.nc || fail "advice"

expect 0 script rows "$h200" --sort time --most 3
[ "$(wc -l <output)" = 4 ] || { cat output; fail "not three rows"; }
expect 0 script rows "$h200" --advice --where precision=fp32 label=conv2d-kernel kernel=9
says "tf32, fp16 or bf16, which have tensor units"
expect 0 script rows golden.nc
says "configurations were not measured; \`roofsweep-post export golden.nc"
row "^batch .* kernel=3 .* #0 node1" "25.00 us" "3.0 %" latency "two modes, throttled, inaccurate"
# `rows`, `export` and `report` mark noisy rows, and advice has a sentence on them.
expect 0 script rows "$root/tests/data/training_cpu.nc" --advice --where label=parts implementation=onednn pass=forward
row "^parts cache=cold .*pass=forward " "17.6 %" "noisy"
says "The median is known to no better than 17.6 %: measure the row again"
expect 0 script export "$root/tests/data/training_cpu.nc" --columns marks --where label=parts pass=forward
says "noisy"
refused " or filters" rows "$h200" --where filter=16
refused "no variable 'time'; did you mean time_median or " export "$h200" --columns time
refused "no row has batch=77" rows "$h200" --where batch=77
script rows golden.nc --labels --json --where "batch == 16" >output 2>said || fail "rows --json"
grep -q "2 of 4 configurations were not measured" said || fail "rows --json leaves rows out in silence"
python 'import json; row = json.load(open("output"))[0]; assert row["name"].startswith("batch") and row["time_median"] == 2.5e-5, row' ||
    fail "rows --json"
expect 0 script rows golden.nc --time
row "^batch .* kernel=3 .* #0 node1" "2.000 s" "25.0 %" "75.0 %"
row "^all 2" "4.000 s" "25.0 %" "75.0 %"
doctored golden.nc energy.nc 'roofs = data.createVariable("energy_at_roofs", "f8", ("config",), fill_value=-1.0)
roofs[:] = 0.93 * data["energy"][:]'
expect 0 script rows energy.nc --energy
row "^batch" "16.40 mJ" "4.429 pJ/FLOP" "15.25 mJ" "-7.0 %"
says "1 of 1 rows are within 10.0 %"
expect 0 script --version
says "roofsweep-post $("$ROOFSWEEP_BIN/roofsweep" --version | sed 's/roofsweep //; s/+.*//')"
refused_option "did you mean rows?" row golden.nc
refused_option "unknown option --zzz; see" rows golden.nc --zzz
refused_option "unknown option --advise; did you mean --advice?" rows golden.nc --advise
refused_option "argument -n/--most: '-1' is no whole number >= 1" rows "$h200" --most -1
refused_option "argument -n/--most: '0' is no whole number" rows "$h200" --most 0
# If an option with a list of values precedes the file, the error says where the file belongs.
refused_option "put FILE before any --where: it takes every word that follows" rows --where precision=fp32 "$h200"
refused_option "unexpected word lstm; --where label=LABEL chooses rows of a label" rows golden.nc --labels lstm
refused_option "put FILE before any --where: it takes" export --where precision=fp32 "$h200"

for term in batch=32 "batch=32.0,16" "batch>=32" "batch!=32"; do expect 0 script export "$h200" --columns batch --where "$term"; done
# Some rows have no number of launches.
expect 0 script export "$root/tests/data/algorithms_h200.nc" --columns name --where "launches>2"
refused "no variable 'label'; " export golden.nc --table roofs --where label=lstm
# Times are compared as UTC.
expect 0 script export golden.nc --columns start_time --where "start_time>2025-01-01T00:00:10" "start_time<=2025-01-01T00:00:11Z"
[ "$(wc -l <output)" = 2 ] || { cat output; fail "other rows are chosen by their time"; }
refused "no row has start_time>2026" rows golden.nc --where "start_time>2026"
refused "'start_time>soon': 'soon' is no time, as 2025-01-31 or 2025-01-31T12:00" rows golden.nc --where "start_time>soon"

mkfifo pipe
refused "pipe: it is no regular file" rows pipe
refused "goldn.nc: No such file; did you mean golden.nc?" rows goldn.nc
echo '{"xxh3":"0"}' >golden.nc.journal
refused "a journal, not a result file; \`roofsweep --gather golden.nc.journal\`" rows golden.nc.journal
refused "paper.ini: a manifest, not a result file" rows "$root/sweeps/paper.ini"
refused "it is a folder; name its files, as ./*.nc" rows .

# Damaged variables are named and left out. Commands that need a damaged variable end with an error; other commands
# work.
doctored golden.nc damaged.nc 'data.renameVariable("time_median", "another")
data.createVariable("time_median", str, ("config",))
data["status"][0] = 99
data.createVariable("sums", "f8", ("config",), fletcher32=True)[:] = [1.25, 2.5, 3.75, 5.0]'
python '
import pathlib, struct
bits = bytearray(pathlib.Path("damaged.nc").read_bytes())
bits[bits.index(struct.pack("<4d", 1.25, 2.5, 3.75, 5.0))] ^= 1
pathlib.Path("flipped.nc").write_bytes(bits)
'
expect 0 script roofs damaged.nc
says "damaged.nc: damaged, left out: time_median (its values are no number)"
says "damaged.nc: status: 1 of its values are none of its flag_values; they are shown as 'invalid'"
refused "damaged.nc: it has no time_median, which this command needs" rows damaged.nc
expect 0 script export damaged.nc --columns status
row "^invalid$"
expect 0 script check golden.nc --integrity
says "the file has no checksums"
expect 0 script check damaged.nc --integrity
says "the checksums of 1 hold"
refused "flipped.nc: damaged: sums (it cannot be read" check flipped.nc --integrity
for death in "os.kill(os.getpid(), signal.SIGSEGV)" "print({}[1])"; do
    expect 2 python '
import os, signal, sys
from roofsweep_post import cli
cli.run = lambda *_: exec(sys.argv[1])
sys.exit(cli.main(["rows", "golden.nc"]))' "$death"
    says "roofsweep-post: "
    says "damaged"
done

# `export` does not replace a result file.
kept golden.nc "cannot write golden.nc: it is an input file; --output must name another" export golden.nc -o golden.nc
kept node.nc "cannot write node.nc: it exists and is a NetCDF file; --output must name another" export golden.nc -o node.nc
printf '{"xxh3":"0","program":"roofsweep"}\n' >a.journal
kept a.journal "cannot write a.journal: it exists and is a journal of roofsweep" export golden.nc -o a.journal
printf '[conv2d a]\nbatch = 4\n' >mine.ini
kept mine.ini "cannot write mine.ini: it exists and is an INI file that" baseline golden.nc -o mine.ini
expect 0 script export golden.nc --output rows.csv
expect 0 script export golden.nc --output rows.csv
# `export` does not follow links of another user in a shared folder.
mkdir -m 777 shared
ln -s ../rows.csv shared/link.csv
expect 0 script export golden.nc -o shared/link.csv
ln -s .. shared/way
if chown -h 65534 shared/link.csv shared/way 2>/dev/null; then
    for name in shared/link.csv shared/way/rows.csv; do
        kept rows.csv "cannot write $name: a link of user " export golden.nc -o $name
    done
fi
# Texts in CSV cannot be formulas; negative numbers stay numbers.
doctored golden.nc formula.nc 'data["job_id"][:] = numpy.array(["=1+1", "\uff20a", "-2", "1-2\\|3"], dtype=object)
data.title = "L\u00e4ufe \u2265 2"
data["workspace"][0] = -1'
expect 0 script export formula.nc --columns job_id,workspace,start_time
row "^'=1+1,-1.0,2025-"
row "^'＠a,"
row "^'-2,"
row '^1-2.|3,'
# In Markdown, bars and backslashes in texts are escaped, because a bar would divide cells.
expect 0 script export formula.nc --columns job_id --format md
row '^| 1-2\\\\\\|3 |$'
# Characters that the locale lacks are escaped.
cat >narrow.py <<'PY'
import sys
from roofsweep_post import cli
sys.stdout.reconfigure(encoding="iso8859-1", errors="strict")
sys.exit(cli.main(sys.argv[1:]))
PY
printf '[Sample GPU]\n[Sample CPU]\n' >empty.ini
expect 1 file narrow.py check formula.nc --targets empty.ini
LC_ALL=C row "ufe .u2265 2"
# Many SIGTERMs, as `timeout` and Slurm send them, end the program by the signal, without a message.
python '
import os, signal, sys, time
from roofsweep_post import cli
null, error = os.open("/dev/null", os.O_WRONLY), os.open("terminated", os.O_WRONLY | os.O_CREAT)
for turn in range(20):
    child = os.fork()
    if child == 0:
        os.dup2(null, 1), os.dup2(error, 2)
        os._exit(cli.main(["rows", "golden.nc"]))
    time.sleep(0.02 * turn)
    while os.waitpid(child, os.WNOHANG) == (0, 0):
        os.kill(child, signal.SIGTERM)
'
# (On a fast machine the command may print its last line before the signal.)
! grep -v "configurations were not measured" terminated || fail "SIGTERM prints a traceback"
# JSON has all digits, each column once, and null for missing and infinite values.
doctored golden.nc digits.nc \
    'data["verify_error"][2], data["compute_roof"][2] = 2.345678901234567e-13, float("inf")'
expect 0 script export digits.nc --format json --columns verify_error,compute_roof,start_time,verify_error
python '
import json, math, sys
def refuse(word):
    raise ValueError(word)
rows = json.load(open("output"), parse_constant=refuse)
assert [list(row) for row in rows] == [["verify_error", "compute_roof", "start_time"]] * len(rows), rows[0]
assert rows[2]["verify_error"] == 2.345678901234567e-13 and rows[2]["compute_roof"] is None, rows[2]
assert rows[0]["verify_error"] is None and rows[3]["start_time"].startswith("2025-01-01T00:00:"), rows
' || fail "JSON of a table"
expect 0 script export digits.nc --format md --columns name,verify_error --where verify_error\<1ns
says "| batch batch=16"
says " | 2.34568e-13 |"
# `watch` ignores an incomplete last line of a journal. Files that are no journal are errors.
cp "$root/tests/data/journals/cpu.nc.journal" cpu.nc.journal
expect 0 script watch cpu.nc
says "4 rows: 3 measured, 1 skipped, 0 failed"
printf '{"xxh3":"0","kind":"rec' >>cpu.nc.journal
expect 0 script watch cpu.nc.journal
says "4 rows: "
row "^layers " " us$\| ms$\| s$"
sed -i 's/"label":"layers"/&,"listed":"layers:1 conv1 x2"/' cpu.nc.journal
expect 0 script watch cpu.nc
row "^layers conv1" " us$\| ms$\| s$"
echo "no journal" >other.journal
refused "other.journal: a line is damaged; no journal of roofsweep?" watch other
refused "none.journal: No such file" watch none
python '
import contextlib, io, os, sys
from roofsweep_post import cli
os.environ |= {"COLUMNS": "100", "TERM": "xterm"}
class Terminal(io.StringIO):
    isatty = lambda self: True
with contextlib.redirect_stdout(Terminal()) as out:
    cli.run(cli.arguments(["rows", sys.argv[1], "--advice", "--most", "4"]))
assert "\033[33mthrottled\033[0m" in out.getvalue(), out.getvalue()
os.environ["NO_COLOR"] = "1"
with contextlib.redirect_stdout(Terminal()) as out:
    cli.run(cli.arguments(["rows", sys.argv[1], "--advice", "--most", "4"]))
lines = out.getvalue().splitlines()
assert len(lines) == 2 + 3 * 4 and all(line.startswith("conv2d-batch ") for line in lines[2::3]), lines
assert all(len(line) <= 101 and line.startswith("    ") for line in lines[3::3]), lines
os.environ["COLUMNS"] = "40"
with contextlib.redirect_stdout(Terminal()) as out:
    cli.run(cli.arguments(["compare", sys.argv[2]]))
cut = [line for line in out.getvalue().splitlines() if line.endswith("...")]
assert cut and {len(line) for line in cut} == {40} and any("TB/s" in line for line in cut), cut
' "$h200" "$root/tests/data/node_4xh200.nc" || fail "a table in a terminal"
expect 0 script export golden.nc --table kernels --format markdown
says "| kernel_config |"
expect 0 script export golden.nc --format json --table roofs
python 'import json; assert {"dram": 1.002} in [roof["bytes_ratio"] for roof in json.load(open("output"))]' || fail "JSON of roofs"
# A file whose values or attributes have a wrong type is damaged: an error, not a traceback.
python '
import xarray
data, name = xarray.load_dataset("golden.nc"), "device_roof_bytes_ratio"
data[name] = data[name].dims, data[name].fillna(3).astype("i2").values
data["timer_overhead"] = "config", ["long"] * data.sizes["config"], {"comment": [1.5, 2.5]}
data["device_peak_bandwidth"][:] = 0
data.to_netcdf("i2.nc")'
expect 2 script plot regions i2.nc --output i2.svg
says "no roof of a memory level"
expect 0 script describe i2.nc timer_overhead
expect 0 script export i2.nc
expect 0 script export i2.nc --format json --table roofs
# In all formats counts are whole numbers, and missing counts stay missing. The output's name decides the format. If
# pandas lacks a package for a format, the error names the package.
for suffix in json csv parquet xlsx; do
    script export golden.nc --columns batch,launches --output "whole.$suffix" >output 2>&1 || says "install "
done
python '
import json, os, pandas, sys
import roofsweep_post as post
for suffix in ("csv", "parquet", "xlsx"):
    if os.path.exists(f"whole.{suffix}"):
        own = getattr(pandas, {"xlsx": "read_excel"}.get(suffix, f"read_{suffix}"))(f"whole.{suffix}")
        assert own.launches.astype("Int64").tolist() == [pandas.NA, pandas.NA, 2, 1] and own.batch.dtype.kind == "i", own
assert ["2", "2", "16", "16"] == [line.split(",")[0] for line in open("whole.csv").read().split()[1:]]
assert repr([row["launches"] for row in json.load(open("whole.json"))]) == "[None, None, 2, 1]"
data = post.load("golden.nc")
assert data.batch.dtype.kind == "i" and data.launches.isnull().sum() == 2, data.batch
found = data.roofsweep.rows("precision=fp16")
assert len(found) == 1 and found.equals(post.rows(data)[lambda table: table.precision == "fp16"].reset_index(drop=True))
' || fail "a count is no whole number, or data.roofsweep has other rows"
refused "whole.text: its name ends in none of .csv, .json, .md, .parquet, .xlsx" export golden.nc -o whole.text
# `describe` accepts names of variables and of the manifest's parameters.
expect 0 script describe golden.nc
row bytes_counted "config, memory_level" byte "traffic of one iteration"
expect 0 script describe golden.nc status kernel paper_bound
says "words      measured = 0, skipped = 1, failed = 2"
says "values     4; 3 different: measured (2), skipped (1), failed (1)"
says "filter_height: parameter kernel, height"
says "paper_bound: "
refused "no variable 'tim_median'; did you mean time_median" describe golden.nc tim_median

# `network` adds a layer as often as its list says. The line `training` adds forward and backward. If a layer was not
# measured, the status is 1.
doctored golden.nc net.nc 'listed = data.createVariable("listed", str, ("config",))
listed[:] = numpy.array(["", "net:4 gone x1", "net:1 a b x2; net:3 x1", "net:2 rnn x4; other:1 x1"], dtype=object)'
expect 1 script network net.nc net
row "^forward " 8 "4.069 ms" "1.4 %" "4.011 ms"
row "^a b " forward 2 "23.00 us" "46.00 us" "1.1 %" "37.3 %" "28.82 us"
row "^batch batch=16" forward 1
row "^gone " failed
row "^rnn " "4.000 ms" "98.3 %"
doctored net.nc none.nc 'data["status"][:] = 2'
expect 1 script network none.nc net
grep -q "^forward  *8  *-  *-  *-$" output || { cat output; fail "a total of failed layers"; }
doctored net.nc earlier.nc 'data["time_median"][3] *= 2'
expect 1 script network net.nc net --before earlier.nc
row "^ *rnn " "8.000 ms" "4.000 ms" "-50.0 %"
row "all 7 layers of both" "8.069 ms" "4.069 ms"
doctored earlier.nc earlier.nc 'for name in "uuid", "device_uuid":
    data[name][:] = numpy.array([f"other {text}" if text else "" for text in data[name][:]], object)'
expect 1 script network net.nc net --before earlier.nc
row "all 7 layers of both" "8.069 ms" "4.069 ms"
refused "leave out --before" network net.nc net --before earlier.nc --json
refused "lists of several labels: name one; there are: net, other" network net.nc
refused "no row comes from a list" network golden.nc
python '
from roofsweep_post.naming import names
texts = ["conv2d batch=1", "conv2d batch=2"]
found = names(["net a"] * 2, ["x net"] * 2, texts, True, ["net:1 b x1; x:2 a c x1; x:3 d x1"] * 2)
assert found == ["x a c batch=1", "x a c batch=2"], found
' || fail "names of lists in several files"
python '
import numpy, pandas
from roofsweep_post.network import gaps, sums, totals
passes = ["forward", "backward-data", "backward-filter", "backward"]
rows = [(place, name, precision) for place in (1, 2) for name in passes[: 2 + place] for precision in ("fp16", "fp32")]
lines = pandas.DataFrame(rows + [(3, "backward-data", "fp32")], columns=["place", "pass", "precision"])
lines["configuration"] = "conv2d pass=" + lines["pass"] + (" precision=" + lines["precision"]).where(lines["place"] < 3, "")
lines = lines.assign(workload="conv2d", count=2, own_time=1.0, status="measured", roof_fraction=2.0, layer="", name="n", device_name="#0")
found = totals(lines, "x").groupby(["series", "direction"])[["total", "at_roof"]].sum()
# layer 2 has `pass = backward`; layer 3 has one configuration, which counts as forward in both series
assert list(found["total"]) == list(found["at_roof"]) == [2 * (1 + 2), 2 * 3] * 2, found
split = lines.assign(device_name=numpy.where(lines["place"] == 1, "#0", "#1"))  # each device has other rows
assert (totals(split, "x").groupby(["series", "direction"])[["total", "at_roof"]].sum() == found).all(axis=None)
# training steps: alone they are no forward passes; backward rows of the layer contain them
step = lines.assign(**{"pass": "training", "configuration": "conv2d pass=training"}).drop_duplicates("place")
assert list(totals(step, "x")["direction"]) == ["training step"] * 3
pair = pandas.concat([step, step.assign(**{"pass": "forward", "configuration": "conv2d pass=forward"})])
assert list(totals(pair, "x")["direction"]) == ["training step"] * 3 + ["forward"] * 3
assert [row.split()[0] for row in sums(totals(pair, "x")).splitlines()[1:]] == ["forward", "training"]
assert "training step" not in set(totals(pandas.concat([lines, step]).query("place < 3"), "x")["direction"])
gradient = lines[lines["pass"] == "backward-data"].drop_duplicates("place").assign(configuration="conv2d")
assert set(totals(gradient, "x")["direction"]) == {"backward"}
# a series that lacks a layer of another one
assert gaps(totals(lines.query("place < 3 and (place < 2 or precision != \"fp32\")"), "x")) == {" in precision=fp32": [2]}
assert gaps(totals(lines.query("place != 2"), "x")) == {"": [2]}
' || fail "series and directions of a network"

# `spread` finds planted components. A file without rounds is an error.
file "$root/tests/postproc/planted.py" "$root/tests/data/node_4xh200.nc" || fail "planted components"
expect 0 script spread "$root/tests/data/node_2xh100.nc"
says "rounds for a precision: unknown"

# A file of 6 kB that declares 2e9 rows is refused before it is read. A file that another process has locked can be
# read.
python '
import netCDF4, numpy
with netCDF4.Dataset("huge.nc", "w") as data:
    data.setncattr("format_version", numpy.int32(3))
    data.createDimension("config", 2_000_000_000)
    data.createVariable("config_hash", str, ("config",), chunksizes=(1024,))
'
for command in "rows huge.nc" "check --integrity huge.nc" "merge huge.nc golden.nc -o all.nc"; do
    # shellcheck disable=SC2086 # words
    refused "huge.nc: damaged: config" $command
    says "would have 2000000000 values, and the file only "
done
expect 0 flock --exclusive golden.nc "$ROOFSWEEP_PYTHON" "$root/postproc/roofsweep-post" rows golden.nc
