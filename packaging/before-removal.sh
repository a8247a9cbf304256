#!/bin/sh
# Before the removal or upgrade of a package (.deb: prerm, .rpm: %preun).
set -eu
case "${1-}" in
    remove | 0) ;;
    *) exit 0 ;; # an upgrade
esac
# Only profiles for the program that goes, not those of another installation.
for profile in /etc/apparmor.d/stockade*; do
    grep -qs ' /usr/bin/stockade ' "$profile" || continue
    if [ -d /sys/kernel/security/apparmor ]; then
        apparmor_parser --remove "$profile" || true
    fi
    rm -f "$profile" /var/cache/apparmor/*/"${profile##*/}"
done
