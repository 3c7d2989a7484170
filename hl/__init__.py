"""hl: git for agent harnesses.

A harness is an executable Python program around a frozen language model; every revision of it is a git commit
annotated with its execution score. Importing the package loads nothing heavy and prints nothing.
"""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from hl.workspace import load as load

__all__ = ["__version__", "load"]


def __getattr__(name: str) -> Any:
    if name == "load":
        from hl.workspace import load

        return load
    raise AttributeError(f"module 'hl' has no attribute {name!r}")
