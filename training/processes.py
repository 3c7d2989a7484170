"""The processes of one run (`torchrun`): how many, which of them writes, and waiting for one another."""

import os


def count() -> int:
    """How many share the run."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def is_main() -> bool:
    """Whether this one writes what is written once."""
    return os.environ.get("RANK", "0") == "0"


def wait() -> None:
    """Until all have come here."""
    if count() > 1:
        from accelerate import PartialState

        PartialState().wait_for_everyone()
