"""The kernels that no machine of ours can run, under emulators, against plain torch on this one.

Both draw and learn through the same Python: only the kernels' calls go to the other machine.
"""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch

from cuda_rasterizer import (
    CLASSIC,
    AdamGroup,
    adam_step,
    add_screen_gradients,
    l1_ssim,
    native,
    set_threads,
    to_rgba8,
)
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.conftest import only_where_had
from tests.cuda_rasterizer.drawing import draw, draw_with_gradients
from tests.cuda_rasterizer.emulated import arm64, avx512
from tests.cuda_rasterizer.emulated.machine import Machine, kernels_on
from tests.cuda_rasterizer.test_fast_backends_equal_reference import (
    ON_A_DECISION,
    assert_pictures_agree,
    relative_error,
)
from tests.cuda_rasterizer.test_screen_gradients import views

pytestmark = [
    pytest.mark.usefixtures("fast_backend"),
    *(pytest.mark.slow, pytest.mark.timeout(1200)),  # a start takes half a minute of two compilers
]

THREADS = 3
STARTS = {"arm64": arm64.start, "avx512": avx512.start}
WIDEST_SETS = {"arm64": "baseline", "avx512": "avx512"}


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in STARTS],
)
def kind(request: pytest.FixtureRequest) -> str:
    """Which machine; each test runs on all that can be had."""
    return str(request.param)


@pytest.fixture(scope="module")
def machine(kind: str) -> Iterator[Machine]:
    with STARTS[kind]() as machine:
        yield machine


@pytest.fixture
def over_there(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, threads_as_before: None
) -> Iterator[None]:
    """Backend "cpu" is the other machine's; torch and the reference stay here."""
    set_threads(THREADS)  # as many workspaces as there are threads over there
    machine.set_threads(THREADS)
    with kernels_on(machine, monkeypatch):
        yield


def here_and_there(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, deed: Callable[[], Any]
) -> tuple[Any, Any]:
    """What comes of `deed` with AVX2 on this machine, and on the other."""
    set_threads(THREADS)
    machine.set_threads(THREADS)
    with only_where_had("avx2"):
        here = deed()
    with kernels_on(machine, monkeypatch):
        return here, deed()


def test_the_library_chooses_its_widest_instructions(machine, kind):
    assert machine.instruction_set == WIDEST_SETS[kind]


def test_structures_and_constants_are_laid_out_alike(machine):
    here = {f"{name}.{field}": value for (name, field), value in native.python_layout().items()}
    assert machine.layout == {**here, **native.constants()}


@pytest.mark.usefixtures("over_there")
@pytest.mark.parametrize("antialiased", [False, True])
def test_random_scenes_look_as_the_reference_draws_them(antialiased):
    for seed in range(2):
        scene = scenes.random_scene(seed, 150, 61, 43, sh_degree=seed + 1)
        assert_pictures_agree(scene, "cpu", CLASSIC, antialiased)


@pytest.mark.usefixtures("over_there")
def test_float64_agrees_to_the_last_digits_with_gradients():
    scene = scenes.random_scene(0, 40, 41, 30, sh_degree=3)
    truth, true_gradients = draw_with_gradients(scene, "reference", antialiased=True)
    found, gradients = draw_with_gradients(scene, antialiased=True)
    torch.testing.assert_close(found.color, truth.color, rtol=1e-11, atol=1e-12)
    assert torch.equal(found.radii, truth.radii)
    for name, gradient in gradients.items():
        # Sums of some thousand terms in another order.
        assert relative_error(gradient, true_gradients[name]) < 1e-10, name


@pytest.mark.usefixtures("over_there")
@pytest.mark.parametrize("antialiased", [False, True])
def test_float32_gradients_agree(antialiased):
    scene = scenes.random_scene(1, 100, 50, 35, sh_degree=3).to(torch.float32)
    _, truth = draw_with_gradients(scene.to(torch.float64), "reference", antialiased=antialiased)
    _, found = draw_with_gradients(scene, antialiased=antialiased)
    for name, gradient in found.items():
        # Seven digits, of which a stack of fifty splats costs two; needles cost one more.
        assert relative_error(gradient, truth[name]) < 2e-4, name


@pytest.mark.usefixtures("over_there")
@pytest.mark.parametrize("case", scenes.HARD_CASES)
def test_hard_cases_have_the_gradient_of_the_reference(case):
    scene = scenes.hard_case(case).to(torch.float32)
    _, truth = draw_with_gradients(scene.to(torch.float64), "reference")
    _, found = draw_with_gradients(scene)
    for name, gradient in found.items():
        # A flipped pixel of a small picture weighs some thousandths of a float32 gradient.
        limit = 5e-2 if case in ON_A_DECISION else 5e-3
        assert relative_error(gradient, truth[name]) < limit, name


@pytest.mark.usefixtures("over_there")
@pytest.mark.parametrize("case", scenes.DEAD_SPLATS)
def test_a_dead_splat_is_not_seen_and_has_no_gradient(case):
    """What is not a number takes the way here that it takes on x86."""
    found, gradients = draw_with_gradients(scenes.dead_splat_scene(case, torch.float32))
    assert found.color.isfinite().all()
    assert not found.radii[1].any()
    for name, gradient in gradients.items():
        assert gradient.isfinite().all(), name
        assert name == "background" or not gradient[1].any(), name


@pytest.mark.usefixtures("threads_as_before")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_picture_has_the_bits_of_avx2(machine, monkeypatch, dtype):
    """All fuse the same operations, and no pixel knows how many others lie in its vector."""
    scene = scenes.random_scene(3, 150, 61, 43, sh_degree=3, dtype=dtype)
    here, there = here_and_there(machine, monkeypatch, lambda: draw(scene))
    for name in ("means_2d", "radii", "color", "alpha", "depth"):
        assert torch.equal(getattr(here, name), getattr(there, name)), name


@pytest.mark.usefixtures("threads_as_before")
def test_absolute_gradients_are_those_of_avx2(machine, monkeypatch):
    """The reference has none. A splat's pixels are summed in another order."""
    scene = scenes.random_scene(3, 150, 61, 43, sh_degree=3, dtype=torch.float32)
    here, there = here_and_there(
        machine,
        monkeypatch,
        lambda: draw_with_gradients(scene, absolute_gradient=True)[0].absolute_gradient,
    )
    assert here.any()
    torch.testing.assert_close(there, here, rtol=1e-4, atol=1e-6 * float(here.max()))


@pytest.mark.usefixtures("threads_as_before")
@pytest.mark.parametrize("raw", [False, True])
def test_projection_has_the_bits_of_avx2_both_ways(machine, monkeypatch, raw):
    """Its formulas are plain operations, and nothing of a splat is a sum over others."""
    scene = scenes.random_scene(4, 300, 61, 43, sh_degree=3, opacity_range=(0.01, 0.97))
    if raw:
        scene = scene.replace(scales=scene.scales.log(), opacities=scene.opacities.logit())
    scene = scene.to(torch.float32)

    def project():
        leaves = scene.with_gradients()
        rendering = draw(leaves, raw=raw)
        rendering.means_2d.sum().backward()
        gradients = [leaf.grad for _, leaf in leaves.leaves() if leaf.grad is not None]
        return [rendering.radii, rendering.means_2d, *gradients]

    here, there = here_and_there(machine, monkeypatch, project)
    for found, expected in zip(there, here, strict=True):
        assert torch.equal(found, expected)


@pytest.mark.usefixtures("threads_as_before")
def test_any_number_of_threads_gives_the_same_bits(machine, monkeypatch):
    scene = scenes.random_scene(2, 150, 61, 43, sh_degree=2, dtype=torch.float32)
    results = []
    for count in (1, THREADS):
        set_threads(count)
        machine.set_threads(count)
        with kernels_on(machine, monkeypatch):
            results.append(draw_with_gradients(scene))
    (one, one_gradients), (three, three_gradients) = results
    assert torch.equal(one.color, three.color)
    for name, gradient in one_gradients.items():
        assert torch.equal(gradient, three_gradients[name]), name


@pytest.mark.usefixtures("over_there")
@pytest.mark.parametrize("size", [(1, 1, 3), (31, 17, 3), (12, 300, 3), (12, 9, 5)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_loss_and_its_gradient_equal_those_of_the_reference(size, dtype):
    random = torch.Generator().manual_seed(sum(size))
    render, target = torch.rand(2, *size, generator=random, dtype=torch.float64).to(dtype)
    render.requires_grad_()
    found = l1_ssim(render, target, 0.2, backend="cpu")
    (gradient,) = torch.autograd.grad(found.loss, render)
    exact = render.detach().double().requires_grad_()
    truth = l1_ssim(exact, target.double(), 0.2, backend="reference")
    (expected,) = torch.autograd.grad(truth.loss, exact)
    # Differences of squares in float32 leave five digits of a variance.
    loss_digits, digits = (1e-6, 1e-3) if dtype == torch.float32 else (1e-12, 1e-9)
    assert found.loss.item() == pytest.approx(truth.loss.item(), rel=loss_digits)
    largest = float(expected.abs().max())
    torch.testing.assert_close(gradient.double(), expected, rtol=digits, atol=digits / 10 * largest)


@pytest.mark.usefixtures("over_there")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_adam_takes_the_steps_of_torch(dtype):
    random = torch.Generator().manual_seed(2)
    ours = [torch.randn(50, *row, generator=random).to(dtype) for row in ((3,), (15, 3), ())]
    theirs = [tensor.clone().requires_grad_() for tensor in ours]
    moments = [(torch.zeros_like(tensor), torch.zeros_like(tensor)) for tensor in ours]
    optimizer = torch.optim.Adam(theirs, lr=0.01, eps=1e-15)
    for step in range(1, 6):
        groups = []
        for tensor, other, pair in zip(ours, theirs, moments, strict=True):
            other.grad = torch.randn(tensor.shape, generator=random).to(dtype)
            groups.append(AdamGroup(tensor, other.grad.clone(), *pair, 0.01, step))
        optimizer.step()
        adam_step(groups, beta1=0.9, beta2=0.999, eps=1e-15, backend="cpu")
    # A rounding a step of numbers up to 4, and a millionth part of a step of at most 0.01.
    tolerance = 2e-6 if dtype == torch.float32 else 1e-14
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other.detach(), rtol=0, atol=tolerance)


@pytest.mark.usefixtures("over_there")
def test_bytes_of_a_picture_are_those_of_the_reference():
    picture = torch.linspace(-0.5, 1.5, 21 * 17 * 3).reshape(21, 17, 3)
    picture[3, 4, 1] = float("nan")
    assert torch.equal(to_rgba8(picture, backend="cpu"), to_rgba8(picture, backend="reference"))


@pytest.mark.usefixtures("over_there")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_screen_gradients_are_summed_as_plain_torch_sums_them(dtype):
    made = add_screen_gradients(*views(2_003, dtype), 123, 77, "cpu")
    expected = add_screen_gradients(*views(2_003, dtype), 123, 77, "reference")
    # a root that is off by its last bit, and the sum rounded to the neighbour because of it
    two_bits = 2 * torch.finfo(dtype).eps
    torch.testing.assert_close(made[0], expected[0], rtol=two_bits, atol=0)
    assert torch.equal(made[1], expected[1])
