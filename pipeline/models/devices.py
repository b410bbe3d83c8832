"""The device that a model computes on."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    from torch import Tensor


def choose_device(device: str | None = None) -> str:
    """Return the device, by default `cuda` if there is a GPU, else `cpu`."""
    import torch

    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    if device == "cuda":  # cuDNN plans its attention in bfloat16 anew for each shape, and batches have many shapes
        torch.backends.cuda.enable_cudnn_sdp(False)
    return device


def move(tensor: "Tensor", device: str) -> "Tensor":
    """Copy a tensor to the device, without waiting for what a GPU computes."""
    return tensor.pin_memory().to(device, non_blocking=True) if device == "cuda" else tensor


def fetch(tensor: "Tensor") -> "npt.NDArray[np.float32]":
    """Copy a tensor to the CPU, without waiting for what other threads ask of a GPU."""
    import torch

    if not tensor.is_cuda:
        return tensor.numpy()
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
    event = torch.cuda.Event()  # type: ignore[no-untyped-call]
    host.copy_(tensor, non_blocking=True)
    event.record()
    event.synchronize()
    return host.numpy()
