#!/bin/sh
# Installs Stockade: bubblewrap through the system's package manager if it is missing, then
# the release build of the program. Safe to run again.
set -eu
cd "$(dirname "$0")"
. scripts/packages.sh

command -v cargo >/dev/null || {
    echo "install.sh: cargo is not on your PATH; install Rust first (https://rustup.rs)" >&2
    exit 1
}

# The program looks for bubblewrap at these places only, never through PATH.
for bwrap in /usr/bin/bwrap /usr/local/bin/bwrap /bin/bwrap /run/current-system/sw/bin/bwrap ''; do
    [ -n "$bwrap" ] && [ -x "$bwrap" ] && break
done
[ -n "$bwrap" ] || install_packages bubblewrap

echo "Building Stockade ..."
cargo build --release --locked --package stockade --target-dir target

if [ "$(id -u)" = 0 ]; then
    directory=/usr/local/bin
else
    directory=$HOME/.local/bin
fi
mkdir -p "$directory"
# Beside the old one, then renamed over it: a session that is running keeps its program.
install -m 755 target/release/stockade "$directory/.stockade.new"
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
