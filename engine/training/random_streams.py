"""The random numbers of a run, in one stream for each purpose.

Separate streams keep runs comparable: a random background does not change the order of photos.
"""

from collections.abc import Mapping

import numpy as np
import torch
from torch import Tensor

PURPOSES = ("points", "photos", "background", "split")


class RandomStreams:
    """One CPU generator per purpose, all grown from one seed."""

    def __init__(self, seed: int) -> None:
        self._generators = {
            purpose: torch.Generator().manual_seed(_derived(seed, place))
            for place, purpose in enumerate(PURPOSES)
        }

    @property
    def purposes(self) -> tuple[str, ...]:
        """The names of the streams."""
        return tuple(self._generators)

    def __getitem__(self, purpose: str) -> torch.Generator:
        return self._generators[purpose]

    def export_state(self) -> dict[str, Tensor]:
        """The state of every stream, uint8, by purpose."""
        return {purpose: stream.get_state() for purpose, stream in self._generators.items()}

    def load_state(self, state: Mapping[str, Tensor]) -> None:
        """Take back what `export_state` gave."""
        for purpose, stream in self._generators.items():
            stream.set_state(state[purpose])


def _derived(seed: int, place: int) -> int:
    return int(np.random.SeedSequence([seed, place]).generate_state(1, np.uint32)[0])
