"""serve.py PORT FILE GIB - a server with its weights on the GPU. Reads GIB of weights from FILE, which it
makes first where it is not there, answers /health when it is ready, and /sum with the sum of the weights
and how long reading them took. Each /sum begins and ends with the same number, or the weights were
harmed."""

import http.server
import json
import pathlib
import sys
import time

import torch

PORT, FILE, GIB = int(sys.argv[1]), pathlib.Path(sys.argv[2]), int(sys.argv[3])
PART = 1 << 28  # numbers of two bytes: half a GiB


def make():
    torch.manual_seed(1)
    part = torch.randn(PART, dtype=torch.float16)
    with FILE.with_suffix(".new").open("wb") as file:
        for _ in range(2 * GIB):
            part.numpy().tofile(file)
    FILE.with_suffix(".new").rename(FILE)


if not FILE.exists():
    make()
began = time.monotonic()
weights = []
with FILE.open("rb") as file:
    for _ in range(2 * GIB):
        host = torch.frombuffer(bytearray(file.read(2 * PART)), dtype=torch.float16)
        weights.append(host.cuda())
torch.cuda.synchronize()
loaded_s = time.monotonic() - began


class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = {"loaded_s": loaded_s}
        if self.path == "/sum":
            body["sum"] = sum(part.double().sum().item() for part in weights)
        data = json.dumps(body).encode()
        self.send_response(200)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *words):
        pass


http.server.ThreadingHTTPServer(("127.0.0.1", PORT), Answer).serve_forever()
