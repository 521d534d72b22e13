"""The window: Qt widgets that show what the engine does and post commands to it."""
