"""How well one held-out photo is met; a part of messages, measured by `engine.training`."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class PhotoScore:
    """PSNR (dB) and SSIM of one held-out photo."""

    name: str
    psnr: float
    ssim: float
