#!/bin/busybox sh
# The first program of a guest: mounts the root, adds what the row needs, and starts its systemd.
/bin/busybox --install -s /bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs dev /dev
for module in virtio_pci virtio_mmio virtio_blk ext4; do modprobe "$module"; done
mount -t ext4 /dev/vda /root || exec poweroff -f
tar -xf /dev/vdb -C /root
. /root/opt/matrix/row
modules=/root/lib/modules/$(uname -r)
for module in $without; do
    rm "$(find "$modules/" -name "$module.ko*")" && echo "$module" >> /root/opt/matrix/removed
    sed -i "\|/$module\.ko|d" "$modules/modules.dep"
done
umount /proc /sys
exec switch_root /root /sbin/init
