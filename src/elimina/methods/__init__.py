"""Methods of inference: one algorithm per module, with its name in the literature."""
