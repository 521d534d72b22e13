"""The training loop of 3DGS, one step at a time.

A step reads as the method section does: pick a photo, render, loss, backward, statistics, refine,
reset, optimise. Nothing moves before the last phase, which is not interrupted: until then a step
can be dropped without a trace, and a view can be drawn between its phases.
"""

from collections.abc import Generator, Iterator, Mapping
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from cuda_rasterizer import StepGuard, StepMemory, TrainingPicture, l1_ssim_with_gradient
from engine.cameras import Camera
from engine.dataset.geometry import camera_extent
from engine.dataset.initial_points import initial_points
from engine.dataset.scene import Scene
from engine.errors import SettingError, TrainingError
from engine.memory import is_out_of_memory, out_of_memory_sentence
from engine.photo_score import PhotoScore
from engine.setting_info import Applies, Value
from engine.settings import Settings, setting_info
from engine.training import run_state, schedule
from engine.training.classic import ClassicStrategy
from engine.training.densification import DensifyStrategy, Edit, RefineCounts
from engine.training.device_photos import DevicePhotos, photos_on
from engine.training.evaluation import evaluate, evaluation_background, training_background
from engine.training.gaussians import Gaussians, first_not_finite, from_points
from engine.training.notices import notices_of_refine, notices_of_reset
from engine.training.optimizer import Optimizer
from engine.training.photos import Color, PhotoOrder, PhotoSource, target_picture
from engine.training.random_streams import RandomStreams
from engine.training.render import RenderMode, draw_step, render
from engine.training.smaller_photos import SmallerPhotos
from engine.training.space_order import sorted_in_space
from engine.training.step_check import (
    PARAMETER_OF,
    Watchdog,
    require_finite_parameters,
    require_finite_step,
)
from engine.training.step_outcomes import StepOutcomes, heed, may_wait
from engine.training.step_reading import StepNumbers
from engine.training.step_result import Phase, StepFacts, StepResult
from engine.training.stopwatch import Stopwatch
from engine.transfers import to_device

CPU = torch.device("cpu")


class Trainer:
    """One run: model, optimiser, schedules and random numbers. Belongs to one thread.

    `step` counts finished steps. Two trainers with the same arguments give the same bits on the
    CPU. Everything that changes the model by hand is for between two steps.
    """

    def __init__(
        self,
        scene: Scene,
        photos: PhotoSource,
        settings: Settings,
        *,
        backend: str,
        device: torch.device = CPU,
        model: Gaussians | None = None,
    ) -> None:
        """Start from the scene's points, or from `model`, which is moved to `device`.

        `backend` is a resolved name that can draw there. Random numbers are drawn on the CPU
        whatever the device is, so that a run and its checkpoints go on anywhere.

        Raises TrainingError when there is no photo to train on or a parameter is not finite.
        """
        training = [index for index, photo in enumerate(scene.photos) if not photo.held_out]
        if not training:
            raise TrainingError(
                f"Scene {scene.name} has no photo to train on: all {len(scene.photos)} are held "
                "out or missing. Hold out fewer.",
                path=scene.path,
            )
        self.scene = scene
        self.settings = settings
        self.backend = backend
        self.device = device
        self.step = 0
        self.seconds = 0.0
        self.extent = camera_extent(scene)
        self.unseen: dict[str, int] = {}  # by photo: steps in which it showed no splat
        self._photos = photos_on(device, photos)
        self._smaller = SmallerPhotos(self._photos)
        self._mode = RenderMode.of(settings, backend)
        self.streams = RandomStreams(settings.run.seed)
        self.order = PhotoOrder(training, self.streams["photos"])
        if model is None:
            model = from_points(*initial_points(scene, settings, self.streams["points"]))
        model.move_to(device)
        require_finite_parameters(model, "at the start")
        self.model = model
        self.optimizer = Optimizer(model.items(), backend)
        self.strategy: DensifyStrategy = ClassicStrategy(len(model), device, backend)
        self.sh_reached = 0
        self.pending_reset: float | None = None  # what the next step first lowers opacities to
        self.watchdog = Watchdog()
        self.guard = StepGuard(device)
        self._memory = StepMemory()
        self._watch = Stopwatch()
        self._outcomes = StepOutcomes()

    # --- what is in force ------------------------------------------------------------------------

    @property
    def sh_degree(self) -> int:
        """The degree in use: as far as the schedule has come, but not above the maximum."""
        return min(self.sh_reached, self.settings.spherical_harmonics.sh_degree_max)

    @property
    def position_lr(self) -> float:
        """The rate of the means at the last step done, extent included."""
        return schedule.position_rate(self.step, self.settings, self.extent)

    def next_occurrence(self, name: str) -> int | None:
        """The step at which the setting `name` will next show, for its badge; None for never."""
        return schedule.next_occurrence(name, self.step, self.settings, self.sh_reached)

    # --- one step --------------------------------------------------------------------------------

    def step_once(self) -> StepResult:
        """Do one whole step, and wait until it is known how it ended."""
        for _ in self.phases():
            pass
        self.settle()
        return self.take_results()[-1]

    def phases(self) -> Generator[Phase, None, None]:
        """One step, pausing after each phase but the last.

        On the CPU its result is to be had behind it (`take_results`). On a GPU it is only queued
        then: how it ended is read in the course of the next step, or by `settle`.

        Closing the generator, or an error in it, drops the step: photo, random numbers, schedules
        and model are as if it had never begun. Raises TrainingError, with the last good state
        kept, when loss or gradients of this step or of the one before are not finite or memory
        runs out.
        """
        try:
            with self._outcomes.step(self):
                yield from self._phases()
        except BaseException as error:
            if is_out_of_memory(error):
                raise self._out_of_memory() from error
            raise

    def settle(self) -> None:
        """Wait until it is known how the last step ended; for between two steps.

        Raises TrainingError, with the state from before that step, when it was not finite.
        """
        self._outcomes.settle(self)

    def take_results(self) -> list[StepResult]:
        """The steps of which it became known since the last call how they ended, in order."""
        return self._outcomes.take()

    def _phases(self) -> Generator[Phase, None, None]:
        watch = self._watch
        watch.start()
        step = self.step + 1
        if self.pending_reset is not None:
            self._lower_opacities(self.pending_reset)
        sh_raised = schedule.raises_sh(step, self.settings, self.sh_reached)
        self.sh_reached += sh_raised
        index = self.order.draw()
        halvings = schedule.halvings(step, self.settings)
        photo, photos = self._smaller.at(self.scene.photos[index], halvings)
        color = training_background(self.settings, self.streams["background"])
        background = to_device(color, self.device)
        rest_learns = schedule.trains_sh_rest(step, self.settings)
        self.guard.begin(keep=self._outcomes.has_unread)
        picture = draw_step(
            *(self.model, photo.camera, background, self.sh_degree, self._mode),
            rest_learns=rest_learns,
            guard=self.guard,
            memory=self._memory,
        )
        yield from watch.pause(Phase.RENDER)
        self._outcomes.read_last(self)  # drawing has waited for more than that

        target = target_picture(photos, index, photo, background)
        values, grad_color = l1_ssim_with_gradient(
            *(picture.color, target, self.settings.loss.ssim_weight, self.guard, self.backend),
            memory=self._memory,
        )
        yield from watch.pause(Phase.LOSS)

        gradients, grad_centers = picture.differentiate(grad_color)
        for name, own in PARAMETER_OF.items():
            getattr(self.model, own).grad = getattr(gradients, name)
        numbers = StepNumbers(values, self.guard)
        found = None if may_wait(self, step) else numbers.read()
        if found is not None:
            require_finite_step(found, step, photo.name)
        yield from watch.pause(Phase.BACKWARD)

        notices: list[str] = [] if found is None else heed(self, found, photo.name)
        is_unseen = found is not None and not found.seen
        if is_unseen:
            self.model.clear_gradients()
        refined, reset = None, None
        if step < self.settings.densify.densify_stop:
            if not is_unseen:
                self._observe(picture, grad_centers, photo.camera)
            if schedule.is_refine_step(step, self.settings):
                refined, more = self._refine(step)
                notices += more
            if schedule.is_reset_step(step, self.settings):
                reset = self.settings.opacity_reset.opacity_reset_value
                self.model.opacity_logits.grad = None  # as the reset would have it
                notices += notices_of_reset(step, self.scene)
        self._optimize(step, picture)
        self.model.clear_gradients()

        self.step, self.pending_reset = step, reset
        self.seconds += watch.stop()
        facts = StepFacts(
            step=step,
            photo=photo.name,
            seconds=self.seconds,
            splats=len(self.model),
            position_lr=self.position_lr,
            sh_degree=self.sh_degree,
            sh_raised=sh_raised,
            grown=schedule.grown(step, self.settings),
            refined=refined,
            reset=reset,
        )
        self._outcomes.ended(facts, numbers, found, notices)

    def was_interrupted(self, seconds: float) -> None:
        """The phase under way stood still that long while something else was done."""
        self._watch.leave_out(seconds)

    def waited_for_others(self, seconds: float) -> None:
        """A step waits for the device that long because of a picture drawn between its phases."""
        self._watch.owe(seconds)

    def _out_of_memory(self) -> TrainingError:
        splats, moved = len(self.model), ""
        self._memory.clear()
        if isinstance(self._photos, DevicePhotos) and self._photos.make_room() > 0:
            moved = " The photos left the GPU to make room: going on as it is may do."
        where = f" in step {self.step + 1:,} with {splats:,} splats"
        return TrainingError(out_of_memory_sentence(self.step, where) + moved, value=splats)

    def _observe(self, picture: TrainingPicture, gradient: Tensor | None, camera: Camera) -> None:
        if gradient is not None:
            self.strategy.observe(gradient, picture.radii, camera.width, camera.height)

    def _optimize(self, step: int, picture: TrainingPicture) -> None:
        """Adam on whatever has a gradient: nothing after a refine, no opacity after a reset."""
        rates = schedule.learning_rates(step, self.settings, self.extent)
        stepped = self.model.means.grad is not None
        rest_learns = schedule.trains_sh_rest(step, self.settings)
        idle = ("sh_rest",) if stepped and rest_learns and self.sh_degree == 0 else ()
        radii = picture.radii if stepped and self.settings.faster_steps.visible_only else None
        self.optimizer.step(self.model.items(), rates, idle, radii, self.guard, self._memory)

    # --- changing the model between its steps ----------------------------------------------------

    def _refine(self, step: int) -> tuple[RefineCounts, list[str]]:
        require_finite_parameters(self.model, f"at the refine of step {step}")
        edit = self.strategy.refine(
            self.model, self.settings, self.extent, step, self.streams["split"]
        )
        self._carry_out(edit)
        if schedule.sorts_splats(step, self.settings):
            self._carry_out(sorted_in_space(self.model))
        told = notices_of_refine(step, edit.counts, self.scene)
        return edit.counts, [*edit.notices, *told]

    def _carry_out(self, edit: Edit) -> None:
        """Parameters, moments and statistics follow the edit; all are made before one is taken."""
        self._memory.clear()  # holds the splats as they were
        parameters = edit.parameters(self.model)
        name = first_not_finite(parameters)
        if name is not None:
            raise TrainingError(
                f"Cloning and splitting made values of {name} that are not finite; the splats "
                f"are kept as they were after step {self.step}. Prune huge splats first.",
                value=name,
            )
        moments = self.optimizer.gathered(edit.kept, len(edit.sources))
        self.model.replace(parameters)
        self.optimizer.replace(moments)
        self.strategy.follow(edit)

    def _lower_opacities(self, value: float) -> None:
        self.model.lower_opacities(value)
        self.optimizer.reset("opacity_logits")

    def reset_opacity(self) -> float:
        """Lower every opacity to at most `opacity_reset_value` now; returns that value."""
        self._outcomes.require_settled()
        value = self.settings.opacity_reset.opacity_reset_value
        self._lower_opacities(value)
        return value

    def prune_now(self) -> tuple[RefineCounts, tuple[str, ...]]:
        """Remove what a refine at this step would; the counts, and notices for the user."""
        self._outcomes.require_settled()
        edit = self.strategy.prune(self.model, self.settings, self.extent, self.step)
        self._carry_out(edit)
        return edit.counts, edit.notices

    def densify_now(self) -> tuple[RefineCounts, tuple[str, ...]]:
        """Clone and split now, by the gradients since the last refine; counts and notices."""
        self._outcomes.require_settled()
        split = self.streams["split"]
        edit = self.strategy.grow(self.model, self.settings, self.extent, split)
        self._carry_out(edit)
        return edit.counts, edit.notices

    def apply_setting(self, name: str, value: Value) -> None:
        """Change one setting from the next step on (or the next refine, for those that wait).

        Raises SettingError for an unknown name, a value out of range, or a setting that needs a
        restart. Device settings are only noted here; `engine.device` puts them into force.
        """
        self._outcomes.require_settled()
        if setting_info(name).applies is Applies.RESTART and value != self.settings[name]:
            raise SettingError(f"{name} holds for a whole run; restart to change it.", value=value)
        before = self.sh_degree
        self.settings = self.settings.changed(name, value)
        if self.sh_degree < before:
            self._still_unused_coefficients()

    def _still_unused_coefficients(self) -> None:
        """Without momentum, coefficients above the degree in use stay exactly as they are."""
        used = (self.sh_degree + 1) ** 2 - 1
        self.optimizer.groups["sh_rest"].exp_avg[:, used:] = 0.0

    # --- looking, without leaving a trace --------------------------------------------------------

    @torch.no_grad()
    def render(
        self, camera: Camera, background: Color, sh_degree: int | None = None
    ) -> Float[Tensor, "h w 3"]:
        """A picture of the present model; draws no random number and records nothing."""
        degree = self.sh_degree if sh_degree is None else min(sh_degree, self.sh_degree)
        behind = to_device(torch.tensor(background), self.device)
        return render(self.model, camera, behind, degree, self._mode).color

    def evaluate(self) -> Iterator[PhotoScore]:
        """PSNR and SSIM of one held-out photo after the other."""
        return evaluate(
            self.model,
            self.scene,
            self._photos,
            background=evaluation_background(self.settings),
            sh_degree=self.sh_degree,
            mode=self._mode,
        )

    # --- saving and going on ---------------------------------------------------------------------

    def export_state(self, *, copy: bool = True) -> tuple[dict[str, Tensor], dict[str, Any]]:
        """The whole state as named tensors and a JSON-able header (see `run_state`).

        With `copy` False the large tensors share memory with the run, for a writer that is done
        before the next step.
        """
        self._outcomes.require_settled()
        return run_state.export_state(self, copy=copy)

    @classmethod
    def from_state(
        cls,
        scene: Scene,
        photos: PhotoSource,
        tensors: Mapping[str, Tensor],
        header: Mapping[str, Any],
        *,
        backend: str,
        device: torch.device = CPU,
    ) -> "Trainer":
        """A trainer that goes on, bit for bit on the CPU, where `export_state` was called.

        The tensors may be of any device.
        The settings are those of the header; put others there to go on with others. Raises
        CheckpointError when something is missing or the scene is another one.
        """
        settings = Settings().updated(run_state.settings_values(header))
        model = Gaussians(run_state.model_tensors(tensors))
        trainer = cls(scene, photos, settings, backend=backend, device=device, model=model)
        run_state.load_state(trainer, tensors, header)
        if trainer.sh_degree < trainer.sh_reached:
            trainer._still_unused_coefficients()
        return trainer
