"""A model that asks for the first of the calls in a file by the tool run_shell_command, then says a
word. It speaks as much of the Gemini API as Gemini CLI asks for. It prints a line when it listens, and
makes the file that is named fourth when it is asked."""
import http.server, json, sys

CALL = json.load(open(sys.argv[1]))[0]


class Model(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def answer(self, kind, body):
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        self.answer("application/json", b"{}")

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        open(sys.argv[4], "w").close()
        if "countTokens" in self.path:
            return self.answer("application/json", b'{"totalTokens": 1}')
        parts = [part for turn in asked.get("contents", []) for part in turn.get("parts", [])]
        if asked.get("tools") and not any("functionResponse" in part for part in parts):
            call = {"name": "run_shell_command", "args": {"command": CALL}}
            said = {"functionCall": call}
        else:
            said = {"text": "Done."}
        content = {"role": "model", "parts": [said]}
        usage = {"promptTokenCount": 1, "candidatesTokenCount": 1, "totalTokenCount": 2}
        candidate = {"content": content, "finishReason": "STOP", "index": 0}
        text = json.dumps({"candidates": [candidate], "usageMetadata": usage})
        if "stream" in self.path:
            self.answer("text/event-stream", f"data: {text}\r\n\r\n".encode())
        else:
            self.answer("application/json", text.encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 8765), Model)
print("listening", flush=True)
server.serve_forever()
