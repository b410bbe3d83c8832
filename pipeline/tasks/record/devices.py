"""The device of a task that was sent to a GPU node."""

import logging

from pipeline import settings
from pipeline.errors import BadInput, Retry

log = logging.getLogger(__name__)


def check_gpu() -> None:
    """Log the device that this process uses; raise Retry if a GPU is required (UNDERTONE_GPU) and none is visible."""
    import torch

    if (choice := settings.gpu()) not in ("optional", "required"):
        raise BadInput(f"UNDERTONE_GPU: expected one of optional, required, found {choice[:40]!r}")
    if torch.cuda.is_available():
        log.info("GPU: %s", torch.cuda.get_device_name(0))
    elif choice == "required":
        advice = "free one and clear the task, or set `optional`"
        raise Retry(f"UNDERTONE_GPU is `required`, and this worker sees no GPU; {advice}")
    else:
        log.info("no GPU is visible; the task runs on the CPU (UNDERTONE_GPU=required refuses that)")
