"""Splat files and pictures for other programs."""
