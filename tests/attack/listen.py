# Listens at a port with TCP and UDP on every address, and echoes. Says "ready" when its own
# clients have been answered, at loopback and at the machine's own address, and serves until
# its standard input ends.

import socket
import sys
import threading

PORT = int(sys.argv[1])


def serve_stream(listener):
    while True:
        connection, _ = listener.accept()
        with connection:
            connection.settimeout(20)
            connection.sendall(connection.recv(512))


def serve_datagrams(receiver):
    while True:
        datagram, client = receiver.recvfrom(512)
        receiver.sendto(datagram, client)


def start(serve, *arguments):
    threading.Thread(target=serve, args=arguments, daemon=True).start()


def own_address():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        any_socket.connect(("93.184.216.34", 9))
        return any_socket.getsockname()[0]


for family, wildcard in [(socket.AF_INET, "0.0.0.0"), (socket.AF_INET6, "::")]:
    for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM]:
        server = socket.socket(family, kind)
        if family == socket.AF_INET6:
            server.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        server.bind((wildcard, PORT))
        if kind == socket.SOCK_STREAM:
            server.listen()
            start(serve_stream, server)
        else:
            start(serve_datagrams, server)

for address in ["127.0.0.1", "::1", own_address()]:
    with socket.create_connection((address, PORT), 5) as client:
        client.sendall(b"me")
        assert client.recv(2) == b"me"
print("ready", flush=True)
sys.stdin.read()
