"""Kernels that stop between two tasks for whoever calls, and go on as if nothing had been."""

import threading

import pytest
import torch

from cuda_rasterizer import Attention, l1_ssim, native, set_threads
from tests.cuda_rasterizer import scenes
from tests.cuda_rasterizer.drawing import backward, draw

pytestmark = pytest.mark.usefixtures("threads_as_before")

WIDTH, HEIGHT = 150, 60
TILES = 10 * 4
SCENE = scenes.random_scene(1, 300, WIDTH, HEIGHT, sh_degree=2, dtype=torch.float32)
OTHER = scenes.random_scene(3, 200, 33, 90, channels=7, dtype=torch.float32)


@pytest.fixture
def calls(monkeypatch):
    """Names of the kernels that are called."""
    names = []
    call = native.call

    def recorded(kernel, dtype, params):
        names.append(kernel)
        call(kernel, dtype, params)

    monkeypatch.setattr(native, "call", recorded)
    return names


def train_once():
    """Every number that a step makes: pictures, loss, gradients."""
    scene = SCENE.with_gradients()
    rendering = draw(scene, absolute_gradient=True)
    rendering.means_2d.retain_grad()
    target = torch.linspace(0, 1, rendering.color.numel()).view_as(rendering.color)
    terms = l1_ssim(rendering.color, target, 0.2, backend="cpu")
    torch.autograd.backward((terms.loss, rendering.alpha.sum(), rendering.depth.sum()))
    pictures = (rendering.color, rendering.alpha, rendering.depth, terms.loss, terms.ssim)
    gradients = [leaf.grad for _, leaf in scene.leaves()]
    return [*pictures, *gradients, rendering.means_2d.grad, rendering.absolute_gradient]


class Caller:
    """Is served as often as a kernel can stop, and each time draws something else."""

    def __init__(self):
        self.attention = Attention()
        self.served = 0

    def serve(self):
        self.served += 1
        with torch.no_grad():
            draw(OTHER)
        self.attention.call()


@pytest.mark.parametrize("threads", [1, 2])
def test_a_step_that_is_cut_at_every_tile_for_another_picture_has_the_same_bits(calls, threads):
    set_threads(threads)
    expected = train_once()
    calls.clear()
    caller = Caller()
    caller.attention.call()
    with caller.attention.heeded(caller.serve):
        found = train_once()
    for number, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert torch.equal(a, b), number
    # Each thread does a task before it stops: a tile, a block of 256 splats or of 16 a scene.
    blocks = 2 // threads
    assert calls.count("project_backward") == blocks
    assert calls.count("blend_backward") == TILES // threads + blocks - 1
    # What is drawn meanwhile is not cut itself.
    assert calls.count("project") == blocks + caller.served
    sort_and_blocks = -(-3 // threads)
    assert calls.count("bin_count") == 16 // threads + sort_and_blocks - 1 + caller.served
    assert calls.count("bin_fill") == 16 // threads + caller.served
    assert calls.count("blend") == TILES // threads + caller.served


@pytest.mark.parametrize("threads", [3, 20])
def test_cut_steps_have_the_same_bits_with_odd_numbers_of_threads_and_more_than_shares(threads):
    set_threads(1)
    expected = train_once()
    set_threads(threads)
    caller = Caller()
    caller.attention.call()
    with caller.attention.heeded(caller.serve):
        found = train_once()
    for number, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert torch.equal(a, b), number
    assert caller.served > 0


def test_a_loss_that_is_cut_has_the_same_bits(calls):
    set_threads(1)
    random = torch.Generator().manual_seed(3)
    picture, target = torch.rand(2, 300, 40, 3, generator=random)
    results = []
    caller = Caller()
    for _ in range(2):
        render = picture.clone().requires_grad_()
        with caller.attention.heeded(caller.serve):
            terms = l1_ssim(render, target, 0.2, backend="cpu")
            terms.loss.backward()
        results.append((terms.loss.item(), terms.ssim.item(), render.grad))
        caller.attention.call()
    assert results[0][:2] == results[1][:2]
    assert torch.equal(results[0][2], results[1][2])
    assert caller.served == calls.count("l1_ssim") - 2 > 1


def test_nothing_is_cut_while_nobody_calls(calls):
    caller = Caller()
    with caller.attention.heeded(caller.serve):
        train_once()
    assert caller.served == 0
    assert len(calls) == len(set(calls)) == 7


def test_one_call_is_served_once():
    attention, served = Attention(), []
    attention.call()
    with attention.heeded(lambda: served.append(1)):
        draw(SCENE)
        draw(SCENE)
    assert served == [1]


def test_a_call_from_another_thread_reaches_a_kernel_that_runs():
    attention, served, running = Attention(), threading.Event(), threading.Event()

    def call_when_running():
        running.wait()
        attention.call()

    thread = threading.Thread(target=call_when_running)
    thread.start()
    with attention.heeded(served.set):
        running.set()
        while not served.is_set():
            draw(SCENE)
    thread.join()


def test_patience_that_is_over_calls_back_without_any_call():
    served = []

    def serve():
        served.append(1)
        return 0.0 if len(served) < 5 else None

    with Attention().heeded(serve, patience=0.0):
        draw(SCENE)
    assert len(served) == 5
    with Attention().heeded(serve, patience=1e6):
        draw(SCENE)
    assert len(served) == 5


def test_whoever_calls_while_being_served_is_served_again():
    attention, served = Attention(), []

    def serve():
        served.append(1)
        if len(served) == 1:
            attention.call()

    attention.call()
    with attention.heeded(serve):
        draw(SCENE)
    assert len(served) == 2


def test_an_error_in_what_is_served_ends_forward_and_backward_and_is_told():
    attention = Attention()

    def fail():
        raise ValueError("the picture could not be drawn")

    attention.call()
    with pytest.raises(ValueError, match="could not be drawn"), attention.heeded(fail):
        draw(SCENE)
    rendering = draw(SCENE.with_gradients())  # outside of the block nothing is heeded
    attention.call()
    with pytest.raises(ValueError, match="could not be drawn"), attention.heeded(fail):
        backward(rendering)
    draw(SCENE)


def test_other_threads_heed_nothing():
    attention, served = Attention(), []
    attention.call()
    with attention.heeded(lambda: served.append(1)):
        thread = threading.Thread(target=draw, args=(SCENE,))
        thread.start()
        thread.join()
        assert served == []
        draw(SCENE)
    assert served == [1]
