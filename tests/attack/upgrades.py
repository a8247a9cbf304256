# Servers that go over to TLS in the middle of a connection, as those of many protocols do, and one
# of HTTP that minds nothing. Arguments: certificate, key. What arrives is printed:
#
#   tls PORT NAME        a hello for this name
#   http PORT HOST       a request for this host
#   h2 PORT AUTHORITY    the same of HTTP/2

import socket
import ssl
import sys
import threading

certificate, key = sys.argv[1:]


def told(*words):
    print(*words, flush=True)


# Exactly a line, so that nothing of a hello is taken away.
def line(peer):
    got = b""
    while not got.endswith(b"\n"):
        there = peer.recv(65536, socket.MSG_PEEK)
        if not there:
            raise EOFError
        got += peer.recv(there.find(b"\n") + 1 or len(there))
    return got


def until(peer, *words):
    got = line(peer)
    while not any(word in got.upper() for word in words):
        peer.sendall(b"500 what\r\n")
        got = line(peer)


def smtp(peer):
    peer.sendall(b"220 mail ESMTP\r\n")
    until(peer, b"EHLO")
    peer.sendall(b"250-mail\r\n250 STARTTLS\r\n")
    until(peer, b"STARTTLS")
    peer.sendall(b"220 go ahead\r\n")


def imap(peer):
    peer.sendall(b"* OK IMAP4rev1\r\n")
    while True:
        tag, command = line(peer).split()[:2]
        if command.upper() == b"STARTTLS":
            break
        peer.sendall(b"* CAPABILITY IMAP4rev1 STARTTLS\r\n" + tag + b" OK done\r\n")
    peer.sendall(tag + b" OK begin\r\n")


def pop3(peer):
    peer.sendall(b"+OK ready\r\n")
    until(peer, b"STLS")
    peer.sendall(b"+OK begin\r\n")


def ftp(peer):
    peer.sendall(b"220 ready\r\n")
    until(peer, b"AUTH TLS")
    peer.sendall(b"234 go\r\n")


def nntp(peer):
    peer.sendall(b"200 ready\r\n")
    until(peer, b"CAPABILITIES")
    peer.sendall(b"101 list\r\nVERSION 2\r\nSTARTTLS\r\n.\r\n")
    until(peer, b"STARTTLS")
    peer.sendall(b"382 go\r\n")


def xmpp(peer):
    stream = b"<stream:stream xmlns='jabber:client' xmlns:stream='http://etherx.jabber.org/streams'>"
    tls = b"urn:ietf:params:xml:ns:xmpp-tls"
    peer.recv(4096)
    peer.sendall(stream + b"<stream:features><starttls xmlns='" + tls + b"'/></stream:features>")
    peer.recv(4096)
    peer.sendall(b"<proceed xmlns='" + tls + b"'/>")


def postgres(peer):
    assert peer.recv(8, socket.MSG_WAITALL) == bytes.fromhex("0000000804d2162f")
    peer.sendall(b"S")


def mysql(peer):
    # Protocol 10, with the flag that says that it can do TLS.
    body = b"\x0a8.0.0\0" + b"\1\0\0\0" + b"saltsalt\0" + b"\xff\xff" + b"\x21\2\0\xff\xff"
    body += b"\x15" + b"\0" * 10 + b"saltsaltsalt\0" + b"mysql_native_password\0"
    peer.sendall(len(body).to_bytes(3, "little") + b"\0" + body)
    length = int.from_bytes(peer.recv(4, socket.MSG_WAITALL)[:3], "little")
    peer.recv(length, socket.MSG_WAITALL)


def ldap(peer):
    _, length = peer.recv(2, socket.MSG_WAITALL)
    peer.recv(length, socket.MSG_WAITALL)
    peer.sendall(bytes.fromhex("300c02010178070a010004000400"))


# Takes anything, and says nothing before it is asked to go over to TLS.
def silent(peer):
    while b"STARTTLS" not in line(peer):
        pass
    peer.sendall(b"go\n")


def odd_http(peer):
    words = line(peer).split()
    if not words or not words[-1].upper().startswith(b"HTTP/"):
        return
    host = b""
    while (field := line(peer).strip()):
        if field.lower().startswith(b"host:"):
            host = field[5:].strip()
    told("http", peer.getsockname()[1], host.decode())
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nhi\n")


# Ends a line at a carriage return, too.
def return_http(peer):
    got = b""
    while not got.replace(b"\n", b"").endswith(b"\r\r"):
        piece = peer.recv(4096)
        if not piece:
            return
        got += piece
    fields = [field for field in got.replace(b"\n", b"\r").split(b"\r") if b":" in field]
    told("http", peer.getsockname()[1], fields[0].split(b":")[1].strip().decode())
    peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nhi\n")


# Takes any first line of two words or more, and serves one request after the other.
def lax_http(peer):
    is_last = False
    while not is_last:
        if len(line(peer).split()) < 2:
            return
        host = b""
        while (field := line(peer).strip()):
            if field.lower().startswith(b"host:"):
                host = field[5:].strip()
            is_last |= field.lower() == b"connection: close"
        told("http", peer.getsockname()[1], host.decode())
        peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nhi\n")


# Speaks before it is asked.
def greeting_http(peer):
    peer.sendall(b"220 ready\r\n")
    odd_http(peer)


# Begins with another protocol.
def later_http(peer):
    line(peer)
    peer.sendall(b"+OK\r\n")
    odd_http(peer)


# In however many pieces it comes.
def exactly(peer, length):
    got = b""
    while len(got) < length:
        piece = peer.recv(length - len(got))
        if not piece:
            raise EOFError
        got += piece
    return got


# As Node does it: its settings come at once.
def http2(peer):
    peer.sendall(bytes.fromhex("000000040000000000"))
    if exactly(peer, 24) != b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n":
        return
    while True:
        header = exactly(peer, 9)
        payload = exactly(peer, int.from_bytes(header[:3], "big"))
        if header[3] == 1:
            # Three indexed fields come first, then the authority as it is.
            told("h2", peer.getsockname()[1], payload[5:].decode())
            peer.sendall(bytes.fromhex("000001010400000001") + b"\x88")
            peer.sendall(bytes.fromhex("000005000100000001") + b"site\n")
            return


# The same, but it takes its time.
def slow_http2(peer):
    peer.recv(1, socket.MSG_PEEK)
    http2(peer)


# Reads a hello whatever versions stand in it.
def any_version(peer):
    silent(peer)
    header = peer.recv(5, socket.MSG_WAITALL)
    hello = peer.recv(int.from_bytes(header[3:], "big"), socket.MSG_WAITALL)
    at = 4 + 2 + 32
    at += 1 + hello[at]
    at += 2 + int.from_bytes(hello[at:at + 2], "big")
    at += 1 + hello[at] + 2
    while at < len(hello):
        kind, length = (int.from_bytes(hello[at + i:at + i + 2], "big") for i in (0, 2))
        if kind == 0:
            told("tls", peer.getsockname()[1], hello[at + 9:at + 4 + length].decode())
        at += 4 + length


def over_tls(dialogue):
    def serve(peer):
        port = peer.getsockname()[1]
        dialogue(peer)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        context.sni_callback = lambda _, name, __: told("tls", port, name)
        with context.wrap_socket(peer, server_side=True) as secure:
            secure.sendall(b"secret\n")
    return serve


SERVERS = {
    25: over_tls(smtp), 143: over_tls(imap), 110: over_tls(pop3), 21: over_tls(ftp),
    119: over_tls(nntp), 5222: over_tls(xmpp), 5432: over_tls(postgres), 3306: over_tls(mysql),
    389: over_tls(ldap), 9000: over_tls(silent), 9001: odd_http, 9002: any_version,
    9003: http2, 9004: slow_http2, 9005: greeting_http, 9006: later_http, 9007: return_http,
    9008: lax_http,
}


def quietly(serve, peer):
    try:
        with peer:
            peer.settimeout(5)
            serve(peer)
    except (OSError, EOFError, ValueError, AssertionError):
        pass


def listen(port, serve):
    listener = socket.create_server(("::", port), family=socket.AF_INET6, dualstack_ipv6=True)
    def accept():
        while True:
            peer, _ = listener.accept()
            threading.Thread(target=quietly, args=(serve, peer), daemon=True).start()
    threading.Thread(target=accept).start()


for port, serve in SERVERS.items():
    listen(port, serve)
listen(9999, lambda peer: None)
