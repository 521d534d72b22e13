"""The one error that this layer raises on purpose."""


class RasterizerError(ValueError):
    """An argument or a backend is not usable; the message says what was found and what to do."""
