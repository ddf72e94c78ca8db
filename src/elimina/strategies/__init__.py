"""Strategies: the methods for a question, their order and budgets, and the call that runs them."""
