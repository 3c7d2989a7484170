"""Start the sandbox and print its tier; exit 1 where it is not the one expected.

python scripts/sandbox_tier.py landlock+seccomp
"""

import asyncio
import sys

from hl.sandbox.host import Sandbox


async def tier() -> str:
    """The tier that holds here."""
    async with Sandbox() as sandbox:
        return sandbox.tier


def main() -> int:
    """Compare with the first argument, if there is one."""
    found = asyncio.run(tier())
    print(f"sandbox tier: {found}")
    if sys.argv[1:] and found != sys.argv[1]:
        print(f"expected {sys.argv[1]}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
