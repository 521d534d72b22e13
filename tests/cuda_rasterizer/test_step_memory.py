"""Steps in the memory of those before them have the bits of steps in memory of their own."""

import dataclasses

import pytest
import torch

from cuda_rasterizer import (
    AdamGroup,
    Attention,
    RasterizerError,
    SplatInputs,
    StepGuard,
    StepMemory,
    View,
    adam_step,
    draw_for_training,
    l1_ssim_with_gradient,
    set_threads,
)
from cuda_rasterizer.cpu_backend import Binning, project
from cuda_rasterizer.cutoffs import CLASSIC, GSPLAT
from cuda_rasterizer.step_guard import GRADIENTS
from tests.cuda_rasterizer.raw_splats import COUNT, INTRINSICS, raw_splats

pytestmark = pytest.mark.usefixtures("threads_as_before")

SMALL, WIDE, LARGE = (40, 30), (90, 20), (130, 110)
BACKGROUND = torch.tensor([0.2, 0.5, 0.9])


class Run:
    """Splats that steps move by Adam; with a memory, or with none."""

    def __init__(self, memory: StepMemory | None, count: int = COUNT) -> None:
        self.memory, self.guard, self.steps = memory, StepGuard(torch.device("cpu")), 0
        self.splats = {name: tensor[:count].clone() for name, tensor in raw_splats().items()}
        self.restart_adam()

    def restart_adam(self):
        zeros = {name: torch.zeros_like(tensor) for name, tensor in self.splats.items()}
        self.moments = {name: (zero, zero.clone()) for name, zero in zeros.items()}

    def draw(self, size=SMALL, degree=3, cutoffs=CLASSIC, *, rest_learns=True):
        shift = torch.eye(4)
        shift[0, 3] = 0.01 * self.steps
        inputs = SplatInputs(
            **(self.splats | ({"sh_rest": None} if degree == 0 else {})),
            features=None,
            world_to_camera=shift,
            intrinsics=INTRINSICS.clone(),
        )
        return draw_for_training(
            *(inputs, View(*size, degree, False, cutoffs, raw=True), BACKGROUND),
            rest_learns=rest_learns,
            guard=self.guard,
            backend="cpu",
            memory=self.memory,
        )

    def step(self, size=SMALL, **options):
        """Copies of every number that the step makes, the moved splats included."""
        self.steps += 1
        self.guard.begin(keep=False)
        picture = self.draw(size, **options)
        random = torch.Generator().manual_seed(self.steps)
        photo = torch.randint(0, 256, (size[1], size[0], 3), generator=random, dtype=torch.uint8)
        values, gradient = l1_ssim_with_gradient(
            picture.color, photo, 0.2, self.guard, "cpu", memory=self.memory
        )
        found, centers = picture.differentiate(gradient)
        groups = [
            AdamGroup(tensor, of_it, *self.moments[name], 1e-3 * self.steps, self.steps)
            for name, tensor in self.splats.items()
            if (of_it := getattr(found, name)) is not None
        ]
        rates = {"beta1": 0.9, "beta2": 0.999, "eps": 1e-15}
        adam_step(groups, **rates, guard=self.guard, backend="cpu", memory=self.memory)
        made = [picture.color, picture.radii, values, gradient, centers, self.guard.flags]
        made += [getattr(found, name) for name in GRADIENTS if getattr(found, name) is not None]
        return [tensor.clone() for tensor in (*made, *self.splats.values())]


def assert_same(found, expected):
    assert len(found) == len(expected)
    for number, (a, b) in enumerate(zip(found, expected, strict=True)):
        assert torch.equal(a, b), number


def test_photos_of_mixed_sizes_share_one_memory():
    kept, fresh = Run(StepMemory()), Run(None)
    pictures = set()
    for size in (SMALL, SMALL, LARGE, WIDE, SMALL, LARGE):
        assert_same(kept.step(size), fresh.step(size))
        pictures.add(id(kept.memory.picture))
    assert len(pictures) == 1


def test_another_degree_cut_off_or_number_of_threads_is_heeded():
    kept, fresh = Run(StepMemory()), Run(None)
    changes = ({}, {"degree": 0}, {"degree": 2}, {"rest_learns": False}, {"cutoffs": GSPLAT}, {})
    for threads, options in enumerate(changes):
        set_threads(1 + threads % 2)
        assert_same(kept.step(**options), fresh.step(**options))


def test_splats_that_come_and_go_and_moments_that_begin_anew_are_heeded():
    kept, fresh = Run(StepMemory()), Run(None)
    for count in (COUNT, 40, 55):
        for run in (kept, fresh):
            run.splats = {name: rows[:count].clone() for name, rows in raw_splats().items()}
            run.restart_adam()
        for _ in range(2):
            assert_same(kept.step(), fresh.step())
    for run in (kept, fresh):
        run.restart_adam()
    assert_same(kept.step(), fresh.step())


def test_two_runs_that_take_turns_do_not_disturb_each_other():
    runs = [Run(StepMemory()), Run(StepMemory(), 50)]
    alone = [Run(None), Run(None, 50)]
    for size in (SMALL, LARGE, WIDE):
        first, second = (run.draw(size) for run in runs)
        gradients = [torch.ones_like(picture.color) for picture in (first, second)]
        found = [second.differentiate(gradients[1]), first.differentiate(gradients[0])]
        for run, (of_splats, centers) in zip(alone[::-1], found, strict=True):
            expected, expected_centers = run.draw(size).differentiate(gradients[0])
            assert torch.equal(of_splats.sh_rest, expected.sh_rest)
            assert torch.equal(centers, expected_centers)


@pytest.mark.parametrize("threads", [1, 2])
def test_a_view_drawn_in_the_middle_of_each_kernel_leaves_a_step_alone(threads):
    set_threads(threads)
    kept, fresh, viewer = Run(StepMemory()), Run(None), Run(None, 30)
    attention, served = Attention(), []

    def serve():
        served.append(1)
        viewer.draw(WIDE)
        attention.call()

    for size in (LARGE, SMALL, LARGE):
        expected = fresh.step(size)
        before = len(served)
        attention.call()
        with attention.heeded(serve):
            assert_same(kept.step(size), expected)
        assert len(served) > before + 10  # tiles alone are 63 and 6
        assert_same(kept.step(size), fresh.step(size))  # nobody is heeded now


def test_a_step_that_was_dropped_half_way_leaves_no_trace_in_the_next():
    kept, fresh = Run(StepMemory()), Run(None)
    assert_same(kept.step(), fresh.step())
    kept.draw(LARGE)

    def ends(*_):
        raise KeyboardInterrupt

    attention = Attention()
    attention.call()
    with attention.heeded(ends), pytest.raises(KeyboardInterrupt):
        kept.draw(LARGE)
    assert_same(kept.step(LARGE), fresh.step(LARGE))


def test_a_picture_is_differentiated_once():
    picture = Run(StepMemory()).draw()
    picture.differentiate(torch.ones_like(picture.color))
    with pytest.raises(RasterizerError, match="differentiated"):
        picture.differentiate(torch.ones_like(picture.color))


def test_a_camera_that_the_kernels_would_misread_is_refused_in_any_step():
    run = Run(StepMemory())
    run.step()
    wrong = dataclasses.replace(run.memory.picture._splats, intrinsics=torch.eye(3).double())
    with pytest.raises(RasterizerError, match=r"intrinsics are .*float64"):
        draw_for_training(
            *(wrong, View(*SMALL, 3, False, CLASSIC, raw=True), BACKGROUND),
            rest_learns=True,
            guard=run.guard,
            backend="cpu",
            memory=run.memory,
        )


def test_a_few_more_instances_than_in_the_step_before_find_room() -> None:
    inputs = SplatInputs(
        **raw_splats(),
        features=None,
        world_to_camera=torch.eye(4),
        intrinsics=torch.tensor([[120.0, 0, 64], [0, 120, 64], [0, 0, 1]]),
    )
    projected = project(inputs, View(128, 128, 3, False, CLASSIC, raw=True))
    binning = Binning(projected, CLASSIC, for_backward=True)
    lists = binning.run(96, 128)
    kept = [lists.instance_splats, lists.instance_slots, lists.touches]
    before, places = lists.instance_splats.shape[0], [tensor.data_ptr() for tensor in kept]
    binning.run(112, 128)
    assert before < lists.instance_splats.shape[0] < 1.125 * before
    assert [tensor.data_ptr() for tensor in kept] == places
