"""What models put before an answer of any kind."""

import re

_THOUGHT = re.compile(r"<think>.*?(?:</think>|\Z)", re.DOTALL)


def without_thinking(text: str) -> str:
    """The answer without its reasoning: `<think>...</think>`, to the end where that is cut off.

    Some servers give the opening tag to the model, so that the answer holds the closing one alone.
    """
    return _THOUGHT.sub("", text).rpartition("</think>")[2]
