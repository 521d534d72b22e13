"""The training engine: scenes, settings, runs and the thread that trains. No Qt."""
