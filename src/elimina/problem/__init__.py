"""What is asked: a model with its evidence, task and query applied."""
