"""What each part of a step must at least move and compute, and how fast this device does both.

Bytes are those of the inputs read once and the outputs written once; passes over scratch count
where the method cannot do without (sorting). Operations are fused multiply-adds of float32, counted
in the source as it stands; a floor is the slower of the two.
"""

import ctypes
import dataclasses
from typing import Any

import torch

from benchmarks.gpu_kit.clocks import Clock, median_ms
from benchmarks.gpu_kit.scenes import TrainingScene
from cuda_rasterizer import CLASSIC, reference
from cuda_rasterizer.projected import Projected

FLOAT = 4
SPLAT = FLOAT * (3 + 4 + 3 + 1)  # mean, quaternion, scales, opacity
SH = FLOAT * 16 * 3
ON_SCREEN = FLOAT * (2 + 3 + 1 + 1 + 3 + 2)  # mean, conic, depth, opacity, colour, radii
RECORD = FLOAT * 16
PARAMETERS = SPLAT + SH
KEY_AND_VALUE = 8
DEPTH_PASSES = 4
TILE_PASSES = 2
PIXEL_FORWARD = FLOAT * (3 + 1 + 1 + 1)  # colour, alpha, transmittance, stop
PIXEL_BACKWARD = FLOAT * (3 + 1 + 1)  # gradient of colour, transmittance, stop

# Per pixel and splat that counts there. Forward: the alpha (2 differences, 4 of the exponent, 4 in
# place of the exponential, 2 of opacity and limits), then colour and transmittance (5).
FORWARD_FMAS = 17
# Backward: the alpha once more (12), transmittance by division (4), gradients of alpha (8), of
# three colours (3) and six moments (9), and a thirty-second of the reduction of nine sums (9).
BACKWARD_FMAS = 45

_RATE_SOURCE = """
#include "dialect.h"
namespace splatscope {
struct RateParams { float* out; int64_t rounds; };
KERNEL(multiply_add_rate, RateParams, 256) {
    float a = float(thread_index()), b = a + 1.0f, c = a + 2.0f, d = a + 3.0f;
    for (int64_t round = 0; round < p.rounds; ++round) {
#pragma unroll
        for (int i = 0; i < 16; ++i) {
            a = fused(a, 0.999f, 0.1f);
            b = fused(b, 0.998f, 0.2f);
            c = fused(c, 0.997f, 0.3f);
            d = fused(d, 0.996f, 0.4f);
        }
    }
    p.out[block_index() * block_size() + thread_index()] = a + b + c + d;
}
}
"""
_FMAS_A_ROUND = 64
_COPIED_BYTES = 2**30


@dataclasses.dataclass(frozen=True)
class Rates:
    """Measured on this device."""

    bytes_per_s: float
    fmas_per_s: float


@dataclasses.dataclass(frozen=True)
class Counts:
    """What a scene made of itself: `pairs` are splats that count at a pixel, over all pixels."""

    splats: int
    seen: int
    instances: int
    pixels: int
    pairs: int


@dataclasses.dataclass(frozen=True)
class Work:
    """Bytes to move and multiply-adds to do."""

    bytes: float
    fmas: float = 0.0

    def milliseconds(self, rates: Rates) -> float:
        """The slower of the two, at full rate."""
        return 1e3 * max(self.bytes / rates.bytes_per_s, self.fmas / rates.fmas_per_s)

    def limited_by(self, rates: Rates) -> str:
        """Which of the two that is."""
        by_bytes = self.bytes / rates.bytes_per_s >= self.fmas / rates.fmas_per_s
        return "memory" if by_bytes else "arithmetic"


def work_of_step(counts: Counts) -> dict[str, Work]:
    """The work of each part of a training step."""
    n, seen, instances = counts.splats, counts.seen, counts.instances
    pixels, pairs = counts.pixels, counts.pairs
    depth_sort = DEPTH_PASSES * 2 * KEY_AND_VALUE * seen
    tile_sort = TILE_PASSES * 2 * (KEY_AND_VALUE - 2) * instances
    return {
        "projection": Work(n * (SPLAT + ON_SCREEN) + seen * SH),
        "binning and sorts": Work(n * ON_SCREEN + seen * RECORD + depth_sort + tile_sort),
        "blending": Work(
            instances * (FLOAT + RECORD) + pixels * PIXEL_FORWARD, pairs * FORWARD_FMAS
        ),
        "blending backward": Work(
            instances * (FLOAT + RECORD) + pixels * PIXEL_BACKWARD + seen * FLOAT * 9,
            pairs * BACKWARD_FMAS,
        ),
        "projection backward": Work(n * (SPLAT + ON_SCREEN + PARAMETERS) + seen * SH),
        "loss": Work(pixels * FLOAT * 9),  # render, photo and the gradient
        "Adam": Work(n * PARAMETERS * 7),  # four reads, three writes
    }


# The part that each module of kernels belongs to.
PART_OF_MODULE = {
    "project": "projection",
    "bin": "binning and sorts",
    "sort": "binning and sorts",
    "blend": "blending",
    "blend_backward": "blending backward",
    "splat_gradients": "blending backward",
    "project_backward": "projection backward",
    "loss": "loss",
    "adam": "Adam",
    "rgba8": "picture for the screen",
}


def measured_bandwidth(device: torch.device, clock: Clock, size: int = _COPIED_BYTES) -> float:
    """Bytes a second of a plain copy, those read and those written."""
    source = torch.zeros(size, dtype=torch.uint8, device=device)
    target = torch.empty_like(source)
    return 2 * size / (median_ms(lambda: target.copy_(source), clock, 10) / 1e3)


class _RateParams(ctypes.Structure):
    _fields_ = (("out", ctypes.c_void_p), ("rounds", ctypes.c_int64))


def measured_multiply_adds(device: torch.device, clock: Clock) -> float:
    """Fused multiply-adds a second of a kernel that does nothing else."""
    from cuda_rasterizer.cuda.driver import load_driver
    from cuda_rasterizer.cuda.nvrtc import load_compiler

    driver, compiler = load_driver(device.index or 0), load_compiler()
    target = compiler.target_for(driver.capability)
    image = compiler.compile("multiply_add_rate", _RATE_SOURCE, target).image
    function = driver.function(driver.load_module(image), "multiply_add_rate")
    grid, block, rounds = 32 * driver.multiprocessors, 256, 2000
    out = torch.empty(grid * block, device=device)
    params = _RateParams(out.data_ptr(), rounds)
    stream = torch.cuda.current_stream(device).cuda_stream

    def launch() -> None:
        driver.launch(function, params, grid=grid, block=block, shared_bytes=0, stream=stream)

    return grid * block * rounds * _FMAS_A_ROUND / (median_ms(launch, clock, 5) / 1e3)


@torch.no_grad()
def projected(scene: TrainingScene) -> Projected:
    """The scene on the screen, by the reference, on the scene's device."""
    width, height = scene.size
    return reference.project(
        scene.means,
        scene.quaternions,
        scene.log_scales.exp(),
        scene.logits.sigmoid(),
        world_to_camera=scene.world_to_camera,
        intrinsics=scene.intrinsics,
        width=width,
        height=height,
        sh=scene.sh_dc,
        cutoffs=CLASSIC,
        antialiased=False,
    )


@torch.no_grad()
def count_work(scene: TrainingScene, sampled_pixels: int = 256) -> Counts:
    """Counts a scene; pairs are taken from a sample of the pixels, good to a few per cent.

    Instances are tiles of the splats' boxes, of which exact tests leave out a few.
    """
    width, height = scene.size
    screen = projected(scene)
    seen = (screen.radii[:, 0] > 0).nonzero().squeeze(1)
    tiles = torch.tensor([-(-width // 16), -(-height // 16)], device=seen.device)
    means, radii = screen.means_2d[seen], screen.radii[seen]
    low = torch.div(means - radii, 16, rounding_mode="floor").clamp(min=0)
    high = torch.div(means + radii, 16, rounding_mode="floor") + 1
    spans = (torch.minimum(high, tiles) - low).clamp(min=0)
    order = seen[screen.depths[seen].argsort()]
    pairs = _pairs_a_pixel(screen, order, width, height, sampled_pixels)
    return Counts(
        splats=len(scene.means),
        seen=len(seen),
        instances=int(spans.prod(dim=1).sum()),
        pixels=width * height,
        pairs=int(pairs * width * height),
    )


def _pairs_a_pixel(
    screen: Projected, order: torch.Tensor, width: int, height: int, sampled: int
) -> float:
    """How many splats count at a pixel on average, by trying all of them at a few pixels."""
    random = torch.Generator().manual_seed(3)
    x = torch.randint(width, (sampled,), generator=random).to(order.device) + 0.5
    y = torch.randint(height, (sampled,), generator=random).to(order.device) + 0.5
    means, conics = screen.means_2d[order], screen.conics[order]
    opacities = screen.opacities[order]
    total = torch.zeros((), dtype=torch.int64, device=order.device)
    for px, py in zip(x, y, strict=True):
        dx, dy = px - means[:, 0], py - means[:, 1]
        power = -0.5 * (conics[:, 0] * dx * dx + conics[:, 2] * dy * dy) - conics[:, 1] * dx * dy
        alphas = (opacities * power.exp()).clamp(max=CLASSIC.alpha_ceiling)
        hits = alphas[alphas >= CLASSIC.alpha_floor]
        left = torch.cumprod(1 - hits, dim=0)
        total = total + (left >= CLASSIC.stop_transmittance).sum()
    return float(total) / sampled if sampled else 0.0


def as_json(counts: Counts, rates: Rates) -> dict[str, Any]:
    """Counts and floors of a scene for the file."""
    floors = {
        part: {"ms": work.milliseconds(rates), "limited_by": work.limited_by(rates)}
        for part, work in work_of_step(counts).items()
    }
    return {"counts": dataclasses.asdict(counts), "floors": floors}
