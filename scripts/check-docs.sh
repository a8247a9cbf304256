#!/bin/sh
# Fails if docs/security.md or docs/attacks.md names a test that does not exist or is not run, or
# leaves one of an attack out; if a page links to a file that is not there; if a merge was left unfinished.
set -eu
cd "$(dirname "$0")/.."
missing=0
complain() {
    echo "$1" >&2
    missing=1
}
sources="tests sabotage/tests crates"
attacks=$(grep -rhoE 'fn [nfp][0-9]{2}_[a-z0-9_]+' $sources | cut -d' ' -f2 | sort -u)
for page in docs/security.md docs/attacks.md; do
    named=$(grep -o '^| .*' "$page" | grep -o '`[a-z0-9_]*_[a-z0-9_]*`' | tr -d '`' | sort -u)
    for name in $named; do
        grep -rqE "fn $name\(" $sources || complain "$page names a test that does not exist: $name"
        if grep -rhE -B2 "fn $name\(" $sources | grep -q '#\[ignore'; then
            complain "$page names a test that is ignored: $name"
        fi
    done
    # The other way round: each attack that is tried has its line.
    for name in $attacks; do
        echo "$named" | grep -qx "$name" || complain "$page does not name the test of an attack: $name"
    done
done
for page in README.md CONTRIBUTING.md docs/*.md docs/*/*.md fuzz/README.md; do
    for link in $(grep -oE '\]\([^)#: ]+' "$page" | cut -c3-); do
        [ -e "$(dirname "$page")/$link" ] ||
            complain "$page links to a file that does not exist: $link"
    done
done
if git grep -nE '^(<<<<<<<|>>>>>>>) ' >&2; then
    complain "a merge was left unfinished"
fi
exit $missing
