"""The CUDA kernels' sources, and what compiles, caches, loads and launches them.

Nothing here is imported before somebody asks for the CUDA backend, and cuda-bindings not before a
compiler or a driver is wanted: a machine without a GPU pays nothing for it.
"""
