"""A training loop as it is published, driven through the drop-in face."""

import math

import torch
from torch import Tensor

from cuda_rasterizer.diff_gaussian_rasterization import (
    GaussianRasterizationSettings,
    GaussianRasterizer,
)
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.drop_in import MiniCam
from tests.cuda_rasterizer.scenes import SplatScene


class GaussianModel:
    """Parameters and densification statistics by the names that such programs give them."""

    def __init__(self, scene: SplatScene) -> None:
        self._xyz = scene.means.clone().requires_grad_()
        self._features = scene.sh.clone().requires_grad_()
        self._scaling = scene.scales.log().requires_grad_()
        self._rotation = scene.quaternions.clone().requires_grad_()
        self._opacity = torch.logit(scene.opacities[:, None], eps=1e-3).requires_grad_()
        count = len(scene.means)
        self.xyz_gradient_accum = torch.zeros(count, 1)
        self.denom = torch.zeros(count, 1)
        self.max_radii2D = torch.zeros(count)
        parameters = [self._xyz, self._features, self._scaling, self._rotation, self._opacity]
        self.optimizer = torch.optim.Adam(parameters, lr=1e-2, eps=1e-15)

    def add_densification_stats(self, viewspace_point_tensor: Tensor, update_filter: Tensor):
        self.xyz_gradient_accum[update_filter] += torch.norm(
            viewspace_point_tensor.grad[update_filter, :2], dim=-1, keepdim=True
        )
        self.denom[update_filter] += 1


def render(viewpoint_camera: MiniCam, pc: GaussianModel, bg_color: Tensor, backend: str):
    screenspace_points = torch.zeros_like(pc._xyz, requires_grad=True) + 0
    screenspace_points.retain_grad()
    raster_settings = GaussianRasterizationSettings(
        image_height=int(viewpoint_camera.image_height),
        image_width=int(viewpoint_camera.image_width),
        tanfovx=math.tan(viewpoint_camera.FoVx * 0.5),
        tanfovy=math.tan(viewpoint_camera.FoVy * 0.5),
        bg=bg_color,
        scale_modifier=1.0,
        viewmatrix=viewpoint_camera.world_view_transform,
        projmatrix=viewpoint_camera.full_proj_transform,
        sh_degree=1,
        campos=viewpoint_camera.camera_center,
        prefiltered=False,
        debug=False,
        antialiasing=False,
    )
    rasterizer = GaussianRasterizer(raster_settings=raster_settings, backend=backend)
    rendered_image, radii, depth_image = rasterizer(
        means3D=pc._xyz,
        means2D=screenspace_points,
        shs=pc._features,
        colors_precomp=None,
        opacities=torch.sigmoid(pc._opacity),
        scales=torch.exp(pc._scaling),
        rotations=torch.nn.functional.normalize(pc._rotation),
        cov3D_precomp=None,
    )
    return {
        "render": rendered_image.clamp(0, 1),
        "viewspace_points": screenspace_points,
        "visibility_filter": (radii > 0).nonzero(),
        "radii": radii,
        "depth": depth_image,
    }


def test_a_published_training_loop_learns_and_finds_what_to_densify(backend):
    truth = scenes.random_scene(11, 30, 32, 16, sh_degree=1, dtype=torch.float32)
    camera = MiniCam(truth)
    background = torch.zeros(3)
    gt_image = render(camera, GaussianModel(truth), background, backend)["render"].detach()
    start = truth.replace(means=truth.means + 0.05, sh=torch.zeros_like(truth.sh))
    gaussians = GaussianModel(start)
    losses = []
    for _ in range(8 if backend != "cuda" else 4):  # the emulator is slow
        package = render(camera, gaussians, background, backend)
        visibility_filter, radii = package["visibility_filter"], package["radii"]
        loss = (package["render"] - gt_image).abs().mean()
        loss.backward()
        losses.append(loss.item())
        with torch.no_grad():
            gaussians.max_radii2D[visibility_filter] = torch.max(
                gaussians.max_radii2D[visibility_filter], radii[visibility_filter]
            )
            gaussians.add_densification_stats(package["viewspace_points"], visibility_filter)
            gaussians.optimizer.step()
            gaussians.optimizer.zero_grad(set_to_none=True)
    assert losses[-1] < 0.9 * losses[0]
    grads = gaussians.xyz_gradient_accum / gaussians.denom
    grads[grads.isnan()] = 0.0
    selected = torch.where(torch.norm(grads, dim=-1) >= 2e-4, True, False)
    assert 0 < int(selected.sum()) <= len(truth.means)
    assert gaussians.max_radii2D.max() > 0
