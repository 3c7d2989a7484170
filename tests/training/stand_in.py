#!/usr/bin/env python3
"""Stands in for a vLLM server of a tiny model: the routes that training asks, backed by transformers and peft.

    stand_in.py BASE PORT MODE LOG

Modes: `ok`; `wrong` gives log-probabilities that are not the model's; `deaf` serves the base whatever adapter is named;
`stale` goes on serving the first version of the policy; `fixed` does not know the routes of adapters (vLLM without
VLLM_ALLOW_RUNTIME_LORA_UPDATING); `raw` tells log-probabilities at temperature 1, whatever it samples at; `flaky`
fails every third request and forgets its adapters once. Requests go to LOG.
"""

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from hl.engines.hf import load_model
from training.models import sample

BASE, PORT, MODE, LOG = sys.argv[1], int(sys.argv[2]), sys.argv[3], Path(sys.argv[4])
computing = threading.Lock()
writing = threading.Lock()
models = {"base": load_model(BASE)}
asked = {"/v1/completions": 0}
began = []
"""The models of the policy's versions, in order."""


def note(**line):
    with writing, LOG.open("a") as file:
        file.write(json.dumps({"at": time.monotonic(), **line}) + "\n")


def log_probs(model, prompt, ids, temperature):
    import torch

    with torch.no_grad():
        logits = model(input_ids=torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1]
    taken = torch.log_softmax(logits / temperature, -1).gather(1, torch.tensor(ids)[:, None])
    return taken[:, 0].tolist()


def complete(body):
    prompt, name = body["prompt"], body["model"]
    if MODE == "deaf":
        name = "base"
    model, tokenizer = began[0] if MODE == "stale" and "-v" in name else models[name]
    with computing:
        (found,) = sample(
            model,
            tokenizer,
            [prompt],
            [body["seed"]],
            max_tokens=body["max_tokens"],
            temperature=body["temperature"],
        )
        temperature = 1.0 if MODE == "raw" else body["temperature"]
        probs = log_probs(model, prompt, list(found.ids), temperature)
    assert body["logprobs"] == 0 and body["return_token_ids"]
    assert body["stop_token_ids"] == [tokenizer.eos_token_id]
    if MODE == "wrong":
        probs = [p - 0.2 for p in probs]
    choice = {
        "index": 0,
        "text": found.reply.text,
        "token_ids": list(found.ids),
        "logprobs": {"token_logprobs": probs},
        "finish_reason": found.reply.finish_reason,
    }
    return {"object": "text_completion", "choices": [choice]}


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        if self.path == "/v1/models":
            self._send(200, {"object": "list", "data": [{"id": name} for name in list(models)]})
        else:
            self._send(200 if self.path == "/health" else 404, {})

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        note(path=self.path, **{k: body[k] for k in ("model", "lora_name") if k in body})
        if self.path == "/v1/completions":
            self._completions(body)
        elif MODE == "fixed":
            self._send(404, {"detail": "Not Found"})
        elif self.path == "/v1/load_lora_adapter":
            name, folder = body["lora_name"], body["lora_path"]
            if not Path(folder, "adapter_config.json").is_file():
                self._send(404, {"error": {"message": f"No adapter found for {folder}"}})
                return
            models[name] = load_model(BASE, folder)
            began.extend([models[name]] if "-v" in name else [])
            self._send(200, f"Success: LoRA adapter '{name}' added successfully.")
        else:
            models.pop(body["lora_name"], None)
            self._send(200, "Success: LoRA adapter removed successfully.")

    def _completions(self, body):
        asked[self.path] += 1
        if MODE == "flaky" and asked[self.path] % 3 == 0:
            self._send(503, {"error": {"message": "busy"}})
            return
        if MODE == "flaky" and asked[self.path] == 8:
            for name in [name for name in models if name != "base"]:
                del models[name]
        if body["model"] not in models:
            self._send(404, {"error": {"message": f"The model `{body['model']}` does not exist."}})
            return
        self._send(200, complete(body))
        note(done=body["model"])

    def _send(self, status, value):
        data = value.encode() if isinstance(value, str) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *unused):
        pass


ThreadingHTTPServer(("127.0.0.1", PORT), Handler).serve_forever()
