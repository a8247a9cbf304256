"""A model that has its answers in a file: for each turn one call of the tool Bash, then a word.

It speaks as much of the Messages API as Claude Code asks for. It prints a line when it listens, and
writes what each call gave to the file that is named second. A third argument is the address to listen
at, a fourth a file that it makes when it is asked at all."""
import http.server, json, sys

CALLS = json.load(open(sys.argv[1]))


def results(messages):
    found = []
    for message in messages:
        blocks = message["content"]
        for block in blocks if isinstance(blocks, list) else []:
            if block["type"] == "tool_result":
                text = block.get("content", "")
                if isinstance(text, list):
                    text = "".join(part.get("text", "") for part in text)
                found.append(text)
    return found


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

    def do_HEAD(self):
        self.answer("text/plain", b"")

    do_GET = do_HEAD

    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if len(sys.argv) > 4:
            open(sys.argv[4], "w").close()
        if "count_tokens" in self.path:
            return self.answer("application/json", b'{"input_tokens": 1}')
        has_bash = any(tool.get("name") == "Bash" for tool in asked.get("tools", []))
        given = results(asked["messages"]) if has_bash else []
        if has_bash:
            json.dump(given, open(sys.argv[2], "w"))
        if has_bash and len(given) < len(CALLS):
            call = {"command": CALLS[len(given)], "description": "Work"}
            block = {"type": "tool_use", "id": f"toolu_{len(given)}", "name": "Bash"}
            start, reason = {**block, "input": {}}, "tool_use"
            delta = {"type": "input_json_delta", "partial_json": json.dumps(call)}
            block = {**block, "input": call}
        else:
            text = "Done." if has_bash else "Projects"
            start, reason = {"type": "text", "text": ""}, "end_turn"
            delta = {"type": "text_delta", "text": text}
            block = {"type": "text", "text": text}
        usage = {"input_tokens": 1, "output_tokens": 1}
        message = {
            "id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"],
            "content": [], "stop_reason": None, "stop_sequence": None, "usage": usage,
        }
        if not asked.get("stream"):
            whole = {**message, "content": [block], "stop_reason": reason}
            return self.answer("application/json", json.dumps(whole).encode())
        stop = {"stop_reason": reason, "stop_sequence": None}
        events = [
            {"type": "message_start", "message": message},
            {"type": "content_block_start", "index": 0, "content_block": start},
            {"type": "content_block_delta", "index": 0, "delta": delta},
            {"type": "content_block_stop", "index": 0},
            {"type": "message_delta", "delta": stop, "usage": usage},
            {"type": "message_stop"},
        ]
        lines = [f"event: {it['type']}\ndata: {json.dumps(it)}\n\n" for it in events]
        self.answer("text/event-stream", "".join(lines).encode())


ADDRESS = sys.argv[3] if len(sys.argv) > 3 else "127.0.0.1"
server = http.server.ThreadingHTTPServer((ADDRESS, 8765), Model)
print("listening", flush=True)
server.serve_forever()
