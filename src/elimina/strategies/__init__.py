"""Strategies: the methods that answer a question, their order and budgets, and the call that runs them."""
