"""The public face: smoke calls, programs, functions, admission, and what happens when a zygote dies."""

import asyncio
import os
import signal
from collections.abc import Mapping
from typing import Any

import pytest

from hl.errors import SandboxError
from hl.sandbox.gate import Gate
from hl.sandbox.host import Answer, JobResult, Limits, Sandbox
from hl.types import Status
from tests.sandbox.kit import QUICK, Box, Echo, harness

ECHO = harness("def solve(model, question): return model(question)")

# --- smoke -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "status", "stage"),
    [
        ("def solve(model, question): return model(question)", Status.OK, "done"),
        ("import nothing_of_that_name", Status.CRASH, "import"),
        ("def solve(model, question:", Status.CRASH, "import"),
        ("x = 1", Status.CONTRACT, "import"),
        ("def solve(model, question): return question[1000]", Status.CRASH, "call"),
        ("def solve(model, question): return None", Status.CONTRACT, "call"),
        ("def solve(model): return ''", Status.CRASH, "call"),
        ("import os\nos._exit(0)", Status.CRASH, "import"),
        ("import os\ndef solve(model, question): os._exit(0)", Status.CRASH, "call"),
        ("while True: pass", Status.TIMEOUT, "import"),
        ("def solve(model, question):\n    while True: pass", Status.TIMEOUT, "call"),
        ("def solve(model, question):\n    while not model('x'): pass", Status.BUDGET, "call"),
    ],
)
def test_smoke_says_how_far_it_got(best: Box, source: str, status: Status, stage: str) -> None:
    limits = Limits(wall_s=0.7 if "while True" in source else 20)
    result = best.runner.run(best.sandbox.smoke(harness(source), limits=limits))
    assert (result.status, result.value) == (status, stage), result.error
    assert bool(result.error) == (status is not Status.OK)


def test_smoke_has_every_call(best: Box) -> None:
    source = """
def solve(model, question):
    assert model("a") == "" and model.sample("a", 2) == model.map(["a", "b"]) == ["", ""]
    assert model.python("1").stdout == "" and model.search("x") == [] and model.budget.calls > 0
    return "ok"
"""
    result = best.runner.run(best.sandbox.smoke(harness(source), limits=QUICK))
    assert result.status is Status.OK, result.error


# --- programs --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("code", "stdout", "last"),
    [
        ("print(6 * 7)", "42\n", ""),
        ("6 * 7", "", ""),
        ("import math\nprint(math.gcd(12, 18))", "6\n", ""),
        ("print('a'); 1 / 0", "a\n", "ZeroDivisionError: division by zero"),
        ("print(gcd(1, 2))", "", "NameError: name 'gcd' is not defined"),
        ("def f(:", "", "SyntaxError: invalid syntax"),
        ("raise ValueError('a\\nb')", "", "ValueError: a b"),
        ("raise KeyError", "", "KeyError"),
        ("exit()", "", ""),
        ("print(1); quit(0)", "1\n", ""),
        ("import sys; sys.exit('bad')", "", "SystemExit: bad"),
        ("input()", "", "EOFError: EOF when reading a line"),
        ("if __name__ == '__main__': print('main')", "main\n", ""),
        ("import sys; print('err', file=sys.stderr)", "", ""),
        ("import sys; sys.stdout.buffer.write(b'raw')", "raw", ""),
        ("print('\\ud800')", "\\ud800\n", ""),
        ("import os; os._exit(3)", "", "RuntimeError: the process exited with code 3 before it answered"),
        ("model('x')", "", "NameError: name 'model' is not defined"),
        ("from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\nprint(P(1))", "P(x=1)\n", ""),
        ("x = [0] * 10 ** 10", "", "MemoryError"),
        ("open('/etc/passwd')", "", None),
    ],
)  # fmt: skip
def test_python(box: Box, code: str, stdout: str, last: str | None) -> None:
    result = box.python(code)
    assert result.stdout == stdout
    lines = result.error.splitlines()
    if last is None:
        assert lines
    else:
        assert (lines[-1] if lines else "") == last


def test_python_runs_out_of_time(best: Box) -> None:
    result = best.python("while True: pass", timeout_s=0.5)
    assert (result.stdout, result.error) == ("", "TimeoutError: the code ran longer than 0.5 s")


def test_python_output_is_bounded_in_the_middle(best: Box) -> None:
    result = best.python("print('a' * 10 ** 6); print('b' * 10 ** 6)")
    assert result.stdout.startswith("aaaa")
    assert result.stdout.endswith("bbbb\n")
    assert "bytes left out" in result.stdout
    assert len(result.stdout) < 66000


def test_python_has_no_model_to_forge(best: Box) -> None:
    code = """
import os, struct
p = b'{"id": 1, "op": "chat", "args": {}}'
os.write(3, struct.pack(">I", len(p)) + p)
"""
    assert "protocol" in best.python(code + "\nwhile True: pass").error


def test_attempts_that_all_run_programs_do_not_wait_for_each_other(best: Box) -> None:
    async def call(op: str, args: Mapping[str, Any]) -> Answer:
        ran = await best.sandbox.python(args["code"], timeout_s=args["timeout_s"])
        return Answer({"stdout": ran.stdout, "error": ran.error}, seconds=ran.seconds)

    session = Echo()
    session.call = call  # pyright: ignore[reportAttributeAccessIssue]
    source = harness("def solve(model, question): return model.python('print(1)').stdout")

    async def many() -> list[JobResult]:
        runs = (
            best.sandbox.run(source, "q", seed=1, session=session, limits=Limits(wall_s=30))
            for _ in range(150)
        )
        return await asyncio.gather(*runs)

    assert {result.value for result in best.runner.run(many())} == {"1\n"}


# --- functions -------------------------------------------------------------------------------------------------


def _function(box: Box, source: str, *args: Any, name: str = "grade", limits: Limits = QUICK) -> Any:
    return box.runner.run(box.sandbox.function(source, name, args, limits=limits))


def test_function(box: Box) -> None:
    source = "import math\ndef grade(a, b): return {'sum': a['x'] + b, 'list': (1, None, 'é'), 'pi': math.pi}"
    result = _function(box, source, {"x": 1}, 2)
    assert result.status is Status.OK
    assert result.value == {"sum": 3, "list": [1, None, "é"], "pi": 3.141592653589793}


@pytest.mark.parametrize(
    ("source", "status", "error"),
    [
        ("def grade(): raise ValueError('no')", Status.CRASH, "ValueError: no"),
        ("def other(): pass", Status.CRASH, "AttributeError"),
        ("def grade(): return {1, 2}", Status.CRASH, "TypeError"),
        ("def grade(): return float('nan')", Status.CRASH, "ValueError"),
        ("def grade(:", Status.CRASH, "SyntaxError"),
        ("def grade():\n    while True: pass", Status.TIMEOUT, "longer than"),
        ("def grade(): return open('/etc/passwd').read()", Status.CRASH, "Error"),
        ("def grade(): return eval('9**9**9**9')", Status.TIMEOUT, "longer than"),
        ("def grade(): return 'x' * 2000000", Status.CRASH, "longer than"),
    ],
)
def test_function_fails_as_data(best: Box, source: str, status: Status, error: str) -> None:
    result = _function(best, source, limits=Limits(wall_s=0.7 if status is Status.TIMEOUT else 20))
    assert (result.status, result.value) == (status, None)
    assert error in result.error


@pytest.mark.slow
def test_graders_find_reasoning_gym_and_the_sandbox_still_holds(runner: asyncio.Runner) -> None:
    source = """
def grade(answer):
    import reasoning_gym
    data = reasoning_gym.create_dataset("chain_sum", size=1, seed=1)
    return [data.score_answer(data[0]["answer"], data[0]), data.score_answer(answer, data[0])]
def hang(answer):
    import reasoning_gym
    data = reasoning_gym.create_dataset("puzzle24", size=1, seed=1)
    return data.score_answer("9**9**9**9", data[0])
def write(answer):
    import reasoning_gym
    open(reasoning_gym.__file__, "a")
"""

    async def grade() -> list[Any]:
        async with Sandbox(profile="grader", zygotes=1) as graders:
            assert all(probe.blocked for probe in graders.probes)
            limits = Limits(wall_s=3, cpu_s=20, memory_mb=512)
            return [
                await graders.function(source, n, ["x"], limits=limits) for n in ("grade", "hang", "write")
            ]

    good, hung, written = runner.run(grade())
    assert good.value == [1.0, 0.0], good.error
    assert hung.status is Status.TIMEOUT
    assert written.status is Status.CRASH
    assert "PermissionError" in written.error


# --- many, and trouble -----------------------------------------------------------------------------------------


def test_many_at_once_each_get_their_own_answer(box: Box) -> None:
    async def many() -> list[JobResult]:
        return await asyncio.gather(
            *(box.sandbox.run(ECHO, f"q{i}", seed=i, session=Echo(), limits=QUICK) for i in range(200))
        )

    assert [result.value for result in box.runner.run(many())] == [f"echo q{i}" for i in range(200)]


def test_honest_attempts_beside_bombs(best: Box) -> None:
    bombs = [
        harness("def solve(model, question):\n    while True: pass"),
        harness("def solve(model, question):\n    x = []\n    while True: x.append(bytes(1 << 20))"),
        harness("import os\ndef solve(model, question):\n    while True: os.write(3, b'x' * 65536)"),
    ]

    async def mixed() -> list[JobResult]:
        jobs = [ECHO if i % 4 else bombs[i // 4 % 3] for i in range(24)]
        limits = Limits(wall_s=15.0, cpu_s=1, memory_mb=128)
        return await asyncio.gather(
            *(best.sandbox.run(job, "q", seed=1, session=Echo(), limits=limits) for job in jobs)
        )

    results = best.runner.run(mixed())
    assert [r.value for i, r in enumerate(results) if i % 4] == ["echo q"] * 18
    assert {r.status for i, r in enumerate(results) if not i % 4} <= {Status.TIMEOUT, Status.CRASH}


def test_a_dead_zygote_is_replaced_and_its_attempts_run_again(runner: asyncio.Runner) -> None:
    source = harness("import time\ndef solve(model, question):\n    time.sleep(1)\n    return 'slept'")
    silent = harness("def solve(model, question): return question")  # one that asks would be lost

    async def main() -> list[JobResult]:
        async with Sandbox(zygotes=1) as sandbox:
            runs = [
                asyncio.ensure_future(sandbox.run(source, "q", seed=1, session=Echo(), limits=QUICK))
                for _ in range(4)
            ]
            await asyncio.sleep(0.3)
            _kill_zygotes(sandbox)
            after = await sandbox.run(silent, "q", seed=1, session=Echo(), limits=QUICK)
            return [*(await asyncio.gather(*runs)), after]

    assert [result.value for result in runner.run(main())] == ["slept"] * 4 + ["q"]


def test_an_attempt_that_had_asked_is_lost_with_its_zygote(runner: asyncio.Runner) -> None:
    asked = asyncio.Event()

    def answer(op: str, args: Mapping[str, Any]) -> Answer:
        asked.set()
        return Answer("x")

    source = harness("def solve(model, question):\n    model('x')\n    while True: pass")

    async def main() -> JobResult:
        async with Sandbox(zygotes=1) as sandbox:
            run = asyncio.ensure_future(sandbox.run(source, "q", seed=1, session=Echo(answer), limits=QUICK))
            await asked.wait()
            _kill_zygotes(sandbox)
            return await run

    assert runner.run(main()).status is Status.LOST


def _kill_zygotes(sandbox: Sandbox) -> None:
    for zygote in sandbox._zygotes:  # pyright: ignore[reportPrivateUsage]
        os.kill(zygote._process.pid, signal.SIGKILL)  # pyright: ignore[reportPrivateUsage]


def test_not_started(runner: asyncio.Runner) -> None:
    with pytest.raises(SandboxError, match="not started"):
        runner.run(Sandbox().run(ECHO, "q", seed=1, session=Echo(), limits=QUICK))


def test_refusal_names_the_way_out(runner: asyncio.Runner) -> None:
    with pytest.raises(SandboxError) as caught:
        runner.run(Sandbox(tiers=()).start())
    assert caught.value.exit_code == 6
    assert "--unsafe-no-sandbox" in (caught.value.hint or "")


def test_unsafe_says_so(unsafe: Box) -> None:
    assert unsafe.sandbox.tier == "unsafe"
    assert unsafe.solve("def solve(model, question): return model('x')").value == "echo x"


# --- admission -------------------------------------------------------------------------------------------------


def test_gate_counts_memory_and_keeps_the_order(runner: asyncio.Runner) -> None:
    async def main() -> list[str]:
        gate, log = Gate(100, 10), []
        release = asyncio.Event()

        async def job(name: str, memory_mb: int, hold: bool) -> None:
            async with gate.admit(memory_mb):
                log.append(name)
                if hold:
                    await release.wait()

        tasks = [
            asyncio.ensure_future(job(*args)) for args in (("a", 60, True), ("b", 60, False), ("c", 1, False))
        ]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert log == ["a"]  # c would fit, but b is first
        release.set()
        await asyncio.gather(*tasks)
        await job("larger than everything", 1000, False)
        return log

    assert runner.run(main()) == ["a", "b", "c", "larger than everything"]


def test_gate_forgets_those_who_give_up(runner: asyncio.Runner) -> None:
    async def main() -> str:
        gate = Gate(100, 1)
        async with gate.admit(10):
            waiting = [asyncio.ensure_future(_enter(gate)) for _ in range(3)]
            await asyncio.sleep(0)
            for task in waiting[:2]:
                task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        async with asyncio.timeout(10), gate.admit(10):
            return "in"

    async def _enter(gate: Gate) -> None:
        async with gate.admit(10):
            await asyncio.sleep(0)

    assert runner.run(main()) == "in"
