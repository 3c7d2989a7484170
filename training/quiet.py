"""Warnings of the training libraries about one another, which nobody can act on: left out by their exact words."""

import warnings
from collections.abc import Generator
from contextlib import contextmanager

KNOWN: tuple[tuple[str, type[Warning]], ...] = (
    # peft 0.21 and TRL 1.16 say `gradient_checkpointing` to transformers 5.24, which calls it something else now.
    ("`is_gradient_checkpointing` is deprecated", FutureWarning),
    ("`gradient_checkpointing` is deprecated", FutureWarning),
    # TRL 1.16 calls the way in that we chose experimental; the version is pinned and a contract test holds it.
    ("You are using 'rollout_func', which is an experimental feature", UserWarning),
)
"""(beginning of the text, category)."""


@contextmanager
def quiet() -> Generator[None, None, None]:
    """Leave these out meanwhile."""
    with warnings.catch_warnings():
        for text, category in KNOWN:
            warnings.filterwarnings("ignore", message=text, category=category)
        yield
