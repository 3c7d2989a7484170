"""Tasks: what a harness is asked, and who grades it. Open one with `hl.tasks.base.open_task`."""
