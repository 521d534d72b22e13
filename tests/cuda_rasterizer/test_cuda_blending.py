"""Compositing on the device and its backward, run by the emulator, against the CPU kernels.

The CPU kernels are held to the reference elsewhere; here the two meet on equal lists, so that
stops, too, can be compared.
"""

import dataclasses
from dataclasses import dataclass
from typing import Any

import pytest
import torch
from torch import Tensor

from cuda_rasterizer import cpu_backend, cuda_backend, debug
from cuda_rasterizer.cuda import sources
from cuda_rasterizer.cuda.launches import launch
from cuda_rasterizer.cuda.structures import BackwardPassParams
from cuda_rasterizer.cutoffs import CLASSIC, GSPLAT, Cutoffs
from cuda_rasterizer.determinism import is_deterministic, set_deterministic
from cuda_rasterizer.kernel_arguments import BlendGradients, pointer, tile_params
from cuda_rasterizer.projected import Projected
from tests.cuda_emulator.launcher import Order
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.device_kernels import CPU, projected_scene
from tests.cuda_rasterizer.margins import pixel_margins
from tests.cuda_rasterizer.scenes import SplatScene

pytestmark = [pytest.mark.emulator, pytest.mark.usefixtures("emulated", "fast_backend", "checked")]

CUTOFFS = {
    "classic": CLASSIC,
    "gsplat": GSPLAT,
    "capped": Cutoffs(footprint_cap=2.0),
    "no stop": Cutoffs(stop_transmittance=0.0, stop_inclusive=True),
    "negative stop": Cutoffs(stop_transmittance=-1.0, stop_inclusive=True),
}
CLEAR = 1e-5
EVERYTHING = frozenset(("means_2d", "conics", "depths", "opacities", "colors", "background"))


@pytest.fixture
def checked(monkeypatch):
    """Fresh memory is poisoned, and what kernels leave in it must be finite."""
    monkeypatch.setattr(debug, "_is_on", True)


@pytest.fixture(params=[False, True], ids=["atomic", "deterministic"])
def deterministic(request):
    before = is_deterministic()
    set_deterministic(request.param)
    yield request.param
    set_deterministic(before)


@dataclass(frozen=True)
class Composited:
    """A picture and, where asked for, gradients by name."""

    color: Tensor
    alpha: Tensor
    depth: Tensor
    transmittance: Tensor
    stops: Tensor
    gradients: dict[str, Tensor]


def seeds(color: Tensor, alpha: Tensor, depth: Tensor) -> dict[str, Tensor]:
    random = torch.Generator().manual_seed(23)
    pictures = {"color": color, "alpha": alpha, "depth": depth}
    return {name: torch.randn(p.shape, generator=random) for name, p in pictures.items()}


def composited(
    backend: Any,
    projected: Projected,
    background: Tensor | None,
    size: tuple[int, int],
    cutoffs: Cutoffs = CLASSIC,
    *,
    given: tuple[str, ...] = ("color", "alpha", "depth"),
    wanted: frozenset[str] = EVERYTHING,
    absolute: bool = True,
) -> Composited:
    """Forward, and backward from the pictures `given` to the inputs `wanted`."""
    color, alpha, depth, saved = backend.blend(
        projected, background, *size, cutoffs, with_depth=True, for_backward=True
    )
    incoming = {name: s for name, s in seeds(color, alpha, depth).items() if name in given}
    sources = {name: getattr(projected, name) for name in EVERYTHING - {"background"}}
    sources["background"] = background
    gradients = {
        name: torch.full_like(source, float("nan"))
        for name, source in sources.items()
        if name in wanted and source is not None
    }
    for name, picture in (("depths", "depth"), ("colors", "color"), ("background", "color")):
        if picture not in given:
            gradients.pop(name, None)
    targets = BlendGradients(**{name: gradients.get(name) for name in sorted(EVERYTHING)})
    summed = torch.full_like(projected.means_2d, float("nan")) if absolute else None
    backend.blend_backward(
        *(saved, projected.colors, background, cutoffs),
        tuple(incoming.get(name) for name in ("color", "alpha", "depth")),
        *(targets, summed),
    )
    if summed is not None:
        gradients["absolute"] = summed
    return Composited(color, alpha, depth, saved.transmittance, saved.stops, gradients)


def inputs_of(scene: SplatScene, cutoffs: Cutoffs = CLASSIC) -> tuple[Any, ...]:
    background = scene.background
    return (
        projected_scene(scene, cutoffs),
        None if background is None else background.float().contiguous(),
        (scene.width, scene.height),
    )


def relative_error(found: Tensor, truth: Tensor) -> float:
    assert found.isfinite().all()
    norm = float(truth.double().norm())
    difference = float((found.double() - truth.double()).norm())
    return difference / norm if norm > 0 else difference


def assert_equal_to_the_cpu(
    scene: SplatScene, cutoffs: Cutoffs = CLASSIC, limit: float = 1e-4, **options: Any
) -> None:
    """Pictures and stops where no decision is near, gradients as a whole."""
    inputs = inputs_of(scene, cutoffs)
    truth = composited(cpu_backend, *inputs, cutoffs, **options)
    found = composited(cuda_backend, *inputs, cutoffs, **options)
    clear = pixel_margins(scene.to(torch.float32).to(torch.float64), cutoffs) > CLEAR
    assert torch.equal(found.stops[clear], truth.stops[clear])
    for name in ("color", "alpha", "depth", "transmittance"):
        exact, drawn = getattr(truth, name)[clear], getattr(found, name)[clear]
        # The two exponentials differ by some units in the last place, which a stack adds up.
        torch.testing.assert_close(drawn, exact, rtol=2e-5, atol=2e-6, msg=name)
    assert found.gradients.keys() == truth.gradients.keys()
    for name, gradient in found.gradients.items():
        # Float32 sums of some thousand terms in another order; a flipped pixel weighs more.
        assert relative_error(gradient, truth.gradients[name]) < limit, name


@pytest.mark.parametrize("cutoffs", CUTOFFS.values(), ids=CUTOFFS.keys())
@pytest.mark.usefixtures("deterministic")
def test_random_scenes_are_those_of_the_cpu(cutoffs):
    assert_equal_to_the_cpu(scenes.random_scene(1, 150, 61, 43), cutoffs)


@pytest.mark.usefixtures("deterministic")
def test_without_a_floor_every_splat_is_on_every_tile():
    assert_equal_to_the_cpu(scenes.random_scene(1, 15, 33, 20), Cutoffs(alpha_floor=0.0))


@pytest.mark.parametrize("channels", [0, 1, 2, 3, 4, 5, 9])
@pytest.mark.usefixtures("deterministic")
def test_any_number_of_channels(channels):
    assert_equal_to_the_cpu(scenes.random_scene(2, 60, 35, 30, channels=channels))


@pytest.mark.parametrize("channels", [3, 6])
@pytest.mark.parametrize("background", ["none", "constant", "per pixel"])
@pytest.mark.usefixtures("deterministic")
def test_backgrounds(channels, background):
    scene = scenes.random_scene(
        3, 40, 33, 20, channels=channels, per_pixel_background=background == "per pixel"
    )
    if background == "none":
        scene = dataclasses.replace(scene, background=None)
    assert_equal_to_the_cpu(scene)


def test_a_constant_background_of_more_pixels_than_one_block_sums():
    scene = scenes.random_scene(4, 3, 90, 60)
    assert scene.width * scene.height > sources.constants()["background_pixels"]
    assert_equal_to_the_cpu(scene, wanted=frozenset(("background",)), absolute=False)


@pytest.mark.parametrize("case", scenes.HARD_CASES)
@pytest.mark.usefixtures("deterministic")
def test_hard_cases(case):
    on_a_decision = case in ("opaque stack", "equal depths")
    assert_equal_to_the_cpu(scenes.hard_case(case), limit=5e-2 if on_a_decision else 5e-3)


@pytest.mark.parametrize("count", [1, 2, 3])
@pytest.mark.parametrize("size", [(1, 1), (17, 31)])
@pytest.mark.usefixtures("deterministic")
def test_few_splats_in_small_pictures(count, size):
    assert_equal_to_the_cpu(scenes.random_scene(count, count, *size, scale_range=(0.2, 0.5)))


@pytest.mark.usefixtures("deterministic")
def test_lists_longer_than_a_batch():
    # Some 700 faint splats on each tile: three batches, and no pixel stops.
    scene = scenes.random_scene(5, 700, 20, 18, scale_range=(0.3, 0.6), opacity_range=(0.005, 0.01))
    assert_equal_to_the_cpu(scene)


@pytest.mark.usefixtures("deterministic")
def test_the_transmittance_is_recovered_to_the_last_digits_behind_a_thousand_splats():
    scene = scenes.random_scene(
        *(5, 2000, 20, 18), scale_range=(0.8, 1.6), opacity_range=(0.004, 0.006)
    )
    # Either is within 1.3e-6 of float64, by another order of its sums; divisions as rough as a
    # device's own reciprocal would leave 2e-5.
    assert_equal_to_the_cpu(scene, limit=2e-6)


@pytest.mark.parametrize("channels", [3, 5])
@pytest.mark.usefixtures("deterministic")
def test_saturated_pixels_stop_in_a_later_batch(channels):
    scene = scenes.random_scene(
        *(6, 900, 24, 17),
        channels=channels,
        scale_range=(0.8, 1.6),
        opacity_range=(0.02, 0.06),
    )
    truth = composited(cpu_backend, *inputs_of(scene))
    late = (truth.stops > 256) & (truth.transmittance < 1.1e-4)
    assert late.all(), "every pixel is meant to stop in a later batch"
    assert_equal_to_the_cpu(scene)


@pytest.mark.usefixtures("deterministic")
def test_opacity_at_the_ceiling_leaves_its_moments_no_gradient():
    scene = scenes.scene_of(
        [[0.0, 0.0, 2.0]], opacities=1.0, scales=2.0, background=[0.2, 0.4, 0.9]
    )
    found = composited(cuda_backend, *inputs_of(scene), wanted=EVERYTHING)
    assert found.alpha.max() == torch.tensor(0.99)
    # One broad splat: its middle is limited, its rim is not.
    assert_equal_to_the_cpu(scene)


@pytest.mark.parametrize(("inclusive", "left"), [(False, 0.25), (True, 0.5)])
@pytest.mark.usefixtures("deterministic")
def test_leaving_exactly_the_stop_stops_where_that_is_asked_for(inclusive, left):
    # Alphas are exactly 1/2, by the ceiling, so the second splat leaves exactly the stop.
    cutoffs = Cutoffs(alpha_ceiling=0.5, stop_transmittance=0.25, stop_inclusive=inclusive)
    scene = scenes.scene_of(
        [[0.0, 0.0, 2.0], [0.0, 0.0, 3.0], [0.0, 0.0, 4.0]],
        opacities=1.0,
        scales=8.0,
        colors=[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
    )
    inputs = inputs_of(scene, cutoffs)
    truth = composited(cpu_backend, *inputs, cutoffs)
    found = composited(cuda_backend, *inputs, cutoffs)
    assert (found.transmittance == left).all()
    assert torch.equal(found.stops, truth.stops)
    for name, gradient in found.gradients.items():
        # A handful of terms a pixel.
        assert relative_error(gradient, truth.gradients[name]) < 1e-5, name


@pytest.mark.parametrize("channels", [3, 5])
@pytest.mark.parametrize("with_depth", [False, True])
def test_a_picture_without_a_backward_is_the_same(channels, with_depth):
    inputs = inputs_of(scenes.random_scene(11, 40, 33, 20, channels=channels))
    with_backward = composited(cuda_backend, *inputs)
    color, alpha, depth, saved = cuda_backend.blend(
        *inputs[:2], *inputs[2], CLASSIC, with_depth=with_depth, for_backward=False
    )
    assert saved is None
    assert torch.equal(color, with_backward.color)
    assert torch.equal(alpha, with_backward.alpha)
    assert torch.equal(depth, with_backward.depth) if with_depth else depth is None


WANTED = {
    "colours": frozenset(("colors",)),
    "background": frozenset(("background",)),
    "means": frozenset(("means_2d",)),
    "opacities and colours": frozenset(("opacities", "colors")),
    "depths": frozenset(("depths",)),
    "conics": frozenset(("conics",)),
}


@pytest.mark.parametrize("wanted", WANTED.values(), ids=WANTED.keys())
@pytest.mark.parametrize("channels", [3, 5])
@pytest.mark.usefixtures("deterministic")
def test_gradients_that_are_asked_for_alone(wanted, channels):
    scene = scenes.random_scene(7, 50, 33, 20, channels=channels)
    assert_equal_to_the_cpu(scene, wanted=wanted, absolute=False)


@pytest.mark.parametrize(
    ("given", "absolute"),
    [(("color",), False), (("color", "alpha"), False), (("alpha",), True), (("depth",), False)],
)
@pytest.mark.parametrize("channels", [3, 5])
@pytest.mark.usefixtures("deterministic")
def test_gradients_that_come_alone(given, absolute, channels):
    scene = scenes.random_scene(8, 50, 33, 20, channels=channels)
    assert_equal_to_the_cpu(scene, given=given, absolute=absolute)


@pytest.mark.parametrize("channels", [3, 5])
def test_deterministic_results_do_not_depend_on_the_order_of_execution(emulated, channels):
    inputs = inputs_of(scenes.random_scene(9, 120, 50, 35, channels=channels))
    set_deterministic(True)
    try:
        natural = composited(cuda_backend, *inputs)
        for seed in range(3):
            with emulated.ordered(Order(seed)):
                shuffled = composited(cuda_backend, *inputs)
            for name in ("color", "alpha", "depth", "transmittance", "stops"):
                assert torch.equal(getattr(shuffled, name), getattr(natural, name)), name
            for name, gradient in natural.gradients.items():
                assert torch.equal(shuffled.gradients[name], gradient), name
    finally:
        set_deterministic(False)


def test_atomic_sums_differ_by_their_rounding_alone(emulated):
    projected, background, size = inputs_of(scenes.random_scene(10, 120, 50, 35))
    set_deterministic(True)
    try:
        color, alpha, depth, saved = cuda_backend.blend(
            projected, background, *size, CLASSIC, with_depth=True, for_backward=True
        )
    finally:
        set_deterministic(False)
    seed = seeds(color, alpha, depth)
    params = BackwardPassParams(
        tiles=tile_params(
            *(projected.colors, background, saved.records, saved.tile_offsets, saved.tile_order),
            *(saved.instance_splats, size, CLASSIC),
        ),
        transmittance=pointer(saved.transmittance),
        stops=pointer(saved.stops),
        grad_color=pointer(seed["color"]),
        grad_alpha=pointer(seed["alpha"]),
        grad_depth=pointer(seed["depth"]),
        instance_slots=pointer(saved.instance_slots),
        row_size=12,
        color_row=6,
        extra_row=9,
    )
    tiles = saved.tile_order.shape[0]
    slots = torch.full((saved.instance_splats.shape[0], 12), float("nan"))
    params.rows = pointer(slots)
    launch("blend_backward_full_deterministic", params, CPU, tiles)
    owners = torch.empty(slots.shape[0], dtype=torch.int64)
    owners[saved.instance_slots.long()] = saved.instance_splats.long()
    exact = torch.zeros(120, 12, dtype=torch.float64).index_add_(0, owners, slots.double())
    magnitudes = torch.zeros(120, 12, dtype=torch.float64)
    magnitudes.index_add_(0, owners, slots.double().abs())
    params.instance_slots = None
    different = False
    first = None
    for order in range(4):
        rows = torch.zeros(120, 12)
        params.rows = pointer(rows)
        with emulated.ordered(Order(order)):
            launch("blend_backward_full", params, CPU, tiles)
        # The bound that the backend promises.
        assert ((rows.double() - exact).abs() <= 1e-5 * magnitudes).all()
        first = rows if first is None else first
        different |= not torch.equal(first, rows)
    assert different, "shuffled orders are meant to add in another order"
