from collections.abc import Iterator

import pytest

from cuda_rasterizer import set_threads


@pytest.fixture(autouse=True, scope="package")
def _one_thread() -> Iterator[None]:
    """Pictures of a few hundred pixels are not worth a second thread; results are the same."""
    set_threads(1)
    yield
    set_threads(0)
