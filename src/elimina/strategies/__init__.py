"""Strategies: methods for a question with their order and budgets, and the call that runs them."""
