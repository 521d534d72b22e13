"""The same bits whatever the threads, the neighbours in time, and the memory that came in dirty."""

import contextlib

import pytest
import torch

from cuda_rasterizer import l1_ssim, native, set_threads
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.drawing import (
    backward,
    draw,
    draw_with_gradients,
    instruction_set,
    seeds_of,
)

pytestmark = pytest.mark.usefixtures("threads_as_before")


def assert_same_bits(found, expected):
    (rendering, gradients), (other, other_gradients) = found, expected
    for name in ("color", "alpha", "depth", "radii", "means_2d"):
        assert torch.equal(getattr(rendering, name), getattr(other, name)), name
    if rendering.absolute_gradient is not None:
        assert torch.equal(rendering.absolute_gradient, other.absolute_gradient)
    for name, gradient in gradients.items():
        assert torch.equal(gradient, other_gradients[name]), name


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_one_two_and_five_threads_give_the_same_bits(dtype):
    scene = scenes.random_scene(1, 1500, 200, 150, sh_degree=3, dtype=dtype)
    pose = scene.world_to_camera
    results, poses = [], []
    for threads in (1, 2, 5, 2):
        set_threads(threads)
        scene = scene.replace(world_to_camera=pose.clone().requires_grad_())
        leaf = scene.world_to_camera
        leaf.grad = None
        copy = scene.with_gradients().replace(world_to_camera=leaf)
        rendering = draw(copy, absolute_gradient=True)
        rendering.means_2d.retain_grad()
        backward(rendering)
        gradients = {name: part.grad for name, part in copy.leaves()}
        results.append((rendering, {**gradients, "means_2d": rendering.means_2d.grad}))
        poses.append(leaf.grad)
    for result in results[1:]:
        assert_same_bits(result, results[0])
    assert all(torch.equal(pose, poses[0]) for pose in poses)


@pytest.mark.parametrize("raw", [False, True])
def test_every_instruction_set_projects_to_the_same_bits(raw):
    """Formulas are written in plain operations, and nothing of a splat is a sum over others."""
    scene = scenes.random_scene(4, 700, 61, 43, sh_degree=3, opacity_range=(0.01, 0.97))
    if raw:
        scene = scene.replace(scales=scene.scales.log(), opacities=scene.opacities.logit())
    scene = scene.to(torch.float32)
    results = []
    for name in ("baseline", "avx2", "avx512"):
        with contextlib.ExitStack() as stack:
            try:
                stack.enter_context(instruction_set(name))
            except native.RasterizerError:
                continue  # this machine lacks it
            leaves = scene.with_gradients()
            rendering = draw(leaves, raw=raw)
            rendering.means_2d.sum().backward()
        gradients = [leaf.grad for _, leaf in leaves.leaves() if leaf.grad is not None]
        results.append([rendering.radii, rendering.means_2d, *gradients])
    for result in results[1:]:
        for found, expected in zip(result, results[0], strict=True):
            assert torch.equal(found, expected)


def test_the_loss_and_its_gradient_have_the_same_bits_on_any_number_of_threads():
    random = torch.Generator().manual_seed(3)
    picture = torch.rand(101, 77, 3, generator=random)
    target = torch.rand(101, 77, 3, generator=random)
    results = []
    for threads in (1, 2, 5):
        set_threads(threads)
        render = picture.clone().requires_grad_()
        terms = l1_ssim(render, target, 0.2, backend="cpu")
        terms.loss.backward()
        results.append((terms.loss.item(), terms.ssim.item(), render.grad))
    for loss, ssim, gradient in results[1:]:
        assert (loss, ssim) == results[0][:2]
        assert torch.equal(gradient, results[0][2])


def test_a_preview_between_forward_and_backward_changes_no_bit():
    scene = scenes.random_scene(2, 200, 60, 50, dtype=torch.float32)
    other = scenes.random_scene(3, 300, 33, 90, channels=7, dtype=torch.float32)
    alone = draw_with_gradients(scene, absolute_gradient=True)

    leaves = scene.with_gradients()
    rendering = draw(leaves, absolute_gradient=True)
    rendering.means_2d.retain_grad()
    with torch.no_grad():
        draw(other)
    backward(rendering)
    gradients = {name: leaf.grad for name, leaf in leaves.leaves()}
    assert_same_bits((rendering, {**gradients, "means_2d": rendering.means_2d.grad}), alone)


@pytest.mark.parametrize("channels", [3, 5])
def test_what_memory_held_before_does_not_matter(channels):
    scene = scenes.random_scene(
        4, 100, 45, 37, channels=channels, opacity_range=(0.8, 1.0), scale_range=(0.1, 1.0)
    )
    for dtype in (torch.float32, torch.float64):
        clean = draw_with_gradients(scene.to(dtype), absolute_gradient=True)
        # In this mode torch fills new memory with NaN and the largest integers.
        torch.use_deterministic_algorithms(True)
        try:
            assert scene.means.new_empty(3).isnan().all()
            assert torch.empty_like(scene.means).isnan().all()
            dirty = draw_with_gradients(scene.to(dtype), absolute_gradient=True)
        finally:
            torch.use_deterministic_algorithms(False)
        assert_same_bits(dirty, clean)


def test_two_backwards_of_one_picture_accumulate_the_same_gradient_twice():
    scene = scenes.random_scene(5, 80, dtype=torch.float32)
    _, once = draw_with_gradients(scene)
    leaves = scene.with_gradients()
    rendering = draw(leaves)
    pictures = (rendering.color, rendering.alpha, rendering.depth)
    for _ in range(2):
        torch.autograd.backward(pictures, seeds_of(rendering), retain_graph=True)
    for name, leaf in leaves.leaves():
        assert torch.equal(leaf.grad, 2 * once[name]), name
