"""The C++ and CUDA kernels against plain torch: strictly, but within a bound near a decision."""

import pytest
import torch
from torch import Tensor

from cuda_rasterizer.cutoffs import CLASSIC, GSPLAT, Cutoffs
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.conftest import CUDA, INSTRUCTION_SETS, only_where_had
from tests.cuda_rasterizer.drawing import draw, draw_with_gradients
from tests.cuda_rasterizer.margins import pixel_margins
from tests.cuda_rasterizer.scenes import SplatScene

pytestmark = pytest.mark.usefixtures("fast_backend")

CUTOFFS = {"classic": CLASSIC, "gsplat": GSPLAT, "capped": Cutoffs(footprint_cap=2.0)}
CLEAR = 1e-5
# One splat more or less: at the floor it weighs 1/255, at the stop at most 1e-4 / (1 - 0.99).
FLIP = 0.01 + 1.0 / 255
EXCUSED = 1e-3
# Scenes that sit on a decision by design: 0.01 * 0.01 is the stop itself; depths are equal.
ON_A_DECISION = ("opaque stack", "equal depths")


@pytest.fixture(
    params=[
        ("cpu", torch.float32),
        ("cpu", torch.float64),
        pytest.param(("cuda", torch.float32), marks=pytest.mark.emulator),
    ],
    ids=lambda pair: f"{pair[0]} {str(pair[1]).removeprefix('torch.')}",
)
def kernels_and_dtype(request):
    """Name of a backend of our own kernels and each float type that it takes."""
    backend, dtype = request.param
    if backend == "cuda":
        request.getfixturevalue("emulated")
    return backend, dtype


@pytest.fixture(params=[*INSTRUCTION_SETS, CUDA])
def every_kernel(request):
    """Name of a backend, once for each instruction set of the CPU and once for CUDA."""
    if request.param == "cuda":
        request.getfixturevalue("emulated")
        yield "cuda"
    else:
        with only_where_had(request.param):
            yield "cpu"


def assert_pictures_agree(
    scene: SplatScene,
    backend: str,
    cutoffs: Cutoffs,
    antialiased: bool,
    excused: float = EXCUSED,
) -> None:
    """float32 kernels against the float64 reference of the same float32 numbers."""
    scene = scene.to(torch.float32)
    exact = scene.to(torch.float64)
    options = {"cutoffs": cutoffs, "antialiased": antialiased}
    truth = draw(exact, "reference", **options)
    found = draw(scene, backend, **options)
    clear = pixel_margins(exact, cutoffs, antialiased=antialiased) > CLEAR
    deepest = float(truth.depth.max()) if truth.depth.numel() else 1.0
    largest = max(1.0, float(truth.color.abs().max()))
    for name, unit in (("color", largest), ("alpha", 1.0), ("depth", max(1.0, deepest))):
        error = (getattr(found, name).double() - getattr(truth, name)).abs() / unit
        error = error.amax(dim=2) if error.dim() == 3 else error
        # Rounding of coordinates up to 50 px moves an exponent by 1e-5 of itself.
        assert error[clear].max() < 3e-5 if clear.any() else True, name
        if not clear.all():
            assert error[~clear].max() < FLIP, name
    assert (~clear).sum() <= max(1, excused * clear.numel())


def relative_error(found: Tensor, truth: Tensor) -> float:
    assert found.isfinite().all()
    norm = float(truth.norm())
    return float((found.double() - truth).norm()) / norm if norm > 0 else float(found.abs().sum())


@pytest.mark.parametrize("cutoffs", CUTOFFS.values(), ids=CUTOFFS.keys())
@pytest.mark.parametrize("antialiased", [False, True])
def test_random_scenes_look_alike(every_kernel, cutoffs, antialiased):
    for seed in range(3):
        scene = scenes.random_scene(seed, 150, 61, 43, sh_degree=seed)
        assert_pictures_agree(scene, every_kernel, cutoffs, antialiased)


@pytest.mark.parametrize("case", scenes.HARD_CASES)
@pytest.mark.parametrize("antialiased", [False, True])
def test_hard_cases_look_alike(kernels, case, antialiased):
    excused = 1.0 if case in ON_A_DECISION else EXCUSED
    assert_pictures_agree(scenes.hard_case(case), kernels, CLASSIC, antialiased, excused)


@pytest.mark.parametrize("antialiased", [False, True])
@pytest.mark.usefixtures("each_instruction_set")
def test_float64_agrees_to_the_last_digits_with_gradients(antialiased):
    for seed in range(2):
        scene = scenes.random_scene(seed, 100, 50, 35, sh_degree=3)
        truth, true_gradients = draw_with_gradients(scene, "reference", antialiased=antialiased)
        found, gradients = draw_with_gradients(scene, antialiased=antialiased)
        torch.testing.assert_close(found.color, truth.color, rtol=1e-11, atol=1e-12)
        assert torch.equal(found.radii, truth.radii)
        for name, gradient in gradients.items():
            # Sums of some thousand terms in another order.
            assert relative_error(gradient, true_gradients[name]) < 1e-10, name


@pytest.mark.parametrize("antialiased", [False, True])
def test_float32_gradients_agree(every_kernel, antialiased):
    for seed in range(2):
        scene = scenes.random_scene(seed, 100, 50, 35, sh_degree=2).to(torch.float32)
        _, truth = draw_with_gradients(
            scene.to(torch.float64), "reference", antialiased=antialiased
        )
        _, found = draw_with_gradients(scene, every_kernel, antialiased=antialiased)
        for name, gradient in found.items():
            # Seven digits, of which a stack of fifty splats costs two; needles cost one more.
            assert relative_error(gradient, truth[name]) < 2e-4, name


@pytest.mark.parametrize("case", scenes.HARD_CASES)
def test_hard_cases_have_the_gradient_of_the_reference(kernels_and_dtype, case):
    kernels, dtype = kernels_and_dtype
    scene = scenes.hard_case(case).to(dtype)
    _, truth = draw_with_gradients(scene.to(torch.float64), "reference")
    _, found = draw_with_gradients(scene, kernels)
    for name, gradient in found.items():
        # A flipped pixel of a small picture weighs some thousandths of a float32 gradient.
        limit = 5e-2 if case in ON_A_DECISION else 5e-3
        limit = 1e-9 if dtype == torch.float64 else limit
        assert relative_error(gradient, truth[name]) < limit, name


@pytest.mark.parametrize("case", scenes.DEAD_SPLATS)
@pytest.mark.parametrize("antialiased", [False, True])
def test_a_dead_splat_leaves_no_trace(kernels_and_dtype, case, antialiased):
    kernels, dtype = kernels_and_dtype
    scene = scenes.dead_splat_scene(case, dtype)
    alone = scene.replace(
        means=scene.means[:1],
        quaternions=scene.quaternions[:1],
        scales=scene.scales[:1],
        opacities=scene.opacities[:1],
        features=scene.features[:1],
    )
    found, gradients = draw_with_gradients(scene, kernels, antialiased=antialiased)
    expected, expected_gradients = draw_with_gradients(alone, kernels, antialiased=antialiased)
    assert torch.equal(found.color, expected.color)
    assert torch.equal(found.depth, expected.depth)
    assert not found.radii[1].any()
    for name, gradient in gradients.items():
        if name == "background":
            assert torch.equal(gradient, expected_gradients[name])
        else:
            assert torch.equal(gradient[:1], expected_gradients[name]), name
            assert not gradient[1].any(), name


@pytest.mark.parametrize("channels", [3, 5])
@pytest.mark.parametrize("inverse_depth", [False, True])
def test_a_picture_without_depth_is_the_same_to_the_bit(backend, channels, inverse_depth):
    scene = scenes.random_scene(3, 60, 37, 29, channels=channels).to(torch.float32)
    found = []
    for depth in (True, False):
        leaves = scene.with_gradients()
        picture = draw(leaves, backend, depth=depth, inverse_depth=inverse_depth)
        assert (picture.depth is not None) is depth
        (picture.color.square().sum() + picture.alpha.sum()).backward()
        results = {name: leaf.grad for name, leaf in leaves.leaves()}
        results |= {name: getattr(picture, name) for name in ("color", "alpha", "inverse_depth")}
        found.append(results)
    with_depth, without = found
    for name, values in with_depth.items():
        if values is None:
            assert without[name] is None, name
        else:
            assert torch.equal(without[name], values), name


def test_a_nan_in_a_spherical_harmonic_in_use_culls_its_splat(kernels):
    scene = scenes.random_scene(4, 8, sh_degree=3)
    scene.sh[3, 14, 1] = float("nan")
    rendering, gradients = draw_with_gradients(scene, kernels)
    assert not rendering.radii[3].any()
    assert rendering.color.isfinite().all()
    assert not gradients["sh"][3].any()
    # At a lower degree the number is not in use, and the splat is seen.
    assert draw(scene, kernels, sh_degree=2).radii[3].all()


def test_coefficients_above_the_degree_in_use_get_gradient_zero(kernels):
    scene = scenes.random_scene(4, 8, sh_degree=3)
    _, gradients = draw_with_gradients(scene, kernels, sh_degree=1)
    assert gradients["sh"][:, :4].any()
    assert not gradients["sh"][:, 4:].any()


def test_the_three_ways_to_give_spherical_harmonics_give_the_same_picture(kernels):
    scene = scenes.random_scene(5, 20, sh_degree=3)
    whole = draw(scene, kernels).color
    pair = draw(scene, kernels, sh=(scene.sh[:, :1].clone(), scene.sh[:, 1:].clone())).color
    spread = torch.zeros(20, 16, 6, dtype=scene.sh.dtype)[:, :, ::2].copy_(scene.sh)
    assert torch.equal(whole, pair)
    assert torch.equal(whole, draw(scene, kernels, sh=spread).color)


def test_equal_depths_are_drawn_in_the_order_of_their_index(kernels):
    scene = scenes.hard_case("equal depths")
    truth = draw(scene, "reference")
    found = draw(scene, kernels).color
    tolerance = 1e-12 if found.dtype == torch.float64 else 1e-6
    torch.testing.assert_close(found.double(), truth.color, rtol=tolerance, atol=tolerance)
    order = [2, 1, 0]
    turned = scene.replace(
        means=scene.means[order], opacities=scene.opacities[order], features=scene.features[order]
    )
    assert not torch.allclose(draw(turned, kernels).color.double(), truth.color)


def test_a_splat_near_the_plane_that_covers_the_picture_many_times_over_is_drawn(kernels):
    scene = scenes.scene_of([[0.0, 0.0, 0.3]], scales=50.0, opacities=0.7, width=300, height=200)
    rendering = draw(scene.to(torch.float32), kernels)
    torch.testing.assert_close(rendering.alpha, torch.full((200, 300), 0.7), rtol=1e-3, atol=0.0)


def test_a_splat_without_extent_is_not_drawn_where_nothing_widens_it(kernels):
    cutoffs = Cutoffs(dilation=0.0)
    scene = scenes.scene_of([[0.0, 0.0, 2.0], [0.1, 0.0, 3.0]], scales=[[0.0] * 3, [0.2] * 3])
    found = draw(scene, kernels, cutoffs=cutoffs)
    assert not found.radii[0].any()
    assert found.radii[1].all()
    assert torch.equal(found.radii.long(), draw(scene, "reference", cutoffs=cutoffs).radii.long())


def test_without_a_floor_all_but_the_splats_of_no_opacity_are_drawn(kernels):
    cutoffs = Cutoffs(alpha_floor=0.0, footprint_cap=3.0)
    scene = scenes.scene_of(
        [[0.0, 0.0, 2.0], [0.1, 0.0, 3.0], [0.0, 0.1, 4.0]], opacities=[0.0, 1e-6, 0.5]
    )
    found = draw(scene, kernels, cutoffs=cutoffs)
    truth = draw(scene, "reference", cutoffs=cutoffs)
    assert found.radii.any(dim=1).tolist() == [False, True, True]
    # Where the footprints end both leave out what weighs exp(-4.5); inside they agree.
    torch.testing.assert_close(found.color.double(), truth.color, rtol=1e-5, atol=1e-6)


def test_a_splat_that_reaches_more_rows_of_tiles_than_a_warp_has_lanes(kernels):
    scene = scenes.scene_of(
        [[0.0, 0.0, 2.0], [0.1, 0.0, 3.0]],
        scales=[[0.1, 20.0, 0.1], [0.3, 0.3, 0.3]],
        width=20,
        height=560,
    )
    found = draw(scene, kernels)
    truth = draw(scene, "reference")
    assert truth.alpha[0, 10] > 0.3  # the tall one reaches the first row
    torch.testing.assert_close(found.color.double(), truth.color, rtol=1e-5, atol=3e-5)


def test_a_splat_larger_than_any_radius_covers_the_picture(kernels):
    """Its radius does not fit 32 bits, nor does a float32 hold the determinant of its ellipse."""
    scene = scenes.scene_of([[0.0, 0.0, 0.3]], scales=[[1e9, 1e4, 1.0]], width=40, height=40)
    rendering, gradients = draw_with_gradients(scene.to(torch.float32), kernels)
    assert rendering.radii[0, 0] == 1_000_000_000
    torch.testing.assert_close(rendering.alpha, torch.full((40, 40), 0.5), rtol=1e-6, atol=0.0)
    assert all(gradient.isfinite().all() for gradient in gradients.values())


@pytest.mark.parametrize("scale", [[1e-11] * 3, [0.1, 1e-19, 1e-19]], ids=["speck", "hair"])
def test_a_splat_too_thin_for_float32_shows_nowhere_and_has_finite_gradients(kernels, scale):
    """Nothing widens it. It lies on a corner of four tiles, all of which its box touches.

    The speck's determinant has no inverse in float32; the hair's, multiplied out of the conic, is
    the difference of infinities.
    """
    turned = [[0.92388, 0.0, 0.0, 0.38268]]  # an eighth turn about the axis of view
    scene = scenes.scene_of(
        [[-0.2, -0.2, 2.0]], scales=[scale], quaternions=turned, width=40, height=40
    )
    options = {"cutoffs": Cutoffs(dilation=0.0)}
    rendering, gradients = draw_with_gradients(scene.to(torch.float32), kernels, **options)
    assert not rendering.alpha.any()
    assert all(gradient.isfinite().all() for gradient in gradients.values())


def test_dust_that_antialiasing_fades_to_its_limit_has_the_gradient_of_the_reference(kernels):
    options = {"cutoffs": Cutoffs(alpha_floor=1e-3), "antialiased": True}
    scene = scenes.scene_of([[0.0, 0.0, 2.0], [0.1, 0.05, 3.0]], scales=[[1e-5] * 3, [0.1] * 3])
    scene = scene.to(torch.float32)
    truth, true_gradients = draw_with_gradients(scene.to(torch.float64), "reference", **options)
    found, gradients = draw_with_gradients(scene, kernels, **options)
    assert found.radii.all()
    torch.testing.assert_close(found.color.double(), truth.color, rtol=1e-5, atol=1e-6)
    # Below the limit the factor is constant, so that only the opacity feels the fading.
    for name, gradient in gradients.items():
        assert relative_error(gradient, true_gradients[name]) < 2e-4, name
