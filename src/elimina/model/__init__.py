"""What the user has: variables, states, tables, distributions, and the checks of a network."""
