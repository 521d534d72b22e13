"""The main button: what a click on it means, however quickly the clicks follow each other."""

from engine.messages import Command, CommandRefused, Event, Pause, Start, State, StateChanged

TOGGLED = (State.TRAINING, State.PAUSED)


class StartPause:
    """Every click is the opposite of the one before, though the engine has not answered yet."""

    def __init__(self) -> None:
        self._last: Command | None = None
        self._unanswered = 0

    def next(self, state: State) -> Command:
        """The command of a click, where `state` is the last that the engine has told."""
        is_going = isinstance(self._last, Start) if self._unanswered else state is State.TRAINING
        self._last = Pause() if is_going else Start()
        self._unanswered += 1
        return self._last

    def handle(self, event: Event) -> None:
        """Count the answers: a change of state or a refusal each."""
        if isinstance(event, StateChanged):
            answered = event.new in TOGGLED
            self._unanswered = max(0, self._unanswered - 1) if answered else 0
        elif isinstance(event, CommandRefused) and isinstance(event.command, Start | Pause):
            self._unanswered = max(0, self._unanswered - 1)
