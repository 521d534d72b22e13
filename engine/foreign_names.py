"""What other programs for Gaussian splatting call our settings; only to tell which one is meant.

As of 2026, from the command lines of the published implementation, gsplat and nerfstudio. Their
values may be written in another way, so that nothing is taken by these names.
"""

import difflib
from collections.abc import Iterable

FOREIGN_NAMES = {
    "cap_max": "max_splats",
    "checkpoint_iterations": "checkpoint_interval",
    "cull_alpha_thresh": "prune_opacity",
    "cull_scale_thresh": "prune_size",
    "data_factor": "resolution",
    "densification_interval": "densify_interval",
    "densify_from_iter": "densify_start",
    "densify_grad_thresh": "gradient_threshold",
    "densify_grad_threshold": "gradient_threshold",
    "densify_size_thresh": "split_boundary",
    "densify_until_iter": "densify_stop",
    "downscale_factor": "resolution",
    "eval_steps": "evaluation_interval",
    "feature_lr": "sh_dc_lr",
    "grow_grad2d": "gradient_threshold",
    "grow_scale3d": "split_boundary",
    "init_num_pts": "random_points",
    "lambda_dssim": "ssim_weight",
    "max_num_iterations": "iterations",
    "max_steps": "iterations",
    "means_lr": "position_lr_start",
    "model_path": "output",
    "num_random": "random_points",
    "opacities_lr": "opacity_lr",
    "output_dir": "output",
    "percent_dense": "split_boundary",
    "position_lr_final": "position_lr_end",
    "position_lr_init": "position_lr_start",
    "position_lr_max_steps": "position_lr_steps",
    "prune_opa": "prune_opacity",
    "prune_scale3d": "prune_size",
    "quats_lr": "rotation_lr",
    "random_background": "background",
    "refine_every": "densify_interval",
    "refine_start_iter": "densify_start",
    "refine_stop_iter": "densify_stop",
    "reset_every": "opacity_reset_interval",
    "result_dir": "output",
    "save_steps": "checkpoint_interval",
    "scales_lr": "scale_lr",
    "scaling_lr": "scale_lr",
    "sh_degree": "sh_degree_max",
    "sh_degree_interval": "sh_interval",
    "shn_lr": "sh_rest_lr",
    "sh0_lr": "sh_dc_lr",
    "ssim_lambda": "ssim_weight",
    "stop_split_at": "densify_stop",
    "test_iterations": "evaluation_interval",
    "warmup_length": "densify_start",
    "white_background": "background",
}


def meant_name(word: str, known: Iterable[str]) -> str | None:
    """The one of `known` that `word` means in another program, or was probably meant to be.

    Hyphens count as underscores, and capitals as small letters.
    """
    own = tuple(known)
    foreign = {name: ours for name, ours in FOREIGN_NAMES.items() if ours in own}
    wanted = word.lower().replace("-", "_")
    near = difflib.get_close_matches(wanted, (*own, *foreign), n=1)
    return foreign.get(near[0], near[0]) if near else None
