"""The splats: raw, unconstrained parameters, and what they mean.

A scale is exp(log_scale), an opacity is sigmoid(logit), a rotation is the quaternion divided by
its norm (the rasteriser does that). Growing and pruning go through `gathered`, which makes new
tensors and leaves the old ones whole, so that a step that fails half way has spoilt nothing.
"""

import math
from collections.abc import Iterator, Mapping

import numpy as np
import torch
from jaxtyping import Float, Int64, UInt8
from scipy.spatial import cKDTree
from torch import Tensor

from engine.errors import TrainingError

SH_C0 = 0.28209479177387814  # Y_0^0, the constant basis function
SH_REST = 15  # coefficients of degrees 1 to 3
INITIAL_OPACITY = 0.1
MINIMUM_SQUARED_DISTANCE = 1e-7

SHAPES: Mapping[str, tuple[int, ...]] = {
    "means": (3,),
    "sh_dc": (1, 3),
    "sh_rest": (SH_REST, 3),
    "log_scales": (3,),
    "rotations": (4,),
    "opacity_logits": (),
}
"""Every parameter by name, with the shape of one splat's row."""


class Gaussians:
    """The parameters of n splats, float32 leaves of the autograd graph.

    `means` (n, 3); `sh_dc` (n, 1, 3); `sh_rest` (n, 15, 3); `log_scales` (n, 3);
    `rotations` (n, 4) as (w, x, y, z) of any norm; `opacity_logits` (n,).
    """

    means: Float[Tensor, "n 3"]
    sh_dc: Float[Tensor, "n 1 3"]
    sh_rest: Float[Tensor, "n 15 3"]
    log_scales: Float[Tensor, "n 3"]
    rotations: Float[Tensor, "n 4"]
    opacity_logits: Float[Tensor, "n"]

    def __init__(self, parameters: Mapping[str, Tensor]) -> None:
        """Take tensors by the names of `SHAPES`; raises TrainingError on another shape."""
        self.replace(parameters)

    def __len__(self) -> int:
        return int(self.means.shape[0])

    def items(self) -> Iterator[tuple[str, Tensor]]:
        """Every parameter with its name, in the order of `SHAPES`."""
        for name in SHAPES:
            yield name, getattr(self, name)

    def replace(self, parameters: Mapping[str, Tensor]) -> None:
        """Put new leaf tensors, without gradients, in the place of all parameters."""
        if set(parameters) != set(SHAPES):
            raise TrainingError(
                f"The splats have the parameters {', '.join(sorted(parameters))}; "
                f"expected {', '.join(sorted(SHAPES))}."
            )
        count = parameters["means"].shape[0]
        for name, tensor in parameters.items():
            expected = (count, *SHAPES[name])
            if tuple(tensor.shape) != expected:
                raise TrainingError(
                    f"The parameter {name} has the shape {tuple(tensor.shape)}; "
                    f"expected {expected}."
                )
        for name, tensor in parameters.items():
            leaf = tensor.detach().to(torch.float32).contiguous()
            setattr(self, name, leaf.requires_grad_(True))

    def move_to(self, device: torch.device) -> None:
        """Put the parameters on another device; those that are there already stay as they are."""
        if self.means.device != device:
            self.replace({name: tensor.to(device) for name, tensor in self.items()})

    @torch.no_grad()
    def lower_opacities(self, value: float) -> None:
        """Let no opacity exceed `value`, in a new tensor without gradient; lower ones keep theirs.

        The logarithms are compared, so that a splat below `value` keeps its very bits.
        """
        logit = math.log(value / (1.0 - value))
        self.opacity_logits = self.opacity_logits.clamp(max=logit).requires_grad_(True)

    def gathered(self, rows: Int64[Tensor, "m"]) -> dict[str, Tensor]:
        """Copies of the given rows of every parameter, outside the graph."""
        return {name: torch.index_select(tensor.detach(), 0, rows) for name, tensor in self.items()}

    def clear_gradients(self) -> None:
        """Forget every gradient: None, not zeros, so that the optimiser can tell."""
        for _, tensor in self.items():
            tensor.grad = None

    @torch.no_grad()
    def opacities(self) -> Float[Tensor, "n"]:
        """Opacities in (0, 1)."""
        return torch.sigmoid(self.opacity_logits)

    @torch.no_grad()
    def largest_scales(self) -> Float[Tensor, "n"]:
        """The longest of each splat's three standard deviations, in world units."""
        return torch.exp(self.log_scales.max(dim=1).values)

    def non_finite(self) -> str | None:
        """The name of the first parameter that holds a NaN or an infinity, or None."""
        return first_not_finite(dict(self.items()))


@torch.no_grad()
def first_not_finite(tensors: Mapping[str, Tensor]) -> str | None:
    """The name of the first tensor that holds a NaN or an infinity, or None.

    Sums tell, since NaN and Inf outlive them; they are read at once.
    """
    sums = torch.stack([tensor.sum() for tensor in tensors.values()]).tolist()
    for (name, tensor), total in zip(tensors.items(), sums, strict=True):
        if not math.isfinite(total) and not all_finite(tensor):
            return name
    return None


def all_finite(tensor: Tensor) -> bool:
    """Whether every element is finite."""
    return bool(torch.isfinite(tensor).all())


def neighbour_spacing(points: Float[np.ndarray, "n 3"]) -> Float[np.ndarray, "n"]:
    """Root mean square distance of each point to its 3 nearest others, in float64.

    Its square is not less than 1e-7. Where there are fewer others, all of them count.
    """
    count = len(points)
    neighbours = min(3, count - 1)
    if neighbours < 1:
        return np.full(count, math.sqrt(MINIMUM_SQUARED_DISTANCE))
    distances, _ = cKDTree(points).query(points, k=neighbours + 1)
    squared = np.mean(distances[:, 1:] ** 2, axis=1)
    return np.asarray(np.sqrt(np.maximum(squared, MINIMUM_SQUARED_DISTANCE)))


def from_points(points: Float[np.ndarray, "n 3"], colors: UInt8[np.ndarray, "n 3"]) -> Gaussians:
    """One splat a point, as 3DGS starts (Kerbl et al. 2023, section 5.1).

    Round splats as wide as the spacing of the points, of opacity 0.1 and the points' colours.
    Raises TrainingError when there is no point or one is not finite.
    """
    points = np.asarray(points, dtype=np.float64)
    if len(points) == 0:
        raise TrainingError("There are no points to start from; expected at least one.")
    broken = int(np.count_nonzero(~np.isfinite(points).all(axis=1)))
    if broken:
        raise TrainingError(
            f"{broken} of {len(points)} starting points are not finite; remove them from the "
            "sparse points."
        )
    count = len(points)
    log_scales = np.log(neighbour_spacing(points))
    dc = (np.asarray(colors, dtype=np.float64) / 255.0 - 0.5) / SH_C0
    rotations = torch.zeros(count, 4)
    rotations[:, 0] = 1.0
    logit = math.log(INITIAL_OPACITY / (1.0 - INITIAL_OPACITY))
    return Gaussians(
        {
            "means": torch.from_numpy(points.astype(np.float32)),
            "sh_dc": torch.from_numpy(dc.astype(np.float32)).reshape(count, 1, 3),
            "sh_rest": torch.zeros(count, SH_REST, 3),
            "log_scales": torch.from_numpy(
                np.repeat(log_scales[:, None], 3, axis=1).astype(np.float32)
            ),
            "rotations": rotations,
            "opacity_logits": torch.full((count,), logit),
        }
    )
