"""What the host does around the CUDA kernels: capacity, what it waits for, whose tensors it takes.

The kernels themselves do nothing here; `tests/cuda_emulator` runs them.
"""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from cuda_rasterizer import (
    AdamGroup,
    RasterizerError,
    adam_step,
    backend_status,
    backends,
    describe,
    l1_ssim,
    rasterize,
    resolve_backend,
    to_rgba8,
)
from cuda_rasterizer.cuda import availability, binning, sources
from cuda_rasterizer.cuda.launches import use_launcher
from cuda_rasterizer.determinism import is_deterministic, set_deterministic
from tests.child_process import BUSY_SECONDS
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.cuda_host.scripted_launcher import ScriptedLauncher
from tests.cuda_rasterizer.drawing import draw


@pytest.fixture(autouse=True)
def _nothing_remembered(monkeypatch):
    monkeypatch.setattr(binning, "_capacities", {})


@pytest.fixture
def launcher() -> Iterator[ScriptedLauncher]:
    scripted = ScriptedLauncher()
    with use_launcher(scripted):
        yield scripted


@pytest.fixture
def scene():
    return scenes.random_scene(1, 30, 40, 24, dtype=torch.float32)


def test_the_capacity_of_the_last_picture_serves_the_next_and_too_little_is_repeated(
    launcher, scene
):
    step = sources.constants()["sort_items"]
    draw(scene, "cuda")
    assert [fields["capacity"] for fields in launcher.fields("emit_instances_narrow")] == [step]
    launcher.launches.clear()
    launcher.instances = 5 * step
    draw(scene, "cuda")
    first, second = (f["capacity"] for f in launcher.fields("emit_instances_narrow"))
    assert first == step
    assert second >= 5 * step
    assert launcher.names().count("blend_depth") == 2
    assert launcher.names().count("pack_splats") == 1, "only what the capacity bounds is repeated"
    launcher.launches.clear()
    launcher.instances = 6 * step
    draw(scene, "cuda")
    assert [f["capacity"] for f in launcher.fields("emit_instances_narrow")] == [second]


def test_a_capacity_shrinks_slowly_and_belongs_to_one_size_of_picture(launcher, scene):
    step = sources.constants()["sort_items"]
    launcher.instances = 100 * step
    draw(scene, "cuda")
    launcher.instances = step
    launcher.launches.clear()
    for _ in range(3):
        draw(scene, "cuda")
    used = [f["capacity"] for f in launcher.fields("emit_instances_narrow")]
    assert used[0] > used[1] > used[2] > 90 * step
    launcher.launches.clear()
    draw(scene.replace(width=33), "cuda")
    assert [f["capacity"] for f in launcher.fields("emit_instances_narrow")][-1] <= 2 * step


def test_what_is_remembered_of_many_sizes_does_not_grow_for_ever(monkeypatch):
    monkeypatch.setattr(binning, "_REMEMBERED_SIZES", 3)
    for width in range(20):
        binning.remember_capacity(torch.device("cpu"), width, 8, 100)
    assert len(binning._capacities) <= 3


def test_more_instances_than_can_be_numbered_are_refused_with_advice(launcher, scene):
    launcher.instances = 2**31
    limit = sources.constants()["maximum_instances"]
    with pytest.raises(RasterizerError, match=rf"2147483648 tiles .* at most {limit}.*smaller"):
        draw(scene, "cuda")


UNASKED = """
import sys
import torch  # which takes along what it finds of cuda-bindings
before = set(sys.modules)
import cuda_rasterizer
from engine import device
cuda_rasterizer.resolve_backend("auto"), cuda_rasterizer.backend_status()
new = set(sys.modules) - before
print(*(name for name in new if name.split(".")[0] in ("cuda", "nvidia")))
"""


@pytest.mark.skipif(torch.version.cuda is not None, reason="needs a torch without CUDA")
def test_without_a_torch_for_gpus_nothing_of_cuda_bindings_is_imported():
    found = subprocess.run(
        [sys.executable, "-c", UNASKED],
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=BUSY_SECONDS,
        check=True,
    )
    assert found.stdout.split() == []


class HostReads(TorchFunctionMode):
    """Notes what would make the host wait for a GPU."""

    WAITING = (
        *("__bool__", "__int__", "__float__", "__index__", "item", "tolist", "numpy", "cpu"),
        *("equal", "nonzero", "masked_select", "unique", "is_nonzero", "allclose"),
    )

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in self.WAITING:
            self.found.append(name)
        return func(*args, **(kwargs or {}))


def test_the_watch_on_host_reads_sees_them():
    numbers = torch.arange(3)
    with HostReads() as reads:
        assert numbers[1] == 1
        assert int(numbers[2]) == 2
        assert numbers.tolist() == [0, 1, 2]
    assert reads.found == ["__bool__", "__int__", "tolist"]


def _train_once(scene: scenes.SplatScene) -> None:
    leaves = [leaf.clone().requires_grad_() for leaf in (*scene.splats, scene.features)]
    picture = rasterize(
        *leaves[:4],
        features=leaves[4],
        world_to_camera=scene.world_to_camera,
        intrinsics=scene.intrinsics,
        width=scene.width,
        height=scene.height,
        background=scene.background,
        raw=True,
        depth=False,
        backend="cuda",
    )
    picture.means_2d.retain_grad()
    target = torch.zeros_like(picture.color)
    l1_ssim(picture.color, target, 0.2, backend="cuda").loss.backward()
    groups = [AdamGroup(x.detach(), x.grad, x.grad, x.grad, 0.1, 1) for x in leaves]
    adam_step(groups, beta1=0.9, beta2=0.99, eps=1e-15, radii=picture.radii, backend="cuda")
    to_rgba8(picture.color.detach(), backend="cuda")


def test_a_training_step_reads_one_number_back_and_no_more(launcher, scene):
    reads = HostReads()
    with reads:
        _train_once(scene)
    # The skew of intrinsics, which is not read on a GPU; and the count of instances.
    assert reads.found == ["__bool__", "__int__"]
    wanted = ("project", "blend", "blend_backward", "splat_gradients", "project_backward")
    assert set(wanted) < set(launcher.names())
    assert launcher.names().count("adam") == 1


@pytest.mark.parametrize("deterministic", [False, True])
@pytest.mark.parametrize("by_torch", [False, True])
def test_the_deterministic_switch_or_torchs_own_choose_the_kernels(
    launcher, scene, deterministic, by_torch, monkeypatch
):
    if by_torch:
        monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: deterministic)
    else:
        set_deterministic(deterministic)
    try:
        assert is_deterministic() is deterministic
        _train_once(scene)
    finally:
        set_deterministic(False)
    assert ("blend_backward_deterministic" in launcher.names()) is deterministic
    assert ("blend_backward" in launcher.names()) is not deterministic
    assert ("sum_slots" in launcher.names()) is deterministic
    assert ("gather_instances" in launcher.names()) is deterministic


def test_the_installed_launcher_makes_cuda_a_backend_of_its_own_device_for_a_while(scene):
    with use_launcher(ScriptedLauncher()):
        assert backend_status()["cuda"] is None
        assert resolve_backend("cuda") == "cuda"
        assert "ScriptedLauncher on the cpu" in describe("cuda")
        with use_launcher(ScriptedLauncher(1)):
            pass
        assert draw(scene, "cuda").color.shape == (24, 40, 3)
    assert backend_status()["cuda"] == availability.unavailable_reason()


def test_auto_stays_on_the_cpu_with_tensors_of_the_cpu(launcher, scene):
    draw(scene, "auto")
    assert not launcher.launches


def test_double_precision_is_refused_on_cuda_with_what_it_takes(launcher):
    scene = scenes.random_scene(1, 5)
    message = r"means are torch.float64 on cpu; backend 'cuda' takes torch.float32 on cpu"
    with pytest.raises(RasterizerError, match=message):
        rasterize(*scene.splats, **scene.projection, backend="cuda")


class OnGpu:
    """Stands for a tensor of a GPU, of which only its kind is asked."""

    is_cuda = True
    dtype = torch.float32
    device = torch.device("cuda", 0)


def test_tensors_of_a_gpu_are_for_cuda_alone_unless_another_backend_is_named(monkeypatch):
    tensor: Tensor = OnGpu()  # type: ignore[assignment]
    monkeypatch.setattr(backends, "_cuda_reason", lambda gpu: "the driver is too old")
    with pytest.raises(RasterizerError, match="'cuda' cannot be used here: the driver is too old"):
        backends.backend_for("auto", "means are", tensor)
    monkeypatch.setattr(backends, "_cuda_reason", lambda gpu: None)
    assert backends.backend_for("auto", "means are", tensor) == "cuda"
    assert backends.backend_for("reference", "means are", tensor) == "reference"
    with pytest.raises(RasterizerError, match=r"on cuda:0; backend 'cpu' takes .* on cpu"):
        backends.backend_for("cpu", "means are", tensor)


def test_a_gpu_that_works_is_what_auto_stands_for(monkeypatch):
    monkeypatch.setattr(backends, "_cuda_reason", lambda gpu: None)
    assert resolve_backend("auto") == "cuda"


def test_an_empty_picture_and_no_splats_launch_nothing_that_has_no_blocks(launcher):
    nothing = scenes.random_scene(1, 0, 5, 5, dtype=torch.float32)
    _train_once(nothing)
    assert all(grid > 0 for _, _, grid in launcher.launches)
    assert "blend" in launcher.names()  # the background is drawn all the same
    assert "pack_splats" not in launcher.names()
