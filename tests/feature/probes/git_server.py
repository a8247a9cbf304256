"""git over https, as the web servers of forges do it: passes each request on to
`git http-backend`. Arguments: PORT DIRECTORY CERTIFICATE KEY [TOKEN]. With a token, everybody
can fetch, and who pushes has to show it as a password."""
import base64
import http.server
import os
import ssl
import subprocess
import sys
import urllib.parse

port, directory, certificate, key, *token = sys.argv[1:]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def may(self):
        """Whether the request is allowed to whoever makes it."""
        if not token or "git-receive-pack" not in self.path:
            return True
        kind, _, login = self.headers.get("Authorization", "").partition(" ")
        _, _, password = base64.b64decode(login).decode().partition(":")
        return kind == "Basic" and [password] == token

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        if not self.may():
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="forge"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        environment = {
            **os.environ,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROJECT_ROOT": directory,
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "PATH_INFO": url.path,
            "QUERY_STRING": url.query,
            "REMOTE_USER": "dev",
            "REQUEST_METHOD": self.command,
        }
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        answer = subprocess.run(["git", "http-backend"], env=environment, input=body,
                                stdout=subprocess.PIPE, check=True).stdout
        head, _, page = answer.partition(b"\r\n\r\n")
        self.wfile.write(b"HTTP/1.1 200 OK\r\n%s\r\nContent-Length: %d\r\n\r\n" % (head, len(page)))
        self.wfile.write(page)

    do_POST = do_GET


server = http.server.ThreadingHTTPServer(("", int(port)), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
# The handshake belongs to the connection's own thread, not to the one that accepts.
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
