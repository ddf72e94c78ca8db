"""Plans: plain data about a run, made before any allocation."""
