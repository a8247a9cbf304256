"""How attempts end: for each KIND/ADDRESS/PORT, all at once, a line with the
outcome and the milliseconds it took, in the order of the arguments.

Kinds: tcp, and tcp-brief, which sends its SYN twice and no more; udp, and
udp-strict, which asks the kernel for every error.
"""
import errno
import socket
import sys
import threading
import time

IP_RECVERR, IPV6_RECVERR = 11, 25
PATIENCE = 15
# A datagram, or the router's complaint about it, may be lost: routers say a
# few per second and then no more.
AGAIN = 0.5


def ask_again(s):
    s.settimeout(AGAIN)
    for _ in range(int(PATIENCE / AGAIN)):
        try:
            return s.recv(100)
        except TimeoutError:
            s.send(b"hello")
    return s.recv(100)


def confirm(s):
    """The kernel wakes who waits a moment before it tells the error of an ICMP message."""
    try:
        s.getpeername()
    except OSError:
        raise OSError(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR), "late error") from None


def attempt(kind, address, port):
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    protocol, _, manner = kind.partition("-")
    stream = protocol == "tcp"
    with socket.socket(family, socket.SOCK_STREAM if stream else socket.SOCK_DGRAM) as s:
        s.settimeout(PATIENCE)
        if manner == "brief":
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_SYNCNT, 1)
        if manner == "strict":
            if family == socket.AF_INET:
                s.setsockopt(socket.IPPROTO_IP, IP_RECVERR, 1)
            else:
                s.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVERR, 1)
        stage = "connect"
        try:
            s.connect((address, int(port)))
            confirm(s)
            stage = "send"
            s.send(b"hello")
            stage = "receive"
            got = s.recv(100) if stream else ask_again(s)
            return f"received {got.decode()}" if got else "end"
        except TimeoutError as error:
            # The kernel's own time-out has a number, this script's has none.
            return f"{stage} {'ETIMEDOUT' if error.errno else 'hangs'}"
        except OSError as error:
            return f"{stage} {errno.errorcode[error.errno]}"


def timed(index, words):
    start = time.monotonic()
    outcome = attempt(*words)
    outcomes[index] = (outcome, int((time.monotonic() - start) * 1000))


outcomes = {}
threads = [
    threading.Thread(target=timed, args=(index, words.split("/")))
    for index, words in enumerate(sys.argv[1:])
]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
for index in range(len(threads)):
    print(*outcomes[index], sep="\t")
