"""Which command is legal in which state: the one table, and the sentences of refusal."""

from engine import messages as m
from engine.messages import Command, State

_OPEN = frozenset({State.READY, State.TRAINING, State.PAUSED, State.FINISHED, State.FAILED})
_RESTING = frozenset({State.READY, State.PAUSED, State.FINISHED, State.FAILED})
_ALIVE = frozenset(State) - {State.CLOSING}

LEGAL: dict[type[Command], frozenset[State]] = {
    m.OpenScene: _ALIVE,
    m.ResumeRun: _ALIVE,
    m.CancelLoading: frozenset({State.LOADING}),
    m.Start: _RESTING,
    m.Pause: frozenset({State.TRAINING}),
    m.Stop: frozenset({State.READY, State.TRAINING, State.PAUSED, State.FAILED}),
    m.StepN: _OPEN,
    m.RunUntil: _OPEN,
    m.ContinueFor: _OPEN,
    m.Restart: _OPEN,
    m.SetSetting: _OPEN,
    m.ResetOpacity: _OPEN,
    m.PruneNow: _OPEN,
    m.DensifyNow: _OPEN,
    m.Evaluate: _OPEN,
    m.Save: _OPEN,
    m.Export: _OPEN,
    m.Shutdown: frozenset(State),
}

_WHAT = {
    m.OpenScene: "A scene cannot be opened",
    m.ResumeRun: "A run cannot be continued",
    m.CancelLoading: "There is no loading to cancel",
    m.Start: "Training cannot start",
    m.Pause: "There is nothing to pause",
    m.Stop: "There is nothing to stop",
    m.StepN: "No step can be done",
    m.RunUntil: "Training cannot run on",
    m.ContinueFor: "Training cannot continue",
    m.Restart: "There is no run to restart",
    m.SetSetting: "The setting cannot be changed",
    m.ResetOpacity: "Opacities cannot be reset",
    m.PruneNow: "Nothing can be pruned",
    m.DensifyNow: "Nothing can be densified",
    m.Evaluate: "Nothing can be evaluated",
    m.Save: "There is nothing to save",
    m.Export: "There is nothing to export",
    m.Shutdown: "The engine cannot be shut down",
}

_WHY = {
    State.EMPTY: "no scene is open; open one first.",
    State.LOADING: "the scene is still loading; wait for it or cancel the loading.",
    State.READY: "training has not started; start it first.",
    State.TRAINING: "training is running already.",
    State.PAUSED: "training is paused.",
    State.FINISHED: "the run is finished; continue for more steps or restart it.",
    State.FAILED: "the run was stopped by an error; save or export it, or start it again.",
    State.CLOSING: "the program is closing.",
}


def is_legal(command: Command, state: State) -> bool:
    """Whether `command` may be carried out in `state`, by its kind alone."""
    return state in LEGAL[type(command)]


def refusal(command: Command, state: State) -> str:
    """The sentence that tells why `command` is not carried out in `state` and what to do."""
    return f"{_WHAT[type(command)]}: {_WHY[state]}"
