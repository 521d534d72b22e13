"""Finite differences, first and second, of the reference: the truth must be true itself."""

import dataclasses
import functools

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from cuda_rasterizer import reference
from cuda_rasterizer.cutoffs import CLASSIC, GSPLAT, Cutoffs
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.margins import clear_of_decisions, pixel_margins, render, wide_open
from tests.cuda_rasterizer.scenes import SplatScene

# Cut-offs, and whether antialiased: every rule is met by some row, slow checks kept few.
CASES = {
    "classic": (CLASSIC, False),
    "classic antialiased": (CLASSIC, True),
    "gsplat": (GSPLAT, False),
    "wide open antialiased": (wide_open(), True),
    "stops early": (Cutoffs(stop_transmittance=0.3, alpha_ceiling=0.6), False),
    "capped": (Cutoffs(footprint_cap=1.5), False),
}


def check(
    scene: SplatScene, cutoffs: Cutoffs, *, antialiased: bool, second: bool = False, fast: bool
) -> None:
    """Compare every derivative of colour, alpha and depth with a finite difference.

    `fast` compares one random projection of each Jacobian instead of every entry: as strict where
    a whole term is wrong, and ten times quicker.
    """
    scene = scene.with_gradients()
    names = [name for name, _ in scene.leaves()]

    def function(*leaves: Tensor) -> tuple[Tensor, ...]:
        changed = scene.replace(**dict(zip(names, leaves, strict=True)))
        picture = render(changed, cutoffs, antialiased=antialiased)
        return picture.color, picture.alpha, picture.depth

    leaves = tuple(leaf for _, leaf in scene.leaves())
    # Scenes keep 1e-3 away from every decision, so a step of 1e-6 crosses none; float64 central
    # differences of values about 1 are then good to some 1e-9, of gradients up to 100 to 1e-6.
    options = {"eps": 1e-6, "fast_mode": fast, "check_undefined_grad": False}
    if second:
        assert gradgradcheck(function, leaves, atol=1e-5, rtol=1e-4, **options)
    else:
        assert gradcheck(function, leaves, atol=1e-6, rtol=1e-5, **options)


@pytest.mark.parametrize(("cutoffs", "antialiased"), CASES.values(), ids=CASES.keys())
def test_every_first_derivative_equals_its_finite_difference(cutoffs, antialiased):
    scene = clear_of_decisions(
        lambda seed: scenes.random_scene(
            seed, 5, 6, 4, channels=2, opacity_range=(0.3, 1.0), scale_range=(0.1, 0.6)
        ),
        cutoffs,
        antialiased=antialiased,
    )
    check(scene, cutoffs, antialiased=antialiased, fast=cutoffs is not CLASSIC)


@pytest.mark.parametrize("degree", [0, 1, 2, 3])
def test_first_derivatives_through_spherical_harmonics(degree):
    scene = clear_of_decisions(
        lambda seed: scenes.random_scene(seed, 2, 3, 2, sh_degree=degree, scale_range=(0.2, 0.6))
    )
    check(scene, CLASSIC, antialiased=False, fast=True)


def test_first_derivatives_of_a_background_a_pixel():
    scene = clear_of_decisions(
        lambda seed: scenes.random_scene(seed, 3, 4, 3, per_pixel_background=True, channels=2)
    )
    check(scene, CLASSIC, antialiased=False, fast=True)


def test_first_derivatives_where_a_splat_covers_two_tiles():
    scene = clear_of_decisions(
        lambda seed: scenes.random_scene(seed, 3, 18, 2, scale_range=(0.3, 1.0), channels=1)
    )
    check(scene, CLASSIC, antialiased=False, fast=True)


@pytest.mark.parametrize(("antialiased", "sh_degree"), [(False, None), (True, 1)])
def test_every_second_derivative_equals_its_finite_difference(antialiased, sh_degree):
    scene = clear_of_decisions(
        lambda seed: scenes.random_scene(
            seed, 2, 3, 2, sh_degree=sh_degree, channels=2, scale_range=(0.1, 0.6)
        ),
        antialiased=antialiased,
    )
    check(scene, CLASSIC, antialiased=antialiased, second=True, fast=True)


def test_the_pose_and_the_intrinsics_have_gradients_too():
    scene = clear_of_decisions(
        lambda seed: scenes.random_scene(seed, 3, 5, 4, sh_degree=2, scale_range=(0.1, 0.6))
    )
    pose = scene.world_to_camera.clone().requires_grad_()
    intrinsics = scene.intrinsics.clone().requires_grad_()

    def function(pose: Tensor, intrinsics: Tensor) -> Tensor:
        return render(scene.replace(world_to_camera=pose, intrinsics=intrinsics)).color

    assert gradcheck(function, (pose, intrinsics), fast_mode=True)


def test_no_gradient_goes_through_an_alpha_beyond_the_ceiling_but_its_colour_keeps_one():
    scene = scenes.scene_of([[0.0, 0.0, 2.0]], opacities=0.9, scales=0.3).with_gradients()
    cutoffs = dataclasses.replace(CLASSIC, alpha_ceiling=0.5)
    picture = render(scene, cutoffs)
    picture.color[10, 11].sum().backward()  # off centre, where a Gaussian has a slope
    assert scene.opacities.grad.item() == 0
    assert (scene.means.grad == 0).all()
    assert (scene.scales.grad == 0).all()
    torch.testing.assert_close(scene.features.grad, torch.full((1, 3), 0.5).double())


def test_a_splat_that_stops_a_pixel_and_those_behind_it_have_no_gradient_there():
    means = [[0.0, 0.0, 2.0], [0.0, 0.0, 3.0], [0.0, 0.0, 4.0]]
    scene = scenes.scene_of(means, opacities=[0.8, 0.9, 0.1]).with_gradients()
    picture = render(scene, Cutoffs(stop_transmittance=0.05))
    picture.color[10, 10].sum().backward()
    assert scene.opacities.grad[0] != 0
    assert (scene.opacities.grad[1:] == 0).all()
    assert (scene.features.grad[1:] == 0).all()


def test_a_view_of_nothing_can_still_be_differentiated():
    """A camera that looks away must not raise `element 0 does not require grad`."""
    scene = scenes.hard_case("nothing in view").with_gradients()
    picture = render(scene)
    assert picture.color.requires_grad
    picture.color.sum().backward()
    assert (scene.means.grad == 0).all()
    torch.testing.assert_close(scene.background.grad, torch.full((3,), 21.0 * 21.0).double())


def test_clear_scenes_are_clear():
    scene = clear_of_decisions(lambda seed: scenes.random_scene(seed, 6, 9, 7))
    assert pixel_margins(scene).min() > 1e-3


@pytest.mark.parametrize("weight", [0.0, 0.2, 1.0])
def test_the_loss_has_the_gradient_of_its_finite_difference(weight):
    random = torch.Generator().manual_seed(4)
    render_of, target = torch.rand(2, 12, 2, 2, generator=random, dtype=torch.float64)
    # |x| has a kink where the pictures agree; random ones stay far more than 1e-6 apart.
    assert (render_of - target).abs().min() > 1e-5
    render_of.requires_grad_()
    assert gradcheck(lambda x: reference.l1_ssim(x, target, weight), render_of)
    if weight > 0:  # the second derivative of L1 is zero wherever there is one
        loss = functools.partial(reference.l1_ssim, target=target, ssim_weight=weight)
        assert gradgradcheck(lambda x: loss(x)[0], render_of, fast_mode=True)
