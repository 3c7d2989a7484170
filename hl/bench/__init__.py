"""Benchmarks: the paper's protocols over ordinary hl repositories, one a cell.

A run is a directory: `manifest.json` says what it is, `questions/` holds each task's sets, `cells/` the repositories,
`rows.jsonl` everything that tables need, `table.md` and the plots what was made of it. Cells are revised by the same
code as `hl revise`, so a killed run goes on where it was. Nothing here prints.
"""
