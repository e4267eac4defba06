"""The rows of ``vitruvian verify``, and the code that runs them in worker processes."""
