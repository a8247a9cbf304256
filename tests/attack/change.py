# Tries everything that would change the network it is in, or get around its rules, and tells
# of each attempt: NAME<TAB>ok or how it failed. Changes nothing that a later attempt needs.

import ctypes
import errno
import socket
import subprocess

IP_TRANSPARENT, IPV6_TRANSPARENT, TCP_REPAIR = 19, 75, 19
HOP_OPTIONS = bytes([59, 0, 1, 4, 0, 0, 0, 0])
INET, INET6 = socket.AF_INET, socket.AF_INET6
STREAM, DATAGRAM, RAW = socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW


def command(line):
    done = subprocess.run(line.split(), capture_output=True, text=True)
    return "ok" if done.returncode == 0 else " ".join(done.stderr.split())


def write(path, value):
    with open(path, "w") as file:
        file.write(value)


def option(family, kind, level, name, value):
    with socket.socket(family, kind) as any_socket:
        any_socket.setsockopt(level, name, value)


def bind(family, kind, port):
    with socket.socket(family, kind) as server:
        if family == INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server.bind(("", port))
        if kind == STREAM:
            server.listen()


def open_socket(family, kind, protocol):
    socket.socket(family, kind, protocol).close()


def bound_packet_socket():
    with socket.socket(socket.AF_PACKET, RAW, socket.htons(3)) as tap:
        tap.bind(("lo", 3))


def enter_own_network_again():
    with open("/proc/self/ns/net") as namespace:
        # Needs authority over the namespace, also for the one that one is in.
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.setns(namespace.fileno(), 0x40000000):
            raise OSError(ctypes.get_errno(), "setns")


COMMANDS = """
ip link set lo up
ip link set lo mtu 60000
ip link add n14a type veth peer name n14b
ip link add n14c type bridge
ip address add 45.1.1.1/32 dev lo
ip -6 address add 2600:1::1/128 dev lo
ip route add 10.20.0.0/16 dev lo
ip -6 route add fd00:20::/32 dev lo
ip route add local default dev lo table 101
ip rule add pref 5 lookup main
ip -6 rule add pref 5 lookup main
ip neigh add 45.1.1.2 lladdr 02:00:00:00:00:01 dev lo
tc qdisc add dev lo root pfifo
nft list ruleset
nft add table inet n14
nft flush ruleset
"""
SETTINGS = {
    "ipv4/ip_unprivileged_port_start": "0",
    "ipv4/ip_nonlocal_bind": "1",
    "ipv4/ip_forward": "1",
    "ipv4/conf/all/accept_source_route": "1",
    "ipv4/conf/lo/route_localnet": "1",
    "ipv6/conf/all/seg6_enabled": "1",
    "ipv6/conf/all/forwarding": "1",
}
SOCKETS = {
    "transparent": (option, INET, STREAM, socket.SOL_IP, IP_TRANSPARENT, 1),
    "transparent datagrams": (option, INET, DATAGRAM, socket.SOL_IP, IP_TRANSPARENT, 1),
    "transparent v6": (option, INET6, STREAM, socket.IPPROTO_IPV6, IPV6_TRANSPARENT, 1),
    "mark": (option, INET, STREAM, socket.SOL_SOCKET, socket.SO_MARK, 0x53544B44),
    "priority": (option, INET, STREAM, socket.SOL_SOCKET, socket.SO_PRIORITY, 7),
    "repair": (option, INET, STREAM, socket.IPPROTO_TCP, TCP_REPAIR, 1),
    "hop options": (option, INET6, DATAGRAM, socket.IPPROTO_IPV6, socket.IPV6_HOPOPTS, HOP_OPTIONS),
    "raw": (open_socket, INET, RAW, 255),
    "raw icmp": (open_socket, INET, RAW, 1),
    "raw tcp": (open_socket, INET, RAW, 6),
    "raw v6": (open_socket, INET6, RAW, 255),
    "packet": (open_socket, socket.AF_PACKET, RAW, 0),
    "packet datagrams": (open_socket, socket.AF_PACKET, DATAGRAM, 0),
    "bound packet": (bound_packet_socket,),
    "listener's port": (bind, INET, STREAM, 1),
    "listener's port v6": (bind, INET6, STREAM, 1),
    "datagrams' port": (bind, INET, DATAGRAM, 1),
    "datagrams' port v6": (bind, INET6, DATAGRAM, 1),
    "name service": (bind, INET, DATAGRAM, 53),
    "name service by tcp": (bind, INET, STREAM, 53),
    "setns": (enter_own_network_again,),
}


def attempts():
    for line in COMMANDS.strip().splitlines():
        yield line, command, [line]
    for name, (call, *arguments) in SOCKETS.items():
        yield name, call, arguments
    for path, value in SETTINGS.items():
        yield path, write, ["/proc/sys/net/" + path, value]


for name, call, arguments in attempts():
    try:
        result = call(*arguments) or "ok"
    except OSError as error:
        result = errno.errorcode[error.errno]
    print(name, result, sep="\t")
print("done", flush=True)
