#!/bin/sh
# Runs in a guest, as its root: doctor, verify and a session of an ordinary user. Each result is a line
# "matrix: NAME VALUE" on the console.
exec > /dev/console 2>&1
. /opt/matrix/row
PATH=/usr/sbin:/usr/bin:/sbin:/bin

result() {
    name=$1
    shift
    echo "matrix: $name $*"
}

# As the user, with the exit code as a result. The output is shown for whoever looks at the console.
try() {
    name=$1
    shift
    result "$name" "$(as_user "$@" > "/tmp/$name" 2>&1; echo $?)"
    sed "s/^/$name: /" "/tmp/$name"
}

as_user() {
    cd /home/dev/project || exit 99
    setpriv --reuid=1000 --regid=1000 --init-groups --inh-caps=-all --bounding-set=+all \
        env -i HOME=/home/dev PATH=/opt/bin:/usr/bin:/bin XDG_RUNTIME_DIR=/run/user/1000 "$@"
}

useradd --uid 1000 --create-home dev
mkdir -p /opt/bin
cp /opt/matrix/stockade /opt/bin/stockade
install -d -o 1000 -g 1000 /home/dev/project
as_user git init --quiet

# The internet and a network nearby are a namespace behind the default route.
busybox=/opt/matrix/busybox
ip link set lo up
ip netns add internet
ip link add uplink type veth peer name downlink netns internet
ip address add 10.0.0.2/24 dev uplink
ip link set uplink up
ip route add default via 10.0.0.1
ip -n internet link set lo up
ip -n internet link set downlink up
ip -n internet address add 10.0.0.1/24 dev downlink
ip -n internet address add 93.184.216.34/32 dev lo
mkdir -p /opt/www
echo "the internet" > /opt/www/index.html
ip netns exec internet "$busybox" httpd -p 80 -h /opt/www
until curl --silent --fail --output /dev/null http://93.184.216.34/; do sleep 0.1; done

result kernel "$(uname -r)"
result bubblewrap "$(bwrap --version | cut -d' ' -f2)"
[ -z "$setup" ] || eval "$setup"
try doctor stockade doctor
try verify stockade verify
result counts "$(tail -n 1 /tmp/verify)"
try run stockade run -- curl --silent --show-error --fail --max-time 20 http://93.184.216.34/
try denied stockade run -- curl --silent --show-error --fail --max-time 20 http://10.0.0.1/
[ -z "$extra" ] || eval "$extra"
result end
sync
poweroff -f
