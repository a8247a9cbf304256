#!/bin/sh
# Runs a fuzz target with the usual compiler, which has what libFuzzer needs behind options that are not stable:
#
#   scripts/fuzz.sh TARGET [OPTION OF LIBFUZZER...]     scripts/fuzz.sh syn -max_total_time=60
set -eu
cd "$(dirname "$0")/../fuzz"
target=${1:?name a target of fuzz/fuzz_targets}
shift
host=$(rustc -vV | sed -n 's/^host: //p')
level=-Cllvm-args=-sanitizer-coverage
coverage="-Cpasses=sancov-module $level-level=4 $level-inline-8bit-counters $level-pc-table"
# With --target, so that build scripts are compiled without these options.
RUSTFLAGS="--cfg fuzzing $coverage -Cdebug-assertions -Coverflow-checks" \
    cargo build --quiet --locked --release --target "$host" --bin "$target"
mkdir -p "corpus/$target"
exec "target/$host/release/$target" "corpus/$target" "seeds/$target" -max_len=2048 "$@"
