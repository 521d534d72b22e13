"""A word on photos that are larger than a processor trains in comfort."""

from engine.dataset.scene import Scene

COMFORTABLE_PIXELS = 520_000  # a quarter of full HD: about a tenth of a second a step on two cores
DIVISORS = (2, 4, 8)


def size_advice(scene: Scene, device_type: str) -> str | None:
    """What to set `resolution` to where photos are large and no GPU draws; else None.

    What to do stands first: a line in a narrow window shows no more.
    """
    cameras = [photo.camera for photo in scene.photos if not photo.held_out]
    if device_type != "cpu" or not cameras:
        return None
    largest = max(cameras, key=lambda camera: camera.width * camera.height)
    pixels = largest.width * largest.height
    if pixels <= COMFORTABLE_PIXELS:
        return None
    fitting = (divisor for divisor in DIVISORS if pixels <= COMFORTABLE_PIXELS * divisor**2)
    divisor = next(fitting, DIVISORS[-1])
    return (
        f"Photos of {largest.width:,} x {largest.height:,} are slow without a GPU: set resolution "
        f"to {round(largest.width / divisor):,} (the width) and restart. At 1/{divisor} of the "
        f"size a step draws {divisor**2} times fewer pixels."
    )
