"""What a picture and its gradients owe to the order in which blocks, warps and lanes run: nothing.

Only sums of gradients by atomic additions may differ, and only in their rounding. No other test
depends on the order either: each runs in one of its own (`fixtures.emulated`).
"""

import pytest
import torch

from cuda_rasterizer.determinism import set_deterministic
from tests.cuda_emulator.launcher import NATURAL, Order
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.drawing import draw, draw_with_gradients

pytestmark = [pytest.mark.emulator, pytest.mark.usefixtures("emulated")]

SCENES = {
    **scenes.HARD_CASES,
    "spherical harmonics": lambda dtype: scenes.random_scene(21, 90, 50, 35, sh_degree=3).to(dtype),
}


@pytest.fixture
def deterministic_gradients():
    set_deterministic(True)
    yield
    set_deterministic(False)


@pytest.mark.usefixtures("deterministic_gradients")
@pytest.mark.parametrize("case", SCENES)
def test_in_deterministic_mode_no_bit_depends_on_the_order(emulated, case):
    scene = SCENES[case](torch.float32)

    def everything(order):
        with emulated.ordered(order):
            rendering, gradients = draw_with_gradients(scene, "cuda", absolute_gradient=True)
        names = ("color", "alpha", "depth", "radii", "means_2d", "absolute_gradient")
        parts = {name: getattr(rendering, name) for name in names}
        return parts | {f"gradient of {name}": tensor for name, tensor in gradients.items()}

    natural = everything(NATURAL)
    for seed in range(2):
        for name, tensor in everything(Order(seed)).items():
            assert torch.equal(tensor, natural[name]), name


@pytest.mark.parametrize("case", scenes.HARD_CASES)
def test_atomic_sums_stay_within_a_hundred_thousandth_of_their_magnitudes(emulated, case):
    scene = scenes.hard_case(case, torch.float32)
    random = torch.Generator().manual_seed(3)

    def gradients(seed_of_color):
        leaves = scene.with_gradients()
        rendering = draw(leaves, "cuda", absolute_gradient=True)
        rendering.means_2d.retain_grad()
        rendering.color.backward(seed_of_color)
        return rendering.means_2d.grad, leaves.features.grad, rendering.absolute_gradient

    seed = torch.randn(scene.height, scene.width, scene.features.shape[1], generator=random)
    set_deterministic(True)
    try:
        exact_means, exact_colors, magnitudes_of_means = gradients(seed)
        # Every weight is positive, so this sums the magnitudes of what the other one sums.
        _, magnitudes_of_colors, _ = gradients(seed.abs())
    finally:
        set_deterministic(False)
    for order in (NATURAL, Order(1), Order(2)):
        with emulated.ordered(order):
            means, colors, _ = gradients(seed)
        assert ((means - exact_means).abs() <= 1e-5 * magnitudes_of_means).all()
        assert ((colors - exact_colors).abs() <= 1e-5 * magnitudes_of_colors).all()
