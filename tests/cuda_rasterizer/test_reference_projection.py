import math

import pytest
import torch
from torch import Tensor

from cuda_rasterizer import reference, reference_projection
from cuda_rasterizer.cutoffs import CLASSIC, GSPLAT, Cutoffs
from cuda_rasterizer.errors import RasterizerError
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.margins import project, render

# The formulas below are evaluated twice in float64 by other routes: rounding alone is allowed.
ROUNDING = {"rtol": 1e-11, "atol": 1e-13}


def close(actual: Tensor, expected: Tensor | list[float] | list[list[float]] | float) -> None:
    torch.testing.assert_close(
        actual.detach(), torch.as_tensor(expected, dtype=actual.dtype), **ROUNDING
    )


def test_a_mean_lands_at_focal_times_slope_plus_principal_point():
    scene = scenes.scene_of([[0.3, -0.2, 2.0]], focal=40.0, width=21, height=31)
    projected = project(scene)
    close(projected.means_2d, [[40 * 0.15 + 10.5, -40 * 0.1 + 15.5]])
    close(projected.depths, [2.0])


def test_a_round_splat_ahead_has_the_variance_of_its_scaled_radius_plus_dilation():
    scene = scenes.scene_of([[0.0, 0.0, 2.0]], scales=0.1, focal=40.0)
    variance = (40 * 0.1 / 2) ** 2 + 0.3
    close(project(scene).conics, [[1 / variance, 0.0, 1 / variance]])


def test_the_footprint_is_the_affine_image_of_the_covariance():
    """Against central differences of the true projection instead of the written Jacobian."""
    scene = scenes.random_scene(3, 20)
    pose, k = scene.world_to_camera, scene.intrinsics

    def to_pixels(points: Tensor) -> Tensor:
        in_camera = points @ pose[:3, :3].T + pose[:3, 3]
        homogeneous = in_camera @ k.T
        return homogeneous[:, :2] / homogeneous[:, 2:]

    step = 1e-5
    columns = [
        (to_pixels(scene.means + step * axis) - to_pixels(scene.means - step * axis)) / (2 * step)
        for axis in torch.eye(3, dtype=torch.float64)
    ]
    jacobian = torch.stack(columns, dim=-1)  # (n, 2, 3)
    world = reference_projection.covariances(scene.quaternions, scene.scales)
    covariance = jacobian @ world @ jacobian.mT + 0.3 * torch.eye(2, dtype=torch.float64)
    inverse = torch.linalg.inv(covariance)
    expected = torch.stack([inverse[:, 0, 0], inverse[:, 0, 1], inverse[:, 1, 1]], dim=-1)
    projected = project(scene)
    seen = projected.radii[:, 0] > 0
    assert seen.sum() >= 15
    # A central difference with step 1e-5 is good to about 1e-9 relative here.
    torch.testing.assert_close(projected.conics[seen], expected[seen], rtol=1e-7, atol=1e-9)


def test_rotations_match_the_rodrigues_formula():
    axis = torch.tensor([0.48, -0.6, 0.64], dtype=torch.float64)
    angle = 1.1
    half = angle / 2
    quaternion = torch.cat([axis.new_tensor([math.cos(half)]), math.sin(half) * axis])
    cross = torch.tensor(
        [[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]],
        dtype=torch.float64,
    )
    expected = torch.linalg.matrix_exp(angle * cross)
    close(reference_projection.rotation_matrices(3.0 * quaternion[None])[0], expected)


@pytest.mark.parametrize("factor", [0.1, 10.0, -1.0])
def test_the_length_of_a_quaternion_changes_nothing(factor):
    scene = scenes.random_scene(5, 30)
    scaled = scene.replace(quaternions=factor * scene.quaternions)
    close(render(scaled).color, render(scene).color)


def test_a_splat_far_beside_the_picture_takes_the_jacobian_of_the_widened_edge():
    # x/z = 1 lies far past the edge 10.5/40 widened by 0.3 * 10.5/40.
    scene = scenes.scene_of([[2.0, 0.0, 2.0]], scales=0.7, focal=40.0)
    slope = 1.3 * 10.5 / 40
    variance_x = (40 / 2 * 0.7) ** 2 * (1 + slope**2) + 0.3
    variance_y = (40 / 2 * 0.7) ** 2 + 0.3
    projected = project(scene)
    close(projected.means_2d, [[50.5, 10.5]])
    close(projected.conics, [[1 / variance_x, 0.0, 1 / variance_y]])


@pytest.mark.parametrize("side", [-1.0, 1.0])
def test_the_jacobian_clamp_follows_an_off_centre_principal_point(side):
    scene = scenes.scene_of([[2.0 * side, 0.0, 2.0]], scales=0.7, focal=40.0)
    intrinsics = scene.intrinsics.clone()
    intrinsics[0, 2] = 4.0
    slope = 0.3 * 10.5 / 40 + (4.0 / 40 if side < 0 else 17.0 / 40)
    variance_x = (40 / 2 * 0.7) ** 2 * (1 + slope**2) + 0.3
    close(project(scene.replace(intrinsics=intrinsics)).conics[0, 0], 1 / variance_x)


def test_a_crop_with_an_off_centre_principal_point_equals_the_crop_of_a_larger_picture():
    # Splats beside the crop take another clamped Jacobian, so none of those may reach into it.
    wide = scenes.random_scene(6, 200, 60, 50, scale_range=(0.01, 0.04), depth_range=(2.0, 6.0))
    wide = wide.with_gradients()
    left, top, width, height = 19, 4, 36, 38
    intrinsics = wide.intrinsics.clone()
    intrinsics[0, 2] -= left
    intrinsics[1, 2] -= top
    crop = wide.replace(intrinsics=intrinsics, width=width, height=height).with_gradients()
    window = (slice(top, top + height), slice(left, left + width))
    whole = render(wide).color[window]
    part = render(crop).color
    assert (part - wide.background).abs().max() > 0.3
    close(part, whole)
    seed = torch.randn(part.shape, dtype=part.dtype, generator=torch.Generator().manual_seed(1))
    whole.backward(seed)
    part.backward(seed)
    for (name, of_whole), (_, of_crop) in zip(wide.leaves(), crop.leaves(), strict=True):
        if name == "background":  # the wide picture's is larger than the crop
            continue
        assert (of_whole.grad != 0).any(), name
        torch.testing.assert_close(of_crop.grad, of_whole.grad, rtol=1e-9, atol=1e-10, msg=name)


def test_red_at_plus_x_and_green_at_plus_y_land_right_and_up_for_a_camera_at_plus_z():
    # The camera stands at (0, 0, 4), looks at the origin and has +y up, as a viewer expects.
    scene = scenes.scene_of(
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
        colors=[[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]],
        focal=30.0,
        width=41,
        height=41,
    )
    pose = torch.diag(torch.tensor([1.0, -1.0, -1.0, 1.0], dtype=torch.float64))
    pose[2, 3] = 4.0
    picture = render(scene.replace(world_to_camera=pose)).color
    columns = torch.arange(41).expand(41, 41)
    red, green = picture[..., 0] > 0.2, picture[..., 1] > 0.2
    assert red.any()
    assert green.any()
    assert columns[red].min() > 20
    assert columns.T[green].max() < 20


def test_antialiasing_multiplies_the_opacity_by_the_share_of_the_area_that_is_left():
    scene = scenes.scene_of([[0.0, 0.0, 2.0]], scales=0.01, opacities=0.9, focal=40.0)
    variance = (40 * 0.01 / 2) ** 2
    close(project(scene, antialiased=True).opacities, [0.9 * variance / (variance + 0.3)])
    close(project(scene).opacities, [0.9])


def test_antialiasing_never_takes_more_than_a_factor_of_0_005():
    scene = scenes.scene_of([[0.0, 0.0, 2.0]], scales=1e-5, opacities=0.9)
    no_floor = Cutoffs(alpha_floor=1e-9)
    close(project(scene, no_floor, antialiased=True).opacities, [0.9 * 0.005])


def test_radii_reach_to_where_alpha_meets_the_floor():
    scene = scenes.scene_of([[0.0, 0.0, 2.0]], scales=[[0.1, 0.3, 0.1]], opacities=0.7)
    reach = math.sqrt(2 * math.log(0.7 * 255))
    expected = [math.ceil(reach * math.sqrt((20 * s) ** 2 + 0.3)) for s in (0.1, 0.3)]
    projected = project(scene)
    assert projected.radii.tolist() == [expected]
    assert projected.radii.dtype == torch.int32


def test_a_footprint_cap_limits_the_radii_in_standard_deviations():
    scene = scenes.scene_of([[0.0, 0.0, 2.0]], scales=0.2, opacities=0.9)
    deviation = math.sqrt(16 + 0.3)
    assert project(scene, Cutoffs(footprint_cap=2.0)).radii.tolist() == [
        [math.ceil(2 * deviation)] * 2
    ]


@pytest.mark.parametrize("antialiased", [False, True])
@pytest.mark.parametrize("cutoffs", [CLASSIC, GSPLAT], ids=["classic", "gsplat"])
def test_the_radii_contain_every_pixel_that_a_splat_could_colour(cutoffs, antialiased):
    scene = scenes.random_scene(8, 80, 50, 40, scale_range=(0.001, 0.6))
    projected = project(scene, cutoffs, antialiased=antialiased)
    rows, columns = torch.meshgrid(torch.arange(40) + 0.5, torch.arange(50) + 0.5, indexing="ij")
    touched = 0
    for i in range(80):
        if projected.radii[i, 0] == 0:
            continue
        dx, dy = projected.means_2d[i, 0] - columns, projected.means_2d[i, 1] - rows
        a, b, c = projected.conics[i]
        alpha = projected.opacities[i] * torch.exp(-0.5 * (a * dx**2 + c * dy**2) - b * dx * dy)
        visible = alpha >= cutoffs.alpha_floor
        touched += int(visible.any())
        assert (dx.abs()[visible] <= projected.radii[i, 0]).all()
        assert (dy.abs()[visible] <= projected.radii[i, 1]).all()
    assert touched > 40


@pytest.mark.parametrize("case", scenes.DEAD_SPLATS)
def test_a_dead_splat_leaves_no_trace_in_picture_or_gradient(case):
    scene = scenes.dead_splat_scene(case).with_gradients()
    alone = scene.replace(
        **{name: leaf[:1] for name, leaf in scene.leaves() if name != "background"}
    )
    projected = project(scene)
    for field in ("means_2d", "conics", "depths", "opacities", "colors", "radii"):
        assert (getattr(projected, field)[1] == 0).all(), field
    picture = render(scene)
    assert torch.equal(picture.color, render(alone).color)
    (picture.color.square().sum() + picture.depth.sum()).backward()
    for name, leaf in scene.leaves():
        assert leaf.grad is not None, name
        assert leaf.grad.isfinite().all(), name
        if name != "background":
            assert (leaf.grad[1] == 0).all(), name
            assert (leaf.grad[0] != 0).any(), name


def test_a_nan_among_sh_coefficients_kills_a_splat_only_when_its_band_is_in_use():
    scene = scenes.random_scene(9, 6, sh_degree=2)
    scene.sh[0, 5, 1] = float("nan")
    arguments = {**scene.projection, "cutoffs": CLASSIC, "antialiased": False}
    low = reference.project(*scene.splats, **arguments, sh_degree=1)
    high = reference.project(*scene.splats, **arguments, sh_degree=2)
    assert (low.radii[0] > 0).all()
    assert (high.radii[0] == 0).all()


@pytest.mark.parametrize("z", [0.2, 0.2 - 1e-9])
def test_a_splat_on_the_near_plane_is_not_drawn(z):
    assert (project(scenes.scene_of([[0.0, 0.0, z]])).radii == 0).all()
    assert (project(scenes.scene_of([[0.0, 0.0, 0.2 + 1e-9]])).radii > 0).all()


def test_sh_as_a_pair_equals_sh_as_one_tensor():
    scene = scenes.random_scene(10, 12, sh_degree=3)
    pair = (scene.sh[:, :1], scene.sh[:, 1:])
    both = [
        reference.project(
            *scene.splats,
            **{**scene.projection, "sh": sh},
            cutoffs=CLASSIC,
            antialiased=False,
        ).colors
        for sh in (scene.sh, pair)
    ]
    assert torch.equal(*both)


@pytest.mark.parametrize("degree", [-1, 3])
def test_an_sh_degree_that_the_coefficients_do_not_reach_is_refused(degree):
    scene = scenes.random_scene(10, 3, sh_degree=2)
    with pytest.raises(RasterizerError, match="reach 0 to 2"):
        reference.project(
            *scene.splats, **scene.projection, sh_degree=degree, cutoffs=CLASSIC, antialiased=False
        )


def test_no_colour_at_all_is_refused():
    scene = scenes.random_scene(10, 3).replace(features=None)
    with pytest.raises(RasterizerError, match="neither features nor sh"):
        project(scene)


def test_sh_are_seen_along_the_line_from_the_camera_to_the_mean():
    scene = scenes.random_scene(11, 12, sh_degree=1)
    scene.sh[:, 0] = 0.0
    scene.sh[:, 1:] *= 0.5  # keeps every colour above the clamp at zero
    eye = torch.linalg.inv(scene.world_to_camera)[:3, 3]
    direction = scene.means - eye
    x, y, z = (direction / direction.norm(dim=1, keepdim=True)).unbind(1)
    c1 = math.sqrt(3 / (4 * math.pi))
    factors = torch.stack([-c1 * y, c1 * z, -c1 * x], dim=1)
    expected = 0.5 + (factors[:, :, None] * scene.sh[:, 1:]).sum(dim=1)
    projected = project(scene)
    seen = projected.radii[:, 0] > 0
    assert seen.sum() >= 8
    assert (expected > 0).all()
    close(projected.colors[seen], expected[seen])
