# Sends packets of every odd shape that a program without privilege can make, to echo servers
# at port 7, and tells of each: NAME<TAB>answer, silence, or the errno's name.
#
#   shapes.py TARGET TARGET_V6 VIA VIA_V6      VIA: a hop for source routes

import errno
import socket
import struct
import sys
import threading

TARGET, TARGET_V6, VIA, VIA_V6 = sys.argv[1:]
QUESTION = b"are you there?"
STREAM, DATAGRAM = socket.SOCK_STREAM, socket.SOCK_DGRAM
IP, IPV6, TCP = socket.SOL_IP, socket.IPPROTO_IPV6, socket.IPPROTO_TCP

IP_OPTIONS, IP_MTU_DISCOVER, IP_FREEBIND = 4, 10, 15
IPV6_MTU, IPV6_RTHDR, IPV6_FREEBIND = 24, 57, 78
SO_NO_CHECK, TCP_MD5SIG = 11, 14
UDPLITE = 136

RECORD_ROUTE = bytes([7, 39, 4]) + bytes(36) + bytes(1)
TIMESTAMP = bytes([68, 36, 5, 0]) + bytes(32)
ROUTER_ALERT = bytes([148, 4, 0, 0])


def source_route(kind):
    return bytes([kind, 7, 4]) + socket.inet_aton(VIA) + bytes(1)


def segment_route():
    # Two segments, of which the kernel writes the first: the destination.
    via = socket.inet_pton(socket.AF_INET6, VIA_V6)
    return struct.pack("!BBBBBBH", 0, 4, 4, 1, 1, 0, 0) + bytes(16) + via


def home_route():
    return struct.pack("!BBBBI", 0, 2, 2, 1, 0) + socket.inet_pton(socket.AF_INET6, VIA_V6)


def md5_key(address):
    peer = struct.pack("=HH4s120x", socket.AF_INET, 0, socket.inet_aton(address))
    return peer + struct.pack("=BBHI80s", 0, 0, 3, 0, b"key")


def talk(family, kind, options=(), data=QUESTION, port=7, protocol=0, source=None):
    address = TARGET_V6 if family == socket.AF_INET6 else TARGET
    with socket.socket(family, kind, protocol) as speaker:
        for option in options:
            speaker.setsockopt(*option)
        speaker.settimeout(5)
        if source:
            speaker.bind(source)
        speaker.connect((address, port))
        if kind == STREAM:
            speaker.sendall(data)
        else:
            speaker.send(data)
        speaker.recv(65535)


def both(name, options, **more):
    for kind, word in [(STREAM, "stream"), (DATAGRAM, "datagram")]:
        yield f"{word} {name}", socket.AF_INET, kind, options, more


def both_v6(name, options, **more):
    for kind, word in [(STREAM, "stream"), (DATAGRAM, "datagram")]:
        yield f"{word} v6 {name}", socket.AF_INET6, kind, options, more


def shapes():
    yield from both("plain", [])
    yield from both_v6("plain", [])
    yield from both("with recorded route", [(IP, IP_OPTIONS, RECORD_ROUTE)])
    yield from both("with timestamps", [(IP, IP_OPTIONS, TIMESTAMP)])
    yield from both("with router alert", [(IP, IP_OPTIONS, ROUTER_ALERT)])
    yield from both("by loose source route", [(IP, IP_OPTIONS, source_route(131))])
    yield from both("by strict source route", [(IP, IP_OPTIONS, source_route(137))])
    yield from both("of one hop", [(IP, socket.IP_TTL, 1)])
    yield from both("of all service bits", [(IP, socket.IP_TOS, 0xFF)])
    yield from both("to port zero", [], port=0)
    yield from both("from a foreign source", [(IP, IP_FREEBIND, 1)], source=(VIA, 7007))
    yield from both("from loopback", [], source=("127.0.0.1", 0))
    yield from both_v6("by segment route", [(IPV6, IPV6_RTHDR, segment_route())])
    yield from both_v6("by home route", [(IPV6, IPV6_RTHDR, home_route())])
    yield from both_v6("of one hop", [(IPV6, socket.IPV6_UNICAST_HOPS, 1)])
    yield from both_v6("from a foreign source", [(IPV6, IPV6_FREEBIND, 1)], source=(VIA_V6, 7007))
    yield from both_v6("from loopback", [], source=("::1", 0))
    one = [
        ("stream signed", STREAM, [(TCP, TCP_MD5SIG, md5_key(TARGET))], {}),
        ("stream of tiny segments", STREAM, [(TCP, socket.TCP_MAXSEG, 88)], {"data": b"x" * 5000}),
        ("datagram of no bytes", DATAGRAM, [], {"data": b""}),
        ("datagram of all bytes", DATAGRAM, [], {"data": b"x" * 65507}),
        ("datagram without checksum", DATAGRAM, [(socket.SOL_SOCKET, SO_NO_CHECK, 1)], {}),
        ("datagram that may be cut", DATAGRAM, [(IP, IP_MTU_DISCOVER, 0)], {"data": b"x" * 60000}),
        ("datagram of another protocol", DATAGRAM, [], {"protocol": UDPLITE}),
    ]
    for name, kind, options, more in one:
        yield name, socket.AF_INET, kind, options, more
    cut = (IPV6, IPV6_MTU, 1280)
    routed = (IPV6, IPV6_RTHDR, segment_route())
    for name, options in [("fragments", [cut]), ("routed fragments", [cut, routed])]:
        name = f"datagram v6 in {name}"
        yield name, socket.AF_INET6, DATAGRAM, options, {"data": b"x" * 4000}


def tell(name, family, kind, options, more):
    try:
        talk(family, kind, options, **more)
        result = "answer"
    except TimeoutError as error:
        result = errno.errorcode.get(error.errno, "silence")
    except OSError as error:
        result = errno.errorcode[error.errno]
    with lock:
        print(name, result, sep="\t")


lock = threading.Lock()
threads = [threading.Thread(target=tell, args=shape) for shape in shapes()]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print("done", flush=True)
