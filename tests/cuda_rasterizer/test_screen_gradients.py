"""Screen gradients summed over views, for densifying."""

import numpy as np
import pytest
import torch

from cuda_rasterizer import RasterizerError, add_screen_gradients


def views(count=40_000, dtype=torch.float32):
    """Sums, visits, gradients and radii; a fifth of the splats is not seen."""
    random = torch.Generator().manual_seed(8)
    sums, visits = torch.rand(2, count, generator=random, dtype=dtype)
    gradients = torch.randn(count, 2, generator=random, dtype=dtype)
    radii = torch.randint(0, 5, (count, 1), generator=random, dtype=torch.int32).repeat(1, 2)
    return sums, (visits * 9).floor(), gradients, radii


@pytest.mark.usefixtures("fast_backend")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_kernel_has_the_bits_of_correctly_rounded_operations(dtype):
    sums, visits, gradients, radii = views(dtype=dtype)
    made = add_screen_gradients(sums, visits, gradients, radii, 123, 77, "cpu")
    scale = np.array([123 / 2, 77 / 2], gradients.numpy().dtype)
    squares = np.square(gradients.numpy() * scale)
    seen = radii.numpy()[:, 0] > 0  # numpy's root is the processor's own, as the kernel's is
    expected = sums.numpy() + np.sqrt(squares[:, 0] + squares[:, 1]) * seen
    assert np.array_equal(made[0].numpy(), expected)
    assert np.array_equal(made[1].numpy(), visits.numpy() + seen)


@pytest.mark.usefixtures("fast_backend")
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_kernel_and_plain_torch_differ_by_the_last_bit_of_a_root_at_most(dtype):
    made = add_screen_gradients(*views(dtype=dtype), 123, 77, "cpu")
    expected = add_screen_gradients(*views(dtype=dtype), 123, 77, "reference")
    # a root that is off by its last bit, and the sum rounded to the neighbour because of it
    two_bits = 2 * torch.finfo(dtype).eps
    torch.testing.assert_close(made[0], expected[0], rtol=two_bits, atol=0)
    assert torch.equal(made[1], expected[1])


@pytest.mark.parametrize("count", [0, 1, 17])
def test_few_splats_or_none_are_summed(count, backend):
    sums, visits, gradients, radii = views(count)
    made = add_screen_gradients(sums, visits, gradients, radii, 20, 10, backend)
    assert [tensor.shape for tensor in made] == [(count,), (count,)]
    assert torch.equal(made[1], visits + (radii[:, 0] > 0))


def test_what_was_there_stays_and_splats_that_were_not_seen_gain_nothing(backend):
    sums, visits, gradients, radii = views(50)
    before = sums.clone(), visits.clone()
    new_sums, new_visits = add_screen_gradients(sums, visits, gradients, radii, 20, 10, backend)
    assert torch.equal(sums, before[0])
    assert torch.equal(visits, before[1])
    seen = radii[:, 0] > 0
    assert torch.equal(new_visits - visits, seen.float())
    assert torch.equal(new_sums[~seen], sums[~seen])
    norm = (gradients * torch.tensor([10.0, 5.0])).norm(dim=1)
    torch.testing.assert_close((new_sums - sums)[seen], norm[seen], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("broken", range(4))
def test_tensors_that_the_kernel_would_misread_are_refused(broken):
    tensors = list(views(20))
    tensors[broken] = torch.cat([tensors[broken]] * 2)[::2]
    with pytest.raises(RasterizerError, match="contiguous"):
        add_screen_gradients(*tensors, 20, 10)
