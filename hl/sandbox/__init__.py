"""The sandbox: runs untrusted code in one locked process per question.

`host` is the public face (`Sandbox`); `conversation` drives one child; `spawn` owns the zygotes; `bwrap` knows paths
and command lines; `preflight` proves that the confinement holds; `frames` is the wire. `zygote`, `child` and `lockdown`
run inside and are shipped there as text. Nothing here knows tasks, engines or scores.
"""
