"""What `rasterize` refuses, and that the message says what was found and what was expected."""

import pytest
import torch

from cuda_rasterizer import Cutoffs, RasterizerError, rasterize
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.drawing import draw

SKEWED = torch.tensor([[40.0, 1.0, 10.0], [0.0, 40.0, 10.0], [0.0, 0.0, 1.0]])
REFUSED = {
    "no width": ({"width": 0}, "0 x 21 pixels; both must be at least 1"),
    "wrong scales": (
        {"scales": torch.ones(2, 3, dtype=torch.float64)},
        r"scales have shape \(2, 3\); expected \(1, 3\)",
    ),
    "scales of another type": (
        {"scales": torch.ones(1, 3)},
        "scales are torch.float32 on cpu; expected torch.float64",
    ),
    "half precision": (
        {"means": torch.ones(1, 3, dtype=torch.float16)},
        "means are torch.float16; expected torch.float32 or torch.float64",
    ),
    "no colour": ({"features": None}, "neither of features and sh"),
    "two colours": ({"sh": torch.ones(1, 1, 3, dtype=torch.float64)}, "both of features and sh"),
    "flat pose": ({"world_to_camera": torch.eye(3)}, r"world_to_camera have shape \(3, 3\)"),
    "skew": ({"intrinsics": SKEWED}, "skew of 1.0; expected 0"),
    "background": ({"background": torch.ones(4)}, r"background has shape \(4,\); expected \(3,\)"),
    "degree with features": ({"sh_degree": 1}, "sh_degree is 1 but features are given"),
    "degree too high": (
        {"features": None, "sh": torch.ones(1, 4, 3, dtype=torch.float64), "sh_degree": 2},
        "sh_degree is 2; the 4 coefficients given reach from 0 to 1",
    ),
    "five coefficients": (
        {"features": None, "sh": torch.ones(1, 5, 3, dtype=torch.float64)},
        "5 SH coefficients",
    ),
    "backend": ({"backend": "fast"}, "no backend 'fast'"),
}


@pytest.mark.parametrize(("changes", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_an_argument_that_does_not_fit_is_refused(changes, message):
    scene = scenes.scene_of([[0.0, 0.0, 2.0]])
    splats = dict(zip(("means", "quaternions", "scales", "opacities"), scene.splats, strict=True))
    arguments = {**splats, **scene.projection, "backend": "reference", **changes}
    with pytest.raises(RasterizerError, match=message):
        rasterize(**arguments)


def test_the_reference_has_no_absolute_gradient_and_says_so():
    with pytest.raises(RasterizerError, match="no absolute gradient"):
        draw(scenes.scene_of([[0.0, 0.0, 2.0]]), "reference", absolute_gradient=True)


@pytest.mark.parametrize(
    "changes",
    [
        {"near": 0.0},
        {"alpha_ceiling": 1.0},
        {"alpha_floor": -0.1},
        {"stop_transmittance": 1.0},
        {"footprint_cap": 0.0},
        {"dilation": float("nan")},
    ],
)
def test_cut_offs_without_meaning_are_refused(changes):
    name, value = next(iter(changes.items()))
    with pytest.raises(RasterizerError, match=f"{name} is {value}"):
        Cutoffs(**changes)


def test_tensors_that_are_not_contiguous_are_drawn_alike(backend):
    scene = scenes.random_scene(3, 20)
    strewn = scene.replace(
        means=scene.means.T.contiguous().T,
        scales=torch.stack([scene.scales, scene.scales])[1],
        opacities=torch.stack([scene.opacities] * 2, dim=1)[:, 0],
        world_to_camera=scene.world_to_camera.T.contiguous().T,
    )
    assert torch.equal(draw(strewn, backend).color, draw(scene, backend).color)


def test_a_float32_camera_serves_float64_splats(backend):
    scene = scenes.random_scene(3, 20)
    exact = scene.world_to_camera.float()
    found = draw(scene.replace(world_to_camera=exact), backend)
    expected = draw(scene.replace(world_to_camera=exact.double()), backend)
    assert torch.equal(found.color, expected.color)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
def test_a_ceiling_that_float32_rounds_to_one_is_refused(backend: str) -> None:
    scene = scenes.hard_case("opaque stack", torch.float32)
    with pytest.raises(RasterizerError, match=r"rounds to 1 in torch\.float32"):
        draw(scene, backend=backend, cutoffs=Cutoffs(alpha_ceiling=1 - 1e-12))
