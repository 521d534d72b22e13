"""What a run leaves on disk: folder, journal, checkpoints."""
