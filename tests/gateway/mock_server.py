"""mock_server.py [PORT] - a server of models for tests: sets first-token time, tokens a second, usage
and faults by what the request says

A request's member `mock` may have: delay (s before the answer), tokens, gap (s between tokens),
status, reset (closes before a byte), cut (closes after that many tokens), usage (false: says
nothing), pad (bytes of each token), prompt_tokens, until (a file: the stream
continues until the file exists), stalls (after its tokens nothing more comes). GET /mock says what has been served.
"""
import hashlib
import itertools
import json
import os
import socketserver
import sys
import threading
import time

LOCK = threading.Lock()
STATE = {"requests": 0, "active": 0, "closed_early": 0, "prompt_tokens": 0, "completion_tokens": 0,
         "last": None, "max_active": 0}


class Gone(Exception):
    pass


class Handler(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True
    rbufsize = 1 << 16

    def head(self):
        line = self.rfile.readline()
        if not line:
            return None
        headers = {}
        while (text := self.rfile.readline().decode("latin-1").strip()):
            name, _, value = text.partition(":")
            headers[name.strip().lower()] = value.strip()
        method, path, _ = line.decode().split()
        return method, path, headers

    def handle(self):
        try:
            while (asked := self.head()):
                body = self.rfile.read(int(asked[2].get("content-length", 0)))
                if not self.serve(*asked, body):
                    return
        except (OSError, Gone, ValueError):
            return

    def send(self, data):
        self.wfile.write(data)

    def answer(self, status, body, kind="application/json"):
        self.send(f"HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {len(body)}\r\n\r\n".encode()
                  + body)
        return True

    def chunk(self, data):
        self.send(b"%x\r\n%s\r\n" % (len(data), data))

    def is_gone(self):
        self.connection.setblocking(False)
        try:
            return self.connection.recv(1, 2) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True
        finally:
            self.connection.setblocking(True)

    def wait(self, seconds):
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            if self.is_gone():
                with LOCK:
                    STATE["closed_early"] += 1
                raise Gone
            time.sleep(min(left, 0.005 if STATE["active"] < 64 else 0.1))

    def serve(self, method, path, headers, body):
        if path in ("/health", "/metrics", "/api/version"):
            return self.answer(200, b"{}")
        if path == "/mock":
            return self.answer(200, json.dumps(STATE).encode())
        with LOCK:
            STATE["requests"] += 1
            STATE["active"] += 1
            STATE["max_active"] = max(STATE["max_active"], STATE["active"])
            STATE["last"] = {"path": path, "headers": headers, "size": len(body),
                             "sha256": hashlib.sha256(body).hexdigest(),
                             "text": body[:4096].decode("latin-1")}
        try:
            return self.model(path, headers, body)
        finally:
            with LOCK:
                STATE["active"] -= 1

    def model(self, path, headers, body):
        kind = headers.get("content-type", "")
        asked = {} if kind.startswith("multipart/") else json.loads(body)
        mock = asked.get("mock") or {}
        self.wait(mock.get("delay", 0))
        if mock.get("reset"):
            return False
        if mock.get("status"):
            return self.answer(mock["status"], b'{"error":{"message":"as asked","type":"mock"}}')
        tokens = mock.get("tokens", 3)
        prompt = mock.get("prompt_tokens", 7)
        if path.startswith("/v1/audio/"):
            return self.answer(200, b'{"text":"heard"}')
        if path == "/v1/embeddings":
            with LOCK:
                STATE["prompt_tokens"] += prompt
            return self.answer(200, json.dumps({
                "object": "list", "model": asked["model"], "usage": {"prompt_tokens": prompt, "total_tokens": prompt},
                "data": [{"object": "embedding", "index": 0, "embedding": [0.5, 0.25]}]}).encode())
        if path == "/v1/messages":
            return self.messages(asked, tokens, prompt, mock)
        if path.startswith("/api/"):
            return self.ollama(path, asked, tokens, prompt)
        if asked.get("stream"):
            return self.stream(asked, tokens, prompt, mock)
        self.wait(tokens * mock.get("gap", 0))
        with LOCK:
            STATE["prompt_tokens"] += prompt
            STATE["completion_tokens"] += tokens
        message = {"role": "assistant", "content": "word " * tokens}
        if asked.get("tools"):
            message = {"role": "assistant", "content": None, "tool_calls": [
                {"id": "call_1", "type": "function",
                 "function": {"name": asked["tools"][0]["function"]["name"], "arguments": "{\"x\": 1}"}}]}
        return self.answer(200, json.dumps({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": asked["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": prompt, "completion_tokens": tokens, "total_tokens": prompt + tokens},
            "sha256": hashlib.sha256(body).hexdigest()}).encode())

    def begin(self, kind="text/event-stream"):
        self.send(f"HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ntransfer-encoding: chunked\r\n\r\n".encode())

    def stream(self, asked, tokens, prompt, mock):
        self.begin()
        pad = "x" * mock.get("pad", 0)
        until = mock.get("until")
        for i in (itertools.takewhile(lambda _: not os.path.exists(until), itertools.count()) if until
                  else range(tokens)):
            if mock.get("cut") == i:
                return False
            self.wait(mock.get("gap", 0))
            self.chunk(b"data: " + json.dumps({
                "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": asked["model"],
                "choices": [{"index": 0, "delta": {"content": f"{i} {pad}"}, "finish_reason": None}]}).encode() + b"\n\n")
        if mock.get("stalls"):
            self.wait(3600)
        with LOCK:
            STATE["prompt_tokens"] += prompt
            STATE["completion_tokens"] += tokens
        self.chunk(b'data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"m","choices":'
                   b'[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n')
        if (asked.get("stream_options") or {}).get("include_usage") and mock.get("usage", True):
            self.chunk(b"data: " + json.dumps({
                "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": asked["model"],
                "choices": [], "usage": {"prompt_tokens": prompt, "completion_tokens": tokens,
                                         "total_tokens": prompt + tokens}}).encode() + b"\n\n")
        self.chunk(b"data: [DONE]\n\n")
        self.send(b"0\r\n\r\n")
        return True

    def messages(self, asked, tokens, prompt, mock):
        usage = {"input_tokens": prompt, "output_tokens": tokens}
        whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked["model"],
                 "content": [{"type": "text", "text": "word " * tokens}], "stop_reason": "end_turn",
                 "stop_sequence": None, "usage": usage}
        with LOCK:
            STATE["prompt_tokens"] += prompt
            STATE["completion_tokens"] += tokens
        if not asked.get("stream"):
            return self.answer(200, json.dumps(whole).encode())
        self.begin()

        def event(name, data):
            self.chunk(f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n".encode())
        event("message_start", {"message": {**whole, "content": [], "usage": {"input_tokens": prompt, "output_tokens": 0}}})
        event("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}})
        for _ in range(tokens):
            self.wait(mock.get("gap", 0))
            event("content_block_delta", {"index": 0, "delta": {"type": "text_delta", "text": "word "}})
        event("content_block_stop", {"index": 0})
        event("message_delta", {"delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": {"output_tokens": tokens}})
        event("message_stop", {})
        self.send(b"0\r\n\r\n")
        return True

    def ollama(self, path, asked, tokens, prompt):
        with LOCK:
            STATE["prompt_tokens"] += prompt
            STATE["completion_tokens"] += tokens
        last = {"model": asked["model"], "created_at": "2026-01-01T00:00:00Z", "done": True, "done_reason": "stop",
                "prompt_eval_count": prompt, "eval_count": tokens}
        if path == "/api/embed":
            return self.answer(200, json.dumps({"model": asked["model"], "embeddings": [[0.5]],
                                                "prompt_eval_count": prompt}).encode())
        if asked.get("stream") is False:
            return self.answer(200, json.dumps({**last, "message": {"role": "assistant", "content": "word " * tokens}}).encode())
        self.begin("application/x-ndjson")
        for _ in range(tokens):
            self.chunk(json.dumps({"model": asked["model"], "created_at": "2026-01-01T00:00:00Z", "done": False,
                                   "message": {"role": "assistant", "content": "word "}}).encode() + b"\n")
        self.chunk(json.dumps({**last, "message": {"role": "assistant", "content": ""}}).encode() + b"\n")
        self.send(b"0\r\n\r\n")
        return True


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 1024


if __name__ == "__main__":
    with Server(("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 0), Handler) as server:
        print(server.server_address[1], flush=True)
        server.serve_forever()
