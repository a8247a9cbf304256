# As on Ubuntu: programs need a profile for user namespaces, and what bubblewrap starts has no capabilities.
setup() {
    cat > /etc/apparmor.d/bwrap <<'PROFILE'
abi <abi/4.0>,
profile bwrap /usr/bin/bwrap flags=(attach_disconnected,mediate_deleted) {
  allow capability, allow file rwlkm /{**,}, allow network, allow unix, allow ptrace, allow signal, allow userns,
  allow mount, allow umount, allow pivot_root, allow mqueue, allow io_uring, allow dbus,
  allow pix /** -> &bwrap//&unprivileged,
}
profile unprivileged flags=(attach_disconnected,mediate_deleted) {
  allow file rwlkm /{**,}, allow network, allow unix, allow ptrace, allow signal, allow userns,
  allow mount, allow umount, allow pivot_root, allow mqueue, allow io_uring, allow dbus,
  allow pix /** -> &unprivileged,
  audit deny capability,
}
PROFILE
    apparmor_parser --replace /etc/apparmor.d/bwrap
    # Two installations do not take each other's profile away.
    /opt/bin/stockade doctor --write-apparmor
    install -D /opt/bin/stockade /opt/other/stockade
    /opt/other/stockade doctor --write-apparmor
    # Only Ubuntu's kernel has this setting.
    sysctl kernel.apparmor_restrict_unprivileged_userns=1
}

also() {
    # What Chromium's sandbox needs: capabilities in namespaces of its own.
    sandbox="unshare --user --map-root-user --net --pid --fork /usr/sbin/chroot /"
    try control sh -c "! bwrap --dev-bind / / $sandbox true"
    try chromium stockade run -- $sandbox true
    try nested stockade run --nested -- bwrap --dev-bind / / --unshare-all true
    try profile stockade run -- grep "^stockade.opt.bin.stockade " /proc/self/attr/current
    try strict stockade run --hardening strict -- grep unprivileged /proc/self/attr/current
}
