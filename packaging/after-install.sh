#!/bin/sh
# After the installation or upgrade of a package (.deb: postinst, .rpm: %post).
set -eu
# AppArmor lets only programs with a profile use user namespaces on some machines. Kernels that
# know this setting can be told so later, hence the profile even where it is off.
if [ -e /proc/sys/kernel/apparmor_restrict_unprivileged_userns ] &&
    [ -d /sys/kernel/security/apparmor ] && [ -e /etc/apparmor.d/abi/4.0 ]; then
    /usr/bin/stockade doctor --write-apparmor ||
        echo "stockade: no AppArmor profile; \`stockade doctor\` says what to do" >&2
fi
