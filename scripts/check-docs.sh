#!/bin/sh
# Fails if docs/security.md names a test that does not exist, or that is not run.
set -eu
cd "$(dirname "$0")/.."
named=$(grep -o '^| .*' docs/security.md | grep -o '`[a-z0-9_]*_[a-z0-9_]*`' | tr -d '`' | sort -u)
missing=0
for name in $named; do
    grep -rqE "fn $name\(" tests crates/*/tests crates/*/src || {
        echo "docs/security.md names a test that does not exist: $name" >&2
        missing=1
    }
    if grep -rhE -B2 "fn $name\(" tests crates/*/tests crates/*/src | grep -q '#\[ignore'; then
        echo "docs/security.md names a test that is ignored: $name" >&2
        missing=1
    fi
done
exit $missing
