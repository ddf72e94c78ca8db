"""Plans: plain data about what will be done, made before anything is allocated."""
