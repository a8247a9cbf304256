#!/bin/sh
# Runs in a guest, as its root: doctor, verify and sessions of an ordinary user. Each result is a line
# "matrix: NAME VALUE" on the console.
exec > /dev/console 2>&1
PATH=/usr/sbin:/usr/bin:/sbin:/bin

result() {
    echo "matrix: $*"
}

# As the user. The output is shown for whoever reads the console, and the exit code is the result.
try() {
    name=$1
    shift
    as_user "$@" > "/tmp/$name" 2>&1
    code=$?
    sed "s/^/$name: /" "/tmp/$name"
    result "$name" $code
}

as_user() {
    cd /home/dev/project || exit 99
    setpriv --reuid=1000 --regid=1000 --init-groups --inh-caps=-all \
        env -i HOME=/home/dev PATH=/opt/bin:/usr/bin:/bin XDG_RUNTIME_DIR=/run/user/1000 "$@"
}

# The internet, and a network nearby, are a namespace behind the default route.
internet() {
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
    ip netns exec internet busybox httpd -p 80 -h /opt/www
    until curl --silent --fail --output /dev/null http://93.184.216.34/; do sleep 0.1; done
    ip netns exec internet perl -MIO::Socket::INET -e '
        $socket = IO::Socket::INET->new(Proto => "udp", LocalAddr => "93.184.216.34:7") or die;
        $socket->send($_) while defined $socket->recv($_, 65535);' &
}

# Sends two datagrams, a small one and the largest one, and compares their echoes.
echoes=/usr/local/bin/echoes
cat > $echoes <<'SCRIPT'
#!/usr/bin/perl
use IO::Socket::INET;
$socket = IO::Socket::INET->new(Proto => "udp", PeerAddr => "93.184.216.34:7") or die;
for my $text ("hello", "x" x 65507) {
    alarm 20;
    $socket->send($text) or die "send: $!";
    defined $socket->recv($answer, 65535) or die "recv: $!";
    $answer eq $text or die "another answer";
}
SCRIPT
chmod 755 $echoes

# The kernel had the modules that the row is without, and can load them no more.
gone() {
    for module in $without; do
        grep -x "$module" /opt/matrix/removed && ! modprobe "$module" || return 1
    done
}

# What is special about this machine.
setup() { :; }
also() { :; }
. /opt/matrix/row

useradd --uid 1000 --create-home dev
install -d -o 1000 -g 1000 /home/dev/project
install -D /opt/matrix/stockade /opt/bin/stockade
setpriv --reuid=1000 --regid=1000 --init-groups git init --quiet /home/dev/project
ip link set lo up
internet

result kernel "$(uname -r)"
result bubblewrap "$(bwrap --version | cut -d' ' -f2)"
setup
gone
result gone $?
try doctor stockade doctor
try verify stockade verify
result counts "$(tail -n 1 /tmp/verify)"
try run stockade run -- curl --silent --show-error --fail --max-time 20 http://93.184.216.34/
try datagrams stockade run -- $echoes
try denied stockade run -- curl --silent --show-error --fail --max-time 20 http://10.0.0.1/
also
result end
sync
poweroff -f
