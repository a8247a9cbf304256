#!/bin/sh
# Fails if docs/security.md names a test that does not exist or is not run, or leaves one of an
# attack out; if a page links to a file that is not there; if a merge was left unfinished.
set -eu
cd "$(dirname "$0")/.."
named=$(grep -o '^| .*' docs/security.md | grep -o '`[a-z0-9_]*_[a-z0-9_]*`' | tr -d '`' | sort -u)
missing=0
for name in $named; do
    grep -rqE "fn $name\(" tests sabotage/tests crates/*/tests crates/*/src || {
        echo "docs/security.md names a test that does not exist: $name" >&2
        missing=1
    }
    if grep -rhE -B2 "fn $name\(" tests sabotage/tests crates/*/tests crates/*/src | grep -q '#\[ignore'; then
        echo "docs/security.md names a test that is ignored: $name" >&2
        missing=1
    fi
done
# The other way round: each attack that is tried stands for a promise.
for name in $(grep -rhoE 'fn [nfp][0-9]{2}_[a-z0-9_]+' tests/attack | cut -d' ' -f2 | sort -u); do
    case "
$named
" in
    *"
$name
"*) ;;
    *)
        echo "docs/security.md does not name the test of an attack: $name" >&2
        missing=1
        ;;
    esac
done
for page in README.md CONTRIBUTING.md docs/*.md docs/*/*.md fuzz/README.md; do
    for link in $(grep -oE '\]\([^)#: ]+' "$page" | cut -c3-); do
        [ -e "$(dirname "$page")/$link" ] || {
            echo "$page links to a file that does not exist: $link" >&2
            missing=1
        }
    done
done
if git grep -nE '^(<<<<<<<|>>>>>>>) ' >&2; then
    echo "a merge was left unfinished" >&2
    missing=1
fi
exit $missing
