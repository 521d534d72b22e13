"""The cores that a test may keep busy."""

import os


def own_cores() -> int:
    """Those of the machine, or this worker's share of them where workers share the suite."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    return max(1, (os.cpu_count() or 1) // workers)
