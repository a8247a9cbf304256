#!/bin/sh
# Builds what guests start from, in the current directory, as root. What is there already is kept.
#   images.sh kernel SUITE ARCH     Debian's kernel for clouds, unpacked and not installed
#   images.sh root SUITE ARCH       a root with systemd and what the guest's script needs
#   images.sh disk ROOT KERNEL...   the root's disk, with the modules of these kernels
#   images.sh initrd KERNEL ROOT    what mounts a disk
set -eu

debian() {
    # The mirror and its options are those of this machine, if it has any.
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Label: Debian' | head -n 1)
    apt-config dump | grep -E '^Acquire::(Check-Valid-Until|https?::Proxy)' > "$2.apt" || :
    echo 'APT::Install-Recommends "false";' >> "$2.apt"
    suite=$1 target=$2
    shift 2
    rm -rf "$target.new"
    mmdebstrap --mode=root --aptopt="$PWD/$target.apt" "$@" "$suite" "$target.new" ${mirror:+"$mirror"}
    rm -f "$target.apt"
    mv "$target.new" "$target"
}

modules_of() {
    for directory in "$1/usr/lib/modules" "$1/lib/modules"; do
        [ -d "$directory" ] && echo "$directory"/* && return
    done
}

case $1 in
kernel)
    name=kernel-$2-$3
    [ -d "$name" ] && exit
    debian "$2" "$name" --variant=extract --architectures="$3" --skip=chroot/mount \
        --include="linux-image-cloud-$3"
    depmod -b "$(modules_of "$name" | sed 's|/lib/modules/.*||')" "$(basename "$(modules_of "$name")")"
    cp "$name"/boot/vmlinuz-* "$name/vmlinuz" 2> /dev/null || cp "$(modules_of "$name")/vmlinuz" "$name/vmlinuz"
    ;;
root)
    name=root-$2-$3
    [ -d "$name" ] && exit
    # Without systemd, nobody has told the kernel what emulates the programs of this root.
    formats=/proc/sys/fs/binfmt_misc
    if [ "$3" = arm64 ] && [ "$(uname -m)" != aarch64 ] && [ ! -e $formats/qemu-aarch64 ]; then
        [ -e $formats/register ] || mount -t binfmt_misc binfmt_misc $formats
        cat /usr/lib/binfmt.d/qemu-aarch64.conf > $formats/register
    fi
    podman=
    [ "$2-$3" = trixie-amd64 ] && podman=,podman,crun,uidmap
    debian "$2" "$name" --variant=apt --architectures="$3" --include="apparmor,bubblewrap,busybox-static,ca-certificates,\
curl,dbus,dbus-user-session,git,iproute2,kmod,libpam-systemd,mount,nftables,passwd,procps,systemd-sysv$podman"
    ;;
disk)
    root=$2
    [ -f "$root.ext4" ] && exit
    shift 2
    mkdir -p "$root/usr/lib/modules"
    for kernel; do cp -a "$(modules_of "$kernel")" "$root/usr/lib/modules/"; done
    truncate -s 2G "$root.new"
    mkfs.ext4 -q -d "$root" "$root.new"
    mv "$root.new" "$root.ext4"
    ;;
initrd)
    modules=$(modules_of "$2")
    there=$2.tree/lib/modules/$(basename "$modules")
    rm -rf "$2.tree"
    mkdir -p "$2.tree/bin" "$2.tree/proc" "$2.tree/sys" "$2.tree/dev" "$2.tree/root" "$there"
    cp "$3/usr/bin/busybox" "$2.tree/bin/"
    install -m 755 init.sh "$2.tree/init"
    cp "$modules"/modules.* "$there/"
    for module in virtio_pci virtio_mmio virtio_blk ext4; do
        # Each line of modules.dep names a module and what it needs.
        for file in $(grep "/$module\.ko" "$modules/modules.dep" | tr -d :); do
            install -D -m 644 "$modules/$file" "$there/$file"
        done
    done
    (cd "$2.tree" && find . | cpio --quiet -o -H newc | gzip -1) > "$2.initrd"
    rm -rf "$2.tree"
    ;;
esac
