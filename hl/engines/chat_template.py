"""A model's own chat template: conversations -> the token ids that the model continues. Imports no model library."""

from collections.abc import Mapping, Sequence
from typing import Any

from hl.engines.base import wire_messages
from hl.errors import EngineError
from hl.types import Message


class ChatTemplate:
    """The template of one tokenizer, with its arguments."""

    def __init__(self, tokenizer: Any, base: str, arguments: Mapping[str, Any] | None = None) -> None:
        """Check that there is one.

        Args:
            tokenizer: Of transformers.
            base: The model's name, for messages.
            arguments: Such as `{"enable_thinking": False}`.

        Raises:
            EngineError: The tokenizer has none.
        """
        if not tokenizer.chat_template:
            raise EngineError(
                f"the tokenizer of {base} has no chat template", hint="take a model made for chat (-Instruct)"
            )
        self._tokenizer = tokenizer
        self._base = base
        self._arguments = arguments or {}
        self._accepts_plain = False

    def render(self, messages: Sequence[Message]) -> list[int] | None:
        """The token ids up to where the reply begins; None for a conversation that the template refuses.

        Raises:
            EngineError: It refuses a plain question too: the arguments are wrong, not the conversation.
        """
        try:
            return self._render(messages)
        except Exception as error:  # templates raise what they like
            self._check_plain(error)
            return None

    def _render(self, messages: Sequence[Message]) -> list[int]:
        rendered = self._tokenizer.apply_chat_template(
            wire_messages(tuple(messages)), add_generation_prompt=True, return_dict=True, **self._arguments
        )
        return list(rendered["input_ids"])

    def _check_plain(self, reason: Exception) -> None:
        if self._accepts_plain:
            return
        try:
            self._render((Message("user", "Hello"),))
        except Exception:
            first = (str(reason).strip().splitlines() or [type(reason).__name__])[0][:300]
            raise EngineError(
                f"the chat template of {self._base} fails with chat_template_kwargs: {first}",
                hint="hl config list --origin",
            ) from None
        self._accepts_plain = True
