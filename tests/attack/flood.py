# Floods the network in one of several ways, says "done" when the flood stands, and keeps it up
# until it is killed.
#
#   flood.py WAY COUNT ADDRESS PORT

import resource
import select
import signal
import socket
import struct
import sys
import time

WAY, COUNT, ADDRESS, PORT = sys.argv[1], int(sys.argv[2]), sys.argv[3], int(sys.argv[4])
PATIENCE = 20
MSG_FASTOPEN, TCP_FASTOPEN_NO_COOKIE = 0x20000000, 34

_, most = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))


def pace(number):
    # Faster, and most would be lost in the kernel before they trouble anybody.
    if number % 50 == 0:
        time.sleep(0.005)


def attempts():
    # Connections that never come to stand.
    streams = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(COUNT)]
    for number, stream in enumerate(streams):
        stream.setblocking(False)
        stream.connect_ex((ADDRESS, PORT))
        pace(number)
    return streams


def first_data():
    # The same, with as much data in the first packet as the kernel puts there (TCP fast open).
    streams = [socket.socket(socket.AF_INET, socket.SOCK_STREAM) for _ in range(COUNT)]
    for number, stream in enumerate(streams):
        stream.setblocking(False)
        stream.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
        assert stream.sendto(bytes(32768), MSG_FASTOPEN, (ADDRESS, PORT)) > 1000
        pace(number)
    return streams


def try_once(address, port):
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as stream:
        stream.setblocking(False)
        stream.connect_ex((address, port))


def abandoned():
    # Connections to what answers DNS, which nobody waits for, and then others that are denied.
    for number in range(COUNT):
        try_once(f"9.9.{number >> 8 & 255}.{number & 255}", 53)
        if number % 20 == 0:
            time.sleep(0.004)
    time.sleep(1.1)
    for number in range(7000):
        try_once(ADDRESS, PORT)
        if number % 20 == 0:
            time.sleep(0.004)
    return []


def connections():
    streams = []
    for _ in range(COUNT):
        streams.append(socket.create_connection((ADDRESS, PORT), PATIENCE))
    return streams


def readers():
    # Connections whose data nobody reads.
    streams = []
    for _ in range(COUNT):
        stream = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2304)
        stream.settimeout(PATIENCE)
        stream.connect((ADDRESS, PORT))
        streams.append(stream)
    time.sleep(1)
    return streams


def writers():
    # Connections to who answers everything, which nobody reads.
    streams = connections()
    for stream in streams:
        stream.setblocking(False)
    idle = 0
    while idle < 20:
        idle += 1
        for stream in streams:
            try:
                stream.send(bytes(65536))
                idle = 0
            except BlockingIOError:
                pass
        time.sleep(0.02)
    return streams


def flows():
    # New ones as fast as possible, without an end.
    def send_on():
        number = 0
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
            while True:
                number += 1
                host = struct.pack("!I", 0x08000000 + number % 0x00FFFFFF)
                sender.sendto(b"flood", (socket.inet_ntoa(host), PORT))

    return send_on


def unfinished_queries():
    # The length of the longest DNS message there can be, and all of it but the last byte.
    streams = connections()
    for stream in streams:
        # One that a later connection has taken the place of is closed.
        try: stream.sendall(struct.pack("!H", 65535) + bytes(65534))
        except OSError: pass
    time.sleep(1)
    return streams


def datagrams():
    # A flow each: from one of a hundred sockets to one of many ports.
    senders = [socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(100)]
    for number in range(COUNT):
        sender = senders[number % len(senders)]
        try:
            sender.sendto(b"flood", (ADDRESS, PORT + number // len(senders)))
        except OSError:
            # That of an earlier datagram.
            pass
        pace(number)
    return senders


def hosts():
    # One port of as many addresses, beginning with ADDRESS.
    first = struct.unpack("!I", socket.inet_aton(ADDRESS))[0]
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        for number in range(COUNT):
            sender.sendto(b"flood", (socket.inet_ntoa(struct.pack("!I", first + number)), PORT))


def bulk():
    streams = connections()

    def read_on():
        while True:
            for stream in select.select(streams, [], [])[0]:
                stream.recv(1 << 20)

    return read_on


ways = [
    attempts, first_data, abandoned, connections, readers, writers, flows, unfinished_queries, datagrams, hosts, bulk,
]
flood = {way.__name__: way for way in ways}[WAY]()
print("done", flush=True)
if callable(flood):
    flood()
signal.pause()
