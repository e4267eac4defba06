"""The commands of ``vitruvian``, one module each."""
