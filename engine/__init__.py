"""The training engine: scenes, settings, runs and the thread that trains. No Qt."""

import os

# Large tensors in pages of 2 MiB, where the system has such: from 300,000 splats on a step costs a
# fifth less, since gradients are made anew in each. Read by torch when it first allocates.
os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
