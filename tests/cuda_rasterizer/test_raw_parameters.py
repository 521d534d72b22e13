"""Splats given by logarithms and logits, as training holds them, against activated ones."""

import pytest
import torch
from torch import Tensor

from cuda_rasterizer import CLASSIC, Rendering
from cuda_rasterizer.backends import kernels_of
from cuda_rasterizer.kernel_arguments import SplatInputs, View
from cuda_rasterizer.projected import Projected
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.drawing import backward, draw
from tests.cuda_rasterizer.scenes import SplatScene

INFINITE, NAN = float("inf"), float("nan")


def raw_scene(dtype: torch.dtype) -> SplatScene:
    scene = scenes.random_scene(3, 80, 41, 30, sh_degree=2, opacity_range=(0.05, 0.97))
    raw = scene.replace(scales=scene.scales.log(), opacities=scene.opacities.logit())
    return raw.to(dtype)


def drawn(
    scene: SplatScene, backend: str, *, inside: bool, **options: bool
) -> tuple[Rendering, dict[str, Tensor]]:
    """A raw scene's picture and gradients, activated by the kernels or by torch before them."""
    scene = scene.with_gradients()
    shown = scene
    if not inside:
        shown = scene.replace(scales=scene.scales.exp(), opacities=scene.opacities.sigmoid())
    rendering = draw(shown, backend, raw=inside, **options)
    backward(rendering)
    return rendering, {name: leaf.grad for name, leaf in scene.leaves()}


def projected_by(backend: str, scene: SplatScene) -> Projected:
    """A raw scene of features on the image plane."""
    inputs = SplatInputs(
        *(scene.means, scene.quaternions, scene.scales, scene.opacities),
        *(None, None, scene.features, scene.world_to_camera, scene.intrinsics),
    )
    view = View(scene.width, scene.height, -1, False, CLASSIC, raw=True)
    return kernels_of(backend).project(inputs, view)


@pytest.fixture
def exact_backend(backend: str) -> str:
    """A backend that draws in float64."""
    if backend == "cuda":
        pytest.skip("backend 'cuda' takes float32 alone")
    return backend


@pytest.mark.parametrize("antialiased", [False, True])
def test_raw_splats_look_and_learn_as_the_activated_do(exact_backend, antialiased):
    scene = raw_scene(torch.float64)
    truth, true_gradients = drawn(scene, "reference", inside=False, antialiased=antialiased)
    found, gradients = drawn(scene, exact_backend, inside=True, antialiased=antialiased)
    torch.testing.assert_close(found.color, truth.color, rtol=1e-11, atol=1e-12)
    assert torch.equal(found.radii, truth.radii)
    for name, gradient in gradients.items():
        # Sums of some thousand terms in another order.
        torch.testing.assert_close(gradient, true_gradients[name], rtol=1e-8, atol=1e-10)


def test_raw_splats_in_float32_are_good_to_rounding(kernels):
    scene = raw_scene(torch.float32)
    truth, true_gradients = drawn(scene.to(torch.float64), "reference", inside=True)
    found, gradients = drawn(scene, kernels, inside=True)
    # Rounding of coordinates up to 50 px moves an exponent by 1e-5 of itself.
    torch.testing.assert_close(found.color.double(), truth.color, rtol=0, atol=3e-5)
    for name, gradient in gradients.items():
        error = (gradient.double() - true_gradients[name]).norm() / true_gradients[name].norm()
        # Seven digits, of which a stack of splats costs two.
        assert error < 2e-4, name


def test_exponentials_of_the_kernels_are_good_to_a_few_units_in_the_last_place(kernels):
    """Of logits by the opacities, of logarithms of scales by the radii that they reach."""
    logits = torch.linspace(-5.5, 30.0, 4001)
    scene = scenes.scene_of([[0.0, 0.0, 2.0]] * 4001, dtype=torch.float32)
    scene = scene.replace(scales=torch.full((4001, 3), -3.0), opacities=logits)
    found = projected_by(kernels, scene).opacities
    seen = found > 0
    truth = logits.double().sigmoid()
    assert (seen == (truth >= CLASSIC.alpha_floor)).all()
    # An exponential of 2 units in the last place, a sum and a division: 4 roundings of 6e-8.
    torch.testing.assert_close(found[seen].double(), truth[seen], rtol=2.5e-7, atol=0)

    sizes = torch.linspace(-12.0, 8.0, 4001)
    scene = scene.replace(scales=sizes[:, None].repeat(1, 3), opacities=torch.full((4001,), 2.0))
    conics = projected_by(kernels, scene).conics[:, 0].double()
    # At 2 units of depth and a focal length of 40 px, widened by the dilation.
    variance = (40 / 2 * sizes.double().exp()) ** 2 + CLASSIC.dilation
    torch.testing.assert_close(1 / conics, variance, rtol=1.5e-6, atol=0)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("scales", NAN),
        ("scales", INFINITE),
        ("scales", 1000.0),
        ("opacities", NAN),
        ("opacities", -INFINITE),
        ("opacities", -1000.0),
    ],
)
def test_a_dead_raw_splat_leaves_no_trace(backend, name, value):
    scene = raw_scene(torch.float64)
    alone = scene.replace(
        **{leaf: getattr(scene, leaf)[1:] for leaf, _ in scene.leaves() if leaf != "background"}
    )
    getattr(scene, name)[0] = value
    found, gradients = drawn(scene, backend, inside=True)
    expected, _ = drawn(alone, backend, inside=True)
    assert torch.equal(found.color, expected.color)
    for leaf, gradient in gradients.items():
        assert gradient.isfinite().all(), leaf
        if leaf != "background":
            assert not gradient[0].any(), leaf


def test_an_opaque_raw_splat_has_a_finite_picture_and_gradient(backend):
    scene = raw_scene(torch.float32)
    scene.opacities[:5] = 90.0
    scene.opacities[5] = INFINITE
    scene.scales[6] = -INFINITE
    found, gradients = drawn(scene, backend, inside=True)
    assert found.color.isfinite().all()
    assert all(gradient.isfinite().all() for gradient in gradients.values())
