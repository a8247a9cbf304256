"""Serves on the port of the argument. `U`: reads to the end, answers with the
checksum. `D` and a number: sends as many bytes, then their checksum. Else: echo."""
import hashlib
import os
import socket
import sys
import threading

BLOCK = 1 << 20


def blocks(count):
    """Random bytes of which no two blocks are equal."""
    base = os.urandom(2 * BLOCK)
    for start in range(0, count, BLOCK):
        offset = start // BLOCK * 4097 % BLOCK
        yield base[offset:offset + min(BLOCK, count - start)]


def upload(s):
    digest = hashlib.sha256()
    while block := s.recv(BLOCK):
        digest.update(block)
    s.sendall(digest.digest())


def download(s, count):
    digest = hashlib.sha256()
    for block in blocks(count):
        digest.update(block)
        s.sendall(block)
    s.sendall(digest.digest())


def serve(s):
    with s:
        order = s.recv(1)
        if order == b"U":
            upload(s)
        elif order == b"D":
            download(s, int.from_bytes(s.recv(8), "big"))
        else:
            while order:
                s.sendall(order)
                order = s.recv(BLOCK)


listener = socket.create_server(("::", int(sys.argv[1])), family=socket.AF_INET6,
                                dualstack_ipv6=True, backlog=256)
while True:
    threading.Thread(target=serve, args=(listener.accept()[0],), daemon=True).start()
