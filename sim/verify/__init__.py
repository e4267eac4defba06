"""Rows of `vitruvian verify`: what is compared, and the process that runs them."""
