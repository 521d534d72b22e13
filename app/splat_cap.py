"""Whether the splat cap has stopped the growth, from what the engine tells."""

from engine.messages import Event, Refined, RunStarted, SettingApplied, Stepped


class SplatCap:
    """Follows a run's cap and its splats.

    A refine grows up to the cap and prunes afterwards, so the count that is told lies a little
    below a cap that was reached: only the refine itself shows it.
    """

    def __init__(self) -> None:
        self.is_reached = False
        self._cap = 0
        self._splats = 0

    def handle(self, event: Event) -> None:
        """Take an event."""
        match event:
            case RunStarted():
                self._cap, self._splats = int(event.settings["max_splats"]), 0
                self.is_reached = False
            case SettingApplied(name="max_splats"):
                self._cap = int(event.new)
                self.is_reached = 0 < self._cap <= self._splats
            case Refined():
                self._splats = event.splats
                is_growth = event.cloned + event.split > 0 or not event.by_hand
                grown = event.splats + (event.pruned if is_growth else 0)
                self.is_reached = 0 < self._cap <= grown
            case Stepped() if len(event.splats):
                self._splats = int(event.splats[-1])
