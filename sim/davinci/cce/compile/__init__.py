"""From a parsed kernel to Python closures: scopes, expressions, statements, calls."""
