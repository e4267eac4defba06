"""Benches of the buses: random commands with golden's results, and models of the protocols."""
