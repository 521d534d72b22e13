"""The window's dialogs: open a scene, a number of steps, a file to export to, preset files."""
