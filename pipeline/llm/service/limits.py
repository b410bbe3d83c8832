"""Limits on requests, all in one place, and the upper bounds that follow from them.

The limit by default is no part of what identifies an answer, so it can be changed and answers stay valid.
"""

from pipeline.errors import BadInput
from pipeline.llm.request import MODERATION, Request, dump_json

OUTPUT_TOKENS = 2_048  # a sentence or two, and the thinking that some models put before it
OUTPUT_TOKENS_OF = {"graded": 4_096, "recover": 4_096}  # by prompt, without its language: several sentences
LLAMA_VERDICT = 3  # of a Llama that is asked for yes or no (ImpScore, figure 15)
ANSWER_BYTES = 4_000_000  # of one answer; the rest is not read
FILE_BYTES = 2_000_000_000  # of a batch's file, which goes to the disk
FILE_SECONDS = 3_600.0  # that a batch's file may take up or down
CONNECT_SECONDS = 10.0
LOGPROB_TOKENS = 32  # of an answer, the last ones, whose log probabilities are kept
EXCERPT = 200  # characters that are shown of an answer that cannot be read
FIRST_MALFORMED = 5  # if so many answers come and none can be read, the address is taken to be wrong
MALFORMED_IN_A_ROW = 20  # the same after answers that could be read
REJECTED_IN_A_ROW = 20  # requests, without an answer that shows that the address is right
RETRIES = 8  # of a request that cost nothing (429, 503, no connection)
RESENDS = 2  # of a request that may have been billed without an answer, within a run
PAUSE = 0.5  # seconds before the first resend after an error status, twice that before the second
PARAMS = ("max_completion_tokens", "max_tokens")  # names of the limit on output tokens
_RESERVED = {"model", "messages", "stream", "n", "best_of"}  # parameters that would change what we count on
_TEMPLATE = 256  # tokens that a server's chat template may add to all messages
_MESSAGE = 16  # and to each


def bound_tokens(request: Request, output_tokens: int | None = None) -> tuple[int, int]:
    """Bound the input and output tokens of a request: a token of input is at least one byte of what is sent."""
    size = len(dump_json([request.messages, request.params]).encode())
    most_output = 0 if request.prompt == MODERATION else limit_output(request, output_tokens)
    return size + _MESSAGE * len(request.messages) + _TEMPLATE, most_output


def is_doubtful(status: int) -> bool:
    """Return whether a model may have answered behind an error of this status; it was not asked at 429 and 503."""
    return status == 408 or (status >= 500 and status != 503)


def limit_output(request: Request, output_tokens: int | None = None) -> int:
    """Return the output tokens of a request: its own limit, else `output_tokens`, else the limit of its prompt."""
    if own_limits := check_params(request):
        return max(own_limits)
    question = request.prompt.rpartition("_")[0]
    if question == "problematic" and "llama" in request.model.lower():
        return output_tokens or LLAMA_VERDICT
    return output_tokens or OUTPUT_TOKENS_OF.get(question, OUTPUT_TOKENS)


def check_params(request: Request) -> list[int]:
    """Check the parameters of a request; return its own limits on output tokens. Some servers read -1 as no limit."""
    if clash := _RESERVED & request.params.keys():
        raise BadInput(f"the parameter {min(clash)!r} cannot be set")
    limits = [(name, request.params[name]) for name in PARAMS if name in request.params]
    for name, limit in limits:
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise BadInput(f"the parameter {name!r} should be a whole number above 0, found {limit!r:.50}")
    return [limit for _, limit in limits]
