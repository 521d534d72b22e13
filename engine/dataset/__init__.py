"""Scenes from files: readers, photos and the check of both."""
