#!/bin/sh
# What a rename costs, without a sandbox, in one, and where sandboxes work inside it. Prints the
# table of docs/performance.md. To be run on the laptop of a world, whose home is in memory:
#
#   cargo xtask world --quiet -- sh "$PWD/scripts/bench-names.sh"
set -eu
rounds=${1:-15}
loop='use Time::HiRes "time"; my $n = 20000; open my $f, ">", "a"; my $start = time;
    for (1 .. $n) { rename "a", "b" or die; rename "b", "a" or die; }
    printf "%.3f\n", (time - $start) / $n / 2 * 1e6; unlink "a"'
inside='--quiet --mode none'
none() { perl -e "$loop"; }
default() { stockade run $inside -- perl -e "$loop"; }
nested() { stockade run $inside --nested -- perl -e "$loop"; }
# A mount namespace of its own, so that process 1 renames.
brokered() { stockade run $inside --nested -- unshare --user --map-root-user --mount perl -e "$loop"; }
directory=$(mktemp -d)
for round in $(seq "$rounds"); do
    for way in none default nested brokered; do "$way" >> "$directory/$way"; done
done
median() { sort -n "$directory/$1" | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
base=$(median default)
echo '| a rename | µs | × without `nested` |'
echo '|---|---:|---:|'
row() { awk -v name="$1" -v us="$(median "$2")" -v base="$base" \
    'BEGIN { printf "| %s | %.1f | %.1f |\n", name, us, us / base }'; }
row 'no sandbox' none
row '`stockade run`' default
row '`stockade run --nested`' nested
row '`stockade run --nested`, in a sandbox inside' brokered
rm -r "$directory"
