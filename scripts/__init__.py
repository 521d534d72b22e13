"""Commands for whoever builds, tests or shows the program; nothing here is installed."""
