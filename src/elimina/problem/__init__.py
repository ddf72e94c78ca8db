"""Problems: a model restricted to the evidence, task and query of a question."""
