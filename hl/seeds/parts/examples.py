class WithExamples:
    """The model, shown solved questions as earlier turns of every conversation."""

    def __init__(self, model, examples):
        self.model = model
        self.turns = []
        for question, answer in examples:
            self.turns.append({"role": "user", "content": question})
            self.turns.append({"role": "assistant", "content": answer})

    def __call__(self, prompt, system=None, **options):
        first = [{"role": "system", "content": system}] if system else []
        return self.model.chat(first + self.turns + [{"role": "user", "content": prompt}], **options)

    def chat(self, messages, **options):
        first = [message for message in messages if message["role"] == "system"]
        rest = [message for message in messages if message["role"] != "system"]
        return self.model.chat(first + self.turns + rest, **options)

    def sample(self, prompt, n, **options):
        return [self(prompt, **options) for _ in range(n)]

    def map(self, prompts, **options):
        return [self(prompt, **options) for prompt in prompts]

    def __getattr__(self, name):
        return getattr(self.model, name)


def solve(model, question):
    """Answer with solved questions in view."""
    return inner(WithExamples(model, EXAMPLES), question)
