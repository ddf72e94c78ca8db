"""Methods of inference: one algorithm a module, named as in the literature."""
