# Sends by other ways than plain TCP and UDP, and prints what came of each and how long it took.
import errno, socket, time

WEB = {socket.AF_INET: "93.184.216.34", socket.AF_INET6: "2606:2800:220:1::34"}
UDPLITE, IPV6_RTHDR, SEGMENTS = 136, 57, 4
PATIENCE = 3


def told(what, attempt):
    began = time.monotonic()
    try:
        outcome = attempt()
    except TimeoutError:
        outcome = "silence"
    except OSError as error:
        outcome = errno.errorcode.get(error.errno, str(error))
    soon = "at once" if time.monotonic() - began < 1 else "late"
    print(what, outcome, soon, flush=True)


def say(family, kind, protocol, address, header=None):
    with socket.socket(family, kind, protocol) as asking:
        asking.settimeout(PATIENCE)
        if header:
            asking.setsockopt(socket.IPPROTO_IPV6, IPV6_RTHDR, header)
        asking.connect(address)
        asking.send(b"x")
        return "answer" if asking.recv(16) else "end"


for family, address in WEB.items():
    name = "v4" if family == socket.AF_INET else "v6"
    told(f"udp-lite {name}", lambda: say(family, socket.SOCK_DGRAM, UDPLITE, (address, 7)))
    told(f"udp {name}", lambda: say(family, socket.SOCK_DGRAM, 0, (address, 7)))

through = bytes([0, 2, SEGMENTS, 0, 0, 0, 0, 0]) + socket.inet_pton(socket.AF_INET6, WEB[socket.AF_INET6])
for kind, name in [(socket.SOCK_STREAM, "tcp"), (socket.SOCK_DGRAM, "udp")]:
    route = ("fd00:20::5", 7)
    told(f"{name} by a route", lambda: say(socket.AF_INET6, kind, 0, route, through))
    for index, device in socket.if_nameindex():
        near = ("fe80::1", 7, 0, index)
        told(f"{name} link-local by {device}", lambda: say(socket.AF_INET6, kind, 0, near))
