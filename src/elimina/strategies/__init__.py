"""Strategies: the methods that may answer a question, their order and budgets, and the call that runs them."""
