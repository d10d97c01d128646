#!/bin/sh
# Runs every command of README.md, docs/tutorial.md, docs/operating.md and postproc/README.md on the committed files and
# three small runs, except the commands that `elsewhere` lists. Numbers printed on the pages are those of the files.
. "$(dirname "$0")/../mpi/lib.sh"
python 'import matplotlib, plotly' 2>/dev/null || { echo "skipped: no matplotlib or no plotly"; exit 77; }
PATH=$ROOFSWEEP_BIN:$PATH # predict runs roofsweep
. "$here/../postproc/samples.sh"
# elsewhere LINE: succeeds if another test runs this line, or if it needs a cluster.
elsewhere() {
    case $1 in
        srun* | mpirun* | "cmake "* | *tests/run.sh* | *quickstart.sh* | PATH=*) ;; # mpi/, install.sh, tests/run.sh
        *gate.sh* | *gate/verdicts* | *gate/drain* | sinfo* | ssh* | "reframe "*) ;;   # slurm/two_nodes.sh, compare.sh
        "for file in /dev/shm"*) ;;                                                  # needs a crashed MPI
        "configuration  "* | "    "* | "conv2d-batch "* | "lstm-sequence "*) ;;      # a table, compared below
        "roofsweep: summary "*) ;;                                                   # compared below
        *) return 1 ;;
    esac
}
data=$root/tests/data
ln -s "$root/sweeps" sweeps
mkdir gate
for link in paper=paper_h100 sweep=paper_h100 roofs=node_4xh200 job=node_4xh200 last_quarter=node_4xh200 today=node_4xh200 \
    old=node_4xh200 new=node_4xh200 h200=node_4xh200 one=conv2d_batch_h200 two=loops_h200 quickstart=conv2d_batch_h200; do
    cp "$data/${link#*=}.nc" "${link%=*}.nc"
done
cp job.nc gate/node017.nc
printf 'name,count,filters\na,1,8\nb,2,4\n' >layers.csv
sed -n '/^```ini$/,/^```$/{/^```/!p}' "$root/postproc/README.md" | sed 's/H100 80GB HBM3/H200/' >site.ini
head='[sweep]\noutput = %s.nc\n[measure]\niterations = 5\n[peaks]\nmemory = dram\ncompute = fp32\ncondition = alone\n'
# shellcheck disable=SC2059 # the format is in a variable
for number in 0 1 2 resnet50; do
    [ "$number" = resnet50 ] && name=$number || name=gpu$number
    printf "${head}[conv2d resnet50]\nbatch = 2\nheight = 8\nwidth = 8\n" "$name" >run.ini
    [ "$number" = resnet50 ] && echo "list = layers.csv" >>run.ini || echo "channels = 1$number" >>run.ini
    expect 0 run 1 run.ini
done
cp resnet50.nc last_month.nc
printf '[conv2d next]\nfilters = 48\nprecision = fp16\n' >next.ini
said=$(sed -n 's/^.*roofsweep: summary //p' output | sed 's/=[^ ]*//g')
page=$(sed -n 's/^roofsweep: summary //p' "$root/docs/operating.md" | sed 's/=[^ ]*//g')
[ "$said" = "$page" ] || fail "the summary has $said, on the page $page"

count=0
for page in README.md docs/operating.md postproc/README.md; do
    # Extracts commands from code blocks without a language, except scripts (slurm/two_nodes.sh runs them), and from
    # tables.
    awk '/^```/ { inside = !inside; ours = $0 == "```"; first = 1; next }
        inside && first { first = 0; if (/^#!/) ours = 0 }
        inside && ours { line = line $0; if (sub(/\\$/, "", line)) next; print line; line = "" }
        /^\|.*`roofsweep-post/ { sub(/^[^`]*`/, ""); sub(/`.*/, ""); print }' "$root/$page" >lines
    while IFS= read -r line; do
        elsewhere "$line" && continue
        words=${line#*roofsweep-post }
        [ "$words" != "$line" ] || fail "$page: no test runs: $line"
        eval "set -- ${words%%  #*}"
        status=0
        script "$@" >output 2>&1 </dev/null || status=$?
        case $1:$status in *:0 | compare:1 | compare:6 | check:1) ;; *) cat output && fail "$page: status $status: $line" ;; esac
        count=$((count + 1))
        promised=$(printf '%s\n' "$line" | sed -n 's/.*  # *\([a-z0-9]*\.\(pdf\|html\|nc\)\).*/\1/p')
        [ -z "$promised" ] || [ -s "$promised" ] || fail "$page: $promised is missing: $line"
    done <lines
done
[ "$count" -gt 25 ] || fail "only $count commands"
# The table in README.md is what its command prints.
command=$(sed -n 's/^`roofsweep-post rows conv2d_batch.nc \(.*\) | cut.*/\1/p' "$root/README.md")
# shellcheck disable=SC2086 # words of the page
"$ROOFSWEEP_PYTHON" "$root/postproc/roofsweep-post" rows "$data/conv2d_batch_h200.nc" $command |
    cut -c-116 | sed 's/ *$//' >shown
sed -n '/^```text/,/^```$/{/^```/!p}' "$root/README.md" | diff - shown || fail "numbers of README.md"
