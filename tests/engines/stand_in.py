#!/usr/bin/env python3
"""Stands in for the `vllm` program: takes its arguments, answers /health and /v1/models, and dies where asked.

`--die-at-start` ends with an error. GET /die ends a running one. Argument vectors go to $STAND_IN_LOG.
"""

import argparse
import json
import os
import sys
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("verb", choices=["serve"])
parser.add_argument("model")
parser.add_argument("--served-model-name")
parser.add_argument("--port", type=int)
parser.add_argument("--lora-modules", nargs="+", type=json.loads, default=[])
parser.add_argument("--die-at-start", action="store_true")
options, rest = parser.parse_known_args()
with Path(os.environ["STAND_IN_LOG"]).open("a") as log:
    names = ("CUDA_VISIBLE_DEVICES", "VLLM_ALLOW_RUNTIME_LORA_UPDATING")
    log.write(
        json.dumps({"pid": os.getpid(), "argv": sys.argv[1:], "env": {n: os.environ.get(n) for n in names}})
        + "\n"
    )
if options.die_at_start:
    sys.exit("ValueError: no GPU here")
began = time.monotonic()


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        if self.path == "/die":
            os._exit(3)
        ready = time.monotonic() - began > 0.5
        names = [options.served_model_name, *(module["name"] for module in options.lora_modules)]
        body = json.dumps({"data": [{"id": name} for name in names]}).encode()
        self.send_response(200 if ready else 503)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *unused):
        pass


ThreadingHTTPServer(("127.0.0.1", options.port), Handler).serve_forever()
