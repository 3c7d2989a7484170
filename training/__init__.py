"""Training the proposer: contexts and teacher rows, supervised fine-tuning, GRPO.

    settings.py   a TOML file and `-c` texts -> frozen Settings        contexts.py  what a proposer is asked to revise
    teach.py      a teacher's bench run                                mining.py    ledgers -> rows with verdicts
    data.py       the rows, and what they are                          verify.py    rows applied and scored once more
    screen.py     does a harness look up what it was shown?            patterns.py  what kind of revision a row is
    rewards.py    a reply -> p, b, c and J, in the rooms of hl         gate.py      what is checked before training
    models.py     weights, tokenizer, LoRA, sampling                   served.py    sampling from vLLM servers
    distance.py   how far an adapter has moved from another            dataset.py   rows on disk, the constant reply
    sft.py, grpo.py: one readable main each                            recipes/     settings of the paper's runs

torch and its company are imported by models.py, sft.py and grpo.py only. `hl` imports this package in
`hl/commands/train.py` and nowhere else.
"""
