"""Projection and its way back on the emulator, against the CPU kernels, which share every formula.

Neither side contracts products and sums, so what is worked out for one splat agrees to the bit.
"""

import dataclasses

import pytest
import torch
from torch import Tensor

from cuda_rasterizer import CLASSIC, Cutoffs, cpu_backend, cuda_backend, debug
from cuda_rasterizer.kernel_arguments import SplatGradients, SplatInputs, View
from cuda_rasterizer.projected import Projected
from tests.cuda_emulator.launcher import Order
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.scenes import SplatScene

pytestmark = [pytest.mark.emulator, pytest.mark.usefixtures("emulated", "fast_backend", "checked")]

# Warps and blocks that are not full, just full, and one splat over.
COUNTS = [1, 31, 33, 256, 257, 700]
WANTED = ("means", "quaternions", "scales", "opacities", "sh_dc", "sh_rest", "world_to_camera")


@pytest.fixture
def checked(monkeypatch: pytest.MonkeyPatch) -> None:
    """Poisons fresh memory, and looks at everything that a kernel leaves."""
    monkeypatch.setattr(debug, "_is_on", True)


def drawn_from(
    scene: SplatScene,
    *,
    degree: int | None = None,
    raw: bool = False,
    antialiased: bool = False,
    cutoffs: Cutoffs = CLASSIC,
) -> tuple[SplatInputs, View]:
    """A scene in float32; `degree` of its spherical harmonics are in use, all when None."""
    scene = scene.to(torch.float32)
    dc = rest = None
    if scene.sh is not None:
        dc, rest = scene.sh[:, :1], scene.sh[:, 1:]
        rest = rest if rest.shape[1] else None
        stored = round((scene.sh.shape[1]) ** 0.5) - 1
        degree = stored if degree is None else degree
    inputs = SplatInputs(
        scene.means,
        scene.quaternions,
        scene.scales.log() if raw else scene.scales,
        scene.opacities.logit() if raw else scene.opacities,
        dc,
        rest,
        scene.features,
        scene.world_to_camera,
        scene.intrinsics,
    )
    view = View(scene.width, scene.height, -1 if degree is None else degree, antialiased, cutoffs)
    return inputs, dataclasses.replace(view, raw=raw)


def with_dead_splats(scene: SplatScene) -> SplatScene:
    """Some splats cannot be drawn, each for another reason."""
    scene = scene.to(torch.float32)
    count = scene.means.shape[0]
    values = (
        *((scene.means, float("nan")), (scene.means, -50.0), (scene.quaternions, 0.0)),
        *((scene.scales, float("inf")), (scene.opacities, 0.0), (scene.opacities, float("nan"))),
    )
    for k, (tensor, value) in enumerate(values):
        tensor[k :: 3 * len(values)][: count // 2] = value
    return scene


def random_gradients(projected: Projected) -> list[Tensor]:
    """For (means_2d, conics, depths, opacities, colors)."""
    random = torch.Generator().manual_seed(5)
    names = ("means_2d", "conics", "depths", "opacities", "colors")
    return [torch.randn(getattr(projected, name).shape, generator=random) for name in names]


def gradients_of(
    backend: object, inputs: SplatInputs, view: View, radii: Tensor, incoming: list[Tensor | None]
) -> SplatGradients:
    """All that can be wanted, in memory full of another number before."""
    wanted = SplatGradients(
        **{
            name: None
            if getattr(inputs, name) is None
            else torch.full(getattr(inputs, name).shape, 77.0)
            for name in WANTED
        }
    )
    backend.project_backward(inputs, view, radii, incoming, wanted)
    return wanted


def assert_alike(inputs: SplatInputs, view: View) -> None:
    truth, found = cpu_backend.project(inputs, view), cuda_backend.project(inputs, view)
    for name in vars(truth):
        if name != "colors" or inputs.features is None:
            assert torch.equal(getattr(found, name), getattr(truth, name)), name
    incoming: list[Tensor | None] = list(random_gradients(truth))
    if inputs.features is not None:
        incoming[4] = None
    expected = gradients_of(cpu_backend, inputs, view, truth.radii, incoming)
    gradients = gradients_of(cuda_backend, inputs, view, truth.radii, incoming)
    for name in WANTED[:-1]:
        if getattr(inputs, name) is not None:
            assert torch.equal(getattr(gradients, name), getattr(expected, name)), name
    pose, true_pose = gradients.world_to_camera, expected.world_to_camera
    # Sums over splats, in float32 and in another order; a matrix is as good as its largest sum.
    assert (pose - true_pose).abs().max() <= 1e-4 * true_pose.abs().max()
    assert not pose[3].any()


@pytest.mark.parametrize("count", COUNTS)
def test_every_number_of_splats_is_projected_and_differentiated(count):
    scene = with_dead_splats(scenes.random_scene(count, count, 61, 43, sh_degree=3))
    assert_alike(*drawn_from(scene))


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("stored", [0, 1, 2, 3])
def test_every_degree_of_every_stored_one(stored, degree):
    if degree > stored:
        return
    scene = with_dead_splats(scenes.random_scene(9, 70, 61, 43, sh_degree=stored))
    inputs, view = drawn_from(scene, degree=degree)
    assert_alike(inputs, view)
    if inputs.sh_rest is not None:
        # As training holds them: two tensors of their own.
        apart = dataclasses.replace(
            inputs, sh_dc=inputs.sh_dc.contiguous(), sh_rest=inputs.sh_rest.contiguous()
        )
        assert_alike(apart, view)


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("antialiased", [False, True])
@pytest.mark.parametrize("cap", [float("inf"), 2.0])
def test_every_way_to_draw(raw, antialiased, cap):
    scene = scenes.random_scene(4, 90, 61, 43, sh_degree=1, opacity_range=(0.01, 0.97))
    scene.means[7] = torch.tensor([0.0, 0.0, 0.1])
    cutoffs = Cutoffs(footprint_cap=cap)
    assert_alike(*drawn_from(scene, raw=raw, antialiased=antialiased, cutoffs=cutoffs))


@pytest.mark.parametrize("offset", [(-60.0, -40.0), (70.0, 50.0)])
def test_splats_at_and_far_beyond_the_edges(offset):
    # Large splats all around the picture, whose principal point lies outside: the Jacobian is
    # clamped on every side. Some are too large for any radius, some too thin for antialiasing.
    scene = scenes.random_scene(12, 120, 61, 43, sh_degree=1, scale_range=(0.05, 3.0))
    scene.intrinsics[:2, 2] += torch.tensor(offset)
    scene.scales[:20] = 1e-4
    scene.scales[20:25] = 1e9
    inputs, view = drawn_from(scene, antialiased=True)
    assert (cuda_backend.project(inputs, view).radii.max(dim=0).values > 0).all()
    assert_alike(inputs, view)


@pytest.mark.parametrize("channels", [1, 3, 5])
def test_features_are_only_looked_at(channels):
    scene = with_dead_splats(scenes.random_scene(6, 50, 61, 43, channels=channels))
    scene.features[3, channels - 1] = float("nan")
    scene.features[40, 0] = float("inf")
    inputs, view = drawn_from(scene)
    projected = cuda_backend.project(inputs, view)
    assert not projected.radii[[3, 40]].any()
    assert projected.colors is inputs.features
    assert_alike(inputs, view)


def test_a_colour_that_is_not_finite_culls_its_splat():
    scene = scenes.random_scene(6, 50, 61, 43, sh_degree=2)
    scene.sh[10, 5, 1] = float("nan")
    scene.sh[11, 0, 0] = float("inf")
    inputs, view = drawn_from(scene)
    assert not cuda_backend.project(inputs, view).radii[10:12].any()
    assert_alike(inputs, view)


def test_no_splats_and_none_that_is_seen():
    scene = scenes.random_scene(1, 40, 61, 43, sh_degree=3)
    assert_alike(*drawn_from(scene.replace(opacities=torch.zeros(40))))
    empty = {
        name: getattr(scene, name)[:0] for name in ("means", "quaternions", "scales", "opacities")
    }
    inputs, view = drawn_from(scene.replace(**empty, sh=scene.sh[:0]))
    assert cuda_backend.project(inputs, view).radii.shape == (0, 2)
    nothing = torch.zeros(0, 2, dtype=torch.int32)
    gradients = gradients_of(cuda_backend, inputs, view, nothing, [None] * 5)
    assert not gradients.world_to_camera.any()


def test_gradients_that_did_not_come_are_zero_and_those_not_wanted_are_left_out():
    inputs, view = drawn_from(scenes.random_scene(3, 60, 61, 43, sh_degree=3))
    truth = cpu_backend.project(inputs, view)
    whole = random_gradients(truth)
    for chosen in range(5):
        incoming = [gradient if k == chosen else None for k, gradient in enumerate(whole)]
        expected = gradients_of(cpu_backend, inputs, view, truth.radii, incoming)
        found = gradients_of(cuda_backend, inputs, view, truth.radii, incoming)
        for name in WANTED[:-1]:
            assert torch.equal(getattr(found, name), getattr(expected, name)), (chosen, name)
    expected = gradients_of(cuda_backend, inputs, view, truth.radii, list(whole))
    for name in WANTED:
        alone = SplatGradients(**dict.fromkeys(WANTED))
        alone = dataclasses.replace(alone, **{name: torch.full_like(getattr(expected, name), 5.0)})
        cuda_backend.project_backward(inputs, view, truth.radii, whole, alone)
        assert torch.equal(getattr(alone, name), getattr(expected, name)), name


def test_no_bit_depends_on_the_order_of_blocks_and_warps(emulated):
    inputs, view = drawn_from(scenes.random_scene(8, 600, 61, 43, sh_degree=2))
    projected = cuda_backend.project(inputs, view)
    incoming: list[Tensor | None] = list(random_gradients(projected))
    expected = gradients_of(cuda_backend, inputs, view, projected.radii, incoming)
    for seed in (1, 2):
        with emulated.ordered(Order(seed)):
            again = cuda_backend.project(inputs, view)
            found = gradients_of(cuda_backend, inputs, view, projected.radii, incoming)
        for name in vars(projected):
            assert torch.equal(getattr(again, name), getattr(projected, name)), name
        for name in WANTED:
            assert torch.equal(getattr(found, name), getattr(expected, name)), name
