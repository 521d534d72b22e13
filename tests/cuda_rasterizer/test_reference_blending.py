import dataclasses
import math

import pytest
import torch
from torch import Tensor

from cuda_rasterizer import reference, reference_blending
from cuda_rasterizer.cutoffs import CLASSIC, GSPLAT, Cutoffs
from cuda_rasterizer.projected import Projected
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.margins import project, render

# Closed forms in float64: rounding alone is allowed.
ROUNDING = {"rtol": 1e-12, "atol": 1e-14}


def close(actual: Tensor, expected: Tensor | list[float] | float) -> None:
    torch.testing.assert_close(
        actual.detach(), torch.as_tensor(expected, dtype=actual.dtype), **ROUNDING
    )


def test_one_splat_has_its_opacity_at_its_centre_and_the_gaussian_beside_it():
    scene = scenes.scene_of([[0.0, 0.0, 2.0]], opacities=0.6, colors=[[0.2, 0.4, 0.8]], focal=40.0)
    picture = render(scene)
    variance = (40 * 0.1 / 2) ** 2 + 0.3
    close(picture.alpha[10, 10], 0.6)
    close(picture.alpha[10, 13], 0.6 * math.exp(-(3**2) / (2 * variance)))
    close(picture.alpha[8, 9], 0.6 * math.exp(-(2**2 + 1**2) / (2 * variance)))
    close(picture.color[10, 10], [0.6 * 0.2, 0.6 * 0.4, 0.6 * 0.8])
    close(picture.depth[10, 10], 0.6 * 2.0)


def test_a_tilted_splat_follows_the_gaussian_formula_at_every_pixel():
    scene = scenes.scene_of(
        [[0.1, 0.05, 2.0]],
        scales=[[0.25, 0.05, 0.1]],
        quaternions=[[0.8, 0.1, -0.2, 0.5]],
        opacities=0.9,
    )
    projected = project(scene)
    a, b, c = projected.conics[0]
    inverse = torch.stack([torch.stack([a, b]), torch.stack([b, c])])
    picture = render(scene)
    for row in range(21):
        for column in range(21):
            d = torch.tensor([column + 0.5, row + 0.5]) - projected.means_2d[0]
            alpha = 0.9 * torch.exp(-0.5 * d @ inverse @ d)
            close(picture.alpha[row, column], alpha if alpha >= 1 / 255 else 0.0)


def test_two_layers_composite_by_hand_over_the_background():
    scene = scenes.scene_of(
        [[0.0, 0.0, 3.0], [0.0, 0.0, 2.0]],  # given back to front
        opacities=[0.7, 0.4],
        colors=[[0.0, 1.0, 0.0], [1.0, 0.0, 0.0]],
        background=[0.0, 0.0, 1.0],
    )
    picture = render(scene)
    close(picture.color[10, 10], [0.4, 0.6 * 0.7, 0.6 * 0.3])
    close(picture.alpha[10, 10], 1 - 0.6 * 0.3)
    close(picture.depth[10, 10], 0.4 * 2.0 + 0.6 * 0.7 * 3.0)


def test_an_empty_pixel_shows_the_background_and_no_depth():
    scene = scenes.scene_of([[0.0, 0.0, 2.0]], scales=0.01, background=[0.3, 0.6, 0.9])
    picture = render(scene)
    close(picture.color[0, 0], [0.3, 0.6, 0.9])
    assert picture.alpha[0, 0] == 0
    assert picture.depth[0, 0] == 0


def test_a_background_a_pixel_shows_each_pixel_its_own():
    scene = scenes.random_scene(1, 20)
    plain = render(scene.replace(background=None))
    backdrop = torch.rand(30, 41, 3, generator=torch.Generator().manual_seed(3)).double()
    expected = plain.color + (1 - plain.alpha)[..., None] * backdrop
    close(render(scene.replace(background=backdrop)).color, expected)


def test_equal_depths_are_drawn_by_index():
    colors = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    for first, second in ((0, 1), (1, 0)):
        scene = scenes.scene_of([[0.0, 0.0, 2.0]] * 2, colors=[colors[first], colors[second]])
        picture = render(scene)
        close(picture.color[10, 10, first], 0.5)
        close(picture.color[10, 10, second], 0.25)


def test_alpha_is_limited_to_the_ceiling():
    close(render(scenes.scene_of([[0.0, 0.0, 2.0]], opacities=1.0)).alpha[10, 10], 0.99)
    high = Cutoffs(alpha_ceiling=0.999)
    close(render(scenes.scene_of([[0.0, 0.0, 2.0]], opacities=1.0), high).alpha[10, 10], 0.999)


def test_an_alpha_under_the_floor_is_skipped_and_one_above_it_is_drawn():
    scene = scenes.scene_of([[0.0, 0.0, 2.0]], opacities=0.2)
    for floor, drawn in ((0.2 * (1 - 1e-9), True), (0.2 * (1 + 1e-9), False)):
        alpha = render(scene, Cutoffs(alpha_floor=floor)).alpha[10, 10]
        close(alpha, 0.2 if drawn else 0.0)


def _layers(opacities: list[float]) -> scenes.SplatScene:
    count = len(opacities)
    colors = [[float(i == channel) for channel in range(3)] for i in range(count)]
    means = [[0.0, 0.0, 2.0 + i] for i in range(count)]
    return scenes.scene_of(means, opacities=opacities, colors=colors, background=[0.0, 0.0, 0.0])


def test_the_splat_that_would_stop_a_pixel_is_not_drawn_and_fainter_ones_behind_are_not_either():
    # T after each: 0.1; then 0.01 < 0.05 stops; the third alone would leave 0.09 and pass.
    picture = render(_layers([0.9, 0.9, 0.1]), Cutoffs(stop_transmittance=0.05))
    close(picture.color[10, 10], [0.9, 0.0, 0.0])
    close(picture.alpha[10, 10], 0.9)


@pytest.mark.parametrize(("inclusive", "drawn"), [(False, True), (True, False)])
def test_leaving_exactly_the_stop_transmittance_stops_only_when_inclusive(inclusive, drawn):
    # 0.5 * 0.5 = 0.25 is exact in binary.
    cutoffs = Cutoffs(stop_transmittance=0.25, stop_inclusive=inclusive)
    picture = render(_layers([0.5, 0.5]), cutoffs)
    close(picture.color[10, 10, 1], 0.25 if drawn else 0.0)


def test_a_footprint_cap_draws_nothing_beyond_the_radii():
    scene = scenes.scene_of([[0.0, 0.0, 2.0]], opacities=0.9)
    cutoffs = Cutoffs(footprint_cap=1.0)
    assert project(scene, cutoffs).radii.tolist() == [[3, 3]]
    alpha = render(scene, cutoffs).alpha
    assert alpha[10, 13] > 0
    assert alpha[13, 13] > 0
    assert alpha[10, 14] == 0
    assert (render(scene).alpha[10, 14]) > 0


def _pixel_by_hand(
    projected: Projected, column: int, row: int, background: Tensor, cutoffs: Cutoffs
) -> tuple[list[float], float, float]:
    """3DGS compositing as a loop over plain numbers: the algorithm as it is usually told."""
    order = sorted(range(len(projected.depths)), key=lambda i: (float(projected.depths[i]), i))
    transmittance, depth = 1.0, 0.0
    color = [0.0] * len(background)
    for i in order:
        if int(projected.radii[i, 0]) == 0:
            continue
        dx = float(projected.means_2d[i, 0]) - (column + 0.5)
        dy = float(projected.means_2d[i, 1]) - (row + 0.5)
        a, b, c = (float(value) for value in projected.conics[i])
        power = -0.5 * (a * dx * dx + c * dy * dy) - b * dx * dy
        alpha = min(cutoffs.alpha_ceiling, float(projected.opacities[i]) * math.exp(power))
        if alpha < cutoffs.alpha_floor:
            continue
        following = transmittance * (1 - alpha)
        if following < cutoffs.stop_transmittance:
            break
        for channel in range(len(color)):
            color[channel] += transmittance * alpha * float(projected.colors[i, channel])
        depth += transmittance * alpha * float(projected.depths[i])
        transmittance = following
    for channel in range(len(color)):
        color[channel] += transmittance * float(background[channel])
    return color, 1 - transmittance, depth


@pytest.mark.parametrize("antialiased", [False, True])
@pytest.mark.parametrize("opacity_range", [(0.05, 1.0), (0.9, 1.0)])
def test_a_picture_equals_the_loop_over_plain_numbers(opacity_range, antialiased):
    scene = scenes.random_scene(
        4, 150, 37, 19, opacity_range=opacity_range, scale_range=(0.05, 0.4), channels=4
    )
    projected = project(scene, antialiased=antialiased)
    picture = render(scene, antialiased=antialiased, margins=True)
    compared = 0
    for row in range(0, 19, 2):
        for column in range(0, 37, 3):
            if picture.margin[row, column] < 1e-9:  # decided by rounding (0.01 * 0.01 < 1e-4?)
                continue
            color, alpha, depth = _pixel_by_hand(projected, column, row, scene.background, CLASSIC)
            close(picture.color[row, column], color)
            close(picture.alpha[row, column], alpha)
            close(picture.depth[row, column], depth)
            compared += 1
    assert compared > 100


def test_the_size_of_the_tiles_changes_nothing(monkeypatch):
    scene = scenes.random_scene(5, 60, 50, 40)
    tiled = render(scene, margins=True)
    monkeypatch.setattr(reference_blending, "TILE_SIZE", 64)
    whole = render(scene, margins=True)
    for field in ("color", "alpha", "depth"):
        close(getattr(tiled, field), getattr(whole, field))
    # A splat more than a pixel beyond its box is in the whole picture's list but in no tile's, and
    # there its alpha is well under the floor: only large margins may differ.
    near = torch.minimum(tiled.margin, whole.margin) < 1e-2
    close(tiled.margin[near], whole.margin[near])


def test_no_margins_unless_asked_for():
    assert render(scenes.random_scene(1, 5)).margin is None


def test_the_margin_is_the_distance_to_the_nearest_decision():
    layers = _layers([0.5, 0.5])
    alone = _layers([0.3])

    def margin(scene: scenes.SplatScene, cutoffs: Cutoffs) -> Tensor:
        return render(scene, cutoffs, margins=True).margin[10, 10]

    far = Cutoffs(alpha_floor=1e-9, alpha_ceiling=0.9999, stop_transmittance=0.0)
    close(margin(alone, dataclasses.replace(far, alpha_floor=0.29)), 0.3 / 0.29 - 1)
    close(margin(alone, dataclasses.replace(far, alpha_ceiling=0.31)), 1 - 0.3 / 0.31)
    close(margin(layers, dataclasses.replace(far, stop_transmittance=0.24)), 0.25 / 0.24 - 1)
    close(margin(layers, dataclasses.replace(far, stop_transmittance=0.26)), 1 - 0.25 / 0.26)
    # Equal depths: the index decides, which the margin counts as a decision of its own.
    tied = layers.replace(means=torch.tensor([[0.0, 0.0, 2.0]] * 2, dtype=torch.float64))
    assert margin(tied, far) == 0
    apart = layers.replace(means=torch.tensor([[0, 0, 2.0], [0, 0, 2.001]]).double())
    # 2.001 comes from float32 above: the gap is known to 1e-7.
    assert float(margin(apart, far)) == pytest.approx(10 * 0.001 / 2.001, rel=1e-3)


def test_what_comes_after_the_stop_does_not_narrow_the_margin():
    stopping = [0.9, 0.9]
    cutoffs = Cutoffs(stop_transmittance=0.05, alpha_floor=0.2)
    without = render(_layers(stopping), cutoffs, margins=True).margin[10, 10]
    hidden = render(_layers([*stopping, 0.2 + 1e-9]), cutoffs, margins=True).margin[10, 10]
    assert hidden == without


def test_only_pixels_with_a_narrow_margin_change_what_they_draw_when_nudged():
    scene = scenes.random_scene(6, 250, 80, 60, opacity_range=(0.05, 0.3))
    # With so high a floor a splat that appears or vanishes moves its pixel by up to 5 %.
    cutoffs = Cutoffs(alpha_floor=0.05)
    nudge = 1e-3
    before = render(scene, cutoffs, margins=True)
    after = render(scene.replace(opacities=scene.opacities * (1 - nudge)), cutoffs)
    change = (before.alpha - after.alpha).abs()
    # d alpha / d ln(o) = T_end sum alpha / (1 - alpha) is below 2 here, where nothing flips.
    flipped = change > 3 * nudge
    assert flipped.sum() > 5
    assert before.margin[flipped].max() <= nudge * (1 + 1e-9)
    assert (before.margin > nudge).float().mean() > 0.9


@pytest.mark.parametrize("case", scenes.HARD_CASES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=["float32", "float64"])
def test_a_hard_case_gives_a_finite_picture_and_a_gradient_for_everything(case, dtype):
    for antialiased in (False, True):
        scene = scenes.hard_case(case, dtype).with_gradients()
        picture = render(scene, antialiased=antialiased)
        assert picture.color.shape[:2] == (scene.height, scene.width)
        assert picture.color.dtype == dtype
        for values in (picture.color, picture.alpha, picture.depth):
            assert values.isfinite().all()
        assert ((picture.alpha >= 0) & (picture.alpha <= 1)).all()
        (picture.color.square().sum() + picture.alpha.sum() + picture.depth.sum()).backward()
        for name, leaf in scene.leaves():
            assert leaf.grad is not None, name
            assert leaf.grad.isfinite().all(), name


def test_gsplats_cut_offs_draw_what_lies_before_the_classic_near_plane():
    scene = scenes.scene_of([[0.0, 0.0, 0.1]], scales=0.002)
    assert render(scene).alpha.max() == 0
    close(render(scene, GSPLAT).alpha[10, 10], 0.5)


def test_blending_takes_projected_splats_from_anywhere():
    """The seam: a picture needs nothing but what `Projected` holds."""
    projected = Projected(
        means_2d=torch.tensor([[4.5, 3.5]]),
        conics=torch.tensor([[0.5, 0.0, 0.25]]),
        depths=torch.tensor([7.0]),
        opacities=torch.tensor([0.8]),
        colors=torch.tensor([[1.0, 2.0]]),
        radii=torch.tensor([[9, 9]], dtype=torch.int32),
    )
    picture = reference.blend(projected, background=None, width=9, height=7, cutoffs=CLASSIC)
    torch.testing.assert_close(picture.color[3, 4], torch.tensor([0.8, 1.6]))
    torch.testing.assert_close(picture.alpha[3, 6], torch.tensor(0.8 * math.exp(-1.0)))
    torch.testing.assert_close(picture.alpha[5, 4], torch.tensor(0.8 * math.exp(-0.5)))
