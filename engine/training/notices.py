"""What a user should know of a step that went well, in sentences; none where there is nothing."""

from engine.dataset.scene import Scene
from engine.training.densification import RefineCounts
from engine.wording import counted

FEW_PHOTOS = 8  # below this an opacity reset is dangerous, and is announced


def notices_of_refine(step: int, counts: RefineCounts, scene: Scene) -> list[str]:
    """Of a refine that removed more splats than it left."""
    from_cloud = len(scene.points) > 0  # of a random start most are expected to go
    if not from_cloud or counts.pruned <= counts.splats:
        return []
    return [
        f"The refine of step {step} removed {counts.pruned} splats and left {counts.splats}: "
        "splats are dying. Lower the prune opacity, or check that the photos and the sparse "
        "points belong together."
    ]


def notices_of_reset(step: int, scene: Scene) -> list[str]:
    """Of an opacity reset with few photos to bring the splats back."""
    count = len(scene.training)
    if count >= FEW_PHOTOS:
        return []
    return [
        f"Opacities were lowered at step {step}, with no more than "
        f"{counted(count, 'training photo')} to bring splats back: many may not come. Switch "
        "opacity resets off for so few photos."
    ]


def notices_of_unseen(photo: str, times: int) -> list[str]:
    """Of a photo in which no splat was visible, the first of as many times."""
    if times > 1:
        return []
    return [
        f"No splat can be seen in {photo}; nothing is learnt from it. Check its pose, or "
        "leave the photo out."
    ]
