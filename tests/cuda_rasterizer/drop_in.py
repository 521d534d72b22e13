"""Cameras and arguments as programs keep them that know the drop-in face by its older names."""

import math
from typing import Any

import torch

from cuda_rasterizer.diff_gaussian_rasterization import GaussianRasterizationSettings
from tests.cuda_rasterizer.scenes import SplatScene


class MiniCam:
    """A camera as such programs keep it: transposed matrices, fields of view, a centre."""

    def __init__(self, scene: SplatScene, shift: tuple[float, float] = (0.0, 0.0)) -> None:
        fx, fy = (float(scene.intrinsics[i, i]) for i in range(2))
        self.image_width, self.image_height = scene.width, scene.height
        self.FoVx = 2 * math.atan(scene.width / (2 * fx))
        self.FoVy = 2 * math.atan(scene.height / (2 * fy))
        self.world_view_transform = scene.world_to_camera.T.contiguous()
        near, far = 0.01, 100.0
        projection = torch.tensor(
            [
                [1 / math.tan(self.FoVx / 2), 0.0, shift[0], 0.0],
                [0.0, 1 / math.tan(self.FoVy / 2), shift[1], 0.0],
                [0.0, 0.0, far / (far - near), -far * near / (far - near)],
                [0.0, 0.0, 1.0, 0.0],
            ],
            dtype=scene.means.dtype,
        )
        self.full_proj_transform = self.world_view_transform @ projection.T
        self.camera_center = torch.linalg.inv(self.world_view_transform)[3, :3]


def settings_for(scene: SplatScene, **changes: Any) -> GaussianRasterizationSettings:
    camera = MiniCam(scene, changes.pop("shift", (0.0, 0.0)))
    background = scene.background if scene.background is not None else torch.zeros(3)
    values: dict[str, Any] = {
        "image_height": camera.image_height,
        "image_width": camera.image_width,
        "tanfovx": math.tan(camera.FoVx * 0.5),
        "tanfovy": math.tan(camera.FoVy * 0.5),
        "bg": background,
        "scale_modifier": 1.0,
        "viewmatrix": camera.world_view_transform,
        "projmatrix": camera.full_proj_transform,
        "sh_degree": 0 if scene.sh is None else 3,
        "campos": camera.camera_center,
        "prefiltered": False,
        "debug": False,
    }
    return GaussianRasterizationSettings(**{**values, **changes})


def arguments_of(scene: SplatScene) -> dict[str, Any]:
    means2D = torch.zeros(len(scene.means), 3, dtype=scene.means.dtype)
    return {
        "means3D": scene.means,
        "means2D": means2D.requires_grad_(),
        "shs": scene.sh,
        "colors_precomp": scene.features,
        "opacities": scene.opacities[:, None],
        "scales": scene.scales,
        "rotations": scene.quaternions,
        "cov3D_precomp": None,
    }
