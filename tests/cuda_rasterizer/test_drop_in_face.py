"""The drop-in face, driven as programs drive the package whose names it has.

Truth is the public `rasterize`, finite differences and closed forms.
"""

from typing import Any

import pytest
import torch
from torch import Tensor

from cuda_rasterizer import RasterizerError, rasterize
from cuda_rasterizer.diff_gaussian_rasterization import (
    GaussianRasterizer,
)
from cuda_rasterizer.reference_projection import covariances
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.drop_in import arguments_of, settings_for
from tests.cuda_rasterizer.scenes import SplatScene


def public(scene: SplatScene, backend: str, **options: Any) -> Any:
    arguments = {**scene.projection, "background": scene.background, **options}
    return rasterize(*scene.splats, **arguments, backend=backend)


def of_backend(backend: str, scene: SplatScene) -> SplatScene:
    """The scene in the float type that the backend has."""
    return scene.to(torch.float32) if backend == "cuda" else scene


def assert_close(found: Tensor, expected: Tensor, what: str = "") -> None:
    """Alike but for the detour over transposed matrices and fields of view.

    In float32 that moves a splat by a few 1e-5 pixels, and sums of gradients by their rounding.
    """
    close = {"rtol": 1e-9, "atol": 1e-11}
    if found.dtype == torch.float32:
        close = {"rtol": 1e-3, "atol": 1e-4}
    torch.testing.assert_close(found, expected, msg=lambda text: f"{what} {text}", **close)


@pytest.mark.parametrize("sh_degree", [None, 3])
@pytest.mark.parametrize("antialiasing", [False, True])
def test_picture_radii_and_gradients_are_those_of_the_public_function(
    backend, sh_degree, antialiasing
):
    scene = of_backend(
        backend, scenes.random_scene(1, 25, 24, 15, sh_degree=sh_degree)
    ).with_gradients()
    seed = torch.linspace(-1, 1, scene.height * scene.width * 3, dtype=scene.means.dtype)
    seed = seed.reshape(scene.height, scene.width, 3)
    rendering = public(scene, backend, antialiased=antialiasing)
    rendering.means_2d.retain_grad()
    rendering.color.backward(seed)
    expected = {name: leaf.grad for name, leaf in scene.leaves() if name != "background"}

    scene = scene.with_gradients()
    rasterizer = GaussianRasterizer(settings_for(scene, antialiasing=antialiasing), backend)
    arguments = arguments_of(scene)
    color, radii, _ = rasterizer(**arguments)
    color.backward(seed.permute(2, 0, 1))

    assert_close(color, rendering.color.permute(2, 0, 1))
    assert color.is_contiguous()
    assert radii.dtype == torch.int32
    assert torch.equal(radii, rendering.radii.amax(dim=1))
    for name, leaf in scene.leaves():
        if name in expected:
            assert_close(leaf.grad, expected[name], name)
    on_screen = arguments["means2D"].grad
    half = torch.tensor([scene.width / 2, scene.height / 2], dtype=scene.means.dtype)
    assert_close(on_screen[:, :2], rendering.means_2d.grad * half)
    assert not on_screen[:, 2].any()


def test_the_gradient_of_means2d_is_by_ndc(backend):
    # One splat: moving its centre by d in NDC is the same as an off-centre projection of d.
    splat = scenes.scene_of([[0.02, 0.03, 2.0]], scales=0.15, background=[0.2, 0.1, 0.4])
    weights = torch.linspace(0, 1, 3 * splat.height * splat.width, dtype=torch.float64)
    weights = weights.reshape(3, splat.height, splat.width)

    def loss(scene: SplatScene, backend: str, *shift: float) -> tuple[Tensor, Tensor]:
        arguments = arguments_of(scene)
        color, _ = GaussianRasterizer(settings_for(scene, shift=shift), backend)(**arguments)
        return (color * weights).sum(), arguments["means2D"]

    value, means2D = loss(of_backend(backend, splat), backend, 0.0, 0.0)
    value.backward()
    step = 1e-5
    for axis in range(2):
        shift = [step * (axis == place) for place in range(2)]
        above, _ = loss(splat, "reference", *shift)
        below, _ = loss(splat, "reference", *(-value for value in shift))
        slope = (above - below) / (2 * step)
        # Central differences of a smooth loss: the error goes as step^2, rounding as 1e-16 / step.
        close = 1e-6 if backend != "cuda" else 1e-4
        assert means2D.grad[0, axis].item() == pytest.approx(slope.item(), rel=close, abs=1e-8)


def test_a_second_backward_adds_as_much_again(backend):
    scene = of_backend(backend, scenes.random_scene(2, 20, 16, 12)).with_gradients()
    arguments = arguments_of(scene)
    color, _ = GaussianRasterizer(settings_for(scene), backend)(**arguments)
    color.square().sum().backward(retain_graph=True)
    once = arguments["means2D"].grad.clone()
    color.square().sum().backward()
    assert_close(arguments["means2D"].grad, 2 * once)


def test_means2d_has_its_gradient_without_any_of_the_splats(backend):
    scene = of_backend(backend, scenes.random_scene(3, 20, 16, 12))
    arguments = arguments_of(scene)
    color, radii = GaussianRasterizer(settings_for(scene), backend)(**arguments)
    color.square().sum().backward()
    assert arguments["means2D"].grad[radii > 0].any()
    assert not arguments["means2D"].grad[radii == 0].any()


def test_inverse_depth_is_alpha_over_z_and_has_a_gradient(backend):
    splat = scenes.scene_of([[0.0, 0.0, 2.5]], scales=0.2)
    scene = of_backend(backend, splat).with_gradients()
    rasterizer = GaussianRasterizer(settings_for(scene, antialiasing=False), backend)
    _, _, inverse = rasterizer(**arguments_of(scene))
    assert inverse.shape == (1, scene.height, scene.width)
    assert_close(inverse[0], public(scene, backend).alpha / 2.5)
    inverse[0, 10, 10].backward()
    # In the middle alpha is the opacity 0.5, whatever the size on the screen: only 1 / z changes.
    assert float(scene.means.grad[0, 2]) == pytest.approx(-0.5 / 2.5**2, rel=1e-5)


def test_covariances_draw_what_their_scales_and_rotations_do_with_the_gradient(backend):
    scene = of_backend(backend, scenes.random_scene(13, 25, 24, 15, sh_degree=1))
    matrices = covariances(scene.quaternions, scene.scales)
    rows, columns = torch.triu_indices(3, 3)
    found: dict[str, tuple[Tensor, ...]] = {}
    for shapes in ("scales and rotations", "covariances"):
        upper = matrices[:, rows, columns].clone().requires_grad_()
        moved = scene.with_gradients()
        arguments = arguments_of(moved)
        if shapes == "covariances":
            arguments |= {"scales": None, "rotations": None, "cov3D_precomp": upper}
        settings = settings_for(scene, sh_degree=1)
        color, radii = GaussianRasterizer(settings, backend)(**arguments)
        color.square().sum().backward()
        found[shapes] = (color, moved.means.grad, moved.sh.grad, arguments["means2D"].grad)
        assert radii.max() > 0
    for given, expected in zip(*found.values(), strict=True):
        assert_close(given, expected)
    # The chain rule from covariances to scales closes the circle.
    leaf = scene.with_gradients()
    through = covariances(leaf.quaternions, leaf.scales)[:, rows, columns]
    (by_chain,) = torch.autograd.grad(through, leaf.scales, upper.grad)
    drawn = scene.with_gradients()
    GaussianRasterizer(settings, backend)(**arguments_of(drawn))[0].square().sum().backward()
    assert_close(by_chain, drawn.scales.grad)


@pytest.mark.parametrize("channels", [3, 5])
def test_inverse_depth_is_drawn_beside_any_colours(backend, channels):
    drawn = of_backend(backend, scenes.random_scene(12, 25, 24, 15, channels=channels))
    found = {}
    for name in (backend, "reference"):
        scene = drawn.with_gradients()
        arguments = arguments_of(scene)
        settings = settings_for(scene, antialiasing=True)
        color, _, inverse = GaussianRasterizer(settings, name)(**arguments)
        assert color.shape == (channels, scene.height, scene.width)
        (color.square().mean() + inverse.square().sum()).backward()
        gradients = {leaf: tensor.grad for leaf, tensor in scene.leaves()}
        found[name] = {"inverse": inverse, **gradients, "means2D": arguments["means2D"].grad}
    for what, expected in found["reference"].items():
        assert_close(found[backend][what], expected, what)


def test_programs_that_do_not_know_antialiasing_get_two_results(backend):
    scene = of_backend(backend, scenes.random_scene(4, 5, 16, 12))
    assert len(GaussianRasterizer(settings_for(scene), backend)(**arguments_of(scene))) == 2


def test_the_scale_modifier_multiplies_scales(backend):
    scene = of_backend(backend, scenes.random_scene(5, 20, 16, 12))
    color, *_ = GaussianRasterizer(settings_for(scene, scale_modifier=0.5), backend)(
        **arguments_of(scene)
    )
    smaller = scene.replace(scales=scene.scales * 0.5)
    assert_close(color, public(smaller, backend).color.permute(2, 0, 1))


def test_mark_visible_tells_what_lies_before_the_near_plane():
    scene = scenes.scene_of([[0.0, 0.0, 0.21], [0.0, 0.0, 0.19], [0.0, 0.0, -3.0]])
    visible = GaussianRasterizer(settings_for(scene)).markVisible(scene.means)
    assert visible.tolist() == [True, False, False]
    assert visible.dtype == torch.bool


def test_empty_tensors_stand_for_what_is_not_given(backend):
    scene = of_backend(backend, scenes.random_scene(6, 10, 16, 12))
    arguments = arguments_of(scene)
    nothing = torch.Tensor([])
    arguments["shs"] = arguments["cov3D_precomp"] = nothing
    color, _ = GaussianRasterizer(settings_for(scene), backend)(**arguments)
    assert_close(color, public(scene, backend).color.permute(2, 0, 1))


@pytest.mark.parametrize("sh_degree", [None, 3])
def test_no_splats_give_the_background(backend, sh_degree):
    scene = of_backend(backend, scenes.random_scene(6, 0, 16, 12, sh_degree=sh_degree))
    settings = settings_for(scene, antialiasing=True)
    color, radii, inverse = GaussianRasterizer(settings, backend)(**arguments_of(scene))
    assert torch.equal(color, scene.background[:, None, None].expand_as(color))
    assert len(radii) == 0
    assert not inverse.any()


def test_the_environment_names_the_backend(monkeypatch):
    scene = scenes.random_scene(7, 5)
    monkeypatch.setenv("SPLATSCOPE_BACKEND", "no-such-thing")
    with pytest.raises(RasterizerError, match="no backend 'no-such-thing'"):
        GaussianRasterizer(settings_for(scene))(**arguments_of(scene))
