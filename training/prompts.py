"""Context -> the conversation that a model is trained on: the very one that it is asked with later.

`hl.proposer.prompt` writes it, as for every proposer; here it only gets the model's settings.
"""

from hl.proposer.prompt import render_messages, split_context
from training.contexts import Context
from training.settings import ModelSettings


def chat_messages(context: Context, model: ModelSettings) -> list[dict[str, str]]:
    """The conversation as chat templates take it: `role` and `content` of each turn.

    Args:
        context: What to revise.
        model: Style and room of the prompt; `[proposer]` of the repository that uses the model says the same.
    """
    room, _ = split_context(model.context_tokens, model.reply_tokens)
    messages = render_messages(
        context.to_propose(), max_tokens=room, report_tokens=model.report_tokens, style=model.prompt
    )
    return [{"role": m.role, "content": m.content} for m in messages]
