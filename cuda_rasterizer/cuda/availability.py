"""Whether the CUDA backend can be used here, and if not, why not and what to do about it."""

import functools

import torch

from cuda_rasterizer.cuda import driver, nvrtc
from cuda_rasterizer.errors import RasterizerError


def unavailable_reason(gpu: int | None = None) -> str | None:
    """None where it works; otherwise what is missing, with its fix. Compiles nothing.

    `gpu` is a number that torch counts by; None looks at the one in use.
    """
    try:
        return _reason_of_torch() or _reason_of_gpu(
            torch.cuda.current_device() if gpu is None else gpu
        )
    except torch.OutOfMemoryError as error:  # another program's doing, which passes
        return str(error)


@functools.cache
def _reason_of_torch() -> str | None:
    if torch.version.cuda is None:
        return (
            f"torch {torch.__version__} is built without CUDA; install a build of torch with CUDA "
            "on a machine with an NVIDIA GPU"
        )
    try:
        torch.cuda.init()  # type: ignore[no-untyped-call]
    except torch.OutOfMemoryError:
        raise
    except (RuntimeError, AssertionError) as error:  # torch's own words for driver and GPU
        return f"torch finds no GPU that it can use: {str(error).splitlines()[0]}"
    return None


@functools.cache
def _reason_of_gpu(ordinal: int) -> str | None:
    try:
        compiler = nvrtc.load_compiler()
        gpu = driver.load_driver(ordinal)
        compiler.target_for(gpu.capability)
        return _older_driver(gpu.version, compiler.version)
    except RasterizerError as error:
        return str(error)


def _older_driver(driver_version: str, compiler_version: str) -> str | None:
    """A driver loads what compilers of its own major version make, and of older ones."""
    known, made = (version.split(".")[0] for version in (driver_version, compiler_version))
    if int(known) >= int(made):
        return None
    return (
        f"the driver knows CUDA {driver_version} and NVRTC is {compiler_version}; update the "
        f"driver, or install cuda-bindings and NVRTC of major version {known}"
    )
