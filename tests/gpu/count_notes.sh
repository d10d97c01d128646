#!/bin/sh
# The committed files of GPUs: their notes on counts are what the rules say today, and no row's FLOPs or bytes are far
# from the model without a reason. A file merged with itself is the same file, with all derived values computed anew.
. "$(dirname "$0")/../mpi/lib.sh"

for name in paper_h200 algorithms_h200 frameworks_h200 guide_h200 handwritten_h200 node_4xh200 training_h200 \
    conv2d_batch_h100; do
    file=$root/tests/data/$name.nc
    python '
import sys, xarray
data = xarray.open_dataset(sys.argv[1]).load()
notes = [note for note in data.count_note.values if note]
assert notes and not [note for note in notes if "not explained" in note], notes
' "$file" || fail "$name"
    cp "$file" again.nc
    rm -f both.nc
    status=0
    "$ROOFSWEEP_BIN/roofsweep" --quiet --newest --merge "$file" again.nc --output both.nc >output 2>&1 || status=$?
    # Two files are of a version that only --gather of their journals could write anew.
    case $name in
    paper_h200 | algorithms_h200)
        says "an older version of roofsweep wrote it"
        continue
        ;;
    esac
    [ "$status" = 0 ] || { cat output; fail "$name: exit status $status"; }
    python '
import sys, xarray
ours, anew = (xarray.open_dataset(path, decode_times=False).load() for path in sys.argv[1:])
assert (ours.configuration.values == anew.configuration.values).all()
assert (ours.config_device.values == anew.config_device.values).all()
wrong = ours.count_note.values != anew.count_note.values
assert not wrong.any(), list(zip(ours.count_note.values[wrong], anew.count_note.values[wrong]))
' "$file" both.nc || fail "$name: its notes are not what the rules say"
done
