"""A model that asks for the first of the calls in a file by the tool exec_command, then says a word. It
speaks as much of the Responses API as Codex asks for. It prints a line when it listens, and makes the
file that is named fourth when it is asked."""
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
        self.answer("application/json", b'{"data": [], "models": []}')

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        open(sys.argv[4], "w").close()
        if any(item.get("type") == "function_call_output" for item in asked.get("input", [])):
            text = {"type": "output_text", "text": "Done."}
            item = {"type": "message", "id": "m", "role": "assistant", "content": [text]}
        else:
            call = {"name": "exec_command", "arguments": json.dumps({"cmd": CALL})}
            item = {"type": "function_call", "id": "f", "call_id": "c", **call}
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        events = [
            {"type": "response.created", "response": {"id": "r"}},
            {"type": "response.output_item.done", "output_index": 0, "item": item},
            {"type": "response.completed", "response": {"id": "r", "usage": usage}},
        ]
        lines = [f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in events]
        self.answer("text/event-stream", "".join(lines).encode())


server = http.server.ThreadingHTTPServer(("127.0.0.1", 8765), Model)
print("listening", flush=True)
server.serve_forever()
