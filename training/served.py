"""The policy on vLLM servers: the base under its own name, for the frozen solver, and the policy as an adapter on it.

Promises: every replica is told of every adapter directly, since a load balancer would tell one; a name never stands for
two adapters, since servers keep what they computed under a name; a reply is handed on as soon as it is complete. A
replica that fails is asked again later, and one that was started anew is given the adapter again. It computes no
gradients and imports no torch: the weights go over a folder that servers and training both see.
"""

import asyncio
import contextlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import as_completed
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from hl.engines.adapter_names import is_mounted, mount
from hl.engines.adapters import read_adapter
from hl.engines.bases import architectures
from hl.engines.retry import backoff_s, is_retried
from hl.engines.vllm import room_for_rank
from hl.errors import EngineError, UsageError
from training import processes
from training.background import Background, together
from training.models import Ask, Sample, Trainee, as_sample

FOLDER = "served"
"""Of a run's directory: adapters as the servers read them."""
NAME = "hl-policy-"
"""Names of adapters begin so. Servers of a training run serve that run alone."""
REQUESTS = 64
"""Requests a replica that chains keep open at once (ours); replies of an update are all asked for at once."""
TRIES = 6
REPLY_S = 3600.0
"""Longest wait for a reply: thousands of tokens, behind hundreds of others (ours)."""
ADMIN_S = 600.0
"""Longest wait for an adapter to load (ours)."""


@dataclass(frozen=True, slots=True)
class Raw:
    """One reply as a server tells it."""

    ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    stopped: bool
    """False: it was as long as replies may be."""


@dataclass(slots=True)
class _Refused(Exception):
    """A request that was not answered as it should be."""

    message: str
    status: int = 0

    @property
    def retried(self) -> bool:
        return self.status == 0 or is_retried(self.status)


class Replica:
    """One server. Lives on the background's loop.

    Args:
        url: With or without `/v1`.
    """

    def __init__(self, url: str) -> None:
        self.url = f"{url.rstrip('/').removesuffix('/v1')}/v1"
        self.in_flight = 0
        self.failures = 0
        """Since it last answered."""
        self._client: Any = None

    async def models(self) -> tuple[str, ...]:
        """Names that it serves."""
        data = await self._ask("get", "/models")
        return tuple(str(row.get("id")) for row in data.get("data", ()) if isinstance(row, dict))

    async def load(self, name: str, folder: Path) -> None:
        """Have it serve an adapter.

        Raises:
            _Refused: It does not.
        """
        await self._ask("post", "/load_lora_adapter", {"lora_name": name, "lora_path": str(folder)}, ADMIN_S)

    async def unload(self, name: str) -> None:
        """Have it forget an adapter.

        Raises:
            _Refused: It does not.
        """
        await self._ask("post", "/unload_lora_adapter", {"lora_name": name}, ADMIN_S)

    async def complete(self, name: str, ask: Ask, ends: Sequence[int]) -> Raw:
        """One reply, from the whole distribution at its temperature, with what its tokens were and how likely.

        Raises:
            _Refused: None came.
        """
        body = {
            "model": name,
            "prompt": list(ask.prompt),
            "max_tokens": ask.max_tokens,
            "temperature": ask.temperature,
            "seed": ask.seed,
            "stop_token_ids": list(ends),
            "logprobs": 0,  # of the token that was taken, and of no other
            "return_token_ids": True,
            # A server's own defaults would sample from another distribution than the one that is learnt.
            **{"top_p": 1.0, "top_k": 0, "min_p": 0.0, "repetition_penalty": 1.0},
        }
        self.in_flight += 1
        try:
            data = await self._ask("post", "/completions", body, REPLY_S)
        finally:
            self.in_flight -= 1
        try:
            choice = data["choices"][0]
            ids = tuple(int(i) for i in choice["token_ids"])
            # What a server could not compute is null.
            probs = [float("nan") if p is None else float(p) for p in choice["logprobs"]["token_logprobs"]]
            if not ids or len(ids) != len(probs):
                raise ValueError("as many tokens as log-probabilities, and at least one")
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise _Refused(f"a reply without token ids and log-probabilities ({error})", 422) from None
        return Raw(ids, tuple(probs), choice.get("finish_reason") != "length")

    async def aclose(self) -> None:
        """Close its connections; idempotent."""
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def _ask(
        self, verb: str, path: str, body: Mapping[str, Any] | None = None, limit_s: float = 30.0
    ) -> dict[str, Any]:
        """Its answer as an object; empty for an answer that is no JSON.

        Raises:
            _Refused: It is not there, or answers with an error.
        """
        import openai

        if self._client is None:
            self._client = openai.AsyncOpenAI(
                base_url=self.url, api_key="EMPTY", timeout=openai.Timeout(None, connect=10.0), max_retries=0
            )
        send = getattr(self._client, verb)
        try:
            async with asyncio.timeout(limit_s):
                text = await send(path, cast_to=str, **({} if body is None else {"body": dict(body)}))
        except openai.APIStatusError as error:
            said = " ".join(error.response.text.split())[:300]
            raise _Refused(f"HTTP {error.status_code}: {said}", error.status_code) from None
        except (openai.APIError, TimeoutError) as error:
            cause = error.__cause__ or error
            raise _Refused(f"no answer: {type(cause).__name__} {cause}".rstrip()) from None
        self.failures = 0
        try:
            data = json.loads(text)
        except ValueError:
            return {}
        return data if isinstance(data, dict) else {}


class Served:
    """The policy on all replicas of a run.

    Args:
        urls: Of the replicas, at least one.
        trainee: Whose adapter is the policy.
        out: The run's directory; the servers see it under the same path.
        background: Where requests run.
    """

    def __init__(self, urls: Sequence[str], trainee: Trainee, out: Path, background: Background) -> None:
        self._replicas = [Replica(url) for url in urls]
        self._trainee = trainee
        self._ends = trainee.ends
        self._mounted = is_mounted(architectures(trainee.settings.base))
        self._folder = (out / FOLDER).absolute()
        self._background = background
        self._name = ""
        self._path = self._folder

    @property
    def concurrency(self) -> int:
        """Requests that chains keep open at once."""
        return REQUESTS * len(self._replicas)

    def open(self) -> None:
        """See that every server is there and takes adapters, before anything is spent.

        Raises:
            EngineError: One is not, or does not.
        """
        if processes.is_main():
            self._background.run(together([self._unload_all(r) for r in self._replicas]))
            shutil.rmtree(self._folder, ignore_errors=True)
        self.sync("start")

    def sync(self, tag: str) -> None:
        """Serve the adapter as it is now, and forget the one before. Every process calls it.

        Args:
            tag: Of its name: `v3` for the policy after three updates.

        Raises:
            EngineError: A server is not there, or refuses it.
        """
        folder, old = self._folder / tag, self._path
        if processes.is_main():
            self._folder.mkdir(parents=True, exist_ok=True)
            self._save(folder)
        processes.wait()
        self._path, self._name = folder, f"{NAME}{tag}-{read_adapter(folder).digest[:12]}"
        if processes.is_main():
            self._background.run(together([self._replace(r) for r in self._replicas]))
            if old not in (self._folder, folder):
                shutil.rmtree(old, ignore_errors=True)
        processes.wait()

    def _save(self, folder: Path) -> None:
        """The adapter under the names that the servers know its weights by."""
        self._trainee.save(folder)
        if self._mounted:
            scratch = folder.with_name(f".{folder.name}.mounted")
            shutil.rmtree(scratch, ignore_errors=True)
            if mount(read_adapter(folder), scratch) == scratch:
                shutil.rmtree(folder)
                scratch.rename(folder)

    def draw(self, asks: Sequence[Ask]) -> Iterator[tuple[int, Sample]]:
        """Replies of the policy as they are complete; see `training.models.Draw`. Log-probabilities are those at the
        temperature of the ask.

        Raises:
            EngineError: No replica answers, or one refuses.
        """
        running = {self._background.start(self._complete(ask)): i for i, ask in enumerate(asks)}
        try:
            for future in as_completed(running):
                at, raw = running[future], future.result()
                count = len(asks[at].prompt)
                yield (
                    at,
                    as_sample(self._trainee.tokenizer, raw.ids, raw.log_probs, count, stopped=raw.stopped),
                )
        finally:
            for future in running:
                future.cancel()

    async def aclose(self) -> None:
        """Forget the adapters and close; a server that is gone is no trouble any more."""
        for replica in self._replicas:
            if processes.is_main() and self._name:
                with contextlib.suppress(_Refused):
                    await replica.unload(self._name)
            await replica.aclose()

    # --- one replica ---

    async def _complete(self, ask: Ask) -> Raw:
        for tries in range(1, TRIES + 1):
            replica = min(self._replicas, key=lambda r: (r.failures, r.in_flight))
            try:
                return await replica.complete(self._name, ask, self._ends)
            except _Refused as refused:
                if refused.status == 404:  # a server that was started anew knows no adapter
                    await self._load(replica)
                elif not refused.retried:
                    raise self._error(replica, f"refuses a reply: {refused.message}") from None
                else:
                    replica.failures += 1
                last = refused
            await asyncio.sleep(backoff_s(tries, first_s=0.5))
        raise self._error(replica, f"failed {TRIES} times, last with {last.message}")

    async def _unload_all(self, replica: Replica) -> None:
        """What an earlier run left there: places for adapters are few."""
        try:
            for name in await replica.models():
                if name.startswith(NAME):
                    await replica.unload(name)
        except _Refused as refused:
            raise self._error(replica, f"gave {refused.message}") from None

    async def _replace(self, replica: Replica) -> None:
        await self._load(replica)
        try:
            for name in await replica.models():
                if name.startswith(NAME) and name != self._name:
                    await replica.unload(name)
        except _Refused as refused:
            raise self._error(replica, f"does not unload an adapter: {refused.message}") from None

    async def _load(self, replica: Replica) -> None:
        try:
            await replica.load(self._name, self._path)
        except _Refused as refused:
            rank = room_for_rank(self._trainee.settings.lora_rank)
            serve = f"hl model serve {self._trainee.settings.base} --updates --rank {rank}"
            if refused.status == 0:
                raise self._error(replica, f"gave {refused.message}") from None
            if refused.status == 404 and "adapter" not in refused.message.lower():
                raise EngineError(
                    f"the server at {replica.url} loads no adapters: it runs without "
                    "VLLM_ALLOW_RUNTIME_LORA_UPDATING=1.",
                    hint=serve,
                ) from None
            if not re.search(
                r"already (been )?loaded", refused.message
            ):  # by another reply that met the same
                raise self._error(
                    replica, f"refuses the adapter {self._path}: {refused.message}", serve
                ) from None

    def _error(self, replica: Replica, what: str, hint: str = "") -> EngineError:
        return EngineError(
            f"the server at {replica.url} {what}", hint=hint or "grpo.server lists the servers"
        )


def check_urls(urls: Sequence[str]) -> None:
    """Refuse what is no address of a server.

    Raises:
        UsageError: One is none, or stands there twice.
    """
    for url in urls:
        if not re.fullmatch(r"https?://[^\s/@?#]+(/\S*)?", url) or urls.count(url) > 1:
            raise UsageError(
                f"grpo.server {url!r} is no address of a server, each named once.",
                hint='grpo.server = ["http://127.0.0.1:8000"]',
            )


def attach(trainer: Any, sync: Any) -> None:
    """Have TRL's trainer call `sync` before it asks for replies whose weights moved, and correct for what servers and
    trainer compute differently (importance sampling, from the log-probabilities that the servers gave).

    TRL 1.16 has no public way to do so beside `rollout_func`; tests/training/test_served.py holds it to these names.

    Args:
        trainer: A `trl.GRPOTrainer` that was made without vLLM.
        sync: Called without arguments, in every process.
    """
    trainer.use_vllm = True
    trainer.vllm_generation = SimpleNamespace(sync_weights=sync)
    trainer._last_loaded_step = -1
