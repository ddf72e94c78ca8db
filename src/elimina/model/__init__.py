"""The user's models: variables, states, tables, distributions, and the checks of a network."""
