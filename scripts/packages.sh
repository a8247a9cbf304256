# Shell functions to install system packages; sourced by install.sh and test.sh.

as_root() {
    if [ "$(id -u)" = 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        echo "need root for: $* (no sudo here; run that as root, then try again)" >&2
        return 1
    fi
}

# apt-get has no option to wait while another program updates the lists, as on a machine that has
# just started. So this tries again, for up to five minutes.
update_lists() {
    left=60
    until said=$(as_root env LC_ALL=C apt-get update -qq 2>&1); do
        case $said in *lists/lock*) left=$((left - 1)) ;; *) left=0 ;; esac
        if [ "$left" = 0 ]; then
            echo "$said" >&2
            return 1
        fi
        sleep 5
    done
}

# install_packages NAME...: names as Debian has them.
install_packages() {
    echo "Installing system packages: $*"
    if command -v apt-get >/dev/null; then
        update_lists
        # Another installation may be under way, as on a machine that has just started.
        as_root env DEBIAN_FRONTEND=noninteractive apt-get -o DPkg::Lock::Timeout=300 install -y -qq --no-install-recommends "$@"
    elif command -v dnf >/dev/null; then
        as_root dnf install -y -q "$@"
    elif command -v pacman >/dev/null; then
        as_root pacman -S --needed --noconfirm "$@"
    elif command -v zypper >/dev/null; then
        as_root zypper --non-interactive --quiet install "$@"
    elif command -v apk >/dev/null; then
        as_root apk add "$@"
    else
        echo "no package manager that this script knows; install by hand: $*" >&2
        return 1
    fi
}
