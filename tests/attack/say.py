# Says what it is told to say, and tells what it hears.
#
# A line of standard input is a saying; "go" has those before it said, all at once:
#
#   tcp|udp HOST PORT PIECE…
#
# Pieces are hexadecimal, and each is sent by a call of its own; "-" waits until something
# was heard, "+" for a moment. After the last one a connection is closed in this direction.
# What comes back is told in the order of the sayings, and then "done":
#
#   heard BYTES | no address | silence | the errno's name

import errno
import select
import socket
import sys
import threading
import time

PATIENCE = 8.0
# So long nothing is heard when somebody has finished.
QUIET = 0.2
# Longer than the gate waits for the rest of something.
MOMENT = 0.3


def open_to(kind, host, port):
    stream = socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM
    family, _, _, _, address = socket.getaddrinfo(host, int(port), type=stream)[0]
    opened = socket.socket(family, stream)
    opened.settimeout(PATIENCE)
    opened.connect(address)
    return opened


def converse(opened, pieces, heard):
    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        for piece in pieces:
            if piece == "-":
                heard += opened.recv(65536)
                # A server may say what it says in pieces.
                while select.select([opened], [], [], QUIET)[0] and (more := opened.recv(65536)):
                    heard += more
            elif piece == "+":
                time.sleep(MOMENT)
            else:
                opened.sendall(bytes.fromhex(piece))
        opened.shutdown(socket.SHUT_WR)
    except OSError as error:
        # Who is refused in the middle may have been told why.
        if error.errno not in (errno.EPIPE, errno.ECONNRESET, errno.ENOTCONN):
            raise
    while piece := opened.recv(65536):
        heard += piece


def say(kind, host, port, pieces):
    heard = bytearray()
    try:
        with open_to(kind, host, port) as opened:
            if kind == "tcp":
                converse(opened, pieces, heard)
            else:
                for piece in pieces:
                    opened.send(bytes.fromhex(piece))
                    heard += opened.recv(65536)
    except socket.gaierror:
        return "no address"
    except TimeoutError as error:
        if not heard:
            return errno.errorcode.get(error.errno, "silence")
    except OSError as error:
        if not heard:
            return errno.errorcode.get(error.errno, str(error))
    return "heard " + heard.hex()


def go(sayings):
    outcomes = [None] * len(sayings)

    def one(index):
        kind, host, port, *pieces = sayings[index].split()
        outcomes[index] = say(kind, host, port, pieces)

    threads = [threading.Thread(target=one, args=[index]) for index in range(len(sayings))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for outcome in outcomes:
        print(outcome)
    print("done", flush=True)


sayings = []
for line in sys.stdin:
    if line.strip() != "go":
        sayings.append(line)
        continue
    go(sayings)
    sayings = []
