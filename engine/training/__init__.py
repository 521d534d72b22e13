"""The recipe: model, optimiser, densification, losses and the step."""
