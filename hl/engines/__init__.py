"""Language models behind one protocol (`hl.types.Engine`).

`base` opens an engine by name and loads only that one; `weights` fetches and checks local models; `scripted`
replies from rules and serves as a faulty test server. Nothing here knows about harnesses, tasks or budgets.
"""
