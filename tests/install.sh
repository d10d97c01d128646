#!/bin/sh
# Programs that `cmake --install` or a package installs run from any folder, through a symbolic link, and without the build
# folder.
. "$(dirname "$0")/mpi/lib.sh"
unset DESTDIR LD_LIBRARY_PATH
"$CMAKE" --install "$ROOFSWEEP_BUILD" --prefix "$work/prefix" >install.log || { cat install.log; fail "install"; }
share=$work/prefix/share/roofsweep
doc=$work/prefix/share/doc/roofsweep

# Installed files have the execute bits of the source.
for folder in jobscripts postproc sweeps; do
    for file in "$root/$folder"/*; do
        [ -f "$file" ] || continue
        copy=$share/$folder/${file##*/}
        [ -f "$copy" ] || fail "$folder/${file##*/} is not installed"
        if [ -x "$file" ]; then [ -x "$copy" ]; else [ ! -x "$copy" ]; fi || fail "$copy has other execute bits"
    done
done
for file in README.md LICENSE CITATION.cff CHANGELOG.md docs/operating.md docs/contributing.md; do
    [ -s "$doc/$file" ] || fail "$file is not installed"
done

# The loader finds every library; the driver's library may be missing.
for program in "$work"/prefix/bin/*; do
    [ ! -L "$program" ] || continue # roofsweep-post, a script
    ldd "$program" >libraries
    ! grep 'not found' libraries | grep -v 'libcuda\.so' || fail "$program does not find its libraries"
done

mkdir elsewhere links
ln -s "$work/prefix/bin/roofsweep" links/sweep-it
cd elsewhere
link=$work/links/sweep-it
expect 0 "$link" --version
says "roofsweep"
expect 0 "$link" --dry-run "$share/sweeps/quickstart.ini"
says "conv2d"

# Installed sweeps are found by name, also in a copy of the installed tree.
expect 0 "$link" --sweeps
says "quickstart"
cp -r "$work/prefix" "$work/copy"
expect 0 "$work/copy/bin/roofsweep" --dry-run quickstart --json
python 'import json; assert len(json.load(open("output"))["configurations"]) > 10' || fail "the plan as JSON"
expect 2 "$link" --dry-run quikstart
says "did you mean 'quickstart'?"
# Man pages and completion.
for page in man1/roofsweep.1 man5/roofsweep-manifest.5; do
    [ -s "$work/prefix/share/man/$page" ] || fail "$page is not installed"
done
for text in 'skip\\-damaged' '^.SH EXAMPLES' '^.SH FILES' '^.SH ENVIRONMENT'; do
    grep -q "$text" "$work/prefix/share/man/man1/roofsweep.1" || fail "the man page has no $text"
done
if command -v bash >/dev/null; then
    bash -c '. "$1/share/bash-completion/completions/roofsweep"
compopt() { :; }
COMP_WORDS=(roofsweep "$1/share/roofsweep/sweeps/quickstart.ini" --only "") COMP_CWORD=3
_roofsweep
labels="${COMPREPLY[*]}"
COMP_WORDS=(roofsweep --set bat) COMP_CWORD=2
_roofsweep
echo "$labels: ${COMPREPLY[*]}"' - "$work/prefix" >output
    says "filters"
    says ": batch="
fi

cat >small.ini <<'INI'
[sweep]
device = cpu
[measure]
warmup = 1
iterations = 3
[peaks]
memory = dram
compute = fp32
condition = together
[matmul]
m = 64, 128
n = 64
k = 64
precision = fp32
INI
expect 0 "$ROOFSWEEP_MPIRUN" -n 2 --oversubscribe --bind-to none "$link" small.ini
complete small.nc 2
expect 0 "$work/prefix/bin/roofsweep-post" roofs small.nc
says "dram"

# The quick start of an installed tree builds nothing.
expect 0 env PATH="${ROOFSWEEP_MPIRUN%/*}:$PATH" "$share/jobscripts/quickstart.sh" --device cpu \
    --only shape --set memory=dram --set compute=fp32 --set sequence=8 --set hidden=32
says "Next:  $work/prefix/bin/roofsweep-post plot four quickstart.nc"
complete quickstart.nc 2

# The package has the same files, and depends on the packages of libraries and post-processor.
command -v dpkg-shlibdeps >/dev/null || exit 0
expect 0 "${CMAKE%cmake}cpack" --config "$ROOFSWEEP_BUILD/CPackConfig.cmake" -B "$work/package"
dpkg-deb --info "$work"/package/roofsweep_*~*.deb >output
for package in openmpi-bin libnetcdf libhwloc libjansson python3-xarray; do
    says "$package"
done
dpkg-deb --extract "$work"/package/roofsweep_*.deb "$work/package/root"
(cd "$work/prefix" && find . ! -type d ! -path '*/__pycache__/*' | sort) >installed
(cd "$work/package/root/usr" && find . ! -type d ! -name copyright | sort) >packaged
grep -v copyright installed | diff - packaged || fail "the package has other files"
expect 0 "$work/package/root/usr/bin/roofsweep" --sweeps
says "quickstart"
