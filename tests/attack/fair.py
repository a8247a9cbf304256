# Takes all that there is of something, then does what another program would do.
#
#   fair.py streams|pings|heads|lines|words|hellos COUNT
#
# Tells the outcome of each try as "TRY<tab>answer", or the error, and then "done".

import select
import socket
import struct
import sys

way, count = sys.argv[1], int(sys.argv[2])
# The caller looks at the time that the gate works. Where others keep the processors busy, that takes longer.
HARD_TO_READ = ("lines", "words", "hellos")
PATIENCE = 100 if way in HARD_TO_READ else 20
NAME = "www.example.com"
# Looked up before anything is taken, so that only the gate is waited for.
ADDRESS = socket.gethostbyname(NAME) if way == "heads" or way in HARD_TO_READ else None


def connect(host, port):
    opened = socket.create_connection((host, port), PATIENCE)
    opened.settimeout(PATIENCE)
    return opened


def stream():
    return connect("8.8.8.8", 53)


def ask(opened):
    labels = b"".join(bytes([len(label)]) + label.encode() for label in NAME.split("."))
    query = b"\0\1\1\0\0\1\0\0\0\0\0\0" + labels + b"\0\0\1\0\1"
    opened.sendall(struct.pack("!H", len(query)) + query)
    return len(opened.recv(1000)) > len(query)


def ping_socket():
    opened = socket.socket(socket.AF_INET, socket.SOCK_DGRAM, socket.IPPROTO_ICMP)
    opened.settimeout(PATIENCE)
    return opened


def ping(opened, host):
    opened.sendto(struct.pack("!BBHHH", 8, 0, 0, 0, 1) + b"x", (host, 0))
    return opened.recv(100)[:1] == b"\0"


def head(padding, end):
    opened = connect(ADDRESS, 80)
    text = f"GET / HTTP/1.1\r\nHost: {NAME}\r\nConnection: close\r\nX: " + "a" * padding
    try:
        opened.sendall(text.encode() + end)
    except OSError:
        # It was one of those that hold most.
        pass
    return opened


# Where the server has spoken, empty lines may come before a request, and a hello anywhere.
def greeted():
    opened = connect(ADDRESS, 7)
    opened.sendall(b"x\n")
    opened.recv(10)
    opened.setblocking(False)
    return opened


# What could be hellos, in each other, as far as their last bytes do not tell.
HELLOS = b"".join(bytes([0x16, 3, 3, 0, 1, byte]) for byte in [1, 0, 0x40, 0, 3, 3]) * 450 + b"\xff" * 8


# Behind a line that is no request, what could be a version ends at each carriage return.
RETURNS = b"\r" * 34
WORDS = b"x y\r\n" + RETURNS + b"a" * 15_000 + b"a/1.0" + RETURNS[:26] + b"HTTP/1.0" + RETURNS[:26]


def tried(number, attempt):
    try:
        print(f"{number}\t{'answer' if attempt() else 'nothing'}")
    except OSError as error:
        print(f"{number}\t{error}")


taken = []
for _ in range(count):
    if way == "streams":
        taken.append(stream())
    elif way == "pings":
        taken.append(ping_socket())
        # The next one comes when this one has its place.
        ping(taken[-1], "93.184.216.34")
    elif way == "words":
        taken.append(connect(ADDRESS, 80))
    elif way in HARD_TO_READ:
        taken.append(greeted())
    else:
        taken.append(head(60_000, b""))

if way == "heads":
    # All that could be held is, once one of them has failed.
    if not select.select(taken, [], [], PATIENCE)[0]:
        print("all of them\twere held")

if way in HARD_TO_READ:
    sent = {"lines": b"\n" * 256_000, "words": WORDS, "hellos": HELLOS}[way]
    for opened in taken:
        # As much as there is room for.
        opened.send(sent)

for number in range(3):
    if way == "streams":
        tried(number, lambda: ask(stream()))
    elif way == "pings":
        tried(number, lambda: ping(ping_socket(), "151.101.1.69"))
    else:
        tried(number, lambda: b" 200 " in head(6000, b"\r\n\r\n").recv(1000))

if way == "streams":
    # The first one made way, and the last one did not.
    tried("first", lambda: taken[0].recv(1) == b"")
    tried("last", lambda: ask(taken[-1]))
print("done", flush=True)
