# Asks servers for an answer, and tells what came of it: one line per target,
#
#   TARGET<TAB>answer | silence | the errno's name
#
# A target is written as a rule: tcp://10.0.0.1:80, udp://[fd00::1]:7, icmp://10.0.0.1. An
# IPv6 address may have a zone. Targets come on standard input; those of one line are asked at
# once, and their end is said by a line "done".

import errno
import select
import socket
import struct
import sys
import threading

PATIENCE = 6.0
# An HTTP server answers it, and an echo server does, too.
QUESTION = b"HEAD /probe HTTP/1.0\r\n\r\n"


def ask(kind, address):
    family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
    if kind == "tcp":
        with socket.socket(family, socket.SOCK_STREAM) as connection:
            connection.settimeout(PATIENCE)
            connection.connect(address)
            connection.sendall(QUESTION)
            return connection.recv(512)
    question = QUESTION
    protocol = 0
    if kind == "icmp":
        echo, protocol = (128, 58) if family == socket.AF_INET6 else (8, 1)
        # The kernel fills in the checksum and the identifier.
        question = struct.pack("!BBHHH", echo, 0, 0, 0, 1) + QUESTION
    with socket.socket(family, socket.SOCK_DGRAM, protocol) as sender:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
        sender.connect(address)
        # Twice: a neighbour that has to be found first may cost a datagram.
        for _ in range(2):
            sender.send(question)
            if select.select([sender], [], [], PATIENCE / 2)[0]:
                return sender.recv(2048)
    raise TimeoutError


def resolved(target):
    kind, place = target.split("://")
    port = "0"
    if kind != "icmp":
        place, port = place.rsplit(":", 1)
    host = place.strip("[]")
    return kind, socket.getaddrinfo(host, int(port), type=socket.SOCK_DGRAM)[0][4]


def outcome(target):
    try:
        return "answer" if ask(*resolved(target)) else "closed"
    except TimeoutError as error:
        return errno.errorcode.get(error.errno, "silence")
    except socket.gaierror as error:
        return f"no address: {error}"
    except OSError as error:
        return errno.errorcode.get(error.errno, str(error))


def tell(target):
    result = outcome(target)
    with lock:
        print(f"{target}\t{result}")


def probe(targets):
    threads = [threading.Thread(target=tell, args=[target]) for target in targets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print("done", flush=True)


lock = threading.Lock()
for line in sys.stdin:
    probe(line.split())
