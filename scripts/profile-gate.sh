#!/bin/sh
# Where the processors' time goes while one measurement of `cargo xtask bench net` runs behind
# the gate: profile-gate.sh connect. Needs root and perf (linux-perf); no packet leaves the machine.
set -eu
cd "$(dirname "$0")/.."
data=target/profile-gate.data
cargo build --quiet --release --package stockade
cargo build --quiet --package xtask
perf record --quiet --event cpu-clock --freq 1999 --all-cpus --call-graph fp --output "$data" -- \
    target/debug/xtask bench net --rounds 6 --only "$1" --columns stockade \
    --product target/release/stockade >/dev/null 2>&1
report() { perf report --input "$data" --stdio --call-graph none "$@" 2>/dev/null; }
echo "by thread:"
report --no-children --sort comm | grep % | grep -E 'gate|carrier|journal|bench-client|world|iperf3|swapper' | head
report --no-children --comm gate --sort symbol |
    awk '/\[k\]/ { kernel += $1 } /\[\.\]/ { program += $1 } END {
        printf "of the gate: %.0f %% in the kernel, %.0f %% in the program\n",
            100 * kernel / (kernel + program), 100 * program / (kernel + program) }'
