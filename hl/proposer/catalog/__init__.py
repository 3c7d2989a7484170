"""The catalog: general revisions without a model.

    source.py          a harness's text and tree, and how to change them      blocks.py   two texts -> edit blocks
    parts.py           texts to insert (hl/seeds/parts)                       steps.py    the single ideas
    demonstrations.py  question -> program pairs, general or drawn            evidence.py report and history, read
    compact.py         the loop in a dozen lines, for short replies
    order.py           which revisions, best first                            proposer.py the Proposer

No step knows a task: none looks at a question's wording to decide, and no constant text shares eight words in a row
with a reasoning-gym question (a test).
"""

from hl.proposer.catalog.proposer import CatalogProposer

__all__ = ["CatalogProposer"]
