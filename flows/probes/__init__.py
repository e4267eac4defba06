"""Programs that run a machine's matrix instructions on chosen operands and keep the results."""
