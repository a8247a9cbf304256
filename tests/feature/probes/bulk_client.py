"""Carries BYTES to and from the server at ADDRESS PORT at the same time, while
OTHERS connections come and go. Prints a line for each that went well."""
import hashlib
import multiprocessing
import os
import socket
import sys

address, port, count, others = sys.argv[1], *map(int, sys.argv[2:5])
BLOCK = 1 << 20


def connect():
    return socket.create_connection((address, port), 60)


def exactly(s, size):
    got = b""
    while len(got) < size and (more := s.recv(size - len(got))):
        got += more
    return got


def upload():
    base, digest = os.urandom(2 * BLOCK), hashlib.sha256()
    with connect() as s:
        s.sendall(b"U")
        for start in range(0, count, BLOCK):
            offset = start // BLOCK * 4097 % BLOCK
            block = base[offset:offset + min(BLOCK, count - start)]
            digest.update(block)
            s.sendall(block)
        s.shutdown(socket.SHUT_WR)
        report("upload", exactly(s, 32) == digest.digest())


def download():
    digest, left = hashlib.sha256(), count
    with connect() as s:
        s.sendall(b"D" + count.to_bytes(8, "big"))
        while left:
            block = s.recv(min(left, BLOCK))
            if not block:
                return report("download", False)
            digest.update(block)
            left -= len(block)
        report("download", exactly(s, 32) == digest.digest())


def come_and_go():
    well = 0
    for number in range(others):
        with connect() as s:
            text = b"number %d" % number
            s.sendall(text)
            well += exactly(s, len(text)) == text
    report(f"{well} others", True)


def report(what, well):
    print(what, "whole" if well else "DAMAGED", flush=True)


processes = [multiprocessing.Process(target=work) for work in (upload, download, come_and_go)]
for process in processes:
    process.start()
for process in processes:
    process.join()
