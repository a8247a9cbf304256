#!/bin/sh
# Installs the packages of dist/ for this architecture in a root of their own, uses the program
# there as an ordinary user and as root, removes the packages, and compares: nothing may be left.
# The root is a minimal one of this machine's distribution; apt downloads it. Nothing is changed on
# this machine but that missing packages are installed.
set -eu
cd "$(dirname "$0")/.."
. scripts/packages.sh

missing=
for pair in mmdebstrap:mmdebstrap bwrap:bubblewrap rpm:rpm; do
    command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
# shellcheck disable=SC2086 # a list of words
[ -z "$missing" ] || install_packages $missing

case $(uname -m) in
    x86_64) debian=amd64 ;;
    aarch64) debian=arm64 ;;
    *) echo "no packages for $(uname -m)" >&2 && exit 1 ;;
esac
(cd dist && sha256sum --quiet --check SHA256SUMS)
deb=$(echo "$PWD"/dist/stockade_*_$debian.deb)
rpm=$(echo "$PWD"/dist/stockade-*."$(uname -m)".rpm)

work=$(mktemp -d)
trap 'as_root rm -rf "$work"' EXIT
chmod 755 "$work"
root=$work/root

# What is there, but for temporary files and what package managers write about themselves.
files() {
    as_root find "$root" \( -path "$root/proc" -o -path "$root/sys" -o -path "$root/dev" -o -path "$root/run" \
        -o -path "$root/tmp" -o -path "$root/home" -o -path "$root/root" -o -path "$root/var/log" -o -path "$root/var/cache" \
        -o -path "$root/var/lib/apt" -o -path "$root/var/lib/rpm" \) -prune -o -printf '%y %P\n' |
        grep -vE '^f var/lib/dpkg/(status|available|diversions|triggers/.*|lock.*)(-old)?$' | LC_ALL=C sort
}

# expect_same BEFORE AFTER WHAT
expect_same() {
    diff "$work/$1" "$work/$2" || {
        echo "$3 left something behind (>) or took too much (<)" >&2
        exit 1
    }
    echo "-- $3 left nothing behind"
}

# In the root, with no network. A chroot would not do: the kernel refuses user namespaces there.
inside() {
    as_root bwrap --bind "$root" / --dev /dev --proc /proc --perms 1777 --tmpfs /tmp --tmpfs /run --cap-add ALL \
        --unshare-net --unshare-pid --unshare-ipc --clearenv --setenv HOME /root \
        --setenv PATH /usr/sbin:/usr/bin:/sbin:/bin --chdir / -- "$@"
}

as_user() {
    inside setpriv --reuid 1000 --regid 1000 --clear-groups env --chdir=/home/user/project HOME=/home/user "$@"
}

use_it() {
    echo "-- $1: use it"
    as_user stockade --version
    as_user stockade doctor
    as_user stockade run -- sh -c 'test -e /home/user/project && ! test -e /home/user/.ssh/key'
    as_user stockade verify
    inside env --chdir=/home/user/project stockade run -- true
    inside test -s /usr/share/man/man1/stockade-run.1.gz
    inside test -s /usr/share/doc/stockade/licences-of-libraries.gz
}

echo "-- making a root"
as_root mmdebstrap --quiet --variant=apt \
    --customize-hook='chroot "$1" useradd --uid 1000 --user-group --create-home user' \
    --customize-hook='chroot "$1" install -o user -g user -d /home/user/project /home/user/.ssh' \
    --customize-hook='chroot "$1" install -o user -g user -m 600 /dev/null /home/user/.ssh/key' \
    "$(. /etc/os-release && echo "$VERSION_CODENAME")" "$root"
files >"$work/empty"

echo "-- ${deb##*/}: install it, with what it depends on"
as_root cp /etc/resolv.conf "$root/etc/resolv.conf"
as_root cp "$deb" "$root/tmp/stockade.deb"
as_root chroot "$root" apt-get -qq update
as_root chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get -qq install --no-install-recommends /tmp/stockade.deb
use_it "${deb##*/}"
inside dpkg --verify stockade
inside dpkg --purge stockade
files >"$work/with-bubblewrap"

echo "-- ${rpm##*/}: refuse it without what it depends on, then install it"
in_rpm_root() {
    as_root rpm --root "$root" --dbpath /var/lib/rpm "$@"
}
if in_rpm_root --install "$rpm" 2>"$work/refusal"; then
    echo "${rpm##*/} does not depend on bubblewrap" >&2
    exit 1
fi
grep bubblewrap "$work/refusal"
in_rpm_root --install --nodeps "$rpm"
use_it "${rpm##*/}"
in_rpm_root --verify --nodeps stockade
in_rpm_root --erase stockade
files >"$work/after-rpm"
expect_same with-bubblewrap after-rpm "${rpm##*/}"

inside env DEBIAN_FRONTEND=noninteractive apt-get -qq autoremove --purge
files >"$work/after-deb"
expect_same empty after-deb "${deb##*/}"
