#!/bin/sh
# Installs what the tests need, then runs every check. Needs root only to install packages.
set -eu
cd "$(dirname "$0")"
. scripts/packages.sh
PATH=$PATH:/usr/sbin:/sbin:${CARGO_HOME:-$HOME/.cargo}/bin

# program:package, for what is missing
missing=
for pair in bwrap:bubblewrap ip:iproute2 nft:nftables unshare:util-linux setpriv:util-linux \
    curl:curl dig:bind9-dnsutils dnsmasq:dnsmasq-base ping:iputils-ping strace:strace git:git /usr/bin/python3:python3 /usr/bin/pip3:python3-pip \
    go:golang-go mvn:maven node:nodejs npm:npm gh:gh iperf3:iperf3 \
    openssl:openssl psql:postgresql-client rg:ripgrep socat:socat perl:perl \
    ssh:openssh-client dropbear:dropbear-bin cc:gcc vim:vim tmux:tmux htop:htop notify-send:libnotify-bin dbus-daemon:dbus \
    tinyproxy:tinyproxy-bin stunnel:stunnel4 microsocks:microsocks zsh:zsh fish:fish groff:groff-base shellcheck:shellcheck; do
    command -v "${pair%%:*}" >/dev/null || missing="$missing ${pair#*:}"
done
/usr/bin/python3 -c 'import ensurepip' 2>/dev/null || missing="$missing python3-venv"
/usr/bin/python3 -c 'import dbus, gi' 2>/dev/null || missing="$missing python3-dbus python3-gi"
# Where it is a package and not a snap, which does not start without its daemon.
if ! command -v chromium >/dev/null && apt-cache policy chromium 2>/dev/null | grep -q 'Candidate: [0-9]' &&
    ! apt-cache depends chromium | grep -q snapd; then
    missing="$missing chromium"
fi
# Debian 13 and Ubuntu 24.04 have it.
if ! command -v glab >/dev/null && apt-cache policy glab 2>/dev/null | grep -q 'Candidate: [0-9]'; then
    missing="$missing glab"
fi
# shellcheck disable=SC2086 # a list of words
[ -z "$missing" ] || install_packages $missing

cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
cargo clippy --version >/dev/null 2>&1 || rustup component add clippy

# Started in the background of a script, this script would ignore Ctrl-C, and so would all that
# it starts; the tests of signals need the usual state.
step() {
    echo "== $*"
    env --default-signal=HUP,INT,QUIT,TERM,PIPE "$@"
}
# Most tests wait for others most of the time.
export RUST_TEST_THREADS="${RUST_TEST_THREADS:-$((2 * $(nproc)))}"

step cargo fmt --all --check
step cargo clippy --locked --workspace --all-targets --quiet -- -D warnings
step cargo xtask deny
step scripts/check-docs.sh
step shellcheck --external-sources devcontainer/stockade/install.sh scripts/try-devcontainer.sh
step cargo test --locked --workspace --exclude stockade --tests --quiet
# A workspace of its own, so that nothing of it gets into the program; what both are built from
# lies in one directory.
sabotage="--locked --manifest-path sabotage/Cargo.toml --target-dir target --quiet"
step cargo fmt --manifest-path sabotage/Cargo.toml --all --check
# shellcheck disable=SC2086 # a list of words
step cargo clippy $sabotage --workspace --lib --bins --tests -- -D warnings
# shellcheck disable=SC2086
step cargo test $sabotage --tests
# The tests of the built program come last, so that their closing line is the last.
step cargo test --locked --package stockade
