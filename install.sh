#!/bin/sh
# Installs Stockade: bubblewrap through the system's package manager if it is missing, then the
# program: from dist/ if it has one of this commit for this architecture, else built here. Safe to
# run again.
set -eu
cd "$(dirname "$0")"
. scripts/packages.sh

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

# from_package FILE: unpacks the program of a tar.gz, unless it is of another commit.
from_package() {
    name=${1##*/}
    grep -sF "  $name" dist/SHA256SUMS | (cd dist && sha256sum --check --status) ||
        fail "$1 does not match dist/SHA256SUMS; get both again, or delete dist/ to build the program"
    tree=${name%.tar.gz}
    of=$(tar -xzOf "$1" "$tree/share/doc/stockade/commit")
    here=$(git describe --always --abbrev=40 --exclude='*' --dirty 2>/dev/null) || here=$of
    [ "$here" = "$of" ] && [ "$of" = "${of%-dirty}" ] || {
        echo "$1 is of another commit; building this one"
        return 1
    }
    tar -xzf "$1" -C "$unpacked" --strip-components=2 "$tree/bin/stockade"
    "$unpacked/stockade" --version >/dev/null || fail "the program of $1 does not run on this machine"
}

# The program looks for bubblewrap at these places only, never through PATH.
for bwrap in /usr/bin/bwrap /usr/local/bin/bwrap /bin/bwrap /run/current-system/sw/bin/bwrap ''; do
    [ -n "$bwrap" ] && [ -x "$bwrap" ] && break
done
[ -n "$bwrap" ] || install_packages bubblewrap

unpacked=$(mktemp -d)
trap 'rm -rf "$unpacked"' EXIT
package=$(find dist -name "stockade-*-$(uname -m)-linux.tar.gz" 2>/dev/null | sort | tail -n 1)
if [ -n "$package" ] && from_package "$package"; then
    program=$unpacked/stockade
    echo "Installing the program of $package"
else
    command -v cargo >/dev/null ||
        fail "cargo is not on your PATH; install Rust first (https://rustup.rs)"
    echo "Building Stockade ..."
    cargo build --release --locked --package stockade --target-dir target
    program=target/release/stockade
fi

if [ "$(id -u)" = 0 ]; then
    directory=/usr/local/bin
else
    directory=$HOME/.local/bin
fi
mkdir -p "$directory"
# Beside the old one, then renamed over it: a session that is running keeps its program.
install -m 755 "$program" "$directory/.stockade.new"
mv -f "$directory/.stockade.new" "$directory/stockade"
echo "Installed $directory/stockade"

case ":$PATH:" in
    *":$directory:"*) ;;
    *)
        cargo_bin=${CARGO_HOME:-$HOME/.cargo}/bin
        case ":$PATH:" in
            *":$cargo_bin:"*)
                ln -sf "$directory/stockade" "$cargo_bin/stockade"
                echo "$directory is not on your PATH, so linked it as $cargo_bin/stockade, too"
                ;;
            *) echo "$directory is not on your PATH; run: export PATH=\"\$PATH:$directory\"" ;;
        esac
        ;;
esac

# Ubuntu 24.04 and later let only programs with a profile use user namespaces.
restriction=/proc/sys/kernel/apparmor_restrict_unprivileged_userns
if [ "$(cat $restriction 2>/dev/null || echo 0)" = 1 ] && [ "$(id -u)" != 0 ]; then
    grep -qs " $directory/stockade " /etc/apparmor.d/stockade* || {
        echo "AppArmor restricts user namespaces here; giving Stockade a profile"
        as_root "$directory/stockade" doctor --write-apparmor
    }
fi
