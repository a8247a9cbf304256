"""Forges: GitHub, an Enterprise Server of it, and GitLab, as their documents have it, with git over
https. The token of a request decides how the forge behaves. Arguments: PORT DIRECTORY CERTIFICATE
KEY LOG. Everybody can fetch; who pushes has to show a token that is valid. Each request adds a line
to LOG: host, path, and whether it has a token."""
import base64
import http.server
import json
import os
import ssl
import subprocess
import sys
import time
import urllib.parse

port, directory, certificate, key, log = sys.argv[1:]

HEADS = {
    "ghp_decoyclassic": {"X-OAuth-Scopes": "repo, workflow, admin:org, read:user"},
    "ghp_decoynarrow0": {"X-OAuth-Scopes": "", "github-authentication-token-expiration":
                         time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time.time() + 10 * 86400))},
    "github_pat_decoyfine": {"github-authentication-token-expiration":
                             time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(time.time() + 20 * 86400))},
    "ghp_decoyenterprise": {"X-OAuth-Scopes": "repo"},
    "ghp_decoycontrol": {"X-OAuth-Scopes": "evil\x1b]0;title\x07, \u202emil\x9b31m"},
    "ghp_decoyecho000": {"X-OAuth-Scopes": "repo, ghp_decoyecho000, xghp_decoyecho000x"},
    "ghp_decoyhostile": {},
}
GITLAB = {
    "glpat-decoyproject": ({"scopes": ["read_repository", "write_repository"], "expires_at":
                            time.strftime("%Y-%m-%d", time.gmtime(time.time() + 7 * 86400))}, "project_17_bot_4f5e"),
    "glpat-decoypersonal": ({"scopes": ["api"], "expires_at": None}, "ada"),
    # It may not use the rest of the API.
    "glpat-decoyrepository": ({"scopes": ["write_repository"], "expires_at": "2020-01-01"}, None),
}
OF_HOST = {"github.com": "github", "api.github.com": "github", "ghe.example.org": "enterprise",
           "gitlab.com": "gitlab"}
ENTERPRISE = "ghp_decoyenterprise"


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def token(self):
        kind, _, word = self.headers.get("Authorization", "").partition(" ")
        if kind == "Basic":
            return base64.b64decode(word).decode().partition(":")[2]
        return self.headers.get("Private-Token") or word or None

    def host(self):
        return self.headers.get("Host", "").partition(":")[0]

    def answer(self, status, body, headers=()):
        body = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(status)
        for name, value in dict(headers).items():
            self.wfile_head(name, value)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def wfile_head(self, name, value):
        # As bytes: the library would refuse what a hostile server sends.
        self._headers_buffer.append(b"%s: %s\r\n" % (name.encode(), value.encode("utf-8")))

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        token, host = self.token(), self.host()
        with open(log, "a") as file:
            print(host, url.path, "token" if token else "nothing", file=file)
        if host == "gitlab.com" and url.path.startswith("/api/v4/"):
            self.gitlab(url.path.removeprefix("/api/v4"), token)
        elif host == "api.github.com":
            self.github(url.path, token)
        elif host == "ghe.example.org" and url.path.startswith("/api/v3/"):
            self.github(url.path.removeprefix("/api/v3"), token)
        else:
            self.git(url, token)

    def github(self, path, token):
        if token == "ghp_decoyredirect":
            return self.answer(302, {}, {"Location": "https://evil.example.org/user"})
        if token == "ghp_decoyhuge000":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n{\"login\": \"")
            self.close_connection = True
            while True:
                self.wfile.write(b"x" * 65536)
        if token == "ghp_decoyslow000":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
            while True:
                self.wfile.write(b"x")
                time.sleep(0.2)
        if token == "ghp_decoymalform":
            return self.answer(200, b"{\"login\": \"ada\", \xff\xfe")
        if token == "ghp_decoyempty00":
            return self.answer(200, b"[" * 100000)
        if token == "ghp_decoyerror00":
            return self.answer(503, {"message": "\x1b[2Jno\u202e server\nis here"})
        if token == "ghp_decoynothttp":
            self.wfile.write(b"SSH-2.0-forge\r\n\r\n")
            self.close_connection = True
            return None
        if token not in HEADS:
            return self.answer(401, {"message": "Bad credentials",
                                     "documentation_url": "https://docs.github.com/rest"})
        if path == "/user":
            login = {"ghp_decoycontrol": "a\x1b[2Jda", "ghp_decoyecho000": token}.get(token, "ada")
            return self.answer(200, {"login": login, "id": 1, "type": "User"}, HEADS[token])
        if path == "/user/repos":
            names = [("ada/project", True), ("ada/\x1b[31mred\u202e", False)]
            return self.answer(200, [{"full_name": name, "private": private} for name, private in names])
        return self.answer(404, {"message": "Not Found"})

    def gitlab(self, path, token):
        if token not in GITLAB:
            return self.answer(401, {"message": "401 Unauthorized"})
        about, user = GITLAB[token]
        if path == "/personal_access_tokens/self":
            return self.answer(200, {"id": 4, "name": "t", "revoked": False, "active": True,
                                     "created_at": "2026-01-01T00:00:00.000Z", "user_id": 3, **about})
        if user is None:
            return self.answer(403, {"error": "insufficient_scope", "error_description": "…"})
        if path == "/user":
            return self.answer(200, {"id": 3, "username": user, "name": user})
        if path == "/personal_access_tokens/self/associations":
            return self.answer(200, {"groups": [], "projects": [
                {"id": 17, "path_with_namespace": "team/project", "access_levels": {}}]})
        return self.answer(404, {"message": "404 Not Found"})

    def may(self, token):
        if "git-receive-pack" not in self.path:
            return True
        kind = OF_HOST.get(self.host())
        if kind == "gitlab":
            return token in GITLAB
        return token == ENTERPRISE if kind == "enterprise" else token in HEADS and token != ENTERPRISE

    def git(self, url, token):
        if not self.may(token):
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
        status = b"404 Not Found" if head.startswith(b"Status: 404") else b"200 OK"
        self.wfile.write(b"HTTP/1.1 %s\r\n%s\r\nContent-Length: %d\r\n\r\n" % (status, head, len(page)))
        self.wfile.write(page)

    do_POST = do_GET


server = http.server.ThreadingHTTPServer(("", int(port)), Handler)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
# The handshake belongs to the connection's own thread, not to the one that accepts.
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
server.serve_forever()
