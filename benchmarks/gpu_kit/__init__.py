"""The parts of `benchmarks.gpu`; torch, numpy and cuda-bindings are all they need."""
