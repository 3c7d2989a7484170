"""Room 3, propose: Harness and Report -> replies that hold edits.

    prompt.py   task, harness and report -> messages        llm.py    messages -> Reply, through any engine
    catalog/    a library of general revisions: no model, the control that every learned proposer must beat

Promises: a proposer never raises for what its model does; a failed engine is a Reply with `error`. Does not apply edits
and runs nothing.
"""
