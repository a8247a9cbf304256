# Looks names up and connects to what it was told, without a pause between: the address has to
# be open before the answer is there. Arguments: how many names, and what they end in.

import socket
import sys

SERVER = ("192.0.2.53", 53)


def query(name):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    return b"\x12\x34\x01\x00\0\x01\0\0\0\0\0\0" + labels + b"\0\0\x01\0\x01"


count, suffix = int(sys.argv[1]), sys.argv[2]
resolver = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
resolver.settimeout(20)
resolver.connect(SERVER)
addresses = set()
for number in range(count):
    resolver.send(query(f"n{number}.{suffix}"))
    address = socket.inet_ntoa(resolver.recv(512)[-4:])
    with socket.socket() as stream:
        stream.connect((address, 7))
    addresses.add(address)
print(len(addresses))
