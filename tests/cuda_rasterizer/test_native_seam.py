"""The border to the C++ library: layouts, absence, threads, float mode, work that is not done."""

import ctypes
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from cuda_rasterizer import (
    RasterizerError,
    backend_status,
    describe,
    l1_ssim,
    native,
    resolve_backend,
    set_threads,
)
from cuda_rasterizer.native_structs import AdamParams
from tests.child_process import BUSY_SECONDS
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.drawing import (
    backward,
    draw,
    draw_with_gradients,
    recorded_kernels,
    seeds_of,
)


@pytest.fixture
def library_away(monkeypatch, tmp_path):
    """As if the kernels had not been built."""
    native.load_library.cache_clear()
    native.constants.cache_clear()
    monkeypatch.setattr(native, "library_path", lambda: tmp_path / "libsplatscope_cpu.so")
    yield tmp_path / "libsplatscope_cpu.so"
    monkeypatch.undo()
    native.load_library.cache_clear()
    native.constants.cache_clear()


@pytest.mark.usefixtures("fast_backend")
def test_every_structure_has_the_size_and_the_offsets_of_its_twin():
    layout = native.native_layout(native.load_library())
    assert layout == native.python_layout()
    assert ("BlendBackwardParams", "tile_partials") in layout


@pytest.mark.usefixtures("fast_backend")
def test_a_library_of_another_version_is_refused_with_the_field_named(monkeypatch):
    class Shifted(ctypes.Structure):
        _fields_ = (("extra", ctypes.c_double), *AdamParams._fields_)

    Shifted.__name__ = "AdamParams"
    changed = tuple(Shifted if s is AdamParams else s for s in native.STRUCTURES)
    monkeypatch.setattr(native, "STRUCTURES", changed)
    native.load_library.cache_clear()
    with pytest.raises(native.NativeUnavailableError, match=r"another version: AdamParams"):
        native.load_library()
    native.load_library.cache_clear()


def test_without_the_library_auto_is_the_reference_and_cpu_says_how_to_build(library_away):
    status = backend_status()
    assert status["reference"] is None
    assert str(library_away) in status["cpu"]
    assert resolve_backend("auto") == "reference"
    with pytest.raises(RasterizerError, match=r"not built.*cmake --build"):
        resolve_backend("cpu")
    scene = scenes.random_scene(1, 5, 8, 8)
    assert torch.equal(draw(scene, "auto").color, draw(scene, "reference").color)
    set_threads(2)


def test_a_broken_library_is_reported_and_not_taken_for_an_absent_one(library_away):
    library_away.write_bytes(b"this is no library")
    assert "do not load" in backend_status()["cpu"]


def test_an_unknown_backend_and_cuda_are_refused_by_name():
    with pytest.raises(RasterizerError, match="no backend 'vulkan'"):
        resolve_backend("vulkan")
    reason = backend_status()["cuda"]
    if reason is None:
        assert resolve_backend("cuda") == "cuda"
        return
    with pytest.raises(RasterizerError, match="'cuda' cannot be used here: ") as caught:
        resolve_backend("cuda")
    assert reason in str(caught.value)


@pytest.mark.usefixtures("fast_backend")
def test_the_library_links_neither_torch_nor_python():
    content = native.library_path().read_bytes()
    assert b"libtorch" not in content
    assert b"libpython" not in content


@pytest.mark.usefixtures("threads_as_before")
def test_the_description_names_threads_and_instruction_set():
    set_threads(2)
    assert describe("cpu").startswith("CPU, 2 threads, ")
    set_threads(1)
    assert describe("cpu").startswith("CPU, 1 thread, ")
    assert describe("reference").startswith("reference")


@pytest.mark.usefixtures("threads_as_before")
@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="counts threads in /proc")
def test_fewer_threads_end_the_others():
    def count() -> int:
        return len(list(Path("/proc/self/task").iterdir()))

    set_threads(1)
    alone = count()
    set_threads(4)
    assert count() == alone + 3
    set_threads(1)
    assert count() == alone


@pytest.mark.usefixtures("threads_as_before")
def test_no_threads_and_negative_ones():
    set_threads(0)
    assert native.thread_count() == len(os.sched_getaffinity(0))
    with pytest.raises(RasterizerError, match="asked for -1 threads"):
        set_threads(-1)


@pytest.mark.usefixtures("threads_as_before")
def test_two_threads_may_draw_at_once():
    set_threads(2)
    picture = [scenes.random_scene(seed, 200, 64, 64, dtype=torch.float32) for seed in (1, 2)]
    expected = [draw(scene).color for scene in picture]
    wrong: list[int] = []

    def work(index: int) -> None:
        for _ in range(20):
            if not torch.equal(draw(picture[index]).color, expected[index]):
                wrong.append(index)

    workers = [threading.Thread(target=work, args=(index,)) for index in (0, 1)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


FORKED = """
import os, torch
from cuda_rasterizer import set_threads
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.drawing import draw
set_threads(3)
scene = scenes.random_scene(1, 100, 64, 64)
expected = draw(scene).color
child = os.fork()
if child == 0:
    os._exit(0 if torch.equal(draw(scene).color, expected) else 3)
raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


@pytest.mark.usefixtures("fast_backend")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_draws_with_a_pool_of_its_own():
    result = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", FORKED],
        cwd=Path(__file__).parents[2],
        timeout=BUSY_SECONDS,
        capture_output=True,
        check=False,
    )
    assert result.returncode == 0, result.stderr.decode()


@pytest.mark.usefixtures("fast_backend")
def test_the_callers_float_mode_survives_a_call():
    tiny = torch.tensor([1e-40], dtype=torch.float32)
    draw(scenes.random_scene(1, 20, dtype=torch.float32))
    assert (tiny * 0.5).item() > 0


@pytest.mark.usefixtures("fast_backend")
def test_inputs_that_need_no_gradient_get_none_and_cost_no_kernel(monkeypatch):
    scene = scenes.random_scene(1, 20)
    scene.features.requires_grad_()
    with recorded_kernels(monkeypatch) as kernels:
        backward_of_color = draw(scene)
        backward_of_color.color.sum().backward()
    assert "project_backward" not in kernels
    assert scene.features.grad is not None
    assert scene.means.grad is None
    assert not backward_of_color.means_2d.requires_grad


@pytest.mark.usefixtures("fast_backend")
def test_each_input_alone_gets_the_gradient_it_gets_in_company():
    whole = scenes.random_scene(2, 40, sh_degree=2)
    _, expected = draw_with_gradients(whole)
    for name, _ in whole.leaves():
        scene = whole.to(torch.float64)
        leaf = getattr(scene, name).requires_grad_()
        rendering = draw(scene)
        pictures = zip(
            (rendering.color, rendering.alpha, rendering.depth), seeds_of(rendering), strict=True
        )
        chosen = [(picture, seed) for picture, seed in pictures if picture.requires_grad]
        torch.autograd.backward(*zip(*chosen, strict=True))
        assert torch.equal(leaf.grad, expected[name]), name


@pytest.mark.usefixtures("fast_backend")
def test_nothing_is_kept_under_no_grad():
    scene = scenes.random_scene(3, 30).with_gradients()
    with torch.no_grad():
        rendering = draw(scene)
    assert rendering.color.grad_fn is None
    assert rendering.means_2d.grad_fn is None


@pytest.mark.usefixtures("fast_backend")
def test_a_second_derivative_is_refused_with_a_sentence():
    scene = scenes.random_scene(4, 10).with_gradients()
    rendering = draw(scene)
    (gradient,) = torch.autograd.grad(rendering.color.sum(), scene.means, create_graph=True)
    with pytest.raises(RasterizerError, match="no second derivative; use backend='reference'"):
        gradient.square().sum().backward()
    picture = torch.rand(9, 8, 3, requires_grad=True)
    loss = l1_ssim(picture, torch.rand(9, 8, 3), 0.2, backend="cpu").loss
    (gradient,) = torch.autograd.grad(loss, picture, create_graph=True)
    with pytest.raises(RasterizerError, match="no second derivative"):
        torch.autograd.grad(gradient.sum(), picture)


@pytest.mark.usefixtures("fast_backend")
def test_the_raw_quaternions_gradient_is_orthogonal_to_it():
    scene = scenes.random_scene(5, 50).with_gradients()
    backward(draw(scene))
    along = (scene.quaternions * scene.quaternions.grad).sum(dim=1)
    # Exactly zero but for rounding of float64.
    assert along.abs().max() < 1e-9 * scene.quaternions.grad.abs().max()
