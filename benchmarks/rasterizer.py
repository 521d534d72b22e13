"""How fast the CPU kernels draw and differentiate, against plain torch and against themselves.

    python -m benchmarks.rasterizer [--threads 2] [--repeats 7] [--json FILE]

The first table sets `cpu` against `reference` in float32 on the same scenes (medians of wall time
in milliseconds, and their ratio; the bar is 100x for forward and backward together). The second
shows how `cpu` grows with splats and with pixels: the time a splat or pixel should stay level.
"""

import argparse
import dataclasses
import json
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from cuda_rasterizer import AdamGroup, adam_step, describe, l1_ssim, rasterize, set_threads
from tests.cuda_rasterizer.scenes import SplatScene, random_scene

BAR = 100  # forward and backward against the reference, DESIGN section 6

# (splats, width, height): what plain torch can still hold in memory with its graph.
COMPARED = ((1_000, 64, 48), (5_000, 128, 96), (20_000, 256, 192))
GROWING_SPLATS = ((10_000, 640, 480), (30_000, 640, 480), (100_000, 640, 480), (300_000, 640, 480))
GROWING_PIXELS = ((50_000, 320, 240), (50_000, 640, 480), (50_000, 1280, 960), (50_000, 2000, 1500))


@dataclasses.dataclass(frozen=True)
class Row:
    """Median milliseconds of each operation, for one scene and backend."""

    splats: int
    width: int
    height: int
    backend: str
    forward: float
    forward_and_backward: float
    loss_and_backward: float
    adam: float


def benchmark_scene(splats: int, width: int, height: int) -> SplatScene:
    """Splats with SH of degree 3 whose footprints are about 1 to 4 pixels wide at any size."""
    pixel = 1 / (0.9 * max(width, height))  # at depth 1; depths are 1 to 6
    scene = random_scene(
        1,
        splats,
        width,
        height,
        dtype=torch.float32,
        sh_degree=3,
        scale_range=(2 * pixel, 12 * pixel),
    )
    return scene.with_gradients()


def milliseconds(action: Callable[[], object], repeats: int) -> float:
    """Median wall time of `action`, after one call that warms up."""
    action()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        action()
        times.append(1e3 * (time.perf_counter() - start))
    return statistics.median(times)


def measured(scene: SplatScene, backend: str, repeats: int) -> Row:
    """Every operation of a training step on one scene."""
    leaves = dict(scene.leaves())
    coefficients = leaves["sh"]
    random = torch.Generator().manual_seed(2)
    target = torch.rand(scene.height, scene.width, 3, generator=random)
    seed = torch.rand(scene.height, scene.width, 3, generator=random) - 0.5
    picture = torch.rand(scene.height, scene.width, 3, generator=random).requires_grad_()
    moments = torch.zeros_like(coefficients), torch.zeros_like(coefficients)
    gradient = torch.rand(coefficients.shape, generator=random)
    parameter = coefficients.detach().clone()

    def draw() -> Tensor:
        return rasterize(
            *scene.splats, **scene.projection, background=scene.background, backend=backend
        ).color

    @torch.no_grad()
    def forward() -> None:
        draw()

    def forward_and_backward() -> None:
        torch.autograd.grad(draw(), list(leaves.values()), seed)

    def loss_and_backward() -> None:
        torch.autograd.grad(l1_ssim(picture, target, 0.2, backend=backend).loss, picture)

    def adam() -> None:
        group = AdamGroup(parameter, gradient, *moments, lr=1e-3, step=10)
        adam_step([group], beta1=0.9, beta2=0.999, eps=1e-15, backend=backend)

    actions = (forward, forward_and_backward, loss_and_backward, adam)
    times = [milliseconds(action, repeats) for action in actions]
    return Row(scene.means.shape[0], scene.width, scene.height, backend, *times)


OPERATIONS = ("forward", "forward_and_backward", "loss_and_backward", "adam")


def compared(repeats: int) -> list[dict[str, dict[str, float]]]:
    """`cpu` and `reference` side by side, printed and returned with their ratios."""
    print(f"{'splats':>8} {'pixels':>10}  {'':22}{'cpu ms':>10}{'reference':>12}{'ratio':>9}")
    results = []
    for size in COMPARED:
        scene = benchmark_scene(*size)
        slow = measured(scene, "reference", max(1, repeats // 3))
        fast = measured(scene, "cpu", repeats)
        ratios = {name: getattr(slow, name) / getattr(fast, name) for name in OPERATIONS}
        for name in OPERATIONS:
            ours, theirs = getattr(fast, name), getattr(slow, name)
            label = name.replace("_", " ")
            pixels = f"{size[1]}x{size[2]}"
            print(
                f"{size[0]:>8} {pixels:>10}  {label:22}{ours:10.3f}{theirs:12.2f}"
                f"{ratios[name]:8.0f}x"
            )
        results.append(
            {
                "cpu": dataclasses.asdict(fast),
                "reference": dataclasses.asdict(slow),
                "ratios": ratios,
            }
        )
    return results


def growing(sizes: tuple[tuple[int, int, int], ...], repeats: int) -> list[dict[str, object]]:
    """`cpu` alone over a row of sizes."""
    print(
        f"{'splats':>8} {'pixels':>10}{'forward':>10}{'+ backward':>12}{'us/splat':>10}{'us/px':>8}"
    )
    results = []
    for size in sizes:
        row = measured(benchmark_scene(*size), "cpu", repeats)
        whole = 1e3 * row.forward_and_backward
        a_splat, a_pixel = whole / row.splats, whole / (row.width * row.height)
        pixels = f"{row.width}x{row.height}"
        print(
            f"{row.splats:>8} {pixels:>10}{row.forward:12.2f}{row.forward_and_backward:12.2f}"
            f"{a_splat:12.3f}{a_pixel:12.4f}"
        )
        results.append(
            dataclasses.asdict(row)
            | {"microseconds_a_splat": a_splat, "microseconds_a_pixel": a_pixel}
        )
    return results


def main() -> None:
    """Measure, print, and write JSON where asked to."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, default=0, help="of the kernels; 0 is every core")
    parser.add_argument("--repeats", type=int, default=7, help="measurements a median is taken of")
    parser.add_argument("--compare-only", action="store_true", help="skip the growth tables")
    parser.add_argument("--json", type=Path, help="where to write the figures")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    set_threads(arguments.threads)
    backend = describe("cpu")
    print(f"{backend}; torch {torch.__version__}, one thread, float32, SH degree 3\n")
    side_by_side = compared(arguments.repeats)
    results: dict[str, object] = {"backend": backend, "compared": side_by_side}
    if not arguments.compare_only:
        print("\nmore splats:")
        results["splats"] = growing(GROWING_SPLATS, arguments.repeats)
        print("\nmore pixels:")
        results["pixels"] = growing(GROWING_PIXELS, arguments.repeats)
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=2) + "\n", encoding="utf-8")
    worst = min(entry["ratios"]["forward_and_backward"] for entry in side_by_side)
    verdict = "reached" if worst >= BAR else "missed"
    print(f"\nforward + backward: at least {worst:.0f}x the reference; bar of {BAR}x {verdict}")


if __name__ == "__main__":
    main()
