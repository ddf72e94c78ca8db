"""What will be done, as plain data, before anything is allocated."""
