"""The picture of the scene: cameras, mouse and keys, and the two ways to paint it."""
