"""The public face of the sandbox: `Sandbox` runs harnesses, code and graders, each in a locked process of its own.

Promises that untrusted code fails as data (a status and an error text), that nothing survives from one question to the
next, and that it refuses to start where the confinement does not hold. It does not count calls or tokens (the session
does) and it does not know what an answer is worth.
"""

import asyncio
import contextlib
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from hl.errors import SandboxError
from hl.sandbox.bwrap import find_bwraps, find_interpreter
from hl.sandbox.conversation import Answer, Conversation, Ending, Session
from hl.sandbox.gate import Gate
from hl.sandbox.jobs import (
    FunctionResult,
    JobResult,
    Limits,
    PythonResult,
    harness_job,
    harness_result,
    plain_job,
)
from hl.sandbox.preflight import Probe, run_probes
from hl.sandbox.spawn import Plan, Zygote, ZygoteDied, start_zygote
from hl.types import Harness, Status

__all__ = [
    "Answer",
    "FunctionResult",
    "JobResult",
    "Limits",
    "PythonResult",
    "Sandbox",
    "Session",
    "preflight",
]

TIER_BWRAP, TIER_PLAIN, TIER_UNSAFE = "bwrap+landlock+seccomp", "landlock+seccomp", "unsafe"
_UNSAFE_HINT = "hl doctor  (or, knowing that generated code may then touch your files: --unsafe-no-sandbox)"
_PYTHON_MB = 256
_SMOKE_QUESTION = "What is 2 + 2?"


class _Stub:
    """The session of a smoke call: a model that answers with empty text."""

    def __init__(self) -> None:
        self._calls = 0

    async def call(self, op: str, args: Mapping[str, Any]) -> Answer:
        self._calls += 1
        if self._calls > 128:
            return Answer(fatal=Status.BUDGET, message="the stubbed call went on asking after BudgetExceeded")
        if op == "budget":
            return Answer({"calls": max(0, 64 - self._calls), "tokens": 16384, "seconds": 60.0})
        if self._calls > 64:
            return Answer(kind="budget", message="the stubbed call made more than 64 calls")
        return Answer({"chat": "", "python": {"stdout": "", "error": ""}, "search": []}[op])


class Sandbox:
    """An async context manager around zygotes; belongs to the event loop that starts it.

    Args:
        profile: `harness` (standard library only) or `grader` (this environment's packages, reasoning_gym preloaded).
        zygotes: How many; one per two processors unless said.
        concurrency: Most harnesses at once; memory may allow fewer.
        unsafe: Run without confinement (`--unsafe-no-sandbox`).
        tiers: Tiers that may be tried, best first; all that confine unless said.
    """

    def __init__(
        self,
        *,
        profile: str = "harness",
        zygotes: int | None = None,
        concurrency: int | None = None,
        unsafe: bool = False,
        tiers: Sequence[str] = (TIER_BWRAP, TIER_PLAIN),
    ) -> None:
        if profile not in ("harness", "grader"):
            raise ValueError(f"no sandbox profile {profile!r}")
        self._grader = profile == "grader"
        self._count = zygotes or max(1, len(os.sched_getaffinity(0)) // 2)
        self._tiers = (TIER_UNSAFE,) if unsafe else tuple(tiers)
        memory_mb = _available_mb()
        self._runs = Gate(memory_mb * 9 // 10, concurrency or 64)
        self._tools = Gate(memory_mb // 4, max(4, len(os.sched_getaffinity(0)) * 4))
        self._zygotes: list[Zygote] = []
        self._plan: Plan | None = None
        self._starting = asyncio.Lock()
        self._restarts = 0
        self._watch: asyncio.Task[None] | None = None
        self.tier = ""
        """What confines: `bwrap+landlock+seccomp`, `landlock+seccomp` or `unsafe`; empty before `start`."""
        self.passed_over: tuple[str, ...] = ()
        """Why better tiers than `tier` were not used, a sentence each."""
        self.probes: tuple[Probe, ...] = ()
        """What the preflight tried at start."""

    # --- life ---

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    async def start(self, *, check: bool = True) -> None:
        """Start the best tier that works here and prove that it confines.

        Args:
            check: False only for `preflight`, which wants to see failing probes.

        Raises:
            SandboxError: No tier starts, or one does and a probe got through.
        """
        _check_platform(self._tiers)
        reasons: list[str] = []
        if TIER_BWRAP in self._tiers and not find_bwraps():
            reasons.append("bubblewrap is not installed")
        for plan in self._plans():
            try:
                for _ in range(self._count):
                    self._zygotes.append(await start_zygote(plan))
            except SandboxError as error:
                reasons.append(error.message)
                await self.aclose()
                continue
            self._plan, self.tier, self.passed_over = plan, plan.tier, tuple(reasons)
            break
        else:
            raise SandboxError("; ".join(reasons) or "no sandbox tier to try", hint=_UNSAFE_HINT)
        self._watch = asyncio.ensure_future(self._watchdog())
        if check and self.tier == TIER_UNSAFE:
            return  # nothing is promised, so there is nothing to prove
        try:
            self.probes = await run_probes(self.python)
        except BaseException:
            await self.aclose()
            raise
        through = [probe for probe in self.probes if not probe.blocked]
        if check and through:
            await self.aclose()
            names = ", ".join(probe.name for probe in through)
            raise SandboxError(
                f"the sandbox tier {self.tier} lets code through here: {names}", hint=_UNSAFE_HINT
            )

    def _plans(self) -> list[Plan]:
        python = find_interpreter()
        plans: list[Plan] = []
        for tier in self._tiers:
            if tier == TIER_BWRAP:
                plans += [
                    Plan(tier, python, bwrap, confine=True, grader=self._grader) for bwrap in find_bwraps()
                ]
            else:
                plans.append(Plan(tier, python, None, confine=tier != TIER_UNSAFE, grader=self._grader))
        return plans

    async def aclose(self) -> None:
        """End every process; idempotent."""
        if self._watch is not None:
            self._watch.cancel()
            self._watch = None
        zygotes, self._zygotes, self._plan = self._zygotes, [], None
        await asyncio.gather(*(zygote.aclose() for zygote in zygotes))

    async def _watchdog(self) -> None:
        while True:
            await asyncio.sleep(5)
            for zygote in self._zygotes:
                if zygote.alive and zygote.hung():
                    zygote.destroy()

    async def _zygote(self) -> Zygote:
        """The least busy zygote; dead ones are replaced first."""
        if self._plan is None:
            raise SandboxError("the sandbox is not started")
        if not all(zygote.alive for zygote in self._zygotes):
            async with self._starting:
                for index, zygote in enumerate(self._zygotes):
                    if zygote.alive:
                        continue
                    self._restarts += 1
                    if self._restarts > 20:
                        raise SandboxError("the sandbox's zygote keeps dying", hint="hl doctor")
                    await zygote.aclose()
                    self._zygotes[index] = await start_zygote(self._plan)
        return min(self._zygotes, key=lambda zygote: zygote.busy)

    # --- jobs ---

    async def _do(
        self, job: bytes, session: Session | None, *, wall_s: float, cpu_s: int, retry: bool
    ) -> Ending:
        """One job in one child; once more if the sandbox itself broke before the job could have an effect."""
        watched = _Watched(session) if session is not None else None
        for last in (False, True):
            with contextlib.suppress(ZygoteDied):
                child = await (await self._zygote()).acquire()
                ending = await Conversation(child, job, session=watched, wall_s=wall_s, cpu_s=cpu_s).run()
                if not ending.ours or last:
                    return ending
            if not retry or (watched is not None and watched.asked):
                break
        return Ending(Status.LOST, error="the sandbox's zygote died under the attempt")

    async def run(
        self, harness: Harness, question: str, *, seed: int, session: Session, limits: Limits
    ) -> JobResult:
        """Run a harness on one question.

        Raises:
            SandboxError: The sandbox is not running and cannot be restarted.
        """
        async with self._runs.admit(limits.memory_mb):
            job = harness_job("run", harness, question, seed, limits)
            ending = await self._do(job, session, wall_s=limits.wall_s, cpu_s=limits.cpu_s, retry=True)
        return harness_result(ending, limits)

    async def smoke(self, harness: Harness, *, limits: Limits) -> JobResult:
        """Import a harness and call solve once with a model that answers with empty text."""
        async with self._runs.admit(limits.memory_mb):
            job = harness_job("smoke", harness, _SMOKE_QUESTION, 0, limits)
            ending = await self._do(job, _Stub(), wall_s=limits.wall_s, cpu_s=limits.cpu_s, retry=True)
        result = harness_result(ending, limits)
        return JobResult(result.status, ending.stage or "import", result.error, result.seconds)

    async def python(self, code: str, *, timeout_s: float) -> PythonResult:
        """Run code as a main program, without a model."""
        code = code.encode("utf-8", "replace").decode()
        cpu_s = max(1, int(timeout_s) + 1)
        job = plain_job({"kind": "python", "code": code}, Limits(cpu_s=cpu_s, memory_mb=_PYTHON_MB), 0)
        async with self._tools.admit(_PYTHON_MB):
            ending = await self._do(job, None, wall_s=timeout_s, cpu_s=cpu_s, retry=True)
        if ending.status is Status.LOST:
            raise SandboxError(ending.error, hint="hl doctor")
        if ending.status is Status.TIMEOUT:
            return PythonResult("", f"TimeoutError: the code ran longer than {timeout_s:g} s", ending.seconds)
        if ending.status is not Status.OK or not isinstance(ending.value, str):
            return PythonResult("", f"RuntimeError: {ending.error or 'a malformed result'}", ending.seconds)
        return PythonResult(ending.value[: 1 << 17], ending.error, ending.seconds)

    async def function(
        self, source: str, name: str, args: Sequence[Any], *, limits: Limits
    ) -> FunctionResult:
        """Run a source text as a module in a fresh process and call one function of it; JSON in, JSON out.

        Raises:
            SandboxError: The sandbox broke.
        """
        job = plain_job({"kind": "function", "source": source, "name": name, "args": list(args)}, limits, 0)
        async with self._tools.admit(limits.memory_mb):
            ending = await self._do(job, None, wall_s=limits.wall_s, cpu_s=limits.cpu_s, retry=True)
        if ending.status is Status.LOST:
            raise SandboxError(ending.error, hint="hl doctor")
        value = ending.value if ending.status is Status.OK else None
        return FunctionResult(value, ending.error, ending.status)


class _Watched:
    """A session that remembers whether it was asked: an attempt that was cannot be run again behind its back."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.asked = False

    async def call(self, op: str, args: Mapping[str, Any]) -> Answer:
        self.asked = True
        return await self._session.call(op, args)


def _available_mb() -> int:
    """MemAvailable, or a modest guess where there is no such number."""
    with contextlib.suppress(OSError, ValueError), Path("/proc/meminfo").open(encoding="ascii") as lines:
        for line in lines:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) // 1024
    return 2048


def _check_platform(tiers: Sequence[str]) -> None:
    if sys.platform != "linux":
        raise SandboxError(
            f"the sandbox needs Linux, not {sys.platform}", hint="docker build -t hl . && docker run -it hl"
        )
    if platform.machine() != "x86_64" and TIER_UNSAFE not in tiers:
        raise SandboxError(
            f"the sandbox has been tested on x86-64 only, and this machine is {platform.machine()}",
            hint=_UNSAFE_HINT,
        )


async def find_tier(*, unsafe: bool) -> str:
    """The tier that runs here, proven as at every start.

    Raises:
        SandboxError: None does.
    """
    async with Sandbox(zygotes=1, unsafe=unsafe) as sandbox:
        return sandbox.tier


async def preflight(unsafe: bool = False) -> list[Probe]:
    """Start a sandbox, try to break out of it, and report what was tried.

    Raises:
        SandboxError: No tier starts here.
    """
    sandbox = Sandbox(zygotes=1, unsafe=unsafe)
    try:
        await sandbox.start(check=False)
        return list(sandbox.probes)
    finally:
        await sandbox.aclose()
