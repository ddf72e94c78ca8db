"""Which methods answer a question, in which order, with which budgets."""
