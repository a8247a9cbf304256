# Sends the first of two requests, reads so many bytes of its answer's body, sends the second
# one, and prints how much came and the code of the second answer. Arguments: host, port, length.

import re
import socket
import sys

host, port, length = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
first, second = sys.stdin.buffer.read().split(b"NEXT")
with socket.create_connection((host, port), 10) as stream:
    stream.settimeout(10)
    stream.sendall(first)
    answer = stream.makefile("rb")
    while answer.readline() != b"\r\n":
        pass
    body = answer.read(length)
    stream.sendall(second)
    print(len(body), re.match(rb"HTTP/1.1 (\d+)", answer.readline())[1].decode())
