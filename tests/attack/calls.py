# Reaches for an echo server by every system call and socket option that is not the plain one,
# and tells of each: NAME<TAB>answer, silence, the errno's name, or "unsupported" where the
# kernel does not know it.
#
#   calls.py TARGET HARMLESS      addresses of two echo servers, at port 7

import ctypes
import errno
import mmap
import os
import select
import socket
import struct
import sys

TARGET, HARMLESS = ((address, 7) for address in sys.argv[1:])
QUESTION = b"are you there?"
PATIENCE = 6.0
STREAM, DATAGRAM = socket.SOCK_STREAM, socket.SOCK_DGRAM

MSG_FASTOPEN = 0x20000000
TCP_FASTOPEN_CONNECT, TCP_FASTOPEN_NO_COOKIE = 30, 34
IPPROTO_MPTCP = 262
UDP_SEGMENT, IP_RECVERR = 103, 11

libc = ctypes.CDLL(None, use_errno=True)


def inet(kind, protocol=0):
    made = socket.socket(socket.AF_INET, kind, protocol)
    made.settimeout(PATIENCE)
    if kind == DATAGRAM:
        # Errors show on sockets without a peer, too.
        made.setsockopt(socket.SOL_IP, IP_RECVERR, 1)
    return made


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "")
    return result


def converse(stream):
    stream.sendall(QUESTION)
    return stream.recv(512)


def heard_from_target(sender):
    # Whatever the harmless one says in between.
    while select.select([sender], [], [], PATIENCE)[0]:
        datagram, source = sender.recvfrom(2048)
        if source[0].removeprefix("::ffff:") == TARGET[0]:
            return datagram
    raise TimeoutError


def sockaddr(address):
    host, port = address
    return struct.pack("=HH4s8x", socket.AF_INET, socket.htons(port), socket.inet_aton(host))


def dissolve(connected):
    # connect() to no address at all: the socket forgets its peer.
    checked(libc.connect(connected.fileno(), struct.pack("=H14x", socket.AF_UNSPEC), 16))


def plain():
    with inet(STREAM) as stream:
        stream.connect(TARGET)
        return converse(stream)


def fast_open():
    with inet(STREAM) as stream:
        stream.settimeout(None)
        stream.sendto(QUESTION, MSG_FASTOPEN, TARGET)
        return stream.recv(512)


def fast_open_with_data_in_the_first_packet():
    with inet(STREAM) as stream:
        stream.settimeout(None)
        stream.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
        stream.sendto(QUESTION, MSG_FASTOPEN, TARGET)
        return stream.recv(512)


def fast_open_by_connect():
    with inet(STREAM) as stream:
        stream.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_CONNECT, 1)
        stream.setsockopt(socket.IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, 1)
        stream.connect(TARGET)
        return converse(stream)


def connect_again():
    with inet(STREAM) as stream:
        stream.connect(HARMLESS)
        assert converse(stream) == QUESTION
        dissolve(stream)
        stream.connect(TARGET)
        return converse(stream)


def connect_again_from_the_same_port():
    with inet(STREAM) as stream:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        stream.bind(("", 46000))
        # Reset on close, or the port would be taken for a minute.
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        stream.connect(HARMLESS)
        dissolve(stream)
        stream.connect(TARGET)
        return converse(stream)


def datagrams_connected_again():
    with inet(DATAGRAM) as sender:
        sender.connect(HARMLESS)
        sender.send(QUESTION)
        assert sender.recv(512) == QUESTION
        dissolve(sender)
        sender.connect(TARGET)
        sender.send(QUESTION)
        return sender.recv(512)


def datagrams_to_alternating_destinations():
    with inet(DATAGRAM) as sender:
        for _ in range(5):
            sender.sendto(QUESTION, HARMLESS)
            sender.sendto(QUESTION, TARGET)
        return heard_from_target(sender)


def datagrams_by_sendmmsg():
    with inet(DATAGRAM) as sender:
        keep, messages = [], b""
        for address in [HARMLESS, TARGET, HARMLESS, TARGET]:
            name = ctypes.create_string_buffer(sockaddr(address), 16)
            data = ctypes.create_string_buffer(QUESTION)
            pointers = [ctypes.addressof(name), ctypes.addressof(data)]
            vector = ctypes.create_string_buffer(struct.pack("PN", pointers[1], len(QUESTION)))
            keep += [name, data, vector]
            # A msghdr, and room for the length that was sent.
            vectors = (ctypes.addressof(vector), 1)
            messages += struct.pack("PIPNPNiI8x", pointers[0], 16, *vectors, 0, 0, 0, 0)
        sent = checked(libc.sendmmsg(sender.fileno(), messages, 4, 0))
        assert sent >= 2
        # A denial that is quick stops it, and is lost with that: nobody tells which error it was.
        if sent < 4:
            sender.sendto(QUESTION, TARGET)
        return heard_from_target(sender)


def datagrams_in_segments():
    with inet(DATAGRAM) as sender:
        sender.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, 100)
        sender.sendto(b"x" * 300, TARGET)
        return heard_from_target(sender)


def mapped_datagrams():
    with socket.socket(socket.AF_INET6, DATAGRAM) as sender:
        sender.settimeout(PATIENCE)
        sender.sendto(QUESTION, ("::ffff:" + HARMLESS[0], 7))
        sender.connect(("::ffff:" + TARGET[0], 7))
        sender.send(QUESTION)
        return heard_from_target(sender)


def multipath():
    with inet(STREAM, IPPROTO_MPTCP) as stream:
        stream.connect(TARGET)
        return converse(stream)


def bound_to_each_device():
    answers = []
    for _, device in socket.if_nameindex():
        try:
            with inet(STREAM) as stream:
                stream.settimeout(2)
                stream.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, device.encode())
                stream.connect(TARGET)
                return converse(stream)
        except OSError as error:
            answers.append(error)
    raise answers[-1]


def handed_over():
    # A child makes and connects the socket; we get it through a Unix socket, use it, and turn
    # it to the target.
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        try:
            with inet(STREAM) as stream:
                stream.connect(HARMLESS)
                socket.send_fds(theirs, [b"x"], [stream.fileno()])
        finally:
            os._exit(0)
    theirs.close()
    _, [descriptor], _, _ = socket.recv_fds(ours, 1, 1)
    os.wait()
    with socket.socket(fileno=descriptor) as stream:
        stream.settimeout(PATIENCE)
        assert converse(stream) == QUESTION
        dissolve(stream)
        stream.connect(TARGET)
        return converse(stream)


class Ring:
    """As much of io_uring as it takes to do one thing after the other."""

    CONNECT, SEND, RECEIVE = 16, 26, 27

    def __init__(self):
        parameters = ctypes.create_string_buffer(120)
        self.descriptor = checked(libc.syscall(425, 4, parameters))
        numbers = struct.unpack("30I", parameters)
        self.submission, self.completion = numbers[10:17], numbers[20:26]
        self.rings = mmap.mmap(self.descriptor, 4096, offset=0)
        self.entries = mmap.mmap(self.descriptor, 4096, offset=0x10000000)

    def number(self, offset):
        return struct.unpack_from("I", self.rings, offset)[0]

    def do(self, operation, descriptor, pointer, length, offset=0):
        entry = struct.pack("BBHiQQII32x", operation, 0, 0, descriptor, offset, pointer, length, 0)
        self.entries[0:64] = entry
        _, tail, mask, *_, slots = self.submission
        struct.pack_into("I", self.rings, slots + 4 * (self.number(tail) & self.number(mask)), 0)
        struct.pack_into("I", self.rings, tail, self.number(tail) + 1)
        checked(libc.syscall(426, self.descriptor, 1, 1, 1, None, 0))
        head, _, mask, _, _, events = self.completion
        event = events + 16 * (self.number(head) & self.number(mask))
        result = struct.unpack_from("i", self.rings, event + 8)[0]
        struct.pack_into("I", self.rings, head, self.number(head) + 1)
        if result < 0:
            raise OSError(-result, "")
        return result


def by_ring():
    try:
        ring = Ring()
    except OSError as error:
        raise OSError(errno.EPROTONOSUPPORT, "") from error
    address = ctypes.create_string_buffer(sockaddr(TARGET), 16)
    data = ctypes.create_string_buffer(QUESTION, 64)
    with socket.socket(socket.AF_INET, STREAM) as stream:
        ring.do(Ring.CONNECT, stream.fileno(), ctypes.addressof(address), 0, offset=16)
        ring.do(Ring.SEND, stream.fileno(), ctypes.addressof(data), len(QUESTION))
        length = ring.do(Ring.RECEIVE, stream.fileno(), ctypes.addressof(data), 64)
        return data.raw[:length]


ATTEMPTS = [
    plain,
    fast_open,
    fast_open_with_data_in_the_first_packet,
    fast_open_by_connect,
    connect_again,
    connect_again_from_the_same_port,
    datagrams_connected_again,
    datagrams_to_alternating_destinations,
    datagrams_by_sendmmsg,
    datagrams_in_segments,
    mapped_datagrams,
    multipath,
    bound_to_each_device,
    handed_over,
    by_ring,
]
for attempt in ATTEMPTS:
    try:
        result = "answer" if attempt() else "closed"
    except TimeoutError as error:
        result = errno.errorcode.get(error.errno, "silence")
    except OSError as error:
        result = errno.errorcode[error.errno]
    result = "unsupported" if result in ("EPROTONOSUPPORT", "ENOPROTOOPT") else result
    print(attempt.__name__, result, sep="\t", flush=True)
print("done", flush=True)
