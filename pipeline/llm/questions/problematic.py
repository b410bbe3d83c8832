"""Read whether a model finds a text problematic, zero-shot, yes or no (ImpScore, section 7.2, figure 15; IMP-42)."""

import re
from typing import Literal

from pipeline.llm.questions import answer

Answer = Literal["yes", "no", "other"]
_MARKS = r"[\s\"'“”‘’「」『』*_`(（\[<]*"
_START = rf"^{_MARKS}(?:(?:answer|答案)[\s*_]*[:：]{_MARKS})?"
_ALONE = r"(?!\w|['’]\w)(?!\s*(?:/|and|or|both|或|和)\s*(?:yes|no|是|否))"  # "yes and no" is neither
_YES = re.compile(rf"{_START}(?:yes|是的?|有(?:问题)?){_ALONE}", re.IGNORECASE)
_NO = re.compile(rf"{_START}(?:no|否|不是?|没有?(?:问题)?){_ALONE}", re.IGNORECASE)


def parse(text: str) -> Answer:
    """Return what the answer begins with: yes, no, or other for anything else, such as a refusal or "yes and no"."""
    reply = answer.strip_thinking(text)
    return "yes" if _YES.match(reply) else "no" if _NO.match(reply) else "other"
