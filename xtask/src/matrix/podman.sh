# In a container of rootless Podman, whose root is the user.
as_user() {
    su --login dev --command "podman --cgroup-manager=cgroupfs run --quiet --rm --network=host $options \
        --env=HOME=/home/dev --env=PATH=/opt/bin:/usr/bin:/bin --workdir=/home/dev/project --rootfs /srv/box $*"
}

setup() {
    grep -q dev /etc/subuid || echo dev:100000:65536 | tee -a /etc/subuid >> /etc/subgid
    # The container has the files of the machine, and a /run of its own.
    mkdir -p /srv/box
    mount --bind / /srv/box
    mount -t tmpfs -o mode=755,uid=1000,gid=1000 run /srv/box/run
}

also() {
    # Without capabilities, a session does not start, and names the one that it needs.
    options=--cap-drop=all
    as_user stockade run -- true 2>&1 | grep -e "--cap-add SETFCAP"
    result setfcap $?
}
