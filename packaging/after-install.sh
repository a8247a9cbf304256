#!/bin/sh
# After the installation or upgrade of a package (.deb: postinst, .rpm: %post).
set -eu
# On some machines AppArmor lets only programs with a profile use user namespaces. They get one also
# where that is not so yet. AppArmor before 4.0 does not know it, and does not ask for it.
if [ -d /sys/kernel/security/apparmor ] && [ -e /etc/apparmor.d/abi/4.0 ]; then
    /usr/bin/stockade doctor --write-apparmor ||
        echo "stockade: no AppArmor profile; \`stockade doctor\` says what to do" >&2
fi
