"""What the field has learnt about autograd, each lesson as a test that catches its loss.

They run on every backend alike, CUDA's on the emulator; the lessons of the training loop are in
`tests/engine/training/test_training_lessons`.
"""

import dataclasses

import pytest
import torch
from torch import Tensor

from cuda_rasterizer import (
    AdamGroup,
    RasterizerError,
    Rendering,
    adam_step,
    l1_ssim,
    reference,
)
from tests.cuda_rasterizer import drawing, scenes
from tests.cuda_rasterizer.scenes import SplatScene


def dtype_of(backend: str) -> torch.dtype:
    """What the backend computes in."""
    return torch.float32 if backend == "cuda" else torch.float64


def rounding(backend: str) -> dict[str, float]:
    """How far values of order 1 may lie apart that were reached by different operations."""
    if backend == "cuda":  # a few dozen roundings of float32
        return {"rtol": 1e-5, "atol": 2e-6}
    return {"rtol": 1e-10, "atol": 1e-12}


def draw(scene: SplatScene, backend: str) -> Rendering:
    """Pictures in float64, like the scene, whatever the backend computes in."""
    drawn = drawing.draw(scene, backend)
    pictures = {name: getattr(drawn, name).double() for name in ("color", "alpha", "depth")}
    return dataclasses.replace(drawn, **pictures)


def layers(opacities: list[float], *, background: list[float] | None = None) -> SplatScene:
    """Coloured splats one behind the other, front first, centred on pixel (10, 10)."""
    colors = [[0.9, 0.2, 0.1], [0.1, 0.8, 0.3], [0.2, 0.3, 0.7]][: len(opacities)]
    means = [[0.0, 0.0, 2.0 + i] for i in range(len(opacities))]
    return scenes.scene_of(
        means, opacities=opacities, colors=colors, background=background
    ).with_gradients()


# --- gradients add up -----------------------------------------------------------------------------


def test_gradients_of_two_renders_add_up(backend):
    scene = scenes.random_scene(1, 20).with_gradients()
    draw(scene, backend).color.square().sum().backward()
    once = {name: leaf.grad.clone() for name, leaf in scene.leaves()}
    draw(scene, backend).color.square().sum().backward()
    for name, leaf in scene.leaves():
        torch.testing.assert_close(leaf.grad, 2 * once[name], msg=name, **rounding(backend))


# --- looking records nothing ----------------------------------------------------------------------


def test_a_picture_drawn_to_be_looked_at_has_no_graph(backend):
    scene = scenes.random_scene(2, 20).with_gradients()
    with torch.no_grad():
        rendering = draw(scene, backend)
    for name in ("color", "alpha", "depth", "means_2d"):
        tensor = getattr(rendering, name)
        assert tensor.grad_fn is None, name
        assert not tensor.requires_grad, name


# --- the shape of the gradients -------------------------------------------------------------------


def test_the_gradient_on_a_raw_quaternion_is_orthogonal_to_it(backend):
    """Its length changes nothing, so no gradient may point along it (that would inflate it)."""
    scene = scenes.random_scene(3, 30).with_gradients()
    draw(scene, backend).color.square().sum().backward()
    gradient, quaternions = scene.quaternions.grad, scene.quaternions.detach()
    along = (gradient * quaternions).sum(-1)
    lengths = gradient.norm(dim=-1) * quaternions.norm(dim=-1)
    assert lengths.max() > 0.1
    assert along.abs().max() <= rounding(backend)["rtol"] * lengths.max()


def test_a_saturated_opacity_logit_is_nearly_frozen(backend):
    """Why opacities are lowered by a reset and not left to the gradient."""
    logits = torch.tensor([0.0, 12.0], dtype=torch.float64, requires_grad=True)
    scene = scenes.scene_of([[-0.2, 0.0, 2.0], [0.2, 0.0, 2.0]], scales=0.05)
    draw(scene.replace(opacities=logits.sigmoid()), backend).color.sum().backward()
    # sigmoid'(12) / sigmoid'(0) is 2.5e-5.
    assert logits.grad[0] > 0.1
    assert 0 < logits.grad[1] < 1e-4 * logits.grad[0]


def test_the_gradient_of_a_front_alpha_counts_what_it_hides(backend):
    """dC/dalpha_1 = c_1 - (what lies behind, as seen without it): the occlusion term."""
    background = [0.3, 0.6, 0.2]
    scene = layers([0.6, 0.4], background=background)
    front, back = scene.features.detach()
    behind = 0.4 * back + 0.6 * torch.tensor(background, dtype=torch.float64)
    color = draw(scene, backend).color[10, 10]
    for channel in range(3):
        (gradient,) = torch.autograd.grad(color[channel], scene.opacities, retain_graph=True)
        torch.testing.assert_close(gradient[0], (front - behind)[channel], **rounding(backend))
        hidden_by_front = 0.4 * (back[channel] - background[channel])
        torch.testing.assert_close(gradient[1], hidden_by_front, **rounding(backend))


def test_a_splat_is_weighed_by_the_transmittance_before_it_not_after(backend):
    """dC/dc_i = T_i alpha_i with T_i the product over j < i: exclusive of the splat itself."""
    scene = layers([0.5, 0.4, 0.3], background=[0.0, 0.0, 0.0])
    picture = draw(scene, backend)
    picture.color[10, 10].sum().backward()
    weights = torch.tensor([0.5, 0.5 * 0.4, 0.5 * 0.6 * 0.3], dtype=torch.float64)
    torch.testing.assert_close(
        scene.features.grad, weights[:, None].expand(3, 3), **rounding(backend)
    )
    left = torch.full((3,), 0.5 * 0.6 * 0.7, dtype=torch.float64)
    torch.testing.assert_close(scene.background.grad, left, **rounding(backend))


def test_at_the_alpha_ceiling_the_opacity_is_frozen_and_the_colour_is_not(backend):
    scene = layers([1.0])
    color = draw(scene, backend).color[10, 10]
    assert color[0].item() == pytest.approx(0.99 * 0.9, rel=rounding(backend)["rtol"])
    color.sum().backward()
    assert scene.opacities.grad.item() == 0
    assert (scene.scales.grad == 0).all()
    expected = torch.full((1, 3), 0.99, dtype=torch.float64)
    torch.testing.assert_close(scene.features.grad, expected, **rounding(backend))


# --- windows and strides --------------------------------------------------------------------------


def test_a_window_expanded_for_ssim_has_memory_of_its_own_for_each_channel():
    window = reference.ssim_window(3, torch.zeros(1))
    assert window.is_contiguous()
    window[0] = 0
    assert window[1:].sum() == pytest.approx(2.0, rel=1e-6)


def test_pictures_that_are_expanded_or_transposed_have_the_loss_of_their_copies(backend):
    random = torch.Generator().manual_seed(5)
    grey = torch.rand(14, 18, 1, generator=random, dtype=dtype_of(backend))
    planes = torch.rand(3, 14, 18, generator=random, dtype=dtype_of(backend))
    losses, gradients = [], []
    for copy in (False, True):
        leaf = grey.clone().requires_grad_()
        render, target = leaf.expand(14, 18, 3), planes.permute(1, 2, 0)
        if copy:
            render, target = render.contiguous(), target.contiguous()
        loss = l1_ssim(render, target, 0.2, backend=backend).loss
        loss.backward()
        losses.append(loss.detach())
        gradients.append(leaf.grad)
    torch.testing.assert_close(losses[0], losses[1], **rounding(backend))
    torch.testing.assert_close(gradients[0], gradients[1], **rounding(backend))


# --- asking for a gradient without leaving one ----------------------------------------------------


def test_autograd_grad_on_a_render_leaves_every_grad_untouched(backend):
    scene = scenes.random_scene(6, 20).with_gradients()
    scene.means.grad = torch.full_like(scene.means, 7.0)
    leaves = dict(scene.leaves())
    gradients = torch.autograd.grad(draw(scene, backend).color.sum(), tuple(leaves.values()))
    assert all(gradient.any() for gradient in gradients)
    assert (scene.means.grad == 7.0).all()
    assert all(leaf.grad is None for name, leaf in leaves.items() if name != "means")


def test_a_picture_needs_a_seed_and_its_gradient_is_the_seeds_vector_jacobian_product(backend):
    scene = scenes.random_scene(7, 20).with_gradients()
    color = draw(scene, backend).color
    with pytest.raises(RuntimeError, match="scalar"):
        torch.autograd.grad(color, scene.features, retain_graph=True)
    seed = torch.randn(color.shape, generator=torch.Generator().manual_seed(1)).double()
    (by_seed,) = torch.autograd.grad(color, scene.features, seed, retain_graph=True)
    (by_sum,) = torch.autograd.grad((color * seed).sum(), scene.features)
    torch.testing.assert_close(by_seed, by_sum, **rounding(backend))
    assert by_seed.any()


def test_an_unused_input_gives_none_when_allowed_and_an_error_otherwise(backend):
    scene = scenes.random_scene(8, 20).with_gradients()
    stranger = torch.zeros(3, dtype=torch.float64, requires_grad=True)
    color = draw(scene, backend).color.sum()
    with pytest.raises(RuntimeError, match="allow_unused=True"):
        torch.autograd.grad(color, (scene.means, stranger), retain_graph=True)
    used, unused = torch.autograd.grad(color, (scene.means, stranger), allow_unused=True)
    assert used.any()
    assert unused is None


@pytest.mark.parametrize("wanted", ["means", "scales", "opacities", "features", "background"])
def test_inputs_that_need_no_gradient_get_none_and_the_one_that_does_gets_its_own(backend, wanted):
    full = scenes.random_scene(9, 20).with_gradients()
    draw(full, backend).color.square().sum().backward()
    scene = scenes.random_scene(9, 20)
    getattr(scene, wanted).requires_grad_()
    draw(scene, backend).color.square().sum().backward()
    for name, leaf in scene.leaves():
        if name == wanted:
            torch.testing.assert_close(leaf.grad, getattr(full, name).grad, **rounding(backend))
        else:
            assert leaf.grad is None, name


def test_with_no_gradient_wanted_the_picture_has_no_graph(backend):
    rendering = draw(scenes.random_scene(9, 20), backend)
    assert rendering.color.grad_fn is None


# --- derivatives of derivatives -------------------------------------------------------------------


def test_a_second_derivative_is_the_references_to_give():
    scene = scenes.random_scene(10, 8, 12, 9).with_gradients()
    loss = draw(scene, "reference").color.square().sum()
    (gradient,) = torch.autograd.grad(loss, scene.means, create_graph=True)
    (second,) = torch.autograd.grad(gradient.square().sum(), scene.opacities)
    assert second.isfinite().all()
    assert second.any()


@pytest.mark.parametrize("leaf", ["means", "opacities", "features"])
def test_the_fast_backend_refuses_a_second_derivative_with_a_sentence(fast_backend, leaf):
    scene = scenes.random_scene(10, 8, 12, 9).with_gradients()
    loss = draw(scene, fast_backend).color.square().sum()
    (gradient,) = torch.autograd.grad(loss, getattr(scene, leaf), create_graph=True)
    with pytest.raises(RasterizerError, match="no second derivative; use backend='reference'"):
        gradient.square().sum().backward()


def test_the_fast_loss_refuses_a_second_derivative_too(fast_backend):
    render = torch.rand(9, 9, 3, generator=torch.Generator().manual_seed(1)).requires_grad_()
    loss = l1_ssim(render, torch.zeros(9, 9, 3), 0.2, backend=fast_backend).loss
    (gradient,) = torch.autograd.grad(loss, render, create_graph=True)
    with pytest.raises(RasterizerError, match="no second derivative"):
        gradient.square().sum().backward()


# --- a small fit, start to end --------------------------------------------------------------------


def fitted(scene: SplatScene, target: Tensor, backend: str, steps: int) -> tuple[Tensor, Tensor]:
    """Colours and opacities under which the scene's centre pixel has the colour `target`."""
    colors = scene.features.detach().to(dtype_of(backend), copy=True).requires_grad_()
    logits = scene.opacities.detach().logit().to(dtype_of(backend)).requires_grad_()
    moments = {leaf: (torch.zeros_like(leaf), torch.zeros_like(leaf)) for leaf in (colors, logits)}
    for step in range(1, steps + 1):
        tried = scene.replace(features=colors, opacities=logits.sigmoid())
        loss = (draw(tried, backend).color[2, 2] - target).square().sum()
        loss.backward()
        groups = [AdamGroup(leaf, leaf.grad, *pair, 0.03, step) for leaf, pair in moments.items()]
        adam_step(groups, beta1=0.9, beta2=0.999, eps=1e-15, backend=backend)
        for leaf in moments:
            leaf.grad = None
    return colors.detach(), logits.detach().sigmoid()


def test_two_semi_transparent_layers_can_be_fitted_to_a_colour(backend):
    scene = scenes.scene_of(
        [[0.0, 0.0, 2.0], [0.0, 0.0, 3.0]],
        opacities=[0.5, 0.5],
        colors=[[0.5, 0.5, 0.5], [0.2, 0.2, 0.2]],
        background=[0.0, 0.0, 0.0],
        width=5,
        height=5,
    )
    given = {name: (leaf, leaf.clone()) for name, leaf in scene.leaves()}
    target = torch.tensor([0.8, 0.3, 0.55], dtype=torch.float64)
    colors, opacities = fitted(scene, target, backend, steps=150)
    result = draw(scene.replace(features=colors, opacities=opacities), backend).color[2, 2]
    # Adam at a rate of 0.03 settles to well within a byte's width of the colour.
    torch.testing.assert_close(result, target, rtol=0, atol=1e-3)
    assert ((opacities > 0.05) & (opacities < 0.95)).all()
    for name, (leaf, before) in given.items():
        assert torch.equal(leaf, before), name
        assert leaf.grad is None, name
        assert not leaf.requires_grad, name
