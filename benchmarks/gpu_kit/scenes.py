"""Scenes as training meets them in the middle of a run, made on the device, and one step of it."""

import dataclasses
import math

import torch
from torch import Tensor

from cuda_rasterizer import (
    CLASSIC,
    AdamGroup,
    Rendering,
    SplatInputs,
    StepGuard,
    StepMemory,
    View,
    adam_step,
    draw_for_training,
    l1_ssim_with_gradient,
    rasterize,
)

# Splats that a pixel's list holds on average: sum of the areas within 2.5 standard deviations.
DEPTH_COMPLEXITY = 40
SSIM_WEIGHT = 0.2
BETAS, EPSILON = (0.9, 0.999), 1e-15
RATES = {
    "means": 1e-5,
    "quaternions": 1e-3,
    "log_scales": 5e-3,
    "logits": 5e-2,
    "sh_dc": 2.5e-3,
    "sh_rest": 1.25e-4,
}


@dataclasses.dataclass
class TrainingScene:
    """Raw parameters (leaves), one camera, a photo, and Adam's moments."""

    means: Tensor
    quaternions: Tensor
    log_scales: Tensor
    logits: Tensor
    sh_dc: Tensor
    sh_rest: Tensor
    world_to_camera: Tensor
    intrinsics: Tensor
    background: Tensor
    target: Tensor
    backend: str
    steps: int = 0

    def __post_init__(self) -> None:
        """Moments begin at zero."""
        self.guard = StepGuard(self.means.device)
        self.memory = StepMemory()
        self.moments = {
            name: (torch.zeros_like(leaf.detach()), torch.zeros_like(leaf.detach()))
            for name, leaf in self.leaves().items()
        }

    def leaves(self) -> dict[str, Tensor]:
        """Everything that Adam moves."""
        return {name: getattr(self, name) for name in RATES}

    @property
    def size(self) -> tuple[int, int]:
        """Width and height."""
        return self.target.shape[1], self.target.shape[0]

    def draw(self) -> Rendering:
        """The picture."""
        width, height = self.size
        return rasterize(
            *(self.means, self.quaternions, self.log_scales, self.logits),
            world_to_camera=self.world_to_camera,
            intrinsics=self.intrinsics,
            width=width,
            height=height,
            sh=(self.sh_dc, self.sh_rest),
            background=self.background,
            raw=True,
            depth=False,
            backend=self.backend,
        )

    def forward_and_backward(self) -> None:
        """Everything of a step but Adam; gradients replace those before, or overwrite them."""
        splats = SplatInputs(
            means=self.means,
            quaternions=self.quaternions,
            scales=self.log_scales,
            opacities=self.logits,
            sh_dc=self.sh_dc,
            sh_rest=self.sh_rest,
            features=None,
            world_to_camera=self.world_to_camera,
            intrinsics=self.intrinsics,
        )
        view = View(*self.size, 3, False, CLASSIC, raw=True)
        self.guard.begin(keep=False)
        picture = draw_for_training(
            *(splats, view, self.background),
            rest_learns=True,
            guard=self.guard,
            backend=self.backend,
            memory=self.memory,
        )
        _, gradient = l1_ssim_with_gradient(
            *(picture.color, self.target, SSIM_WEIGHT, self.guard, self.backend), memory=self.memory
        )
        found, _ = picture.differentiate(gradient)
        self.means.grad, self.quaternions.grad = found.means, found.quaternions
        self.log_scales.grad, self.logits.grad = found.scales, found.opacities
        self.sh_dc.grad, self.sh_rest.grad = found.sh_dc, found.sh_rest

    def optimize(self) -> None:
        """Adam on the gradients there are."""
        self.steps += 1
        groups = [
            AdamGroup(leaf, leaf.grad, *self.moments[name], RATES[name], self.steps)
            for name, leaf in self.leaves().items()
            if leaf.grad is not None
        ]
        beta1, beta2 = BETAS
        adam_step(
            groups,
            beta1=beta1,
            beta2=beta2,
            eps=EPSILON,
            guard=self.guard,
            backend=self.backend,
            memory=self.memory,
        )

    def step(self) -> None:
        """One whole step."""
        self.forward_and_backward()
        self.optimize()


def training_scene(
    splats: int, width: int, height: int, device: torch.device, backend: str, seed: int = 1
) -> TrainingScene:
    """Splats of all depths strewn over the picture, as wide as makes `DEPTH_COMPLEXITY`."""
    random = torch.Generator(device).manual_seed(seed)

    def uniform(*shape: int) -> Tensor:
        return torch.rand(*shape, generator=random, device=device)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=random, device=device)

    focal = 0.9 * max(width, height)
    depths = 1.0 + 5.0 * uniform(splats)
    across = (uniform(splats, 2) - 0.5) * torch.tensor([width, height], device=device) / focal
    spread_px = math.sqrt(DEPTH_COMPLEXITY * width * height / (math.pi * 2.5**2 * splats))
    log_scales = torch.log(spread_px / focal * depths)[:, None] + 0.4 * normal(splats, 3)
    scene = TrainingScene(
        means=torch.cat([across * depths[:, None], depths[:, None]], dim=1),
        quaternions=normal(splats, 4),
        log_scales=log_scales,
        logits=1.5 * normal(splats) - 1.0,  # most are faint, as in a trained scene
        sh_dc=normal(splats, 1, 3),
        sh_rest=0.1 * normal(splats, 15, 3),
        world_to_camera=torch.eye(4, device=device),
        intrinsics=torch.tensor(
            [[focal, 0.0, width / 2], [0.0, focal, height / 2], [0.0, 0.0, 1.0]], device=device
        ),
        background=torch.zeros(3, device=device),
        target=uniform(height, width, 3),
        backend=backend,
    )
    for leaf in scene.leaves().values():
        leaf.requires_grad_()
    return scene
