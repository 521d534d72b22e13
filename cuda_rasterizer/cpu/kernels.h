// The kernels of one instruction set. Every *.cpp of kernels is compiled once for each, in its own namespace,
// so that a machine never runs into instructions that it does not have.
#pragma once

#include "params.h"

#define SPLATSCOPE_DECLARE_KERNELS(isa)                           \
    namespace splatscope {                                        \
    namespace isa {                                               \
    template <typename Real>                                      \
    void project(const ProjectParams<Real>&);                     \
    template <typename Real>                                      \
    void bin_count(const BinParams<Real>&);                       \
    template <typename Real>                                      \
    void bin_fill(const BinParams<Real>&);                        \
    template <typename Real>                                      \
    void blend(const BlendParams<Real>&);                         \
    template <typename Real>                                      \
    void blend_backward(const BlendBackwardParams<Real>&);        \
    template <typename Real>                                      \
    void project_backward(const ProjectBackwardParams<Real>&);    \
    template <typename Real>                                      \
    void l1_ssim(const LossParams<Real>&);                        \
    template <typename Real>                                      \
    void adam(const AdamParams<Real>&);                           \
    template <typename Real>                                      \
    void add_screen_gradients(const ScreenGradientParams<Real>&); \
    template <typename Real>                                      \
    void to_rgba8(const Rgba8Params<Real>&);                      \
    }                                                             \
    }

#define SPLATSCOPE_INSTANTIATE(kernel, Params)         \
    template void kernel<float>(const Params<float>&); \
    template void kernel<double>(const Params<double>&)
