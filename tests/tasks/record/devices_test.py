"""The device of a task that was sent to a GPU node."""

import pytest
import torch

from pipeline.errors import BadInput, Retry
from pipeline.tasks.record.due import check_gpu


def test_a_task_without_the_gpu_it_requires_waits(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """By default it runs on the CPU and logs so; where a GPU is required it is retried."""
    caplog.set_level("INFO", logger="pipeline")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    check_gpu()
    assert "no GPU is visible; the task runs on the CPU" in caplog.text
    monkeypatch.setenv("UNDERTONE_GPU", "required")
    with pytest.raises(Retry, match="this worker sees no GPU"):
        check_gpu()
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda _: "H100")
    check_gpu()
    assert "GPU: H100" in caplog.text
    monkeypatch.setenv("UNDERTONE_GPU", "must")
    with pytest.raises(BadInput, match="expected one of optional, required, found 'must'"):
        check_gpu()
