class Warmer:
    """The model at another temperature, where the caller names none."""

    def __init__(self, model, temperature):
        self.model = model
        self.temperature = temperature

    def __call__(self, prompt, **options):
        return self.model(prompt, **{"temperature": self.temperature, **options})

    def chat(self, messages, **options):
        return self.model.chat(messages, **{"temperature": self.temperature, **options})

    def sample(self, prompt, n, **options):
        return self.model.sample(prompt, n, **{"temperature": self.temperature, **options})

    def map(self, prompts, **options):
        return self.model.map(prompts, **{"temperature": self.temperature, **options})

    def __getattr__(self, name):
        return getattr(self.model, name)
