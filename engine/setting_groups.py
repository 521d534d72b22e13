"""Every setting, declared once.

From one line here come the command-line flag, the widget, the range check and its message, the
preset file, the journal entry and the reference page. Field names are unique over all groups, so
that flags are flat: `position_lr_start` is `--position-lr-start`. Defaults are the classic recipe
(Kerbl et al. 2023, repository state of late 2024). `engine.settings` makes one tree of the groups.
"""

from dataclasses import dataclass
from typing import Literal

from engine.setting_info import Applies, Scale, setting


@dataclass(frozen=True)
class LearningRates:
    """Learning rates"""

    position_lr_start: float = setting(
        1.6e-4,
        "Learning rate of the means at step 0, multiplied by the camera extent.",
        label="position, start",
        minimum=0.0,
        maximum=1e-2,
        scale=Scale.LOG,
    )
    position_lr_end: float = setting(
        1.6e-6,
        "Learning rate of the means at the end of the schedule, multiplied by the camera extent.",
        label="position, end",
        minimum=0.0,
        maximum=1e-2,
        scale=Scale.LOG,
    )
    position_lr_steps: int = setting(
        30_000,
        "Steps over which the position rate falls from start to end; not tied to the iterations.",
        label="position, steps",
        minimum=1,
        maximum=1_000_000,
        scale=Scale.LOG,
        unit="steps",
    )
    scale_lr: float = setting(
        5e-3,
        "Learning rate of the logarithms of the scales.",
        label="scale",
        minimum=0.0,
        maximum=0.1,
        scale=Scale.LOG,
    )
    rotation_lr: float = setting(
        1e-3,
        "Learning rate of the raw quaternions.",
        label="rotation",
        minimum=0.0,
        maximum=0.1,
        scale=Scale.LOG,
    )
    opacity_lr: float = setting(
        0.025,
        "Learning rate of the opacity logits.",
        label="opacity",
        minimum=0.0,
        maximum=1.0,
        scale=Scale.LOG,
    )
    sh_dc_lr: float = setting(
        2.5e-3,
        "Learning rate of the base colour (spherical harmonics, degree 0).",
        label="colour (SH 0)",
        minimum=0.0,
        maximum=0.1,
        scale=Scale.LOG,
    )
    sh_rest_lr: float = setting(
        1.25e-4,
        "Learning rate of the view-dependent colour (spherical harmonics, degrees 1 to 3).",
        label="colour (SH 1-3)",
        minimum=0.0,
        maximum=0.1,
        scale=Scale.LOG,
    )


@dataclass(frozen=True)
class Densify:
    """Densify"""

    densify_start: int = setting(
        500,
        "Splats are cloned and split only after this step.",
        label="from step",
        minimum=0,
        maximum=1_000_000,
        scale=Scale.LOG,
        unit="steps",
    )
    densify_stop: int = setting(
        15_000,
        "Splats are cloned, split, pruned and reset only before this step.",
        label="until step",
        minimum=0,
        maximum=1_000_000,
        scale=Scale.LOG,
        unit="steps",
    )
    densify_interval: int = setting(
        100,
        "Refine (clone, split, prune) whenever the step is a multiple of this.",
        label="every",
        minimum=1,
        maximum=10_000,
        scale=Scale.LOG,
        unit="steps",
    )
    gradient_threshold: float = setting(
        2e-4,
        "A splat is cloned or split when its mean screen gradient reaches this. "
        "Lower it for more splats.",
        label="gradient threshold",
        minimum=1e-6,
        maximum=1e-1,
        scale=Scale.LOG,
        applies=Applies.NEXT_REFINE,
    )
    split_boundary: float = setting(
        0.01,
        "Splats larger than this share of the camera extent are split, smaller ones cloned.",
        label="split above size",
        minimum=1e-4,
        maximum=1.0,
        scale=Scale.LOG,
        unit="of extent",
        applies=Applies.NEXT_REFINE,
    )
    max_splats: int = setting(
        1_000_000,
        "Growth stops at this many splats. Nothing is deleted when it is set below the count.",
        label="splat cap",
        minimum=1_000,
        maximum=20_000_000,
        scale=Scale.LOG,
        unit="splats",
        applies=Applies.NEXT_REFINE,
    )


@dataclass(frozen=True)
class Prune:
    """Prune"""

    prune_opacity: float = setting(
        0.005,
        "Splats with less opacity than this are removed at each refine, and by Prune.",
        label="opacity below",
        minimum=0.0,
        maximum=0.5,
        scale=Scale.LOG,
        applies=Applies.NEXT_REFINE,
    )
    prune_size: float = setting(
        0.1,
        "Splats larger than this share of the camera extent are removed too, at each refine and "
        "by Prune, once the step is past the first opacity reset.",
        label="size above",
        minimum=1e-3,
        maximum=10.0,
        scale=Scale.LOG,
        unit="of extent",
        applies=Applies.NEXT_REFINE,
    )


@dataclass(frozen=True)
class OpacityReset:
    """Opacity reset"""

    opacity_reset_interval: int = setting(
        3_000,
        "Lower every opacity whenever the step is a multiple of this, while densifying. "
        "0 switches resets off.",
        label="every",
        minimum=0,
        maximum=100_000,
        scale=Scale.LOG,
        unit="steps",
        zero="never",
    )
    opacity_reset_value: float = setting(
        0.01,
        "The opacity that no splat exceeds right after a reset.",
        label="down to",
        minimum=0.001,
        maximum=0.99,
        scale=Scale.LOG,
    )


@dataclass(frozen=True)
class Loss:
    """Loss"""

    ssim_weight: float = setting(
        0.2,
        "Share of 1 - SSIM in the loss; the rest is the mean absolute difference.",
        label="SSIM weight",
        minimum=0.0,
        maximum=1.0,
        changes_loss=True,
    )
    background: Literal["black", "white", "random"] = setting(
        "black",
        "What lies behind the splats in training, and behind photos with transparency. "
        "Random draws a new colour for each step.",
        label="background",
        changes_loss=True,
    )


@dataclass(frozen=True)
class SphericalHarmonics:
    """Spherical harmonics"""

    sh_interval: int = setting(
        1_000,
        "The degree in use rises by one whenever the step is a multiple of this.",
        label="raise every",
        minimum=1,
        maximum=100_000,
        scale=Scale.LOG,
        unit="steps",
    )
    sh_degree_max: int = setting(
        3,
        "Highest degree in use. Lowering it keeps the higher coefficients, unused.",
        label="maximum degree",
        minimum=0,
        maximum=3,
    )


@dataclass(frozen=True)
class FasterSteps:
    """Faster steps"""

    coarse_halvings: int = setting(
        0,
        "Training begins on photos halved so many times, and doubles their size until it is full. "
        "No photo gets narrower or lower than 8 pixels. 0 trains at full size from the start.",
        label="start on smaller photos",
        minimum=0,
        maximum=3,
        unit="halvings",
        zero="never",
        changes_loss=True,
    )
    coarse_steps: int = setting(
        250,
        "Steps that each of the smaller sizes lasts.",
        label="each size lasts",
        minimum=1,
        maximum=100_000,
        scale=Scale.LOG,
        unit="steps",
        changes_loss=True,
    )
    sh_rest_interval: int = setting(
        1,
        "The view-dependent colour (spherical harmonics, degrees 1 to 3) learns only when the step "
        "is a multiple of this, from that step's photo alone; its rate is not raised for it.",
        label="colour (SH 1-3) every",
        minimum=1,
        maximum=100,
        scale=Scale.LOG,
        unit="steps",
    )
    visible_only: bool = setting(
        False,
        "The optimiser leaves splats that the photo does not see as they are, momentum included. "
        "It is not the same optimiser: Adam would let them drift on and forget.",
        label="move seen splats only",
    )
    morton_interval: int = setting(
        0,
        "Sort the splats along a curve through space at the first refine that comes at or after "
        "each multiple of this; neighbours then lie together in memory. 0 never sorts.",
        label="sort in space every",
        minimum=0,
        maximum=100_000,
        scale=Scale.LOG,
        unit="steps",
        zero="never",
    )


@dataclass(frozen=True)
class Run:
    """Run"""

    iterations: int = setting(
        30_000,
        "Training finishes at this step. Schedules are not rescaled with it.",
        label="iterations",
        minimum=1,
        maximum=1_000_000,
        scale=Scale.LOG,
        unit="steps",
    )
    evaluation_interval: int = setting(
        1_000,
        "Measure PSNR and SSIM on the held-out photos whenever the step is a multiple of this. "
        "0 switches it off.",
        label="evaluate every",
        minimum=0,
        maximum=100_000,
        scale=Scale.LOG,
        unit="steps",
        zero="never",
    )
    checkpoint_interval: int = setting(
        5_000,
        "Save an exact checkpoint whenever the step is a multiple of this. 0 switches it off.",
        label="checkpoint every",
        minimum=0,
        maximum=100_000,
        scale=Scale.LOG,
        unit="steps",
        zero="never",
    )
    seed: int = setting(
        0,
        "Seed of every random number of the run.",
        label="seed",
        minimum=0,
        maximum=2**31 - 1,
        applies=Applies.RESTART,
    )


@dataclass(frozen=True)
class SceneSettings:
    """Scene"""

    resolution: int = setting(
        0,
        "1, 2, 4 or 8 divides the photo size; a larger number is the target width in pixels; "
        "0 keeps photos up to 1600 pixels wide and scales wider ones to 1600.",
        label="resolution",
        minimum=0,
        maximum=16_384,
        zero="full size",
        applies=Applies.RESTART,
    )
    test_every: int = setting(
        8,
        "Each photo whose place in the sorted names is a multiple of this is held out. "
        "0 trains on all.",
        label="hold out every",
        minimum=0,
        maximum=1_000,
        unit="photos",
        zero="none",
        applies=Applies.RESTART,
    )
    random_points: int = setting(
        100_000,
        "Number of random starting splats for a scene without sparse points.",
        label="random start",
        minimum=100,
        maximum=2_000_000,
        scale=Scale.LOG,
        unit="splats",
        applies=Applies.RESTART,
    )


@dataclass(frozen=True)
class Rasterizer:
    """Rasteriser"""

    cutoffs: Literal["classic", "gsplat"] = setting(
        "classic",
        "Near plane, alpha ceiling and stopping rule: those of 3DGS or those of gsplat.",
        label="cut-offs",
        applies=Applies.RESTART,
    )
    antialiased: bool = setting(
        False,
        "Dim splats smaller than a pixel. Viewers without the same mode show them wrongly.",
        label="antialiased",
        applies=Applies.RESTART,
    )


@dataclass(frozen=True)
class Preview:
    """Preview"""

    preview: Literal["live", "still", "off"] = setting(
        "live",
        "Live follows the training; still renders only when the camera moves; off renders nothing.",
        label="preview",
    )
    preview_share_rest: float = setting(
        0.02,
        "Share of wall time given to the picture while the camera rests, what the window does "
        "included. A new one comes every 2 seconds all the same, but for pictures that would take "
        "more than a fifth of the time. With 0 none comes by itself.",
        label="share at rest",
        minimum=0.0,
        maximum=0.9,
    )
    preview_share_moving: float = setting(
        0.5,
        "Share of wall time given to the picture while the camera moves.",
        label="share while moving",
        minimum=0.05,
        maximum=0.9,
    )


@dataclass(frozen=True)
class Device:
    """Device"""

    backend: Literal["auto", "cpu", "cuda", "reference"] = setting(
        "auto",
        "Which rasteriser draws and differentiates; auto takes the fastest that works here.",
        label="backend",
        applies=Applies.RESTART,
    )
    gpu: int = setting(
        0,
        "Which GPU the cuda backend runs on, counted from 0 as torch does.",
        label="GPU",
        minimum=0,
        maximum=15,
        applies=Applies.RESTART,
    )
    deterministic: bool = setting(
        False,
        "Repeat a run on a GPU to the bit, which takes time and memory; the CPU always does.",
        label="repeat exactly",
    )
    threads: int = setting(
        0,
        "Threads of the CPU kernels; 0 takes every core. Results do not depend on it.",
        label="threads",
        minimum=0,
        maximum=256,
        zero="all cores",
    )
    low_priority: bool = setting(
        False,
        "Let other programs go first.",
        label="low priority",
    )
