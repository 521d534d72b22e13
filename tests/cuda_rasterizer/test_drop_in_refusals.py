"""What the drop-in face refuses, and with which words."""

from typing import Any

import pytest
import torch

from cuda_rasterizer import RasterizerError
from cuda_rasterizer.diff_gaussian_rasterization import (
    GaussianRasterizationSettings,
    GaussianRasterizer,
)
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.drop_in import arguments_of, settings_for

WRONG_ARGUMENTS = {
    "both shapes": ({"cov3D_precomp": torch.ones(10, 6)}, "cov3D_precomp, but not both"),
    "long covariances": (
        {"cov3D_precomp": torch.ones(10, 9), "scales": None, "rotations": None},
        r"shape \(10, 9\); expected \(splats, 6\)",
    ),
    "no scales": ({"scales": None}, "scales are missing"),
    "no rotations": ({"rotations": None}, "rotations are missing"),
    "no colours": ({"colors_precomp": None}, "neither shs nor colors_precomp"),
    "two colours": ({"shs": torch.ones(10, 1, 3)}, "both shs and colors_precomp"),
    "means2D too few": ({"means2D": torch.ones(9, 3).requires_grad_()}, r"means2D has shape \(9"),
}


@pytest.mark.parametrize("case", WRONG_ARGUMENTS)
def test_arguments_that_do_not_fit_are_refused_with_the_reason(case):
    scene = scenes.random_scene(8, 10)
    changes, message = WRONG_ARGUMENTS[case]
    with pytest.raises(RasterizerError, match=message):
        GaussianRasterizer(settings_for(scene), "reference")(**{**arguments_of(scene), **changes})


def wrong_settings(case: str, right: GaussianRasterizationSettings) -> dict[str, Any]:
    return {
        "view not transposed": {"viewmatrix": right.viewmatrix.T},
        "projection not transposed": {"projmatrix": right.projmatrix.T},
        "projection alone": {"projmatrix": torch.linalg.inv(right.viewmatrix) @ right.projmatrix},
        "another field of view": {"tanfovx": 2 * right.tanfovx},
        "another centre": {"campos": right.campos + 0.1},
        "scaled view": {"viewmatrix": right.viewmatrix * 2},
        "no projection": {"projmatrix": torch.zeros(4, 4, dtype=torch.float64)},
    }[case]


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("view not transposed", "viewmatrix is not the transposed"),
        ("projection not transposed", "projmatrix is not viewmatrix times"),
        ("projection alone", "projmatrix is not viewmatrix times"),
        ("another field of view", "projmatrix is not viewmatrix times"),
        ("another centre", "campos is"),
        ("scaled view", "viewmatrix is not the transposed"),
        ("no projection", "projmatrix is not viewmatrix times"),
    ],
)
def test_cameras_that_contradict_themselves_are_refused(case, message):
    scene = scenes.random_scene(9, 3)
    right = settings_for(scene)
    settings = right._replace(**wrong_settings(case, right))
    with pytest.raises(RasterizerError, match=message):
        GaussianRasterizer(settings, "reference")(**arguments_of(scene))


def test_float32_matrices_far_from_the_origin_are_accepted():
    scene = scenes.random_scene(10, 3)
    pose = scene.world_to_camera.clone()
    pose[:3, 3] = torch.tensor([800.0, -500.0, 300.0])
    scene = scene.replace(world_to_camera=pose).to(torch.float32)
    GaussianRasterizer(settings_for(scene), "reference")(**arguments_of(scene))
