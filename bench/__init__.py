"""Measurements of hl itself: `make bench`, or `python -m bench` from a checkout. Not part of the installed package.

__main__.py  runs the parts
clock.py     processor time of child processes, interleaved
loop.py      the evaluate room with a scripted solver: attempts a second, wall time over ideal
ledger.py    a repository of many rounds, in the ledger's own format
engine.py    tokens a second through hl's llama.cpp engine over llama.cpp alone
tokens.py    the same through the whole evaluate room
corpus.py    index and search of a generated corpus
rewards.py   the rewards of one GRPO update with a slow solver: wall time over ideal
update.py    a GRPO update in its parts
lines.py     one line per value, with the value to reach for
"""
