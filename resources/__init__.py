"""Data files: icons, shaders, presets, style sheet and the demo scene."""
