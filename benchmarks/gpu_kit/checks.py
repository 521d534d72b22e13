"""The kernels of CUDA against those of the CPU: pictures, gradients, loss, Adam, bytes.

Both take the same decisions from numbers that differ by rounding, so that at a few pixels a splat
counts here and not there. Pictures may therefore differ at one pixel in a thousand, and gradients
are compared in sum.
"""

import dataclasses
from typing import Any

import torch
from torch import Tensor

from cuda_rasterizer import AdamGroup, Rendering, adam_step, l1_ssim, rasterize, to_rgba8
from tests.cuda_rasterizer.scenes import HARD_CASES, SplatScene, random_scene

# Of a float32 picture of order 1 whose sums run over a few dozen splats in another order.
CLOSE = 2e-5
# Of all pixels may be apart by more: where a decision fell otherwise.
EXCUSED_SHARE = 1e-3
# Of the sum of a gradient's magnitudes; one decision that fell otherwise moves about 1e-4 of it.
GRADIENT_SHARE = 2e-3

SCENES: dict[str, dict[str, Any]] = {
    "1,000 splats, 64x48": {"count": 1_000, "width": 64, "height": 48, "sh_degree": 3},
    "20,000 splats, 333x251": {"count": 20_000, "width": 333, "height": 251, "sh_degree": 2},
    "100,000 splats, 640x480": {"count": 100_000, "width": 640, "height": 480, "sh_degree": 3},
    "5 channels": {"count": 2_000, "width": 97, "height": 65, "channels": 5},
    "background by pixel": {
        "count": 2_000,
        "width": 97,
        "height": 65,
        "per_pixel_background": True,
    },
}
OPTIONS: tuple[dict[str, Any], ...] = ({}, {"antialiased": True}, {"absolute_gradient": True})


@dataclasses.dataclass(frozen=True)
class Drawn:
    """A picture and every gradient, in main memory."""

    rendering: Rendering
    tensors: dict[str, Tensor]


@dataclasses.dataclass(frozen=True)
class Difference:
    """How far CUDA is from the CPU on one scene; `problems` are sentences, none where right."""

    name: str
    pixels_apart: float  # share
    gradients_apart: float  # worst share of a sum of magnitudes
    problems: tuple[str, ...]


def checked_scenes(seed: int) -> dict[str, SplatScene]:
    """Fresh random scenes, and the cases that rasterisers get wrong first."""
    found = {}
    for place, (name, size) in enumerate(SCENES.items()):
        focal = 0.9 * max(size["width"], size["height"])
        found[name] = random_scene(
            seed + place, dtype=torch.float32, scale_range=(2 / focal, 12 / focal), **size
        )
    for name, make in HARD_CASES.items():
        found[name] = make(torch.float32)
    return found


def difference(
    name: str, scene: SplatScene, device: torch.device, fast: str, truth: str, **options: Any
) -> Difference:
    """Draws a scene by `fast` on the device and by `truth` on the CPU, and compares."""
    ours = drawn(scene, device, fast, **options)
    theirs = drawn(scene, torch.device("cpu"), truth, **options)
    problems = []
    apart = 0.0
    for part in ("color", "alpha", "depth"):
        a, b = ours.tensors[part], theirs.tensors[part]
        if not bool(torch.isfinite(a).all()):
            problems.append(f"{part} is not finite")
        scale = 1.0 if part != "depth" else max(1.0, float(b.abs().max())) if b.numel() else 1.0
        off = (a - b).abs() > CLOSE * scale
        pixels = off.any(dim=-1) if off.dim() == 3 else off
        apart = max(apart, float(pixels.float().mean()))
    if apart > max(EXCUSED_SHARE, 1.5 / (scene.width * scene.height)):
        problems.append(f"{100 * apart:.2g} % of the pixels differ")
    worst = 0.0
    for part in theirs.tensors.keys() - {"color", "alpha", "depth"}:
        a, b = ours.tensors[part], theirs.tensors[part]
        total = float(b.abs().sum())
        share = float((a - b).abs().sum()) / total if total > 0 else float(a.abs().sum())
        worst = max(worst, share)
        if not share <= GRADIENT_SHARE:
            problems.append(f"the gradient of {part} is off by {share:.2g} of its sum")
    radii = (ours.rendering.radii.cpu() != theirs.rendering.radii).any(dim=1).sum()
    if int(radii) > max(1, len(scene.means) // 1000):
        problems.append(f"{int(radii)} radii differ")
    return Difference(name, apart, worst, tuple(problems))


def drawn(scene: SplatScene, device: torch.device, backend: str, **options: Any) -> Drawn:
    """The picture and the gradients of a fixed weighting of colour, alpha and depth."""
    tensors_there = {
        field.name: value.to(device)
        for field in dataclasses.fields(scene)
        for value in [getattr(scene, field.name)]
        if isinstance(value, Tensor)
    }
    moved = scene.replace(**tensors_there).with_gradients()
    options = moved.projection | options
    rendering = rasterize(*moved.splats, **options, background=moved.background, backend=backend)
    rendering.means_2d.retain_grad()
    random = torch.Generator().manual_seed(17)
    assert rendering.depth is not None
    pictures = (rendering.color, rendering.alpha, rendering.depth)
    seeds = [(torch.rand(p.shape, generator=random) - 0.5).to(device) for p in pictures]
    torch.autograd.backward(pictures, seeds)
    tensors = dict(zip(("color", "alpha", "depth"), (p.detach() for p in pictures), strict=True))
    gradients = {name: leaf.grad for name, leaf in moved.leaves()}
    gradients |= {"means_2d": rendering.means_2d.grad, "absolute": rendering.absolute_gradient}
    tensors |= {name: tensor for name, tensor in gradients.items() if tensor is not None}
    return Drawn(rendering, {name: tensor.cpu() for name, tensor in tensors.items()})


def other_differences(device: torch.device, fast: str, truth: str) -> list[Difference]:
    """Loss, Adam and bytes for the screen."""
    random = torch.Generator().manual_seed(5)
    render, photo = (torch.rand(131, 97, 3, generator=random) for _ in range(2))
    found = [_loss(render, photo, device, fast, truth), _adam(random, device, fast, truth)]
    ours = to_rgba8(1.4 * render.to(device) - 0.2, backend=fast).cpu().int()
    theirs = to_rgba8(1.4 * render - 0.2, backend=truth).int()
    levels = (ours - theirs).abs()
    wrong = int(levels.max()) > 1 or float((levels > 0).float().mean()) > EXCUSED_SHARE
    found.append(Difference("bytes", 0.0, 0.0, ("levels differ",) if wrong else ()))
    return found


def _loss(render: Tensor, photo: Tensor, device: torch.device, fast: str, truth: str) -> Difference:
    results = []
    for place, backend in ((device, fast), (torch.device("cpu"), truth)):
        leaf = render.to(place).clone().requires_grad_()
        terms = l1_ssim(leaf, photo.to(place), 0.2, backend=backend)
        torch.autograd.backward(terms.loss)
        results.append((terms.loss.detach().cpu(), leaf.grad))
    (loss, gradient), (true_loss, true_gradient) = results
    if gradient is None or true_gradient is None:
        return Difference("loss", 0.0, 1.0, ("the loss has no gradient",))
    off = float((gradient.cpu() - true_gradient).abs().sum() / true_gradient.abs().sum())
    problems = []
    if not abs(float(loss - true_loss)) <= 1e-5:  # a mean of 38,000 numbers of order 1
        problems.append(f"the loss is {float(loss)}, expected {float(true_loss)}")
    if not off <= 1e-3:  # the sign of an L1 difference near 0 may flip
        problems.append(f"the gradient of the loss is off by {off:.2g} of its sum")
    return Difference("loss", 0.0, off, tuple(problems))


def _adam(random: torch.Generator, device: torch.device, fast: str, truth: str) -> Difference:
    shapes = ((1000, 3), (1000, 15, 3), (1000,))
    start = [[torch.randn(shape, generator=random) for _ in range(3)] for shape in shapes]
    results = []
    for place, backend in ((device, fast), (torch.device("cpu"), truth)):
        groups = [
            AdamGroup(
                *(parameter.to(place).clone(), gradient.to(place)),
                *(mean.to(place) * 0.1, (mean.to(place) * 0.1) ** 2),
                lr=1e-2,
                step=7,
            )
            for parameter, gradient, mean in start
        ]
        adam_step(groups, beta1=0.9, beta2=0.999, eps=1e-15, backend=backend)
        results.append([group.parameter.cpu() for group in groups])
    off = max(float((a - b).abs().max()) for a, b in zip(*results, strict=True))
    # Steps are of size 1e-2; their rounding is a few units in the last place of numbers up to 4.
    problems = (f"Adam is off by {off:.2g}",) if not off <= 2e-6 else ()
    return Difference("Adam", 0.0, off, problems)


def repeats_exactly(scene: SplatScene, device: torch.device, backend: str) -> bool:
    """Whether two drawings have the same bits with the deterministic mode on."""
    from cuda_rasterizer.determinism import set_deterministic

    set_deterministic(True)
    try:
        first, second = drawn(scene, device, backend), drawn(scene, device, backend)
    finally:
        set_deterministic(False)
    return all(torch.equal(first.tensors[name], second.tensors[name]) for name in first.tensors)
