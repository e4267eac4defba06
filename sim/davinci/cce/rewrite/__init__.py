"""Token rewrites from the C++ constructs of CCE into C that the parser accepts."""
