"""The CUDA backend as a whole, run by the emulator: repeats, previews, the debug switch, doctor."""

import ctypes

import pytest
import torch

from cuda_rasterizer import RasterizerError, debug
from cuda_rasterizer.cuda import binning, diagnosis
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.drawing import backward, draw, draw_with_gradients

pytestmark = [pytest.mark.emulator, pytest.mark.usefixtures("emulated", "fast_backend")]


def test_a_picture_that_had_to_be_repeated_is_the_one_of_the_cpu(monkeypatch):
    crowded = scenes.random_scene(3, 60, 60, 50, dtype=torch.float32)
    remembered = {(torch.device("cpu"), 60, 50): 100}
    monkeypatch.setattr(binning, "_capacities", remembered)
    capacities: list[int] = []
    deal = binning.deal_to_tiles

    def count(ordered, capacity, *rest, **options):
        capacities.append(capacity)
        return deal(ordered, capacity, *rest, **options)

    monkeypatch.setattr("cuda_rasterizer.cuda.compositing.deal_to_tiles", count)
    found, gradients = draw_with_gradients(crowded, "cuda")
    again, same = draw_with_gradients(crowded, "cuda")
    assert len(capacities) == 3, "the first picture is repeated, the second fits"
    assert capacities[0] == 100 < capacities[1] == capacities[2]
    assert torch.equal(found.color, again.color)
    expected, truth = draw_with_gradients(crowded, "cpu")
    # Sums of up to 60 products of float32 numbers of about 1, in another order.
    torch.testing.assert_close(found.color, expected.color, rtol=0, atol=1e-5)
    for name, gradient in truth.items():
        size = float(gradient.abs().max())
        for candidate in (gradients[name], same[name]):
            torch.testing.assert_close(candidate, gradient, rtol=0, atol=1e-4 * size)


def test_a_preview_between_forward_and_backward_changes_no_bit_of_the_gradient():
    scene = scenes.random_scene(5, 40, 50, 40, dtype=torch.float32)
    alone = scene.with_gradients()
    backward(draw(alone, "cuda"))
    disturbed = scene.with_gradients()
    picture = draw(disturbed, "cuda")
    with torch.no_grad():
        draw(scenes.random_scene(6, 300, 90, 70, dtype=torch.float32), "cuda")
    backward(picture)
    for (name, one), (_, other) in zip(alone.leaves(), disturbed.leaves(), strict=True):
        assert torch.equal(one.grad, other.grad), name


def test_doctors_trial_passes_on_kernels_that_are_right():
    found = diagnosis.diagnose()
    assert found.problem is None
    assert "equal backend 'cpu'" in found.trial


def test_with_the_debug_switch_a_kernel_that_forgets_a_number_is_named(monkeypatch, emulated):
    monkeypatch.setattr(debug, "_is_on", True)
    scene = scenes.random_scene(5, 40, 50, 40, dtype=torch.float32)
    draw_with_gradients(scene, "cuda")
    launch = emulated.launch

    def forgetful(kernel, params, *, grid, block, shared_bytes=0):
        if kernel != "splat_gradients":
            launch(kernel, params, grid=grid, block=block, shared_bytes=shared_bytes)

    monkeypatch.setattr(emulated, "launch", forgetful)
    message = r"kernel splat_gradients left nan in grad_means_2d at index \[0, 0\], one of 80 of 80"
    with pytest.raises(RasterizerError, match=message):
        draw_with_gradients(scene, "cuda")


def test_with_the_debug_switch_lists_out_of_order_are_named(monkeypatch, emulated):
    monkeypatch.setattr(debug, "_is_on", True)
    scene = scenes.random_scene(5, 40, 50, 40, dtype=torch.float32)
    launch = emulated.launch

    def wrong(kernel, params, *, grid, block, shared_bytes=0):
        launch(kernel, params, grid=grid, block=block, shared_bytes=shared_bytes)
        if kernel == "tile_ranges_narrow":
            ctypes.c_int64.from_address(params.tile_offsets).value = 1

    monkeypatch.setattr(emulated, "launch", wrong)
    with pytest.raises(
        RasterizerError, match=r"tile_ranges left offsets .* rise from 0 to .*\[1, "
    ):
        draw(scene, "cuda")
