"""Draws a `SplatScene` through the public function, and takes its gradients."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from cuda_rasterizer import Rendering, native, rasterize
from tests.cuda_rasterizer.scenes import SplatScene


def draw(scene: SplatScene, backend: str = "cpu", **options: Any) -> Rendering:
    """The scene's picture by one backend; `options` as `rasterize` has them.

    "cuda" takes float32 alone and gets it, while gradients go to the scene's own tensors.
    """
    arguments = {**scene.projection, "background": scene.background, **options}
    splats = scene.splats
    if backend == "cuda":
        splats = tuple(map(in_float32, splats))
        arguments = {name: in_float32(value) for name, value in arguments.items()}
    return rasterize(*splats, **arguments, backend=backend)


def in_float32(value: Any) -> Any:
    """A tensor, or those of a tuple, in float32, differentiably; anything else as it is."""
    if isinstance(value, tuple):
        return tuple(map(in_float32, value))
    return value.float() if isinstance(value, Tensor) else value


def seeds_of(rendering: Rendering) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients for colour, alpha and depth to begin a backward with, always the same."""
    random = torch.Generator().manual_seed(17)
    pictures = (rendering.color, rendering.alpha, rendering.depth)
    drawn = [torch.randn(p.shape, generator=random, dtype=torch.float64) for p in pictures]
    return tuple(seed.to(p.dtype) for seed, p in zip(drawn, pictures, strict=True))


def backward(rendering: Rendering) -> None:
    """Backward from colour, alpha and depth at once."""
    pictures = (rendering.color, rendering.alpha, rendering.depth)
    torch.autograd.backward(pictures, seeds_of(rendering))


def draw_with_gradients(
    scene: SplatScene, backend: str = "cpu", **options: Any
) -> tuple[Rendering, dict[str, Tensor]]:
    """The picture and the gradient of everything that has one, the 2-D means included."""
    scene = scene.with_gradients()
    rendering = draw(scene, backend, **options)
    rendering.means_2d.retain_grad()
    backward(rendering)
    gradients = {name: leaf.grad for name, leaf in scene.leaves()}
    gradients["means_2d"] = rendering.means_2d.grad
    return rendering, gradients


@contextmanager
def instruction_set(name: str) -> Iterator[None]:
    """Another instruction set for the time being."""
    before = native.instruction_set()
    native.use_instruction_set(name)
    try:
        yield
    finally:
        native.use_instruction_set(before)


@contextmanager
def recorded_kernels(monkeypatch: Any) -> Iterator[list[str]]:
    """Names of the kernels that run meanwhile."""
    names: list[str] = []
    call: Callable[..., None] = native.call

    def record(kernel: Any, dtype: torch.dtype, params: Any) -> None:
        names.append(kernel)
        call(kernel, dtype, params)

    with monkeypatch.context() as patch:
        patch.setattr(native, "call", record)
        yield names
