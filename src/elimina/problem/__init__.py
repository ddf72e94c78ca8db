"""Questions: a model with its evidence, task and query applied."""
