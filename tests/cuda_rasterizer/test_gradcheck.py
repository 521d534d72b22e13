"""Finite differences through the C++ kernels in float64, for everything that has a gradient.

Scenes are redrawn until every pixel keeps 1e-3 away from every decision, so that a step of 1e-6
crosses none; central differences of values about 1 are then good to some 1e-9.
"""

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from cuda_rasterizer.cutoffs import CLASSIC, GSPLAT, Cutoffs
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.drawing import draw
from tests.cuda_rasterizer.margins import clear_of_decisions, wide_open
from tests.cuda_rasterizer.scenes import SplatScene

pytestmark = pytest.mark.usefixtures("fast_backend")

CASES = {
    "classic": (CLASSIC, False),
    "classic antialiased": (CLASSIC, True),
    "gsplat": (GSPLAT, False),
    "gsplat antialiased": (GSPLAT, True),
    "wide open": (wide_open(), False),
    "wide open antialiased": (wide_open(GSPLAT), True),
    "stops early": (Cutoffs(stop_transmittance=0.3, alpha_ceiling=0.6), False),
    "capped": (Cutoffs(footprint_cap=1.5), False),
}
# float64 central differences: absolute error about 1e-16 / 1e-6, times values up to a hundred.
OPTIONS = {"eps": 1e-6, "atol": 1e-6, "rtol": 1e-5}


def check(
    scene: SplatScene,
    cutoffs: Cutoffs = CLASSIC,
    antialiased: bool = False,
    raw: bool = False,
    **options: bool,
) -> None:
    scene = scene.with_gradients()
    pose = scene.world_to_camera.requires_grad_()
    names = [name for name, _ in scene.leaves()]

    def pictures(*leaves: Tensor) -> tuple[Tensor, ...]:
        *splats, world_to_camera = leaves
        changed = scene.replace(
            **dict(zip(names, splats, strict=True)), world_to_camera=world_to_camera
        )
        rendering = draw(changed, cutoffs=cutoffs, antialiased=antialiased, raw=raw)
        return rendering.color, rendering.alpha, rendering.depth

    leaves = (*(leaf for _, leaf in scene.leaves()), pose)
    assert gradcheck(pictures, leaves, **OPTIONS, **options)


@pytest.mark.parametrize(("cutoffs", "antialiased"), CASES.values(), ids=CASES.keys())
@pytest.mark.parametrize("channels", [2, 3])
def test_every_derivative_equals_its_finite_difference(cutoffs, antialiased, channels):
    scene = clear_of_decisions(
        lambda seed: scenes.random_scene(
            seed, 5, 6, 4, channels=channels, opacity_range=(0.3, 1.0), scale_range=(0.1, 0.6)
        ),
        cutoffs,
        antialiased=antialiased,
    )
    # Two channels go through the code for any number of them, three through their own; one whole
    # Jacobian of each rule is enough, the other is compared along a random direction.
    check(scene, cutoffs, antialiased, fast_mode=channels == 2)


@pytest.mark.parametrize("antialiased", [False, True])
def test_derivatives_by_logarithms_and_logits(antialiased):
    scene = clear_of_decisions(
        lambda seed: scenes.random_scene(
            seed, 4, 5, 4, opacity_range=(0.1, 0.95), scale_range=(0.1, 0.6)
        ),
        antialiased=antialiased,
    )
    raw = scene.replace(scales=scene.scales.log(), opacities=scene.opacities.logit())
    check(raw, antialiased=antialiased, raw=True)


def test_derivatives_across_several_tiles_and_many_splats():
    scene = clear_of_decisions(
        lambda seed: scenes.random_scene(seed, 12, 20, 18, scale_range=(0.1, 0.8)), least=1e-4
    )
    # Margins are relative and the step is 1e-6, so 1e-4 is still far from every decision.
    check(scene, fast_mode=True)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
@pytest.mark.parametrize("antialiased", [False, True])
def test_derivatives_through_spherical_harmonics(degree, antialiased):
    scene = clear_of_decisions(
        lambda seed: scenes.random_scene(seed, 3, 4, 3, sh_degree=degree, scale_range=(0.2, 0.6)),
        antialiased=antialiased,
    )
    check(scene, antialiased=antialiased)


def test_derivatives_of_spherical_harmonics_in_two_tensors():
    scene = clear_of_decisions(
        lambda seed: scenes.random_scene(seed, 3, 4, 3, sh_degree=2, scale_range=(0.2, 0.6))
    )
    dc = scene.sh[:, :1].clone().requires_grad_()
    rest = scene.sh[:, 1:].clone().requires_grad_()

    def picture(*pair: Tensor) -> Tensor:
        return draw(scene, sh=pair).color

    assert gradcheck(picture, (dc, rest), **OPTIONS)


def test_derivatives_of_a_background_a_pixel():
    check(
        clear_of_decisions(
            lambda seed: scenes.random_scene(seed, 4, 5, 3, per_pixel_background=True)
        )
    )


def test_derivative_where_the_jacobian_is_clamped():
    # The principal point far to the left puts every splat beyond the clamp of x/z.
    def drawn(seed: int) -> SplatScene:
        scene = scenes.random_scene(seed, 3, 5, 4, scale_range=(0.5, 2.0))
        intrinsics = scene.intrinsics.clone()
        intrinsics[0, 2] -= 12.0
        return scene.replace(intrinsics=intrinsics)

    scene = clear_of_decisions(drawn)
    assert (draw(scene).radii > 0).all(dim=1).any()
    check(scene)


def test_absolute_gradient_sums_what_each_pixel_adds_without_its_sign():
    scene = clear_of_decisions(lambda seed: scenes.random_scene(seed, 6, 19, 17)).with_gradients()
    rendering = draw(scene, absolute_gradient=True)
    assert not rendering.absolute_gradient.any()
    seed = torch.randn(rendering.color.shape, dtype=torch.float64)
    expected = torch.zeros_like(rendering.means_2d)
    for y in range(scene.height):
        for x in range(scene.width):
            one = torch.zeros_like(seed)
            one[y, x] = seed[y, x]
            (part,) = torch.autograd.grad(
                rendering.color, rendering.means_2d, one, retain_graph=True
            )
            expected += part.abs()
    torch.autograd.grad(rendering.color, rendering.means_2d, seed)
    # The same numbers summed in another order.
    torch.testing.assert_close(rendering.absolute_gradient, expected, rtol=1e-10, atol=1e-12)
