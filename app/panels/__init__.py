"""One file a panel; each takes events and posts commands."""
