"""The generated parts of docs: tables, pictures and notebooks from checked-in figures."""
